use super::*;
use crate::counting::estimate::error_of_whole;
use crate::counting::estimate::standard_error;
use crate::counting::held::Held;
use crate::counting::held::ring::Ages;
use crate::counting::held::slots::Slots;
use crate::counting::layout::{LARGEST_ERRORS, Layout, MIN_SEGMENT_BITS};
use crate::counting::params::Spec;
use crate::counting::sets::pair;
use crate::counting::sets::tests::{estimate_intersection, estimate_union};
use crate::counting::view::tests::standing;
use crate::hash::hash64;
use proptest::prelude::*;

fn params(layout: Layout, exact_limit: u32) -> Params {
    let error_rate = LARGEST_ERRORS[(layout.segment_bits() - MIN_SEGMENT_BITS) as usize];
    Params { error_rate, exact_limit, exact_bytes: 1 << 20, seed: 7 }
}

fn counter(layout: Layout, exact_limit: u32, members: impl Iterator<Item = u64>) -> Counter {
    let mut counter = Counter::new(params(layout, exact_limit)).unwrap();
    members.for_each(|member| {
        counter.add(member.to_le_bytes(), &Unlimited).unwrap();
    });
    counter
}

/// The set bits in the union of each subset of `counters`.
fn unions_in(layout: Layout, counters: &[&Counter]) -> Vec<Segments> {
    let bitmaps: Vec<_> = standing(counters).into_iter().map(|view| union_of(layout, &[view]).unwrap()).collect();
    unions_of(&bitmaps).unwrap()
}

#[test]
fn empty_and_single_counters_are_as_expected() {
    let of = |members| counter(Layout::new(8), 10, 0..members);
    let (empty, exact, estimate) = (of(0), of(5), of(2000));
    assert_eq!(estimate_intersection(&[]), Ok(Estimated::exact(0)));
    assert_eq!(estimate_intersection(&[&estimate, &empty]), Ok(Estimated::exact(0)));
    assert_eq!(estimate_intersection(&[&exact]), Ok(Estimated::exact(5)));
    assert_eq!(estimate_intersection(&[&estimate]), estimate_union(&[&estimate]));
    // The exact counters share no member, so the members of the estimating counter do not matter.
    let other = counter(Layout::new(8), 10, 100..105);
    assert_eq!(estimate_intersection(&[&exact, &estimate, &other]), Ok(Estimated::exact(0)));
    let most = [&[&exact, &other][..], &[&estimate; MAX_INTERSECTED]].concat();
    assert_eq!(estimate_intersection(&most), Ok(Estimated::exact(0)));
}

#[test]
fn a_counter_and_itself_have_all_in_common() {
    for members in [20, 500, 5000, 200_000] {
        let one = counter(Layout::new(10), 10, 0..members);
        let alone = estimate_union(&[&one]).unwrap();
        let twice = estimate_intersection(&[&one, &one]).unwrap();
        assert!((twice.estimate / alone.estimate - 1.0).abs() < 1e-9, "{twice:?} and {alone:?}");
        // Equal bitmaps do not prove equal members.
        let segments = unions_in(one.layout(), &[&one])[1];
        let more = 2.0 * unseen_variance(segments.free_share()) + UNEVEN;
        let both = error_of_whole((segments.standard_error(alone.estimate).powi(2) + more).sqrt());
        assert!((twice.standard_error / both - 1.0).abs() < 1e-6, "{twice:?} and {alone:?}");
    }
}

/// Just after the promotion most counters have bits for fewer or more members than their lower bound.
#[test]
fn every_set_operation_estimates_a_counter_alike() {
    let (mut raised, empty) = (0, counter(Layout::new(8), 250, 0..0));
    for first in (0..40_000).step_by(1000) {
        let one = counter(Layout::new(8), 250, first..first + 251);
        let (alone, without_bound) =
            (one.at(Time::Reached).estimated(), unions_in(one.layout(), &[&one])[1].estimate());
        raised += u32::from(without_bound < 249.5);
        assert_eq!(estimate_union(&[&one, &empty]), Ok(alone));
        assert_eq!((one.difference(&[]), one.difference(&[&empty, &empty])), (Ok(alone), Ok(alone)));
        // A copy, and a counter that has all of it.
        let more = counter(Layout::new(9), 250, first..first + 700);
        for others in [&[&one][..], &[&one; 2], &[&more], &[&more, &one, &more]] {
            let found = estimate_intersection(&[&[&one], others].concat()).unwrap();
            assert_eq!(found.count(), one.count(), "{found:?} with {others:?}");
        }
        let known = counter(Layout::new(8), 251, first..first + 251);
        assert_eq!(estimate_intersection(&[&known, &more]).unwrap().count(), 251);
    }
    assert!(raised >= 10, "{raised}");
}

