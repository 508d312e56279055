//! Parses the options of replicated `BF.RESERVE` and `BF.INSERT` commands as RedisBloom 2.8.2 does. A replicated
//! command ([`must_obey`](crate::server::facts::must_obey)) comes from a primary or the AOF. If this server rejected
//! the command, its items would be lost.
//!
//! | | `BF.RESERVE` | `BF.INSERT` |
//! |---|---|---|
//! | number of words | 4 to 7 with the name of the command | any |
//! | options | whole words in upper or lower case | words in upper or lower case, by their first letters |
//! | where | anywhere after the command, even in place of the key | after the key, up to a word that begins with `I` |
//! | unknown words | ignored | rejected |
//! | option given twice | the first `EXPANSION` is used | the last is used, and only the last has to be in range |
//! | `NONSCALING` with `EXPANSION` | rejected | `NONSCALING` wins |
//!
//! In `BF.INSERT`, a word that begins with `C` means `CAPACITY`, with `ER` `ERROR`, otherwise with `E` `EXPANSION`, and
//! with `I` `ITEMS`. A word that begins with `N` means `NOCREATE` if its third letter is `C`, otherwise `NONSCALING`.
//!
//! | | read as |
//! |---|---|
//! | rate | what `strtod` takes, hexadecimal too, without blanks before it; more than 0 and less than 1 |
//! | capacity | a signed 64-bit number in decimal digits, without `+` and leading zeros; at least 1 |
//! | expansion | like the capacity; only its lower 32 bits are kept |
//!
//! If the lower 32 bits of the expansion are 0, RedisBloom makes a second sub-filter without bits, which contains every
//! item. This module uses RedisBloom's default growth instead.
//!
//! This parser rejects a command that RedisBloom would reject, for example one with `SEED` or `LAYOUT`. Such a command
//! comes from a primary with this module, so the caller then uses the strict parser of [`super`].

use std::ffi::CString;

use super::{Opt, Options};
use crate::number::{parse_as_c, parse_canonical};
use crate::server::ffi::Args;
use rollcall_core::unstable::bloom::DEFAULT_GROWTH;

/// The options of a `BF.RESERVE` command; `None` if RedisBloom would reject it.
pub fn reserve(args: Args<'_>) -> Option<Options> {
    if !(4..=7).contains(&args.len()) {
        return None;
    }
    let value = |at| args.get(at).bytes();
    let find = |word: &[u8]| (1..args.len()).find(|&at| value(at).eq_ignore_ascii_case(word));
    let expansion = match find(b"EXPANSION") {
        Some(at) if at + 1 == args.len() => return None,
        Some(at) => Some(parse_canonical(value(at + 1))?),
        None => None,
    };
    let mut options = Options::default();
    if find(b"NONSCALING").is_some() {
        options.give(Opt::NonScaling);
    }
    if options.has(Opt::NonScaling) && expansion.is_some() {
        return None;
    }
    with_numbers(options, Some(rate(value(2))?), Some(parse_canonical(value(3))?), expansion)
}

/// The options of a `BF.INSERT` command; `None` if RedisBloom would reject it.
pub fn insert(args: Args<'_>) -> Option<Options> {
    let (mut options, mut at) = (Options::default(), 2);
    let (mut error_rate, mut capacity, mut expansion) = (None, None, None);
    while at < args.len() {
        let word = args.get(at).bytes().to_ascii_uppercase();
        let value = args.from(at + 1).bytes().next();
        at += 1;
        match word.as_slice() {
            [b'I', ..] => {
                options.items = (at < args.len()).then_some(at);
                break;
            }
            [b'N', _, b'C', ..] => _ = options.give(Opt::NoCreate),
            [b'N', ..] => _ = options.give(Opt::NonScaling),
            [b'C', ..] => capacity = Some(parse_canonical(value?)?),
            [b'E', b'R', ..] => error_rate = Some(rate(value?)?),
            [b'E', ..] => expansion = Some(parse_canonical(value?)?),
            _ => return None,
        }
        if matches!(word[0], b'C' | b'E') {
            at += 1;
        }
    }
    options.items?;
    with_numbers(options, error_rate, capacity, expansion)
}

/// Puts the numbers into `options`; `None` if one is out of RedisBloom's range.
fn with_numbers(
    options: Options,
    error_rate: Option<f64>,
    capacity: Option<i64>,
    expansion: Option<i64>,
) -> Option<Options> {
    let is_positive = |number: Option<i64>| number.is_none_or(|number| number >= 1);
    let is_rate = error_rate.is_none_or(|rate| rate > 0.0 && rate < 1.0);
    let growth = |expansion: i64| match expansion as u32 {
        0 => DEFAULT_GROWTH.into(),
        kept => kept.into(),
    };
    (is_rate && is_positive(capacity) && is_positive(expansion)).then(|| Options {
        error_rate,
        capacity: capacity.map(i64::cast_unsigned),
        expansion: expansion.map(growth),
        ..options
    })
}

fn rate(text: &[u8]) -> Option<f64> {
    parse_as_c(&CString::new(text).ok()?)
}
