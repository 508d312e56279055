//! Connections that keep a server busy. Requests are encoded beforehand; replies are only checked for errors.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Time limit of each read and write, which is longer than any step of a benchmark. It ends the benchmark if a server
/// hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Encoded requests, and their number.
#[derive(Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    requests: usize,
}

impl Batch {
    /// Appends a request.
    pub fn push<W: AsRef<[u8]>>(&mut self, words: impl ExactSizeIterator<Item = W>) {
        self.begin(words.len());
        for word in words {
            self.word(word.as_ref());
        }
    }

    /// Appends the request `head items...`.
    pub fn push_items<W: AsRef<[u8]>>(&mut self, head: &[&str], items: impl ExactSizeIterator<Item = W>) {
        self.begin(head.len() + items.len());
        head.iter().for_each(|word| self.word(word.as_bytes()));
        for item in items {
            self.word(item.as_ref());
        }
    }

    fn begin(&mut self, words: usize) {
        self.requests += 1;
        self.number(b'*', words);
    }

    fn word(&mut self, word: &[u8]) {
        self.number(b'$', word.len());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn number(&mut self, kind: u8, mut value: usize) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&digits[at..]);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The number of requests in the batch.
    pub fn requests(&self) -> usize {
        self.requests
    }
}

/// A reply, in RESP2.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A simple or bulk string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A null reply.
    Null,
    /// An array.
    Array(Vec<Reply>),
}

impl Reply {
    /// The reply as text, whatever its type.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// The reply as a number.
    pub fn number(&self) -> f64 {
        let text = self.text();
        text.parse().unwrap_or_else(|_| panic!("expected a number, got {text:?}"))
    }

    /// The elements of an array.
    pub fn elements(&self) -> &[Reply] {
        match self {
            Reply::Array(elements) => elements,
            other => panic!("expected an array, got {other:?}"),
        }
    }

    /// The value after `label` in a flat array.
    pub fn field(&self, label: &str) -> f64 {
        let elements = self.elements();
        let at = elements.iter().position(|element| element.text() == label);
        at.and_then(|at| elements.get(at + 1)).unwrap_or_else(|| panic!("no {label:?} in {self}")).number()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Text(text) => f.write_str(text),
            Reply::Integer(value) => write!(f, "{value}"),
            Reply::Null => f.write_str("(null)"),
            Reply::Array(elements) => elements.iter().try_for_each(|element| write!(f, "{element} ")),
        }
    }
}

/// One connection. It panics on any error, including error replies, because the measured time would be meaningless.
pub struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    at: usize,
}

