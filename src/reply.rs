//! Reply shapes in RESP2 and RESP3, and the only home of error text.

use crate::limits::{MAX_KEY_BYTES, MAXMEMORY};
use crate::server::ffi::{Ctx, OtherType};
use crate::types::family::Family;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;

/// Why a command was refused. Nothing was changed, unless the command replies with what it did before.
#[derive(Debug)]
pub enum Refusal {
    /// Too few or too many arguments.
    Arity,
    /// The key holds a value of another type.
    WrongType,
    /// The key is missing and the command needs it.
    NotFound,
    /// The key exists and the command would create it.
    Exists,
    /// A chunk that does not fit.
    BadData,
    /// A value whose dump has not fully arrived.
    StillLoading { noun: &'static str, received_bytes: u64, total_bytes: u64 },
    /// A filter of valkey-bloom.
    ValkeyBloom,
    /// An option or argument that is not what the command takes.
    Argument(String),
    /// A number below those that the command takes.
    Negative { what: &'static str, got: String },
    /// An option without the value that it needs.
    NoValue { option: &'static str },
    /// An iterator that is no number.
    BadIterator { got: String },
    /// A filter that is not to scale, and to scale.
    NonScalingExpands,
    /// An error of the core, about a value called `noun`.
    Core { noun: &'static str, error: Error },
}

impl From<OtherType> for Refusal {
    fn from(_: OtherType) -> Self {
        Refusal::WrongType
    }
}

const VALKEY_BLOOM: &str = "ERR BF.LOAD carries a filter of valkey-bloom in a rewritten AOF, and its data is not read \
    here: see \"Coming from valkey-bloom\" in docs/migrating.md";

/// An error of the core, about a value of family `T`.
pub fn core<T: Family>(error: Error) -> Refusal {
    Refusal::Core { noun: T::NOUN, error }
}

/// What a client sent, fit for an error text: printable, and not long.
pub fn quoted(bytes: &[u8]) -> String {
    const MAX_BYTES: usize = 64;
    if bytes.len() > MAX_BYTES {
        format!("'{}...'", bytes[..MAX_BYTES].escape_ascii())
    } else {
        format!("'{}'", bytes.escape_ascii())
    }
}

/// A rate for people: four significant digits.
fn short_rate(rate: f64) -> String {
    if (1e-4..1.0).contains(&rate) {
        let leading_zeros = -libm::floor(libm::log10(rate)) as usize;
        format!("{rate:.0$}", leading_zeros + 3)
    } else {
        format!("{rate:.3e}")
    }
}

/// A number as C prints it with `%g`, which is how RedisBloom tells rates: six significant digits, no trailing
/// zeros, an exponent of two digits below 0.0001.
pub fn general(number: f64) -> String {
    let trimmed = |digits: &str| digits.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (1e-4..1e5).contains(&number) {
        let leading = libm::floor(libm::log10(number)) as i32;
        return trimmed(&format!("{number:.0$}", (5 - leading).max(0) as usize));
    }
    let text = format!("{number:.5e}");
    match text.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?))) {
        Some((digits, exponent)) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
        }
        None => text,
    }
}

impl Refusal {
    /// An argument that is not the number it should be.
    pub fn not_a(expected: &str, what: &str, got: &[u8]) -> Refusal {
        Refusal::Argument(format!("bad {what}: expected a {expected}, got {}", quoted(got)))
    }

    /// The text of the error reply, but for [`Refusal::Arity`], which the server words itself.
    pub fn text(&self) -> String {
        match self {
            Refusal::Arity => "ERR wrong number of arguments".to_owned(),
            Refusal::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned(),
            Refusal::NotFound => "ERR not found".to_owned(),
            Refusal::Exists => "ERR item exists".to_owned(),
            Refusal::BadData => "ERR received bad data".to_owned(),
            Refusal::StillLoading { noun, received_bytes, total_bytes } => {
                format!("ERR {noun} is still loading: {received_bytes} of {total_bytes} bytes")
            }
            Refusal::ValkeyBloom => VALKEY_BLOOM.to_owned(),
            Refusal::Argument(text) => format!("ERR {text}"),
            Refusal::Negative { what, got } => match below_range(what) {
                Some(words) => format!("ERR {words}, got {got}"),
                None => format!("ERR bad {what}: expected a whole number, got {got}"),
            },
            // Of the options that need a value, RedisBloom has but one here.
            Refusal::NoValue { option: "EXPANSION" } => "ERR no expansion: option EXPANSION needs a value".to_owned(),
            Refusal::NoValue { option } => format!("ERR option {option} needs a value"),
            Refusal::BadIterator { got } => {
                format!("ERR Second argument must be numeric: expected a whole number, got {got}")
            }
            Refusal::NonScalingExpands => {
                "ERR Nonscaling filters cannot expand: give NONSCALING or EXPANSION, not both".to_owned()
            }
            Refusal::Core { noun, error } => core_text(noun, error),
        }
    }
}

/// RedisBloom's words for a number that is too small, with which our texts begin so that clients find them.
fn below_range(what: &str) -> Option<&'static str> {
    match what {
        "capacity" => Some("(capacity should be larger than 0)"),
        "expansion" => Some("expansion should be greater or equal to 1, or 0 for NONSCALING"),
        _ => None,
    }
}

