//! The lists of a chain: its sub-filters and, if the filter has a window, the generations to which they belong.

use std::alloc::Layout;

use crate::bloom::params::{Params, Windowing};
use crate::error::Error;
use crate::size_limit::{try_reserve, try_with_capacity};

/// A list of sub-filters, oldest first. In a filter without a window, a single sub-filter is stored in place. So a
/// small filter needs no allocation for the list.
#[derive(Debug, PartialEq)]
pub(in crate::bloom) enum SubFilters<S> {
    One(S),
    /// Two or more sub-filters; in a windowed filter, any number.
    Many(Vec<S>),
}

impl<S> SubFilters<S> {
    /// A list of the sub-filters `all`; `None` if `all` is empty.
    pub(in crate::bloom) fn from_vec(mut all: Vec<S>) -> Option<Self> {
        if all.len() > 1 {
            return Some(SubFilters::Many(all));
        }
        all.pop().map(SubFilters::One)
    }

    #[inline(always)]
    pub(in crate::bloom) fn as_slice(&self) -> &[S] {
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

    #[inline(always)]
    pub(in crate::bloom) fn first(&self) -> &S {
        &self.as_slice()[0]
    }

    /// Takes all sub-filters out. [`Self::put_back`] has to follow.
    pub(super) fn take(&mut self) -> impl Iterator<Item = S> + use<S> {
        let (one, many) = match std::mem::replace(self, SubFilters::Many(Vec::new())) {
            SubFilters::One(one) => (Some(one), Vec::new()),
            SubFilters::Many(all) => (None, all),
        };
        one.into_iter().chain(many)
    }

    /// Puts sub-filters back into a list from which all were taken out. If `in_place` is true, a single sub-filter is
    /// stored in place.
    pub(super) fn put_back(&mut self, mut all: Vec<S>, in_place: bool) {
        *self = match all.pop() {
            Some(one) if in_place && all.is_empty() => SubFilters::One(one),
            last => {
                all.extend(last);
                SubFilters::Many(all)
            }
        };
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
                if let SubFilters::One(one) = std::mem::replace(self, SubFilters::Many(Vec::new())) {
                    all.push(one);
                }
                all.extend(more);
                *self = SubFilters::Many(all);
            }
        }
        Ok(())
    }

    /// Drops all but the first `len` sub-filters; `len` is at least 1.
    pub(super) fn truncate(&mut self, len: usize) {
        let SubFilters::Many(all) = self else { return };
        all.truncate(len.max(1));
        all.shrink_to_fit();
        if let Some(left) = Self::from_vec(std::mem::take(all)) {
            *self = left;
        }
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
    pub(in crate::bloom) params: Params,
    pub(in crate::bloom) windowing: Windowing,
    pub(in crate::bloom) of_generation: Params,
    pub(in crate::bloom) newest_slice: u64,
    /// The generations, oldest first. Generations without an item are left out.
    pub(in crate::bloom) list: Vec<Generation>,
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

impl Generations {
    /// The bytes of the generations, without their sub-filters.
    pub(in crate::bloom) fn size_bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.list)) as u64
    }
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

/// Each generation with its sub-filters.
pub(super) fn by_generation<'a, S>(
    generations: &'a [Generation],
    mut rest: &'a [S],
) -> impl Iterator<Item = (&'a Generation, &'a [S])> {
    generations.iter().map_while(move |generation| {
        let (these, later) = rest.split_at_checked(generation.len as usize)?;
        rest = later;
        Some((generation, these))
    })
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
    fn what_is_truncated_frees_its_memory() {
        for (len, left) in [(9, 4), (4, 4), (3, 3), (2, 2), (1, 1), (0, 1)] {
            let Some(mut list) = SubFilters::from_vec(vec![0u64, 1, 2, 3]) else { panic!("there are four") };
            list.truncate(len);
            assert!((0..left).eq(list.as_slice().iter().copied()));
            assert_eq!(list.list_layout(), (left > 1).then(|| Layout::array::<u64>(left as usize).unwrap()));
        }
    }

    #[test]
    fn lists_are_equal_that_have_equal_sub_filters() {
        let of = |all: &[u64]| SubFilters::from_vec(all.to_vec()).unwrap();
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