impl Connection {
    /// Connects to a server on this machine.
    pub fn open(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Connection { stream, input: Vec::with_capacity(1 << 16), at: 0 })
    }

    /// Sends `command`, whose words are separated by spaces, and returns the reply.
    pub fn call(&mut self, command: &str) -> Reply {
        self.try_call(command).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Sends a command like [`Connection::call`], and returns an error if the server is gone or rejects it.
    pub fn try_call(&mut self, command: &str) -> io::Result<Reply> {
        let mut batch = Batch::default();
        batch.push(command.split(' ').collect::<Vec<_>>().into_iter());
        self.stream.write_all(&batch.bytes)?;
        self.reply()
    }

    /// Sends every batch and skips the replies. Two batches are in flight, so that the server always has another batch
    /// to work on.
    pub fn run<'a>(&mut self, batches: impl IntoIterator<Item = &'a Batch>) {
        let mut open = 0;
        for batch in batches {
            self.send(batch);
            self.skip(std::mem::replace(&mut open, batch.requests));
        }
        self.skip(open);
    }

    /// Sends a batch and waits for all of its replies.
    pub fn run_one(&mut self, batch: &Batch) {
        self.send(batch);
        self.skip(batch.requests);
    }

    /// The payload that DUMP returns for a key.
    pub fn dump(&mut self, key: &str) -> Vec<u8> {
        let mut batch = Batch::default();
        batch.push(["DUMP", key].into_iter());
        self.send(&batch);
        let (start, end) = self.line().expect("the server replies");
        let len = if self.input[start] == b'$' { self.length((start + 1, end)) } else { None };
        let len = len.unwrap_or_else(|| panic!("{key} cannot be dumped"));
        self.bytes(len).expect("the server replies")
    }

    /// A reply to SCANDUMP: the next iterator, and the chunk.
    pub fn chunk(&mut self, command: &str, key: &str, iterator: &str) -> (String, Vec<u8>) {
        let mut batch = Batch::default();
        batch.push([command, key, iterator].into_iter());
        self.send(&batch);
        self.line().expect("the server replies");
        let next = self.reply().expect("an iterator").text();
        let (start, end) = self.line().expect("a chunk");
        let len = self.length((start + 1, end)).unwrap_or_else(|| panic!("{command} {key} {iterator}: no chunk"));
        (next, self.bytes(len).expect("the chunk"))
    }

    /// Sends a batch and returns all integers in its replies, including those in arrays.
    pub fn integers(&mut self, batch: &Batch) -> Vec<i64> {
        self.send(batch);
        let mut found = Vec::new();
        for _ in 0..batch.requests {
            flatten(&self.reply().unwrap_or_else(|error| panic!("{error}")), &mut found);
        }
        found
    }

    fn send(&mut self, batch: &Batch) {
        self.stream.write_all(&batch.bytes).expect("the server takes requests");
    }

    /// Skips `replies` replies.
    fn skip(&mut self, replies: usize) {
        let mut pending = replies;
        while pending > 0 {
            let line = self.line().expect("the server replies");
            let (kind, rest) = (self.input[line.0], (line.0 + 1, line.1));
            pending -= 1;
            match kind {
                b':' | b'+' => {}
                b'*' => pending += self.length(rest).unwrap_or(0),
                b'$' => {
                    if let Some(len) = self.length(rest) {
                        self.bytes(len).expect("the server replies");
                    }
                }
                _ => panic!("the server said {}", String::from_utf8_lossy(&self.input[line.0..line.1])),
            }
        }
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let (start, end) = self.line()?;
        let rest = (start + 1, end);
        let text = String::from_utf8_lossy(&self.input[rest.0..rest.1]).into_owned();
        Ok(match self.input[start] {
            b':' => Reply::Integer(text.parse().map_err(io::Error::other)?),
            b'+' => Reply::Text(text),
            b'*' => match self.length(rest) {
                Some(len) => Reply::Array((0..len).map(|_| self.reply()).collect::<io::Result<_>>()?),
                None => Reply::Null,
            },
            b'$' => match self.length(rest) {
                Some(len) => Reply::Text(String::from_utf8_lossy(&self.bytes(len)?).into_owned()),
                None => Reply::Null,
            },
            _ => return Err(io::Error::other(text)),
        })
    }

    /// The length of a string or array; `None` for null.
    fn length(&self, (start, end): (usize, usize)) -> Option<usize> {
        std::str::from_utf8(&self.input[start..end]).ok()?.parse().ok()
    }

    /// The range of the next line in `input`, without its line end.
    fn line(&mut self) -> io::Result<(usize, usize)> {
        let mut looked = self.at;
        loop {
            if let Some(offset) = self.input[looked..].iter().position(|&byte| byte == b'\n') {
                let line = (self.at, looked + offset - 1);
                self.at = looked + offset + 1;
                return Ok(line);
            }
            looked = self.input.len();
            let moved = self.fill()?;
            looked -= moved;
        }
    }

    /// The next `len` bytes and the line end after them.
    fn bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        while self.input.len() < self.at + len + 2 {
            self.fill()?;
        }
        let bytes = self.input[self.at..self.at + len].to_vec();
        self.at += len + 2;
        Ok(bytes)
    }

    /// Reads the bytes that have been received. Returns by how many bytes the unread input was moved to the front.
    fn fill(&mut self) -> io::Result<usize> {
        let moved = self.at;
        self.input.drain(..moved);
        self.at = 0;
        let len = self.input.len();
        self.input.resize(len + (1 << 16), 0);
        let got = self.stream.read(&mut self.input[len..]);
        self.input.truncate(len + got.as_ref().copied().unwrap_or(0));
        match got? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(moved),
        }
    }
}

fn flatten(reply: &Reply, found: &mut Vec<i64>) {
    match reply {
        Reply::Integer(value) => found.push(*value),
        Reply::Array(elements) => elements.iter().for_each(|element| flatten(element, found)),
        other => panic!("expected integers, got {other:?}"),
    }
}
