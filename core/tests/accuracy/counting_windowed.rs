//! Compares the errors of counts of time spans with the standard error that they report.
//!
//! Bounds are those of `counting.rs`: three standard deviations of the root mean square and of the mean.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::live::Windowed;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::estimate;
use rollcall_core::unstable::counting::layout::Layout;
use rollcall_core::unstable::rounding::error_of_whole;
use rollcall_core::window::{ClockSource, Time, Window};

use super::counting::assert_as_stated;

/// A windowed counter with `each` members in every slice, half of which are members of the previous slice. Its window
/// has passed three times.
fn counter(params: Params, slices: u32, each: u64) -> Counter {
    let window = Window::new(u64::from(10 * slices), slices, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let mut counter = Counter::new(params).unwrap().with_window(window, 0).unwrap();
    for slice in 0..u64::from(3 * slices) {
        counter.advance(slice);
        let numbers: Vec<[u8; 8]> = (0..each).map(|number| (slice * (each / 2) + number).to_le_bytes()).collect();
        counter.live(Time::Reached).add_all(numbers.iter().map(|number| &number[..]), &Unlimited, |_| ()).unwrap();
    }
    counter
}

/// Compares the errors of all time spans with theory, in counters with different seeds.
fn check(error_rate: f64, slices: u32, each: u64, trials: u64) {
    let params = |seed| Params { error_rate, exact_limit: 0, exact_bytes: 16_384, seed };
    let layout = Layout::for_error(error_rate).unwrap();
    let counters: Vec<Counter> = (0..trials).map(|seed| counter(params(seed), slices, each)).collect();
    // A span of n slices ends within a slice, so it has the members of n slices and of half of the slice before.
    for span in [1, slices / 2, slices] {
        let members = u64::from(span - 1) * (each / 2) + each;
        // On a manual clock the present moment is the last second of a slice.
        let estimated = |counter: &Counter| counter.since(u64::from(10 * span - 5), Time::At(0)).unwrap().estimated();
        let stated = estimate::standard_error(layout, members as f64);
        let errors: Vec<f64> =
            counters.iter().map(|counter| estimated(counter).estimate / members as f64 - 1.0).collect();
        assert_as_stated(&errors, stated, &format!("{span} of {slices} slices, {members} members, error {error_rate}"));
        assert!(stated <= 1.04 * error_rate);
        let reported = estimated(&counters[0]);
        let expected = error_of_whole(estimate::standard_error(layout, reported.estimate) * reported.estimate);
        assert!((reported.standard_error / expected - 1.0).abs() < 1e-9);
    }
}

#[test]
fn every_span_is_within_the_error() {
    for each in [500, 7_000, 70_000] {
        check(0.01, 12, each, 60);
    }
    for each in [500, 800, 8_000] {
        check(0.0025, 24, each, 40);
    }
}
