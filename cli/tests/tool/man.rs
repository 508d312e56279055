//! Tests the sections of the man pages, and runs their examples.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::run::{Folder, TOOL};

/// Writes the man pages into a temporary folder, and returns them by name.
fn pages() -> BTreeMap<String, String> {
    let folder = Folder::new();
    assert_eq!(folder.run("man .").code, 0);
    let page = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(folder.path("")).unwrap().map(page).collect()
}

/// The text of a section, without its heading.
fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!(".SH {name}\n"))?;
    Some(rest.split("\n.SH ").next().unwrap_or(rest))
}

/// The examples of a page.
fn examples(page: &str) -> Vec<String> {
    let blocks = section(page, "EXAMPLES").unwrap_or_default().split(".RS\n").skip(1);
    blocks
        .map(|block| block.split("\n.RE").next().unwrap_or(block).replace("\\-", "-").replace("\\*(Aq", "'"))
        .collect()
}

#[test]
fn every_page_has_exit_status_environment_and_examples() {
    let pages = pages();
    assert!(pages.len() >= 18, "{:?}", pages.keys());
    for (name, page) in &pages {
        for title in ["\"EXIT STATUS\"", "ENVIRONMENT", "EXAMPLES"] {
            let section = section(page, title).unwrap_or_else(|| panic!("{name} has no {title}"));
            assert!(!section.trim().is_empty(), "{name}: nothing in {title}");
        }
        assert!(!examples(page).is_empty(), "{name} has no example");
    }
    let reads = |page: &str, variable| section(&pages[page], "ENVIRONMENT").unwrap().contains(variable);
    assert!(reads("rollcall-top.1", "ROLLCALL_URL") && reads("rollcall-copy.1", "ROLLCALL_TARGET_PASSWORD"));
    assert!(!reads("rollcall-merge.1", "ROLLCALL"));
}

/// Runs the examples in the order of the list. No server listens, so examples that need one must end with exit code
/// 3. Wrong arguments would give 2.
#[test]
fn examples_run() {
    let folder = Folder::new();
    for (name, items) in
        [("known.txt", 0..2000), ("absent.txt", 2000..9000), ("monday.txt", 0..300), ("tuesday.txt", 200..900)]
    {
        folder.write(name, items.map(|n| format!("user{n}\n")).collect::<String>());
    }
    folder.write("tokens.txt", "token\n");
    assert_eq!(folder.run("build filter more.rollcall known.txt --error 0.1%").code, 0);
    assert_eq!(folder.run("build filter visitors.rollcall known.txt").code, 0);
    let path = format!("{}:{}", std::path::Path::new(TOOL).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let run = |example: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", example]).current_dir(folder.path("")).env("PATH", &path);
        command.env("ROLLCALL_URL", "redis://127.0.0.1:1").output().unwrap()
    };
    let pages = pages();
    let mut count = 0;
    for page in ["plan-filter", "plan-counter", "build-filter", "merge", "check", "info", "completions"] {
        for example in examples(&pages[&format!("rollcall-{page}.1")]) {
            let output = run(&example);
            assert_eq!(output.status.code(), Some(0), "{example}: {}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    for page in ["top", "nodes", "dump", "load", "import", "compare"] {
        for example in examples(&pages[&format!("rollcall-{page}.1")]) {
            let output = run(&example);
            assert_eq!(output.status.code(), Some(3), "{example}: {}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert!(count >= 16, "{count}");
}
