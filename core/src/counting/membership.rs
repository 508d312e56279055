//! Questions about single members, which only an exact counter can answer; and how a counter becomes exact again.

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::held::Held;
use crate::counting::held::members::Members;
use crate::counting::sets::union::{check_seeds, distinct_from};
use crate::counting::windowed::check_windows;
use crate::error::Error;
use crate::hash::hash64;
use crate::size_limit::try_with_capacity;
use crate::window::Time;

impl Counter {
    /// Is `item` a member?
    ///
    /// # Errors
    /// [`Error::NotExact`] once it estimates: slots are shared.
    pub fn contains(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> {
        let item = item.as_ref();
        self.contains_hashed(item, hash64(item, self.params().seed))
    }

    /// As [`Self::contains`], of an item whose hash is `hash`.
    ///
    /// # Errors
    /// As there.
    pub(super) fn contains_hashed(&self, item: &[u8], hash: u64) -> Result<bool, Error> {
        match self.contents() {
            Contents::Plain(Held::Exact(members)) => Ok(members.contains(item, hash)),
            Contents::Plain(Held::Estimating(_)) => Err(self.not_exact()),
            Contents::Windowed(_) => Ok(self.age_of_member(item, hash, self.oldest_alive(Time::Reached))?.is_some()),
        }
    }

    /// Its members that are in none of `others`, in the order they were added.
    ///
    /// # Errors
    /// [`Error::NotExact`] when it or another holds an estimate, [`Error::Incompatible`] when seeds differ,
    /// [`Error::OutOfMemory`].
    pub fn members_beyond(&self, others: &[&Counter]) -> Result<Vec<&[u8]>, Error> {
        let mut sets = try_with_capacity(others.len())?;
        for &other in others {
            check_seeds(&[self, other])?;
            check_windows(&[self, other])?;
        }
        if self.window().is_some() {
            return self.members_left(others, false);
        }
        let own = self.known_members()?;
        for &other in others {
            sets.push(other.known_members()?);
        }
        let found = distinct_from(Some(own), &sets, self.params().seed)?;
        let mut left: Vec<&[u8]> = try_with_capacity(found.len())?;
        left.extend(found.into_iter().map(|(_, member)| member));
        // They lie in one buffer, one after the other.
        left.sort_unstable_by_key(|member| member.as_ptr());
        Ok(left)
    }

    /// Its members that are in all of `others`, which have no fewer: each is hashed once, and looked for as long as it is
    /// left.
    ///
    /// # Errors
    /// Those of [`Self::members_beyond`].
    pub(super) fn members_within(&self, others: &[&Counter]) -> Result<Vec<&[u8]>, Error> {
        if self.window().is_some() {
            return self.members_left(others, true);
        }
        let own = self.known_members()?;
        let mut left: Vec<(u64, &[u8])> = try_with_capacity(own.len())?;
        left.extend(own.hashed(self.params().seed).map(|(hash, (), member)| (hash, member)));
        for other in others {
            let other = other.known_members()?;
            left.retain(|&(hash, member)| other.contains(member, hash));
        }
        let mut members = try_with_capacity(left.len())?;
        members.extend(left.iter().map(|&(_, member)| member));
        Ok(members)
    }

    /// Its members that each of `others` has, or that none has; for those with windows, as of their newest slices.
    ///
    /// # Errors
    /// [`Error::NotExact`] when it or another holds an estimate, [`Error::OutOfMemory`].
    fn members_left(&self, others: &[&Counter], are_in_others: bool) -> Result<Vec<&[u8]>, Error> {
        let mut left = try_with_capacity(self.count() as usize)?;
        left.extend(self.members()?);
        for other in others {
            other.members()?;
            left.retain(|member| other.contains(member).is_ok_and(|is_member| is_member == are_in_others));
        }
        Ok(left)
    }

    /// Its members.
    ///
    /// # Errors
    /// [`Error::NotExact`] when it holds an estimate.
    fn known_members(&self) -> Result<&Members, Error> {
        self.exact_members().ok_or_else(|| self.not_exact())
    }

    /// Whether it is as new, so that [`Self::empty_twin`] equals it.
    pub fn is_empty(&self) -> bool {
        self.count() == 0 && (self.is_exact() || self.params().exact_limit == 0)
    }

    /// An empty counter of the same parameters: exact again, unless its exact limit is 0. A window goes on at the same
    /// slice.
    ///
    /// # Errors
    /// None for a counter that was made or loaded; the signature is that of [`Counter::new`].
    pub fn empty_twin(&self) -> Result<Self, Error> {
        match self.ring() {
            None => Counter::with_layout(*self.params(), self.layout()),
            Some(&ring) => Counter::with_ring(*self.params(), self.layout(), ring),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Params;
    use crate::counting::held::members::tests::LOOKED_AT;
    use crate::error::Parameter;
    use crate::size_limit::Unlimited;
    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PARAMS: Params = Params { capacity: 1000, error_rate: 0.05, exact_limit: 20, exact_bytes: 1000, seed: 7 };

    fn counter(params: Params, members: impl IntoIterator<Item = u8>) -> Counter {
        let mut counter = Counter::new(params).unwrap();
        members.into_iter().for_each(|member| {
            counter.add([member], &Unlimited).unwrap();
        });
        counter
    }

    #[test]
    fn an_estimate_answers_no_question_about_members() {
        let (exact, estimate) = (counter(PARAMS, 0..20), counter(PARAMS, 0..21));
        let refused = Error::NotExact { exact_limit: 20, exact_bytes: 1000 };
        assert_eq!(estimate.contains([0]), Err(refused.clone()));
        assert_eq!(estimate.members_beyond(&[&exact]), Err(refused.clone()));
        assert_eq!(exact.members_beyond(&[&exact, &estimate]), Err(refused));
        let foreign = counter(Params { seed: 8, ..PARAMS }, 0..2);
        assert_eq!(exact.members_beyond(&[&foreign]), Err(Error::incompatible(Parameter::Seed, 7, 8)));
    }

    #[test]
    fn lists_look_at_no_more_members_than_counts() {
        let params = Params { exact_limit: 5000, exact_bytes: 100_000, ..PARAMS };
        let of = |members: std::ops::Range<u32>| {
            let mut counter = Counter::new(params).unwrap();
            members.for_each(|member| drop(counter.add(member.to_le_bytes(), &Unlimited)));
            counter
        };
        let own = of(0..1000);
        let few: Vec<_> = (0..300).map(|n| of(5 * n + 500..5 * n + 505)).collect();
        let many: Vec<_> = (0..30).map(|n| of(10 * n + 500..10 * n + 2000)).collect();
        // Each of its own members is hashed; of each other no more are looked at than it has, or than are left.
        for (others, most) in [(few, 1000 + 300 * 5), (many, 1000 + 30 * 1000)] {
            let others: Vec<_> = others.iter().collect();
            LOOKED_AT.set(0);
            let counted = own.difference(&others).unwrap();
            let by_count = LOOKED_AT.replace(0);
            let listed = own.members_beyond(&others).unwrap();
            let by_list = LOOKED_AT.get();
            assert!(listed.iter().map(|member| member.to_vec()).eq((0..500u32).map(|n| n.to_le_bytes().to_vec())));
            assert_eq!(counted.count(), 500);
            assert!(by_list <= by_count && by_list <= most, "{by_list} against {by_count} and {most}");
        }
        // Members that all have: those of the smallest are hashed once, and looked for in each other while left.
        let others = [of(500..2000), of(0..2000), of(600..3000)];
        LOOKED_AT.set(0);
        let within = own.members_within(&others.each_ref()).unwrap();
        assert_eq!((within.len(), LOOKED_AT.get()), (400, 1000 + 1000 + 500 + 500));
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
                empty.add([3], &Unlimited).unwrap();
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
                prop_assert_eq!(counters[0].contains([item]), Ok(sets[0].contains(&item)));
            }
            let beyond: BTreeSet<u8> = counters[0].members_beyond(&others).unwrap().iter().map(|m| m[0]).collect();
            prop_assert!(beyond.iter().eq(sets[0].iter().filter(|m| !sets[1..].iter().any(|set| set.contains(m)))));
            let within: BTreeSet<u8> = counters[0].members_within(&others).unwrap().iter().map(|m| m[0]).collect();
            prop_assert!(within.iter().eq(sets[0].iter().filter(|m| sets[1..].iter().all(|set| set.contains(m)))));
        }
    }
}
