//! Compares the errors of estimates with the standard error that they report.
//!
//! If errors have the standard deviation `s`, their root mean square over `N` trials has a mean of about `s` and a
//! standard deviation of `s / sqrt(2 N)`, and their mean has a standard deviation of `s / sqrt(N)`. Bounds are three of
//! these standard deviations. Each trial has a seed of its own.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::estimate;
use rollcall_core::unstable::counting::layout::Layout;
use rollcall_core::window::Time;

/// Number of standard deviations by which a result may differ from theory.
const SIGMAS: f64 = 3.0;

/// Adds the members with these numbers, each as eight bytes.
fn add_all(counter: &mut Counter, numbers: std::ops::Range<u64>) {
    let members: Vec<[u8; 8]> = numbers.map(u64::to_le_bytes).collect();
    counter.live(Time::Reached).add_all(&members, &Unlimited, |_| ()).unwrap();
}

#[test]
fn counts_are_exact_up_to_the_exact_limit() {
    // 2,000 members of 8 bytes fit into 16 KiB, the limit for exact members.
    for exact_limit in [1, 250, 2000] {
        let mut counter = Counter::new(Params { error_rate: 0.01, exact_limit, exact_bytes: 16_384, seed: 0 }).unwrap();
        for number in 0..u64::from(exact_limit) {
            add_all(&mut counter, 0..number + 1);
            assert_eq!((counter.count(), counter.standard_error()), (number + 1, 0.0));
        }
        assert!(counter.is_exact());
        add_all(&mut counter, u64::MAX - 1..u64::MAX);
        assert!(!counter.is_exact());
    }
}

#[test]
fn errors_are_as_large_as_stated() {
    for (error_rate, members, trials) in
        [(0.01, 300, 400), (0.01, 50_000, 400), (0.02, 1_000_000, 100), (0.0025, 1_000, 100), (0.25, 100_000, 400)]
    {
        let stated = estimate::standard_error(Layout::for_error(error_rate).unwrap(), members as f64);
        assert!(stated <= 1.04 * error_rate);
        let error = |seed| {
            let mut counter = Counter::new(Params { error_rate, seed, ..Params::default() }).unwrap();
            add_all(&mut counter, 0..members);
            counter.estimate() / members as f64 - 1.0
        };
        let (errors, trials): (Vec<f64>, _) = ((0..trials).map(error).collect(), trials as f64);
        let mean = errors.iter().sum::<f64>() / trials;
        let rms = (errors.iter().map(|error| error * error).sum::<f64>() / trials).sqrt();
        let what = format!("{members} members, ERROR {error_rate}: rms {rms}, mean {mean}, stated {stated}");
        // The reported error must not be far above the true error either.
        assert!((rms / stated - 1.0).abs() < SIGMAS / (2.0 * trials).sqrt(), "{what}");
        assert!(mean.abs() < SIGMAS * stated / trials.sqrt(), "{what}");
    }
}
