//! Tests the tool on real servers.
//!
//! The variables `ROLLCALL_MODULE`, `ROLLCALL_SERVER` and `ROLLCALL_PEER` are the same as for the module's tests,
//! `tests/server`. `ROLLCALL_SERVERS` names all servers for [`between_servers`].

mod between_servers;
mod browser;
mod changing;
mod cluster;
mod compare;
mod connecting;
mod copying;
mod dashboard;
mod devtools;
mod ends;
mod exporter;
mod files;
mod importing;
mod listing;
mod monitoring;
mod pages;
mod planning;
mod rollback;
mod stopped;
mod terminal;
mod typed;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rollcall_testkit::{Client, Server, Setup};

/// The exit code and the output of the tool.
#[derive(Debug)]
pub struct Ended {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// Panics unless the exit code is `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    /// Panics unless the exit code is `code` and standard error has `part`.
    #[track_caller]
    pub fn fails(self, code: i32, part: &str) -> Ended {
        assert!(self.err.contains(part), "no {part} in {}", self.err);
        self.expect(code)
    }

    /// Panics unless the exit code is `code` and standard output has `part`.
    #[track_caller]
    pub fn shows(self, code: i32, part: &str) -> Ended {
        assert!(self.out.contains(part), "no {part} in {}", self.out);
        self.expect(code)
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }
}

/// Runs the tool with these arguments.
pub fn tool(args: &[&str]) -> Ended {
    tool_with(args, b"", &[])
}

/// Runs the tool with these arguments, standard input and environment variables.
pub fn tool_with(args: &[&str], input: &[u8], environment: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    for name in ["ROLLCALL_URL", "ROLLCALL_PASSWORD", "ROLLCALL_TARGET_PASSWORD"] {
        command.env_remove(name);
    }
    command.args(args).envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the tool starts");
    child.stdin.take().expect("its input").write_all(input).expect("it reads its input");
    let output = child.wait_with_output().expect("the tool ends");
    Ended {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Copies all keys, without watching for writers.
pub fn copy(from: &Server, to: &Server, more: &[&str]) -> Ended {
    tool(&[&["copy", &url(from), &url(to), "--watch", "0"], more].concat())
}

/// A server, a client of it, and its URL.
#[track_caller]
pub fn started() -> (Server, Client, String) {
    let (server, client) = Server::start().with_client();
    let url = url(&server);
    (server, client, url)
}

/// The URL of a server.
pub fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

/// The path of RedisBloom's module. Tests that use it fail if `ROLLCALL_PEER` is not set.
#[track_caller]
pub fn peer() -> PathBuf {
    std::env::var_os("ROLLCALL_PEER").map(PathBuf::from).expect("ROLLCALL_PEER is set to a RedisBloom module")
}

/// A server with RedisBloom alone.
#[track_caller]
pub fn peer_server() -> Server {
    Setup::default().without_module().module_before(&peer()).start()
}

/// A server with one counter, on this Unix socket.
pub fn server_on(socket: &str) -> Server {
    let server = Setup::default().line(&format!("unixsocket {socket}")).start();
    server.client().cmd("LC.ADD visitors ann");
    server
}

/// Adds the filter `grown`, which has so many sub-filters that there is a finding about it.
pub fn add_grown(client: &mut Client) {
    client.expect("BF.RESERVE grown 0.01 100", "+OK");
    rollcall_testkit::add_many(client, "BF.MADD grown", "item:", 0..4000);
}

/// Adds the empty filter `large`, and `half`, a partially loaded value.
pub fn add_partially_loaded(client: &mut Client) {
    client.expect("BF.RESERVE large 0.01 10000", "+OK");
    let header = client.chunks("BF", "large").remove(0);
    client.call(&[&b"BF.LOADCHUNK"[..], b"half", header.0.as_bytes(), &header.1]);
}

/// The number of `items` that the filter contains.
pub fn found(client: &mut Client, key: &str, items: &[String]) -> usize {
    let pieces = items.chunks(1000).map(|piece| {
        let words: Vec<&str> = ["BF.MEXISTS", key].into_iter().chain(piece.iter().map(String::as_str)).collect();
        match client.call(&words) {
            redis::Value::Array(answers) => answers.iter().filter(|answer| **answer == redis::Value::Int(1)).count(),
            other => panic!("BF.MEXISTS gave {other:?}"),
        }
    });
    pieces.sum()
}
