//! Tests of admission to counters. core/tests/slices.rs has a model.

use super::*;
use crate::admission::Admission::{Admitted, Known, Rejected};
use crate::admission::{Admission, Terms};
use crate::counting::held::members::tests::LOOKED_AT;
use crate::error::Limit;

const LIMIT: Terms = Terms { limit: 3, all: false, dry_run: false };

/// The result of an admission: the outcome of each item, and whether the counter changed.
fn admitted<'a>(
    counter: &mut Counter,
    items: impl ExactSizeIterator<Item = &'a [u8]>,
    terms: Terms,
    time: Time,
    limit: &impl SizeLimit,
) -> Result<(Vec<Admission>, bool), Error> {
    counter.admit_at(items, terms, time, limit).map(|(reported, outcome)| (reported, outcome.changed))
}

#[test]
fn an_estimate_admits_again_once_its_members_have_expired() {
    let mut counter =
        Counter::new(params(2, 0.05)).unwrap().with_window(window(4, ClockSource::System), NOON / 10).unwrap();
    for member in 0..9u32 {
        counter.mark(member.to_le_bytes(), &Unlimited).unwrap();
    }
    let items = || [&b"ann"[..], b"ben"].into_iter();
    let rejected = Error::NotExact { exact_limit: 2, exact_bytes: 500 };
    assert_eq!(admitted(&mut counter, items(), LIMIT, Time::At(NOON + 49), &Unlimited), Err(rejected));
    assert_eq!(counter.reached(), NOON / 10);
    let dry = Terms { dry_run: true, ..LIMIT };
    assert_eq!(admitted(&mut counter, items(), dry, Time::At(NOON + 50), &Unlimited), Ok((vec![Admitted; 2], false)));
    assert!(!counter.is_exact());
    assert_eq!(admitted(&mut counter, items(), LIMIT, Time::At(NOON + 50), &Unlimited), Ok((vec![Admitted; 2], true)));
    assert_eq!(counter.reached(), NOON / 10 + 5);
    assert!(counter.is_exact() && counter.count() == 2);
}

#[test]
fn adding_advances_a_counter_only_to_change_it() {
    let window = window(4, ClockSource::System);
    let mut counter = Counter::new(params(2, 0.05)).unwrap().with_window(window, NOON / 10).unwrap();
    let add = |counter: &mut Counter, items: &[&str], now| {
        let mut live = counter.live(Time::At(now));
        live.add_all(items.iter().copied(), &Unlimited, |_| ()).unwrap();
        live.finish().before
    };
    for more in 0..30u32 {
        counter.mark(b"ann", &Unlimited).unwrap();
        let (newest, before) = (counter.reached(), counter.try_clone().unwrap());
        assert_eq!(add(&mut counter, &["ann"], newest * 10), Move::Stay);
        assert_eq!(add(&mut counter, &[], newest * 10 - 50), Move::Stay);
        assert_eq!(add(&mut counter, &[], newest * 10 + 50), Move::Stay);
        assert_eq!(stored(&counter), stored(&before));
        assert_eq!(add(&mut counter, &["ann"], newest * 10 + 10), Move::Advance(newest + 1));
        // The counter holds members, or slots with tags.
        (0..more * more).for_each(|member| drop(counter.mark(member.to_le_bytes(), &Unlimited)));
        counter.mark(b"ann", &Unlimited).unwrap();
        // The clock had jumped ahead: the next item takes the window back.
        let mut jumped = counter.try_clone().unwrap();
        assert_eq!(add(&mut jumped, &["ann"], newest * 10 - 50), Move::Rebase(newest - 5));
        assert_eq!(jumped.count(), counter.count());
    }
}

