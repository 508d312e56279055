//! Exit codes of commands without servers. Exit code 0 means that everything asked for was done.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rollcall_testkit::{lines, rows};

use crate::run::{Folder, items};

/// A folder with a filter, a counter, a file without values, and items.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("items", items(2000).join("\n"));
    folder.write("none", "");
    assert_eq!(folder.run("build filter filter items").code, 0);
    assert_eq!(folder.run("build counter counter items").code, 0);
    folder
}

/// A regression test: commands exited with 0 although they found nothing to work on.
#[test]
fn a_command_without_work_is_no_success() {
    let folder = folder();
    for (arguments, code, said) in [
        ("check filter none", 4, "no items to look for"),
        ("check filter items --absent none", 4, "no absent items"),
        ("check counter none", 1, "off by"),
        ("check filter items", 0, ""),
        ("check counter items", 0, ""),
        // An empty filter from an empty file is a success.
        ("build filter empty none", 0, ""),
    ] {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, code, "{arguments}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(said), "{arguments}: {}", ran.err);
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let folder = folder();
    for arguments in lines(
        "--help; --version; plan --help; plan filter 10; --json plan filter 10; plan counter 10
         build filter a items --force; build counter b items --force; merge c filter filter --force
         check filter items; --json check filter items; info filter; --json info filter; completions bash
         completions zsh",
    ) {
        let (code, err) = folder.run_into_full(arguments);
        assert_eq!(code, 3, "{arguments}: {err}");
        assert!(err.contains("cannot write to standard output: No space left on device"), "{arguments}: {err}");
        assert!(!err.contains("panicked"), "{arguments}: {err}");
    }
    // The value is written even though the exit code is not 0.
    assert_eq!(folder.json("info a")["values"].as_array().map(Vec::len), Some(1));
}

/// A reader such as `head` may close the pipe early; that is no failure.
#[test]
fn a_closed_output_pipe_is_no_failure() {
    let folder = folder();
    for arguments in ["completions zsh", "--help", "info filter"] {
        let mut child = folder.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments}");
    }
}

/// A regression test: `--force` replaced a device that was named as output by a file.
#[test]
fn only_files_are_replaced() {
    let folder = folder();
    std::os::unix::fs::symlink("/dev/null", folder.path("device")).unwrap();
    for arguments in ["build filter device items --force", "merge device filter --force"] {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, 3, "{arguments}");
        assert!(ran.err.contains("is no file"), "{arguments}: {}", ran.err);
    }
}

/// A file that a killed command left is overwritten; another file of this name is not.
#[test]
fn only_unfinished_files_of_the_tool_are_overwritten() {
    let folder = folder();
    let filter = folder.read("filter");
    folder.write("out.part", [&filter[..], &filter].concat());
    assert_eq!(folder.run("build filter out items").code, 0);
    assert!(folder.read("out") == filter && !folder.path("out.part").exists());
    folder.write("other.part", "text");
    let ran = folder.run("build filter other items");
    assert_eq!((ran.code, folder.read("other.part")), (3, b"text".to_vec()), "{}", ran.err);
    assert!(ran.err.contains("other.part is no file of filters and counters"), "{}", ran.err);
}

/// A regression test: Ctrl-C left the temporary file `out.*.part`.
#[test]
fn a_signal_ends_a_build_without_a_trace() {
    for (command, signal) in rows(
        "build filter out - --capacity 1000000 => INT; build counter out - => INT; build counter out - => TERM
         build counter out - => HUP",
    ) {
        let folder = Folder::new();
        let mut child = folder.command(command).spawn().unwrap();
        // The tool has created its temporary file, and waits for more items.
        child.stdin.as_mut().unwrap().write_all(b"ann\nben\n").unwrap();
        let files = || std::fs::read_dir(folder.path("")).unwrap().count();
        while files() == 0 {
            std::thread::yield_now();
        }
        let kill = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let number = match signal {
            "INT" => 2,
            "TERM" => 15,
            _ => 1,
        };
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + number), "{command} {signal}: {:?}", status.signal());
        assert_eq!(files(), 0, "{command} {signal}");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "rollcall: interrupted\n", "{command}");
    }
}