#[test]
fn known_members_bound_the_intersection() {
    // A bitmap this full says next to nothing about single members. So the error says that any number of them may be
    // common.
    let mut full = Counter::new(Params { exact_bytes: 1, ..params(Layout::new(8), 0) }).unwrap();
    (0..1_000_000u64).for_each(|member| drop(full.add(member.to_le_bytes(), &Unlimited)));
    let known = counter(Layout::new(8), 10, 0..10);
    let found = estimate_intersection(&[&full, &known]).unwrap();
    assert!((0.0..=10.0).contains(&found.estimate) && found.standard_error == 10.0, "{found:?}");
    // The common members of two exact counters are known too, although the first counter lists none.
    let others = counter(Layout::new(8), 20, 5..15);
    let found = estimate_intersection(&[&full, &known, &others]).unwrap();
    assert!((0.0..=5.0).contains(&found.estimate) && found.standard_error == 5.0, "{found:?}");
}

#[test]
fn intersections_with_full_bitmaps_are_finite() {
    let layout = Layout::new(8);
    let mut slots = Slots::wide(layout, Ages::PLAIN).unwrap();
    (0..layout.num_slots() as u32).for_each(|slot| slots.mark_wide(slot, 0));
    let slots = Box::new(slots.formed(|_| Ok(())).unwrap());
    let spec = Spec::new(params(layout, 0)).unwrap();
    let full = Counter::holding(spec, Held::Estimating(slots), None);
    let (known, one) = (counter(layout, 10, 0..3), counter(layout, 0, 0..300));
    let size = one.at(Time::Reached).estimated();
    let largest = full.at(Time::Reached).estimated();
    let cases: [(&[&Counter], f64); 4] = [
        (&[&full, &known], 3.0),
        (&[&full, &full, &known], 3.0),
        (&[&full, &one], size.estimate + size.standard_error),
        (&[&full, &full], largest.estimate + largest.standard_error),
    ];
    for (counters, error) in cases {
        let found = estimate_intersection(counters).unwrap();
        assert!(found.estimate.is_finite() && found.standard_error == error, "{found:?}, {error}");
    }
}

#[test]
fn too_many_counters_and_different_seeds_are_rejected() {
    let one = counter(Layout::new(8), 0, 0..100);
    let many = [&one; MAX_INTERSECTED + 1];
    assert!(estimate_intersection(&many[1..]).is_ok());
    let error = estimate_intersection(&many).unwrap_err();
    assert_eq!(error.to_string(), "number of counters must be at most 8 that hold estimates, got 9");
    // All exact counters together count as one.
    let exact = counter(Layout::new(8), 200, 0..100);
    let mixed = [[&one; MAX_INTERSECTED - 1].as_slice(), &[&exact; 20]].concat();
    assert!(estimate_intersection(&mixed).is_ok());
    let foreign = Counter::new(Params { seed: 1, ..params(Layout::new(8), 0) }).unwrap();
    assert!(matches!(estimate_intersection(&[&one, &foreign]), Err(Error::Incompatible { .. })));
}

#[test]
fn two_sets_are_reported_better_by_likelihood() {
    // Shares of the hash space are weighted differently in each union, so the signed sum of unions has a larger error
    // if sets differ much. The expected errors come from the Fisher information and the covariances, computed by a
    // separate program.
    for (alone, other, both, by_likelihood, by_unions) in
        [(15_000, 15_000, 5000, 161.1, 216.5), (500, 50_000, 500, 53.3, 68.6), (1, 20_000, 2000, 13.2, 13.2)]
    {
        let layout = Layout::new(12);
        let members = |number: u64| hash64(&number.to_le_bytes(), 1);
        let first = counter(layout, 0, (0..alone + both).map(members));
        let second = counter(layout, 0, (alone..alone + both + other).map(members));
        let unions = unions_in(layout, &[&first, &second]);
        let reported = of_pair(&unions[1], &unions[2], &unions[3], 0.0).unwrap().variance.sqrt();
        let summed = of_unions(&unions).unwrap().variance.sqrt();
        // The expected errors are for the numbers found, which differ by a tenth.
        assert!((reported / by_likelihood - 1.0).abs() < 0.1, "{reported} for {by_likelihood}");
        assert!((summed / by_unions - 1.0).abs() < 0.15, "{summed} for {by_unions}");
        assert!(reported <= summed * 1.001, "{reported} and {summed}");
        // The reported error also includes the variance of unseen members.
        let unseen: f64 =
            [&first, &second].map(|set| unions_in(layout, &[set])[1].free_share()).map(unseen_variance).iter().sum();
        let found = estimate_intersection(&[&first, &second]).unwrap().standard_error;
        let expected = error_of_whole((reported * reported + unseen + UNEVEN).sqrt());
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} for {reported} and {unseen}");
    }
}

