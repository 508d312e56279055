//! Tests of unions and differences.

use super::*;
use crate::bits;
use crate::counting::counter::tests::{RATES, add, counter, params, words};
use crate::counting::held::members::tests::LOOKED_AT;
use crate::counting::held::ring::own_bytes;
use crate::counting::sets::tests::count_union;
use crate::counting::{Counter, Params};
use crate::error::Parameter;
use crate::live::Value;
use crate::size_limit::{MaxBytes, Unlimited};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

impl Counter {
    /// Whether the counter estimates and has members, so that the layout of its bitmap matters.
    fn has_slots(&self) -> bool {
        self.set_bits() > 0
    }
}

/// Some items and a counter of them, in any representation and layout.
fn any_counter() -> impl Strategy<Value = (Counter, Vec<u64>)> {
    let numbers = prop_oneof![vec(0u64..1000, 0..40), vec(0u64..3000, 0..2000)];
    let exact_limit = prop_oneof![Just(0), Just(100), Just(5000)];
    (numbers, 0..RATES.len(), exact_limit).prop_map(|(numbers, rate, exact_limit)| {
        (counter(params(RATES[rate], exact_limit), numbers.iter().copied()), numbers)
    })
}

fn merged(counter: &Counter, others: &[&Counter]) -> Counter {
    let mut union = counter.try_clone().unwrap();
    union.merge(others, &Unlimited).unwrap();
    union
}

#[test]
fn a_merge_asks_for_the_memory_that_it_adds() {
    let of = |members: std::ops::Range<u32>| {
        let params = Params { exact_limit: 0, ..Params::default() };
        let mut counter = Counter::new(params).unwrap();
        members.for_each(|member| assert!(counter.add(member.to_le_bytes(), &Unlimited).is_ok()));
        counter
    };
    let (mut ours, mut few) = (of(0..5000), of(0..10));
    let (before, all) = (ours.estimate(), of(0..6000));
    assert_eq!(ours.merge(&[&of(4000..5000), &few], &MaxBytes(0)), Ok(false));
    let rejected = ours.merge(&[&of(4000..6000), &few], &MaxBytes(all.num_bytes() - 1));
    assert!(matches!(rejected, Err(Error::TooLarge { .. })) && ours.estimate() == before, "{rejected:?}");
    assert_eq!(ours.merge(&[&of(4000..6000), &few], &MaxBytes(all.num_bytes())), Ok(true));
    assert_eq!((ours.estimate(), ours.num_bytes()), (all.estimate(), all.num_bytes()));
    assert!(matches!(few.merge(&[&ours], &MaxBytes(0)), Err(Error::TooLarge { .. })));
}

#[test]
fn different_seeds_are_rejected() {
    let mut one = counter(params(RATES[2], 250), [1]);
    let other = counter(Params { seed: 1, ..params(RATES[2], 250) }, [1]);
    let seed = Error::Incompatible { parameter: Parameter::Seed, ours: "0".into(), theirs: "1".into() };
    assert_eq!(one.merge(&[&other], &Unlimited), Err(seed.clone()));
    assert_eq!(count_union(&[&one, &other]), Err(seed.clone()));
    assert_eq!(one.difference(&[&other]), Err(seed.clone()));
    assert_eq!(one.members_beyond(&[&other]), Err(seed));
}

#[test]
fn union_of_nothing_is_empty() {
    assert_eq!(count_union(&[]), Ok(0));
    let one = counter(params(RATES[2], 250), 0..10);
    assert_eq!(one.difference(&[]), Ok(Estimated { estimate: 10.0, standard_error: 0.0 }));
}

