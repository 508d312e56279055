//! Parses the arguments and options of commands.
//!
//! Options are whole words in upper or lower case and in any order, each at most once. Unknown words are rejected.
//! Numbers have no sign and no spaces, and are not `inf` or `nan`.

mod items;
pub mod lenient;

use std::fmt::Display;

pub use items::Items;
use items::MAX_WIDTH;

use crate::command_error::{CommandError, bad, quoted};
use crate::number::{parse_canonical, parse_number, parse_unsigned};
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Args, Ctx};
use rollcall_core::bloom::{BitLayout, Params};
use rollcall_core::counting::Params as CounterParams;
use rollcall_core::error::{Error, Parameter};
use rollcall_core::window::Window;

/// Parses a whole number, at most `most`, without sign and leading zeros. Error replies name its `range`.
fn unsigned(parameter: Parameter, arg: Arg<'_>, most: u64, range: impl Display) -> Result<u64, CommandError> {
    let given = arg.bytes();
    if matches!(given, [b'-', b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit)) {
        // As in RedisBloom, the error for a negative number says "out of range", not "not a number".
        return Err(
            Error::OutOfRange { parameter, expected: format!("a whole number {range}"), got: quoted(given) }.into()
        );
    }
    let expected = format_args!("whole number {range}");
    let plain = parse_unsigned(given).filter(|&number| number <= most && !matches!(given, [b'0', _, ..]));
    plain.ok_or_else(|| CommandError::not_a(expected, parameter.name(), given))
}

/// Parses a whole number without sign, at most 2^63 - 1, as the server's integers are signed.
pub fn count(parameter: Parameter, arg: Arg<'_>) -> Result<u64, CommandError> {
    unsigned(parameter, arg, i64::MAX as u64, "from 0 to 2^63 - 1")
}

/// Parses a number of a range, which errors name. Whole numbers outside it are errors of the library.
fn within(parameter: Parameter, least: u64, most: impl Into<u64>, arg: Arg<'_>) -> Result<u64, CommandError> {
    unsigned(parameter, arg, i64::MAX as u64, format_args!("from {least} to {}", most.into()))
}

/// Parses the seconds of a span, which end now. The window of a key, which may be missing, says how many there may be.
pub fn seconds(arg: Arg<'_>) -> Result<u64, CommandError> {
    let range = "from 1 to those of the key's window";
    let given = unsigned(Parameter::Seconds, arg, i64::MAX as u64, range)?;
    if given > 0 {
        Ok(given)
    } else {
        Err(CommandError::not_a(format!("whole number {range}"), "seconds", arg.bytes()))
    }
}

/// Parses the capacity of a filter.
pub fn capacity(arg: Arg<'_>) -> Result<u64, CommandError> {
    within(Parameter::Capacity, 1, Params::MAX_CAPACITY, arg)
}

/// Parses the number of keys, the first argument; `None` if it is 0, or larger than the number of arguments after it.
pub fn numkeys(args: Args<'_>) -> Option<usize> {
    let behind = args.len().checked_sub(2)?;
    let keys = usize::try_from(parse_canonical(args.get(1).bytes())?).ok()?;
    (1..=behind).contains(&keys).then_some(keys)
}

/// Parses the iterator argument of `SCANDUMP` and `LOADCHUNK`. RedisBloom accepts a negative iterator, which here
/// becomes [`u64::MAX`], past the end of every dump.
pub fn iterator(arg: Arg<'_>) -> Result<u64, CommandError> {
    let Some(iterator) = parse_canonical(arg.bytes()) else {
        let got = quoted(arg.bytes());
        return bad(format!("Second argument must be numeric: expected a whole number below 2^63, got {got}"));
    };
    Ok(u64::try_from(iterator).unwrap_or(u64::MAX))
}

