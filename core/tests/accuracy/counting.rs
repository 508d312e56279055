//! Compares the errors of estimates with the standard error that they report.
//!
//! Tolerances come from theory. If errors have the standard deviation `s`, their root mean square over `N` trials has a
//! mean of about `s` and a standard deviation of `s / sqrt(2 N)`, and their mean has a standard deviation of `s /
//! sqrt(N)`. Bounds are three of these standard deviations. Each trial uses a seed of its own, so trials are
//! independent.

use rollcall_core::counting::{Counter, Params, diff_card, union_card};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::estimate;
use rollcall_core::unstable::counting::layout::Layout;
use rollcall_core::unstable::hash::hash64;
use rollcall_core::window::Time;

/// Number of standard deviations by which a result may differ from theory.
const SIGMAS: f64 = 3.0;

/// Adds the items with these numbers, each as eight bytes.
fn add_all(counter: &mut Counter, numbers: impl Iterator<Item = u64>) {
    let mut numbers = numbers.peekable();
    let mut added = Vec::with_capacity(1024);
    while numbers.peek().is_some() {
        let items: Vec<[u8; 8]> = numbers.by_ref().take(1024).map(u64::to_le_bytes).collect();
        added.clear();
        counter
            .live(Time::Reached)
            .add_all(items.iter().map(|item| &item[..]), &Unlimited, |new| added.push(new))
            .unwrap();
    }
}

fn counter(error_rate: f64, seed: u64, numbers: impl Iterator<Item = u64>) -> Counter {
    let mut counter = Counter::new(Params { error_rate, exact_limit: 250, exact_bytes: 16_384, seed }).unwrap();
    add_all(&mut counter, numbers);
    counter
}

fn rms(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

/// Checks that errors have the standard deviation `stated`.
pub(super) fn assert_as_stated(errors: &[f64], stated: f64, what: &str) {
    let trials = errors.len() as f64;
    let (rms, mean) = (rms(errors), errors.iter().sum::<f64>() / trials);
    println!("{what}: rms {:.4} %, mean {:+.4} %, stated {:.4} %", 100.0 * rms, 100.0 * mean, 100.0 * stated);
    let tolerance = SIGMAS / (2.0 * trials).sqrt();
    assert!(rms < stated * (1.0 + tolerance), "{what}: rms {rms}, stated {stated}");
    // The reported error must not be far above the true error.
    assert!(rms > stated * (1.0 - tolerance), "{what}: rms {rms}, stated {stated}");
    assert!(mean.abs() < SIGMAS * stated / trials.sqrt(), "{what}: mean {mean}, stated {stated}");
}

/// The relative errors of counters with `members` sequential numbers as members.
fn relative_errors(error_rate: f64, members: u64, trials: u64) -> Vec<f64> {
    let error = |seed| counter(error_rate, seed, 0..members).estimate() / members as f64 - 1.0;
    (0..trials).map(error).collect()
}

/// Compares the errors of counters with `members` members with theory.
fn check(error_rate: f64, members: u64, trials: u64) {
    let layout = Layout::for_error(error_rate).unwrap();
    let stated = estimate::standard_error(layout, members as f64);
    let errors = relative_errors(error_rate, members, trials);
    assert_as_stated(&errors, stated, &format!("{members} members, error {error_rate}"));
    assert!(stated <= 1.04 * error_rate);
}

#[test]
fn exact_to_the_exact_limit() {
    // 2,000 items of 8 bytes fit into 16 KiB, the limit for exact members.
    for exact_limit in [1, 250, 2000] {
        let mut counter = Counter::new(Params { error_rate: 0.01, exact_limit, exact_bytes: 16_384, seed: 0 }).unwrap();
        for number in 0..u64::from(exact_limit) {
            add_all(&mut counter, 0..=number);
            assert_eq!((counter.count(), counter.standard_error()), (number + 1, 0.0));
        }
        assert!(counter.is_exact());
        add_all(&mut counter, [u64::MAX].into_iter());
        assert!(!counter.is_exact());
    }
}

#[test]
fn within_the_error_at_any_number() {
    for members in [300, 1_000, 10_000, 50_000] {
        check(0.01, members, 400);
    }
    check(0.01, 1_000_000, 50);
    check(0.02, 1_000, 400);
    check(0.02, 1_000_000, 100);
    check(0.0025, 1_000, 100);
    check(0.005, 100_000, 100);
    check(0.25, 100_000, 400);
}

/// Makes an item from the number of a trial and the number of the item.
type Shape = fn(u64, u64) -> Vec<u8>;

#[test]
fn sequential_ids_are_as_good_as_random_ones() {
    // Ids as applications make them, which weak hashes spread badly. Random ids are included for comparison.
    let (members, trials) = (50_000u64, 100);
    let stated = estimate::standard_error(Layout::new(12), members as f64);
    let shapes: [(&str, Shape); 4] = [
        ("user:1", |_, i| format!("user:{i}").into_bytes()),
        ("zero-padded", |_, i| format!("{i:012}").into_bytes()),
        ("big-endian", |_, i| i.to_be_bytes().to_vec()),
        ("random", |trial, i| hash64(&i.to_le_bytes(), !trial).to_le_bytes().to_vec()),
    ];
    for (name, item) in shapes {
        let error = |trial| {
            let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: trial };
            let mut counter = Counter::new(params).unwrap();
            (0..members).for_each(|i| {
                counter.live(Time::Reached).add(&item(trial, i), &Unlimited).unwrap();
            });
            counter.estimate() / members as f64 - 1.0
        };
        assert_as_stated(&(0..trials).map(error).collect::<Vec<_>>(), stated, name);
    }
}