/// A destination keeps its error rate, or takes the largest of sources that estimate if this is larger. A new union has
/// the largest of the counters that estimate, or else that of the first. All other parameters are those of the first.
#[test]
fn error_rates_of_merges_and_unions() {
    let (exact, estimating) = (10, 300);
    type Rated = (f64, u64);
    let cases: [(Rated, &[Rated], [f64; 2]); 9] = [
        ((0.04, exact), &[(0.005, estimating)], [0.04, 0.005]),
        ((0.04, exact), &[(0.005, estimating), (0.01, estimating)], [0.04, 0.01]),
        ((0.005, exact), &[(0.04, estimating)], [0.04, 0.04]),
        ((0.005, estimating), &[(0.04, exact), (0.02, 0)], [0.005, 0.005]),
        ((0.04, estimating), &[(0.005, estimating)], [0.04, 0.04]),
        ((0.005, estimating), &[(0.02, estimating), (0.04, estimating)], [0.04, 0.04]),
        ((0.02, exact), &[(0.04, exact), (0.005, exact)], [0.02, 0.02]),
        // Of one layout, the own error rate stays.
        ((0.0201, exact), &[(0.02, estimating)], [0.0201, 0.0201]),
        ((0.02, exact), &[(0.0201, estimating)], [0.02, 0.02]),
    ];
    for ((rate, members), others, expected) in cases {
        let first = counter(params(rate, 100), 0..members);
        let others: Vec<_> = others.iter().map(|&(rate, members)| counter(params(rate, 250), 0..members)).collect();
        let others: Vec<_> = others.iter().collect();
        let unions = [merged(&first, &others), Counter::union(&first, &others, &Unlimited).unwrap()];
        assert_eq!(unions.map(|union| *union.params()), expected.map(|rate| params(rate, 100)));
    }
}

#[test]
fn empty_estimating_counters_leave_the_others_exact() {
    let empty = counter(params(RATES[0], 0), []);
    let mut one = counter(params(RATES[2], 250), 0..20);
    assert_eq!(count_union(&[&one, &empty]), Ok(20));
    assert_eq!(one.difference(&[&empty]), Ok(Estimated { estimate: 20.0, standard_error: 0.0 }));
    assert!(!one.merge(&[&empty], &Unlimited).unwrap() && one.is_exact());
    let mut estimating = empty.try_clone().unwrap();
    assert!(estimating.merge(&[&one], &Unlimited).unwrap() && !estimating.is_exact());
    assert_eq!((estimating.layout(), estimating.lower_bound()), (empty.layout(), 20));
}

#[test]
fn difference_of_exact_counters_looks_at_no_more_members_than_a_count() {
    let own = counter(params(RATES[2], 5000), 0..1000);
    let few: Vec<_> = (0..300).map(|n| counter(params(RATES[2], 5000), 5 * n + 500..5 * n + 505)).collect();
    let many: Vec<_> = (0..30).map(|n| counter(params(RATES[2], 5000), 10 * n + 500..10 * n + 2000)).collect();
    for (others, new) in [(few, 500), (many, 500)] {
        let others: Vec<_> = others.iter().collect();
        let all = [&[&own], &others[..]].concat();
        LOOKED_AT.set(0);
        count_union(&all).unwrap();
        let by_count = LOOKED_AT.replace(0);
        assert_eq!(own.difference(&others).unwrap(), Estimated { estimate: f64::from(new), standard_error: 0.0 });
        let by_difference = LOOKED_AT.get();
        assert!(by_difference <= by_count, "{by_difference} against {by_count}");
    }
}

/// The first counter is nearly full: one member in 20,000 falls in a free slot, and then represents thousands of
/// members.
#[test]
fn a_difference_is_no_more_than_a_counter_holds() {
    let full = counter(params(0.05, 0), 0..300_000);
    let empty = counter(params(RATES[2], 250), []);
    assert_eq!(empty.difference(&[&full]), Ok(Estimated { estimate: 0.0, standard_error: 0.0 }));
    let mut found = 0;
    for number in 1_000_000..1_020_000 {
        let difference = counter(params(RATES[2], 250), [number]).difference(&[&full]).unwrap();
        assert!(difference.estimate <= 1.0 && difference.standard_error <= 1.0, "{difference:?}");
        found += u32::from(difference.estimate > 0.0);
    }
    assert!(found > 0);
}

/// The standard error of an empty difference is that of 1.5 unseen members. A member is seen with a chance equal to the
/// free share of the hash space.
#[test]
fn an_empty_difference_has_the_error_of_unseen_members() {
    let [one, more] = [0..3000, 0..50_000].map(|members| counter(params(RATES[2], 0), members));
    let difference = one.difference(&[&more]).unwrap();
    let (layout, words) = (more.layout(), words(&more));
    let free = (0..layout.num_slots() as u32).filter(|&slot| !bits::get(&words, slot as usize));
    let shares: Vec<f64> = free.map(|slot| layout.share(layout.segment_of(slot))).collect();
    let shown = shares.iter().sum::<f64>();
    // The expected variance includes the variance of rounding.
    let expected = (1.5 * (1.0 - shown) / (shown * shown) + 1.0 / 4.0 + 1.0 / 12.0).sqrt();
    assert!(shown < 0.5 && difference.estimate == 0.0);
    assert!((difference.standard_error / expected - 1.0).abs() < 1e-9, "{difference:?}, {expected}");
}

