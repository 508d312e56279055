//! Runs the tool in a temporary folder.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use serde_json::Value as Json;

/// The tool.
pub const TOOL: &str = env!("CARGO_BIN_EXE_rollcall");

/// A folder for the files of one test; dropping it deletes the folder.
pub struct Folder(tempfile::TempDir);

/// The result of one run.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The only value of a file.
    pub fn load<T: rollcall_core::live::Value>(&self, name: &str) -> T {
        persist::from_bytes(&self.read(name), &Unlimited).unwrap()
    }

    /// The tool in this folder, with pipes. Arguments are separated by spaces.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = rollcall_testkit::heeding_signals(TOOL);
        command.args(arguments.split_whitespace()).current_dir(self.0.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the tool in this folder. Arguments are separated by spaces.
    pub fn run(&self, arguments: &str) -> Ran {
        self.run_with(arguments, b"")
    }

    /// Runs the tool in this folder with this standard input.
    pub fn run_with(&self, arguments: &str, input: &[u8]) -> Ran {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // Writing fails if the tool ends before it has read everything.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs the tool with standard output to a full device. Returns the exit code and standard error.
    pub fn run_into_full(&self, arguments: &str) -> (i32, String) {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = self.command(arguments).stdin(Stdio::null()).stdout(full).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// Runs the tool, which must succeed, and returns its JSON answer.
    pub fn json(&self, arguments: &str) -> Json {
        self.run(&format!("--json {arguments}")).json()
    }
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Json {
        assert_eq!(self.code, 0, "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Items of different lengths, some repeated and some empty. Every run gets the same.
pub fn items(count: u64) -> Vec<String> {
    (0..count)
        .map(|number| {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            match number % 11 {
                0 => String::new(),
                1..4 => format!("again {}", mixed % (count / 10 + 1)),
                4 => format!("{number} {}", "x".repeat((mixed % 300) as usize)),
                _ => format!("item {number}"),
            }
        })
        .collect()
}
