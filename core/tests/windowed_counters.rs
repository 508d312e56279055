//! Tests windowed counters as a server uses them: storing and loading, damaged values, dumps while slices begin, and
//! memory.

use std::ops::Range;

use proptest::prelude::*;
use rollcall_core::counting::{Counter, Params};
use rollcall_core::error::Error;
use rollcall_core::live::Windowed;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::hash::checksum;
use rollcall_core::unstable::persist::{Partial, PartialCounter, Stored, is_header, scandump};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::values::{
    Dump, completed, cut_after, dump_of, load_rdb, rdb_of, rdb_of_loading, reload, same_dump, windowed_counter,
};

fn params(error_rate: f64, exact_limit: u32) -> Params {
    Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 }
}

/// The number of test counters: small and large, exact or not, with tags of each width. The payload of the largest is
/// out of line.
const COUNTERS: usize = 20;

fn counter_number(number: usize) -> Counter {
    let (slices, clock_source) = [(12, ClockSource::System), (24, ClockSource::Manual)][number / 10];
    let (params, members): (_, &[u32]) = match number % 5 {
        0 => (params(0.01, 250), &[10, 0, 20]),
        1 => (params(0.01, 2000), &[500, 400]),
        2 => (params(0.01, 10), &[10, 20]),
        3 => (params(0.05, 0), &[3000, 1000, 500]),
        _ => (params(0.0025, 10), &[60_000, 50_000]),
    };
    let mut counter = windowed_counter(params, slices, clock_source, members);
    if number % 10 >= 5 {
        counter.rebase(500);
    }
    counter
}

fn counters() -> impl Iterator<Item = Counter> {
    (0..COUNTERS).map(counter_number)
}

fn same(a: &Counter, b: &Counter) -> bool {
    let about = |counter: &Counter| (*counter.params(), counter.window().copied(), counter.newest_slice());
    about(a) == about(b)
        && a.estimate() == b.estimate()
        && a.history(Time::At(0)) == b.history(Time::At(0))
        && same_dump(a, b)
}

fn assert_reads_back(counter: &Counter, cut: u64) {
    assert!(same(counter, &reload(counter)));
    assert!(same(counter, &load_rdb::<PartialCounter>(&rdb_of(counter)).unwrap().finish().unwrap()));
    assert!(same(counter, &counter.try_clone().unwrap()));
    // A payload within the header arrives with the header, so the value is never partially loaded.
    if counter.payload().is_empty() {
        return;
    }
    let part = cut_after(counter, counter.payload().len() * cut / 256);
    let partial: PartialCounter = load_rdb(&rdb_of_loading(&part)).unwrap();
    for part in [part.try_clone().unwrap(), part, partial] {
        assert!(same(counter, &completed(part, counter)));
    }
}

#[test]
fn each_representation_reads_back() {
    assert!(counters().any(|counter| dump_of(&counter).len() > 1));
    for counter in counters() {
        [0, 1, 100, 255].into_iter().for_each(|cut| assert_reads_back(&counter, cut));
    }
}

/// Dumps a counter call by call. Before call number `at`, `between` changes the counter.
fn scan(counter: &mut Counter, at: usize, between: impl Fn(&mut Counter)) -> Result<Dump, Error> {
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        if chunks.len() == at {
            between(counter);
        }
        let (next, chunk) = scandump(counter, iterator)?;
        if next == 0 {
            return Ok(chunks);
        }
        chunks.push((next, chunk.into_owned()));
        iterator = next;
    }
}

/// An advance between two chunks ends a dump.
#[test]
fn a_dump_ends_with_its_slice() {
    for (slices, members) in [(12, &[90_000, 80_000][..]), (24, &[60_000])] {
        let mut counter = windowed_counter(params(0.0025, 0), slices, ClockSource::System, members);
        let chunks = scan(&mut counter, usize::MAX, |_| ()).unwrap();
        assert!(chunks.len() > 1 && is_header(chunks[0].0) && !is_header(chunks[1].0));
        // Some clients store integers as doubles, which are exact up to 2^53.
        assert!(chunks.iter().all(|(next, _)| *next < 1 << 53));
        let loaded: Counter = persist::load(chunks.clone(), &Unlimited).unwrap();
        assert!(same(&loaded, &counter));
        for at in 1..=chunks.len() {
            let advance = |counter: &mut Counter| counter.advance(counter.newest_slice().unwrap() + 1);
            let rebase = |counter: &mut Counter| counter.rebase(counter.newest_slice().unwrap() - 1);
            for moves in [&advance as &dyn Fn(&mut Counter), &rebase] {
                let mut moving = counter.try_clone().unwrap();
                let rejected = scan(&mut moving, at, moves);
                let Err(Error::Stale { .. }) = rejected else { panic!("{rejected:?}") };
                // It starts again.
                let again = scan(&mut moving, usize::MAX, |_| ()).unwrap();
                assert!(same(&persist::load(again.clone(), &Unlimited).unwrap(), &moving));
                let mixed = chunks[..1].iter().chain(&again[1..]).cloned();
                assert!(persist::load::<Counter, _>(mixed, &Unlimited).is_err());
            }
        }
    }
}

