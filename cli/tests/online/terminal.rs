//! Tests `top` on a terminal.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::{add_grown, server_on};
use rollcall_testkit::wait_until;

/// The tool on a terminal of a given width, with all its output.
struct Terminal {
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(columns: u32, arguments: &str) -> Self {
        let line = format!("stty cols {columns} rows 24; exec {} {arguments}", env!("CARGO_BIN_EXE_rollcall"));
        let mut child = Command::new("script")
            .args(["-qefc", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env("TERM", "xterm")
            .spawn()
            .expect("script is installed");
        let (mut out, written) = (child.stdout.take().expect("its output"), Arc::new(Mutex::new(Vec::new())));
        let shared = written.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = out.read(&mut buffer) {
                shared.lock().expect("no panic").extend_from_slice(&buffer[..read]);
            }
        });
        Terminal { child, written }
    }

    /// The output since the last call. Each line starts with the escape sequence that sets its position.
    fn drawn(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.written.lock().expect("no panic"))).into_owned()
    }

    fn wait_for(&self, text: &str) -> String {
        let mut all = String::new();
        wait_until(text, || {
            all += &self.drawn();
            all.contains(text).then(|| all.clone())
        })
    }

    /// Presses `q`, and returns the exit code.
    fn quit(&mut self) -> Option<i32> {
        self.child.stdin.as_mut().expect("its input").write_all(b"q").expect("a key");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The tool has already ended unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes escape sequences; each position on the screen begins a new line.
fn lines(drawn: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut letters = drawn.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            lines.last_mut().expect("a line").push(letter);
            continue;
        }
        let command = letters.by_ref().skip(1).find(char::is_ascii_alphabetic);
        if command == Some('H') {
            lines.push(String::new());
        }
    }
    lines
}

/// A regression test: `top` ended when its server stopped, and cut findings at the last column.
#[test]
fn a_table_outlives_its_server_and_shows_whole_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket").display().to_string();
    let server = server_on(&socket);
    add_grown(&mut server.client());
    let mut terminal = Terminal::start(60, &format!("top --interval 1 --url redis+unix://{socket}"));
    let drawn = terminal.wait_for("visitors");
    let lines = lines(&drawn);
    assert!(lines.iter().all(|line| line.trim_end().chars().count() <= 60), "{lines:#?}");
    let finding: Vec<&str> =
        lines.iter().skip_while(|line| !line.starts_with("grown ")).skip(1).map(String::as_str).collect();
    let finding: Vec<&str> = finding.into_iter().map_while(|line| line.strip_prefix("  ! ")).collect();
    let whole = crate::tool(&["top", "--url", &format!("redis+unix://{socket}")]).out;
    let whole = whole.lines().find(|line| line.starts_with("grown ")).expect("its row");
    assert!(whole.ends_with(&finding.join(" ")) && finding.len() > 1, "{finding:?}: {whole}");
    drop(server);
    terminal.wait_for("no answer: cannot connect to");
    let again = server_on(&socket);
    terminal.drawn();
    terminal.wait_for("visitors");
    // A server that answers with an error is not said to give no answer.
    again.client().expect("ACL SETUSER default -scan", "+OK");
    let drawn = terminal.wait_for("answered SCAN with");
    let line = drawn.rfind("answered SCAN with").map(|at| &drawn[at.saturating_sub(150)..at]);
    assert!(line.is_some_and(|line| !line.contains("no answer")), "{drawn}");
    assert_eq!(terminal.quit(), Some(0));
}
