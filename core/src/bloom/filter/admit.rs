//! Admission to a filter: new items are added only while the filter holds fewer items than a limit.

use super::BloomFilter;
use super::generations::Parts;
use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::bloom::look_up::{look_up, look_up_chunks, prefetch_all};
use crate::bloom::sub_filter::SubFilter;
use crate::error::Error;
use crate::hash::{CHUNK, Hash128, first_marks, table_hash};
use crate::live::Windowed;
use crate::size_limit::{SizeLimit, try_reserve, try_with_capacity};

/// What is needed to undo additions to a sub-filter.
enum Undo {
    /// A copy of the sub-filter, if it takes less memory than [`Undo::Words`].
    Whole(SubFilter),
    /// The index and the earlier value of each 64-bit word that the additions may change, and the earlier number of
    /// items.
    Words { words: Vec<(usize, u64)>, num_items: u64 },
}

impl Undo {
    /// Saves what additions of these hashes may change.
    fn new(sub_filter: &SubFilter, hashes: &[Hash128]) -> Result<Self, Error> {
        let mut len = 0;
        hashes.iter().for_each(|&hash| sub_filter.words_of(hash, |_| len += 1));
        if len * size_of::<(usize, u64)>() >= sub_filter.as_bytes().len() {
            return Ok(Undo::Whole(sub_filter.try_clone()?));
        }
        let mut words = try_with_capacity(len)?;
        let now = sub_filter.bitmap.words();
        for &hash in hashes {
            sub_filter.words_of(hash, |index| words.push((index, now[index])));
        }
        Ok(Undo::Words { words, num_items: sub_filter.num_items })
    }

    /// Restores the saved state. The bitmap keeps its address in memory.
    fn put_back(self, sub_filter: &mut SubFilter) {
        match self {
            Undo::Whole(whole) => {
                sub_filter.bitmap.restore(&whole.bitmap);
                sub_filter.num_items = whole.num_items;
            }
            Undo::Words { words, num_items } => {
                sub_filter.bitmap.put_back(&words);
                sub_filter.num_items = num_items;
            }
        }
    }
}

/// An admission that is decided but not yet carried out. It owns all memory that it will need.
pub(super) struct Admitting {
    sorted: LookUp<Hash128>,
    /// Items that the filter has already and that will be added again, so that they expire later. Each comes with the
    /// number of new items before it in the call.
    renewed: Vec<(usize, Hash128)>,
    /// The number of new items that the limit allows.
    admitted: usize,
    terms: Terms,
    /// New sub-filters, if the newest slice has to grow.
    more: Vec<SubFilter>,
    /// The error that kept the filter from growing. It is `None` for a windowed filter, whose error `plan_admission`
    /// returns.
    stopped: Option<Error>,
    reported: Vec<Admission>,
}

impl Admitting {
    /// Whether carrying out the admission may change the filter.
    pub(super) fn adds(&self) -> bool {
        !self.terms.dry_run && (self.admitted > 0 || self.renews())
    }

    /// Whether items that the filter has already are added again, so that they expire later.
    pub(super) fn renews(&self) -> bool {
        !self.terms.dry_run && !self.renewed.is_empty()
    }
}

