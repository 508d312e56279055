//! A connection that keeps every byte of a reply, including the kind of a null and the kind of a string.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rollcall_testkit::client::{deadline, excerpt};
use rollcall_testkit::server::Server;

/// A reply as it was sent. Two replies are equal if their bytes are equal.
#[derive(Clone, PartialEq)]
pub enum Reply {
    /// A reply of one line, with its type byte: `+OK`, `-ERR ...`, `:1`, `#t`, `,0.5`, `_`, and the nulls of RESP2.
    Line(u8, String),
    /// A string with a length, whose type byte is `$` or `=`.
    Bulk(u8, Vec<u8>),
    /// A reply with elements, whose type byte is `*`, `%`, `~` or `>`. A map has two elements for each pair.
    List(u8, Vec<Reply>),
}

impl Reply {
    /// The text of an error; `None` for other replies.
    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Line(b'-', text) => Some(text),
            _ => None,
        }
    }

    /// Whether the reply is an error whose text begins with `start`.
    pub fn fails_with(&self, start: &str) -> bool {
        self.error().is_some_and(|text| text.starts_with(start))
    }

    /// The elements of an array or map.
    pub fn elements(&self) -> &[Reply] {
        match self {
            Reply::List(_, elements) => elements,
            _ => &[],
        }
    }

    /// The error at the end of an array, or the reply itself if it is an error.
    pub fn last_error(&self) -> Option<&str> {
        self.elements().last().unwrap_or(self).error()
    }

    /// The integer in the reply; `None` for other replies.
    pub fn number(&self) -> Option<i64> {
        match self {
            Reply::Line(b':', text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The bytes of a string with a length; `None` for other replies.
    pub fn bulk(&self) -> Option<&[u8]> {
        match self {
            Reply::Bulk(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether both replies have the same types and the same numbers of elements at every depth.
    pub fn has_shape_of(&self, other: &Reply) -> bool {
        match (self, other) {
            (Reply::List(a, ours), Reply::List(b, theirs)) => {
                a == b && ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(x, y)| x.has_shape_of(y))
            }
            (Reply::Line(a, _), Reply::Line(b, _)) | (Reply::Bulk(a, _), Reply::Bulk(b, _)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Line(kind, text) => write!(f, "{}{}", *kind as char, text.escape_debug()),
            Reply::Bulk(kind, bytes) => write!(f, "{}\"{}\"", *kind as char, bytes.escape_ascii()),
            Reply::List(kind, elements) => {
                write!(f, "{}", *kind as char)?;
                f.debug_list().entries(elements).finish()
            }
        }
    }
}

/// A connection to a server.
pub struct Wire {
    stream: BufReader<TcpStream>,
    log: std::path::PathBuf,
}

impl Wire {
    /// A new connection to `server`, in RESP2 or RESP3.
    pub fn connect(server: &Server, resp3: bool) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("the server takes a connection");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(deadline())).expect("a socket");
        let mut wire = Wire { stream: BufReader::new(stream), log: server.dir().join("server.log") };
        if resp3 {
            let hello = wire.call(&[b"HELLO".to_vec(), b"3".to_vec()]);
            assert!(matches!(hello, Reply::List(b'%', _)), "HELLO 3 gave {hello:?}");
        }
        wire
    }

    /// Sends a command without waiting for the reply.
    pub fn send(&mut self, command: &[Vec<u8>]) {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for word in command {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        if let Err(error) = self.stream.get_mut().write_all(&bytes) {
            self.lost(&error);
        }
    }

    /// The next reply.
    pub fn receive(&mut self) -> Reply {
        self.read().unwrap_or_else(|error| self.lost(&error))
    }

    pub fn call(&mut self, command: &[Vec<u8>]) -> Reply {
        self.send(command);
        self.receive()
    }

    fn lost(&self, error: &std::io::Error) -> ! {
        let log = std::fs::read(&self.log).unwrap_or_default();
        panic!("no reply: {error}; the log of {}:\n{}", self.log.display(), excerpt(&String::from_utf8_lossy(&log)));
    }

    fn read(&mut self) -> std::io::Result<Reply> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let Some((&kind, rest)) = line.strip_suffix(b"\r\n").and_then(<[u8]>::split_first) else {
            return Err(std::io::Error::other(format!("a line without end: {:?}", line.escape_ascii().to_string())));
        };
        let text = String::from_utf8_lossy(rest).into_owned();
        let count = text.parse::<usize>();
        Ok(match (kind, count) {
            (b'$' | b'=' | b'!', Ok(len)) => {
                let mut bytes = vec![0; len + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(len);
                Reply::Bulk(kind, bytes)
            }
            (b'*' | b'~' | b'>' | b'%', Ok(len)) => {
                let elements = if kind == b'%' { 2 * len } else { len };
                Reply::List(kind, (0..elements).map(|_| self.read()).collect::<Result<_, _>>()?)
            }
            _ => Reply::Line(kind, text),
        })
    }
}
