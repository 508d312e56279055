//! Letting members into an exact counter.

use crate::admission::{Admission, Survey, Terms, first_of};
use crate::counting::counter::Counter;
use crate::error::Error;
use crate::hash::hash64;
use crate::size_limit::SizeLimit;

impl Counter {
    /// Adds those items that `terms` admit, in order, and tells of each what became of it. The counter stays exact.
    /// A windowed one has seen the known items too then, unless all were refused.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// use rollcall_core::admission::{Admission, Terms};
    ///
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut contacts = Counter::new(params)?;
    /// let terms = Terms { limit: 2, all: true, dry_run: false };
    /// let list = ["ann", "ben", "eve"];
    /// let told = contacts.admit(list.iter().map(|name| name.as_bytes()), terms, &Unlimited)?;
    /// assert_eq!(told, [Admission::Refused; 3]);
    /// assert_eq!(contacts.count(), 0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExact`] once it estimates, [`Error::PastExact`] where it would have to, those of `limit`,
    /// [`Error::OutOfMemory`]. Nothing is changed then.
    pub fn admit<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let mut survey = Survey::of(items.len())?;
        let mut known = Vec::new();
        for item in items {
            let is_known = self.contains(item)?;
            if is_known && self.window().is_some() {
                known.try_reserve(1).map_err(|_| Error::OutOfMemory { needed_bytes: size_of::<&[u8]>() as u64 })?;
                known.push(item);
            }
            survey.note(hash64(item, self.params().seed), item, is_known)?;
        }
        let new = survey.new_items();
        let admitted = terms.admitted(self.count(), new.len());
        let of_new = first_of(admitted, new.len())?;
        match &new[..admitted] {
            [] => {}
            // One is added in whole or not at all.
            [only] if !terms.dry_run => {
                self.check_stays_exact(&[only])?;
                self.add(only, limit)?;
            }
            several => {
                self.check_stays_exact(several)?;
                let mut copy = self.try_clone()?;
                copy.add_all(several.iter().copied(), limit, |_| {})?;
                if !terms.dry_run {
                    *self = copy;
                }
            }
        }
        if !terms.dry_run && !(terms.all && admitted < new.len()) {
            for item in known {
                self.touch(item, limit)?;
            }
        }
        Ok(survey.into_answers(&of_new))
    }

    /// Checks that it stays exact with these new members.
    fn check_stays_exact(&self, new: &[&[u8]]) -> Result<(), Error> {
        let params = self.params();
        let own = self.exact_members().ok_or_else(|| self.not_exact())?;
        let members = own.len() as u64 + new.len() as u64;
        let bytes = u64::from(own.member_bytes()) + new.iter().map(|member| member.len() as u64).sum::<u64>();
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
    use crate::admission::Admission::{Admitted, Known, Refused};
    use crate::counting::Params;
    use crate::error::Limit;
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PARAMS: Params = Params { capacity: 1000, error_rate: 0.05, exact_limit: 20, exact_bytes: 60, seed: 7 };
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
                assert_eq!(admit(&mut counter, &[b"12345", b"123456"], terms), Err(past(2, 11)));
                assert_eq!(admit(&mut counter, &[b"12345678901"], terms), Err(past(1, 11)));
                assert_eq!(counter.count(), 0);
            }
        }
        // The limit of the call lets in fewer.
        assert_eq!(
            admit(&mut counter, &[b"a", b"b", b"c"], Terms { limit: 2, ..SOME }),
            Ok(vec![Admitted, Admitted, Refused])
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
        // More than what is allocated has room for.
        for items in [&[&[7; 50][..]][..], &[&[7; 25], &[8; 25]]] {
            let error = counter.admit(items.iter().copied(), SOME, &tight).unwrap_err();
            assert!(matches!(error, Error::TooLarge { limit: Limit::Value, .. }), "{error}");
            assert_eq!(counter.members().unwrap().collect::<Vec<_>>(), [b"a", b"b"]);
        }
    }

    proptest! {
        #[test]
        fn calls_are_as_the_model_says(
            calls in vec((vec(0u8..30, 1..10), 0u64..30, any::<bool>(), any::<bool>()), 1..20),
        ) {
            let mut counter = Counter::new(PARAMS).unwrap();
            let mut model: Vec<u8> = Vec::new();
            for (items, limit, all, dry_run) in calls {
                let new: BTreeSet<u8> = items.iter().copied().filter(|item| !model.contains(item)).collect();
                let none = all && model.len() + new.len() > limit as usize;
                let mut after = model.clone();
                let mut expected = Vec::new();
                for &item in &items {
                    expected.push(if after.contains(&item) {
                        Known
                    } else if none || after.len() >= limit as usize {
                        Refused
                    } else {
                        after.push(item);
                        Admitted
                    });
                }
                let items: Vec<&[u8]> = items.iter().map(std::slice::from_ref).collect();
                let found = admit(&mut counter, &items, Terms { limit, all, dry_run });
                if after.len() > 20 {
                    prop_assert!(matches!(found, Err(Error::PastExact { .. })), "{:?}", found);
                } else {
                    prop_assert_eq!(found, Ok(expected));
                    if !dry_run {
                        model = after;
                    }
                }
                prop_assert!(counter.members().unwrap().map(|member| member[0]).eq(model.iter().copied()));
            }
        }
    }
}
