//! A fake primary that sends any data that a test chooses, completely or in part.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use redis::{Parser, Value};

use rollcall_testkit::{Server, deadline, text};

/// The replication id that the fake primary reports, always the same.
const REPLICATION_ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The mark after an RDB whose length was not announced. No RDB of a test contains it.
const END_MARK: &str = "ffffffffffffffffffffffffffffffffffffffff";

/// How the primary announces the end of its RDB.
#[derive(Clone, Copy, Debug)]
pub enum Framing {
    /// The primary announces the length before the RDB.
    Length,
    /// The primary announces a mark before the RDB, and sends the mark after it.
    Mark,
}

pub struct FakePrimary {
    listener: TcpListener,
}

impl FakePrimary {
    /// Starts to listen, and makes `replica` a replica of this primary.
    pub fn of(replica: &Server) -> FakePrimary {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        replica.client().expect(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK");
        FakePrimary { listener }
    }

    /// Waits until the replica asks for a full synchronisation. By then it has dropped any data that it received
    /// before.
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

/// A replica that waits for a full synchronisation.
pub struct Asking {
    stream: TcpStream,
}

impl Asking {
    /// Answers the handshake of a replica; `None` if the replica closes the connection.
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

    /// Sends the first `bytes` bytes of an RDB, and the end mark if these are all bytes. The connection stays open.
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

/// The connection on which an RDB or a part of it was sent.
pub struct Sent {
    stream: TcpStream,
}

impl Sent {
    /// Closes the sending side, then waits until the replica closes the connection, so that the replica reads all data
    /// first.
    pub fn hang_up(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut rest = [0; 1024];
        while self.stream.read(&mut rest).is_ok_and(|bytes| bytes > 0) {}
    }
}
