use super::*;
use crate::counting::estimate_union;
use crate::hash::hash64;
use proptest::collection::btree_set;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn params(exact_limit: u32) -> Params {
    Params { capacity: 1000, error_rate: 0.05, exact_limit, exact_bytes: 1 << 20, seed: 7 }
}

fn counter(layout: Layout, exact_limit: u32, members: impl Iterator<Item = u64>) -> Counter {
    let mut counter = Counter::with_layout(params(exact_limit), layout).unwrap();
    members.for_each(|member| {
        counter.add(&member.to_le_bytes(), &Unlimited).unwrap();
    });
    counter
}

fn layout(precision: u32, tail_bits: u32) -> Layout {
    Layout::new(precision, tail_bits).unwrap()
}

#[test]
fn empty_and_single_counters_are_as_expected() {
    let of = |members| counter(layout(10, 8), 10, 0..members);
    let (empty, exact, estimate) = (of(0), of(5), of(2000));
    assert_eq!(estimate_intersection(&[]), Ok(Estimated::exact(0)));
    assert_eq!(estimate_intersection(&[&estimate, &empty]), Ok(Estimated::exact(0)));
    assert_eq!(estimate_intersection(&[&exact]), Ok(Estimated::exact(5)));
    assert_eq!(estimate_intersection(&[&estimate]), estimate_union(&[&estimate]));
    // None of the exact members is in the other exact one, so what the estimate has does not matter.
    let other = counter(layout(10, 8), 10, 100..105);
    assert_eq!(estimate_intersection(&[&exact, &estimate, &other]), Ok(Estimated::exact(0)));
}

#[test]
fn a_counter_and_itself_have_all_in_common() {
    for members in [20, 500, 5000, 200_000] {
        let one = counter(layout(11, 9), 10, 0..members);
        let alone = estimate_union(&[&one]).unwrap();
        let twice = estimate_intersection(&[&one, &one]).unwrap();
        assert!((twice.estimate / alone.estimate - 1.0).abs() < 1e-9, "{twice:?} and {alone:?}");
        assert!((twice.standard_error / alone.standard_error - 1.0).abs() < 1e-6, "{twice:?} and {alone:?}");
    }
}

#[test]
fn known_members_bound_the_intersection() {
    // So full a bitmap tells next to nothing of single members.
    let full = counter(layout(9, 8), 0, 0..1_000_000);
    let known = counter(layout(9, 8), 10, 0..10);
    let found = estimate_intersection(&[&full, &known]).unwrap();
    assert!((0.0..=10.0).contains(&found.estimate) && (0.0..=10.0).contains(&found.standard_error), "{found:?}");
}

#[test]
fn made_up_bitmaps_have_finite_estimates() {
    let layout = layout(9, 8);
    let bits = vec![u64::MAX; layout.num_words()];
    let full = {
        let bitmap = crate::counting::slots::Bitmap::from_words(layout, bits.into_boxed_slice());
        Counter::from_state(params(0), layout, 0, crate::counting::counter::State::Estimating(bitmap))
    };
    let one = counter(layout, 0, 0..300);
    for counters in [[&full, &one], [&full, &full]] {
        let found = estimate_intersection(&counters).unwrap();
        assert!(found.estimate.is_finite() && found.standard_error >= 0.0, "{found:?}");
    }
}

#[test]
fn too_many_and_different_seeds_are_refused() {
    let one = counter(layout(10, 8), 0, 0..100);
    let many = [&one; MAX_INTERSECTED + 1];
    assert!(estimate_intersection(&many[1..]).is_ok());
    let error = estimate_intersection(&many).unwrap_err();
    assert_eq!(error.to_string(), "number of counters must be at most 8 that hold estimates, got 9");
    // Exact ones come as one.
    let exact = counter(layout(10, 8), 200, 0..100);
    let mixed = [[&one; MAX_INTERSECTED - 1].as_slice(), &[&exact; 20]].concat();
    assert!(estimate_intersection(&mixed).is_ok());
    let foreign = Counter::with_layout(Params { seed: 1, ..params(0) }, layout(10, 8)).unwrap();
    assert!(matches!(estimate_intersection(&[&one, &foreign]), Err(Error::Incompatible { .. })));
}

/// Ranges of numbers, each a start and an end: the members of a set.
type Ranges<'a> = &'a [(u64, u64)];

