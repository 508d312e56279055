//! A connection that shows replies exactly as they were sent. It takes little time, so that a server is the bottleneck.
//!
//! Connections of the `redis` crate are not used, because they turn errors and types into Rust's. A reply is compared
//! in a short notation:
//!
//! | wire | shown as |
//! |---|---|
//! | integer, double | `12`, `,0.5` |
//! | simple string, bulk string | `+OK`, `"text"` |
//! | boolean, null | `#t` and `#f`, `nil` |
//! | array, map, set | `[1, 2]`, `{"a": 1}`, `~[1, 2]` |
//! | error | `-ERR text` |

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use redis::{PushKind, Value};

use crate::reply::Reply;

/// The factor by which time limits are longer: `ROLLCALL_PATIENCE`, for servers that run slowly, as under valgrind.
pub fn patience() -> u32 {
    static PATIENCE: OnceLock<u32> = OnceLock::new();
    let read = || std::env::var("ROLLCALL_PATIENCE").ok().map(|times| times.parse().expect("a whole number of times"));
    *PATIENCE.get_or_init(|| read().unwrap_or(1))
}

/// Time limit of everything that a test waits for.
pub fn deadline() -> Duration {
    Duration::from_secs(30) * patience()
}

/// Calls `probe` until it returns a value. Panics with `what` after the time limit.
pub fn wait_until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline();
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < end, "waited {:?} in vain for: {what}", deadline());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One connection to a server, speaking RESP2 or RESP3.
pub struct Client {
    stream: BufReader<TcpStream>,
    /// The server's log, whose end is shown if the server goes away.
    log: PathBuf,
}