/// Replaces `range` in a header and corrects the checksum, so that only the checks of the fields can reject the header.
fn forged(header: &[u8], range: Range<usize>, bytes: &[u8]) -> Vec<u8> {
    let mut body = header[..header.len() - 4].to_vec();
    body.splice(range, bytes.iter().copied());
    let sum = checksum(&body, 0) as u32;
    body.extend_from_slice(&sum.to_le_bytes());
    body
}

/// A few bytes cannot cause an allocation of many megabytes: the size limit is asked before a counter is allocated.
#[test]
fn sizes_are_checked_before_they_are_allocated() {
    for counter in counters() {
        let header = counter.header();
        // The finest layout.
        let fine = forged(&header, 2..4, &[4, 25]);
        let loaded = persist::load::<Counter, _>([(1, fine)], &MaxBytes(100));
        assert!(loaded.is_err(), "{loaded:?}");
        let tight = persist::load::<Counter, _>(dump_of(&counter), &MaxBytes(100));
        assert!(matches!(tight, Err(Error::TooLarge { .. })), "{tight:?}");
        assert!(persist::load::<Counter, _>(dump_of(&counter), &MaxBytes(1 << 20)).is_ok());
    }
}

#[test]
fn every_flipped_bit_is_rejected() {
    for counter in counters() {
        let dump = dump_of(&counter);
        for (number, (_, chunk)) in dump.iter().enumerate() {
            for bit in (0..chunk.len() * 8).step_by(1 + chunk.len() / 60) {
                let mut damaged = dump.clone();
                damaged[number].1[bit / 8] ^= 1 << (bit % 8);
                assert!(persist::load::<Counter, _>(damaged, &Unlimited).is_err(), "bit {bit} of chunk {number}");
            }
            let mut cut = dump.clone();
            cut[number].1.pop();
            assert!(persist::load::<Counter, _>(cut, &Unlimited).is_err());
        }
    }
}

/// Headers have the layout of the table in docs/persistence.md.
#[test]
fn headers_are_laid_out_as_documented() {
    let mut exact = windowed_counter(params(0.01, 250), 24, ClockSource::Manual, &[2, 1]);
    let before = exact.header();
    exact.rebase(998);
    // The fields of the header: kind and version, representation, rate, exact limit, exact bytes, seed.
    let fields = b"\xd1\0\x02\x01\xfa\x01\x80\x80\x01\x07";
    // The fields of the window: window, slices, clock source, newest slice, and an offset of 252 in base 255.
    let window = b"\x18\x18\x01\xe6\x07\xfc";
    // The tag of a slice is its number modulo 255, plus 1: 236 for slice 1000, and 237 for slice 1001.
    let payload = b"\x01\xec\x09member:0:\xec\x09member:1:\xed\x09member:2:";
    let mut expected = [&fields[..], window, payload].concat();
    expected.extend_from_slice(&(checksum(&expected, 0) as u32).to_le_bytes());
    assert_eq!(exact.header(), expected);
    assert_eq!(before[10..16], *b"\x18\x18\x01\xe9\x07\0");
}

