//! A counter of distinct members: what the server stores under a key.

use std::fmt;

use crate::counting::held::Held;
use crate::counting::held::members::record::Member;
use crate::counting::held::ring::{self, Ages, COUNTER_BYTES, MOST_SLICES, TagRing};
use crate::counting::held::slots::Slots;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::params::{Params, SPECS, Spec};
use crate::error::Error;
use crate::hash::hash64;
use crate::live::Value;
use crate::marks::CHUNK;
use crate::shared::Shared;
use crate::size_limit::SizeLimit;
use crate::window::{Mark, Time, Window};

/// A counter of distinct members. See the [module](crate::counting) for what it guarantees.
pub struct Counter {
    /// The parameters, and the layout of the bitmap. Counters with equal parameters share one copy.
    pub(super) spec: Shared<Spec>,
    pub(super) held: Held,
    /// The window, with the tags of its slices. Boxed, so that counters without a window stay small.
    pub(super) ring: Option<Box<TagRing>>,
}

// A server may hold millions of counters with few members each, so the struct is small.
const _: () = assert!(size_of::<Counter>() as u64 == COUNTER_BYTES);

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("params", self.params())
            .field("is_exact", &self.is_exact())
            .field("estimate", &self.estimate())
            .finish_non_exhaustive()
    }
}

impl Counter {
    /// Makes an empty counter. It allocates only a few bytes.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let counter = Counter::new(params)?;
    /// assert_eq!(counter.count(), 0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a parameter is outside its range.
    pub fn new(params: Params) -> Result<Self, Error> {
        Self::empty(params, None)
    }

    /// An empty counter with these parameters, and with this window and newest slice.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a parameter is outside its range.
    pub(super) fn empty(params: Params, ring: Option<TagRing>) -> Result<Self, Error> {
        let spec = Spec::new(params)?;
        let held = Held::none(&spec, ring.map_or(Ages::PLAIN, |ring| ring.ages));
        Ok(Self::holding(spec, held, ring))
    }

    pub(super) fn holding(spec: Spec, held: Held, ring: Option<TagRing>) -> Self {
        Counter { spec: spec.shared_in(&SPECS), held, ring: ring.map(Box::new) }
    }

    /// The layout of the bitmap that the counter has, or will have once it estimates.
    #[inline]
    pub(crate) fn layout(&self) -> Layout {
        self.spec.layout
    }

    /// Adds `item` to the slice of `tag`. The result is [`Mark::New`] if the item was no member of an exact counter, or
    /// if its bit was not set in the bitmap of an estimating one.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the counter is unchanged.
    #[inline(always)]
    pub(super) fn add_tagged(&mut self, item: &[u8], tag: u8, limit: &impl SizeLimit) -> Result<Mark, Error> {
        let ages = self.ages();
        self.held.add(item, (tag, ages), &self.spec, limit)
    }

    /// Adds `item`, whose [`table_hash`](crate::hash::table_hash) is `hash`. If the counter is exact, `item` must not
    /// be a member yet.
    ///
    /// # Errors
    /// The errors of [`Self::add_tagged`].
    pub(super) fn add_absent(&mut self, item: &[u8], hash: u64, limit: &impl SizeLimit) -> Result<(), Error> {
        let (tag, room) = (self.ages().newest, self.params().room());
        if let Held::Exact(members) = &mut self.held
            && members.add_absent(item, hash, tag, room, limit)?.is_some()
        {
            return Ok(());
        }
        self.add_item(item, limit).map(drop)
    }

