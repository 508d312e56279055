//! The module of `neighbour.c`, which does to ours what other modules and other servers may do.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rollcall_testkit::server::Setup;

/// The module, compiled when it is first asked for. There is a C compiler wherever ours was built.
pub fn neighbour() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/neighbour.c");
        // Another run may use the module meanwhile, so it is exchanged whole.
        let (made, module) = (folder.join(format!("{}.so", std::process::id())), folder.join("neighbour.so"));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command
            .args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o"])
            .args([&made, &source])
            .arg("-ldl");
        let status = command.status().expect("a C compiler");
        assert!(status.success(), "{} does not compile", source.display());
        std::fs::rename(&made, &module).expect("the module is in its place");
        module
    })
}

/// A server with our module, and the neighbour between both.
pub fn hosted(options: &str) -> Setup {
    Setup::default().hosted_by(neighbour(), options)
}
