use super::*;
use crate::live::Windowed;
use crate::persist;

fn params(exact_limit: u32, capacity: u64) -> Params {
    Params { capacity, error_rate: 0.05, exact_limit, exact_bytes: 500, seed: 7 }
}

fn window(slices: u32, clock_source: ClockSource) -> Window {
    Window::new(u64::from(slices) * 10, slices, Counter::MAX_SLICES, clock_source).unwrap()
}

fn stored(counter: &Counter) -> Vec<Vec<u8>> {
    persist::dump(counter).map(|(_, chunk)| chunk.into_owned()).collect()
}

#[test]
fn a_windowed_counter_reads_back() {
    for (slices, clock_source) in
        [(1, ClockSource::System), (14, ClockSource::Manual), (15, ClockSource::System), (254, ClockSource::Manual)]
    {
        for (exact_limit, members) in [(10, 0u32), (10, 9), (0, 9), (0, 1500), (10, 100_000)] {
            let params = Params { error_rate: 0.005, ..params(exact_limit, 1_000_000) };
            let mut counter = Counter::new(params).unwrap().with_window(window(slices, clock_source), 1000).unwrap();
            for member in 0..members {
                counter.advance(1000 + u64::from(member / 100));
                counter.add(member.to_le_bytes(), &Unlimited).unwrap();
            }
            counter.rebase(950);
            let read: Counter = persist::load(persist::dump(&counter), &Unlimited).unwrap();
            assert!(stored(&read) == stored(&counter));
            assert_eq!(
                (read.window(), read.reached(), read.count()),
                (counter.window(), counter.reached(), counter.count())
            );
            // Chunks may arrive one at a time, and a partially loaded counter is stored too.
            let mut loading = PartialCounter::begin(&stored(&counter)[0], &Unlimited).unwrap();
            for (next, chunk) in persist::dump(&counter).skip(1) {
                let copy = loading.try_clone().unwrap();
                persist::chunks::push_chunk(&mut loading, next, &chunk).unwrap();
                assert!(copy.received_bytes() < loading.received_bytes());
            }
            assert!(stored(&loading.finish().unwrap()) == stored(&counter));
        }
    }
}

#[test]
fn an_advance_cuts_a_dump_off() {
    let params = Params { error_rate: 0.01, ..params(0, 1_000_000) };
    let mut counter = Counter::new(params).unwrap().with_window(window(4, ClockSource::Manual), 0).unwrap();
    for member in 0..20_000u32 {
        counter.add(member.to_le_bytes(), &Unlimited).unwrap();
    }
    let whole = stored(&counter);
    assert!(whole.len() > 1);
    counter.advance(1);
    let mixed = [&whole[..1], &stored(&counter)[1..]].concat();
    for (chunks, fits) in [(&whole, true), (&mixed, false)] {
        let numbered = persist::dump(&counter).map(|(next, _)| next).zip(chunks);
        assert_eq!(persist::load::<Counter, _>(numbered, &Unlimited).is_ok(), fits);
    }
}

/// Loads a header of a windowed counter, with its payload inline, after `change` has changed it.
fn forged(counter: &Counter, change: impl Fn(&mut Vec<u8>)) -> Result<Counter, Error> {
    let mut header = stored(counter).remove(0);
    header.truncate(header.len() - 4);
    change(&mut header);
    let sum = crate::hash::checksum(&header, 0) as u32;
    header.extend_from_slice(&sum.to_le_bytes());
    persist::load([(1, header)], &Unlimited)
}

#[test]
fn forged_values_are_rejected() {
    let window = Window::new(100, 10, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let of = |exact_limit, members: u16| {
        let mut counter = Counter::new(params(exact_limit, 100)).unwrap().with_window(window, 19).unwrap();
        counter.rebase(5);
        for member in 0..members {
            counter.advance(u64::from(member) / 480 + 5);
            let item = &member.to_le_bytes()[..1 + usize::from(member > 255)];
            counter.add(item, &Unlimited).unwrap();
        }
        counter
    };
    let (exact, sparse, dense) = (of(10, 3), of(0, 3), of(0, 4800));
    let [Representation::Exact, Representation::Sparse, Representation::Dense] =
        [&exact, &sparse, &dense].map(Counter::representation)
    else {
        panic!("{exact:?} {sparse:?} {dense:?}")
    };
    // The window begins at byte 11, after kind, three bytes, rate (2 bytes), capacity, exact limit, exact bytes (2
    // bytes) and seed.
    for counter in [&exact, &sparse, &dense] {
        let same = forged(counter, |_| {}).unwrap();
        assert_eq!(stored(&same), stored(counter));
        let header = &stored(counter)[0];
        let newest = counter.reached() as u8;
        assert_eq!((header[0], &header[11..16]), (0xd1, &[100, 10, 1, newest, 1][..]));
        for (at, value, name) in [
            (11, 9, "window"),
            (11, 0, "window"),
            (12, 0, "slices"),
            (12, 255, "slices"),
            (13, 3, "clock"),
            (15, 15, "offset"),
            (15, 255, "offset"),
            (16, 2, "payload form"),
        ] {
            let error = forged(counter, |header| header[at] = value).unwrap_err();
            assert!(matches!(&error, Error::Corrupt { field, .. } if *field == name), "{at}: {error}");
        }
        // A shorter window has no slices that old.
        assert_eq!(forged(counter, |header| header[12] = 1).is_ok(), counter.reached() == 5);
        let error = forged(counter, |header| header.truncate(header.len() - 1)).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    // The payload begins at byte 17.
    let dead = |counter: &Counter, at: usize, tag: u8| {
        let error = forged(counter, |header| header[at] = tag).unwrap_err();
        assert!(matches!(error, Error::Corrupt { field: "tag", .. }), "{error}");
    };
    for tag in [0, 16, 255] {
        dead(&exact, 17, tag);
        dead(&sparse, 17 + 4, tag);
    }
    // The newest slice has tag 5. The oldest one, 10 slices before, has tag 10.
    for tag in [6, 9] {
        dead(&exact, 17, tag);
        dead(&sparse, 17 + 4, tag);
    }
    // The newest slice has tag 14, the oldest one tag 4.
    for tags in [0x20, 0x3, 0xf] {
        dead(&dense, 17, tags);
    }
    let twice = forged(&sparse, |header| {
        let (first, second) = header[17..].split_at_mut(5);
        second[..4].copy_from_slice(&first[..4]);
    });
    assert!(matches!(twice, Err(Error::Corrupt { field: "position", .. })), "{twice:?}");
    let beyond = forged(&sparse, |header| header[17 + 10 + 3] = 255);
    assert!(matches!(beyond, Err(Error::Corrupt { field: "position", .. })), "{beyond:?}");
    let again = forged(&exact, |header| header[17 + 2] = header[17 + 5]);
    assert!(matches!(again, Err(Error::Corrupt { field: "members", .. })), "{again:?}");
}
