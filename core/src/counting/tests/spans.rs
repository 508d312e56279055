//! Tests of windowed counters: their counts of spans, their members, and their unions with others.

use super::*;
use crate::counting::view::View;

/// A counter with this number of slices of ten seconds and the system clock, which has reached slice 1000.
fn counter(params: Params, slices: u32) -> Counter {
    Counter::new(params).unwrap().with_window(window(slices, ClockSource::System), 1000).unwrap()
}

fn add(counter: &mut Counter, items: impl IntoIterator<Item = u32>) {
    items.into_iter().for_each(|item| assert!(counter.mark(item.to_le_bytes(), &Unlimited).is_ok()));
}

#[test]
fn a_span_has_the_estimate_and_the_error_of_a_counter_that_saw_it_alone() {
    // The slots are in lists, then in the window.
    for (rate, of_a_slice) in [(0.02, 100), (0.05, 1000u32)] {
        for slices in [4, 60] {
            let params = params(0, rate);
            let mut counter = counter(params, slices);
            for slice in 0..4 {
                counter.advance(1000 + u64::from(slice));
                add(&mut counter, slice * of_a_slice..(slice + 1) * of_a_slice);
            }
            let now = 1003 * 10;
            for back in 0..4 {
                let mut plain = Counter::new(params).unwrap();
                add(&mut plain, (3 - back) * of_a_slice..4 * of_a_slice);
                let reported = counter.count_since(u64::from(back) * 10, Time::At(now)).unwrap();
                assert_eq!(reported.estimate, plain.estimate());
                let expected = plain.count() as f64 * plain.standard_error();
                assert!((reported.standard_error / expected - 1.0).abs() < 1e-12, "{reported:?}, not {expected}");
                if back == 3 {
                    let whole = counter.at(Time::At(now)).estimated();
                    assert_eq!(whole.estimate, plain.estimate());
                    assert!((whole.standard_error / expected - 1.0).abs() < 1e-12, "{whole:?}, not {expected}");
                }
            }
            // The members of the first slices have expired.
            let left = counter.at(Time::At((1002 + u64::from(slices)) * 10)).estimated();
            assert_eq!(left, counter.count_since(10, Time::At(now)).unwrap());
        }
    }
}

#[test]
fn the_history_of_members_is_exact() {
    let params = Params { exact_bytes: 16_384, ..params(1000, 0.05) };
    let mut counter = counter(params, 4);
    for slice in 0..4u32 {
        counter.advance(1000 + u64::from(slice));
        add(&mut counter, slice * 200..(slice + 1) * 200 + 50);
    }
    assert!(counter.is_exact());
    let expected = [(10_030, 250), (10_020, 450), (10_010, 650), (10_000, 850), (9_990, 850)];
    let history = counter.history(Time::At(10_030)).unwrap();
    assert!(history.iter().all(|(_, reported)| reported.standard_error == 0.0));
    assert!(history.iter().map(|(start, reported)| (*start, reported.count())).eq(expected));
}

#[test]
fn an_estimate_reports_no_item_while_any_is_alive() {
    for members in [30, 3000] {
        for slices in [4, 60] {
            let mut counter = counter(params(2, 0.05), slices);
            add(&mut counter, 0..members);
            let rejected = Error::NotExact { exact_limit: 2, exact_bytes: 500 };
            for item in [0, members] {
                let item = item.to_le_bytes();
                assert_eq!(counter.contains(item), Err(rejected.clone()));
                assert_eq!(counter.view_of_slice(1000).contains(item), Err(rejected.clone()));
                // None of these members was seen later.
                assert_eq!(counter.view_of_slice(1001).contains(item), Ok(false));
            }
            assert_eq!(counter.members_beyond(&[]), Err(rejected.clone()));
            assert_eq!(counter.view_of_slice(1000).members().err(), Some(rejected));
            assert_eq!(counter.view_of_slice(1001).members().map(Iterator::count), Ok(0));
        }
    }
}

