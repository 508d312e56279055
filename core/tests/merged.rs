//! Laws of values that travel: members that are split at random, counted apart, sent as payloads and merged in any
//! order give the value that got all of them directly.

use std::collections::BTreeSet;

use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::live::{Live, Value};
use rollcall_core::persist::{from_bytes, to_bytes};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::wire::{TYPE_OF_CLASSIC, TYPE_OF_COUNTERS, TYPE_OF_LINES};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::fields::Field;
use rollcall_fuzz::payload::{Form, encode_as};
use rollcall_fuzz::random::Random;
use rollcall_fuzz::values::{digest_of as digest, payload_of, rdb_of, rdb_of_filter};

/// Error rates with which counters have each of their layouts.
const ERRORS: [f64; 9] = [0.25, 0.03, 0.02, 0.015, 0.01, 0.0075, 0.005, 0.004, 0.0025];

/// The slices in which members are added. A window of twelve keeps all members until they are merged.
const SLICES: std::ops::Range<u64> = 1_000..1_006;

/// The name of a data type, its encoding version, and the fields of a value.
type Saved = (&'static str, u64, Vec<Field>);

fn saved_counter(counter: &Counter) -> Saved {
    (TYPE_OF_COUNTERS, 1, rdb_of(counter))
}

fn saved_filter(filter: &BloomFilter) -> Saved {
    match filter.layout() {
        BitLayout::Lines => (TYPE_OF_LINES, 1, rdb_of(filter)),
        BitLayout::Classic => (TYPE_OF_CLASSIC, 4, rdb_of_filter(filter)),
    }
}

/// The value after it travelled: as the bytes of a file, or as the payload of a server with compression or without.
fn travelled<T: Value>(value: &T, saved: impl Fn(&T) -> Saved, random: &mut Random) -> T {
    let form = *random.of(&[None, Some(Form::Usual), Some(Form::Wide), Some(Form::Compressed)]);
    let (name, encoding, fields) = saved(value);
    let bytes = form.map_or_else(|| to_bytes(value).unwrap(), |form| encode_as(name, encoding, &fields, || form));
    from_bytes(&bytes, &Unlimited).unwrap()
}

fn add<T: Value>(value: &mut T, slice: u64, member: &str) {
    if value.newest_slice().is_some_and(|newest| newest < slice) {
        value.advance(slice);
    }
    Live::new(value, Time::Reached).add(member, &Unlimited).unwrap();
}

/// The value that gets all members, and the union of 1 to 5 values that get them as `part_of` says, of which each
/// travelled.
fn both<T: Value + Value + Clone>(
    empty: &T,
    members: &[(u64, String)],
    saved: impl Fn(&T) -> Saved,
    random: &mut Random,
) -> (T, T) {
    let (mut whole, mut parts) = (empty.clone(), vec![empty.clone(); 1 + random.below(5)]);
    for (slice, member) in members {
        add(&mut whole, *slice, member);
        // A filter that does not renew keeps the slice of the first addition, so equal members stay together.
        let by_text = member.bytes().map(usize::from).sum::<usize>();
        let part = if renews(empty) { random.below(parts.len()) } else { by_text % parts.len() };
        add(&mut parts[part], *slice, member);
    }
    let mut merged = travelled(&parts.swap_remove(random.below(parts.len())), &saved, random);
    while !parts.is_empty() {
        let sources: Vec<T> = (0..=random.below(parts.len()))
            .map(|_| travelled(&parts.swap_remove(random.below(parts.len())), &saved, random))
            .collect();
        let sources: Vec<&T> = sources.iter().collect();
        Live::new(&mut merged, Time::Reached).merge(&sources, &Unlimited).unwrap();
    }
    (whole, merged)
}

fn renews<T: Value>(value: &T) -> bool {
    value.window().is_none() || value.renews()
}

/// Members in the order in which they are added, some of them more than once.
fn members(number: usize, form: impl Fn(u64) -> String, random: &mut Random) -> Vec<(u64, String)> {
    let mut slices: Vec<u64> = (0..number).map(|_| SLICES.start + random.below(SLICES.end - SLICES.start)).collect();
    slices.sort();
    slices.into_iter().map(|slice| (slice, form(random.below(number as u64)))).collect()
}

/// The text of a member: a text, a decimal number, a number with a prefix, a UUID.
fn of_any_form(number: u64) -> String {
    match number % 4 {
        0 => format!("m{number}x"),
        1 => number.to_string(),
        2 => format!("user:{number}"),
        _ => format!("{number:08x}-0000-4000-8000-{number:012x}"),
    }
}

/// The slices of counters' windows: none, and numbers whose tags take 4 bits and 8.
const WINDOWS: [u32; 3] = [0, 12, 30];

/// A counter with a window of so many slices, or without one.
fn counter(error_rate: f64, exact_limit: u32, exact_bytes: u32, slices: u32) -> Counter {
    let counter = Counter::new(counting::Params { error_rate, exact_limit, exact_bytes, seed: 7 }).unwrap();
    if slices == 0 {
        return counter;
    }
    let window = Window::new(slices.into(), slices, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    counter.with_window(window, SLICES.start).unwrap()
}

/// Exact counters have equal members, and counters that EXACT promoted have equal slots and lower bounds.
#[test]
fn merged_counters_equal_one_of_all_members() {
    let mut random = Random::new(68);
    for error_rate in ERRORS {
        for (exact_limit, number) in [(250, 200), (250, 260), (250, 600), (20, 300), (0, 40), (0, 600)] {
            for slices in WINDOWS {
                let empty = counter(error_rate, exact_limit, 1 << 20, slices);
                let members = members(number, of_any_form, &mut random);
                let (mut whole, mut merged) = both(&empty, &members, saved_counter, &mut random);
                let what = format!("{error_rate}, EXACT {exact_limit}, {number}, {slices}");
                assert_eq!(merged.is_exact(), whole.is_exact(), "{what}");
                assert!(digest(&merged) == digest(&whole), "{what}");
                // They forget the same members, too.
                [&mut whole, &mut merged].into_iter().for_each(|one| one.advance(SLICES.start + 3 + u64::from(slices)));
                assert!(digest(&merged) == digest(&whole), "{what}");
            }
        }
    }
}

/// The lower bound of a counter that BYTES promoted depends on the order of its members; its slots do not.
#[test]
fn counters_promoted_by_bytes_have_the_same_slots() {
    let mut random = Random::new(69);
    for error_rate in ERRORS {
        for (number, slices) in [200, 600].into_iter().flat_map(|number| WINDOWS.map(|slices| (number, slices))) {
            let empty = counter(error_rate, 65_536, 900, slices);
            let members = members(number, |number| format!("member{number:04}"), &mut random);
            let (whole, merged) = both(&empty, &members, saved_counter, &mut random);
            assert!(!whole.is_exact() && !merged.is_exact());
            assert!(slots(&merged) == slots(&whole), "{error_rate}, {number}, {slices}");
        }
    }
}

/// The stored form of a counter that estimates, without its lower bound and the checksum of its header.
fn slots(counter: &Counter) -> Vec<u8> {
    let mut header = counter.header();
    header.truncate(header.len() - 4);
    if counter.window().is_none() {
        // The fields of docs/persistence.md before it: two bytes, a rate of 2 or 9 bytes, three numbers.
        let number = |at: usize| at + 1 + header[at..].iter().take_while(|&&byte| byte >= 0x80).count();
        let bound = (0..3).fold(if header[2] == 0 { 11 } else { 4 }, |at, _| number(at));
        header.drain(bound..number(bound));
    }
    header.extend(payload_of(counter));
    header
}

/// A merged filter estimates its number of items from its bits.
#[test]
fn filters_have_the_same_bits() {
    let mut random = Random::new(70);
    let mut check = |empty: BloomFilter, number: usize, most_off: f64| {
        let members = members(number, of_any_form, &mut random);
        let (whole, merged) = both(&empty, &members, saved_filter, &mut random);
        assert!(payload_of(&merged) == payload_of(&whole), "{empty:?}");
        let distinct = members.iter().map(|(_, member)| member).collect::<BTreeSet<_>>().len() as f64;
        let off = merged.num_items() as f64 / distinct - 1.0;
        assert!(off.abs() <= most_off, "{off} in {empty:?}");
    };
    let of = |error_rate, capacity| bloom::Params { error_rate, capacity, expansion: 2, seed: 0 };
    for (error_rate, most_off) in [(0.1, 0.02), (0.01, 0.01), (0.001, 0.01), (1e-6, 0.01)] {
        for (capacity, number) in [(3_000, 4_000), (50_000, 9_000)] {
            for layout in [BitLayout::Lines, BitLayout::Classic] {
                let empty = BloomFilter::new(layout, of(error_rate, capacity), &Unlimited).unwrap();
                check(empty, number, most_off);
            }
        }
    }
    // The members of the first slices leave a window of three.
    for (slices, refresh, most_off) in
        [(12, false, 0.01), (12, true, 0.01), (3, false, f64::INFINITY), (3, true, f64::INFINITY)]
    {
        let windowing = Windowing::new(slices.into(), slices, ClockSource::Manual, refresh).unwrap();
        // So rare that no member is mistaken for one of another slice.
        let empty = BloomFilter::windowed(of(1e-9, 50_000), windowing, SLICES.start, &Unlimited).unwrap();
        // Of a few members, most parts get none in the newest slice.
        (0..20).for_each(|_| check(empty.clone(), 5, f64::INFINITY));
        check(empty, 9_000, most_off);
    }
}
