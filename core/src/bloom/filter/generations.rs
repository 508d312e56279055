//! The sub-filters of a filter and, if it has a window, the generations to which they belong.
//!
//! ```text
//! slices of time:   | e-4 | e-3 | e-2 | e-1 |  e  |      e is the newest slice
//! generations:      | S S |     | S   | S S | S   |      S is a sub-filter
//! their age:           4     -     2     1     0
//! ```
//!
//! A generation has the items of one slice, in one or more sub-filters. Items are added to the newest generation, and
//! looked up in all that have not expired. A generation is dropped as a whole when it expires. A filter without a
//! window has one generation.

use crate::bloom::params::{Params, Windowing};
use crate::bloom::sub_filter::SubFilter;

#[derive(Debug, PartialEq)]
pub(super) enum Parts {
    /// The only sub-filter of a filter without a window. A small filter thus needs no list.
    One(SubFilter),
    /// Two or more sub-filters without a window; any number with a window.
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

/// The generations of a windowed filter, one for each slice that has items.
///
/// Invariants: each generation has at least one sub-filter. No two generations have the same age, and all ages are
/// below [`Windowing::generations`]. The field `of_generation` and the index of a sub-filter in its generation
/// determine the sub-filter's size.
#[derive(Debug, PartialEq)]
pub(crate) struct Generations {
    /// The parameters that the user gave. `of_generation` is derived from them.
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
    /// The number of slices from this slice to the newest. It does not change when slices are renumbered because the
    /// clock was set back.
    pub(crate) age: u32,
    pub(crate) len: u32,
    /// The number of this slice's items that were added again in a later slice. The filter's number of items counts
    /// them only in the later slice.
    pub(crate) renewed: u64,
}
