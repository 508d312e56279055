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

use crate::bloom::params::{Params, Windowing};
use crate::bloom::sub_filter::SubFilter;
use crate::error::Error;

/// The sub-filters of a filter, oldest first.
#[derive(Debug, PartialEq)]
pub(super) enum Parts {
    /// The only sub-filter of a filter without a window. So a small filter needs no allocation for a list.
    One(SubFilter),
    /// Two or more sub-filters; with a window, any number, and the generations to which they belong.
    Many(Vec<SubFilter>, Option<Box<Generations>>),
}

impl Parts {
    /// The parts of a filter without a window.
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
