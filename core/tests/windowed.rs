//! Tests dumps of windowed filters while slices begin, as on a server.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing};
use rollcall_core::error::Error;
use rollcall_core::live::Windowed;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::persist::{is_header, scandump};
use rollcall_core::window::{ClockSource, Time};

use rollcall_fuzz::values::{Dump, reload, windowed};

fn params(capacity: u64, expansion: u32) -> Params {
    Params { error_rate: 0.01, capacity, expansion, seed: 7 }
}

fn day(slices: u32, clock_source: ClockSource, refresh: bool) -> Windowing {
    Windowing::new(86_400, slices, clock_source, refresh).unwrap()
}

/// Dumps a filter call by call. Before call number `at`, `between` changes the filter.
fn scan(filter: &mut BloomFilter, at: usize, between: impl Fn(&mut BloomFilter)) -> Result<Dump, Error> {
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        if chunks.len() == at {
            between(filter);
        }
        let (next, chunk) = scandump(filter, iterator)?;
        if next == 0 {
            return Ok(chunks);
        }
        chunks.push((next, chunk.into_owned()));
        iterator = next;
    }
}

/// Loads the header of one dump with the chunks of another.
fn reload_mixed(header: &Dump, rest: Dump) -> Result<(), Error> {
    let mixed = header.iter().take(1).cloned().chain(rest.into_iter().skip(1));
    persist::load::<BloomFilter, _>(mixed, &Unlimited).map(drop)
}

/// Begins `slices` further slices.
fn pass(filter: &mut BloomFilter, slices: u64) {
    let newest = filter.newest_slice().unwrap();
    drop(filter.advance(newest + slices));
}

/// An advance between two chunks ends a dump: the dumping side returns an error, and the loading side rejects mixed
/// chunks.
#[test]
fn a_dump_ends_with_its_slice() {
    let mut filter = windowed(params(40_000, 2), day(4, ClockSource::System, false), &[9_000, 9_000]);
    let chunks = scan(&mut filter, usize::MAX, |_| ()).unwrap();
    assert_eq!(chunks.len(), 3);
    assert!(is_header(chunks[0].0) && !is_header(chunks[1].0));
    // Some clients store integers as doubles, which are exact up to 2^53.
    assert!(chunks.iter().all(|(next, _)| *next < 1 << 53));
    let copy: BloomFilter = persist::load(chunks.clone(), &Unlimited).unwrap();
    assert!(copy == filter && reload(&filter) == filter);
    assert_eq!(scandump(&filter, chunks[2].0).unwrap(), (0, Default::default()));
    for (at, slices) in [(1, 1), (2, 1), (3, 2)] {
        let mut moving = filter.try_clone().unwrap();
        let rejected = scan(&mut moving, at, |filter| pass(filter, slices));
        let Err(Error::Stale { .. }) = rejected else { panic!("{rejected:?}") };
        // It starts again.
        assert!(scan(&mut moving, usize::MAX, |_| ()).is_ok());
    }
    assert!([1, 1 << 43, u64::MAX].into_iter().all(|wrong| scandump(&filter, wrong).is_err()));
    pass(&mut filter, 1);
    let later = scan(&mut filter, usize::MAX, |_| ()).unwrap();
    assert!(reload_mixed(&chunks, later).is_err());
}

/// An iterator contains the slice modulo 1,024. If this number repeats, the checksums of the chunks still detect
/// mixed chunks.
#[test]
fn a_stamp_that_came_round_is_rejected_where_it_is_loaded() {
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
    assert!(matches!(reload_mixed(&chunks, later), Err(Error::Corrupt { field: "payload checksum", .. })));
}

/// Without a window, iterators are positions only, and contain no slice.
#[test]
fn dumps_of_what_does_not_move_carry_no_stamp() {
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
