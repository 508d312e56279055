use super::*;
use crate::persist;
use crate::window::{ClockSource, Window};

fn params(exact_limit: u32, error_rate: f64) -> Params {
    Params { error_rate, exact_limit, exact_bytes: 500, seed: 7 }
}

fn stored(counter: &Counter) -> Vec<Vec<u8>> {
    persist::dump(counter).map(|(_, chunk)| chunk.into_owned()).collect()
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
        let mut counter = Counter::new(params(exact_limit, 0.05)).unwrap().with_window(window, 19).unwrap();
        counter.rebase(5);
        for member in 0..members {
            counter.advance(u64::from(member) / 480 + 5);
            let item = &member.to_le_bytes()[..1 + usize::from(member > 255)];
            counter.add(item, &Unlimited).unwrap();
        }
        counter
    };
    let (exact, few, many) = (of(10, 3), of(0, 3), of(0, 4800));
    assert_eq!([&exact, &few, &many].map(Counter::is_exact), [true, false, false]);
    // The window begins at byte 8, after kind, representation, rate (2 bytes), exact limit, exact bytes (2 bytes) and
    // seed.
    const WINDOW: usize = 8;
    for counter in [&exact, &few, &many] {
        let same = forged(counter, |_| {}).unwrap();
        assert_eq!(stored(&same), stored(counter));
        let header = &stored(counter)[0];
        let newest = counter.reached() as u8;
        assert_eq!((header[0], &header[WINDOW..WINDOW + 5]), (0xd1, &[100, 10, 1, newest, 1][..]));
        for (at, value, name) in [
            (WINDOW, 9, "slices"),
            (WINDOW, 0, "window"),
            (WINDOW + 1, 0, "slices"),
            (WINDOW + 1, 255, "slices"),
            (WINDOW + 2, 3, "clock"),
            (WINDOW + 4, 15, "offset"),
            (WINDOW + 4, 255, "offset"),
        ] {
            let error = forged(counter, |header| header[at] = value).unwrap_err();
            assert!(matches!(&error, Error::Corrupt { field, .. } if *field == name), "{at}: {error}");
        }
        // A shorter window has no slices that old.
        assert_eq!(forged(counter, |header| header[WINDOW + 1] = 1).is_ok(), counter.reached() == 5);
        let error = forged(counter, |header| header.truncate(header.len() - 1)).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    let dead = |counter: &Counter, at: usize, tag: u8| {
        let error = forged(counter, |header| header[at] = tag).unwrap_err();
        assert!(matches!(error, Error::Corrupt { field: "tag", .. }), "{error}");
    };
    // The last byte of the payload of `few` is a tag. Behind it are the checksum's four bytes.
    let last = stored(&few)[0].len() - 5;
    for tag in [0, 16, 255] {
        dead(&exact, WINDOW + 6, tag);
        dead(&few, last, tag);
    }
    // The newest slice has tag 5. The oldest one, 10 slices before, has tag 10.
    for tag in [6, 9] {
        dead(&exact, WINDOW + 6, tag);
        dead(&few, last, tag);
    }
    // The newest slice has tag 14, the oldest one tag 4.
    let last = stored(&many)[0].len() - 5;
    for tags in [0x20, 0x3, 0xf] {
        dead(&many, last, tags);
    }
    let again = forged(&exact, |header| header[WINDOW + 8] = header[WINDOW + 11]);
    assert!(matches!(again, Err(Error::Corrupt { field: "members", .. })), "{again:?}");
}