impl BloomFilter {
    /// Decides which items may be added within the limit of `terms`, as if the window had moved forward by
    /// `slices_later` slices. The items are not added yet.
    ///
    /// # Errors
    /// The error that keeps a windowed filter from growing, or [`Error::OutOfMemory`].
    pub(super) fn plan_admission<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        slices_later: u64,
        limit: &impl SizeLimit,
    ) -> Result<Admitting, Error> {
        let renews = self.renews();
        let mut sorted = LookUp::of(items.len())?;
        let mut renewed = try_with_capacity(if renews { items.len() } else { 0 })?;
        let newest = if slices_later == 0 { self.newest() } else { &[] };
        look_up_chunks(self.live_after(slices_later), items.map(self.hasher()), |hash, is_known| {
            sorted.record(table_hash(bytemuck::cast_slice(&[hash.lo, hash.hi])), hash, is_known);
            if is_known && renews && !look_up(newest, hash) {
                renewed.push((sorted.new_items().len(), hash));
            }
        });
        let new = sorted.new_items().len();
        let admitted = terms.admitted(self.after(slices_later).num_items(), new);
        if terms.all && admitted < new {
            renewed.clear();
        }
        let reported = first_of(if terms.dry_run { admitted } else { 0 }, new)?;
        let items = (admitted + renewed.len()) as u64;
        let (more, stopped) = match self.sub_filters_for(items, slices_later, limit) {
            (_, Some(error)) if self.windowing().is_some() => return Err(error),
            grown => grown,
        };
        if let (Parts::Many(all, Some(ring)), false) = (&mut self.parts, terms.dry_run) {
            // After the caller has moved the window forward, no error may occur. So memory is reserved here.
            try_reserve(&mut ring.list, 1)?;
            try_reserve(all, more.len())?;
        }
        Ok(Admitting { sorted, renewed, admitted, terms, more, stopped, reported })
    }

    /// Adds the items that [`Self::plan_admission`] admitted. Returns the outcome for each item of the call.
    ///
    /// # Errors
    /// The error that keeps the filter from growing, or [`Error::OutOfMemory`]. On error the filter is unchanged.
    pub(super) fn carry_out(&mut self, admitting: Admitting) -> Result<Vec<Admission>, Error> {
        let Admitting { sorted, renewed, admitted, terms, more, stopped, mut reported } = admitting;
        if admitted == 0 && renewed.is_empty() || terms.dry_run && stopped.is_none() {
            return Ok(sorted.into_answers(&reported));
        }
        // Items are added even if the filter could not grow, because the computed room is a lower bound. If an item
        // finds no room, and `goes_on` is false, the items added before are removed again.
        let does_not_scale = matches!(stopped, Some(Error::Full { .. }));
        let goes_on = stopped.is_none() || does_not_scale && !terms.all;
        let (len, has_newest) = (self.chain().len(), !self.newest().is_empty());
        // The newest sub-filter is saved, so that its additions can be undone after a dry run or an error. A full
        // sub-filter does not change.
        let before = match self.chain().last() {
            Some(newest) if (terms.dry_run || !goes_on) && !newest.is_full() => {
                Some(Undo::new(newest, sorted.new_items())?)
            }
            _ => None,
        };
        self.append(more.into_iter())?;
        let first = len - usize::from(has_newest);
        let end = self.fill(first, sorted.new_items(), &renewed, admitted, &mut reported, goes_on);
        if let (Some(end), false) = (end, terms.dry_run) {
            // New sub-filters that stayed empty are removed.
            self.truncate(end + 1);
            return Ok(sorted.into_answers(&reported));
        }
        self.truncate(len);
        if let Some(before) = before {
            before.put_back(&mut self.chain_mut()[len - 1]);
        }
        match (end, stopped) {
            (None, Some(error)) if !does_not_scale => return Err(error),
            (None, _) => reported.fill(Admission::Rejected),
            (Some(_), _) => {}
        }
        Ok(sorted.into_answers(&reported))
    }

    /// Makes the sub-filters that the newest slice needs for `items` more items when the window has moved forward by
    /// `slices_later` slices. An error is returned together with the sub-filters made before.
    fn sub_filters_for(
        &self,
        items: u64,
        slices_later: u64,
        limit: &impl SizeLimit,
    ) -> (Vec<SubFilter>, Option<Error>) {
        let mut more: Vec<SubFilter> = Vec::new();
        let live = self.live_after(slices_later);
        let newest = if slices_later == 0 { self.newest() } else { &[] };
        let mut room = newest.last().map_or(0, SubFilter::room);
        while room < items {
            let held = more.iter().map(SubFilter::reported_bytes).fold(self.held_bytes(live), u64::saturating_add);
            let next = self.next(newest, &more, live.len() + more.len(), held, limit);
            let next = match next.and_then(|next| try_reserve(&mut more, 1).map(|()| next)) {
                Ok(next) => next,
                Err(error) => return (more, Some(error)),
            };
            // The result of `room` may be too low, but a new sub-filter takes at least one item.
            room = room.saturating_add(next.room().max(1));
            more.push(next);
        }
        (more, None)
    }

    /// Adds up to `most` of the items `new`, and all items `renewed`, in the order of the call. They go into the
    /// sub-filter at index `first` until it is full, then into the next. Writes the outcomes for `new` to `reported`,
    /// and returns the index of the last used sub-filter. A new item without room is rejected if `goes_on` is true.
    /// Otherwise the function stops and returns `None`.
    fn fill(
        &mut self,
        first: usize,
        new: &[Hash128],
        renewed: &[(usize, Hash128)],
        most: usize,
        reported: &mut [Admission],
        goes_on: bool,
    ) -> Option<usize> {
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
                    None if goes_on => Admission::Rejected,
                    None => return None,
                }
            };
        }
        Some(at)
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
    use crate::bloom::{BitLayout, Params};
    use crate::hash::hash128;
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

    /// Undoing insertions needs words of 16 bytes each, or a copy of the bitmap, whichever takes less memory.
    #[test]
    fn what_may_be_taken_back_is_kept_in_the_less_memory() {
        let mut filter = SubFilter::new(0.01, 1000, &Unlimited).unwrap();
        assert_eq!((filter.as_bytes().len(), filter.info().hashes), (20 * 64, 6));
        filter.insert(hash128(b"first", 0));
        for new in 1..=12u8 {
            let hashes: Vec<Hash128> = (0..new).map(|item| hash128(&[item], 0)).collect();
            let (before, undo) = (filter.try_clone().unwrap(), Undo::new(&filter, &hashes).unwrap());
            // All bits of an item are in one line of eight words.
            assert_eq!(matches!(undo, Undo::Whole(_)), usize::from(new) * 8 * 16 >= 20 * 64, "{new}");
            assert_ne!(filter.insert_chunk(&hashes, first_marks(hashes.len())), 0);
            undo.put_back(&mut filter);
            assert!(filter == before);
        }
    }
}
