//! The fields of `BF.INFO` and `LC.INFO`, also for `COMMAND DOCS` and for the command-line tool.

use std::cell::OnceCell;
use std::ffi::CStr;

use crate::bloom::Present;
use crate::counting::{Counter, Estimated, View};
use crate::live::Value;
use crate::window::{ClockSource, Time, Window};

/// A field of the reply to `BF.INFO` or `LC.INFO`.
#[derive(Debug)]
pub struct InfoField<F> {
    /// The label before the value in the full reply.
    pub label: &'static str,
    /// The argument that selects this field.
    pub word: &'static CStr,
    /// `word` in lower case.
    pub name: &'static CStr,
    /// Computes the value of the field.
    pub of: F,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field {
    /// A number or a size.
    Integer(u64),
    /// A number with a fraction, such as a rate.
    Double(f64),
    /// A text of one word.
    Text(&'static str),
    /// There is no value, for example no window length for a filter without a window.
    Null,
}

/// A counter at a given time.
#[derive(Debug)]
pub struct CounterAt<'a> {
    counter: &'a Counter,
    present: View<'a>,
    estimated: OnceCell<Estimated>,
    time: Time,
}

impl<'a> CounterAt<'a> {
    /// The counter at this time.
    pub fn new(counter: &'a Counter, time: Time) -> Self {
        CounterAt { counter, present: counter.at(time), estimated: OnceCell::new(), time }
    }

    /// The estimated number of members. The bitmap of an estimating counter is read for it at most once.
    fn estimated(&self) -> &Estimated {
        self.estimated.get_or_init(|| self.present.estimated())
    }
}

const fn field<F: Copy>(label: &'static str, word: &'static CStr, name: &'static CStr, of: F) -> InfoField<F> {
    InfoField { label, word, name, of }
}

type OfFilter = fn(&Present<'_>) -> Field;
type OfCounter = fn(&CounterAt<'_>) -> Field;

/// The number of fields in the reply of `BF.INFO` without a field name. Clients expect exactly five, so the others must
/// be requested by name.
pub const FILTER_FIELDS_SHOWN: usize = 5;

/// The fields of filters, in the order of the reply.
pub static OF_FILTERS: [InfoField<OfFilter>; 15] = [
    field("Capacity", c"CAPACITY", c"capacity", |at| Field::Integer(at.filter.capacity())),
    field("Size", c"SIZE", c"size", |at| Field::Integer(at.filter.size_bytes())),
    field("Number of filters", c"FILTERS", c"filters", |at| Field::Integer(at.filter.sub_filters().len() as u64)),
    field("Number of items inserted", c"ITEMS", c"items", |at| Field::Integer(at.num_items())),
    field("Expansion rate", c"EXPANSION", c"expansion", |at| match at.filter.params().expansion {
        0 => Field::Null,
        expansion => Field::Integer(u64::from(expansion)),
    }),
    field("Error rate", c"ERROR", c"error", |at| Field::Double(at.filter.params().error_rate)),
    field("False positive rate", c"FPR", c"fpr", |at| Field::Double(at.false_positive_rate())),
    field("Fill ratio", c"FILL", c"fill", |at| Field::Double(at.fill_ratio())),
    field("Layout", c"LAYOUT", c"layout", |at| Field::Text(at.filter.layout().name())),
    field("Window", c"WINDOW", c"window", |at| number(at.filter.window().map(Window::seconds))),
    field("Slices", c"SLICES", c"slices", |at| number(at.filter.window().map(Window::slices))),
    field("Slice", c"SLICE", c"slice", |at| number(at.filter.newest_slice().map(|newest| newest + at.slices_later))),
    field("Clock", c"CLOCK", c"clock", |at| clock_source(at.filter.window())),
    field("Volatile", c"VOLATILE", c"volatile", |at| number(at.filter.window().map(Window::is_volatile))),
    field("Refresh", c"REFRESH", c"refresh", |at| number(at.filter.windowing().map(|windowing| windowing.refresh))),
];

/// The fields of counters, in the order of the reply.
pub static OF_COUNTERS: [InfoField<OfCounter>; 12] = [
    field("Error rate", c"ERROR", c"error", |at| Field::Double(at.counter.params().error_rate)),
    field("Exact limit", c"EXACT", c"exact", |at| Field::Integer(at.counter.params().exact_limit.into())),
    field("Exact bytes", c"BYTES", c"bytes", |at| Field::Integer(at.counter.params().exact_bytes.into())),
    field("Mode", c"MODE", c"mode", |at| Field::Text(if at.present.members().is_ok() { "exact" } else { "estimate" })),
    field("Size", c"SIZE", c"size", |at| Field::Integer(at.counter.size_bytes())),
    field("Count", c"COUNT", c"count", |at| Field::Integer(at.estimated().count())),
    field("Standard error", c"STDERR", c"stderr", |at| Field::Double(at.estimated().relative_error())),
    field("Window", c"WINDOW", c"window", |at| number(at.counter.window().map(Window::seconds))),
    field("Slices", c"SLICES", c"slices", |at| number(at.counter.window().map(Window::slices))),
    field("Slice", c"SLICE", c"slice", |at| number(at.counter.present_slice(at.time))),
    field("Clock", c"CLOCK", c"clock", |at| clock_source(at.counter.window())),
    field("Volatile", c"VOLATILE", c"volatile", |at| number(at.counter.window().map(Window::is_volatile))),
];

fn number(number: Option<impl Into<u64>>) -> Field {
    number.map_or(Field::Null, |number| Field::Integer(number.into()))
}

fn clock_source(window: Option<&Window>) -> Field {
    window.map_or(Field::Null, |window| match window.clock_source() {
        ClockSource::System => Field::Text("system"),
        ClockSource::Manual => Field::Text("manual"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Params;
    use crate::size_limit::Unlimited;

    /// The mode was `estimate`, although the list of members was exact, until a write dropped the expired members.
    #[test]
    fn a_counter_whose_members_have_expired_is_exact_again() {
        let mode_of = |exact_limit| {
            let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::System).unwrap();
            let params = Params { exact_limit, ..Params::default() };
            let mut counter = Counter::new(params).unwrap().with_window(window, 100).unwrap();
            counter.live(Time::At(1000)).add_all(&["a", "b"], &Unlimited, drop).unwrap();
            let mode = |time| (OF_COUNTERS[3].of)(&CounterAt::new(&counter, Time::At(time)));
            [mode(1000), mode(1050)]
        };
        let [exact, estimate] = ["exact", "estimate"].map(Field::Text);
        assert_eq!([0, 1, 2].map(mode_of), [[estimate, estimate], [estimate, exact], [exact, exact]]);
    }
}
