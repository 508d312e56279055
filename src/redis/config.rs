//! Options: names, ranges, defaults. Each is an argument of `loadmodule`, a parameter of `CONFIG SET` and a
//! line of redis.conf.
//!
//! An argument takes the place of the default, so a line of redis.conf (which `CONFIG REWRITE` writes) goes
//! over it: that is how a change made while running survives a restart.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use redis_module::raw;

use super::args::{parse_number, parse_unsigned};
use super::ffi::{Arg, Args, Ctx, ERR, LogLevel, OK, RedisModuleString, api, guard};
use super::reply::quoted;
use crate::{bloom, counting};

/// Server version from which module options may go without the module's name before them.
const UNPREFIXED_SINCE: c_int = 0x0008_0000;

/// A whole number.
struct Whole {
    name: &'static CStr,
    min: i64,
    max: i64,
    flags: u32,
    /// The default, or the argument given in its place.
    initial: AtomicI64,
    value: AtomicI64,
}

impl Whole {
    const fn new(name: &'static CStr, default: i64, min: i64, max: i64, flags: u32) -> Self {
        Whole { name, min, max, flags, initial: AtomicI64::new(default), value: AtomicI64::new(default) }
    }

    fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed).unsigned_abs()
    }
}

/// What a [`Text`] option holds, and how it is checked.
#[derive(Clone, Copy)]
enum Kind {
    /// A number in a range, in words and as a check; kept as the bits of an `f64`.
    Rate { range: &'static str, holds: fn(f64) -> bool },
    /// Any u64, which the server's own numbers cannot hold.
    Seed,
}

/// An option that the server keeps as text.
struct Text {
    name: &'static CStr,
    kind: Kind,
    flags: u32,
    initial: AtomicU64,
    value: AtomicU64,
    /// The string last handed to the server, which does not free it.
    shown: AtomicPtr<RedisModuleString>,
}

impl Text {
    const fn new(name: &'static CStr, kind: Kind, default_bits: u64, flags: u32) -> Self {
        Text {
            name,
            kind,
            flags,
            initial: AtomicU64::new(default_bits),
            value: AtomicU64::new(default_bits),
            shown: AtomicPtr::new(null_mut()),
        }
    }