impl Client {
    /// Connects to a port of this host; `None` if no server listens there. Each reply may take `patience`.
    pub fn connect(port: u16, patience: Duration, log: PathBuf) -> Option<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        stream.set_write_timeout(Some(patience)).ok()?;
        Some(Client { stream: BufReader::with_capacity(1 << 16, stream), log })
    }

    /// Switches the connection to RESP3.
    pub fn resp3(mut self) -> Client {
        let hello = self.cmd("HELLO 3");
        assert!(matches!(hello, Value::Map(_)), "HELLO 3 gave {}", show(&hello));
        self
    }

    /// Sends one command without waiting for its reply.
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        self.write(&pack(args)).unwrap_or_else(|error| self.lost(&error));
    }

    fn write(&mut self, packed: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(packed)
    }

    /// Waits for the next reply, or the next push message.
    pub fn receive(&mut self) -> Value {
        self.try_receive().unwrap_or_else(|error| self.lost(&error))
    }

    /// Panics, and shows the end of the server's log.
    fn lost(&self, error: &dyn std::error::Error) -> ! {
        let log = fs::read(&self.log).unwrap_or_default();
        panic!("no reply: {error}; the server's log:\n{}", excerpt(&String::from_utf8_lossy(&log)));
    }

    fn try_receive(&mut self) -> io::Result<Value> {
        Ok(Reply::read(&mut self.stream)?.value())
    }

    /// Sends a command and returns its reply with every byte.
    pub fn call_exact<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Reply {
        self.send(args);
        self.receive_exact()
    }

    /// Waits for the next reply, and returns it with every byte.
    pub fn receive_exact(&mut self) -> Reply {
        Reply::read(&mut self.stream).unwrap_or_else(|error| self.lost(&error))
    }

    /// Sends a command and returns its reply.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.send(args);
        match self.try_receive() {
            Ok(reply) => reply,
            Err(error) => {
                eprintln!("no reply to {}", shorten(args));
                self.lost(&error)
            }
        }
    }

    /// Sends a command like [`Client::call`]; `None` if the server goes away instead of replying.
    pub fn try_call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Option<Value> {
        self.try_pipeline(&[args]).pop()
    }

    /// Sends all commands together and returns the replies: fewer than commands if the server goes away.
    pub fn try_pipeline<C: AsRef<[A]>, A: AsRef<[u8]>>(&mut self, commands: &[C]) -> Vec<Value> {
        let packed: Vec<u8> = commands.iter().flat_map(|args| pack(args.as_ref())).collect();
        // If the server went away, replies to earlier commands may still be there to read.
        let _ = self.write(&packed);
        commands.iter().map_while(|_| self.try_receive().ok()).collect()
    }

    /// Sends packed commands, the last of which is `ECHO end`, and reads the replies without parsing them. A busy
    /// client would slow down a server on the same core.
    pub fn exchange(&mut self, packed: &[u8]) {
        const END: &[u8] = b"$3\r\nend\r\n";
        self.write(packed).unwrap_or_else(|error| self.lost(&error));
        let (mut read, mut last) = (vec![0; 1 << 16], Vec::new());
        while last != END {
            match self.stream.read(&mut read) {
                Ok(len @ 1..) => last.extend_from_slice(&read[..len]),
                Ok(0) => self.lost(&io::Error::from(io::ErrorKind::UnexpectedEof)),
                Err(error) => self.lost(&error),
            }
            last.drain(..last.len().saturating_sub(END.len()));
        }
    }

    /// Sends a command given as one line. Arguments cannot contain spaces; `''` stands for an empty argument.
    pub fn cmd(&mut self, line: &str) -> Value {
        self.call(&words(line))
    }

    /// Sends all commands in one pipeline and returns the replies.
    pub fn pipeline<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> Vec<Value> {
        // The pipeline is split into pieces, so that the server need not buffer all replies.
        let mut replies = Vec::with_capacity(commands.len());
        for piece in commands.chunks(500) {
            let packed: Vec<u8> = piece.iter().flat_map(|args| pack(args)).collect();
            self.write(&packed).unwrap_or_else(|error| self.lost(&error));
            replies.extend(piece.iter().map(|_| self.receive()));
        }
        replies
    }

    /// Runs a command and compares its reply, in the notation of this module; each `*` in `reply` matches anything.
    #[track_caller]
    pub fn expect(&mut self, line: &str, reply: &str) {
        let got = show(&self.cmd(line));
        assert!(matches(&got, reply, "*"), "{line} gave {got} instead of {reply}");
    }

    /// Runs the commands of [`rows`], each of which must give its reply.
    #[track_caller]
    pub fn expect_each(&mut self, text: &str) {
        rows(text).into_iter().for_each(|(line, reply)| self.expect(line, reply));
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub fn run(&mut self, line: &str) {
        let reply = self.cmd(line);
        assert!(error_text(&reply).is_none(), "{line} gave {}", show(&reply));
    }

    /// Runs a command that must fail and returns the error's text.
    #[track_caller]
    pub fn error(&mut self, line: &str) -> String {
        let reply = self.cmd(line);
        error_text(&reply).unwrap_or_else(|| panic!("{line} gave {} instead of an error", show(&reply)))
    }

    /// Runs a command that returns an integer.
    #[track_caller]
    pub fn int(&mut self, line: &str) -> i64 {
        match self.cmd(line) {
            Value::Int(n) => n,
            other => panic!("{line} gave {} instead of an integer", show(&other)),
        }
    }

    /// Runs a command that returns a string of any kind.
    #[track_caller]
    pub fn text(&mut self, line: &str) -> String {
        text(&self.cmd(line))
    }

    /// Runs a command that returns an array.
    #[track_caller]
    pub fn list(&mut self, line: &str) -> Vec<Value> {
        match self.cmd(line) {
            Value::Array(items) => items,
            other => panic!("{line} gave {} instead of an array", show(&other)),
        }
    }

    /// One field of `INFO`, empty if the server does not have it.
    pub fn info(&mut self, field: &str) -> String {
        let all = self.text("INFO everything");
        let prefix = format!("{field}:");
        all.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().trim().to_owned()
    }

    /// A field of `INFO` that is a whole number.
    #[track_caller]
    pub fn info_number(&mut self, field: &str) -> i64 {
        let value = self.info(field);
        value.parse().unwrap_or_else(|_| panic!("INFO's {field} is {value:?}"))
    }

    /// Runs a command that returns an array of one integer, as BF.INFO and LC.INFO of one field do.
    #[track_caller]
    pub fn int_of(&mut self, line: &str) -> i64 {
        match &self.list(line)[..] {
            [Value::Int(number)] => *number,
            other => panic!("{line} gave {other:?}"),
        }
    }

    /// The payload that DUMP replies.
    #[track_caller]
    pub fn dump(&mut self, key: &str) -> Vec<u8> {
        match self.call(&["DUMP", key]) {
            Value::BulkString(payload) => payload,
            other => panic!("DUMP {key} gave {}", show(&other)),
        }
    }

    /// RESTORE of a payload, without a time to live.
    pub fn restore(&mut self, key: &str, payload: &[u8]) -> Value {
        self.call(&[b"RESTORE", key.as_bytes(), b"0", payload])
    }

    /// The chunks of a value, each with the iterator to load it with.
    #[track_caller]
    pub fn chunks(&mut self, family: &str, key: &str) -> Vec<(String, Vec<u8>)> {
        let (mut chunks, mut iterator) = (Vec::new(), "0".to_owned());
        loop {
            let reply = self.call(&[&format!("{family}.SCANDUMP"), key, &iterator]);
            let Value::Array(pair) = &reply else { panic!("SCANDUMP {key} gave {}", show(&reply)) };
            let [Value::Int(next), Value::BulkString(chunk)] = &pair[..] else { panic!("{pair:?}") };
            if *next == 0 {
                assert!(chunk.is_empty(), "the end is an empty string");
                return chunks;
            }
            iterator = next.to_string();
            chunks.push((iterator.clone(), chunk.clone()));
        }
    }

    /// LOADCHUNK of a chunk.
    pub fn load(&mut self, family: &str, key: &str, (iterator, chunk): &(String, Vec<u8>)) -> Value {
        self.call(&[format!("{family}.LOADCHUNK").as_bytes(), key.as_bytes(), iterator.as_bytes(), chunk])
    }

    /// Loads chunks, which must be accepted.
    #[track_caller]
    pub fn load_all(&mut self, family: &str, key: &str, chunks: &[(String, Vec<u8>)]) {
        for chunk in chunks {
            assert_eq!(self.load(family, key, chunk), Value::Okay, "{key} at {}", chunk.0);
        }
    }

    /// The digest of a key's value, which must be equal on primary and replica. It is all zeros if the key does not
    /// exist.
    pub fn digest(&mut self, key: &str) -> String {
        let reply = self.cmd(&format!("DEBUG DIGEST-VALUE {key}"));
        match &reply {
            Value::Array(items) if items.len() == 1 => text(&items[0]),
            other => panic!("DEBUG DIGEST-VALUE gave {}", show(other)),
        }
    }
}

