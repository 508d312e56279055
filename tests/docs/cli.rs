//! Imitates redis-cli's prompt: splits a line into arguments, and formats a reply for people.

use redis::Value;

use rollcall_testkit::error_text;

/// Splits a line as redis-cli does, at spaces outside quotes. In double quotes, escapes such as `\n` and `\xff` stand
/// for bytes. `None` when a quote is left open.
pub fn split(line: &str) -> Option<Vec<Vec<u8>>> {
    let bytes = line.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at == bytes.len() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some(&byte) = bytes.get(at).filter(|byte| !byte.is_ascii_whitespace()) {
            at += 1;
            match byte {
                b'"' => at = double_quoted(bytes, at, &mut word)?,
                b'\'' => at = single_quoted(bytes, at, &mut word)?,
                _ => word.push(byte),
            }
        }
        words.push(word);
    }
}

/// Appends the bytes up to the closing double quote to `word`, and returns the position after the quote.
fn double_quoted(bytes: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', _) => return Some(at + 1),
            (b'\\', Some(b'x')) if let Some(byte) = hex(bytes.get(at + 2..at + 4)) => {
                word.push(byte);
                at += 4;
            }
            (b'\\', Some(&escaped)) => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                at += 2;
            }
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Appends the bytes up to the closing single quote to `word`, and returns the position after the quote.
fn single_quoted(bytes: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (b'\'', _) => return Some(at + 1),
            (b'\\', Some(b'\'')) => {
                word.push(b'\'');
                at += 2;
            }
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u8> {
    let digits = std::str::from_utf8(digits?).ok().filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, 16).ok()
}

/// The lines that redis-cli prints for the reply to `command`.
pub fn printed(command: &[Vec<u8>], reply: &Value) -> Vec<String> {
    // The reply to INFO is printed as plain text, not as a quoted string.
    let is_info = command.first().is_some_and(|name| name.eq_ignore_ascii_case(b"INFO"));
    let text = match reply {
        Value::BulkString(bytes) if is_info => String::from_utf8_lossy(bytes).into_owned(),
        _ => format(reply, ""),
    };
    text.lines().map(str::to_owned).collect()
}

/// A reply as redis-cli prints it to a terminal. Every line after the first begins with `prefix`.
fn format(reply: &Value, prefix: &str) -> String {
    match reply {
        Value::Nil => "(nil)".to_owned(),
        Value::Int(n) => format!("(integer) {n}"),
        // Newer servers send the fewest digits that give the same double. The comparison in `console` is by value.
        Value::Double(x) if x.fract() == 0.0 => format!("(double) {x}"),
        Value::Double(x) => format!("(double) {x:?}"),
        Value::Boolean(value) => format!("({value})"),
        Value::Okay => "OK".to_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::VerbatimString { text, .. } => text.clone(),
        Value::BulkString(bytes) => quoted(bytes),
        Value::ServerError(_) => format!("(error) {}", error_text(reply).unwrap_or_default()),
        Value::Array(items) if items.is_empty() => "(empty array)".to_owned(),
        Value::Set(items) if items.is_empty() => "(empty set)".to_owned(),
        Value::Map(pairs) if pairs.is_empty() => "(empty hash)".to_owned(),
        Value::Array(items) => numbered(items, prefix, ')', format),
        Value::Set(items) => numbered(items, prefix, '~', format),
        Value::Map(pairs) => numbered(pairs, prefix, '#', |(key, value), prefix| {
            format!("{} => {}", format(key, prefix), format(value, prefix))
        }),
        other => format!("{other:?}"),
    }
}

/// The elements of a list with their numbers. All numbers are as wide as the largest.
fn numbered<T>(items: &[T], prefix: &str, mark: char, show: impl Fn(&T, &str) -> String) -> String {
    let width = items.len().to_string().len();
    let inner = format!("{prefix}{}", " ".repeat(width + 2));
    let lines = items.iter().enumerate().map(|(index, item)| {
        let before = if index == 0 { "" } else { prefix };
        format!("{before}{:width$}{mark} {}", index + 1, show(item, &inner))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A string in quotes. Bytes that cannot be printed are escaped.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            0x20..0x7f => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

#[test]
fn lines_are_split_as_redis_cli_does() {
    let words =
        |line: &str| split(line).map(|words| words.iter().map(|word| word.escape_ascii().to_string()).collect());
    let expect = |line, expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(words(line), Some(expected), "{line}");
    };
    expect("  LC.ADD  k a ", &["LC.ADD", "k", "a"]);
    expect(r#"SET k "a b" '' 'it\'s'"#, &["SET", "k", "a b", "", r"it\'s"]);
    expect(r#"X "\x00\xff\n\a\"" "#, &["X", r#"\x00\xff\n\x07\""#]);
    assert_eq!(split("SET k \"open"), None);
}

#[test]
fn replies_are_printed_as_redis_cli_does() {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let reply = Value::Array(vec![
        Value::Int(1),
        Value::Array(vec![text("a\"b\u{7}"), Value::Nil]),
        Value::Map(vec![(text("k"), Value::Double(0.5)), (text("l"), Value::Array(vec![]))]),
        Value::Boolean(true),
    ]);
    let lines = [
        "1) (integer) 1",
        r#"2) 1) "a\"b\a""#,
        "   2) (nil)",
        r#"3) 1# "k" => (double) 0.5"#,
        r#"   2# "l" => (empty array)"#,
        "4) (true)",
    ];
    assert_eq!(printed(&[], &reply), lines);
}
