mod windows;

use crate::admission::Admission::{self, Admitted, Known, Rejected};
use crate::admission::Terms;
use crate::bloom::filter::BloomFilter;
use crate::bloom::params::{BitLayout, Params};
use crate::error::{Error, Limit};
use crate::size_limit::{MaxBytes, SizeLimit, Unlimited};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;

const SOME: Terms = Terms { limit: u64::MAX, all: false, dry_run: false };

fn params(error_rate: f64, capacity: u64, expansion: u32) -> Params {
    Params { error_rate, capacity, expansion, seed: 0 }
}

fn lines(error_rate: f64, capacity: u64, expansion: u32) -> BloomFilter {
    BloomFilter::new(BitLayout::Lines, params(error_rate, capacity, expansion), &Unlimited).unwrap()
}

fn classic(error_rate: f64, capacity: u64, expansion: u32) -> BloomFilter {
    BloomFilter::new(BitLayout::Classic, params(error_rate, capacity, expansion), &Unlimited).unwrap()
}

fn names(numbers: impl IntoIterator<Item = u32>) -> Vec<[u8; 4]> {
    numbers.into_iter().map(u32::to_le_bytes).collect()
}

fn admit(filter: &mut BloomFilter, items: &[[u8; 4]], terms: Terms) -> Result<Vec<Admission>, Error> {
    filter.admit(items.iter(), terms, &Unlimited)
}

/// The expected outcome of an admission: on a copy, each item is looked up and then added.
fn expected(filter: &BloomFilter, items: &[[u8; 4]], terms: Terms) -> (BloomFilter, Vec<Admission>) {
    let mut after = filter.try_clone().unwrap();
    let mut reported: Vec<Admission> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let first = items.iter().position(|other| other == item).unwrap();
        reported.push(if after.may_contain(item) {
            Known
        } else if first < at {
            reported[first]
        } else if after.num_items() >= terms.limit {
            Rejected
        } else {
            match after.add(item, &Unlimited) {
                Ok(true) => Admitted,
                Ok(_) => panic!("it was absent"),
                Err(Error::Full { .. }) => Rejected,
                Err(other) => panic!("{other}"),
            }
        });
    }
    (after, reported)
}

/// Compares a call and its dry run with [`expected`]. A dry run adds nothing, so items that earlier items of the call
/// would make known may get other answers. The room of a filter that does not scale, by which `all` and a dry run
/// decide, is a lower bound at high error rates.
fn check(filter: &mut BloomFilter, items: &[[u8; 4]], terms: Terms) {
    let before = filter.try_clone().unwrap();
    let present: Vec<bool> = items.iter().map(|item| before.may_contain(item)).collect();
    let (after, mut reported) = expected(&before, items, terms);
    let dry = admit(filter, items, Terms { dry_run: true, ..terms }).unwrap();
    assert!(*filter == before, "a dry run changes nothing");
    let found = admit(filter, items, terms).unwrap();
    let is_new = |at: &usize| !present[*at] && items.iter().position(|other| *other == items[*at]) == Some(*at);
    let new = (0..items.len()).filter(is_new).count() as u64;
    let over = new > terms.limit.saturating_sub(before.num_items());
    let room = if before.params().expansion == 0 { before.room() } else { u64::MAX };
    if terms.all && (over || new > room) {
        assert!(*filter == before, "all or nothing");
        reported = present.iter().map(|&known| if known { Known } else { Rejected }).collect();
        assert_eq!(found, reported);
        assert_eq!(dry, reported);
        return;
    }
    assert_eq!(found, reported);
    assert!(*filter == after, "as one after another");
    // A dry run may differ where other items of the call made an item known.
    let made_known = |at: usize| !present[at] && reported[at] == Known && is_new(&at);
    let differ = dry.iter().zip(&reported).filter(|(dry, reported)| dry != reported).count();
    let known_by_others = (0..items.len()).filter(|&at| made_known(at)).count();
    let is_estimated = new > room && before.params().error_rate > 0.02;
    assert!(differ == 0 || known_by_others > 0 || is_estimated, "{dry:?} and {reported:?}");
    let admitted = found.iter().filter(|one| **one == Admitted).count() as u64;
    assert_eq!(filter.num_items(), before.num_items() + admitted);
    assert!(filter.num_items() <= terms.limit.max(before.num_items()));
}

#[test]
fn a_nonscaling_filter_rejects_items_without_room() {
    // The room is a lower bound: a filter of a high rate takes more items, but not with `all`.
    let mut filter = lines(0.4, 1000, 0);
    let mut next = 0;
    while !filter.chain()[0].is_full() {
        let room = filter.room() as u32;
        check(&mut filter, &names(next..next + room + 1), Terms { all: true, ..SOME });
        next += room + 1;
        check(&mut filter, &names([next]), SOME);
        next += 1;
    }
    check(&mut filter, &names(next..next + 40), SOME);
}

