//! Tests that digests depend on everything that is stored: in a value of every kind, every bit of every stored field is
//! changed, one at a time.
//!
//! The layouts of the headers are those of docs/persistence.md.

use std::collections::BTreeSet;
use std::ops::Range;

use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::live::Value;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::hash::checksum;
use rollcall_core::unstable::persist::Partial;
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::values::{counter, cut_after, filter, windowed, windowed_counter};

/// The name of a stored field, and the range of its bytes.
type Field = (&'static str, Range<usize>);

/// The strings that a digest is made of.
type Digest = Vec<Vec<u8>>;

/// Reads a stored value from front to back, and records where its fields are.
struct Layout<'a> {
    bytes: &'a [u8],
    at: usize,
    fields: Vec<Field>,
}

impl<'a> Layout<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Layout { bytes, at: 0, fields: Vec::new() }
    }

    fn bytes(&mut self, name: &'static str, len: usize) {
        self.fields.push((name, self.at..self.at + len));
        self.at += len;
    }

    /// Records a number in varint encoding (seven bits per byte), and returns it.
    fn number(&mut self, name: &'static str) -> usize {
        let len = 1 + self.bytes[self.at..].iter().take_while(|&&byte| byte >= 0x80).count();
        let digits = self.bytes[self.at..self.at + len].iter().rev();
        let number = digits.fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f));
        self.bytes(name, len);
        number
    }

    fn numbers(&mut self, names: &[&'static str]) {
        for name in names {
            self.number(name);
        }
    }

    /// Records a rate: a digit and an exponent, or 0 and eight bytes.
    fn rate(&mut self) {
        self.bytes("rate", if self.bytes[self.at] == 0 { 9 } else { 2 });
    }

    /// Records fields up to the offset `end`, by repeated calls of `record`.
    fn records(&mut self, end: usize, mut record: impl FnMut(&mut Self)) {
        while self.at < end {
            record(self);
        }
    }

    fn sub_filters(&mut self) {
        for _ in 0..self.number("sub-filters") {
            self.numbers(&["lines", "items", "lines an item", "probes a line"]);
        }
    }

    fn params(&mut self) {
        self.bytes("kind", 1);
        self.rate();
        self.numbers(&["capacity", "expansion", "seed"]);
    }

    /// Records the form of the payload, and the payload as bits.
    fn bits(mut self, end: usize) -> Vec<Field> {
        self.bytes("form", 1);
        self.bytes("bits", end - self.at);
        self.fields
    }

    fn of_lines(bytes: &'a [u8]) -> Vec<Field> {
        let mut layout = Layout::of(bytes);
        layout.params();
        layout.sub_filters();
        layout.bits(bytes.len())
    }

    fn of_windowed(bytes: &'a [u8]) -> Vec<Field> {
        let mut layout = Layout::of(bytes);
        layout.params();
        layout.number("window");
        layout.number("slices");
        layout.bytes("flags", 1);
        layout.number("newest slice");
        for _ in 0..layout.number("generations") {
            layout.number("age");
            layout.number("renewed");
            layout.sub_filters();
        }
        layout.bits(bytes.len())
    }

    fn of_classic(bytes: &'a [u8], sub_filters: usize) -> Vec<Field> {
        let mut layout = Layout::of(bytes);
        for (name, len) in [("items", 8), ("sub-filters", 4), ("options", 4), ("growth", 4)] {
            layout.bytes(name, len);
        }
        for _ in 0..sub_filters {
            let lengths = [8, 8, 8, 8, 8, 4, 8, 1];
            let names = ["bytes", "bits of it", "items of it", "rate", "bits an item", "hashes", "capacity", "n2"];
            names.into_iter().zip(lengths).for_each(|(name, len)| layout.bytes(name, len));
        }
        layout.bytes("bits", bytes.len() - layout.at);
        layout.fields
    }

    fn of_counter(bytes: &'a [u8], counter: &Counter) -> Vec<Field> {
        let mut layout = Layout::of(bytes);
        ["kind", "representation"].into_iter().for_each(|name| layout.bytes(name, 1));
        layout.rate();
        layout.numbers(&["exact limit", "exact bytes", "seed"]);
        let is_windowed = counter.window().is_some();
        if is_windowed {
            layout.number("window");
            ["slices", "clock"].into_iter().for_each(|name| layout.bytes(name, 1));
            layout.number("newest slice");
            layout.bytes("offset", 1);
        } else if !counter.is_exact() {
            layout.number("lower bound");
        }
        if !counter.is_exact() {
            for _ in 0..layout.number("segments") {
                layout.number("marked slots");
            }
        }
        layout.bytes("form", 1);
        layout.records(bytes.len(), |layout| match counter.is_exact() {
            true => {
                if is_windowed {
                    layout.bytes("tag", 1);
                }
                // The members in these tests are stored as texts.
                let len = layout.number("header");
                layout.bytes("member", len);
            }
            false => layout.bytes("slots", bytes.len() - layout.at),
        });
        layout.fields
    }
}