/// Root of the mean square of errors over the standard errors told, in trials with fixed members: 1 where these are
/// right, up to chance.
fn told_and_found(layouts: &[Layout], exact_limit: u32, sets: &[Ranges<'_>], truth: u64) -> (f64, usize) {
    const TRIALS: usize = 200;
    let mut squares = 0.0;
    for trial in 0..TRIALS as u64 {
        let counters: Vec<_> = sets
            .iter()
            .zip(layouts.iter().cycle())
            .map(|(ranges, &layout)| {
                let members = ranges.iter().flat_map(|&(start, end)| start..end);
                counter(layout, exact_limit, members.map(|member| hash64(&member.to_le_bytes(), trial)))
            })
            .collect();
        let found = estimate_intersection(&counters.iter().collect::<Vec<_>>()).unwrap();
        assert!(found.standard_error > 0.0);
        squares += ((found.estimate - truth as f64) / found.standard_error).powi(2);
    }
    ((squares / TRIALS as f64).sqrt(), TRIALS)
}

#[test]
fn errors_are_as_told() {
    let (fine, coarse) = (layout(14, 10), layout(12, 9));
    let cases: [(&[Layout], u32, &[Ranges<'_>], u64); 9] = [
        // Two sets, a half and a tenth in common, below and past what the main bitmap holds.
        (&[fine], 0, &[&[(0, 4000)], &[(2000, 6000)]], 2000),
        (&[fine], 0, &[&[(0, 10_000)], &[(9000, 19_000)]], 1000),
        (&[coarse], 0, &[&[(0, 40_000)], &[(20_000, 60_000)]], 20_000),
        // One within the other.
        (&[fine], 0, &[&[(0, 20_000)], &[(0, 2000)]], 2000),
        // Of different layouts.
        (&[fine, coarse], 0, &[&[(0, 9000)], &[(6000, 12_000)]], 3000),
        // Three and four.
        (&[fine], 0, &[&[(0, 9000)], &[(3000, 12_000)], &[(0, 6000)]], 3000),
        (&[fine], 0, &[&[(0, 4000)], &[(1000, 5000)], &[(0, 3000), (6000, 7000)], &[(2000, 8000)]], 1000),
        // An exact one among them.
        (&[coarse], 500, &[&[(0, 500)], &[(400, 3000)]], 100),
        (&[coarse], 500, &[&[(0, 500)], &[(100, 3000)], &[(300, 2500)]], 200),
    ];
    for (number, (layouts, exact_limit, sets, truth)) in cases.into_iter().enumerate() {
        let (ratio, trials) = told_and_found(layouts, exact_limit, sets, truth);
        // The standard error of a root mean square of normal errors; five of them either way, for nine cases of fixed
        // seeds.
        let tolerance = 5.0 / (2.0 * trials as f64).sqrt();
        assert!((ratio - 1.0).abs() < tolerance, "case {number}: errors are {ratio} of those told");
    }
}

#[test]
fn two_sets_are_told_better_by_likelihood() {
    // Shares of the hash space weigh otherwise in each union, so a sum of these is further off where sets differ much.
    // The figures are those of the Fisher information and of the covariances, worked out apart from this program.
    for (alone, other, both, by_likelihood, by_unions) in
        [(15_000, 15_000, 5000, 192.8, 208.6), (500, 50_000, 500, 77.1, 87.9), (1, 20_000, 2000, 11.0, 11.0)]
    {
        let layout = layout(14, 10);
        let members = |number: u64| hash64(&number.to_le_bytes(), 1);
        let first = counter(layout, 0, (0..alone + both).map(members));
        let second = counter(layout, 0, (alone..alone + both + other).map(members));
        let told = estimate_intersection(&[&first, &second]).unwrap().standard_error;
        let summed = of_unions(&Union::of_all(layout, &[&first, &second]).unwrap()).standard_error;
        // They are those of the numbers found, which are some hundredths off.
        assert!((told / by_likelihood - 1.0).abs() < 0.1, "{told} for {by_likelihood}");
        assert!((summed / by_unions - 1.0).abs() < 0.1, "{summed} for {by_unions}");
        assert!(told <= summed * 1.001, "{told} and {summed}");
    }
}

proptest! {
    #[test]
    fn exact_intersections_are_those_of_sets(sets in proptest::collection::vec(btree_set(0u64..20, 0..=20), 1..5)) {
        let counters: Vec<_> = sets.iter().map(|set| counter(layout(10, 8), 20, set.iter().copied())).collect();
        let all = sets.iter().cloned().reduce(|a, b| &a & &b).unwrap_or_else(BTreeSet::new);
        let found = estimate_intersection(&counters.iter().collect::<Vec<_>>());
        prop_assert_eq!(found, Ok(Estimated::exact(all.len())));
    }

    #[test]
    fn intersections_stay_within_bounds(
        ranges in proptest::collection::vec((0u64..3000, 0u64..3000), 2..5),
        exact_limit in 0u32..50,
    ) {
        let counters: Vec<_> =
            ranges.iter().map(|&(start, len)| counter(layout(10, 8), exact_limit, start..start + len)).collect();
        let counters: Vec<&Counter> = counters.iter().collect();
        let found = estimate_intersection(&counters).unwrap();
        let smallest = counters.iter().map(|counter| counter.estimate()).fold(f64::INFINITY, f64::min);
        prop_assert!(found.estimate >= 0.0 && found.estimate <= smallest * (1.0 + 1e-12));
        prop_assert!(found.standard_error >= 0.0 && found.standard_error.is_finite());
        prop_assert!(found.standard_error > 0.0 || found.estimate == 0.0 || counters.iter().all(|c| c.is_exact()));
    }
}
