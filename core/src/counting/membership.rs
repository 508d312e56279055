//! Questions about single members, which only an exact counter can answer; and how a counter becomes exact again.

use crate::counting::counter::{Counter, Shaped, State};
use crate::counting::union::{check_seeds, try_with_capacity};
use crate::error::Error;
use crate::hash::hash64;

impl Counter {
    /// Is `item` a member?
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// counter.add(b"ann", &Unlimited)?;
    /// assert!(counter.contains(b"ann")?);
    /// assert!(!counter.contains(b"zoe")?);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExact`] once it estimates: slots are shared.
    pub fn contains(&self, item: &[u8]) -> Result<bool, Error> {
        match self.state() {
            State::Exact(members) => Ok(members.contains(item, hash64(item, self.params().seed))),
            State::Estimating(_) => Err(self.not_exact()),
        }
    }

    /// The error of an estimate that is asked for members.
    pub(super) fn not_exact(&self) -> Error {
        let params = self.params();
        Error::NotExact { exact_limit: params.exact_limit, exact_bytes: params.exact_bytes }
    }

    /// Its members that are in none of `others`, in the order they were added.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let [mut received, mut read] = [Counter::new(params)?, Counter::new(params)?];
    /// for member in ["ann", "ben", "eve"] {
    ///     received.add(member.as_bytes(), &Unlimited)?;
    /// }
    /// read.add(b"ben", &Unlimited)?;
    /// assert_eq!(received.members_beyond(&[&read])?, [b"ann", b"eve"]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExact`] when it or another holds an estimate, [`Error::Incompatible`] when seeds differ,
    /// [`Error::OutOfMemory`].
    pub fn members_beyond(&self, others: &[&Counter]) -> Result<Vec<&[u8]>, Error> {
        let members = self.members()?;
        for &other in others {
            check_seeds(&[self, other])?;
            other.members()?;
        }
        let mut left = try_with_capacity(self.count() as usize)?;
        left.extend(members);
        for other in others {
            left.retain(|member| !other.contains(member).unwrap_or(false));
        }
        Ok(left)
    }

    /// Its members that are in all of `others`.
    ///
    /// # Errors
    /// Those of [`Self::members_beyond`].
    pub(super) fn members_within(&self, others: &[&Counter]) -> Result<Vec<&[u8]>, Error> {
        let mut left = try_with_capacity(self.count() as usize)?;
        left.extend(self.members()?);
        for other in others {
            left.retain(|member| other.contains(member).unwrap_or(false));
        }
        Ok(left)
    }

    /// Whether it is as new, so that [`Self::empty_twin`] equals it.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// assert!(counter.is_empty());
    /// counter.add(b"ann", &Unlimited)?;
    /// assert!(!counter.is_empty());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.count() == 0 && (self.is_exact() || self.params().exact_limit == 0)
    }

    /// An empty counter of the same parameters: exact again, unless its exact limit is 0. Allocates nothing.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 2, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// for member in ["ann", "ben", "eve"] {
    ///     counter.add(member.as_bytes(), &Unlimited)?;
    /// }
    /// assert!(!counter.is_exact());
    /// let empty = counter.empty_twin()?;
    /// assert!(empty.is_exact() && empty.is_empty() && empty.params() == counter.params());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// None for a counter that was made or loaded; the signature is that of [`Counter::new`].
    pub fn empty_twin(&self) -> Result<Self, Error> {
        Counter::with_layout(*self.params(), self.layout())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Params;
    use crate::error::Parameter;
    use crate::size_limit::Unlimited;
    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PARAMS: Params = Params { capacity: 1000, error_rate: 0.05, exact_limit: 20, exact_bytes: 1000, seed: 7 };

    fn counter(params: Params, members: impl IntoIterator<Item = u8>) -> Counter {
        let mut counter = Counter::new(params).unwrap();
        members.into_iter().for_each(|member| {
            counter.add(&[member], &Unlimited).unwrap();
        });
        counter
    }

    #[test]
    fn an_estimate_answers_no_question_about_members() {
        let (exact, estimate) = (counter(PARAMS, 0..20), counter(PARAMS, 0..21));
        let refused = Error::NotExact { exact_limit: 20, exact_bytes: 1000 };
        assert_eq!(estimate.contains(&[0]), Err(refused.clone()));
        assert_eq!(estimate.members_beyond(&[&exact]), Err(refused.clone()));
        assert_eq!(exact.members_beyond(&[&exact, &estimate]), Err(refused));
        let foreign = counter(Params { seed: 8, ..PARAMS }, 0..2);
        assert_eq!(exact.members_beyond(&[&foreign]), Err(Error::incompatible(Parameter::Seed, 7, 8)));
    }

    #[test]
    fn a_cleared_counter_counts_exactly_again() {
        for exact_limit in [0, 20] {
            let params = Params { exact_limit, ..PARAMS };
            for members in [0, 1, 21, 200] {
                let full = counter(params, 0..members);
                assert_eq!(full.is_empty(), members == 0);
                let mut empty = full.empty_twin().unwrap();
                assert!(empty.is_empty() && empty.layout() == full.layout() && empty.floor() == 0);
                assert_eq!(empty.is_exact(), exact_limit > 0);
                empty.add(&[3], &Unlimited).unwrap();
                assert_eq!(empty.count(), 1);
            }
        }
    }

    proptest! {
        #[test]
        fn members_are_those_of_sets(sets in proptest::collection::vec(btree_set(0u8..30, 0..=20), 1..5)) {
            let counters: Vec<_> = sets.iter().map(|set| counter(PARAMS, set.iter().copied())).collect();
            let others: Vec<&Counter> = counters[1..].iter().collect();
            for item in 0..30 {
                prop_assert_eq!(counters[0].contains(&[item]), Ok(sets[0].contains(&item)));
            }
            let beyond: BTreeSet<u8> = counters[0].members_beyond(&others).unwrap().iter().map(|m| m[0]).collect();
            prop_assert!(beyond.iter().eq(sets[0].iter().filter(|m| !sets[1..].iter().any(|set| set.contains(m)))));
            let within: BTreeSet<u8> = counters[0].members_within(&others).unwrap().iter().map(|m| m[0]).collect();
            prop_assert!(within.iter().eq(sets[0].iter().filter(|m| sets[1..].iter().all(|set| set.contains(m)))));
        }
    }
}
