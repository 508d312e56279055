//! `INFO` of a key: the fields of both families, one table each, as the command replies them and `COMMAND DOCS` lists them.

use std::ffi::CStr;

use rollcall_core::bloom::{BloomFilter, Present, Sliding};
use rollcall_core::counting::Counter;
use rollcall_core::live::Windowed;
use rollcall_core::unstable::counting::Shaped;
use rollcall_core::window::{ClockSource, Time, Window};

use super::table::argument::{Argument, choice};
use crate::refusal::{Refusal, quoted};
use crate::reply::{self, Field};
use crate::server::ffi::{Args, Ctx};

/// A field: its label (a simple string, as in RedisBloom), the word that asks for it alone, that word in small letters, and
/// its value.
pub struct InfoField<F> {
    label: &'static str,
    word: &'static CStr,
    name: &'static CStr,
    of: F,
}

macro_rules! field {
    ($label:literal, $word:literal, $name:literal, $of:expr) => {
        InfoField { label: $label, word: $word, name: $name, of: $of }
    };
}

/// A filter, as it is at a time.
pub struct FilterAt<'a> {
    pub filter: &'a BloomFilter,
    pub present: Present<'a>,
    pub time: Time,
}

/// A counter, and what of it counts at a time.
pub struct CounterAt<'a> {
    pub counter: &'a Counter,
    pub present: &'a Counter,
    pub time: Time,
}