#[test]
fn a_view_of_all_is_the_counter_itself() {
    use std::borrow::Cow;
    let mut counter = counter(params(10, 0.05), 4);
    add(&mut counter, 0..3);
    counter.advance(1001);
    add(&mut counter, 3..5);
    let now = 10_010;
    let about = |view: View<'_>| {
        let counter = view.counter().unwrap();
        (matches!(counter, Cow::Borrowed(_)), counter.count(), view.count())
    };
    assert_eq!(about(counter.at(Time::At(now))), (true, 5, 5));
    // Ten seconds later the slice before the first has expired, and it was empty.
    assert_eq!(about(counter.at(Time::At(now + 10))), (false, 5, 5));
    assert_eq!(about(counter.at(Time::At(now + 40))), (false, 2, 2));
    assert_eq!(about(counter.at(Time::At(now + 50))), (false, 0, 0));
    assert_eq!(about(counter.since(40, Time::At(now)).unwrap()), (true, 5, 5));
    assert_eq!(about(counter.since(10, Time::At(now)).unwrap()), (false, 5, 5));
    assert_eq!(about(counter.since(1, Time::At(now + 5)).unwrap()), (false, 2, 2));
    for seconds in [0, 41, u64::MAX] {
        let rejected = Error::out_of_range(Parameter::Seconds, "from 1 to the length of the window", seconds);
        assert_eq!(counter.since(seconds, Time::At(now)).err(), Some(rejected));
    }
    let mut plain = Counter::new(params(10, 0.05)).unwrap();
    add(&mut plain, 0..7);
    for now in [0, now, u64::MAX] {
        assert_eq!(about(plain.at(Time::At(now))), (true, 7, 7));
    }
    let rejected = Error::incompatible(Parameter::Window, "a window of time", "none");
    assert_eq!(plain.since(1, Time::At(now)).err(), Some(rejected));
}

/// A merge keeps the younger tag of each live slot, including slots of the oldest slice in the window.
#[test]
fn a_merge_keeps_the_slots_of_the_window_alone() {
    let of_slots = [(4, 0.05), (14, 0.05), (14, 0.02), (15, 0.05), (254, 0.05), (254, 0.02)];
    let of_members = [4, 14, 15, 254].map(|slices| (slices, 0.05, 300));
    for (slices, rate, exact_limit) in of_slots.map(|(slices, rate)| (slices, rate, 0)).into_iter().chain(of_members) {
        let (window, params) =
            (window(slices, ClockSource::System), Params { exact_bytes: 16_384, ..params(exact_limit, rate) });
        let mut other = Pair::new(params, window, NOON);
        // Adds one item in each slice of the window, and one in the slice before it.
        let end = NOON + 10 * u64::from(slices) + 10;
        (NOON..=end).step_by(10).zip(0u32..).for_each(|(now, item)| other.add(item, now));
        for behind in [0, 1, 2, u64::from(slices) - 1, u64::from(slices)] {
            let now = end + 10 * behind;
            let mut ours = Pair::new(params, window, now);
            ours.add(1000, now);
            assert_eq!(ours.counter.merge(&[&other.counter], &Unlimited), Ok(true));
            ours.model.merge(&other.model);
            assert_eq!(ours.model.seen.len() as u64, u64::from(slices) - behind + 2);
            ours.check(now);
            let mut at_once = Counter::new(params).unwrap();
            add(&mut at_once, ours.model.seen.keys().copied());
            assert_eq!((ours.counter.set_bits(), ours.counter.estimate()), (at_once.set_bits(), at_once.estimate()));
        }
    }
}

#[test]
fn a_merge_with_nothing_changes_nothing() {
    for (exact_limit, members) in [(10, 5), (10, 100), (10, 3000)] {
        let mut ours = counter(params(exact_limit, 0.05), 4);
        add(&mut ours, 0..members);
        let before = stored(&ours);
        assert_eq!(ours.merge(&[], &MaxBytes(0)), Ok(false));
        assert_eq!(ours.merge(&[&counter(params(exact_limit, 0.02), 4)], &MaxBytes(0)), Ok(false));
        assert_eq!(stored(&ours), before);
    }
}

/// Merging an exact counter with slots of the same layout changes only the representation. Slots of a coarser layout
/// raise the error rate, in the same way as without windows.
#[test]
fn a_merge_has_the_parameters_that_it_keeps() {
    let fine = Params { error_rate: 0.005, ..params(10, 0.02) };
    let plain = |params, members| {
        let mut counter = Counter::new(params).unwrap();
        add(&mut counter, members);
        counter
    };
    let windowed = |params, members| {
        let mut counter = counter(params, 4);
        add(&mut counter, members);
        counter
    };
    for (ours, theirs) in [(fine, fine), (fine, params(10, 0.05)), (params(10, 0.05), fine)] {
        for members in [5, 200] {
            let mut merged = windowed(ours, 0..members);
            assert_eq!(merged.merge(&[&windowed(theirs, 100..400)], &Unlimited), Ok(true));
            let mut expected = plain(ours, 0..members);
            assert_eq!(expected.merge(&[&plain(theirs, 100..400)], &Unlimited), Ok(true));
            assert_eq!((merged.params(), merged.layout()), (expected.params(), expected.layout()));
            assert_eq!(merged.params() == &ours, ours == theirs || ours.error_rate == 0.05);
            assert!((merged.estimate() - expected.estimate()).abs() < 1e-6);
        }
    }
}

