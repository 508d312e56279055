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
use crate::server::ffi::{Arg, Args};
use rollcall_core::unstable::bloom::classic::DEFAULT_GROWTH;

/// The options of a `BF.RESERVE` command; `None` if RedisBloom would reject it.
pub fn reserve(args: Args<'_>) -> Option<Options> {
    if !(4..=7).contains(&args.len()) {
        return None;
    }
    let find = |word: &[u8]| (1..args.len()).find(|&at| args.get(at).bytes().eq_ignore_ascii_case(word));
    let expansion = match find(b"EXPANSION") {
        Some(at) if at + 1 == args.len() => return None,
        Some(at) => Some(integer(args.get(at + 1))?),
        None => None,
    };
    let non_scaling = find(b"NONSCALING").is_some();
    if non_scaling && expansion.is_some() {
        return None;
    }
    let given = if non_scaling { 1 << Opt::NonScaling as u32 } else { 0 };
    let (error_rate, capacity) = (Some(rate(args.get(2))?), Some(integer(args.get(3))?));
    in_range(Options { given, error_rate, capacity, expansion, ..Options::default() })
}

/// The options of a `BF.INSERT` command; `None` if RedisBloom would reject it.
pub fn insert(args: Args<'_>) -> Option<Options> {
    let mut options = Options::default();
    let mut at = 2;
    while at < args.len() {
        let word = args.get(at).bytes().to_ascii_uppercase();
        let value = (at + 1 < args.len()).then(|| args.get(at + 1));
        at += 1;
        match word.as_slice() {
            [b'I', ..] => {
                options.items = (at < args.len()).then_some(at);
                break;
            }
            [b'N', _, b'C', ..] => _ = options.give(Opt::NoCreate),
            [b'N', ..] => _ = options.give(Opt::NonScaling),
            [b'C', ..] => options.capacity = Some(integer(value?)?),
            [b'E', b'R', ..] => options.error_rate = Some(rate(value?)?),
            [b'E', ..] => options.expansion = Some(integer(value?)?),
            _ => return None,
        }
        if matches!(word[0], b'C' | b'E') {
            at += 1;
        }
    }
    options.items?;
    in_range(options)
}

/// Checks the values of `options`, in which numbers are still as [`integer`] has read them. `None` if a value is out of
/// RedisBloom's range.
fn in_range(options: Options) -> Option<Options> {
    let positive = |value: Option<u64>| value.is_none_or(|value| value.cast_signed() >= 1);
    let is_rate = options.error_rate.is_none_or(|rate| rate > 0.0 && rate < 1.0);
    let growth = |expansion: u64| match expansion as u32 {
        0 => DEFAULT_GROWTH.into(),
        kept => kept.into(),
    };
    (is_rate && positive(options.capacity) && positive(options.expansion))
        .then(|| Options { expansion: options.expansion.map(growth), ..options })
}

/// Parses a signed number, and returns its 64 bits.
fn integer(arg: Arg<'_>) -> Option<u64> {
    parse_canonical(arg.bytes()).map(i64::cast_unsigned)
}

fn rate(arg: Arg<'_>) -> Option<f64> {
    parse_as_c(&CString::new(arg.bytes()).ok()?)
}
