//! What admission to a filter needs of its sub-filters: room for the admitted items, and their addition.

use super::BloomFilter;
use crate::admission::Admission;
use crate::bloom::look_up::{look_up, prefetch_all};
use crate::bloom::sub_filter::SubFilter;
use crate::error::Error;
use crate::hash::Hash128;
use crate::marks::{CHUNK, first_marks};
use crate::size_limit::{SizeLimit, try_reserve};

impl BloomFilter {
    /// Makes the sub-filters that the newest slice needs for `items` more items when the window has moved forward by
    /// `slices_later` slices.
    ///
    /// # Errors
    /// The error that keeps the filter from growing: [`Error::Full`] if it does not scale.
    pub(super) fn sub_filters_for(
        &self,
        items: u64,
        slices_later: u64,
        limit: &impl SizeLimit,
    ) -> Result<Vec<SubFilter>, Error> {
        let mut more: Vec<SubFilter> = Vec::new();
        let live = self.live_after(slices_later);
        let newest = if slices_later == 0 { self.newest() } else { &[] };
        let mut room = newest.last().map_or(0, SubFilter::room);
        while room < items {
            let held = more.iter().map(SubFilter::reported_bytes).fold(self.held_bytes(live), u64::saturating_add);
            let next = self.next(newest, &more, live.len() + more.len(), held, limit)?;
            try_reserve(&mut more, 1)?;
            // The result of `room` may be too low, but a new sub-filter takes at least one item.
            room = room.saturating_add(next.room().max(1));
            more.push(next);
        }
        Ok(more)
    }

    /// Adds up to `most` of the items `new`, and all items `renewed`, in the order of the call. They go into the newest
    /// sub-filter until it is full, then into the next of `more`. Writes the outcomes for `new` to `reported`. A new
    /// item without room is rejected.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], only without a window. The filter is then unchanged.
    pub(super) fn add_admitted(
        &mut self,
        more: Vec<SubFilter>,
        new: &[Hash128],
        renewed: &[(usize, Hash128)],
        most: usize,
        reported: &mut [Admission],
    ) -> Result<(), Error> {
        let first = self.chain().len() - usize::from(!self.newest().is_empty());
        self.append(more.into_iter())?;
        let (mut at, mut admitted, mut renewed) = (first, 0, renewed.iter().peekable());
        for (place, hash) in new.iter().map(Some).chain([None]).enumerate() {
            if place % CHUNK == 0 {
                let chunk = &new[place..new.len().min(place + CHUNK)];
                prefetch_all(&self.chain()[at], chunk, first_marks(chunk.len()));
            }
            while let Some(&(_, hash)) = renewed.next_if(|(before, _)| *before == place) {
                if self.insert_from(first, &mut at, hash) == Some(true) {
                    self.count_renewed(hash);
                }
            }
            let Some(&hash) = hash else { break };
            reported[place] = if admitted == most {
                let is_known = look_up(&self.chain()[first..=at], hash);
                if is_known { Admission::Known } else { Admission::Rejected }
            } else {
                match self.insert_from(first, &mut at, hash) {
                    Some(true) => {
                        admitted += 1;
                        Admission::Admitted
                    }
                    Some(false) => Admission::Known,
                    None => Admission::Rejected,
                }
            };
        }
        // New sub-filters that stayed empty are removed.
        self.truncate(at + 1);
        Ok(())
    }

    /// Inserts an item into the sub-filter at index `at` or, if this is full, into the next. Returns false if the
    /// sub-filters from `first` to `at` have the item already, and `None` if there is no room.
    fn insert_from(&mut self, first: usize, at: &mut usize, hash: Hash128) -> Option<bool> {
        let sub_filters = self.chain_mut();
        if look_up(&sub_filters[first..=*at], hash) {
            return Some(false);
        }
        if sub_filters[*at].is_full() {
            if *at + 1 == sub_filters.len() {
                return None;
            }
            *at += 1;
        }
        Some(sub_filters[*at].insert(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Terms;
    use crate::bloom::{BitLayout, Params};
    use crate::hash::tests::{COMPARED, chosen_classic};
    use crate::size_limit::Unlimited;

    /// Items whose hashes share most bits once took a comparison with each item before.
    #[test]
    fn chosen_items_are_compared_with_few() {
        let mut filter = BloomFilter::new(BitLayout::Classic, Params::default(), &Unlimited).unwrap();
        let (items, terms) = (chosen_classic(2000), Terms { limit: 10, all: false, dry_run: true });
        COMPARED.set(0);
        filter.admit(items.iter(), terms, &Unlimited).unwrap();
        assert!(COMPARED.get() < 500, "{}", COMPARED.get());
    }
}