#[test]
fn a_day_by_the_hour_takes_at_most_52_kb() {
    let window = Window::new(86_400, 24, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let mut counter = Counter::new(params(0.01, 250)).unwrap().with_window(window, 0).unwrap();
    let mut largest = counter.size_bytes();
    for hour in 0..30u64 {
        counter.advance(hour);
        for member in 0..50_000u64 {
            counter.live(Time::Reached).add((hour * 50_000 + member).to_le_bytes(), &Unlimited).unwrap();
            largest = largest.max(if member % 500 == 0 { counter.size_bytes() } else { 0 });
        }
    }
    largest = largest.max(counter.size_bytes());
    assert!(largest <= 52_000, "{largest} bytes");
    println!("{largest} bytes");
}

/// A change of a counter.
#[derive(Debug, Clone)]
enum Step {
    Add(Vec<u16>),
    Pass(u64),
    Back(u64),
    Merge,
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => proptest::collection::vec(any::<u16>(), 0..120).prop_map(Step::Add),
        3 => (0u64..5).prop_map(Step::Pass),
        1 => (0u64..400).prop_map(Step::Pass),
        1 => (0u64..20).prop_map(Step::Back),
        1 => Just(Step::Merge),
        1 => Just(Step::Clear),
    ];
    proptest::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// A counter after any accepted calls is stored, dumped and loaded again as an equal counter.
    #[test]
    fn whatever_counter_is_made_reads_back(
        error_rate in prop_oneof![0.0025..=0.25, Just(0.0025), Just(0.25)],
        exact_limit in prop_oneof![Just(0), 0u32..70, 0u32..=65_536],
        seed: u64,
        seconds in prop_oneof![1u64..1000, 1u64..=Window::MAX_SECONDS],
        slices in prop_oneof![1u32..=254, Just(14), Just(15), Just(254)],
        first in prop_oneof![Just(0), 0u64..1 << 40, any::<u64>()],
        is_manual: bool,
        steps in steps(),
        cut: u8,
    ) {
        let limit = MaxBytes(1 << 20);
        let clock_source = if is_manual { ClockSource::Manual } else { ClockSource::System };
        let window = Window::new(seconds.max(slices.into()), slices, Counter::MAX_SLICES, clock_source).unwrap();
        let params = Params { error_rate, exact_limit, exact_bytes: 16_384, seed };
        let mut counter = Counter::new(params).unwrap().with_window(window, first).unwrap();
        let other = Params { error_rate: 0.05, exact_limit: 10, ..params };
        let mut other = Counter::new(other).unwrap().with_window(window, first).unwrap();
        assert_reads_back(&counter, cut.into());
        for step in steps {
            match step {
                Step::Add(items) => items.iter().for_each(|item| {
                    let _ = counter.live(Time::Reached).add(item.to_le_bytes(), &limit);
                    other.live(Time::Reached).add((item / 3).to_le_bytes(), &limit).unwrap();
                }),
                Step::Pass(slices) => counter.advance(counter.newest_slice().unwrap().saturating_add(slices)),
                Step::Back(slices) => counter.rebase(counter.newest_slice().unwrap().saturating_sub(slices)),
                Step::Merge => drop(counter.live(Time::Reached).merge(&[&other], &limit)),
                Step::Clear => counter = counter.new_like().unwrap(),
            }
            assert_reads_back(&counter, cut.into());
        }
        assert_reads_back(&other, cut.into());
        counter.set_clock_source(if is_manual { ClockSource::System } else { ClockSource::Manual });
        assert_reads_back(&counter, cut.into());
    }

    /// Any header fields with a correct checksum are accepted or rejected, without a panic or a huge allocation.
    /// Accepted values can be used.
    #[test]
    fn any_forged_header_is_read_or_rejected(
        which in 0..COUNTERS,
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        at in 1usize..60,
        replaced in 0usize..20,
    ) {
        let header = counter_number(which).header();
        let end = header.len() - 4;
        let at = at.min(end);
        let header = forged(&header, at..end.min(at + replaced), &bytes);
        if let Ok(mut counter) = persist::load::<Counter, _>([(1, header)], &MaxBytes(1 << 20)) {
            assert_reads_back(&counter, 0);
            let _ = (counter.count(), counter.history(Time::At(u64::MAX)));
            let _ = (counter.since(1, Time::At(0)).map(|view| view.count()), counter.at(Time::At(u64::MAX)).count());
            let _ = counter.live(Time::Reached).add(b"ann", &MaxBytes(1 << 20));
            counter.advance(counter.newest_slice().unwrap().saturating_add(1));
            assert_reads_back(&counter, 0);
        }
    }

    /// Any out-of-line payload with correct checksums is accepted or rejected.
    #[test]
    fn any_payload_is_read_or_rejected(
        which in 0..COUNTERS,
        changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4),
    ) {
        let counter = counter_number(which);
        let mut loading = cut_after(&counter, 0);
        let pieces = counter.payload().pieces(usize::MAX);
        let mut payload: Vec<u8> = pieces.flat_map(|(_, piece)| piece.into_owned()).collect();
        prop_assume!(!payload.is_empty());
        for (at, byte) in changes {
            let at = usize::from(at) % payload.len();
            payload[at] = byte;
        }
        if loading.push(&payload).is_ok() {
            assert_reads_back(&loading.finish().unwrap(), 0);
        } else {
            assert_eq!(loading.received_bytes(), 0);
        }
    }
}
