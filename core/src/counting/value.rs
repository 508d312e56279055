//! Implements [`Value`] for [`Counter`]: all changes of a counter, with or without a window.

use std::alloc::Layout;

use crate::admission::{Admission, LookUp, Terms, first_of};
use crate::counting::counter::Counter;
use crate::counting::held::Held;
use crate::counting::held::members::record::{Member, counted_bytes};
use crate::counting::held::ring::{TagRing, own_bytes};
use crate::counting::params::Params;
use crate::counting::stored::{CounterForm, PartialCounter};
use crate::counting::view::View;
use crate::error::{Error, Parameter};
use crate::hash::{checksum, table_hash};
use crate::heap::Mover;
use crate::live::sealed::Sealed;
use crate::live::{Live, Value};
use crate::marks::CHUNK;
use crate::shared::own_layout;
use crate::size_limit::{SizeLimit, try_collect, try_filled, try_with_capacity};
use crate::stored::inline::{AS_IT_IS, OUT_OF_LINE};
use crate::stored::payload::{Apart, Payload};
use crate::stored::{ChunkFormat, Kind};
use crate::window::{Ahead, ClockSource, Mark, Merging, Move, Time, Window};

/// The largest payload in bytes that is written into the header. A dump is then a single chunk, which cannot become
/// outdated half-way. The number may be changed, since readers accept any size.
const INLINE_MAX_BYTES: u64 = 48 << 10;

impl Counter {
    /// Gives access to the counter for changes at `time`.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
    }

    /// Whether the header contains the payload.
    fn is_inline(&self) -> bool {
        self.most_payload_bytes() <= INLINE_MAX_BYTES
    }

    /// The checksum of the members of an exact counter, which distinguishes dumps of the same length. It is 0 for an
    /// estimating counter, whose dumps are distinguished by the numbers of set bits in the header.
    fn members_sum(&self) -> u64 {
        if self.is_exact() { checksum(&self.payload_part(), 0) } else { 0 }
    }
}

/// Clones like [`Counter::try_clone`].
///
/// ```
/// # use rollcall_core::counting::Counter;
/// let counter: Counter = ["ann", "ben"].into_iter().collect();
/// assert_eq!(counter.clone().count(), 2);
/// ```
///
/// # Panics
/// If memory cannot be allocated.
impl Clone for Counter {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Collects items in a counter with [`Params::default`].
///
/// ```
/// use rollcall_core::counting::Counter;
///
/// let counter: Counter = ["ann", "ben", "ann"].into_iter().collect();
/// assert_eq!(counter.count(), 2);
/// ```
///
/// # Panics
/// If memory cannot be allocated.
impl<T: AsRef<[u8]>> FromIterator<T> for Counter {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut counter = Counter::new(Params::default()).unwrap_or_else(|error| panic!("{error}"));
        counter.live(Time::Reached).extend(items);
        counter
    }
}

