//! The lists of a filter: its sub-filters and, if it has a window, the generations to which they belong.
//!
//! ```text
//! slices of time:   | e-4 | e-3 | e-2 | e-1 |  e  |      e is the newest, of 4 slices
//! generations:      | S S |     | S   | S S | S   |      S is a sub-filter
//! their age:           4     -     2     1     0
//! ```
//!
//! A generation is a chain of sub-filters. An item is looked up in all live generations and added to the newest, which
//! begins with its first item. As slices pass, the oldest generations are dropped as a whole. An item is hashed once
//! for all generations. A filter without a window has a single generation, with age 0.

use std::alloc::Layout;

use crate::bloom::params::{Params, Windowing};
use crate::error::Error;
use crate::size_limit::{try_reserve, try_with_capacity};

/// A list of sub-filters, oldest first. In a filter without a window, a single sub-filter is stored in place. So a
/// small filter needs no allocation for the list.
#[derive(Debug, PartialEq)]
pub(super) enum SubFilters<S> {
    One(S),
    /// Two or more sub-filters; in a windowed filter, any number.
    Many(Vec<S>),
}

impl<S> SubFilters<S> {
    /// The sub-filters of a filter without a window.
    pub(super) fn from_vec(mut all: Vec<S>) -> Self {
        match all.pop() {
            Some(only) if all.is_empty() => SubFilters::One(only),
            last => {
                all.extend(last);
                SubFilters::Many(all)
            }
        }
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[S] {
        match self {
            SubFilters::One(one) => std::slice::from_ref(one),
            SubFilters::Many(all) => all,
        }
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [S] {
        match self {
            SubFilters::One(one) => std::slice::from_mut(one),
            SubFilters::Many(all) => all,
        }
    }

    /// Takes all sub-filters out.
    pub(super) fn take(&mut self) -> impl Iterator<Item = S> + use<S> {
        let (one, many) = match std::mem::replace(self, SubFilters::Many(Vec::new())) {
            SubFilters::One(one) => (Some(one), Vec::new()),
            SubFilters::Many(all) => (None, all),
        };
        one.into_iter().chain(many)
    }

    /// Makes room in a list for more sub-filters, so that [`Self::append`] does not fail. If a single sub-filter is
    /// stored in place, there is no list, and nothing is done.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), Error> {
        if let SubFilters::Many(all) = self { try_reserve(all, more) } else { Ok(()) }
    }

    /// Appends sub-filters.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing is changed then.
    pub(super) fn append(&mut self, more: impl ExactSizeIterator<Item = S>) -> Result<(), Error> {
        match self {
            _ if more.len() == 0 => {}
            SubFilters::Many(all) => {
                try_reserve(all, more.len())?;
                all.extend(more);
            }
            SubFilters::One(_) => {
                let mut all = try_with_capacity(1 + more.len())?;
                all.extend(self.take());
                all.extend(more);
                *self = SubFilters::Many(all);
            }
        }
        Ok(())
    }

    /// The layout of the allocation of the list. It is `None` if there is no list: for a single sub-filter that is
    /// stored in place, or without sub-filters.
    pub(super) fn list_layout(&self) -> Option<Layout> {
        match self {
            SubFilters::One(_) => None,
            SubFilters::Many(all) => Layout::array::<S>(all.capacity()).ok().filter(|layout| layout.size() > 0),
        }
    }
}

/// The generations of a windowed filter.
///
/// Invariants: all generations have different ages, and the ages are less than the number of generations that may be
/// live. Each generation has at least one sub-filter. The sizes of a sub-filter are derived from the parameters of a
/// generation and from the index of the sub-filter in its generation.
#[derive(Debug, PartialEq)]
pub(crate) struct Generations {
    /// The parameters that the user asked for. Each generation has parameters of its own.
    pub(super) params: Params,
    pub(super) windowing: Windowing,
    pub(super) of_generation: Params,
    pub(super) newest_slice: u64,
    /// The generations, oldest first. Generations without an item are left out.
    pub(super) list: Vec<Generation>,
}

/// The items that were added in one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    /// The age of the generation: the number of slices from its slice to the newest. It stays the same when slices are
    /// renumbered.
    pub(crate) age: u32,
    /// The number of sub-filters.
    pub(crate) len: u32,
    /// The number of items of this generation that were added again later, and so are counted in a later generation. It
    /// is at most the number of all items of this generation.
    pub(crate) renewed: u64,
}

/// Checks that a windowed filter may have these generations, oldest first.
///
/// # Errors
/// [`Error::Corrupt`].
pub(crate) fn check_generations(windowing: &Windowing, generations: &[Generation]) -> Result<(), Error> {
    let mut end = windowing.generations();
    for &Generation { age, .. } in generations {
        Error::check_field(age < end, "age of a generation", format_args!("less than {end}"), age)?;
        end = age;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list has exactly the memory that is reported for it.
    #[test]
    fn a_list_has_no_room_that_is_not_used() {
        let mut list = SubFilters::One(0u64);
        assert!(list.list_layout().is_none());
        for (more, len) in [(vec![], 1), (vec![1], 2), (vec![2], 3), (vec![3, 4, 5], 6), (vec![], 6)] {
            list.append(more.clone().into_iter()).unwrap();
            assert!((0..len).eq(list.as_slice().iter().copied()));
            if let SubFilters::Many(all) = &list {
                assert_eq!((all.capacity() as u64, list.list_layout()), (len, Layout::array::<u64>(all.len()).ok()));
            }
        }
        let mut at_once = SubFilters::One(0u64);
        at_once.append([1, 2, 3, 4, 5].into_iter()).unwrap();
        for list in [list, at_once] {
            let SubFilters::Many(all) = list else { panic!("there are six") };
            assert_eq!((all.len(), all.capacity()), (6, 6));
        }
    }

    #[test]
    fn lists_are_equal_that_have_equal_sub_filters() {
        let of = |all: &[u64]| SubFilters::from_vec(all.to_vec());
        for (ours, theirs) in [
            (&[1][..], &[1][..]),
            (&[1], &[2]),
            (&[1], &[1, 2]),
            (&[1, 2], &[1]),
            (&[1, 2], &[1, 3]),
            (&[1, 2], &[1, 2]),
        ] {
            assert_eq!(of(ours) == of(theirs), ours == theirs, "{ours:?} {theirs:?}");
        }
    }
}