#[test]
fn three_sets_are_reported_by_inclusion_and_exclusion() {
    let layout = Layout::new(12);
    let [a, b, c] = [0..9000, 3000..12_000, 6000..15_000].map(|members| counter(layout, 0, members));
    let found = estimate_intersection(&[&a, &b, &c]).unwrap();
    let union = |sets: &[&Counter]| estimate_union(sets).unwrap().estimate;
    let expected = union(&[&a]) + union(&[&b]) + union(&[&c]) - union(&[&a, &b]) - union(&[&a, &c]) - union(&[&b, &c])
        + union(&[&a, &b, &c]);
    assert!((found.estimate - expected).abs() < 1e-6, "{found:?}, not {expected}");
    assert!((found.estimate - 3000.0).abs() < 3.0 * found.standard_error && found.standard_error < 400.0, "{found:?}");
}

/// The standard error of an intersection is no smaller than that of a bitmap of the common members alone. It depends on
/// the sets, not on the errors of the estimated unions.
#[test]
fn an_intersection_is_known_no_better_than_its_members_alone() {
    let layouts = [Layout::new(12), Layout::new(9), Layout::new(8)];
    for (case, (own, common)) in [(0, 300), (300, 300), (3000, 30), (3000, 3000), (9000, 1)].into_iter().enumerate() {
        for (number, layout) in layouts.into_iter().enumerate() {
            for sets in [3, 5, 8] {
                let seed = (10 * case + number) as u64;
                let member = |number: u64| hash64(&number.to_le_bytes(), seed);
                let counters: Vec<Counter> = (1..=sets)
                    .map(|set| set << 32)
                    .map(|first| counter(layout, 0, (0..common).chain(first..first + own).map(member)))
                    .collect();
                let counters: Vec<&Counter> = counters.iter().collect();
                let unions = unions_in(layout, &counters);
                let Common { estimate, variance } = of_unions(&unions).unwrap();
                let alone = estimate * standard_error(layout, estimate);
                assert!(variance >= alone * alone * (1.0 - 1e-9), "{sets} sets, {own}, {common}: {variance}, {alone}");
                // The result does not depend on the order of the counters.
                let reported = estimate_intersection(&counters).unwrap();
                let reversed: Vec<&Counter> = counters.iter().copied().rev().collect();
                let again = estimate_intersection(&reversed).unwrap();
                assert!((reported.standard_error / again.standard_error - 1.0).abs() < 1e-6, "{reported:?}, {again:?}");
            }
        }
    }
}

#[test]
fn intersections_near_zero_are_estimated_as_zero() {
    let layout = Layout::new(12);
    let mut none = 0;
    for start in (0..20_000).step_by(1000) {
        let [one, other] = [start..start + 500, start + 500..start + 1000].map(|members| counter(layout, 0, members));
        let both = estimate_intersection(&[&one, &other]).unwrap();
        assert!(both.estimate == 0.0 || both.estimate >= 1e-6, "{both:?}");
        none += u32::from(both.estimate == 0.0);
    }
    // The most likely number of common members is 0 about as often as not.
    assert!((3..=17).contains(&none), "{none}");
}

/// If the most likely number is zero, the other numbers still have a maximum. The search finds it in few steps, because
/// the server's main thread waits for it.
#[test]
fn disjoint_sets_are_reported_by_likelihood_too() {
    for (segment_bits, one, other) in [(8, 500, 500), (12, 20_000, 20_000), (12, 1, 5000)] {
        let layout = Layout::new(segment_bits);
        for seed in 0..20 {
            let members = |range: std::ops::Range<u64>| range.map(move |number| hash64(&number.to_le_bytes(), seed));
            let first = counter(layout, 0, members(0..one));
            let second = counter(layout, 0, members(one..one + other));
            let unions = unions_in(layout, &[&first, &second]);
            pair::EVALUATIONS.set(0);
            let Common { estimate, variance } = of_pair(&unions[1], &unions[2], &unions[3], 0.0).unwrap();
            assert!(estimate <= 5.0 * variance.sqrt().max(1.0), "{estimate}, {variance}");
            let evaluations = pair::EVALUATIONS.get();
            assert!(evaluations <= 80, "{evaluations} for {estimate}");
            assert!(variance <= 1.002 * of_unions(&unions).unwrap().variance, "{estimate}, {variance}");
        }
    }
}