/// Parses a finite number. A positive number too small for an `f64` is rejected.
pub fn number(parameter: Parameter, arg: Arg<'_>) -> Result<f64, CommandError> {
    let given = arg.bytes();
    let mut digits = given.iter().take_while(|byte| !byte.eq_ignore_ascii_case(&b'e'));
    let mut vanishes = |value: f64| value == 0.0 && digits.any(|digit| matches!(digit, b'1'..=b'9'));
    parse_number(given)
        .filter(|&value| !vanishes(value))
        .ok_or_else(|| CommandError::not_a("number", parameter.name(), given))
}

/// The options of a command, as the client gave them.
#[derive(Debug, Default)]
pub struct Options {
    /// A bit for each option that was given.
    pub given: u32,
    pub capacity: Option<u64>,
    pub error_rate: Option<f64>,
    pub expansion: Option<u64>,
    pub exact_limit: Option<u64>,
    pub exact_bytes: Option<u64>,
    pub seed: Option<u64>,
    pub layout: Option<BitLayout>,
    /// The length of a window in seconds.
    pub window: Option<u64>,
    pub slices: Option<u64>,
    /// The number of a new window's newest slice. Only a primary or the AOF gives it.
    pub slice: Option<u64>,
    /// The expiry of a key that the command creates, in milliseconds since 1970.
    pub expiry: Option<i64>,
    /// The option `LIMIT` of `ADMIT`. A value with this number of items takes no new item.
    pub limit: Option<u64>,
    /// The option `SINCE` of `QUERY`: only what was added in the last seconds.
    pub since: Option<u64>,
    /// The option `WIDTH`: the length of each item in bytes.
    pub width: Option<usize>,
    /// The index of the first argument with items.
    pub items: Option<usize>,
}

/// Converts a number to 32 bits. A larger number becomes [`u32::MAX`], which is out of every range.
pub fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Options {
    /// Whether an option was given.
    pub fn has(&self, option: Opt) -> bool {
        self.given & 1 << option as u32 != 0
    }

    /// Notes that an option was given. Returns whether it was not given before.
    fn give(&mut self, option: Opt) -> bool {
        let is_new = !self.has(option);
        self.given |= 1 << option as u32;
        is_new
    }

    /// Puts the client's number into an error about a number out of range, because [`narrow`] may have lowered it.
    pub fn as_given(&self, error: Error) -> Error {
        let Error::OutOfRange { parameter, expected, got } = error else { return error };
        let given = match parameter {
            Parameter::ExactLimit => self.exact_limit,
            Parameter::ExactBytes => self.exact_bytes,
            Parameter::Slices => self.slices,
            _ => None,
        };
        Error::OutOfRange { parameter, expected, got: given.map_or(got, |given| given.to_string()) }
    }

    /// The items of the command `args` with these options.
    ///
    /// # Errors
    /// Those of [`Items::new`].
    pub fn items<'a>(&self, args: Args<'a>) -> Result<Items<'a>, CommandError> {
        Items::new(args.from(self.items.ok_or(CommandError::Arity)?), self.width)
    }

    /// Whether a command with these options may be replicated unchanged. RedisBloom reads expiry options differently,
    /// and does not know seed and layout. The effect of window options depends on the clock.
    pub fn are_plain(&self) -> bool {
        self.window.is_none() && self.expiry.is_none() && self.seed.is_none() && self.layout.is_none()
    }
}

rollcall_core::named! {
    #[derive(Clone, Copy, PartialEq)]
    pub enum Opt {
        Capacity = "CAPACITY",
        Error = "ERROR",
        Expansion = "EXPANSION",
        Exact = "EXACT",
        Bytes = "BYTES",
        Seed = "SEED",
        Layout = "LAYOUT",
        NonScaling = "NONSCALING",
        NoCreate = "NOCREATE",
        Items = "ITEMS",
        Ex = "EX",
        Px = "PX",
        ExAt = "EXAT",
        PxAt = "PXAT",
        Limit = "LIMIT",
        All = "ALL",
        DryRun = "DRYRUN",
        WithRoom = "WITHROOM",
        Since = "SINCE",
        WithAges = "WITHAGES",
        Width = "WIDTH",
        Window = "WINDOW",
        Manual = "MANUAL",
        Volatile = "VOLATILE",
        Slices = "SLICES",
        Refresh = "REFRESH",
        Slice = "SLICE",
    }
}

