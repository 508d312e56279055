//! Runs the examples of docs/tool.md, the blocks marked `shell-session`, in order in one folder. Their output must
//! equal the document; `...` matches any text.

use std::path::Path;
use std::process::Command;

use rollcall_testkit::matches;

use crate::run::{Folder, TOOL};

#[test]
fn the_examples_of_the_page_are_true() {
    let folder = Folder::new();
    let page = include_str!("../../../docs/tool.md");
    let path = format!("{}:{}", Path::new(TOOL).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for block in page.split("```shell-session\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for example in block.split("$ ").skip(1) {
            let (command, shown) = example.split_once('\n').unwrap();
            let output = Command::new("sh")
                .args(["-c", &format!("{command} 2>&1")])
                .current_dir(folder.path(""))
                .env("PATH", &path)
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let (shown, printed): (Vec<_>, Vec<_>) =
                (shown.trim_end().lines().collect(), printed.trim_end().lines().collect());
            let same = shown.len() == printed.len()
                && shown.iter().zip(&printed).all(|(shown, line)| matches(line, shown, "..."));
            assert!(same, "$ {command}\n{}\nis shown as\n{}", printed.join("\n"), shown.join("\n"));
            run += 1;
        }
    }
    assert!(run >= 8, "{run}");
}

/// The numbers of the format are in the document's table.
#[test]
fn the_document_reports_the_format() {
    let page = include_str!("../../../docs/persistence.md");
    let section =
        page.split("## Files of the command-line tool").nth(1).expect("the section").split("\n## ").next().unwrap();
    for reported in
        ["`RollCall`", "\n1  ", "\n2  ", "\n3  ", "\n4  ", "F a filter", "C a counter", "64 MiB", "512 MiB", "XXH3-64"]
    {
        assert!(section.contains(reported), "{reported}");
    }
}
