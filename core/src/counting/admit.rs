//! Admission: adding members to an exact counter up to a limit of their number.

use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::counting::counter::Counter;
use crate::counting::held::members::record::{Member, counted_bytes};
use crate::counting::view::View;
use crate::error::Error;
use crate::hash::table_hash;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_reserve, try_with_capacity};
use crate::window::{Move, Time};

/// The items of an `LC.ADMIT` call, each looked up in the counter.
pub(super) struct LookedUp<'a> {
    pub(super) look_up: LookUp<(u64, &'a [u8])>,
    /// The number of new items that the limit admits.
    pub(super) admitted: usize,
    /// Members that were last added in an earlier slice. They are added again, so that they expire later.
    pub(super) renewed: Vec<&'a [u8]>,
    /// The result for each new item.
    pub(super) reported: Vec<Admission>,
}

impl Counter {
    /// Looks up all items. Members that have expired at `time` count as new.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates, [`Error::PastExact`] if adding the items would make it estimate,
    /// [`Error::OutOfMemory`].
    pub(super) fn look_up<'a>(
        &self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        time: Time,
    ) -> Result<LookedUp<'a>, Error> {
        let mut look_up = LookUp::of(items.len())?;
        let mut renewed = try_with_capacity(if self.window().is_some() { items.len() } else { 0 })?;
        let (view, is_later) = (self.at(time), self.present_slice(time) > self.newest_slice());
        // `members` returns an error if the counter estimates and has live members. An estimating counter without live
        // members is treated as an empty exact counter.
        drop(view.members()?);
        let none_is_live = !self.is_exact();
        for item in items {
            let hash = table_hash(item);
            let age = if none_is_live { None } else { view.age_of(item, hash)? };
            if age.is_some_and(|age| is_later || age > 0) {
                try_reserve(&mut renewed, 1)?;
                renewed.push(item);
            }
            look_up.record(hash, (hash, item), age.is_some());
        }
        let new = &look_up.new;
        let (members, bytes) = self.members_at(view)?;
        let admitted = terms.admitted(members, new.len());
        if terms.all && admitted < new.len() {
            renewed.clear();
        }
        self.check_stays_exact(members, bytes, &new[..admitted])?;
        let reported = first_of(admitted, new.len())?;
        Ok(LookedUp { look_up, admitted, renewed, reported })
    }

    /// Adds the admitted items to a copy of the counter, after moving the copy's window as `due` says, and returns the
    /// copy. A single item is added to the counter itself, without a copy, unless `due` moves the window.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the counter is unchanged.
    pub(super) fn admit_looked_up(
        &mut self,
        looked_up: &LookedUp<'_>,
        due: Move,
        limit: &impl SizeLimit,
    ) -> Result<Option<Self>, Error> {
        match &looked_up.look_up.new[..looked_up.admitted] {
            [] => Ok(None),
            // Adding a single item either succeeds or changes nothing, so no copy of the counter is needed.
            &[(hash, only)] if due == Move::Stay => self.add_absent(only, hash, limit).map(|_| None),
            several => {
                let mut copy = self.try_clone()?;
                copy.make(due);
                for &(hash, item) in several {
                    copy.add_absent(item, hash, limit)?;
                }
                Ok(Some(copy))
            }
        }
    }

    /// The number of members in the view, and the bytes that they take of the limit `exact_bytes`.
    fn members_at(&self, view: View<'_>) -> Result<(u64, u64), Error> {
        let all = self.held.members().map(|all| (all.len() as u64, all.member_bytes.into()));
        // The members are counted one by one only if some of them have expired.
        if let (Some(all), true) = (all, view.is_whole()) {
            return Ok(all);
        }
        let add = |(members, bytes), member: Member<'_>| (members + 1, bytes + member.counted_bytes() as u64);
        Ok(view.members()?.fold((0, 0), add))
    }

    /// Checks that the counter stays exact if the items `new` are added. `members` and `bytes` are the result of
    /// [`Self::members_at`].
    fn check_stays_exact(&self, members: u64, bytes: u64, new: &[(u64, &[u8])]) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let params = self.params();
        let members = members + new.len() as u64;
        let bytes = bytes + new.iter().map(|(_, item)| counted_bytes(item) as u64).sum::<u64>();
        if members > u64::from(params.exact_limit) || bytes > u64::from(params.exact_bytes) {
            let (exact_limit, exact_bytes) = (params.exact_limit, params.exact_bytes);
            return Err(Error::PastExact { exact_limit, exact_bytes, members, bytes });
        }
        Ok(())
    }
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
