//! A table of the module's options, each with its name, range, default and current value.
//!
//! Each option is an argument of `loadmodule`, a parameter of `CONFIG SET` and a line of redis.conf. An argument
//! replaces the default, and a line of redis.conf overrides the argument. So a value that `CONFIG REWRITE` writes
//! survives a restart.

use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rollcall_core::{bloom, counting};

use SettingKind::{Bytes, BytesOrZero, Choice, FilterRate, FilterWhole, Rate, Seed, Whole};

use crate::command_error::quoted;
use crate::number::{parse_bytes, parse_canonical, parse_number, parse_unsigned};
use crate::server::ffi::{NOTICE, OwnedString, WARNING, log_anywhere};
use crate::server::pages::huge;

/// How an option's value is parsed, and how it is stored in 64 bits.
#[derive(Clone, Copy)]
pub enum SettingKind {
    /// A whole number.
    Whole { min: i64, max: i64 },
    /// A number of bytes, which may have a unit such as `mb`.
    Bytes { min: i64, max: i64 },
    /// Like [`Self::Bytes`]; with 0, the module chooses the number.
    BytesOrZero { min: i64, max: i64 },
    /// One of the `words`, stored as its index.
    Choice { words: &'static [&'static str] },
    /// Any `u64`.
    Seed,
    /// A rate, stored as the bits of an `f64`.
    Rate { min: f64, max: f64 },
    /// The error rate of filters, stored as the bits of an `f64`. RedisBloom has this option too.
    FilterRate,
    /// A whole number for an option that RedisBloom has too.
    FilterWhole { min: i64, max: i64 },
}

/// An option of the module, with its current value.
pub struct Setting {
    pub name: &'static CStr,
    pub kind: SettingKind,
    /// Whether the option cannot change after the module has been loaded.
    pub is_fixed: bool,
    /// Called before the option is set to a value. The error is the reason why the value is rejected.
    before_set: fn(&Setting, u64) -> Result<(), String>,
    default: u64,
    value: AtomicU64,
    /// The string that the last `CONFIG GET` returned, which the server does not free.
    pub shown: Mutex<Option<OwnedString>>,
}

impl Setting {
    const fn new(name: &'static CStr, kind: SettingKind, default: u64) -> Self {
        let (before_set, value): (fn(&_, _) -> _, _) = (|_, _| Ok(()), AtomicU64::new(default));
        Setting { name, kind, is_fixed: false, before_set, default, value, shown: Mutex::new(None) }
    }

    const fn fixed(mut self) -> Self {
        self.is_fixed = true;
        self
    }

    const fn before_set(mut self, before_set: fn(&Setting, u64) -> Result<(), String>) -> Self {
        self.before_set = before_set;
        self
    }