    fn bits(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    fn parse(&self, text: &[u8]) -> Result<u64, String> {
        match self.kind {
            Kind::Rate { range, holds } => match parse_number(text).filter(|&rate| holds(rate)) {
                Some(rate) => Ok(rate.to_bits()),
                None => Err(format!("expected a number {range}, got {}", quoted(text))),
            },
            Kind::Seed => {
                parse_unsigned(text).ok_or_else(|| format!("expected a number from 0 to 2^64-1, got {}", quoted(text)))
            }
        }
    }

    fn print(&self, bits: u64) -> String {
        match self.kind {
            Kind::Rate { .. } => format!("{:?}", f64::from_bits(bits)),
            Kind::Seed => bits.to_string(),
        }
    }
}

/// One word of several.
struct Choice {
    name: &'static CStr,
    words: &'static [&'static CStr],
    flags: u32,
    initial: AtomicI64,
    value: AtomicI64,
}

impl Choice {
    const fn new(name: &'static CStr, words: &'static [&'static CStr], flags: u32) -> Self {
        Choice { name, words, flags, initial: AtomicI64::new(0), value: AtomicI64::new(0) }
    }
}

const PLAIN: u32 = raw::REDISMODULE_CONFIG_DEFAULT;
const FIXED: u32 = raw::REDISMODULE_CONFIG_IMMUTABLE;
const BYTES: u32 = raw::REDISMODULE_CONFIG_MEMORY;

static BF_ERROR_RATE: Text = Text::new(
    c"bf-error-rate",
    Kind::Rate { range: "above 0 and below 1", holds: |rate| rate > 0.0 && rate < 1.0 },
    0.01f64.to_bits(),
    PLAIN,
);
static BF_INITIAL_SIZE: Whole = Whole::new(c"bf-initial-size", 100, 1, bloom::Params::MAX_CAPACITY as i64, PLAIN);
static BF_EXPANSION: Whole = Whole::new(c"bf-expansion-factor", 2, 0, bloom::Params::MAX_EXPANSION as i64, PLAIN);
static BF_LAYOUT: Choice = Choice::new(c"bf-layout", &[c"lines", c"classic"], PLAIN);
static LC_CAPACITY: Whole = Whole::new(c"lc-capacity", 50_000, 1, counting::Params::MAX_CAPACITY as i64, PLAIN);
static LC_ERROR_RATE: Text = Text::new(
    c"lc-error-rate",
    Kind::Rate { range: "from 0.001 to 0.25", holds: |rate| (0.001..=0.25).contains(&rate) },
    0.01f64.to_bits(),
    PLAIN,
);
static LC_EXACT_LIMIT: Whole = Whole::new(c"lc-exact-limit", 250, 0, counting::Params::MAX_EXACT_LIMIT as i64, PLAIN);
static MAX_KEY_BYTES: Whole = Whole::new(c"max-key-bytes", 4 << 30, 1 << 20, i64::MAX, BYTES);
static HASH_SEED: Text = Text::new(c"hash-seed", Kind::Seed, 0, FIXED);
static COMMANDS: Choice = Choice::new(c"commands", &[c"all", c"lc"], FIXED);

static WHOLE: [&Whole; 5] = [&BF_INITIAL_SIZE, &BF_EXPANSION, &LC_CAPACITY, &LC_EXACT_LIMIT, &MAX_KEY_BYTES];
static TEXT: [&Text; 3] = [&BF_ERROR_RATE, &LC_ERROR_RATE, &HASH_SEED];
static CHOICE: [&Choice; 2] = [&BF_LAYOUT, &COMMANDS];

/// The three that users of Redis 8 know without a prefix.
fn unprefixed(name: &CStr) -> bool {
    [BF_ERROR_RATE.name, BF_INITIAL_SIZE.name, BF_EXPANSION.name].contains(&name)
}

/// Parameters of filters that are created without their own.
pub fn bloom_defaults() -> bloom::Params {
    bloom::Params {
        error_rate: f64::from_bits(BF_ERROR_RATE.bits()),
        capacity: BF_INITIAL_SIZE.get(),
        expansion: BF_EXPANSION.get() as u32,
        seed: HASH_SEED.bits(),
    }
}

/// Layout of filters that are created without their own.
pub fn bloom_layout() -> bloom::BitLayout {
    match BF_LAYOUT.value.load(Ordering::Relaxed) {
        0 => bloom::BitLayout::Lines,
        _ => bloom::BitLayout::Classic,
    }
}

/// Parameters of counters that are created without their own.
pub fn counting_defaults() -> counting::Params {
    counting::Params {
        capacity: LC_CAPACITY.get(),
        error_rate: f64::from_bits(LC_ERROR_RATE.bits()),
        exact_limit: LC_EXACT_LIMIT.get() as u32,
        seed: HASH_SEED.bits(),
    }
}

/// Most bytes a value may take.
pub fn max_key_bytes() -> u64 {
    MAX_KEY_BYTES.get()
}

/// Whether the BF.* commands are ours, or left to another module.
pub fn with_bloom() -> bool {
    COMMANDS.value.load(Ordering::Relaxed) == 0
}

/// RedisBloom's names of arguments that are ours too.
static REDISBLOOM_NAMES: [(&str, &CStr); 2] = [("ERROR_RATE", c"bf-error-rate"), ("INITIAL_SIZE", c"bf-initial-size")];

/// How the names of RedisBloom's arguments for cuckoo filters begin.
const REDISBLOOM_CUCKOO: &[u8] = b"CF_";

/// Takes the arguments of `loadmodule`: pairs of a name and a value. Those of RedisBloom are taken too, so that its
/// line serves as it is.
///
/// # Errors
/// A line that names the argument and says what it should have been.
pub fn take_arguments(ctx: Ctx, args: Args<'_>) -> Result<(), String> {
    let mut at = 0;
    while at < args.len() {
        let name = args.get(at).bytes();
        let redisblooms = REDISBLOOM_NAMES.iter().find(|(theirs, _)| name.eq_ignore_ascii_case(theirs.as_bytes()));
        let name = redisblooms.map_or(name, |(_, ours)| ours.to_bytes());
        let is = |known: &CStr| name.eq_ignore_ascii_case(known.to_bytes());
        let value = if at + 1 < args.len() { Some(args.get(at + 1).bytes()) } else { None };
        let value = value.ok_or_else(|| format!("argument {} needs a value", quoted(name)));
        let wrong =
            |expected: &str, got: &[u8]| format!("argument {}: expected {expected}, got {}", quoted(name), quoted(got));
        if let Some(option) = WHOLE.iter().find(|option| is(option.name)) {
            let value = value?;
            let parsed = if option.flags & BYTES != 0 { parse_bytes(value) } else { parse_unsigned(value) };
            let in_range = |number: &i64| (option.min..=option.max).contains(number);
            let number = parsed.and_then(|number| i64::try_from(number).ok()).filter(in_range);
            let number =
                number.ok_or_else(|| wrong(&format!("a whole number from {} to {}", option.min, option.max), value))?;
            option.initial.store(number, Ordering::Relaxed);
        } else if let Some(option) = TEXT.iter().find(|option| is(option.name)) {
            let bits = option.parse(value?).map_err(|why| format!("argument {}: {why}", quoted(name)))?;
            option.initial.store(bits, Ordering::Relaxed);
        } else if let Some(option) = CHOICE.iter().find(|option| is(option.name)) {
            let value = value?;
            let chosen = option.words.iter().position(|word| value.eq_ignore_ascii_case(word.to_bytes()));
            let words: Vec<_> = option.words.iter().map(|word| word.to_string_lossy()).collect();
            let chosen = chosen.ok_or_else(|| wrong(&words.join(" or "), value))?;
            option.initial.store(chosen as i64, Ordering::Relaxed);
        } else if name.to_ascii_uppercase().starts_with(REDISBLOOM_CUCKOO) {
            let value = value?;
            let what = format!("argument {} {} is for cuckoo filters and ignored", quoted(name), quoted(value));
            ctx.log(LogLevel::Notice, &what);
        } else {
            return Err(format!("unknown argument {}", quoted(name)));
        }
        at += 2;
    }
    Ok(())
}

/// A number of bytes as redis.conf takes them: `1kb` is 1024, `1k` is 1000.
fn parse_bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let unit: u64 = match text[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    parse_unsigned(&text[..digits])?.checked_mul(unit)
}

/// Registers every option, then lets the server set them from redis.conf, or to what they begin with. False,
/// with a line in the log, if it refuses one.
pub fn register(ctx: Ctx) -> bool {
    // SAFETY: takes no arguments; probed for.
    let version = unsafe { raw::RedisModule_GetServerVersion.map_or(0, |version| version()) };
    let flags_of = |name: &CStr, flags: u32| -> c_uint {
        let bare = version >= UNPREFIXED_SINCE && unprefixed(name);
        flags | if bare { raw::REDISMODULE_CONFIG_UNPREFIXED } else { 0 }
    };
    let mut registered = true;
    for option in WHOLE {
        let flags = flags_of(option.name, option.flags);
        let data = (&raw const *option).cast_mut().cast::<c_void>();
        let initial = option.initial.load(Ordering::Relaxed);
        // SAFETY: names end with NUL; the option is static; the callbacks take it back as what it is.
        registered &= OK
            == unsafe {
                api!(RedisModule_RegisterNumericConfig(
                    ctx.as_ptr(),
                    option.name.as_ptr(),
                    initial,
                    flags,
                    option.min,
                    option.max,
                    Some(get_whole),
                    Some(set_whole),
                    None,
                    data
                ))
            };
    }
    for option in TEXT {
        let flags = flags_of(option.name, option.flags);
        let data = (&raw const *option).cast_mut().cast::<c_void>();
        let initial = CString::new(option.print(option.initial.load(Ordering::Relaxed))).unwrap_or_default();
        // SAFETY: as above; the server copies the default.
        registered &= OK
            == unsafe {
                api!(RedisModule_RegisterStringConfig(
                    ctx.as_ptr(),
                    option.name.as_ptr(),
                    initial.as_ptr(),
                    flags,
                    Some(get_text),
                    Some(set_text),
                    None,
                    data
                ))
            };
    }
    for option in CHOICE {
        let flags = flags_of(option.name, option.flags);
        let data = (&raw const *option).cast_mut().cast::<c_void>();
        let mut words: Vec<*const c_char> = option.words.iter().map(|word| word.as_ptr()).collect();
        let numbers: Vec<c_int> = (0..words.len() as c_int).collect();
        let initial = option.initial.load(Ordering::Relaxed) as c_int;
        // SAFETY: as above; the server copies words and numbers.
        registered &= OK
            == unsafe {
                api!(RedisModule_RegisterEnumConfig(
                    ctx.as_ptr(),
                    option.name.as_ptr(),
                    initial,
                    flags,
                    words.as_mut_ptr(),
                    numbers.as_ptr(),
                    words.len() as c_int,
                    Some(get_choice),
                    Some(set_choice),
                    None,
                    data
                ))
            };
    }
    // SAFETY: the context is live, during loading.
    let loaded = registered && OK == unsafe { api!(RedisModule_LoadConfigs(ctx.as_ptr())) };
    if !loaded {
        ctx.log(LogLevel::Warning, "an option in redis.conf or MODULE LOADEX was refused; see the lines above");
    }
    loaded
}

/// Fills in the server's place for an error text.
///
/// # Safety
/// `place` is the one that the server passed to a setter.
unsafe fn set_error(place: *mut *mut RedisModuleString, text: &str) -> c_int {
    // SAFETY: the server frees the string; it copies the bytes.
    unsafe {
        if !place.is_null() {
            *place = api!(RedisModule_CreateString(null_mut(), text.as_ptr().cast(), text.len()));
        }
    }
    ERR
}

unsafe extern "C" fn get_whole(_name: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: registered with a static `Whole`.
    unsafe { &*data.cast::<Whole>() }.value.load(Ordering::Relaxed)
}

unsafe extern "C" fn set_whole(
    _name: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    _error: *mut *mut RedisModuleString,
) -> c_int {
    // The server has compared the value with the range.
    // SAFETY: registered with a static `Whole`.
    unsafe { &*data.cast::<Whole>() }.value.store(value, Ordering::Relaxed);
    OK
}

unsafe extern "C" fn get_text(_name: *const c_char, data: *mut c_void) -> *mut RedisModuleString {
    // SAFETY: registered with a static `Text`; the string shown before is ours, and the server keeps no
    // pointer to it once it asks again.
    guard(
        "a configuration getter",
        || unsafe {
            let option = &*data.cast::<Text>();
            let text = option.print(option.bits());
            let shown = api!(RedisModule_CreateString(null_mut(), text.as_ptr().cast(), text.len()));
            let before = option.shown.swap(shown, Ordering::Relaxed);
            if !before.is_null() {
                api!(RedisModule_FreeString(null_mut(), before));
            }
            shown
        },
        null_mut,
    )
}

unsafe extern "C" fn set_text(
    _name: *const c_char,
    value: *mut RedisModuleString,
    data: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: registered with a static `Text`; the value lives during the call.
    guard(
        "a configuration setter",
        || unsafe {
            let option = &*data.cast::<Text>();
            match option.parse(Arg::new(value).bytes()) {
                Ok(bits) => {
                    option.value.store(bits, Ordering::Relaxed);
                    OK
                }
                Err(why) => set_error(error, &why),
            }
        },
        || ERR,
    )
}

unsafe extern "C" fn get_choice(_name: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: registered with a static `Choice`.
    unsafe { &*data.cast::<Choice>() }.value.load(Ordering::Relaxed) as c_int
}

unsafe extern "C" fn set_choice(
    _name: *const c_char,
    value: c_int,
    data: *mut c_void,
    _error: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: registered with a static `Choice`.
    unsafe { &*data.cast::<Choice>() }.value.store(i64::from(value), Ordering::Relaxed);
    OK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_in_redis_conf() {
        for (text, bytes) in [("1", 1), ("5b", 5), ("1k", 1000), ("1kb", 1024), ("2MB", 2 << 20), ("4gb", 4 << 30)] {
            assert_eq!(parse_bytes(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["", "gb", "1tb", "-1", "1 kb", "99999999999999999999", "18446744073709551615kb"] {
            assert_eq!(parse_bytes(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn rates_keep_to_their_ranges() {
        for text in ["0", "1", "-0.5", "nan", "inf", "1e400", "", "0.1x"] {
            assert!(BF_ERROR_RATE.parse(text.as_bytes()).is_err(), "{text}");
        }
        for rate in [0.5, 1e-300, 0.999_999_999_999] {
            let bits = BF_ERROR_RATE.parse(format!("{rate:?}").as_bytes()).unwrap();
            assert_eq!(BF_ERROR_RATE.parse(BF_ERROR_RATE.print(bits).as_bytes()), Ok(bits));
        }
        assert!(LC_ERROR_RATE.parse(b"0.0009").is_err());
        assert!(LC_ERROR_RATE.parse(b"0.25").is_ok());
    }
}
