//! Options: names, ranges, defaults. Each is an argument of `loadmodule`, a parameter of `CONFIG SET` and a
//! line of redis.conf.
//!
//! An argument takes the place of the default, so a line of redis.conf (which `CONFIG REWRITE` writes) goes
//! over it: that is how a change made while running survives a restart.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

use redis_module::raw;

use crate::number::{parse_number, parse_signed, parse_unsigned};
use crate::refusal::quoted;
use crate::server::facts;
use crate::server::ffi::{Arg, Ctx, ERR, LogLevel, OK, RedisModuleString, api, guard, log_anywhere};
use rollcall_core::{bloom, counting};

/// A whole number.
pub(super) struct Whole {
    pub(super) name: &'static CStr,
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) flags: u32,
    /// The default, or the argument given in its place.
    pub(super) initial: AtomicI64,
    pub(super) value: AtomicI64,
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
pub(super) enum Kind {
    /// A number in a range, in words and as a check; kept as the bits of an `f64`.
    Rate { range: &'static str, holds: fn(f64) -> bool },
    /// Any u64, which the server's own numbers cannot hold.
    Seed,
    /// The error rate of RedisBloom: above 0 and below 1, kept as the bits of an `f64`.
    FilterRate,
    /// A whole number of RedisBloom. Not one of the server's, because the server words its own errors.
    FilterWhole { min: i64, max: i64 },
    /// As `FilterWhole`, of an option for cuckoo filters, which we have not.
    CuckooWhole { min: i64, max: i64 },
}

/// An option that the server keeps as text.
pub(super) struct Text {
    pub(super) name: &'static CStr,
    pub(super) kind: Kind,
    pub(super) flags: u32,
    pub(super) initial: AtomicU64,
    pub(super) value: AtomicU64,
    /// The string last handed to the server, which does not free it.
    pub(super) shown: AtomicPtr<RedisModuleString>,
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

    pub(super) fn parse(&self, text: &[u8]) -> Result<u64, String> {
        match self.kind {
            Kind::Rate { range, holds } => match parse_number(text).filter(|&rate| holds(rate)) {
                Some(rate) => Ok(rate.to_bits()),
                None => Err(format!("expected a number {range}, got {}", quoted(text))),
            },
            Kind::Seed => {
                parse_unsigned(text).ok_or_else(|| format!("expected a number from 0 to 2^64-1, got {}", quoted(text)))
            }
            Kind::FilterRate => {
                let rate = parse_number(text).ok_or_else(|| self.invalid())?;
                let in_range = rate > 0.0 && rate < 1.0;
                if in_range { Ok(rate.to_bits()) } else { Err(self.out_of_range("(0.000000, 1.000000)")) }
            }
            Kind::FilterWhole { min, max } | Kind::CuckooWhole { min, max } => {
                let whole = parse_signed(text).ok_or_else(|| self.invalid())?;
                let in_range = (min..=max).contains(&whole);
                if in_range { Ok(whole.unsigned_abs()) } else { Err(self.out_of_range(&format!("[{min}, {max}]"))) }
            }
        }
    }

    // The words of Redis 8's own module, which tools may look for.

    fn invalid(&self) -> String {
        format!("Invalid value for `{}`", self.name.to_string_lossy())
    }

    fn out_of_range(&self, range: &str) -> String {
        format!("Value for `{}` must be in the range {range}", self.name.to_string_lossy())
    }

    fn print(&self, bits: u64) -> String {
        match self.kind {
            Kind::Rate { .. } | Kind::FilterRate => format!("{:?}", f64::from_bits(bits)),
            Kind::Seed | Kind::FilterWhole { .. } | Kind::CuckooWhole { .. } => bits.to_string(),
        }
    }
}

/// One word of several.
pub(super) struct Choice {
    pub(super) name: &'static CStr,
    pub(super) words: &'static [&'static CStr],
    pub(super) flags: u32,
    pub(super) initial: AtomicI64,
    pub(super) value: AtomicI64,
}