#[test]
fn the_difference_of_an_empty_counter_is_zero() {
    let [none, some] = [0..0, 0..50_000].map(|members| counter(params(RATES[2], 0), members));
    assert!(!none.is_exact());
    assert_eq!(none.difference(&[&some]), Ok(Estimated::exact(0)));
    assert_eq!((none.standard_error(), none.difference(&[])), (0.0, Ok(Estimated::exact(0))));
}

#[test]
fn members_are_merged_within_the_limits_of_an_exact_counter() {
    let mut one = counter(params(RATES[2], 40), 0..30);
    let within = counter(params(RATES[2], 250), 20..40);
    assert_eq!(one.merge(&[&within], &Unlimited), Ok(true));
    assert_eq!((one.is_exact(), one.count()), (true, 40));
    let beyond = counter(params(RATES[2], 250), 35..45);
    assert_eq!(one.merge(&[&beyond], &Unlimited), Ok(true));
    assert_eq!((one.is_exact(), one.lower_bound()), (false, 41));
}

/// A merge once set the lower bound to the largest of the sources, below the number of members at the promotion.
#[test]
fn a_merge_keeps_the_lower_bound_of_the_promotion() {
    let one_more =
        |first| merged(&counter(params(RATES[2], 250), first..first + 250), &[&counter(params(RATES[2], 250), [0])]);
    let below = (1..40).map(|n| one_more(1000 * n)).filter(|union| union.count() < 251).count();
    assert_eq!(below, 0);
}

/// The lower bound of a merge is at least the largest of all counters, in any order of the sources. Long members pass
/// the limit on bytes earlier than short ones.
#[test]
fn a_merge_of_exact_counters_has_at_least_their_lower_bounds() {
    let of = |texts: Vec<String>| {
        let mut counter = Counter::new(Params { exact_bytes: 500, ..Params::default() }).unwrap();
        counter.add_all(&texts, &Unlimited, |_| {}).unwrap();
        counter
    };
    let short = of((0..40).map(|i| format!("{i}")).collect());
    let long = of((0..9).map(|i| format!("member{i:047}")).collect());
    let into = of(vec!["a".to_owned()]);
    let [one, other] = [[&short, &long], [&long, &short]].map(|sources| merged(&into, &sources));
    assert!(short.is_exact() && long.is_exact() && !one.is_exact());
    assert!(one.lower_bound() > 40 && other.lower_bound() == 40, "{one:?}, {other:?}");
}

