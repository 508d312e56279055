//! Functions that make tests shorter: sets of counters at the time of their newest slices. Then tests of all set
//! operations: members that were chosen to collide, and counters that are named more than once.

use super::intersection::inter_card;
use super::lists::{diff, inter, union};
use super::union::{diff_card, union_card};
use crate::admission::Terms;
use crate::counting::Params;
use crate::counting::counter::Counter;
use crate::counting::estimate::Estimated;
use crate::counting::held::members::index::tests::GROUPS_LOOKED_AT;
use crate::counting::held::members::tests::LOOKED_AT;
use crate::counting::view::tests::standing;
use crate::error::Error;
use crate::hash::tests::{COMPARED, chosen};
use crate::size_limit::Unlimited;
use crate::window::{ClockSource, Time, Window};

/// A counter that keeps as many members exactly as a counter can.
pub(in crate::counting) fn large(members: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Counter {
    let params = Params { exact_limit: 65_536, exact_bytes: 1 << 20, seed: 0, error_rate: 0.05 };
    let mut counter = Counter::new(params).unwrap();
    members.into_iter().for_each(|member| drop(counter.add(member, &Unlimited)));
    counter
}

pub(in crate::counting) fn count_union(counters: &[&Counter]) -> Result<u64, Error> {
    estimate_union(counters).map(|union| union.count())
}

pub(in crate::counting) fn estimate_union(counters: &[&Counter]) -> Result<Estimated, Error> {
    union_card(&standing(counters))
}

pub(in crate::counting) fn estimate_intersection(counters: &[&Counter]) -> Result<Estimated, Error> {
    inter_card(&standing(counters))
}

impl Counter {
    pub(in crate::counting) fn difference(&self, others: &[&Counter]) -> Result<Estimated, Error> {
        diff_card(&standing(&[&[self], others].concat()))
    }

    pub(in crate::counting) fn members_beyond(&self, others: &[&Counter]) -> Result<Vec<Vec<u8>>, Error> {
        let members = diff(&standing(&[&[self], others].concat()))?;
        Ok(members.iter().map(|member| member.text().to_vec()).collect())
    }

    pub(in crate::counting) fn members_within(&self, others: &[&Counter]) -> Result<Vec<Vec<u8>>, Error> {
        let members = inter(&standing(&[&[self], others].concat()))?;
        Ok(members.iter().map(|member| member.text().to_vec()).collect())
    }
}

const PARAMS: Params = Params { error_rate: 0.05, exact_limit: 20, exact_bytes: 1000, seed: 7 };

fn counter(params: Params, members: impl IntoIterator<Item = u8>) -> Counter {
    let mut counter = Counter::new(params).unwrap();
    members.into_iter().for_each(|member| drop(counter.add([member], &Unlimited)));
    counter
}

/// Members whose hashes under the counter's seed share most bits were once compared with each other, and looked
/// for in the same group of an index.
#[test]
fn chosen_members_are_compared_with_few() {
    let chosen = chosen(4000);
    GROUPS_LOOKED_AT.set(0);
    let [one, other] = [&chosen[..3000], &chosen[1000..]].map(large);
    // An index that grows enters all members again.
    assert!(GROUPS_LOOKED_AT.get() <= 3 * 6000, "{}", GROUPS_LOOKED_AT.get());
    let views = standing(&[&one, &other]);
    COMPARED.set(0);
    assert_eq!((union_card(&views).unwrap().count(), union(&views).unwrap().len()), (4000, 4000));
    // Each union compares the two copies of 2000 members.
    assert!(COMPARED.get() <= 2 * 2100, "{}", COMPARED.get());
    let mut counter = large([b"a"]);
    COMPARED.set(0);
    counter.admit(chosen.iter(), Terms { limit: 10, all: false, dry_run: true }, &Unlimited).unwrap();
    assert!(COMPARED.get() < 500, "{}", COMPARED.get());
}

/// Commands once read a counter again each time that it was named.
#[test]
fn a_counter_that_is_named_again_is_read_once() {
    let window = Window::new(60, 6, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    for params in [Params { exact_limit: 50, ..PARAMS }, PARAMS] {
        let [mut one, other] = [0..30, 20..50].map(|members| counter(params, members));
        one = one.new_like().unwrap().with_window(window, 3).unwrap();
        (0..30u8).for_each(|member| drop(one.add([member], &Unlimited)));
        let views = [one.at(Time::Reached), other.at(Time::Reached), one.since(20, Time::Reached).unwrap()];
        let many: Vec<_> = views.into_iter().chain(views.into_iter().cycle().take(300)).collect();
        let cards = [union_card, inter_card, diff_card].map(|card| {
            [&views[..], &many[..]].map(|views| {
                LOOKED_AT.set(0);
                (card(views), LOOKED_AT.get())
            })
        });
        let lists = [union, inter, diff].map(|list| {
            [&views[..], &many[..]].map(|views| {
                LOOKED_AT.set(0);
                (list(views).map(|members| members.len()), LOOKED_AT.get())
            })
        });
        let [union_card, inter_card, [few, many]] = cards;
        // An intersection counts each estimate as a set, as it would a copy.
        assert!(union_card[0] == union_card[1] && (!one.is_exact() || inter_card[0] == inter_card[1]));
        // A difference from itself is empty.
        assert!(many.0 == few.0 && many.1 <= few.1 + 30, "{few:?} {many:?}");
        let [union, inter, [few, many]] = lists;
        assert!(union[0] == union[1] && inter[0] == inter[1]);
        assert!(few.0.is_err() || many.0 == Ok(0) && many.1 <= few.1 + 30, "{few:?} {many:?}");
    }
}