    /// The current value as 64 bits, encoded as [`SettingKind`] says.
    pub fn bits(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Parses a value and sets the option to it.
    ///
    /// # Errors
    /// The reason why the value is rejected.
    pub fn set(&self, text: &[u8]) -> Result<(), String> {
        let bits = self.parse(text)?;
        (self.before_set)(self, bits)?;
        self.value.store(bits, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the value until the server sets the option: the argument of `loadmodule`, or with `None` the default.
    pub fn begin_with(&self, argument: Option<u64>) {
        self.value.store(argument.unwrap_or(self.default), Ordering::Relaxed);
    }

    /// Whether Redis 8 has this option too, without the prefix `rollcall.`.
    pub fn is_unprefixed(&self) -> bool {
        matches!(self.kind, FilterRate | FilterWhole { .. })
    }

    /// Parses a value of the option.
    ///
    /// # Errors
    /// A text with the expected and the given values.
    pub fn parse(&self, text: &[u8]) -> Result<u64, String> {
        let expected = |what: String| format!("expected {what}, got {}", quoted(text));
        let whole = |number: Option<u64>, min, max, also: &str| {
            let in_range = |&number: &u64| i64::try_from(number).is_ok_and(|number| (min..=max).contains(&number));
            number.filter(in_range).ok_or_else(|| expected(format!("{also}a whole number from {min} to {max}")))
        };
        match self.kind {
            Whole { min, max } => whole(parse_unsigned(text), min, max, ""),
            Bytes { min, max } => whole(parse_bytes(text), min, max, ""),
            BytesOrZero { .. } if parse_bytes(text) == Some(0) => Ok(0),
            BytesOrZero { min, max } => whole(parse_bytes(text), min, max, "0, or "),
            Choice { words } => {
                let chosen = words.iter().position(|word| text.eq_ignore_ascii_case(word.as_bytes()));
                let (last, others) = words.split_last().unwrap_or((&"", &[]));
                chosen.map(|index| index as u64).ok_or_else(|| expected(format!("{} or {last}", others.join(", "))))
            }
            Seed => parse_unsigned(text).ok_or_else(|| expected("a number from 0 to 2^64-1".to_owned())),
            Rate { min, max } => {
                let rate = parse_number(text).filter(|rate| (min..=max).contains(rate));
                rate.map(f64::to_bits).ok_or_else(|| expected(format!("a number from {min} to {max}")))
            }
            FilterRate => {
                let rate = parse_number(text).ok_or_else(|| self.invalid(&expected("a number".to_owned())))?;
                let in_range = rate > 0.0 && rate < 1.0;
                if in_range { Ok(rate.to_bits()) } else { Err(self.out_of_range("(0.000000, 1.000000)")) }
            }
            FilterWhole { min, max } => {
                let whole =
                    parse_canonical(text).ok_or_else(|| self.invalid(&expected("a whole number".to_owned())))?;
                let in_range = (min..=max).contains(&whole);
                if in_range { Ok(whole.unsigned_abs()) } else { Err(self.out_of_range(&format!("[{min}, {max}]"))) }
            }
        }
    }

    // The texts begin as those of Redis 8, because tools may match on them.

    fn invalid(&self, why: &str) -> String {
        format!("Invalid value for `{}`: {why}", self.name.to_string_lossy())
    }

    fn out_of_range(&self, range: &str) -> String {
        format!("Value for `{}` must be in the range {range}", self.name.to_string_lossy())
    }

    /// The value as `CONFIG GET` shows it.
    pub fn print(&self, bits: u64) -> String {
        match self.kind {
            Rate { .. } | FilterRate => format!("{:?}", f64::from_bits(bits)),
            Choice { words } => words.get(bits as usize).map_or(String::new(), ToString::to_string),
            _ => bits.to_string(),
        }
    }
}

/// Declares the options, and the list of them all.
macro_rules! settings {
    ($($name:ident: $setting:expr;)+) => {
        $(static $name: Setting = $setting;)+
        pub static ALL: &[&Setting] = &[$(&$name),+];
    };
}

settings! {
    // The server sets options in this order, and `bf-layout` depends on `commands`.
    COMMANDS: Setting::new(c"commands", Choice { words: &Commands::WORDS }, Commands::All as u64).fixed();
    BF_ERROR_RATE: Setting::new(c"bf-error-rate", FilterRate, 0.01f64.to_bits());
    BF_CAPACITY: Setting::new(c"bf-initial-size", FilterWhole { min: 1, max: bloom::Params::MAX_CAPACITY as i64 }, 100);
    BF_EXPANSION: Setting::new(
        c"bf-expansion-factor",
        FilterWhole { min: 0, max: bloom::Params::MAX_EXPANSION as i64 },
        2,
    );
    BF_LAYOUT: Setting::new(c"bf-layout", Choice { words: &["lines", "classic"] }, 0)
        .before_set(|_, bits| match (layout_of(bits), commands()) {
            (bloom::BitLayout::Classic, Commands::Beside) => {
                Err("bf-layout classic does not go with commands beside: RF.* have filters of layout lines".to_owned())
            }
            _ => Ok(()),
        });
    LC_ERROR_RATE: Setting::new(
        c"lc-error-rate",
        Rate { min: counting::Params::MIN_ERROR_RATE, max: counting::Params::MAX_ERROR_RATE },
        0.01f64.to_bits(),
    );
    LC_EXACT: Setting::new(c"lc-exact-limit", Whole { min: 0, max: counting::Params::MAX_EXACT_LIMIT as i64 }, 250);
    LC_EXACT_BYTES: Setting::new(
        c"lc-exact-bytes",
        Bytes { min: 1, max: counting::Params::MAX_EXACT_BYTES as i64 },
        counting::Params::DEFAULT_EXACT_BYTES as u64,
    );
    AUTO_CREATE: Setting::new(c"auto-create", Choice { words: &["yes", "no"] }, 0);
    MAX_KEY_BYTES: Setting::new(c"max-key-bytes", BytesOrZero { min: 1 << 20, max: i64::MAX }, 0);
    HUGE_PAGES: Setting::new(c"huge-pages", Choice { words: &["no", "yes"] }, 0).before_set(|_, bits| {
        huge::set(bits == 1);
        let state = huge::state();
        if bits == 1 && state != "yes" {
            let why = format!("huge-pages yes has no effect: {state}; see \"huge-pages\" in docs/configuration.md");
            log_anywhere(WARNING, &why);
        }
        Ok(())
    });
    HASH_SEED: Setting::new(c"hash-seed", Seed, 0).fixed();
}

/// The option `commands`: which commands this module registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Commands {
    /// BF.*, RF.* and LC.*.
    All,
    /// RF.* and LC.*, while another module owns BF.* and its data type.
    Beside,
    /// Only LC.*.
    Lc,
}

impl Commands {
    const WORDS: [&str; 3] = ["all", "beside", "lc"];

    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// The options of Redis 8 for cuckoo filters, without effect, so that a redis.conf of Redis 8 works unchanged.
pub static CUCKOO: [Setting; 5] = [
    cuckoo(c"cf-bucket-size", 1, 255, 2),
    cuckoo(c"cf-initial-size", 2, 1 << 30, 1024),
    cuckoo(c"cf-max-iterations", 1, 65_535, 20),
    cuckoo(c"cf-expansion-factor", 0, 32_768, 1),
    cuckoo(c"cf-max-expansions", 1, 65_536, 32),
];

const fn cuckoo(name: &'static CStr, min: i64, max: i64, default: u64) -> Setting {
    Setting::new(name, FilterWhole { min, max }, default).before_set(|option, bits| {
        if bits != option.bits() {
            log_anywhere(NOTICE, &ignored(option.name.to_bytes(), &option.print(bits)));
        }
        Ok(())
    })
}

/// The log line about an ignored option for cuckoo filters.
pub(super) fn ignored(name: &[u8], value: &str) -> String {
    format!("{} {value} is for cuckoo filters, which this module has not: ignored", name.escape_ascii())
}

pub fn bloom_defaults() -> bloom::Params {
    bloom::Params {
        error_rate: f64::from_bits(BF_ERROR_RATE.bits()),
        capacity: BF_CAPACITY.bits(),
        expansion: BF_EXPANSION.bits() as u32,
        seed: HASH_SEED.bits(),
    }
}

fn layout_of(bits: u64) -> bloom::BitLayout {
    if bits == 0 { bloom::BitLayout::Lines } else { bloom::BitLayout::Classic }
}

/// The layout of a filter that a BF.* command creates without the option `LAYOUT`.
pub fn bloom_layout() -> bloom::BitLayout {
    layout_of(BF_LAYOUT.bits())
}

pub fn counting_defaults() -> counting::Params {
    counting::Params {
        error_rate: f64::from_bits(LC_ERROR_RATE.bits()),
        exact_limit: LC_EXACT.bits() as u32,
        exact_bytes: LC_EXACT_BYTES.bits() as u32,
        seed: HASH_SEED.bits(),
    }
}

/// Whether a client's `ADD` and `MADD` create a missing key.
pub fn auto_create() -> bool {
    AUTO_CREATE.bits() == 0
}

/// The largest size of a value in bytes if `max-key-bytes` is automatic and `maxmemory` is set.
const MAX_KEY_BYTES_OF_BOUNDED: u64 = 4 << 30;
/// The largest size of a value in bytes if `max-key-bytes` is automatic and `maxmemory` is not set: that of the
/// server's largest string.
const MAX_KEY_BYTES_OF_UNBOUNDED: u64 = 512 << 20;

/// The largest allowed size of a value in bytes. `has_maxmemory` says whether `maxmemory` is set.
pub fn max_key_bytes(has_maxmemory: bool) -> u64 {
    match MAX_KEY_BYTES.bits() {
        0 if has_maxmemory => MAX_KEY_BYTES_OF_BOUNDED,
        0 => MAX_KEY_BYTES_OF_UNBOUNDED,
        bytes => bytes,
    }
}

/// Which commands this module registers.
pub fn commands() -> Commands {
    let is_set = |commands: &Commands| *commands as u64 == COMMANDS.bits();
    [Commands::All, Commands::Beside].into_iter().find(is_set).unwrap_or(Commands::Lc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_library() {
        let seedless = bloom::Params { seed: 0, ..bloom_defaults() };
        assert_eq!(seedless, bloom::Params::default());
        let seedless = counting::Params { seed: 0, ..counting_defaults() };
        assert_eq!(seedless, counting::Params::default());
    }
}