/// A command with the items `prefix` + number, for each number in the range.
pub fn with_items(line: &str, prefix: &str, range: Range<u64>) -> Vec<String> {
    let head = words(line).into_iter().map(str::to_owned);
    head.chain(range.map(|i| format!("{prefix}{i}"))).collect()
}

/// Adds the items `prefix` + number in commands of 1,000 items. Returns all elements of the replies, which are arrays
/// or sums.
#[track_caller]
pub fn add_many(client: &mut Client, line: &str, prefix: &str, range: Range<u64>) -> Vec<Value> {
    let mut commands = Vec::new();
    let mut next = range.start;
    while next < range.end {
        let end = (next + 1000).min(range.end);
        commands.push(with_items(line, prefix, next..end));
        next = end;
    }
    let flatten = |reply| match reply {
        Value::Array(items) => items,
        Value::Int(_) => vec![reply],
        other => panic!("{line} gave {}", show(&other)),
    };
    client.pipeline(&commands).into_iter().flat_map(flatten).collect()
}

/// The sum of the integers in several replies.
#[track_caller]
pub fn sum(replies: &[Value]) -> i64 {
    let int = |reply: &Value| match reply {
        Value::Int(n) => *n,
        other => panic!("expected an integer, got {}", show(other)),
    };
    replies.iter().map(int).sum()
}

/// Whether a text matches a pattern in which each `gap` stands for any text.
pub fn matches(text: &str, pattern: &str, gap: &str) -> bool {
    let Some((start, rest)) = pattern.split_once(gap) else { return text == pattern };
    let Some(text) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once(gap).unwrap_or(("", rest));
    let behind = middle.split(gap).try_fold(text, |text, part| Some(text.split_once(part)?.1));
    behind.is_some_and(|text| text.ends_with(end))
}

/// A command as it is sent, and as an append-only file has it.
pub fn pack<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut packed = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args.iter().map(AsRef::as_ref) {
        let _ = write!(packed, "${}\r\n", arg.len());
        packed.extend_from_slice(arg);
        packed.extend_from_slice(b"\r\n");
    }
    packed
}

/// Splits a command line at spaces; `''` stands for an empty argument.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().map(|word| if word == "''" { "" } else { word }).collect()
}

