//! Laws of unions and differences.

use super::*;
use crate::counting::counter::Params;
use crate::counting::counter::tests::{SIZES, counter, dense, params, words};
use crate::counting::members::tests::LOOKED_AT;
use crate::size_limit::{MaxBytes, Unlimited};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Some items in a counter of some shape: exact, sparse or dense, of any precision.
fn any_counter() -> impl Strategy<Value = (Counter, Vec<u64>)> {
    let numbers = prop_oneof![vec(0u64..1000, 0..40), vec(0u64..3000, 0..2000)];
    let exact_limit = prop_oneof![Just(0), Just(100), Just(5000)];
    (numbers, 0..SIZES.len(), exact_limit, any::<bool>()).prop_map(|(numbers, size, exact_limit, make_dense)| {
        let made = counter(params(SIZES[size], exact_limit), numbers.iter().copied());
        let made = if make_dense && exact_limit == 0 { dense(&made) } else { made };
        (made, numbers)
    })
}

fn merged(counter: &Counter, others: &[&Counter]) -> Counter {
    let mut union = counter.try_clone().unwrap();
    union.merge(others, &Unlimited).unwrap();
    union
}

#[test]
fn different_seeds_are_refused() {
    let mut one = counter(params(SIZES[2], 250), [1]);
    let other = counter(Params { seed: 1, ..params(SIZES[2], 250) }, [1]);
    let seed = Error::Incompatible { parameter: Parameter::Seed, ours: "0".into(), theirs: "1".into() };
    assert_eq!(one.merge(&[&other], &Unlimited), Err(seed.clone()));
    assert_eq!(count_union(&[&one, &other]), Err(seed.clone()));
    assert_eq!(one.difference(&[&other]), Err(seed));
}

#[test]
fn union_of_nothing_is_empty() {
    assert_eq!(count_union(&[]), Ok(0));
    let one = counter(params(SIZES[2], 250), 0..10);
    assert_eq!(one.difference(&[]), Ok(Difference { estimate: 10.0, standard_error: 0.0 }));
}

#[test]
fn merge_takes_the_parameters_of_the_smallest() {
    let mut one = counter(params((1_000_000, 0.01), 40), 0..30);
    let small = counter(params((2000, 0.02), 250), 0..10);
    let as_small = counter(params((1000, 0.02), 250), 0..10);
    assert_eq!(small.precision(), as_small.precision());
    assert!(one.merge(&[&small, &as_small], &Unlimited).unwrap());
    assert_eq!(*one.params(), params((2000, 0.02), 40));
    assert_eq!((one.precision(), one.count(), one.is_exact()), (11, 30, true));
    assert!(!one.merge(&[&small, &as_small], &Unlimited).unwrap());
}

#[test]
fn merge_over_the_limit_changes_nothing() {
    let many = counter(params(SIZES[2], 0), 0..5000);
    for items in [0, 10, 300] {
        let mut one = counter(params(SIZES[2], 20), 0..items);
        let before = (words(&one), one.representation());
        assert!(matches!(one.merge(&[&many], &MaxBytes(4000)), Err(Error::TooLarge { .. })));
        assert_eq!((words(&one), one.representation()), before);
    }
}

#[test]
fn difference_of_exact_counters_looks_at_no_more_members_than_a_count() {
    let own = counter(params(SIZES[2], 5000), 0..1000);
    let few: Vec<_> = (0..300).map(|n| counter(params(SIZES[2], 5000), 5 * n + 500..5 * n + 505)).collect();
    let many: Vec<_> = (0..30).map(|n| counter(params(SIZES[2], 5000), 10 * n + 500..10 * n + 2000)).collect();
    for (others, new) in [(few, 500), (many, 500)] {
        let others: Vec<_> = others.iter().collect();
        let all = with_first(&own, &others).unwrap();
        LOOKED_AT.set(0);
        count_union(&all).unwrap();
        let by_count = LOOKED_AT.replace(0);
        assert_eq!(own.difference(&others).unwrap(), Difference { estimate: f64::from(new), standard_error: 0.0 });
        let by_difference = LOOKED_AT.get();
        assert!(by_difference <= by_count, "{by_difference} against {by_count}");
    }
}