#[test]
fn unions_of_different_error_rates_err_as_the_coarsest() {
    let trials = 200;
    let error = |seed| {
        let small = counter(0.01, seed, 0..30_000);
        let large = counter(0.005, seed, 20_000..50_000);
        let few = counter(0.0025, seed, 0..400);
        union_card(&[&large, &small, &few].map(|counter| counter.at(Time::Reached))).unwrap().count() as f64 / 50_000.0
            - 1.0
    };
    let stated = estimate::standard_error(Layout::new(12), 50_000.0);
    assert_as_stated(&(0..trials).map(error).collect::<Vec<_>>(), stated, "union");
}

/// Checks the estimate of |A without B|. Both have `common` members, only A has `missing` members, and only B has
/// `others` members.
fn check_difference(error_rate: f64, common: u64, missing: u64, others: u64, trials: u64) {
    let mut stated = 0.0;
    let mut error = |seed| {
        let end = common + missing;
        let one = counter(error_rate, seed, 0..end);
        let other = counter(error_rate, seed, (0..common).chain(end..end + others));
        let difference = diff_card(&[one.at(Time::Reached), other.at(Time::Reached)]).unwrap();
        stated += difference.standard_error / missing as f64 / trials as f64;
        difference.estimate / missing as f64 - 1.0
    };
    let errors: Vec<_> = (0..trials).map(&mut error).collect();
    assert_as_stated(&errors, stated, &format!("{missing} missing beside {common} common, {others} others"));
}

#[test]
fn differences_are_within_their_error() {
    // B is a subset of A, as readers are a subset of recipients. The 100 missing members are known within 3.3
    // members.
    check_difference(0.005, 49_900, 100, 0, 200);
    check_difference(0.01, 40_000, 10_000, 0, 200);
    // Neither counter is a subset of the other.
    check_difference(0.01, 10_000, 10_000, 20_000, 200);
    check_difference(0.02, 50_000, 50_000, 20_000, 200);
}

/// Two standard errors around the estimate cover the true difference in nearly all trials, also if B leaves few free
/// slots and the estimate is mostly 0. Normal errors would be covered in 95.4 % of trials; the test requires 88 %, less
/// the binomial noise.
#[test]
fn two_errors_cover_a_difference() {
    let trials = 100u32;
    let least = 0.88 * f64::from(trials) - SIGMAS * (0.88 * 0.12 * f64::from(trials)).sqrt();
    // The numbers of common members, of members only in A, and of members only in B.
    for error_rate in [0.01, 0.02, 0.005] {
        for (common, others) in [(1_000, 0), (50_000, 0), (100_000, 10_000)] {
            const MISSING: [u64; 5] = [0, 1, 10, 100, 1_000];
            let mut covered = [0.0; MISSING.len()];
            for seed in 0..trials {
                let mut one = counter(error_rate, u64::from(seed), 0..common);
                let mut other = one.try_clone().unwrap();
                add_all(&mut other, u64::MAX - others..u64::MAX);
                for (covered, missing) in covered.iter_mut().zip(MISSING) {
                    add_all(&mut one, common..common + missing);
                    let found = diff_card(&[one.at(Time::Reached), other.at(Time::Reached)]).unwrap();
                    let is_covered = found.count().abs_diff(missing) as f64 <= 2.0 * found.standard_error;
                    *covered += f64::from(u8::from(is_covered));
                }
            }
            println!("{MISSING:?} of {common}, {others} others, at {error_rate}: {covered:?} of {trials}");
            assert!(
                covered.iter().all(|&covered| covered >= least),
                "{common}, {others} others, {error_rate}: {covered:?}"
            );
        }
    }
}

