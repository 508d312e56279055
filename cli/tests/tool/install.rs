//! Tests `install`, with which the init containers of images copy the module.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::run::Folder;

#[test]
fn a_file_is_copied_replaced_and_executable() {
    let folder = Folder::new();
    fs::create_dir(folder.path("modules")).unwrap();
    for content in ["one", "another"] {
        folder.write("librollcall.so", content);
        let ran = folder.run("install librollcall.so modules");
        assert_eq!((ran.code, ran.out.as_str()), (0, "modules/librollcall.so\n"), "{}", ran.err);
        assert_eq!(folder.read("modules/librollcall.so"), content.as_bytes());
    }
    let mode = fs::metadata(folder.path("modules/librollcall.so")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(fs::read_dir(folder.path("modules")).unwrap().count(), 1);
}

#[test]
fn a_failed_install_leaves_nothing() {
    let folder = Folder::new();
    folder.write("file", "");
    fs::create_dir(folder.path("modules")).unwrap();
    for (arguments, code) in [("missing modules", 3), ("file missing", 3), ("/ modules", 2), ("modules .", 3)] {
        let ran = folder.run(&format!("install {arguments}"));
        assert_eq!(ran.code, code, "{arguments}: {}", ran.err);
    }
    assert_eq!(fs::read_dir(folder.path("modules")).unwrap().count(), 0);
}
