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
        let mut other = Tracked::new((params, Some(window)), NOON);
        // Adds one item in each slice of the window, and one in the slice before it.
        let end = NOON + 10 * u64::from(slices) + 10;
        (NOON..=end).step_by(10).zip(0u32..).for_each(|(now, item)| other.mark(item, now));
        for behind in [0, 1, 2, u64::from(slices) - 1, u64::from(slices)] {
            let now = end + 10 * behind;
            let mut ours = Tracked::new((params, Some(window)), now);
            ours.mark(1000, now);
            assert_eq!(ours.counter.merge(&[&other.counter], &Unlimited), Ok(true));
            ours.merge(&other);
            assert_eq!(ours.since(ours.oldest()).len() as u64, u64::from(slices) - behind + 2);
            ours.check(now);
            let mut at_once = Counter::new(params).unwrap();
            add(&mut at_once, ours.since(ours.oldest()));
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
fn windowed_merges_take_the_coarser_layout_as_plain_ones_do() {
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
