//! Arguments and options: one function an option, no key access.
//!
//! Options are whole words in any case and any order, each at most once. Whatever else stands where an option
//! may stand is refused by name. Numbers are plain: no sign, no spaces, no `inf` and no `nan`.

pub mod lenient;

use crate::reply::{Refusal, quoted};
use crate::server::ffi::{Arg, Args};
use rollcall_core::bloom::BitLayout;

/// A whole number without sign, written as the server writes it: without leading zeros.
pub fn unsigned(what: &'static str, arg: Arg<'_>) -> Result<u64, Refusal> {
    let given = arg.bytes();
    match given {
        [b'0', _, ..] => Err(Refusal::not_a("whole number", what, given)),
        // What is a number, but too small, is called so, as RedisBloom does.
        [b'-', b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
            Err(Refusal::Negative { what, got: quoted(given) })
        }
        _ => parse_unsigned(given).ok_or_else(|| Refusal::not_a("whole number", what, given)),
    }
}

/// A number of things: no more than the server's own integers hold.
pub fn count(what: &'static str, arg: Arg<'_>) -> Result<u64, Refusal> {
    let value = unsigned(what, arg)?;
    let fits = i64::try_from(value).is_ok();
    fits.then_some(value).ok_or_else(|| Refusal::not_a("whole number below 2^63", what, arg.bytes()))
}

/// The iterator of a dump. RedisBloom takes negative ones, which are past every end.
pub fn iterator(arg: Arg<'_>) -> Result<u64, Refusal> {
    match count("iterator", arg) {
        Ok(value) => Ok(value),
        Err(Refusal::Negative { .. }) if arg.bytes().len() <= 20 => Ok(u64::MAX),
        _ => Err(Refusal::BadIterator { got: quoted(arg.bytes()) }),
    }
}

/// As [`unsigned`], of bytes that may come from a configuration file.
pub fn parse_unsigned(bytes: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok()
}

/// A finite number; one that is too small to be told from 0 is none.
pub fn number(what: &'static str, arg: Arg<'_>) -> Result<f64, Refusal> {
    let given = arg.bytes();
    let digits = given.split(|b| b.eq_ignore_ascii_case(&b'e')).next().unwrap_or_default();
    let vanishes = |value: f64| value == 0.0 && digits.iter().any(|digit| matches!(digit, b'1'..=b'9'));
    parse_number(given).filter(|&value| !vanishes(value)).ok_or_else(|| Refusal::not_a("number", what, given))
}

/// As [`number`], of bytes that may come from a configuration file.
pub fn parse_number(bytes: &[u8]) -> Option<f64> {
    // Rust reads "inf", "nan" and the like as numbers.
    let plain = bytes.iter().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: f64 = std::str::from_utf8(bytes).ok().filter(|_| plain)?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// The options of commands that create: all that was given, in the units of the core's parameters.
#[derive(Debug, Default)]
pub struct Options {
    pub capacity: Option<u64>,
    pub error_rate: Option<f64>,
    pub expansion: Option<u64>,
    pub exact_limit: Option<u64>,
    pub seed: Option<u64>,
    pub layout: Option<BitLayout>,
    pub non_scaling: bool,
    pub no_create: bool,
    /// Index of the first item, after ITEMS.
    pub items: Option<usize>,
}

/// An option a command takes.
#[derive(Clone, Copy, PartialEq)]
pub enum Opt {
    Capacity,
    Error,
    Expansion,
    Exact,
    Seed,
    Layout,
    NonScaling,
    NoCreate,
    Items,
}

impl Opt {
    fn word(self) -> &'static str {
        match self {
            Opt::Capacity => "CAPACITY",
            Opt::Error => "ERROR",
            Opt::Expansion => "EXPANSION",
            Opt::Exact => "EXACT",
            Opt::Seed => "SEED",
            Opt::Layout => "LAYOUT",
            Opt::NonScaling => "NONSCALING",
            Opt::NoCreate => "NOCREATE",
            Opt::Items => "ITEMS",
        }
    }

    fn takes_value(self) -> bool {
        !matches!(self, Opt::NonScaling | Opt::NoCreate | Opt::Items)
    }
}

/// Reads options from argument `start` on; `allowed` are those that the command takes.
pub fn options(args: Args<'_>, start: usize, allowed: &[Opt]) -> Result<Options, Refusal> {
    let mut options = Options::default();
    let mut seen: Vec<Opt> = Vec::with_capacity(allowed.len());
    let mut out_of_range = None;
    let mut at = start;
    while at < args.len() {
        let given = args.get(at).bytes();
        let Some(&option) = allowed.iter().find(|option| given.eq_ignore_ascii_case(option.word().as_bytes())) else {
            return Err(Refusal::Argument(format!("unknown option {}", quoted(given))));
        };
        if seen.contains(&option) {
            return Err(Refusal::Argument(format!("option {} is given twice", option.word())));
        }
        seen.push(option);
        at += 1;
        if option == Opt::Items {
            if at == args.len() {
                return Err(Refusal::Arity);
            }
            options.items = Some(at);
            break;
        }
        if option.takes_value() {
            if at == args.len() {
                // What ends here lacks its items too, if it should have any.
                let needs_items = allowed.contains(&Opt::Items);
                return Err(if needs_items { Refusal::Arity } else { Refusal::NoValue { option: option.word() } });
            }
            match value(&mut options, option, args.get(at)) {
                // Ranges come after all that cannot be read, as in RedisBloom.
                Err(negative @ Refusal::Negative { .. }) => out_of_range = out_of_range.or(Some(negative)),
                read => read?,
            }
            at += 1;
        } else if option == Opt::NonScaling {
            options.non_scaling = true;
        } else {
            options.no_create = true;
        }
    }
    if allowed.contains(&Opt::Items) && options.items.is_none() {
        return Err(Refusal::Arity);
    }
    out_of_range.map_or(Ok(options), Err)
}

fn value(options: &mut Options, option: Opt, given: Arg<'_>) -> Result<(), Refusal> {
    match option {
        Opt::Capacity => options.capacity = Some(count("capacity", given)?),
        Opt::Error => options.error_rate = Some(number("error rate", given)?),
        Opt::Expansion => options.expansion = Some(count("expansion", given)?),
        Opt::Exact => options.exact_limit = Some(count("exact limit", given)?),
        Opt::Seed => options.seed = Some(unsigned("seed", given)?),
        Opt::Layout => options.layout = Some(layout(given.bytes())?),
        Opt::NonScaling | Opt::NoCreate | Opt::Items => {}
    }
    Ok(())
}

fn layout(given: &[u8]) -> Result<BitLayout, Refusal> {
    let named = |layout: &BitLayout| given.eq_ignore_ascii_case(layout.name().as_bytes());
    [BitLayout::Lines, BitLayout::Classic]
        .into_iter()
        .find(named)
        .ok_or_else(|| Refusal::Argument(format!("bad layout: expected lines or classic, got {}", quoted(given))))
}