impl Live<'_, Counter> {
    /// Adds members by their [`hash64`](crate::unstable::hash64) under the counter's seed. Returns false, and changes
    /// nothing, if the members themselves are needed: the counter is exact, or its window has to move first.
    ///
    /// # Errors
    /// The errors of [`Live::add`]. The members before the rejected one have been added.
    #[doc(hidden)]
    pub fn add_hashes(&mut self, hashes: &[u64], limit: &impl SizeLimit) -> Result<bool, Error> {
        let (Move::Stay, Held::Estimating(slots)) = (self.due(), &mut self.value.held) else { return Ok(false) };
        let changed = &mut self.outcome.changed;
        let mut chunks = hashes.chunks(CHUNK);
        chunks.try_for_each(|chunk| slots.mark_all(chunk, limit, |mark| *changed |= mark != Mark::Same))?;
        Ok(true)
    }

    /// Removes members from an exact counter, no matter in which slice they were added. Returns for each item whether
    /// it was removed. If an item occurs several times, only its first occurrence is reported as removed.
    ///
    /// The remaining members keep their order. A merge with a counter that still has a removed member adds the member
    /// again.
    ///
    /// ```
    /// use rollcall_core::counting::Counter;
    /// use rollcall_core::window::Time;
    ///
    /// let mut devices: Counter = ["phone", "laptop"].into_iter().collect();
    /// let removed = devices.live(Time::Reached).remove(["phone", "watch", "phone"].into_iter())?;
    /// assert_eq!((removed, devices.count()), (vec![true, false, false], 1));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates, unless all its members have expired and its exact limit is not 0.
    /// [`Error::OutOfMemory`]. On error the counter is unchanged.
    pub fn remove<'a, I: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a I>,
    ) -> Result<Vec<bool>, Error> {
        let view = self.value.at(self.time);
        drop(view.members()?);
        let (mut removed, mut places) = (try_filled(items.len(), false)?, try_with_capacity(items.len())?);
        for (at, item) in items.map(AsRef::as_ref).enumerate() {
            places.extend(view.place_of(item).map(|place| (place, at)));
        }
        // Of the places of a repeated item, only the first is left.
        places.sort_unstable();
        places.dedup_by_key(|&mut (place, _)| place);
        if let (Held::Exact(members), [_, ..]) = (&mut self.value.held, &places[..]) {
            members.remove(places.iter().map(|&(place, _)| place));
            places.iter().for_each(|&(_, at)| removed[at] = true);
            self.move_on();
            self.outcome.changed = true;
        }
        Ok(removed)
    }
}

/// The number of members in the view, and the bytes that they take of the limit `exact_bytes`.
fn present(view: View<'_>) -> Result<(u64, u64), Error> {
    // The members are counted one by one only if some of them have expired.
    if let (Held::Exact(all), true) = (&view.counter.held, view.is_whole()) {
        return Ok((all.len() as u64, all.member_bytes.into()));
    }
    let add = |(members, bytes), member: Member<'_>| (members + 1, bytes + member.counted_bytes() as u64);
    Ok(view.members()?.fold((0, 0), add))
}

impl Sealed for Counter {}

impl Value for Counter {
    type Partial = PartialCounter;
    const KIND: Kind = Kind::Counter;
    type Expired = ();

    fn window(&self) -> Option<&Window> {
        self.window()
    }

    fn newest_slice(&self) -> Option<u64> {
        self.ring().map(|ring| ring.newest)
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        if let Some(ring) = self.ring.as_mut() {
            ring.window = ring.window.with_clock_source(clock_source);
        }
    }

    fn advance(&mut self, slice: u64) {
        let Some(ring) = &mut self.ring else { return };
        let Some(passed @ 1..) = slice.checked_sub(ring.newest) else { return };
        let before = ring.ages;
        ring.set_newest(slice);
        let left = u8::try_from(passed).ok().and_then(|passed| before.most_age.checked_sub(passed));
        self.held.expire(left, before, ring.ages, &self.spec);
    }

    fn rebase(&mut self, slice: u64) {
        if let Some(ring) = self.ring.as_mut() {
            ring.rebase(slice);
        }
    }

    fn renews(&self) -> bool {
        self.window().is_some()
    }

    fn by_age(&self, slices_later: u64) -> Result<Vec<u64>, Error> {
        let mut by_age = try_filled(usize::from(self.ages().most_age) + 1, 0u64)?;
        let slices_later = usize::try_from(slices_later).unwrap_or(usize::MAX);
        for (age, _) in self.at(Time::Reached).aged() {
            if let Some(members) = by_age.get_mut(slices_later.saturating_add(age.into())) {
                *members += 1;
            }
        }
        Ok(by_age)
    }