/// The options that set the expiry of a key that the command creates.
pub const EXPIRY: &[Opt] = &[Opt::Ex, Opt::Px, Opt::ExAt, Opt::PxAt];

/// The options of `ADMIT` that `INSERT` lacks.
pub const ADMISSION: &[Opt] = &[Opt::Limit, Opt::All, Opt::DryRun, Opt::WithRoom];

/// The options about items, the last of a command.
pub const ITEMS: &[Opt] = &[Opt::Width, Opt::Items];

/// The options that a command takes, in the order in which errors list them.
pub type Allowed<'a> = &'a [&'static [Opt]];

/// The error for a capacity in a command on counters.
pub const NO_CAPACITY: &str =
    "a counter needs no CAPACITY: its error, such as ERROR 0.01, holds for any number of members";

/// Parses the options from argument `start` on. `allowed` are the options that the command takes. A replicated command
/// may also have `SLICE`.
pub fn options(ctx: Ctx, args: Args<'_>, start: usize, allowed: Allowed<'_>) -> Result<Options, CommandError> {
    let slice: &[Opt] = if must_obey(ctx) { &[Opt::Slice] } else { &[] };
    let allowed = || allowed.iter().copied().flatten().chain(slice).copied();
    let takes_items = allowed().any(|option| option == Opt::Items);
    let mut options = Options::default();
    let mut out_of_range = None;
    let mut at = start;
    while at < args.len() {
        let given = args.get(at).bytes();
        let Some(option) = allowed().find(|option| given.eq_ignore_ascii_case(option.name().as_bytes())) else {
            let is_counter = allowed().any(|option| option == Opt::Exact);
            let is_capacity = given.eq_ignore_ascii_case(b"CAPACITY") || at == start && parse_number(given).is_some();
            return Err(match is_counter && is_capacity {
                true => CommandError::Argument(NO_CAPACITY.to_owned()),
                false => unknown_option(given, allowed(), takes_items),
            });
        };
        if !options.give(option) {
            return bad(format!("option {option} is given twice"));
        }
        at += 1;
        match option {
            Opt::NonScaling | Opt::NoCreate | Opt::All | Opt::DryRun | Opt::WithRoom | Opt::WithAges => {}
            Opt::Manual | Opt::Volatile | Opt::Refresh => {}
            // The command ends without the items that it needs.
            _ if at == args.len() && takes_items => return Err(CommandError::Arity),
            _ if at == args.len() => {
                let no_expansion = if option == Opt::Expansion { "no expansion: " } else { "" };
                let why = format!("{no_expansion}option {option} needs a value");
                return bad(why);
            }
            Opt::Items => {
                options.items = Some(at);
                break;
            }
            _ => {
                match value(ctx, &mut options, option, args.get(at)) {
                    // As in RedisBloom, an unparsable option is reported before an option out of range.
                    Err(negative @ CommandError::Core(_)) => out_of_range = out_of_range.or(Some(negative)),
                    read => read?,
                }
                at += 1;
            }
        }
    }
    if takes_items && options.items.is_none() {
        return Err(CommandError::Arity);
    }
    out_of_range.map_or(Ok(options), Err)
}

/// Returns the error for the word `given`, with a list of the `allowed` options.
fn unknown_option(given: &[u8], allowed: impl Iterator<Item = Opt>, takes_items: bool) -> CommandError {
    // `VOLATILE` is listed only for a command that takes items, because `RESERVE` rejects it.
    let is_named = |option: Opt| option != Opt::Items && (takes_items || option != Opt::Volatile);
    let words: Vec<_> = allowed.filter(|&option| is_named(option)).map(Opt::name).collect();
    let items = if takes_items { ", or ITEMS before the items" } else { "" };
    CommandError::Argument(format!("unknown option {}: expected {}{items}", quoted(given), words.join(", ")))
}

fn value(ctx: Ctx, options: &mut Options, option: Opt, given: Arg<'_>) -> Result<(), CommandError> {
    match option {
        Opt::Capacity => options.capacity = Some(capacity(given)?),
        Opt::Error => options.error_rate = Some(number(Parameter::ErrorRate, given)?),
        Opt::Expansion => options.expansion = Some(within(Parameter::Expansion, 0, Params::MAX_EXPANSION, given)?),
        Opt::Exact => {
            options.exact_limit = Some(within(Parameter::ExactLimit, 0, CounterParams::MAX_EXACT_LIMIT, given)?)
        }
        Opt::Bytes => {
            options.exact_bytes = Some(within(Parameter::ExactBytes, 1, CounterParams::MAX_EXACT_BYTES, given)?)
        }
        Opt::Seed => options.seed = Some(unsigned(Parameter::Seed, given, u64::MAX, "below 2^64")?),
        Opt::Layout => options.layout = Some(layout(given.bytes())?),
        Opt::Ex | Opt::Px | Opt::ExAt | Opt::PxAt => {
            if options.expiry.is_some() {
                return bad("options EX, PX, EXAT and PXAT exclude each other: give one");
            }
            options.expiry = Some(expiry(ctx, option, given)?);
        }
        Opt::Limit => options.limit = Some(limit(given)?),
        Opt::Width => options.width = Some(width(given)?),
        Opt::Since => options.since = Some(seconds(given)?),
        Opt::Window => options.window = Some(within(Parameter::Window, 1, Window::MAX_SECONDS, given)?),
        Opt::Slices => options.slices = Some(count(Parameter::Slices, given)?),
        Opt::Slice => options.slice = Some(count(Parameter::Slice, given)?),
        // The remaining options take no value.
        _ => {}
    }
    Ok(())
}

fn limit(given: Arg<'_>) -> Result<u64, CommandError> {
    let given = given.bytes();
    let limit = parse_canonical(given).and_then(|limit| u64::try_from(limit).ok());
    limit.ok_or_else(|| CommandError::not_a("whole number from 0 to 2^63 - 1", "limit", given))
}

fn width(given: Arg<'_>) -> Result<usize, CommandError> {
    let given = given.bytes();
    let width = parse_canonical(given).and_then(|width| usize::try_from(width).ok());
    let expected = format_args!("whole number of bytes from 1 to {MAX_WIDTH}");
    width.filter(|width| (1..=MAX_WIDTH).contains(width)).ok_or_else(|| CommandError::not_a(expected, "WIDTH", given))
}

/// Parses an expiry option, with the ranges of the server's `SET`. Returns milliseconds since 1970. A client may not
/// give a past time: the key would expire at once, and every call would create it again.
fn expiry(ctx: Ctx, option: Opt, given: Arg<'_>) -> Result<i64, CommandError> {
    // The words of the server's `SET`.
    let invalid = |why: String| bad(format!("invalid expire time: {why}"));
    let (unit, unit_ms) = if matches!(option, Opt::Ex | Opt::ExAt) { ("seconds", 1000) } else { ("milliseconds", 1) };
    let most = i64::MAX / unit_ms;
    let Some(number) = parse_canonical(given.bytes()).filter(|number| (1..=most).contains(number)) else {
        let got = quoted(given.bytes());
        return invalid(format!("option {option} needs a whole number of {unit} from 1 to {most}, got {got}"));
    };
    let (ms, now) = (number * unit_ms, ctx.now_ms());
    if matches!(option, Opt::Ex | Opt::Px) {
        let too_late = || invalid(format!("{ms} milliseconds from now are beyond the largest time"));
        return now.checked_add(ms).map_or_else(too_late, Ok);
    }
    if ms <= now && !must_obey(ctx) {
        return invalid(format!("{option} {number} has passed"));
    }
    Ok(ms)
}

fn layout(given: &[u8]) -> Result<BitLayout, CommandError> {
    let named = |layout: &BitLayout| given.eq_ignore_ascii_case(layout.name().as_bytes());
    let unknown = || bad(format!("bad layout: expected lines or classic, got {}", quoted(given)));
    [BitLayout::Lines, BitLayout::Classic].into_iter().find(named).map_or_else(unknown, Ok)
}