#[test]
fn rejected_growth_fails_an_admission_and_changes_nothing() {
    let mut filter = lines(0.01, 1000, 100);
    admit(&mut filter, &names(0..900), SOME).unwrap();
    let before = filter.try_clone().unwrap();
    let tight = MaxBytes(filter.size_bytes() + 1000);
    let items = names(900..1100);
    for all in [false, true] {
        for dry_run in [false, true] {
            let terms = Terms { all, dry_run, ..SOME };
            let error = filter.admit(items.iter(), terms, &tight).unwrap_err();
            assert!(matches!(error, Error::TooLarge { limit: Limit::Value, .. }), "{error}");
            assert!(filter == before);
        }
    }
    let terms = Terms { limit: 1000, ..SOME };
    let found = filter.admit(items.iter(), terms, &tight).unwrap();
    assert!(found.iter().filter(|one| **one == Admitted).count() <= 100);
    assert!(found.contains(&Rejected) && filter.sub_filters().len() == 1);
}

proptest! {
    #[test]
    fn calls_are_as_the_model_says(
        rate in prop_oneof![Just(0.3), Just(0.05), Just(0.001)],
        capacity in 1u64..40,
        expansion in 0u32..3,
        calls in vec((vec(0u32..120, 1..100), 0u64..100, any::<bool>()), 1..12),
    ) {
        let (mut in_lines, mut classic) = (lines(rate, capacity, expansion), classic(rate, capacity, expansion));
        for (items, limit, all) in calls {
            let terms = Terms { limit, all, dry_run: false };
            check(&mut in_lines, &names(items.iter().copied()), terms);
            check(&mut classic, &names(items), terms);
        }
    }
}

/// Lets a filter grow `left` times.
struct Growths {
    left: Cell<u32>,
    rejected: Cell<bool>,
}

impl Growths {
    fn of(left: u32) -> Self {
        Growths { left: Cell::new(left), rejected: Cell::new(false) }
    }
}

impl SizeLimit for Growths {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let left = self.left.get().checked_sub(1);
        self.rejected.set(left.is_none());
        self.left.set(left.unwrap_or(0));
        if left.is_some() { Ok(()) } else { MaxBytes(0).check(held_bytes, more_bytes) }
    }
}

#[test]
fn items_within_the_room_ask_for_no_memory() {
    for dry_run in [true, false] {
        let mut filter = lines(0.0001, 100, 2);
        let (items, limit) = (names(0..100), Growths::of(0));
        assert_eq!(filter.room(), 100);
        let reported = filter.admit(items.iter(), Terms { dry_run, ..SOME }, &limit).unwrap();
        assert!(reported == vec![Admitted; 100] && !limit.rejected.get());
    }
}

/// At high error rates, some items set no new bit, so more items fit than the computed room.
#[test]
fn items_beyond_the_room_need_growth() {
    let mut filter = lines(0.4, 1000, 1);
    let room = filter.room() as u32;
    let before = filter.try_clone().unwrap();
    for terms in [SOME, Terms { all: true, ..SOME }, Terms { dry_run: true, ..SOME }] {
        let limit = Growths::of(0);
        let error = filter.admit(names(0..room + 1).iter(), terms, &limit).unwrap_err();
        assert!(limit.rejected.get() && matches!(error, Error::TooLarge { .. }), "{error}");
        assert!(filter == before);
    }
    let reported = filter.admit(names(0..room).iter(), SOME, &Growths::of(0)).unwrap();
    assert!(!reported.contains(&Rejected) && !filter.chain()[0].is_full());
}

/// For classic filters, admission once asked for 16 bytes less per sub-filter.
#[test]
fn admission_and_addition_ask_for_the_same_bytes() {
    let items = names(0..70);
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let new = || BloomFilter::new(layout, params(1e-9, 10, 2), &Unlimited).unwrap();
        let adds = |limit| new().add_all(&items, &MaxBytes(limit), |_| ()).is_ok();
        let admits = |limit| new().admit(items.iter(), SOME, &MaxBytes(limit)).is_ok_and(|all| all == [Admitted; 70]);
        let least = |accepts: &dyn Fn(u64) -> bool| (0..10_000).find(|&limit| accepts(limit));
        let needed = least(&adds);
        assert!(needed.is_some());
        assert_eq!(least(&admits), needed, "{layout}");
    }
}
