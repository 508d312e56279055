//! Starts commands of the tool that serve pages, on ports that the system chooses, and requests the pages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use rollcall_testkit::{deadline, wait_until};

/// A running command.
pub struct Pages {
    child: Child,
    address: SocketAddr,
    said: Arc<Mutex<String>>,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Pages {
    /// Starts the tool with these arguments on a free port.
    pub fn start(args: &[&str]) -> Pages {
        let mut command = rollcall_testkit::heeding_signals(env!("CARGO_BIN_EXE_rollcall"));
        for name in ["ROLLCALL_URL", "ROLLCALL_PASSWORD"] {
            command.env_remove(name);
        }
        command.args(args).args(["--bind", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the tool starts");
        let lines = BufReader::new(child.stderr.take().expect("its errors")).lines().map_while(Result::ok);
        let said = Arc::new(Mutex::new(String::new()));
        let (sender, receiver) = channel();
        let all = said.clone();
        thread::spawn(move || {
            for line in lines {
                let address = line.rsplit_once("http://").map(|(_, rest)| rest.trim_end_matches('/').parse());
                *all.lock().expect("it is whole") += &format!("{line}\n");
                if let Some(Ok(address)) = address {
                    let _ = sender.send(address);
                }
            }
        });
        let Ok(address) = receiver.recv_timeout(deadline()) else {
            let _ = (child.kill(), child.wait());
            panic!("no address in: {}", said.lock().expect("it is whole"));
        };
        Pages { child, address, said }
    }

    /// The text on standard error so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("it is whole").clone()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends these bytes unchanged, and returns the response.
    pub fn send(&self, request: &str) -> Reply {
        send(self.address, request).expect("it answers")
    }

    pub fn get(&self, path: &str) -> Reply {
        ask(self.address, path).expect("it answers")
    }

    /// Sends a signal, `-TERM` or `-INT`, and returns the exit code.
    pub fn end(mut self, signal: &str) -> Option<i32> {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill runs");
        assert!(kill.success());
        wait_until("the tool to end", || self.child.try_wait().expect("the child's status")).code()
    }
}

/// The response to `GET path`, also of servers that speak HTTP/1.0. `None` if nobody listens at `address`.
pub fn ask(address: SocketAddr, path: &str) -> Option<Reply> {
    send(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n"))
}

fn send(address: SocketAddr, request: &str) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(deadline())).expect("a timeout");
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Some(Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_plain_reading_from_this_machine_is_answered() {
    let pages = Pages::start(&["exporter", "--url", "redis://127.0.0.1:1"]);
    let address = pages.address();
    let ask = |request: &str| pages.send(request).status;
    assert_eq!(ask(&format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n")), 200);
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    assert_eq!(ask("GET / HTTP/1.0\r\n\r\n"), 200);
    assert_eq!(ask("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404);
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: rebound.example.org\r\n\r\n"), 421);
    assert_eq!(ask("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
    assert_eq!(ask("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"), 413);
    assert_eq!(ask(&format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000))), 431);
    let plain = pages.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, */*\r\n\r\n");
    assert!(plain.head.contains("content-type: text/plain; version=0.0.4"), "{}", plain.head);
    assert!(!plain.body.contains("# EOF"), "{}", plain.body);
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let open = pages.send(&format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n\r\n"));
    assert!(open.body.ends_with("# EOF\n"), "{}", open.body);
    let head = pages.send(&format!("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n\r\n"));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{}", head.head);
    assert_eq!(ask("nonsense\r\n\r\n"), 400);
    // Clients that send nothing or an incomplete request are cut off. Other clients are served meanwhile.
    let mut silent: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    silent[0].write_all(b"GET / HTTP/1.1\r\nHo").expect("it is read");
    assert_eq!(ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    drop(silent);
    for signal in ["-TERM", "-INT"] {
        assert_eq!(Pages::start(&["exporter"]).end(signal), Some(0));
    }
    // The port is in use.
    let bind = address.to_string();
    let taken = crate::tool(&["exporter", "--bind", &bind]).expect(3).err;
    assert!(taken.contains("cannot listen at") && taken.contains("--bind"), "{taken}");
}