fn digest<T: Value>(value: &T) -> Digest {
    let mut digest = Vec::new();
    value.digest(&mut |bytes| digest.push(bytes.to_vec()));
    digest
}

fn digest_of_loading<L: Partial>(loading: &L) -> Digest {
    let mut digest = Vec::new();
    loading.digest(&mut |bytes| digest.push(bytes.to_vec()));
    digest
}

/// The stored form of a value: its header and its payload.
fn stored<T: Value>(value: &T) -> (Vec<u8>, Vec<u8>) {
    (value.header(), value.payload().pieces(usize::MAX).flat_map(|(_, piece)| piece.into_owned()).collect())
}

/// The stored form of a value, in which bits can be changed.
struct Changed {
    header: Vec<u8>,
    payload: Vec<u8>,
    /// Whether the header ends with a checksum. Only RedisBloom's headers have none.
    is_checked: bool,
}

impl Changed {
    fn of<T: Value>(value: &T, is_checked: bool) -> Self {
        let (mut header, payload) = stored(value);
        if is_checked {
            header.truncate(header.len() - 4);
        }
        Changed { header, payload, is_checked }
    }

    /// The header without its checksum, and the payload.
    fn bytes(&self) -> Vec<u8> {
        [&*self.header, &*self.payload].concat()
    }

    fn flip(&mut self, at: usize, bit: u32) {
        match at.checked_sub(self.header.len()) {
            None => self.header[at] ^= 1 << bit,
            Some(at) => self.payload[at] ^= 1 << bit,
        }
    }

    fn header(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        if self.is_checked {
            header.extend_from_slice(&(checksum(&header, 0) as u32).to_le_bytes());
        }
        header
    }

    /// Loads the changed value. Also returns the digest of the partially loaded value before its last byte, if the
    /// payload is out of line. `None` if the value is rejected.
    fn load<T: Value>(&self) -> Option<(T, Option<Digest>)> {
        let mut loading = T::Partial::begin(&self.header(), &MaxBytes(MOST_BYTES)).ok()?;
        let partial = self.payload.split_last().map(|(last, most)| {
            loading.push(most).ok()?;
            let digest = digest_of_loading(&loading);
            loading.push(&[*last]).ok()?;
            Some(digest)
        });
        if partial == Some(None) {
            return None;
        }
        Some((loading.finish().ok()?, partial.flatten()))
    }
}

/// A set of field names.
type Names = BTreeSet<&'static str>;

/// Changes every bit of every field, one at a time. If the result can be loaded, its digest must differ exactly if its
/// stored form differs. Returns the names of all fields, and of the fields that can change alone.
#[track_caller]
fn check<T: Value>(name: &str, value: &T, is_checked: bool, fields: &[Field]) -> (Names, Names) {
    let mut changed = Changed::of(value, is_checked);
    assert_eq!(fields.last().map(|field| field.1.end), Some(changed.bytes().len()), "{name}: fields are laid out");
    let (before, bytes) = (digest(value), stored(value));
    let (again, loading_before) = changed.load::<T>().expect("the value itself");
    assert!(digest(&again) == before, "{name}: a value that was read has the digest of the one that was written");
    let mut never = BTreeSet::new();
    for (field, range) in fields {
        let mut has_another = false;
        // Of a large bitmap, only some bytes are changed.
        for (at, bit) in range.clone().step_by(1 + range.len() / 128).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            changed.flip(at, bit);
            if let Some((other, partial)) = changed.load::<T>() {
                let is_other = stored(&other) != bytes;
                assert_eq!(digest(&other) != before, is_other, "{name}: {field}, bit {bit} of byte {at}");
                // The partial value has received everything except the last byte, so it includes the changed field.
                if at + 1 < fields.last().map_or(0, |field| field.1.end) {
                    assert_eq!(partial.is_some(), loading_before.is_some());
                    assert!(partial.is_none() || partial != loading_before, "{name}, partial: {field}");
                }
                has_another |= is_other;
            }
            changed.flip(at, bit);
        }
        if !has_another {
            never.insert(*field);
        }
    }
    // A tag, a member, a position or a bit can always change alone.
    assert!(["tag", "member", "position", "bits"].iter().all(|field| !never.contains(field)), "{name}: {never:?}");
    let all: Names = fields.iter().map(|field| field.0).collect();
    let changed = all.difference(&never).copied().collect();
    (all, changed)
}

