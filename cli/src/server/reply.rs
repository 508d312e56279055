//! Reads values from replies, in any form in which servers send them.

use redis::Value;

/// The elements of a list; `None` if the reply is no list.
pub fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) | Value::Set(items) => Some(items),
        _ => None,
    }
}

/// The bytes of a string; `None` if the reply is no string.
pub fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone().into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        _ => None,
    }
}

/// A string as text; `None` if the reply is no string.
pub fn text(value: &Value) -> Option<String> {
    bytes(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A whole number, sent as a number or as a string; `None` if the reply is neither.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Boolean(truth) => Some(i64::from(*truth)),
        other => text(other)?.parse().ok(),
    }
}

/// A number, sent in any form; `None` if the reply is no number.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        other => text(other)?.parse().ok(),
    }
}

/// The pairs of a map, or of a flat list that represents one.
pub fn pairs(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(pairs) => pairs.iter().filter_map(|(label, value)| Some((text(label)?, value.clone()))).collect(),
        other => {
            let items = items(other).unwrap_or_default();
            items.chunks_exact(2).filter_map(|pair| Some((text(&pair[0])?, pair[1].clone()))).collect()
        }
    }
}