/// Tests differences of one to five members. Most of these members set a bit that B lacks; one or two may not.
#[test]
fn two_errors_cover_a_difference_of_few() {
    const TRIALS: u64 = 300;
    let least = 0.88 * TRIALS as f64 - SIGMAS * (0.88 * 0.12 * TRIALS as f64).sqrt();
    for error_rate in [0.01, 0.005] {
        for common in [1_000, 2_500, 3_000, 10_000, 20_000] {
            let mut covered = [0u64; 5];
            for seed in 0..TRIALS {
                let other = counter(error_rate, seed, 0..common);
                let mut one = other.try_clone().unwrap();
                for (missing, covered) in (1..).zip(&mut covered) {
                    add_all(&mut one, common..common + missing);
                    let found = diff_card(&[one.at(Time::Reached), other.at(Time::Reached)]).unwrap();
                    *covered += u64::from(found.count().abs_diff(missing) as f64 <= 2.0 * found.standard_error);
                }
            }
            println!("1 to 5 of {common} at {error_rate}: {covered:?} of {TRIALS}");
            assert!(covered.iter().all(|&covered| covered as f64 >= least), "{common}, {error_rate}: {covered:?}");
        }
    }
}

/// Two standard errors cover the count, and the root mean square of the errors is one standard error, even if that is
/// less than a member.
#[test]
fn two_errors_cover_counts_that_are_hardly_off() {
    const TRIALS: u64 = 400;
    let least = 0.88 * TRIALS as f64 - SIGMAS * (0.88 * 0.12 * TRIALS as f64).sqrt();
    for members in [300, 400, 440, 550, 700, 850, 1_000, 1_400] {
        let (mut covered, mut stated, mut square) = (0, 0.0, 0.0);
        for seed in 0..TRIALS {
            let counter = counter(0.0025, seed, 0..members);
            let error = counter.count() as f64 * counter.standard_error();
            let off = counter.count().abs_diff(members) as f64;
            assert!(error > 0.499_999, "{error}");
            covered += u64::from(off <= 2.0 * error);
            stated += error / TRIALS as f64;
            square += off * off / TRIALS as f64;
        }
        println!("{members} members: {covered} of {TRIALS}, rms {}, stated {stated}", square.sqrt());
        assert!(covered as f64 >= least, "{members}: {covered} of {TRIALS}");
        // Counts are rounded to whole members. Rounding is not independent of the error, so it may add up to half a
        // member.
        let most = (stated * stated + 0.25) * (1.0 + SIGMAS / (TRIALS as f64 / 2.0).sqrt());
        assert!(square <= most, "{members}: {} of {stated}", square.sqrt());
    }
}

/// The difference of a small and a large set is estimated from the slots of both counters. This is more precise than
/// subtracting the large set's count from the union's.
#[test]
fn differences_of_small_sets_are_known_from_the_pair() {
    const TRIALS: u64 = 200;
    for (small, large, most) in [(500, 50_000, 45.0), (3_000, 30_000, 65.0)] {
        let error = |seed| {
            let [one, other] = [0..small, small..small + large].map(|numbers| counter(0.01, seed, numbers));
            let found = diff_card(&[one.at(Time::Reached), other.at(Time::Reached)]).unwrap();
            assert!(found.count() <= one.count());
            found.count() as f64 - small as f64
        };
        let rms = rms(&(0..TRIALS).map(error).collect::<Vec<_>>());
        println!("{small} beside {large}: {rms}");
        assert!(rms <= most, "{small} beside {large}: {rms}");
    }
}

/// An exact counter is hashed into the layout of the other counter. So the number of its 100 members that are missing
/// in a counter of 50,000 is known within eight members, whatever the exact counter's own error rate is.
#[test]
fn differences_of_exact_counters_are_as_fine_as_the_others() {
    let (trials, missing) = (200, 50u64);
    let mut stated = 0.0;
    let error = |seed| {
        let one = counter(0.02, seed, 0..100);
        let other = counter(0.005, seed, missing..50_000);
        assert!(one.is_exact());
        let difference = diff_card(&[one.at(Time::Reached), other.at(Time::Reached)]).unwrap();
        stated += difference.standard_error / trials as f64;
        difference.estimate - missing as f64
    };
    let errors: Vec<_> = (0..trials).map(error).collect();
    assert!(stated < 9.0, "{stated}");
    assert_as_stated(&errors, stated, "50 of 100 beside 50,000");
}
