//! Unions, intersections and differences of several counters.
//!
//! All functions here take [views](crate::counting::View) of counters with and without windows. A view of a windowed
//! counter has the same bits as a counter without a window to which the members in view were added.

use crate::counting::counter::Counter;
use crate::counting::view::View;
use crate::error::{Error, Parameter};
use crate::size_limit::try_collect;

pub(super) mod intersection;
pub(super) mod lists;
mod merge;
mod pair;
pub(super) mod union;

fn check_seeds<'a>(counters: impl Iterator<Item = &'a Counter> + Clone) -> Result<(), Error> {
    check_same(Parameter::Seed, counters.map(|counter| counter.params().seed), |seed| seed.to_string())
}

/// Checks that all values of a parameter are the same. `in_words` converts a value to text for the error.
fn check_same<T: PartialEq>(
    parameter: Parameter,
    values: impl Iterator<Item = T> + Clone,
    in_words: impl Fn(T) -> String,
) -> Result<(), Error> {
    match values.clone().zip(values.skip(1)).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(Error::incompatible(parameter, in_words(ours), in_words(theirs))),
        None => Ok(()),
    }
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

/// Functions for tests: unions, intersections and differences of counters at the time of their newest slices.
#[cfg(test)]
pub(in crate::counting) mod standing {
    use super::*;
    use crate::counting::Params;
    use crate::counting::estimate::Estimated;
    use crate::counting::view::standing;
    use crate::size_limit::Unlimited;

    /// A counter that keeps as many members exactly as a counter can.
    pub(in crate::counting) fn large(members: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Counter {
        let params = Params { exact_limit: 65_536, exact_bytes: 1 << 20, seed: 0, error_rate: 0.05 };
        let mut counter = Counter::new(params).unwrap();
        members.into_iter().for_each(|member| drop(counter.add(member, &Unlimited)));
        counter
    }

    pub(in crate::counting) fn count_union(counters: &[&Counter]) -> Result<u64, Error> {
        estimate_union(counters).map(|union| union.count())
    }

    pub(in crate::counting) fn estimate_union(counters: &[&Counter]) -> Result<Estimated, Error> {
        union::union_card(&standing(counters))
    }

    pub(in crate::counting) fn estimate_intersection(counters: &[&Counter]) -> Result<Estimated, Error> {
        intersection::inter_card(&standing(counters))
    }

    impl Counter {
        pub(in crate::counting) fn difference(&self, others: &[&Counter]) -> Result<Estimated, Error> {
            union::diff_card(&standing(&[&[self], others].concat()))
        }

        pub(in crate::counting) fn members_beyond(&self, others: &[&Counter]) -> Result<Vec<Vec<u8>>, Error> {
            let members = lists::diff(&standing(&[&[self], others].concat()))?;
            Ok(members.iter().map(|member| member.text().to_vec()).collect())
        }

        pub(in crate::counting) fn members_within(&self, others: &[&Counter]) -> Result<Vec<Vec<u8>>, Error> {
            let members = lists::inter(&standing(&[&[self], others].concat()))?;
            Ok(members.iter().map(|member| member.text().to_vec()).collect())
        }
    }
}

#[cfg(test)]
mod tests;
