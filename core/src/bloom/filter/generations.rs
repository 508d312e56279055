//! The lists of a filter: its sub-filters and, if it has a window, the generations to which they belong.
//!
//! ```text
//! slices of time:   | e-4 | e-3 | e-2 | e-1 |  e  |      e is the newest slice
//! generations:      | S S |     | S   | S S | S   |      S is a sub-filter
//! their age:           4     -     2     1     0
//! ```
//!
//! A generation has the items of one slice, in one or more sub-filters. An item is looked up in all generations that
//! have not expired, and added to the newest. A generation is made when its first item is added. As slices pass, the
//! oldest generations are dropped as a whole. A filter without a window has a single generation, with age 0.

use crate::bloom::params::{Params, Windowing};
use crate::bloom::sub_filter::SubFilter;
use crate::error::Error;

/// The sub-filters of a filter, oldest first.
#[derive(Debug, PartialEq)]
pub(super) enum Parts {
    /// The only sub-filter of a filter without a window. So a small filter needs no allocation for a list.
    One(SubFilter),
    /// In a filter without a window, two or more sub-filters. In a windowed filter, any number, and the slices to which
    /// they belong.
    Many(Vec<SubFilter>, Option<Box<Generations>>),
}

impl Parts {
    pub(super) fn from_vec(mut all: Vec<SubFilter>) -> Self {
        match all.pop() {
            Some(only) if all.is_empty() => Parts::One(only),
            last => {
                all.extend(last);
                Parts::Many(all, None)
            }
        }
    }
}

/// The generations of a windowed filter. A generation has the items of one slice of time.
///
/// Invariants: all generations have different ages, less than [`Windowing::generations`]. Each generation has at least
/// one sub-filter. The size of a sub-filter follows from `of_generation` and from its index in its generation.
#[derive(Debug, PartialEq)]
pub(crate) struct Generations {
    /// The parameters that the user gave. The sub-filters have other parameters, `of_generation`, derived from these.
    pub(super) params: Params,
    pub(super) windowing: Windowing,
    pub(super) of_generation: Params,
    pub(super) newest_slice: u64,
    /// The slices that have items, oldest first.
    pub(super) list: Vec<Generation>,
}

/// The items that were added in one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    /// The number of slices from this slice to the newest slice. It stays the same if all slices get lower numbers
    /// because the clock was set back.
    pub(crate) age: u32,
    pub(crate) len: u32,
    /// The number of items of this slice that were added again in a later slice. They are counted in that slice, not in
    /// this one. This number is at most the number of all items of this slice.
    pub(crate) renewed: u64,
}

/// Checks that a windowed filter may have these generations, oldest first. A generation has the items of one slice.
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