    /// Adds `items`, and passes to `added` the result of [`Self::add_tagged`] for each.
    ///
    /// # Errors
    /// The errors of [`Self::add_tagged`]. The items before the rejected one have been added.
    // This method is inlined, so that the variables that `added` changes are in registers.
    #[inline(always)]
    pub(super) fn add_each<'a>(
        &mut self,
        mut items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(Mark),
    ) -> Result<(), Error> {
        let (ages, spec) = (self.ages(), &*self.spec);
        let (mut reserved, mut has_reserved, mut result) = (None, false, Ok(()));
        while result.is_ok()
            && let Held::Exact(members) = &mut self.held
            && let Some(item) = items.next()
        {
            // Memory is reserved for all items at once, as if each were as long as the first. It is reserved again
            // after all members were rewritten for another width, which gives it up.
            if reserved != Some(members.width) && (reserved.is_some() || members.len() == 1) {
                reserved = Some(members.width);
                has_reserved |= members.reserve(items.size_hint().0 + 1, spec.params.room(), limit);
            }
            result = self.held.add(item, (ages.newest, ages), spec, limit).map(&mut added);
        }
        if let (Held::Estimating(slots), true) = (&mut self.held, result.is_ok()) {
            let mut chunk = [0; CHUNK];
            // One loop hashes a chunk of items, and another adds them. So each loop keeps its variables in registers.
            while result.is_ok() {
                let hashes = chunk.iter_mut().zip(items.by_ref());
                let len = hashes.map(|(hash, item)| *hash = hash64(item, spec.params.seed)).count();
                if len == 0 {
                    break;
                }
                result = slots.mark_all(&chunk[..len], limit, &mut added);
            }
        }
        if let (Held::Exact(members), true) = (&mut self.held, has_reserved) {
            members.trim();
        }
        result
    }

    /// A copy of the counter with `newest` as the newest slice, which no counter may exceed, and with the members of
    /// `others`, each in the slice in which it was last added. If the copy estimates and has no window, the lower bound
    /// of its number of members is at least `lower_bound`. Also returns whether `others` changed members or this bound.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`].
    pub(super) fn with_members(
        &self,
        others: &[&Counter],
        newest: u64,
        lower_bound: u32,
        limit: &impl SizeLimit,
    ) -> Result<(Counter, bool), Error> {
        if newest > self.reached() {
            let mut later = self.try_clone()?;
            later.advance(newest);
            return later.with_members(others, newest, lower_bound, limit);
        }
        // A window has at most 254 slices. So in a counter that is 255 slices behind, all members have expired.
        let behind = |other: &Counter| u8::try_from(newest - other.reached()).unwrap_or(u8::MAX);
        if self.is_exact() && others.iter().all(|other| other.set_bits() == 0) {
            let (mut copy, mut changed) = (self.try_clone()?, false);
            for other in others {
                let ages = other.ages();
                for (tag, member) in other.held.members().into_iter().flat_map(|members| members.iter()) {
                    let age = ages.age(tag).saturating_add(behind(other));
                    if age <= self.ages().most_age {
                        let tag = self.ages().tag(age);
                        changed |= copy.add_tagged(member.text_in(&mut [0; 64]), tag, limit)? != Mark::Same;
                    }
                }
            }
            if let (Held::Estimating(slots), None) = (&mut copy.held, &self.ring) {
                changed |= slots.raise_lower_bound(lower_bound);
            }
            return Ok((copy, changed));
        }
        // At least one of the counters has only a bitmap, so all are merged as bitmaps.
        let mut union = Slots::wide(self.layout(), self.ages())?;
        for other in std::iter::once(self).chain(others.iter().copied()) {
            other.mark_in(&mut union, self.ages().most_age.checked_sub(behind(other)), behind(other));
        }
        let set_bytes = self.held.num_bytes();
        let mut slots = union.formed(|bytes| match bytes.saturating_sub(set_bytes) {
            0 => Ok(()),
            more_bytes => limit.check(self.num_bytes(), more_bytes),
        })?;
        if self.ring.is_none() {
            slots.raise_lower_bound(lower_bound);
        }
        let is_same = |own: &Slots| own.lower_bound >= slots.lower_bound && own.has_slots_of(&slots);
        let changed = !self.held.slots().is_some_and(is_same);
        let held = Held::Estimating(Box::new(slots));
        Ok((Counter { spec: self.spec.clone(), held, ring: self.ring.clone() }, changed))
    }

    /// Sets in the bitmap `union` the bits of the members that were last added at most `most_age` slices ago. `None`
    /// sets no bits. The newest slice of the counter is `behind` slices earlier than that of `union`.
    pub(super) fn mark_in(&self, union: &mut Slots, most_age: Option<u8>, behind: u8) {
        let Some(most_age) = most_age else { return };
        match &self.held {
            Held::Exact(members) => {
                let ages = self.ages();
                let seen = members.hashed(self.params().seed).filter(|&(_, tag)| ages.age(tag) <= most_age);
                seen.for_each(|(hash, tag)| union.mark_wide(union.layout.slot_of(hash), ages.age(tag) + behind));
            }
            Held::Estimating(slots) => union.merge(slots, most_age, behind),
        }
    }

    /// The number of distinct members: exact, or the rounded estimate. Without a window, adding members never lowers
    /// it.
    pub fn count(&self) -> u64 {
        if let Held::Exact(members) = &self.held {
            return members.len() as u64;
        }
        // The casts round down, so this rounds to the nearest number. Estimates are far below 2^52, so the signed cast
        // is safe. It takes half as many instructions as an unsigned one.
        (self.estimate() + 0.5) as i64 as u64
    }

    /// The most likely number of distinct members, not rounded. Without a window, it is at least the number of members
    /// when the counter stopped being exact.
    pub fn estimate(&self) -> f64 {
        match &self.held {
            Held::Exact(members) => members.len() as f64,
            Held::Estimating(slots) => slots.estimate(),
        }
    }

    /// A lower bound of the number of members: their number while the counter is exact, or when it stopped being exact.
    /// A merge raises it to the largest lower bound of the merged counters. With a window it is 0.
    pub(crate) fn lower_bound(&self) -> u32 {
        match &self.held {
            _ if self.ring.is_some() => 0,
            Held::Exact(members) => members.len() as u32,
            Held::Estimating(slots) => slots.lower_bound,
        }
    }

    /// The standard error of [`Self::count`], divided by the count. It is 0 while the counter is exact, and if the
    /// count is 0.
    pub fn standard_error(&self) -> f64 {
        self.at(Time::Reached).estimated().relative_error()
    }

    /// Whether the count is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.held, Held::Exact(_))
    }

    /// The members, in the order they were added.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates.
    pub fn members(&self) -> Result<impl Iterator<Item = Member<'_>> + Clone, Error> {
        self.at(Time::Reached).members()
    }

    /// Whether `item` is a member at the time of the newest slice.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates.
    pub fn contains(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.at(Time::Reached).contains(item)
    }

    /// Whether the counter has no members. An empty counter is exact, unless its exact limit is 0.
    pub fn is_empty(&self) -> bool {
        self.count() == 0 && (self.is_exact() || self.params().exact_limit == 0)
    }

    /// An empty counter with the same parameters and window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new_like(&self) -> Result<Self, Error> {
        Self::empty(*self.params(), self.ring().copied())
    }

    /// The parameters of the counter. [A merge](crate::live::Live::merge) may change the error rate.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let counter = Counter::new(params)?;
    /// assert_eq!(counter.params(), &params);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn params(&self) -> &Params {
        &self.spec.params
    }

    /// The number of set bits in the bitmap of an estimating counter; 0 while the counter is exact.
    pub(crate) fn set_bits(&self) -> u64 {
        self.held.slots().map_or(0, |slots| slots.counts.total())
    }

    /// The number of set bits in each segment of the bitmap; `None` while the counter is exact.
    pub(super) fn counts(&self) -> Option<SegmentCounts> {
        self.held.slots().map(|slots| slots.counts)
    }

    /// The bytes of memory that the counter takes: struct and heap together.
    pub fn size_bytes(&self) -> u64 {
        let mut bytes = COUNTER_BYTES;
        self.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// A copy of the counter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(Counter { spec: self.spec.clone(), held: self.held.try_clone()?, ring: self.ring.clone() })
    }
}

/// Methods for windows, in which members expire. The caller passes the time; no clock is read here.
impl Counter {
    /// The largest number of slices that a window may have.
    pub const MAX_SLICES: u32 = MOST_SLICES;

    /// An empty counter with the same parameters and with `window`. Its newest slice is `slice`, usually
    /// [`Window::first_slice`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more slices than [`Self::MAX_SLICES`], and [`Error::OutOfMemory`].
    pub fn with_window(self, window: Window, slice: u64) -> Result<Self, Error> {
        ring::check(&window)?;
        Self::empty(*self.params(), Some(TagRing::new(window, slice)))
    }

    pub(super) fn ring(&self) -> Option<&TagRing> {
        self.ring.as_deref()
    }

    /// The window of the counter, if it has one.
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The number of the newest slice; 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.ring().map_or(0, |ring| ring.newest)
    }

    #[inline]
    pub(super) fn ages(&self) -> Ages {
        self.ring().map_or(Ages::PLAIN, |ring| ring.ages)
    }
}

#[cfg(test)]
pub(super) mod tests;
