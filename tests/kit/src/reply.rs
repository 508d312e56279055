//! A reply with every byte of it, including the kind of a null and the kind of a string.

use std::fmt;
use std::io::{self, BufRead};

use redis::{PushKind, Value};

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
    /// Reads a reply; an error if the connection ends before the reply does.
    pub fn read(from: &mut impl BufRead) -> io::Result<Reply> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let Some((&kind, rest)) = line.strip_suffix(b"\r\n").and_then(<[u8]>::split_first) else {
            return Err(io::Error::other(format!("a line without end: {:?}", line.escape_ascii().to_string())));
        };
        let text = String::from_utf8_lossy(rest).into_owned();
        Ok(match (kind, text.parse::<usize>()) {
            (b'$' | b'=' | b'!', Ok(len)) => {
                let mut bytes = vec![0; len + 2];
                from.read_exact(&mut bytes)?;
                bytes.truncate(len);
                Reply::Bulk(kind, bytes)
            }
            (b'*' | b'~' | b'>' | b'%', Ok(len)) => {
                let elements = if kind == b'%' { 2 * len } else { len };
                Reply::List(kind, (0..elements).map(|_| Reply::read(from)).collect::<Result<_, _>>()?)
            }
            _ => Reply::Line(kind, text),
        })
    }

    /// The reply in the type of the `redis` crate. Rare kinds of replies are parsed by that crate.
    pub fn value(self) -> Value {
        let parsed = |bytes: Vec<u8>| redis::parse_redis_value(&bytes).expect("a reply that the crate knows");
        match self {
            Reply::Line(b':', text) => Value::Int(text.parse().expect("an integer")),
            Reply::Line(b'+', text) if text == "OK" => Value::Okay,
            Reply::Line(b'+', text) => Value::SimpleString(text),
            Reply::Line(kind, text) => parsed([&[kind], text.as_bytes(), b"\r\n"].concat()),
            Reply::Bulk(b'$', bytes) => Value::BulkString(bytes),
            Reply::Bulk(kind, bytes) => {
                parsed([&[kind], format!("{}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat())
            }
            Reply::List(kind, elements) => {
                let mut values = elements.into_iter().map(Reply::value);
                match kind {
                    b'%' => Value::Map(std::iter::from_fn(|| values.next().zip(values.next())).collect()),
                    b'~' => Value::Set(values.collect()),
                    b'>' => match values.next() {
                        Some(Value::BulkString(kind)) if kind == b"pmessage" => {
                            Value::Push { kind: PushKind::PMessage, data: values.collect() }
                        }
                        kind => Value::Push { kind: PushKind::Other(format!("{kind:?}")), data: values.collect() },
                    },
                    _ => Value::Array(values.collect()),
                }
            }
        }
    }

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