/// The command lines of a text: each ends with `;` or its line. A line that begins with `#` is a comment.
pub fn lines(text: &str) -> Vec<&str> {
    let lines = text.split([';', '\n']).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The command lines of a text, as in [`lines`], each with what follows its `=>`.
#[track_caller]
pub fn rows(text: &str) -> Vec<(&str, &str)> {
    let parts = |line| str::split_once(line, "=>").unwrap_or_else(|| panic!("{line} has no =>"));
    lines(text).into_iter().map(parts).map(|(line, expected)| (line.trim(), expected.trim())).collect()
}

/// The lines of a log that explain why a server ended: the first lines of a crash report, or else the last lines.
pub fn excerpt(log: &str) -> String {
    let lines: Vec<_> = log.lines().filter(|line| !line.is_empty()).collect();
    let crash = lines.iter().position(|line| line.contains("BUG REPORT START"));
    let start = crash.map_or(lines.len().saturating_sub(20), |at| at.saturating_sub(3));
    let end = lines.len().min(start + 50);
    lines[start..end].join("\n")
}

/// A command for display. Long and binary arguments are shortened.
pub fn shorten<A: AsRef<[u8]>>(args: &[A]) -> String {
    let mut line = String::new();
    for (i, arg) in args.iter().take(12).enumerate() {
        let arg = arg.as_ref();
        let gap = if i == 0 { "" } else { " " };
        let _ = write!(line, "{gap}{}", arg[..arg.len().min(40)].escape_ascii());
    }
    if args.len() > 12 { line + " ..." } else { line }
}

/// A command as redis-cli reads it, with at most `most` bytes of each argument.
pub fn typed(words: &[Vec<u8>], most: usize) -> String {
    let word = |word: &Vec<u8>| {
        let shown = &word[..word.len().min(most)];
        let is_plain =
            !word.is_empty() && shown.iter().all(|byte| byte.is_ascii_alphanumeric() || b".:-_+".contains(byte));
        let escaped = shown.escape_ascii();
        let quoted = if is_plain { escaped.to_string() } else { format!("\"{escaped}\"") };
        if word.len() > most { format!("{quoted}...({} bytes)", word.len()) } else { quoted }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A reply in the notation of this module.
pub fn show(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match value {
        Value::Nil => "nil".into(),
        Value::Int(n) => n.to_string(),
        Value::Okay => "+OK".into(),
        Value::SimpleString(text) => format!("+{text}"),
        Value::BulkString(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::VerbatimString { text, .. } => format!("={text}"),
        Value::Double(x) => format!(",{x}"),
        Value::Boolean(true) => "#t".into(),
        Value::Boolean(false) => "#f".into(),
        Value::Array(items) => format!("[{}]", list(items)),
        Value::Set(items) => format!("~[{}]", list(items)),
        Value::Map(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(k, v)| format!("{}: {}", show(k), show(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Push { kind, data } => format!(">{kind:?}[{}]", list(data)),
        Value::ServerError(_) => format!("-{}", error_text(value).unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

/// The text of an error reply, as the server sent it.
pub fn error_text(value: &Value) -> Option<String> {
    let Value::ServerError(error) = value else { return None };
    let gap = if error.details().is_some() { " " } else { "" };
    Some(format!("{}{gap}{}", error.code(), error.details().unwrap_or_default()))
}

/// The text of a string reply, of whichever kind.
#[track_caller]
pub fn text(value: &Value) -> String {
    match value {
        Value::Okay => "OK".into(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("expected a string, got {}", show(other)),
    }
}

/// The number in a reply, sent as integer, double or text.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    match value {
        Value::Int(n) => *n as f64,
        Value::Double(x) => *x,
        other => {
            let text = text(other);
            text.parse().unwrap_or_else(|_| panic!("expected a number, got {text:?}"))
        }
    }
}

/// The pairs of a map, or of a flat array that represents one in RESP2.
#[track_caller]
pub fn pairs(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(pairs) => pairs.iter().map(|(k, v)| (text(k), v.clone())).collect(),
        Value::Array(items) => {
            assert!(items.len().is_multiple_of(2), "not a list of pairs: {}", show(value));
            items.chunks(2).map(|pair| (text(&pair[0]), pair[1].clone())).collect()
        }
        other => panic!("expected pairs, got {}", show(other)),
    }
}

/// The value of a label in a reply of pairs.
#[track_caller]
pub fn field(value: &Value, label: &str) -> Value {
    let found = pairs(value).into_iter().find(|(name, _)| name == label);
    found.unwrap_or_else(|| panic!("no {label} in {}", show(value))).1
}

/// The channel and payload of a message that a subscriber received; `None` for anything else.
pub fn message(value: &Value) -> Option<(String, String)> {
    match value {
        Value::Push { kind: PushKind::PMessage, data } => Some((text(&data[1]), text(&data[2]))),
        Value::Array(items) if items.len() == 4 && text(&items[0]) == "pmessage" => {
            Some((text(&items[2]), text(&items[3])))
        }
        _ => None,
    }
}
