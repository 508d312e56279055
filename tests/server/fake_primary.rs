//! A primary that sends what a test says, and as much of it as the test says.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use redis::{Parser, Value};

use rollcall_testkit::client::{deadline, text};
use rollcall_testkit::server::Server;

/// The history that it claims to have, always the same.
const REPLICATION_ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// What stands after an RDB whose length was not reported. No RDB of a test has it in it.
const END_MARK: &str = "ffffffffffffffffffffffffffffffffffffffff";

/// How a primary says where its RDB ends.
#[derive(Clone, Copy, Debug)]
pub enum Framing {
    /// It announces the length before.
    Length,
    /// It announces a mark before, and sends that after.
    Mark,
}

pub struct FakePrimary {
    listener: TcpListener,
}

impl FakePrimary {
    /// Begins to listen, and makes `replica` its replica.
    pub fn of(replica: &Server) -> FakePrimary {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        replica.client().expect(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK");
        FakePrimary { listener }
    }

    /// Waits until the replica asks for all data. It has given up by then what it was sent before.
    #[track_caller]
    pub fn asked(&self) -> Asking {
        let end = Instant::now() + deadline();
        while Instant::now() < end {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Some(asking) = Asking::after_handshake(stream) {
                        return asking;
                    }
                }
                Err(_) => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        panic!("the replica did not connect again");
    }
}

/// A replica that waits for all data.
pub struct Asking {
    stream: TcpStream,
}

impl Asking {
    /// Answers what a replica says first; `None` if it hangs up.
    fn after_handshake(mut stream: TcpStream) -> Option<Asking> {
        stream.set_nonblocking(false).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(deadline())).ok()?;
        let mut parser = Parser::new();
        loop {
            let Value::Array(words) = parser.parse_value(&mut stream).ok()? else { return None };
            let reply: &[u8] = match text(words.first()?).to_uppercase().as_str() {
                "PSYNC" => return Some(Asking { stream }),
                "PING" => b"+PONG\r\n",
                _ => b"+OK\r\n",
            };
            stream.write_all(reply).ok()?;
        }
    }

    /// Sends so many bytes of an RDB, and all that belongs after it if these are all. The link stays as it is.
    pub fn send(mut self, rdb: &[u8], bytes: usize, framing: Framing) -> Sent {
        let mut sent = format!("+FULLRESYNC {REPLICATION_ID} 1\r\n").into_bytes();
        let (before, after) = match framing {
            Framing::Length => (format!("${}\r\n", rdb.len()), ""),
            Framing::Mark => (format!("$EOF:{END_MARK}\r\n"), END_MARK),
        };
        sent.extend_from_slice(before.as_bytes());
        sent.extend_from_slice(&rdb[..bytes]);
        if bytes == rdb.len() {
            sent.extend_from_slice(after.as_bytes());
        }
        self.stream.write_all(&sent).expect("the replica listens");
        Sent { stream: self.stream }
    }
}

/// The link on which an RDB was sent, or a part of one.
pub struct Sent {
    stream: TcpStream,
}

impl Sent {
    /// Hangs up. What was sent is read to its end all the same: only the other side's hanging up ends the connection.
    pub fn hang_up(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut rest = [0; 1024];
        while self.stream.read(&mut rest).is_ok_and(|bytes| bytes > 0) {}
    }
}