type OfFilter = fn(&FilterAt<'_>) -> Field;
type OfCounter = fn(&CounterAt<'_>) -> Field;

/// Fields in the reply of a plain `BF.INFO`. Clients parse exactly five, so the others are replied only by name.
pub const FILTER_FIELDS_SHOWN: usize = 5;

/// Of filters.
pub static OF_FILTERS: [InfoField<OfFilter>; 15] = [
    field!("Capacity", c"CAPACITY", c"capacity", |at| Field::Integer(at.filter.capacity())),
    field!("Size", c"SIZE", c"size", |at| Field::Integer(at.filter.size_bytes())),
    field!("Number of filters", c"FILTERS", c"filters", |at| Field::Integer(at.filter.sub_filters().len() as u64)),
    field!("Number of items inserted", c"ITEMS", c"items", |at| Field::Integer(at.present.num_items())),
    field!("Expansion rate", c"EXPANSION", c"expansion", |at| match at.filter.params().expansion {
        0 => Field::Null,
        expansion => Field::Integer(u64::from(expansion)),
    }),
    field!("Error rate", c"ERROR", c"error", |at| Field::Double(at.filter.params().error_rate)),
    field!("False positive rate", c"FPR", c"fpr", |at| Field::Double(at.present.false_positive_rate())),
    field!("Fill ratio", c"FILL", c"fill", |at| Field::Double(at.present.fill_ratio())),
    field!("Layout", c"LAYOUT", c"layout", |at| Field::Text(at.filter.layout().name())),
    field!("Window", c"WINDOW", c"window", |at| match (at.filter.sliding(), at.filter.window()) {
        (Some(_), None) => Field::Text("last"),
        (_, window) => seconds(window),
    }),
    field!("Slices", c"SLICES", c"slices", |at| number(at.filter.sliding().and_then(Sliding::slices).map(u64::from))),
    field!("Slice", c"SLICE", c"slice", |at| slice(at.filter, at.time)),
    field!("Clock", c"CLOCK", c"clock", |at| clock_source(at.filter.window())),
    field!("Volatile", c"VOLATILE", c"volatile", |at| is_volatile(at.filter.window())),
    field!("Refresh", c"REFRESH", c"refresh", |at| number(at.filter.sliding().map(|sliding| sliding.refresh.into()))),
];

/// Of counters.
pub static OF_COUNTERS: [InfoField<OfCounter>; 18] = [
    field!("Capacity", c"CAPACITY", c"capacity", |at| Field::Integer(at.counter.params().capacity)),
    field!("Error rate", c"ERROR", c"error", |at| Field::Double(at.counter.params().error_rate)),
    field!("Exact limit", c"EXACT", c"exact", |at| Field::Integer(at.counter.params().exact_limit.into())),
    field!("Exact bytes", c"BYTES", c"bytes", |at| Field::Integer(at.counter.params().exact_bytes.into())),
    field!("Mode", c"MODE", c"mode", |at| Field::Text(if at.counter.is_exact() { "exact" } else { "estimate" })),
    field!("Representation", c"REPRESENTATION", c"representation", |at| {
        Field::Text(at.counter.representation().name())
    }),
    field!("Size", c"SIZE", c"size", |at| Field::Integer(at.counter.size_bytes())),
    field!("Count", c"COUNT", c"count", |at| Field::Integer(at.present.count())),
    field!("Standard error", c"STDERR", c"stderr", |at| Field::Double(at.present.standard_error())),
    field!("Bits", c"BITS", c"bits", |at| Field::Integer(at.counter.num_bits())),
    field!("Bits set", c"BITSSET", c"bitsset", |at| Field::Integer(at.present.set_bits())),
    field!("Precision", c"PRECISION", c"precision", |at| Field::Integer(at.counter.layout().precision().into())),
    field!("Tail bits", c"TAIL", c"tail", |at| Field::Integer(at.counter.layout().tail_bits().into())),
    field!("Window", c"WINDOW", c"window", |at| seconds(at.counter.window())),
    field!("Slices", c"SLICES", c"slices", |at| number(at.counter.window().map(|window| window.slices().into()))),
    field!("Slice", c"SLICE", c"slice", |at| slice(at.counter, at.time)),
    field!("Clock", c"CLOCK", c"clock", |at| clock_source(at.counter.window())),
    field!("Volatile", c"VOLATILE", c"volatile", |at| is_volatile(at.counter.window())),
];

/// The words of a table, for `COMMAND DOCS`.
pub const fn choices<F, const N: usize>(fields: &[InfoField<F>; N]) -> [Argument; N] {
    let mut all = [const { choice(c"", c"") }; N];
    let mut at = 0;
    while at < N {
        all[at] = choice(fields[at].word, fields[at].name);
        at += 1;
    }
    all
}

/// `INFO key [field]`: the first `shown` fields, or the one that is asked for, by its word or its label.
/// `value_of` calls a function of the table.
pub fn info<F: Copy>(
    ctx: Ctx,
    args: Args<'_>,
    fields: &[InfoField<F>],
    shown: usize,
    value_of: impl Fn(F) -> Field,
) -> Result<(), Refusal> {
    if args.len() == 2 {
        reply::info_all(ctx, fields[..shown].iter().map(|field| (field.label, value_of(field.of))));
        return Ok(());
    }
    let asked = args.get(2).bytes();
    let is_asked = |name: &[u8]| asked.eq_ignore_ascii_case(name);
    let found = fields.iter().find(|field| is_asked(field.word.to_bytes()) || is_asked(field.label.as_bytes()));
    let Some(field) = found else {
        let words: Vec<_> = fields.iter().map(|field| field.word.to_str().unwrap_or_default()).collect();
        return Err(Refusal::NoSuchField { expected: words.join(", "), got: quoted(asked) });
    };
    reply::info_field(ctx, field.label, &value_of(field.of));
    Ok(())
}

fn number(number: Option<u64>) -> Field {
    number.map_or(Field::Null, Field::Integer)
}

fn seconds(window: Option<&Window>) -> Field {
    number(window.map(|window| window.seconds()))
}

/// The present slice of a value with a window of time.
fn slice<T: Windowed>(value: &T, time: Time) -> Field {
    number(value.window().and_then(|_| value.present_slice(time)))
}

fn is_volatile(window: Option<&Window>) -> Field {
    number(window.map(|window| window.is_volatile().into()))
}

fn clock_source(window: Option<&Window>) -> Field {
    window.map_or(Field::Null, |window| match window.clock_source() {
        ClockSource::System => Field::Text("system"),
        ClockSource::Manual => Field::Text("manual"),
    })
}