/// The logarithm of the likelihood of two bitmaps and their union, up to a constant. `x` members are in the first set
/// alone, `y` in the second alone, and `z` in both.
fn log_likelihood(unions: &[Segments], [x, y, z]: [f64; 3]) -> f64 {
    let [one, other, both] = [1, 2, 3].map(|marks: usize| unions[marks].as_slice());
    let of_segment = |i: usize| {
        let (a, free) = (both[i].share, |n: f64| (-both[i].share * n).exp());
        let chances = [
            free(x + y + z),
            free(y + z) * (1.0 - free(x)),
            free(x + z) * (1.0 - free(y)),
            1.0 - free(z) + free(z) * (1.0 - free(x)) * (1.0 - free(y)),
        ];
        let (alone, beside) = (other[i].zero - both[i].zero, one[i].zero - both[i].zero);
        let seen = [both[i].zero, alone, beside, both[i].slots - both[i].zero - alone - beside];
        assert!(a > 0.0 && (chances.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        seen.iter().zip(chances).filter(|(seen, _)| **seen > 0.0).map(|(seen, chance)| seen * chance.ln()).sum::<f64>()
    };
    (0..both.len()).map(of_segment).sum()
}

#[test]
fn the_numbers_reported_are_the_most_likely_ones_from_wherever_they_are_looked_for() {
    for (one, other, both) in [(3000, 2000, 1000), (5000, 50, 40), (40, 4000, 4000), (2000, 2000, 0), (1, 9000, 3000)] {
        let layout = Layout::new(9);
        let members = |range: std::ops::Range<u64>| range.map(|number| hash64(&number.to_le_bytes(), 3));
        let first = counter(layout, 0, members(0..one + both));
        let second = counter(layout, 0, members(one..one + both + other));
        let unions = unions_in(layout, &[&first, &second]);
        let pair = Pair::new(&unions[1], &unions[2], &unions[3]);
        let expected = pair.most_likely([one as f64, other as f64, both as f64]).unwrap();
        for start in [[0.0; 3], [1.0; 3], [1e4, 1.0, 1.0], [1.0, 1.0, 1e4], [100.0, 1e4, 8.0], [3e4; 3]] {
            let (numbers, variances) = pair.most_likely(start).unwrap();
            for (number, expected) in numbers.iter().zip(expected.0) {
                assert!((number - expected).abs() <= 1e-7 * expected + 1e-7, "{numbers:?} from {start:?}");
            }
            for (variance, expected) in variances.iter().zip(expected.1) {
                assert!((variance / expected - 1.0).abs() < 1e-6, "{variances:?} from {start:?}");
            }
        }
        let most = log_likelihood(&unions, expected.0);
        for i in 0..3 {
            for step in [-0.01, 0.01, -0.3, 0.3, 1.0] {
                let mut numbers = expected.0;
                numbers[i] += step * numbers[i].max(5.0);
                if numbers[i] > 0.0 {
                    let log = log_likelihood(&unions, numbers);
                    assert!(log <= most, "{numbers:?} are more likely than {:?}", expected.0);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn intersections_stay_within_bounds(
        ranges in proptest::collection::vec((0u64..3000, 0u64..3000), 2..5),
        exact_limit in 0u32..50,
    ) {
        let counters: Vec<_> =
            ranges.iter().map(|&(start, len)| counter(Layout::new(8), exact_limit, start..start + len)).collect();
        let counters: Vec<&Counter> = counters.iter().collect();
        let found = estimate_intersection(&counters).unwrap();
        let smallest = counters.iter().map(|counter| counter.estimate()).fold(f64::INFINITY, f64::min);
        prop_assert!(found.estimate >= 0.0 && found.estimate <= smallest * (1.0 + 1e-12));
        prop_assert!(found.standard_error >= 0.0 && found.standard_error.is_finite());
        prop_assert!(found.standard_error > 0.0 || found.estimate == 0.0 || counters.iter().all(|c| c.is_exact()));
    }
}
