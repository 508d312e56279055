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
        let mut merged = self.try_clone()?;
        let mut changed = newest > merged.reached();
        merged.advance(newest);
        // Counters without live members are ignored, and so are their layouts.
        let most_age = self.ring().map_or(0, |ring| ring.most_age());
        let behind = |counter: &Counter| newest - counter.reached();
        let left = |counter| u8::try_from(behind(counter)).ok().and_then(|behind| most_age.checked_sub(behind));
        all.retain(|counter| counter.windowed().is_some_and(|set| set.has_any(left(counter))));
        all.retain(|&counter| !std::ptr::eq(counter, self));
        let others = all;

        let of_bits = with_first(&merged, &others)?;
        if let Some(common) = layout_of_bits(&of_bits) {
            let layout = common.common(merged.layout());
            if merged.is_exact() || layout != merged.layout() {
                let params = if layout == merged.layout() {
                    *merged.params()
                } else {
                    promised(layout, &of_bits, merged.params())
                };
                let Some(set) = merged.windowed() else { return Ok(false) };
                let slots = set.as_slots(merged.spec(), layout, Self::WINDOWED_BYTES, limit)?;
                merged = Counter::with_contents(params, layout, Contents::Windowed(Box::new(slots)));
                changed = true;
            }
        }
        for other in others {
            let (Some(theirs), behind) = (other.windowed(), behind(other)) else { continue };
            if let Some((set, spec)) = merged.windowed_mut() {
                changed |= set.merge(theirs, behind, spec, Self::WINDOWED_BYTES, limit)?;
            }
        }
        if changed {
            *self = merged;
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
