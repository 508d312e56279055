//! Tests dumps of windowed values while slices begin, as on a server.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing};
use rollcall_core::counting;
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::persist::{is_header, scandump};
use rollcall_core::window::{ClockSource, Time};

use rollcall_fuzz::values::{Dump, reload, same_dump, windowed, windowed_counter};

fn params(capacity: u64, expansion: u32) -> Params {
    Params { error_rate: 0.01, capacity, expansion, seed: 7 }
}

fn day(slices: u32, clock_source: ClockSource, refresh: bool) -> Windowing {
    Windowing::new(86_400, slices, clock_source, refresh).unwrap()
}

/// Dumps a value call by call. Before call number `at`, `between` changes the value.
fn scan<T: Value>(value: &mut T, at: usize, between: impl Fn(&mut T)) -> Result<Dump, Error> {
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        if chunks.len() == at {
            between(value);
        }
        let (next, chunk) = scandump(value, iterator)?;
        if next == 0 {
            return Ok(chunks);
        }
        chunks.push((next, chunk.into_owned()));
        iterator = next;
    }
}

/// Loads the header of one dump with the chunks of another.
fn load_mixed<T: Value>(header: &Dump, rest: Dump) -> Result<T, Error> {
    persist::load(header.iter().take(1).cloned().chain(rest.into_iter().skip(1)), &Unlimited)
}

/// Begins `slices` further slices.
fn pass<T: Value>(value: &mut T, slices: u64) {
    let newest = value.newest_slice().unwrap();
    drop(value.advance(newest + slices));
}

/// A value whose window moves between two chunks ends a dump: the dumping side returns an error, and the loading side
/// rejects mixed chunks.
fn check_dump_ends_with_its_slice<T: Value + Value>(mut value: T) {
    let chunks = scan(&mut value, usize::MAX, |_| ()).unwrap();
    assert!(chunks.len() > 1 && is_header(chunks[0].0) && !is_header(chunks[1].0));
    // Some clients store integers as doubles, which are exact up to 2^53.
    assert!(chunks.iter().all(|(next, _)| *next < 1 << 53));
    assert!(same_dump(&persist::load::<T, _>(chunks.clone(), &Unlimited).unwrap(), &value));
    assert_eq!(scandump(&value, chunks.last().unwrap().0).unwrap(), (0, Default::default()));
    assert!([1, 1 << 43, u64::MAX].into_iter().all(|wrong| scandump(&value, wrong).is_err()));
    for at in 1..=chunks.len() {
        let rebase = |value: &mut T| value.rebase(value.newest_slice().unwrap() - 1);
        for moves in [&(|value: &mut T| pass(value, 1)) as &dyn Fn(&mut T), &|value: &mut T| pass(value, 2), &rebase] {
            let mut moving = reload(&value);
            let rejected = scan(&mut moving, at, moves);
            assert!(matches!(rejected, Err(Error::Stale { .. })), "{rejected:?}");
            // It starts again.
            let again = scan(&mut moving, usize::MAX, |_| ()).unwrap();
            assert!(same_dump(&persist::load::<T, _>(again.clone(), &Unlimited).unwrap(), &moving));
            assert!(load_mixed::<T>(&chunks, again).is_err());
        }
    }
}

#[test]
fn a_dump_ends_with_its_slice() {
    check_dump_ends_with_its_slice(windowed(params(40_000, 2), day(4, ClockSource::System, false), &[9_000, 9_000]));
    let params = counting::Params { error_rate: 0.0025, exact_limit: 0, exact_bytes: 16_384, seed: 7 };
    for (slices, members) in [(12, &[90_000, 80_000][..]), (24, &[60_000])] {
        check_dump_ends_with_its_slice(windowed_counter(params, slices, ClockSource::System, members));
    }
}

/// An iterator contains the slice modulo 1,024. If this number repeats, the checksums of the chunks still detect
/// mixed chunks.
#[test]
fn chunks_with_a_repeated_stamp_are_rejected() {
    let mut filter = windowed(params(40_000, 2), day(4, ClockSource::System, false), &[9_000, 9_000]);
    let chunks = scan(&mut filter, usize::MAX, |_| ()).unwrap();
    let later = scan(&mut filter, 1, |filter| {
        pass(filter, 1023);
        for number in 0..9_000u32 {
            filter.live(Time::Reached).add(number.to_le_bytes(), &Unlimited).unwrap();
        }
    });
    let later = later.unwrap();
    assert_eq!(later.len(), 2);
    assert!(matches!(load_mixed::<BloomFilter>(&chunks, later), Err(Error::Corrupt { field: "payload checksum", .. })));
}

/// Without a window, iterators are positions only, and contain no slice.
#[test]
fn dumps_without_a_window_carry_no_stamp() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let filter = BloomFilter::new(layout, params(10_000, 2), &Unlimited).unwrap();
        let whole: Vec<_> = persist::dump(&filter).collect();
        assert_eq!(scandump(&filter, 0).unwrap(), whole[0]);
        assert_eq!(scandump(&filter, 1).unwrap(), whole[1]);
        for beyond in [1 << 43, 1 + (1 << 43), u64::MAX] {
            assert_eq!(scandump(&filter, beyond).unwrap(), (0, Default::default()));
        }
    }
}
