//! The test module of `neighbour.c`, which imitates other modules and servers in their treatment of this module.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rollcall_testkit::Setup;

/// The path of the test module, compiled on first use. A C compiler is available, because building this module needs
/// one.
pub fn neighbour() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/neighbour.c");
        // Another test run may use the file meanwhile, so a new file replaces it by renaming.
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

/// The setup of a server in which the test module hosts this module, with these options.
pub fn hosted(options: &str) -> Setup {
    Setup::default().hosted_by(neighbour(), options)
}