#[test]
fn bytes_count_while_their_members_are_live() {
    let window = window(4, ClockSource::System);
    let mut counter = Counter::new(params(20, 0.05)).unwrap().with_window(window, window.first_slice(NOON)).unwrap();
    let items: Vec<Vec<u8>> = (0..6).map(|number| vec![number; 100]).collect();
    let mut admit = |items: &[Vec<u8>], now| {
        admitted(
            &mut counter,
            items.iter().map(|item| &item[..]),
            Terms { limit: 10, ..LIMIT },
            Time::At(now),
            &Unlimited,
        )
    };
    assert_eq!(admit(&items[..4], NOON), Ok((vec![Admitted; 4], true)));
    // Now the members have the most bytes that are allowed.
    assert_eq!(admit(&items[4..5], NOON + 20), Ok((vec![Admitted], true)));
    let past = Error::PastExact { exact_limit: 20, exact_bytes: 500, members: 6, bytes: 600 };
    assert_eq!(admit(&items[5..], NOON + 20), Err(past));
    // All members except the fifth have expired.
    assert_eq!(admit(&items[..4], NOON + 55), Ok((vec![Admitted; 4], true)));
}

const PARAMS: Params = Params { error_rate: 0.05, exact_limit: 20, exact_bytes: 60, seed: 7 };
const SOME: Terms = Terms { limit: u64::MAX, all: false, dry_run: false };

fn admit(counter: &mut Counter, items: &[&[u8]], terms: Terms) -> Result<Vec<Admission>, Error> {
    counter.admit(items.iter().copied(), terms, &Unlimited)
}

#[test]
fn admission_never_promotes_an_exact_counter() {
    let mut counter = Counter::new(Params { exact_limit: 2, exact_bytes: 10, ..PARAMS }).unwrap();
    for all in [false, true] {
        for dry_run in [false, true] {
            let terms = Terms { all, dry_run, ..SOME };
            let past = |members, bytes| Error::PastExact { exact_limit: 2, exact_bytes: 10, members, bytes };
            assert_eq!(admit(&mut counter, &[b"a", b"b", b"a", b"c"], terms), Err(past(3, 3)));
            assert_eq!(admit(&mut counter, &[b"a2345", b"b23456"], terms), Err(past(2, 11)));
            assert_eq!(admit(&mut counter, &[b"a2345678901"], terms), Err(past(1, 11)));
            assert_eq!(counter.count(), 0);
        }
    }
    // If the call has a smaller limit, it admits fewer items.
    assert_eq!(
        admit(&mut counter, &[b"a", b"b", b"c"], Terms { limit: 2, ..SOME }),
        Ok(vec![Admitted, Admitted, Rejected])
    );
    assert_eq!(admit(&mut counter, &[b"a", b"b", b"a"], SOME), Ok(vec![Known; 3]));
    counter.add(b"c", &Unlimited).unwrap();
    let estimates = Error::NotExact { exact_limit: 2, exact_bytes: 10 };
    assert_eq!(admit(&mut counter, &[b"a"], SOME), Err(estimates));
}

#[test]
fn an_admission_without_memory_changes_nothing() {
    let mut counter = Counter::new(PARAMS).unwrap();
    admit(&mut counter, &[b"a", b"b"], SOME).unwrap();
    let tight = MaxBytes(counter.size_bytes() + 1);
    // The items need more bytes than the buffer has.
    for items in [&[&[7; 50][..]][..], &[&[7; 25], &[8; 25]]] {
        let error = counter.admit(items.iter().copied(), SOME, &tight).unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: Limit::Value, .. }), "{error}");
        assert_eq!(counter.members().unwrap().collect::<Vec<_>>(), [b"a", b"b"]);
    }
}

#[test]
fn each_item_is_looked_up_once() {
    let mut counter = Counter::new(PARAMS).unwrap();
    for (items, limit) in [(&[&b"a"[..]][..], 20), (&[b"b", b"c"], 20), (&[b"a", b"d", b"e"], 4)] {
        LOOKED_AT.set(0);
        admit(&mut counter, items, Terms { limit, ..SOME }).unwrap();
        assert_eq!(LOOKED_AT.get(), items.len() as u64);
    }
    assert_eq!(counter.count(), 4);
}