fn core_text(noun: &str, error: &Error) -> String {
    match error {
        Error::OutOfRange { field: "error_rate", got, .. } if noun == BloomFilter::NOUN => {
            // With the blank that ends RedisBloom's text.
            format!("ERR (0 < error rate range < 1) got {got}")
        }
        Error::OutOfRange { field: field @ "capacity", got, .. } if got == "0" => {
            format!("ERR {}, got 0", below_range(field).unwrap_or(field))
        }
        Error::OutOfRange { field, expected, got } => {
            format!("ERR bad {}: expected {expected}, got {got}", field.replace('_', " "))
        }
        Error::TooLarge { needed_bytes, limit_bytes, limit } if *limit == MAX_KEY_BYTES => {
            format!("ERR the {noun} needs {needed_bytes} bytes, more than {MAX_KEY_BYTES} ({limit_bytes})")
        }
        Error::TooLarge { needed_bytes, limit_bytes, limit } if *limit == MAXMEMORY => {
            format!("ERR the {noun} needs {needed_bytes} bytes more, more than {MAXMEMORY} ({limit_bytes})")
        }
        Error::TooLarge { needed_bytes, limit_bytes, .. } => {
            format!("ERR the {noun} needs {needed_bytes} bytes, more than {limit_bytes}")
        }
        Error::OutOfMemory { needed_bytes } => {
            format!("ERR the {noun} needs {needed_bytes} bytes, more than the allocator has left")
        }
        // RedisBloom's words, which clients match on.
        Error::Full { .. } => "ERR non scaling filter is full".to_owned(),
        Error::Incompatible { field, ours, theirs } => {
            format!("ERR {noun}s differ in {}: {ours} and {theirs}", field.replace('_', " "))
        }
        Error::RateExceeded { would_be, asked } => format!(
            "ERR the merged {noun} would have a false-positive rate of {}, above the {} asked for",
            short_rate(*would_be),
            asked
        ),
        Error::NotExact => "ERR counter holds an estimate: members are listed only up to its EXACT limit".to_owned(),
        Error::Corrupt { .. } => "ERR received bad data".to_owned(),
    }
}

/// Replies with the error that tells `refusal`.
pub fn refuse(ctx: Ctx, refusal: Refusal) {
    match refusal {
        Refusal::Arity => ctx.reply_wrong_arity(),
        other => ctx.reply_error(&other.text()),
    }
}

/// `OK`.
pub fn ok(ctx: Ctx) {
    ctx.reply_simple(c"OK");
}

/// An array of booleans, one an item; when handling stopped at an item, its error is the last element.
pub fn bools(ctx: Ctx, values: &[bool], stopped: Option<Refusal>) {
    ctx.reply_array(values.len() + usize::from(stopped.is_some()));
    for &value in values {
        ctx.reply_bool(value);
    }
    if let Some(refusal) = stopped {
        ctx.reply_error(&refusal.text());
    }
}

/// A value of an INFO reply.
pub enum Field {
    Integer(u64),
    Double(f64),
    Text(&'static str),
    Null,
}

/// One line of an INFO reply: how replies label it (a simple string, as in RedisBloom), the word that asks for it alone, and its value.
pub type InfoLine = (&'static str, &'static str, Field);

fn field(ctx: Ctx, field: &Field) {
    match field {
        // Sizes and counts stay below 2^63 (see the limits on capacity and size); a forged one is clamped.
        Field::Integer(value) => ctx.reply_integer(i64::try_from(*value).unwrap_or(i64::MAX)),
        Field::Double(value) => ctx.reply_double(*value),
        Field::Text(text) => ctx.reply_bulk(text.as_bytes()),
        Field::Null => ctx.reply_null(),
    }
}

/// All lines: a map in RESP3, a flat array in RESP2.
pub fn info_all<'a>(ctx: Ctx, lines: impl ExactSizeIterator<Item = &'a InfoLine>) {
    ctx.reply_map(lines.len());
    for (label, _, value) in lines {
        ctx.reply_line(label);
        field(ctx, value);
    }
}

/// The line that was asked for, by its word or its label: a map of one pair in RESP3, an array of the value in
/// RESP2.
pub fn info_field(ctx: Ctx, lines: &[InfoLine], asked: &[u8]) -> Result<(), Refusal> {
    let is_asked = |name: &str| asked.eq_ignore_ascii_case(name.as_bytes());
    let Some((label, _, value)) = lines.iter().find(|(label, word, _)| is_asked(word) || is_asked(label)) else {
        let words: Vec<_> = lines.iter().map(|(_, word, _)| *word).collect();
        let expected = words.join(", ");
        // RedisBloom's words come first.
        let text = format!("Invalid information value: expected one of {expected}, got {}", quoted(asked));
        return Err(Refusal::Argument(text));
    };
    if ctx.is_resp3() {
        ctx.reply_map(1);
        ctx.reply_line(label);
    } else {
        ctx.reply_array(1);
    }
    field(ctx, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_numbers_are_those_of_c() {
        for (number, text) in [
            (0.005, "0.005"),
            (0.000_625, "0.000625"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.333333"),
            (7.8125e-5, "7.8125e-05"),
            (1e-10, "1e-10"),
            (0.000_100_000_01, "0.0001"),
        ] {
            assert_eq!(general(number), text);
        }
    }

    #[test]
    fn rates_have_four_digits() {
        for (rate, text) in [(0.0104, "0.01040"), (0.001_04, "0.001040"), (0.25, "0.2500"), (1.234_56e-5, "1.235e-5")] {
            assert_eq!(short_rate(rate), text);
        }
    }
}
