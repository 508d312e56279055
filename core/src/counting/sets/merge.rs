//! Merges of windowed counters: a member keeps the younger of the slices in which the counters saw it.

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::sets::check_seeds;
use crate::counting::sets::union::{layout_of_bits, promised, with_first};
use crate::error::{Error, Parameter};
use crate::live::Windowed;
use crate::size_limit::SizeLimit;
use crate::window::{ClockSource, Window};

impl Counter {
    /// Merges counters with windows, like [`Self::merge`]. The largest newest slice of all counters becomes the newest,
    /// and everything that has expired by then is dropped.
    pub(in crate::counting) fn merge_windows(
        &mut self,
        others: &[&Counter],
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        let mut all = with_first(self, others)?;
        check_seeds(all.iter().copied())?;
        check_windows(&all)?;
        check_clock_sources(&all)?;
        let newest = all.iter().map(|counter| counter.reached()).max().unwrap_or(0);
        let mut changed = newest > self.reached();
        // Counters without live members are ignored, and so are their layouts.
        let most_age = self.ring().map_or(0, |ring| ring.most_age());
        let behind = |counter: &Counter| newest - counter.reached();
        let left =
            |counter: &Counter| u8::try_from(behind(counter)).ok().and_then(|behind| most_age.checked_sub(behind));
        let is_live = |counter: &Counter| counter.windowed().is_some_and(|set| set.has_any(left(counter)));
        all.retain(|counter| is_live(counter));
        let of_bits = layout_of_bits(&all);
        let layout = of_bits.map_or(self.layout(), |layout| layout.common(self.layout()));
        let params = if layout == self.layout() { *self.params() } else { promised(layout, &all, self.params()) };
        // Cells of the same layout are changed where they are, since that cannot fail. Anything else may fail, and is
        // changed in a copy.
        let is_in_place = layout == self.layout() && self.holds_all_slots() && is_live(self);
        let mut copy = None;
        let merged = if is_in_place { &mut *self } else { copy.insert(self.try_clone()?) };
        merged.advance(newest);
        if of_bits.is_some() && (merged.is_exact() || layout != merged.layout()) {
            let Some(set) = merged.windowed() else { return Ok(false) };
            let slots = set.as_slots(merged.spec(), layout, Self::WINDOWED_BYTES, limit)?;
            *merged = Counter::with_contents(params, layout, Contents::Windowed(Box::new(slots)));
            changed = true;
        }
        for other in others.iter().filter(|other| is_live(other)) {
            if let (Some(theirs), Some((set, spec))) = (other.windowed(), merged.windowed_mut()) {
                changed |= set.merge(theirs, behind(other), spec, Self::WINDOWED_BYTES, limit)?;
            }
        }
        if let (Some(copy), true) = (copy, changed) {
            *self = copy;
        }
        Ok(changed)
    }
}

/// Checks that all windows have the same clock source, since slice numbers mean different times otherwise.
fn check_clock_sources(counters: &[&Counter]) -> Result<(), Error> {
    let clock_sources = counters.iter().filter_map(|counter| counter.window().map(|window| window.clock_source()));
    let in_words = |clock_source| if clock_source == ClockSource::System { "system clock" } else { "manual clock" };
    match clock_sources.clone().zip(clock_sources.skip(1)).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(Error::incompatible(Parameter::Window, in_words(ours), in_words(theirs))),
        None => Ok(()),
    }
}

/// Checks that either all counters have windows with slices of one length, or none has a window.
fn check_windows(counters: &[&Counter]) -> Result<(), Error> {
    let lengths = counters.iter().map(|counter| counter.window().map(Window::slice_seconds));
    let in_words =
        |length: Option<u64>| length.map_or("no window".to_owned(), |length| format!("slices of {length} s"));
    match lengths.clone().zip(lengths.skip(1)).find(|(ours, theirs)| ours != theirs) {
        Some((ours, theirs)) => Err(Error::incompatible(Parameter::Window, in_words(ours), in_words(theirs))),
        None => Ok(()),
    }
}
