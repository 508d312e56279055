//! Compares the errors of estimates with the standard error that they report, for every layout, from 251 to 10^10
//! members. Taken slots are simulated by `occupancy.rs`; tolerances are those of
//! `counting.rs`.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::estimate::{MAX_ESTIMATE, Segments, standard_error};
use rollcall_core::unstable::counting::layout::{LARGEST_ERRORS, Layout};
use rollcall_core::window::Time;

use crate::occupancy::{Random, occupied, relative_errors};

const TRIALS: u64 = 30;

/// Number of standard deviations by which a result may differ from theory. There are some 400 results.
const SIGMAS: f64 = 4.0;

/// The numbers of members for which the error is checked.
const MEMBERS: [f64; 8] = [251.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e9, 1e10];

fn layouts() -> impl Iterator<Item = Layout> {
    LARGEST_ERRORS.into_iter().filter_map(Layout::for_error)
}

#[test]
fn every_layout_errs_as_it_states() {
    let mut random = Random::new(11);
    let (trials, mut squares, mut noise, mut outcomes) = (TRIALS as f64, 0.0, 0.0, 0.0);
    for layout in layouts() {
        for members in MEMBERS {
            let stated = standard_error(layout, members);
            let errors = relative_errors(layout, members, TRIALS, &mut random);
            let square = errors.iter().map(|error| (error / stated).powi(2)).sum::<f64>() / trials;
            let mean = errors.iter().sum::<f64>() / trials;
            // With few collisions, errors follow a Poisson distribution, whose kurtosis is 3 + 1 / variance. The bias
            // is of the order of the variance.
            let (variance, bias) = ((members * stated).powi(2), stated * stated);
            let of_square = (2.0 + 1.0 / variance) / trials;
            let what = format!("{layout:?}, {members} members: mean square {square}, mean {mean}, stated {stated}");
            // With fewer than 100 collisions in all trials, only the mean over all layouts is checked. The cube root
            // of a mean square is nearly normal (Wilson and Hilferty 1931).
            if variance * trials > 100.0 {
                let of_root = of_square / 9.0;
                assert!((square.cbrt() - (1.0 - of_root)).abs() < SIGMAS * of_root.sqrt(), "{what}");
            }
            assert!(mean.abs() < SIGMAS * stated / trials.sqrt() + bias, "{what}");
            squares += square;
            noise += of_square;
            outcomes += 1.0;
        }
    }
    let (together, noise) = (squares / outcomes, f64::sqrt(noise) / outcomes);
    println!("{outcomes} pairs of layout and members, mean square / stated {together} +- {noise}");
    assert!((together - 1.0).abs() < SIGMAS * noise, "{together} +- {noise}");
}

/// Beyond 10^10 members, the last two segments of a bitmap fill up and the error grows. At 10^11 members few slots
/// are free, and the estimate is still finite.
#[test]
fn beyond_what_is_promised_the_error_grows_and_ends() {
    let mut random = Random::new(12);
    for layout in layouts() {
        let errors = [1e10, 3e10, 1e11].map(|members| standard_error(layout, members));
        assert!(errors[0] < errors[1] && errors[1] < errors[2], "{layout:?}: {errors:?}");
        for members in [3e10, 1e11] {
            for _ in 0..10 {
                let counts = occupied(layout, members, &mut random);
                let estimate = Segments::new(layout, &counts).estimate();
                assert!(estimate > 1e10 && estimate <= MAX_ESTIMATE, "{layout:?}, {members}: {estimate}");
            }
        }
    }
}

/// Simulated counters have the same estimates, on average, as counters with hashed members.
#[test]
fn drawn_slots_are_as_many_as_hashed_ones() {
    let (trials, members) = (200u64, 20_000u64);
    for error_rate in [0.05, 0.015, 0.01, 0.004] {
        let layout = Layout::for_error(error_rate).unwrap();
        let mut random = Random::new(13);
        let mut sums = [0.0f64; 2];
        let mut squares = [0.0f64; 2];
        for seed in 0..trials {
            let params = Params { error_rate, exact_limit: 0, exact_bytes: 16_384, seed };
            let mut counter = Counter::new(params).unwrap();
            for number in 0..members {
                counter.live(Time::Reached).add(&number.to_le_bytes(), &Unlimited).unwrap();
            }
            let drawn = Segments::new(layout, &occupied(layout, members as f64, &mut random)).estimate();
            for (at, estimate) in [counter.estimate(), drawn].into_iter().enumerate() {
                sums[at] += estimate / trials as f64;
                squares[at] += estimate.powi(2) / trials as f64;
            }
        }
        let variances = [0, 1].map(|at| squares[at] - sums[at] * sums[at]);
        let noise = ((variances[0] + variances[1]) / trials as f64).sqrt();
        assert!((sums[0] - sums[1]).abs() < 4.0 * noise, "{layout:?}: {sums:?}, {noise}");
        // The variance of N trials has a relative standard deviation of sqrt(2 / N).
        let ratio = variances[0] / variances[1];
        assert!((ratio.ln()).abs() < 4.0 * (4.0 / trials as f64).sqrt(), "{layout:?}: {variances:?}");
    }
}