/// Checks that `fixed` are the fields that cannot change alone in any value. Such fields follow from others, or choose
/// between two forms of one value.
#[track_caller]
fn assert_fixed(checked: impl IntoIterator<Item = (Names, Names)>, fixed: &[&str]) {
    let (mut all, mut changed) = (Names::new(), Names::new());
    for (more, more_changed) in checked {
        all.extend(more);
        changed.extend(more_changed);
    }
    let never: Vec<_> = all.difference(&changed).copied().collect();
    assert_eq!(never, fixed);
}

/// The size limit for a changed value in bytes.
const MOST_BYTES: u64 = 1 << 18;

/// An error rate whose lowest bits do not influence sizes.
const ODD_RATE: f64 = 0.0123;

fn params(capacity: u64, expansion: u32) -> bloom::Params {
    bloom::Params { error_rate: ODD_RATE / 1.1, capacity, expansion, seed: 7 }
}

#[test]
fn filters_of_lines() {
    let kinds = [("one", 10, 2, 10), ("a chain", 10, 2, 40), ("nonscaling", 20, 0, 20), ("apart", 300, 2, 400)];
    let checked = kinds.map(|(name, capacity, expansion, items)| {
        let filter = filter(params(capacity, expansion), BitLayout::Lines, items);
        check(name, &filter, true, &Layout::of_lines(&Changed::of(&filter, true).bytes()))
    });
    assert_fixed(checked, &["form", "kind", "lines", "lines an item", "probes a line", "sub-filters"]);
}

#[test]
fn filters_with_windows() {
    let time = |clock_source, refresh| Windowing::new(86_400, 4, clock_source, refresh).unwrap();
    let kinds = [
        ("system clock", params(100, 2), time(ClockSource::System, false), &[10, 20, 0, 70, 5][..]),
        ("manual clock", params(100, 2), time(ClockSource::Manual, true), &[10, 20, 5]),
        ("of one slice", params(10, 2), time(ClockSource::System, false), &[0, 0, 0, 2]),
        ("apart", params(1_000, 2), time(ClockSource::System, false), &[300, 0, 200]),
    ];
    let checked = kinds.map(|(name, params, windowing, items)| {
        let filter = windowed(params, windowing, items);
        check(name, &filter, true, &Layout::of_windowed(&Changed::of(&filter, true).bytes()))
    });
    let fixed = ["form", "generations", "kind", "lines", "lines an item", "probes a line", "slices", "sub-filters"];
    assert_fixed(checked, &fixed);
}

#[test]
fn classic_filters() {
    let made = |capacity, expansion, items| {
        filter(bloom::Params { seed: 0, ..params(capacity, expansion) }, BitLayout::Classic, items)
    };
    let kinds = [("one", 20, 2, 10), ("a chain", 20, 2, 70), ("nonscaling", 20, 0, 20)];
    let checked = kinds.map(|(name, capacity, expansion, items)| {
        let filter = made(capacity, expansion, items);
        let bytes = Changed::of(&filter, false).bytes();
        check(name, &filter, false, &Layout::of_classic(&bytes, filter.sub_filters().len()))
    });
    assert_fixed(checked, &["bits of it", "bytes", "hashes", "items", "items of it", "sub-filters"]);
    // The number of items is the sum over the sub-filters, so two fields change together.
    let filter = made(20, 2, 10);
    let mut changed = Changed::of(&filter, false);
    let fields = Layout::of_classic(&changed.bytes(), 1);
    for (_, range) in fields.into_iter().filter(|(name, _)| name.starts_with("items")) {
        changed.flip(range.start, 0);
    }
    let (other, _) = changed.load::<BloomFilter>().expect("another number of items");
    assert_eq!(other.num_items(), 11);
    assert!(digest(&other) != digest(&filter));
}