#[test]
fn a_union_of_members_takes_memory_for_each_once() {
    let counter = counter(params(SIZES[2], 5000), 0..1000);
    let counters = vec![&counter; 300];
    let sets = exact_members(&counters).unwrap().unwrap();
    let union = distinct(&sets, 0).unwrap();
    assert_eq!(union.len(), 1000);
    assert!(union.capacity() <= 8000, "{}", union.capacity());
}

#[test]
fn difference_of_exact_counters_is_exact() {
    let one = counter(params(SIZES[2], 250), 0..200);
    let others = [counter(params(SIZES[0], 250), 0..50), counter(params(SIZES[4], 250), 150..300)];
    let difference = one.difference(&[&others[0], &others[1]]).unwrap();
    assert_eq!(difference, Difference { estimate: 100.0, standard_error: 0.0 });
    assert_eq!(count_union(&[&one, &others[0], &others[1]]), Ok(300));
}

#[test]
fn difference_from_a_superset_is_nothing_with_an_error() {
    let one = counter(params(SIZES[2], 0), 0..20_000);
    let more = counter(params(SIZES[2], 0), 0..50_000);
    let difference = one.difference(&[&more]).unwrap();
    assert_eq!(difference.count(), 0);
    assert!(difference.standard_error > 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn merge_commutes((a, _) in any_counter(), (b, _) in any_counter()) {
        let (ab, ba) = (merged(&a, &[&b]), merged(&b, &[&a]));
        prop_assert_eq!(ab.precision(), ba.precision());
        prop_assert_eq!(words(&ab), words(&ba));
        prop_assert_eq!(count_union(&[&a, &b]), count_union(&[&b, &a]));
    }

    #[test]
    fn merge_associates((a, _) in any_counter(), (b, _) in any_counter(), (c, _) in any_counter()) {
        let left = merged(&merged(&a, &[&b]), &[&c]);
        let right = merged(&a, &[&merged(&b, &[&c])]);
        prop_assert_eq!(words(&left), words(&right));
        prop_assert_eq!(words(&left), words(&merged(&a, &[&b, &c])));
    }

    #[test]
    fn merge_is_idempotent((a, _) in any_counter(), (b, _) in any_counter()) {
        let mut union = merged(&a, &[&b]);
        let before = (words(&union), union.representation(), union.count());
        prop_assert!(!union.merge(&[&b], &Unlimited).unwrap());
        prop_assert!(!union.merge(&[&a, &b], &Unlimited).unwrap());
        prop_assert_eq!((words(&union), union.representation(), union.count()), before);
    }

    #[test]
    fn merge_equals_the_counter_built_of_all((a, items_a) in any_counter(), (b, items_b) in any_counter()) {
        let mut union = a.try_clone().unwrap();
        let changed = union.merge(&[&b], &Unlimited).unwrap();
        let built = counter(*union.params(), items_a.iter().chain(&items_b).copied());
        prop_assert_eq!(union.precision(), a.precision().min(b.precision()));
        prop_assert_eq!(union.params().layout().unwrap().precision(), union.precision());
        prop_assert_eq!(words(&union), words(&built));
        prop_assert_eq!(changed, words(&union) != words(&a) || union.is_exact() != a.is_exact()
            || union.precision() != a.precision() || union.count() != a.count());
        if !built.is_exact() {
            prop_assert_eq!(union.set_bits(), built.set_bits());
            prop_assert_eq!(union.estimate(), built.estimate());
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
            prop_assert_eq!(count, merged(list[0], &list[1..]).count());
        }
    }

    #[test]
    fn difference_is_the_same_in_every_representation((a, _) in any_counter(), (b, _) in any_counter()) {
        prop_assume!(!a.is_exact() || !b.is_exact());
        let difference = a.difference(&[&b]).unwrap();
        prop_assert_eq!(dense(&a).difference(&[&dense(&b)]).unwrap(), difference);
        prop_assert_eq!(a.difference(&[&b, &b]).unwrap(), difference);
        prop_assert!(difference.estimate >= 0.0 && difference.standard_error > 0.0);
    }
}
