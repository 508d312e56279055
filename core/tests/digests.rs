//! Tests that digests depend on everything that is stored: in a value of every kind, every bit of every stored field is
//! changed, one at a time.

use std::collections::BTreeSet;

use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::live::Value;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::checksum;
use rollcall_core::unstable::persist::Partial;
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::values::{
    counter, counter_with_window, cut_after, digest_of as digest, filter, payload_of, windowed, windowed_counter,
};

/// The strings that a digest is made of.
type Digest = Vec<Vec<u8>>;

fn digest_of_loading<L: Partial>(loading: &L) -> Digest {
    let mut digest = Vec::new();
    loading.digest(&mut |bytes| digest.push(bytes.to_vec()));
    digest
}

/// The stored form of a value: its header and its payload.
fn stored<T: Value>(value: &T) -> (Vec<u8>, Vec<u8>) {
    (value.header(), payload_of(value))
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

/// Changes every bit of a stored value, one at a time. If the result can be loaded, its digest must differ exactly if
/// its stored form differs. `fixed` is the number of bytes that cannot change alone, such as those of a kind and of
/// lengths, and those that follow from others.
#[track_caller]
fn check<T: Value>(name: &str, value: &T, is_checked: bool, fixed: usize) {
    let mut changed = Changed::of(value, is_checked);
    let (before, bytes) = (digest(value), stored(value));
    let (again, loading_before) = changed.load::<T>().expect("the value itself");
    assert!(digest(&again) == before, "{name}: a value that was read has the digest of the one that was written");
    let end = changed.header.len() + changed.payload.len();
    let mut never = Vec::new();
    // Of many slots, members or bits, only some bytes are changed.
    for at in (0..end).filter(|at| *at < 80 || at % (1 + end / 64) == 0) {
        let mut has_another = false;
        for bit in 0..8 {
            changed.flip(at, bit);
            if let Some((other, partial)) = changed.load::<T>() {
                let is_other = stored(&other) != bytes;
                assert_eq!(digest(&other) != before, is_other, "{name}: bit {bit} of byte {at}");
                // The partial value has received everything except the last byte, so it includes the changed one.
                if at + 1 < end {
                    assert_eq!(partial.is_some(), loading_before.is_some());
                    assert!(partial.is_none() || partial != loading_before, "{name}, partial: byte {at}");
                }
                has_another |= is_other;
            }
            changed.flip(at, bit);
        }
        if !has_another {
            never.push(at);
        }
    }
    assert_eq!(never.len(), fixed, "{name}: {never:?} of {end}");
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
    for (name, capacity, expansion, items, fixed) in
        [("one", 10, 2, 10, 9), ("a chain", 10, 2, 40, 17), ("nonscaling", 20, 0, 20, 9), ("apart", 300, 2, 400, 15)]
    {
        check(name, &filter(params(capacity, expansion), BitLayout::Lines, items), true, fixed);
    }
}

#[test]
fn filters_with_windows() {
    let time = |clock_source, refresh| Windowing::new(86_400, 4, clock_source, refresh).unwrap();
    for (name, params, windowing, items, fixed) in [
        ("system clock", params(100, 2), time(ClockSource::System, false), &[10, 20, 0, 70, 5][..], 29),
        ("manual clock", params(100, 2), time(ClockSource::Manual, true), &[10, 20, 5], 22),
        ("of one slice", params(10, 2), time(ClockSource::System, false), &[0, 0, 0, 2], 11),
        ("apart", params(1_000, 2), time(ClockSource::System, false), &[300, 0, 200], 20),
    ] {
        check(name, &windowed(params, windowing, items), true, fixed);
    }
}

#[test]
fn classic_filters() {
    let made = |capacity, expansion, items| {
        filter(bloom::Params { seed: 0, ..params(capacity, expansion) }, BitLayout::Classic, items)
    };
    for (name, capacity, expansion, items, fixed) in
        [("one", 20, 2, 10, 44), ("a chain", 20, 2, 70, 59), ("nonscaling", 20, 0, 20, 45)]
    {
        check(name, &made(capacity, expansion, items), false, fixed);
    }
    // The number of items is the sum over the sub-filters, so two fields change together: both begin with the item bit.
    let filter = made(20, 2, 10);
    let mut changed = Changed::of(&filter, false);
    [0, 36].into_iter().for_each(|at| changed.flip(at, 0));
    let (other, _) = changed.load::<BloomFilter>().expect("another number of items");
    assert_eq!(other.num_items(), 11);
    assert!(digest(&other) != digest(&filter));
}

#[track_caller]
fn check_counter(counter: &Counter, is_exact: bool, fixed: usize) {
    assert_eq!(counter.is_exact(), is_exact);
    check(if is_exact { "exact" } else { "estimate" }, counter, true, fixed);
}

#[test]
fn counters() {
    check_counter(&counter(0.01, 250, 20), true, 4);
    check_counter(&counter(0.005, 10, 40), false, 11);
    check_counter(&counter(0.1, 0, 400), false, 74);
}

#[test]
fn counters_with_windows() {
    let of = |error_rate, exact_limit, slices, clock_source, members: &[u32]| {
        let params = counting::Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 };
        // With slices of ten seconds, a window that is a second longer or shorter has the same number of slices.
        let window = Window::new(10 * u64::from(slices), slices, Counter::MAX_SLICES, clock_source).unwrap();
        counter_with_window(params, window, members)
    };
    check_counter(&of(0.01, 250, 12, ClockSource::System, &[5, 0, 10, 5]), true, 4);
    check_counter(&of(0.01, 250, 24, ClockSource::Manual, &[5, 0, 10, 5]), true, 5);
    check_counter(&of(0.01, 5, 14, ClockSource::Manual, &[5, 10, 15]), false, 12);
    check_counter(&of(0.1, 0, 12, ClockSource::System, &[600, 0, 300, 900]), false, 22);
    check_counter(&of(0.1, 0, 24, ClockSource::System, &[600, 0, 300, 900]), false, 22);
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
fn digests_of_partial_loads_differ_by_length() {
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