#[test]
fn members_that_are_known_ask_for_no_memory() {
    let [mut one, known, new] = [0..100, 50..100, 50..150].map(|members| counter(params(RATES[2], 250), members));
    assert_eq!(one.merge(&[&known], &MaxBytes(0)), Ok(false));
    let rejected = one.merge(&[&new], &MaxBytes(own_bytes(false)));
    assert!(matches!(rejected, Err(Error::TooLarge { .. })), "{rejected:?}");
    assert_eq!(one.count(), 100);
    assert_eq!(one.merge(&[&new], &MaxBytes(8000)), Ok(true));
    assert_eq!((one.is_exact(), one.count()), (true, 150));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn merge_associates((a, _) in any_counter(), (b, _) in any_counter(), (c, _) in any_counter()) {
        let left = merged(&merged(&a, &[&b]), &[&c]);
        let right = merged(&a, &[&merged(&b, &[&c])]);
        let at_once = merged(&a, &[&b, &c]);
        if a.has_slots() && b.has_slots() {
            prop_assert_eq!(words(&left), words(&right));
            prop_assert_eq!((left.lower_bound(), left.count()), (right.lower_bound(), right.count()));
            prop_assert_eq!((left.lower_bound(), left.count()), (at_once.lower_bound(), at_once.count()));
        }
        // A destination limits the layout to its own, whatever counters come in between.
        prop_assert_eq!(left.layout(), at_once.layout());
        prop_assert_eq!(words(&left), words(&at_once));
    }

    #[test]
    fn merge_equals_the_counter_built_of_all((a, items_a) in any_counter(), (b, items_b) in any_counter()) {
        let mut union = a.try_clone().unwrap();
        let changed = union.merge(&[&b], &Unlimited).unwrap();
        let mut built = Counter::new(*union.params()).unwrap();
        add(&mut built, items_a.iter().chain(&items_b).copied());
        let capped = if b.has_slots() { a.layout().min(b.layout()) } else { a.layout() };
        prop_assert_eq!(union.layout(), capped);
        prop_assert_eq!(words(&union), words(&built));
        prop_assert_eq!(changed, words(&union) != words(&a) || union.is_exact() != a.is_exact()
            || union.layout() != a.layout() || union.lower_bound() != a.lower_bound());
        prop_assert!(union.lower_bound() >= a.lower_bound().max(b.lower_bound()));
        let other_way = merged(&b, &[&a]);
        if a.has_slots() && b.has_slots() {
            prop_assert_eq!(
                (other_way.layout(), other_way.lower_bound(), other_way.count()),
                (union.layout(), union.lower_bound(), union.count())
            );
        }
        let [ab, ba] = [(&a, &b), (&b, &a)].map(|(a, b)| Counter::union(a, &[b], &Unlimited).unwrap());
        prop_assert!(!a.has_slots() && !b.has_slots() || (ab.layout(), words(&ab)) == (ba.layout(), words(&ba)));
        if !built.is_exact() {
            // Lower bounds depend on the order of merges, so each estimate is raised to the lower bound of the other
            // counter.
            prop_assert_eq!(union.set_bits(), built.set_bits());
            let lower_bound = f64::from(union.lower_bound());
            prop_assert_eq!(union.estimate().max(f64::from(built.lower_bound())), built.estimate().max(lower_bound));
        }
    }

    #[test]
    fn union_count_equals_that_of_the_merge(counters in vec(any_counter(), 1..6)) {
        let list: Vec<_> = counters.iter().map(|(counter, _)| counter).collect();
        let count = count_union(&list).unwrap();
        if list.iter().all(|counter| counter.is_exact()) {
            let naive: BTreeSet<_> = counters.iter().flat_map(|(_, items)| items).collect();
            prop_assert_eq!(count, naive.len() as u64);
        } else {
            prop_assert_eq!(count, Counter::union(list[0], &list[1..], &Unlimited).unwrap().count());
            // The first counter is the destination if it has bits; without bits, its layout would limit the result.
            if list[0].has_slots() {
                prop_assert_eq!(count, merged(list[0], &list[1..]).count());
            }
        }
    }

    #[test]
    fn counters_without_slots_do_not_decide_the_layout(
        (a, _) in any_counter(),
        exact in vec(0u64..1000, 0..40),
        rate in 0..RATES.len(),
    ) {
        prop_assume!(a.has_slots());
        // Adds counters that are exact or empty, with any layout, at any place of the list.
        let coarse = counter(params(RATES[rate], 100), exact.iter().copied());
        let empty = counter(params(RATES[rate], 0), []);
        let mut built = a.try_clone().unwrap();
        add(&mut built, exact.iter().copied());
        prop_assert_eq!(count_union(&[&coarse, &a, &empty]).unwrap(), built.count());
        prop_assert_eq!(count_union(&[&empty, &coarse, &a]).unwrap(), built.count());
        let union = merged(&a, &[&empty, &coarse]);
        prop_assert_eq!((union.layout(), words(&union)), (a.layout(), words(&built)));
        prop_assert!(union.count() >= a.count());
        let union = Counter::union(&coarse, &[&a], &Unlimited).unwrap();
        prop_assert_eq!((union.layout(), words(&union)), (a.layout(), words(&built)));
        // The result is the same as with an exact counter that has the finer layout.
        let mut fine = Counter::new(Params { error_rate: a.params().error_rate, ..*coarse.params() }).unwrap();
        add(&mut fine, exact.iter().copied());
        prop_assert_eq!(coarse.difference(&[&a]), fine.difference(&[&a]));
        prop_assert_eq!(a.difference(&[&coarse]), a.difference(&[&fine]));
    }

    #[test]
    fn a_difference_is_no_more_than_its_first((a, _) in any_counter(), (b, _) in any_counter()) {
        prop_assume!(a.has_slots() || b.has_slots());
        let difference = a.difference(&[&b]).unwrap();
        prop_assert_eq!(a.difference(&[&b, &b]).unwrap(), difference);
        prop_assert!(difference.estimate <= a.estimate() && difference.count() <= a.count());
        prop_assert!(difference.estimate >= 0.0 && (difference.standard_error > 0.0 || a.count() == 0));
        if a.is_exact() {
            let most = a.count() as f64;
            prop_assert!(difference.estimate <= most && difference.standard_error <= most);
        }
    }
}