impl Choice {
    const fn new(name: &'static CStr, words: &'static [&'static CStr], flags: u32) -> Self {
        Choice { name, words, flags, initial: AtomicI64::new(0), value: AtomicI64::new(0) }
    }
}

const PLAIN: u32 = raw::REDISMODULE_CONFIG_DEFAULT;
const FIXED: u32 = raw::REDISMODULE_CONFIG_IMMUTABLE;
pub(super) const BYTES: u32 = raw::REDISMODULE_CONFIG_MEMORY;

static BF_ERROR_RATE: Text = Text::new(c"bf-error-rate", Kind::FilterRate, 0.01f64.to_bits(), PLAIN);
static BF_INITIAL_SIZE: Text =
    Text::new(c"bf-initial-size", Kind::FilterWhole { min: 1, max: bloom::Params::MAX_CAPACITY as i64 }, 100, PLAIN);
static BF_EXPANSION: Text =
    Text::new(c"bf-expansion-factor", Kind::FilterWhole { min: 0, max: bloom::Params::MAX_EXPANSION as i64 }, 2, PLAIN);
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

pub(super) static WHOLE: [&Whole; 3] = [&LC_CAPACITY, &LC_EXACT_LIMIT, &MAX_KEY_BYTES];
pub(super) static TEXT: [&Text; 5] = [&BF_ERROR_RATE, &BF_INITIAL_SIZE, &BF_EXPANSION, &LC_ERROR_RATE, &HASH_SEED];
pub(super) static CHOICE: [&Choice; 2] = [&BF_LAYOUT, &COMMANDS];

/// What Redis 8 has for cuckoo filters. A redis.conf with such lines serves as it is: they are taken and do nothing.
static CUCKOO: [Text; 5] = [
    Text::new(c"cf-bucket-size", Kind::CuckooWhole { min: 1, max: 255 }, 2, PLAIN),
    Text::new(c"cf-initial-size", Kind::CuckooWhole { min: 2, max: 1 << 30 }, 1024, PLAIN),
    Text::new(c"cf-max-iterations", Kind::CuckooWhole { min: 1, max: 65_535 }, 20, PLAIN),
    Text::new(c"cf-expansion-factor", Kind::CuckooWhole { min: 0, max: 32_768 }, 1, PLAIN),
    Text::new(c"cf-max-expansions", Kind::CuckooWhole { min: 1, max: 65_536 }, 32, PLAIN),
];

/// The names that users of Redis 8 know without a prefix.
fn is_unprefixed(name: &CStr) -> bool {
    [BF_ERROR_RATE.name, BF_INITIAL_SIZE.name, BF_EXPANSION.name].contains(&name)
        || CUCKOO.iter().any(|option| option.name == name)
}

/// Parameters of filters that are created without their own.
pub fn bloom_defaults() -> bloom::Params {
    bloom::Params {
        error_rate: f64::from_bits(BF_ERROR_RATE.bits()),
        capacity: BF_INITIAL_SIZE.bits(),
        expansion: BF_EXPANSION.bits() as u32,
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

/// The names to try for an option, best first, and the flag that goes with each.
///
/// On Redis 8 that is the bare name, with the prefixed one as an alias, so that a redis.conf for older servers serves.
/// It is taken where RedisBloom of Redis 8 is loaded too; and with the load-time argument `commands lc` it is
/// left to whoever is loaded later.
fn names_of(name: &'static CStr, may_be_bare: bool) -> Vec<(CString, u32)> {
    let mut names = Vec::with_capacity(2);
    if may_be_bare && is_unprefixed(name) {
        let text = name.to_string_lossy();
        let aliased = CString::new(format!("{text}|rollcall.{text}")).unwrap_or_default();
        names.push((aliased, raw::REDISMODULE_CONFIG_UNPREFIXED));
    }
    names.push((name.to_owned(), 0));
    names
}

/// Registers every option, then lets the server set them from redis.conf, or to what they begin with. False,
/// with a line in the log, if it refuses one.
pub fn register(ctx: Ctx) -> bool {
    let are_ours = COMMANDS.initial.load(Ordering::Relaxed) == 0;
    let may_be_bare = facts::is_redis_8() && are_ours;
    let mut registered = true;
    for option in WHOLE {
        let data = (&raw const *option).cast_mut().cast::<c_void>();
        let initial = option.initial.load(Ordering::Relaxed);
        // SAFETY: names end with NUL; the option is static; the callbacks take it back as what it is.
        registered &= OK
            == unsafe {
                api!(RedisModule_RegisterNumericConfig(
                    ctx.as_ptr(),
                    option.name.as_ptr(),
                    initial,
                    option.flags,
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
        registered &=
            names_of(option.name, may_be_bare).iter().any(|(name, flag)| register_text(ctx, option, name, *flag));
    }
    if may_be_bare {
        for option in &CUCKOO {
            // Who else has the name may keep it.
            let (name, flag) = &names_of(option.name, may_be_bare)[0];
            register_text(ctx, option, name, *flag);
        }
    }
    for option in CHOICE {
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
                    option.flags,
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

/// Registers an option under `name`. False if another module has the name.
fn register_text(ctx: Ctx, option: &'static Text, name: &CStr, flag: u32) -> bool {
    let flags: c_uint = option.flags | flag;
    let data = (&raw const *option).cast_mut().cast::<c_void>();
    let initial = CString::new(option.print(option.initial.load(Ordering::Relaxed))).unwrap_or_default();
    // SAFETY: name and default end with NUL, and the server copies both; the option is static; the callbacks take it
    // back as what it is.
    OK == unsafe {
        api!(RedisModule_RegisterStringConfig(
            ctx.as_ptr(),
            name.as_ptr(),
            initial.as_ptr(),
            flags,
            Some(get_text),
            Some(set_text),
            None,
            data
        ))
    }
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
                    let before = option.value.swap(bits, Ordering::Relaxed);
                    if matches!(option.kind, Kind::CuckooWhole { .. }) && bits != before {
                        log_anywhere(
                            LogLevel::Notice,
                            &super::arguments::ignored(option.name.to_bytes(), &option.print(bits)),
                        );
                    }
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
    fn rates_keep_to_their_ranges() {
        for text in ["0", "1", "-0.5", "nan", "inf", "1e400", "", "0.1x"] {
            assert!(BF_ERROR_RATE.parse(text.as_bytes()).is_err(), "{text}");
        }
        for rate in [0.5, 1e-300, 0.999_999_999_999] {
            let bits = BF_ERROR_RATE.parse(format!("{rate:?}").as_bytes()).unwrap();
            assert_eq!(BF_ERROR_RATE.parse(BF_ERROR_RATE.print(bits).as_bytes()), Ok(bits));
        }
        assert_eq!(
            BF_ERROR_RATE.parse(b"1").unwrap_err(),
            "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"
        );
        assert_eq!(BF_ERROR_RATE.parse(b"nan").unwrap_err(), "Invalid value for `bf-error-rate`");
        assert!(LC_ERROR_RATE.parse(b"0.0009").is_err());
        assert!(LC_ERROR_RATE.parse(b"0.25").is_ok());
    }
    #[test]
    fn whole_numbers_keep_to_their_ranges() {
        assert_eq!(BF_INITIAL_SIZE.parse(b"1099511627776"), Ok(1 << 40));
        for text in ["0", "-1", "1099511627777", "9223372036854775807"] {
            let why = BF_INITIAL_SIZE.parse(text.as_bytes()).unwrap_err();
            assert_eq!(why, "Value for `bf-initial-size` must be in the range [1, 1099511627776]", "{text}");
        }
        for text in ["", "-", "+5", "abc", "1.5", "1e3", "0x10", " 5", "9223372036854775808"] {
            let why = BF_INITIAL_SIZE.parse(text.as_bytes()).unwrap_err();
            assert_eq!(why, "Invalid value for `bf-initial-size`", "{text}");
        }
    }
}