    fn age_of(&self, item: &[u8]) -> Option<u64> {
        self.at(Time::Reached).age_of(item, table_hash(item)).ok().flatten().map(Into::into)
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let Some(window) = self.window() else { return Ok(Merging::default()) };
        // Counters with other windows number their slices differently. They are skipped here, and the merge rejects
        // them later.
        let numbering =
            |counter: &Counter| counter.window().map(|window| (window.clock_source(), window.slice_seconds()));
        let same = others.iter().filter(|other| numbering(other) == numbering(self));
        let merging = window.merging(self.reached(), same.map(|other| other.reached()), time);
        merging.map_err(|Ahead { slice, present }| Error::incompatible(Parameter::Slice, present, slice))
    }

    #[inline(always)]
    fn add_item(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        self.add_tagged(item, self.ages().newest, limit)
    }

    #[inline(always)]
    fn add_items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        changed: &mut bool,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let mut has_changed = false;
        let result = self.add_each(items, limit, |mark| {
            has_changed |= mark != Mark::Same;
            added(mark == Mark::New);
        });
        *changed |= has_changed;
        result
    }

    /// Members that have expired count as new.
    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, usize), Error> {
        let (due, view) = (live.due(), live.value.at(live.time));
        // An estimating counter without live members is treated as an empty exact counter.
        drop(view.members()?);
        // If the clock jumped ahead and was set back, the window moves back even if no item is admitted. Otherwise,
        // until the time to which the clock had jumped, no member would expire and make room.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0;
        let mut look_up = LookUp::of(items.len())?;
        // Members that were last added in an earlier slice. They are added again, so that they expire later.
        let mut renewed = try_with_capacity(if live.value.window().is_some() { items.len() } else { 0 })?;
        for item in items {
            let hash = table_hash(item);
            let age = if view.is_exact() { view.age_of(item, hash)? } else { None };
            if age.is_some_and(|age| age > 0 || matches!(due, Move::Advance(_))) {
                renewed.push(item);
            }
            look_up.record(hash, (hash, item), age.is_some());
        }
        let (members, bytes) = present(view)?;
        let &Params { exact_limit, exact_bytes, .. } = live.value.params();
        let admitted = terms.admitted(members, look_up.new.len());
        let new = &look_up.new[..admitted];
        if terms.all && admitted < look_up.new.len() {
            renewed.clear();
        }
        let members = members + admitted as u64;
        let bytes = bytes + new.iter().map(|(_, item)| counted_bytes(item) as u64).sum::<u64>();
        if members > exact_limit.into() || bytes > exact_bytes.into() {
            return Err(Error::PastExact { exact_limit, exact_bytes, members, bytes });
        }
        let reported = first_of(admitted, look_up.new.len())?;
        if !terms.dry_run {
            match new {
                [] => {}
                // Adding a single item either succeeds or changes nothing, so no copy of the counter is needed.
                &[(hash, only)] if due == Move::Stay => live.value.add_absent(only, hash, limit)?,
                several => {
                    let mut copy = live.value.try_clone()?;
                    copy.make(due);
                    several.iter().try_for_each(|&(hash, item)| copy.add_absent(item, hash, limit))?;
                    (*live.value, live.outcome.before) = (copy, due);
                }
            }
            let has_changes = admitted > 0 || !renewed.is_empty();
            if has_changes || rebases {
                live.move_on();
            }
            live.outcome.changed |= has_changes;
            renewed.iter().try_for_each(|item| live.value.add_item(item, limit).map(drop))?;
        }
        let num_new = look_up.new.len();
        Ok((look_up.into_answers(&reported), num_new))
    }

    /// Windows need slices of one length and one clock source. Otherwise the same slice number would mean different
    /// times.
    fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        Error::check_same(Parameter::Seed, self.params().seed, other.params().seed)?;
        let numbering = |counter: &Counter| counter.window().map(|of| (of.slice_seconds(), of.clock_source()));
        let [ours, theirs] = [self, other].map(numbering);
        if ours == theirs {
            return Ok(());
        }
        let has_same_length = ours.map(|(seconds, _)| seconds) == theirs.map(|(seconds, _)| seconds);
        let [ours, theirs] = [ours, theirs].map(|numbering| match numbering {
            None => "no window".to_owned(),
            Some((seconds, _)) if !has_same_length => format!("slices of {seconds} s"),
            Some((_, ClockSource::System)) => "system clock".to_owned(),
            Some((_, ClockSource::Manual)) => "manual clock".to_owned(),
        });
        Err(Error::incompatible(Parameter::Window, ours, theirs))
    }

    fn merge_live<'a>(
        live: &mut Live<'_, Self>,
        others: Vec<Apart<'a, &'a Self>>,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        let others = &try_collect(others.len(), others.iter().map(|&(other, _)| other))?;
        let merging = live.value.merging(others, live.time)?;
        // The merge makes a new counter, since it may fail half-way.
        let (merged, changed) = live.value.merged(others, merging.before, limit)?;
        *live.value = merged;
        live.value.make(merging.after);
        (live.outcome.before, live.outcome.after) = (merging.before, merging.after);
        live.outcome.changed |= changed;
        Ok(changed)
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        own_layout(&self.spec).into_iter().for_each(&mut *visit);
        self.ring.iter().for_each(|ring| visit(Layout::for_value::<TagRing>(ring)));
        self.held.heap_layouts(visit);
    }

    fn num_bytes(&self) -> u64 {
        own_bytes(self.ring.is_some()) + self.held.num_bytes()
    }

    /// Moves the heap buffer of the members, or the buffers of the bitmap, to other addresses. Smaller buffers are not
    /// moved.
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        if index == 0 {
            self.held.relocate(mover);
        }
        index == 0
    }

    fn header(&self) -> Vec<u8> {
        let (part, mut writer) = (self.payload_part(), CounterForm::of(self).write());
        if self.is_inline() {
            writer.u8(AS_IT_IS);
            writer.bytes.extend_from_slice(&part);
        } else {
            writer.u8(OUT_OF_LINE);
            writer.number(part.len() as u64);
            if self.is_exact() {
                writer.u64(self.members_sum());
            }
        }
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        if self.is_inline() { Payload::default() } else { Payload::of_parts([self.payload_part()]) }
    }

    fn chunk_format(&self) -> ChunkFormat {
        // The checksum of the members lets a reader reject chunks of another state. It is not needed if the header
        // contains the members, because a dump is then a single chunk.
        CounterForm::of(self).chunk_format(if self.is_inline() { 0 } else { self.members_sum() })
    }

    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        let Held::Exact(members) = &self.held else {
            visit(&self.header());
            return self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece));
        };
        // Equal sets may have their members in different orders, so the digest must not depend on the order.
        let (has_tags, mut records) = (self.ages().has_tags(), members.iter().collect::<Vec<_>>());
        records.sort_by_cached_key(|(_, member)| member.text());
        visit(&CounterForm::of(self).write().bytes);
        for (tag, member) in records {
            let text = member.text();
            visit(&(text.len() as u64).to_le_bytes());
            visit(&text);
            if has_tags {
                visit(&[tag]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::BLOCK;
    use crate::size_limit::Unlimited;

    #[test]
    fn members_of_any_type_come_in_blocks_of_any_length() {
        for len in [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let mut counter: Counter = (0..len as u32).map(u32::to_le_bytes).collect();
            let mut expected = Counter::new(Params::default()).unwrap();
            (0..len as u32).for_each(|member| drop(expected.add(member.to_le_bytes(), &Unlimited)));
            assert_eq!(counter.estimate(), expected.estimate());
            let copy = counter.clone();
            counter.live(Time::Reached).extend(["ann", "ben"]);
            counter.live(Time::Reached).extend([vec![b'z'; 9]]);
            assert!(counter.estimate() > copy.estimate());
            assert_eq!(copy.estimate(), expected.estimate());
        }
    }
}