#[track_caller]
fn check_counter(counter: &Counter, is_exact: bool) -> (Names, Names) {
    assert_eq!(counter.is_exact(), is_exact);
    let fields = Layout::of_counter(&Changed::of(counter, true).bytes(), counter);
    check(if is_exact { "exact" } else { "estimate" }, counter, true, &fields)
}

#[test]
fn counters() {
    let checked = [
        check_counter(&counter(0.01, 250, 20), true),
        check_counter(&counter(0.005, 10, 40), false),
        check_counter(&counter(0.1, 0, 400), false),
    ];
    assert_fixed(checked, &["form", "kind", "marked slots", "representation", "segments"]);
}

#[test]
fn counters_with_windows() {
    let of = |error_rate, exact_limit, slices, clock_source, members: &[u32]| {
        let params = counting::Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 };
        // With slices of ten seconds, a window that is a second longer or shorter has the same number of slices.
        let window = Window::new(10 * u64::from(slices), slices, Counter::MAX_SLICES, clock_source).unwrap();
        let mut counter = Counter::new(params).unwrap().with_window(window, 1_000).unwrap();
        for (slice, &count) in (1_000..).zip(members) {
            counter.advance(slice);
            for member in 0..count {
                counter.live(Time::Reached).add(format!("{slice}:{member}:"), &Unlimited).unwrap();
            }
        }
        counter
    };
    let checked = [
        check_counter(&of(0.01, 250, 12, ClockSource::System, &[5, 0, 10, 5]), true),
        check_counter(&of(0.01, 250, 24, ClockSource::Manual, &[5, 0, 10, 5]), true),
        check_counter(&of(0.01, 5, 14, ClockSource::Manual, &[5, 10, 15]), false),
        check_counter(&of(0.1, 0, 12, ClockSource::System, &[600, 0, 300, 900]), false),
        check_counter(&of(0.1, 0, 24, ClockSource::System, &[600, 0, 300, 900]), false),
    ];
    assert_fixed(checked, &["form", "kind", "marked slots", "representation", "segments"]);
}

/// A set has no order, so the digest does not depend on the order of members. But it depends on which member has which
/// tag.
#[test]
fn members_are_digested_in_no_order() {
    let with = |members: &[(u64, &str)]| {
        let mut counter = windowed_counter(
            counting::Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 7 },
            4,
            ClockSource::Manual,
            &[],
        );
        for (slice, member) in members {
            counter.advance(*slice);
            counter.live(Time::Reached).add(member, &Unlimited).unwrap();
        }
        counter
    };
    let base = with(&[(1_001, "ann"), (1_001, "ben"), (1_002, "cy")]);
    assert!(digest(&base) == digest(&with(&[(1_001, "ben"), (1_001, "ann"), (1_002, "cy")])));
    assert!(digest(&base) != digest(&with(&[(1_001, "ann"), (1_001, "cy"), (1_002, "ben")])));
}

/// A partially loaded value has a different digest after each received byte.
#[test]
fn digests_see_how_much_has_arrived() {
    fn check<T: Value>(value: &T) {
        let len = stored(value).1.len() as u64;
        let digests: BTreeSet<Digest> = (0..len).map(|end| digest_of_loading(&cut_after(value, end))).collect();
        assert_eq!(digests.len() as u64, len);
    }
    check(&filter(params(300, 2), BitLayout::Lines, 700));
    check(&filter(bloom::Params { seed: 0, ..params(20, 2) }, BitLayout::Classic, 10));
    check(&windowed(params(1_000, 2), Windowing::new(86_400, 4, ClockSource::System, false).unwrap(), &[300, 0, 200]));
    check::<Counter>(&counter(0.01, 1_000, 100));
    check::<BloomFilter>(&filter(params(3_000, 0), BitLayout::Lines, 0));
}
