//! Unions, intersections and differences of several counters.
//!
//! All functions here take [views](crate::counting::View) of counters with and without windows. A view of a windowed
//! counter has the same bits as a counter without a window to which the members in view were added.

use crate::counting::view::View;
use crate::error::{Error, Parameter};
use crate::size_limit::try_collect;

pub(super) mod intersection;
pub(super) mod lists;
mod merge;
mod pair;
pub(super) mod union;

/// Checks that the counters of all views have the same seed.
fn check_seeds(views: &[View<'_>]) -> Result<(), Error> {
    let seed = |view: &View<'_>| view.counter.params().seed;
    views.iter().try_for_each(|view| Error::check_same(Parameter::Seed, seed(&views[0]), seed(view)))
}

/// The views without repetitions, in their order. Each view for which `stays` returns true, given its index, is kept.
///
/// # Errors
/// [`Error::OutOfMemory`].
fn distinct<'a>(views: &[View<'a>], stays: impl Fn(usize, &View<'a>) -> bool) -> Result<Vec<View<'a>>, Error> {
    let keys = views.iter().enumerate().map(|(at, view)| ((view.id(), stays(at, view).then_some(at)), at));
    let mut keys = try_collect(views.len(), keys)?;
    keys.sort_unstable();
    keys.dedup_by_key(|&mut (key, _)| key);
    keys.sort_unstable_by_key(|&(_, at)| at);
    try_collect(keys.len(), keys.iter().map(|&(_, at)| views[at]))
}

#[cfg(test)]
pub(in crate::counting) mod tests;
