//! Merges of counters. With windows, a member keeps the younger of the slices in which the counters saw it.

use std::iter::once;

use crate::counting::counter::{Counter, Shaped};
use crate::counting::layout::Layout;
use crate::counting::params::Params;
use crate::counting::sets::union::layout_of_bits;
use crate::counting::sets::{check_same, check_seeds};
use crate::counting::sizing::largest_error;
use crate::error::{Error, Parameter};
use crate::heap::OnHeap;
use crate::size_limit::{SizeLimit, try_collect};
use crate::window::{ClockSource, Window};

impl Counter {
    /// Makes the counter the union of itself and `others`; returns whether that changed anything.
    ///
    /// The result takes the finest layout to which its own and the layouts of all counters with bits fold. It keeps its
    /// parameters unless the layout changes. If the layout changes, it takes capacity and error rate from the first
    /// counter with bits in the new layout. If no counter has that layout, it takes the smallest capacity, and the
    /// largest standard error up to that capacity. It stays exact if it is exact, no other counter has bits, and the
    /// union is within its limits.
    ///
    /// With windows, the largest newest slice of all counters becomes the newest, and everything that has expired by
    /// then is dropped.
    ///
    /// # Errors
    /// [`Error::Incompatible`] when seeds or windows differ, the errors of `limit`, and [`Error::OutOfMemory`]; on error
    /// the counter is unchanged.
    pub(in crate::counting) fn merge(&mut self, others: &[&Counter], limit: &impl SizeLimit) -> Result<bool, Error> {
        let mut all = with_first(self, others)?;
        check_seeds(all.iter().copied())?;
        check_windows(&all)?;
        let newest = all.iter().map(|counter| counter.reached()).max().unwrap_or(0);
        let lower_bound = all.iter().map(|counter| counter.lower_bound()).max().unwrap_or(0);
        // Counters without live members are ignored, and so are their layouts.
        let most_age = self.most_age();
        let is_live = |counter: &Counter| {
            let behind = u8::try_from(newest - counter.reached()).ok();
            counter.has_any(behind.and_then(|behind| most_age.checked_sub(behind)))
        };
        all.retain(|counter| is_live(counter));
        let live = try_collect(others.len(), others.iter().copied().filter(|other| is_live(other)))?;
        let layout = layout_of_bits(&all).map_or(self.layout(), |layout| layout.common(self.layout()));
        let (is_later, is_folded) = (newest > self.reached(), layout != self.layout());
        // A limit looks at the memory that is left when it is first asked: before a copy takes some of it.
        limit.check(0, 0)?;
        // Slots of the same layout are changed where they are, since that cannot fail. Anything else may fail, and is
        // changed in a copy.
        let mut copy = None;
        let merged = if is_folded {
            let folded = copy.insert(self.empty(promised(layout, &all, self.params()), layout)?);
            folded.add_members(&[self], self.reached(), 0, limit)?;
            folded
        } else if self.holds_all_slots() && is_live(self) {
            &mut *self
        } else {
            copy.insert(self.try_clone()?)
        };
        let changed = merged.add_members(&live, newest, lower_bound, limit)? || is_later || is_folded;
        if let (Some(copy), true) = (copy, changed) {
            *self = copy;
        }
        Ok(changed)
    }

    /// The union of `first` and `others`, with the parameters of `first`. The layout is the finest to which the bitmaps
    /// of all counters with bits can be folded. If no counter has bits, it is the layout of `first`.
    ///
    /// # Errors
    /// The errors of a merge.
    pub fn union(first: &Counter, others: &[&Counter], limit: &impl SizeLimit) -> Result<Counter, Error> {
        let all = with_first(first, others)?;
        let layout = layout_of_bits(&all).unwrap_or(first.layout());
        if layout != first.layout() {
            let mut union = first.empty(promised(layout, &all, first.params()), layout)?;
            union.merge(&all, limit)?;
            return Ok(union);
        }
        // Copying takes a fraction of the time of marking the slots one by one.
        limit.check(0, first.num_bytes())?;
        let mut union = first.try_clone()?;
        union.merge(others, limit)?;
        Ok(union)
    }
}

/// A list of `first` and all of `rest`.
fn with_first<'a>(first: &'a Counter, rest: &[&'a Counter]) -> Result<Vec<&'a Counter>, Error> {
    try_collect(rest.len() + 1, once(first).chain(rest.iter().copied()))
}

/// `params` with the capacity and error rate that a union of this layout keeps. They come from the first counter with
/// bits in this layout. If there is none, they are the smallest capacity, and the largest standard error up to that
/// capacity.
fn promised(layout: Layout, counters: &[&Counter], params: &Params) -> Params {
    let mut with_bits = counters.iter().filter(|counter| counter.has_bits());
    let (capacity, error_rate) = match with_bits.clone().find(|counter| counter.layout() == layout) {
        Some(same) => (same.params().capacity, same.params().error_rate),
        None => {
            let capacity = with_bits.by_ref().map(|counter| counter.params().capacity).fold(params.capacity, u64::min);
            // A layout that was given explicitly may be finer than any allowed error rate leads to.
            let error_rate = largest_error(layout, capacity).clamp(Params::MIN_ERROR_RATE, Params::MAX_ERROR_RATE);
            (capacity, error_rate)
        }
    };
    Params { capacity, error_rate, ..*params }
}

/// Checks that either all counters have windows with slices of one length and with one clock source, since slice numbers
/// mean different times otherwise, or none has a window.
fn check_windows(counters: &[&Counter]) -> Result<(), Error> {
    let windows = counters.iter().map(|counter| counter.window());
    check_same(Parameter::Window, windows.clone().map(|window| window.map(Window::slice_seconds)), |length| {
        length.map_or("no window".to_owned(), |length| format!("slices of {length} s"))
    })?;
    check_same(Parameter::Window, windows.flatten().map(Window::clock_source), |clock_source| {
        if clock_source == ClockSource::System { "system clock".to_owned() } else { "manual clock".to_owned() }
    })
}