/// The cached estimate of all slots is dropped with each new slot, added alone or in a batch.
#[test]
fn an_estimate_of_all_slots_is_of_all_members() {
    for slices in [4, 60] {
        let mut counter = counter(params(0, 0.05), slices);
        add(&mut counter, 10_000..40_000);
        for item in 2000..2100u32 {
            counter.estimate();
            counter.mark(item.to_le_bytes(), &Unlimited).unwrap();
            assert_eq!(counter.estimate(), reloaded(&counter).estimate(), "{item}");
        }
        for item in 2100..2200u32 {
            counter.estimate();
            counter.add_all([&item.to_le_bytes()], &Unlimited, |_| ()).unwrap();
            assert_eq!(counter.estimate(), reloaded(&counter).estimate(), "{item}");
        }
        for start in [3000, 3100, 3200u32] {
            let items: Vec<[u8; 4]> = (start..start + 100).map(u32::to_le_bytes).collect();
            counter.estimate();
            counter.add_all(&items, &Unlimited, |_| ()).unwrap();
            assert_eq!(counter.estimate(), reloaded(&counter).estimate(), "from {start}");
        }
    }
}

proptest! {
    /// A merge at a given time equals a plain merge between the two rebases that the outcome reports. On error nothing
    /// changes.
    #[test]
    fn a_merge_at_a_time_is_its_moves_and_a_merge_or_nothing(
        slices in 0..SLICES.len(), exact_limit in prop_oneof![Just(0u32), Just(60)], now in 0u64..8,
        limit in prop_oneof![Just(0u64), Just(u64::MAX)],
        all in vec((0u64..8, vec(0u32..60, 0..20), 0u32..12, any::<bool>()), 1..4),
    ) {
        let window = window(SLICES[slices], ClockSource::System);
        let counters: Vec<Counter> = all.iter().map(|(slice, items, odd, is_large)| {
            // Some counters have another seed, so that merging them is an error.
            let params = params(exact_limit, if *is_large { 0.02 } else { 0.05 });
            let params = Params { seed: u64::from(*odd == 0), ..params };
            let mut counter = Counter::new(params).unwrap().with_window(window, *slice).unwrap();
            add(&mut counter, items.iter().copied());
            counter
        }).collect();
        let others: Vec<&Counter> = counters[1..].iter().collect();
        let (mut merged, mut expected) = (counters[0].try_clone().unwrap(), counters[0].try_clone().unwrap());
        let newest = expected.reached();
        match merged.merge_at(&others, Time::At(now * 10), &MaxBytes(limit)) {
            Err(_) => prop_assert_eq!(stored(&merged), stored(&expected)),
            Ok(Outcome { before, changed, after, .. }) => {
                expected.make(before);
                prop_assert_eq!(expected.merge(&others, &Unlimited), Ok(changed));
                expected.make(after);
                prop_assert_eq!(stored(&merged), stored(&expected));
                let stays = (before, after) == (Move::Stay, Move::Stay);
                prop_assert!(merged.reached() <= now + 1 || stays && newest <= now + 1);
                prop_assert!(before == Move::Stay || others.iter().all(|other| other.reached() <= now + 1));
            }
        }
    }
}

/// The clock may be set back to less than a window after 1970. Some live slices are then before the Unix epoch, and
/// spans that reach back to them count their members too.
#[test]
fn spans_that_begin_at_the_first_slice_count_no_more_than_they_reach() {
    for exact_limit in [10, 0] {
        let window = window(4, ClockSource::System);
        let mut counter = Counter::new(params(exact_limit, 0.05)).unwrap().with_window(window, 1000).unwrap();
        // Adds one member in each slice of the window.
        for slice in 0..5 {
            counter.advance(1000 + slice);
            add(&mut counter, [slice as u32]);
        }
        for newest in [3, 2, 1, 0] {
            counter.rebase(newest);
            for now in [newest * 10, newest * 10 + 9] {
                let history: Vec<u64> =
                    counter.history(Time::At(now)).unwrap().iter().map(|(_, reported)| reported.count()).collect();
                assert_eq!(history, [1, 2, 3, 4, 5]);
                for seconds in 1..=40 {
                    // The number of slices before the newest in which the span begins.
                    let back = (newest as i64) - (now as i64 - seconds as i64).div_euclid(10);
                    let expected = history[(back as usize).min(4)];
                    assert_eq!(
                        counter.count_since(seconds, Time::At(now)).unwrap().count(),
                        expected,
                        "{seconds} at {now}"
                    );
                    let slice = counter.slice_since(seconds, Time::At(now));
                    assert_eq!(counter.view_of_slice(slice).plain().unwrap().count(), expected);
                    if exact_limit > 0 {
                        assert_eq!(counter.view_of_slice(slice).members().unwrap().count() as u64, expected);
                    }
                }
                assert_eq!(counter.count(), 5);
            }
            // The members of the oldest slice expire with the next slice.
            assert_eq!(counter.at(Time::At(newest * 10 + 10)).count(), 4, "{newest}");
        }
    }
}
