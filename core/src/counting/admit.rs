//! Admission: adding members to an exact counter up to a limit of their number.

use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::counting::counter::Counter;
use crate::counting::held::Held;
use crate::counting::held::members::record::{Member, counted_bytes};
use crate::counting::params::Params;
use crate::counting::view::View;
use crate::error::Error;
use crate::hash::table_hash;
use crate::live::{Live, Value};
use crate::size_limit::{SizeLimit, try_with_capacity};
use crate::window::Move;

impl Live<'_, Counter> {
    /// Implements [`Value::admit_live`]. Members that have expired count as new.
    pub(super) fn admit_members<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, usize), Error> {
        let (due, view) = (self.due(), self.value.at(self.time));
        // An estimating counter without live members is treated as an empty exact counter.
        drop(view.members()?);
        // If the clock jumped ahead and was set back, the window moves back even if no item is admitted. Otherwise,
        // until the time to which the clock had jumped, no member would expire and make room.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0;
        let mut look_up = LookUp::of(items.len())?;
        // Members that were last added in an earlier slice. They are added again, so that they expire later.
        let mut renewed = try_with_capacity(if self.value.window().is_some() { items.len() } else { 0 })?;
        for item in items {
            let hash = table_hash(item);
            let age = if view.is_exact() { view.age_of(item, hash)? } else { None };
            if age.is_some_and(|age| age > 0 || matches!(due, Move::Advance(_))) {
                renewed.push(item);
            }
            look_up.record(hash, (hash, item), age.is_some());
        }
        let (members, bytes) = present(view)?;
        let &Params { exact_limit, exact_bytes, .. } = self.value.params();
        let admitted = terms.admitted(members, look_up.new.len());
        let new = &look_up.new[..admitted];
        if terms.all && admitted < look_up.new.len() {
            renewed.clear();
        }
        let members = members + admitted as u64;
        let bytes = bytes + new.iter().map(|(_, item)| counted_bytes(item) as u64).sum::<u64>();
        if members > exact_limit.into() || bytes > exact_bytes.into() {
            return Err(Error::PastExact { exact_limit, exact_bytes, members, bytes });
        }
        let reported = first_of(admitted, look_up.new.len())?;
        if !terms.dry_run {
            match new {
                [] => {}
                // Adding a single item either succeeds or changes nothing, so no copy of the counter is needed.
                &[(hash, only)] if due == Move::Stay => self.value.add_absent(only, hash, limit)?,
                several => {
                    let mut copy = self.value.try_clone()?;
                    copy.make(due);
                    several.iter().try_for_each(|&(hash, item)| copy.add_absent(item, hash, limit))?;
                    (*self.value, self.outcome.before) = (copy, due);
                }
            }
            let has_changes = admitted > 0 || !renewed.is_empty();
            if has_changes || rebases {
                self.move_on();
            }
            self.outcome.changed |= has_changes;
            renewed.iter().try_for_each(|item| self.value.add_item(item, limit).map(drop))?;
        }
        let num_new = look_up.new.len();
        Ok((look_up.into_answers(&reported), num_new))
    }
}

/// The number of members in the view, and the bytes that they take of the limit `exact_bytes`.
fn present(view: View<'_>) -> Result<(u64, u64), Error> {
    // The members are counted one by one only if some of them have expired.
    if let (Held::Exact(all), true) = (&view.counter.held, view.is_whole()) {
        return Ok((all.len() as u64, all.member_bytes.into()));
    }
    let add = |(members, bytes), member: Member<'_>| (members + 1, bytes + member.counted_bytes() as u64);
    Ok(view.members()?.fold((0, 0), add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Admission::{Admitted, Known, Rejected};
    use crate::counting::Params;
    use crate::counting::held::members::tests::LOOKED_AT;
    use crate::error::Limit;
    use crate::size_limit::{MaxBytes, Unlimited};

    const PARAMS: Params = Params { error_rate: 0.05, exact_limit: 20, exact_bytes: 60, seed: 7 };
    const SOME: Terms = Terms { limit: u64::MAX, all: false, dry_run: false };

    fn admit(counter: &mut Counter, items: &[&[u8]], terms: Terms) -> Result<Vec<Admission>, Error> {
        counter.admit(items.iter().copied(), terms, &Unlimited)
    }

    #[test]
    fn it_never_becomes_an_estimate() {
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
    fn what_has_no_memory_fails_and_changes_nothing() {
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
}
