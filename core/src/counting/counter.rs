//! A counter of distinct members: what the server stores under a key.

use std::alloc;
use std::fmt;
use std::iter::once;

use arrayvec::ArrayVec;

use crate::counting::estimate::Estimated;
use crate::counting::held::Held;
use crate::counting::held::adding::Adding;
use crate::counting::held::members::Members;
use crate::counting::held::members::record::Member;
use crate::counting::held::ring::{self, Ages, MOST_SLICES, TagRing};
use crate::counting::held::slots::Slots;
use crate::counting::held::tag::Tag;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::params::{Params, Spec};
use crate::counting::windowed_set::WindowedSet;
use crate::error::Error;
use crate::hash::{CHUNK, hash64};
use crate::heap::{Mover, OnHeap};
use crate::shared::Shared;
use crate::size_limit::SizeLimit;
use crate::window::{Mark, Time, Window};

/// A counter of distinct members. See the [module](crate::counting) for what it guarantees.
pub struct Counter {
    /// The parameters, and the layout of the bitmap. Counters with equal parameters share one copy.
    spec: Shared<Spec>,
    contents: Contents,
}

// A server may hold millions of counters with few members each, so the struct is small.
const _: () = assert!(size_of::<Counter>() <= 40);

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("params", self.params())
            .field("is_exact", &self.is_exact())
            .field("estimate", &self.estimate())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) enum Contents {
    Plain(Held),
    /// With a window: each member has the slice in which it was last added.
    Windowed(Box<WindowedSet>),
}

/// Compiles `$call` twice, for a counter without a window and for one with a window. In `$call`, `$held` is the
/// [`Held`] of the counter, and `$adding` the [arguments of an addition](Adding).
macro_rules! adding {
    ($counter:ident, $limit:ident, ($held:ident, $adding:ident) => $call:expr) => {{
        let (spec, limit) = (&*$counter.spec, $limit);
        match &mut $counter.contents {
            Contents::Plain($held) => {
                let $adding = Adding { spec, tag: (), ages: Ages::PLAIN, held_bytes: Self::STRUCT_BYTES, limit };
                $call
            }
            Contents::Windowed(set) => {
                let (held_bytes, ages) = (Self::WINDOWED_BYTES, set.ring.ages());
                let ($held, $adding) = (&mut set.held, Adding { spec, tag: ages.newest, ages, held_bytes, limit });
                $call
            }
        }
    }};
}

/// Compiles `$call` twice, for a counter without a window and for one with a window. In `$call`, `$held` is the
/// [`Held`] of the counter, and `$ages` its [`Ages`].
macro_rules! with_set {
    ($counter:expr, ($held:ident, $ages:pat) => $call:expr) => {
        match $counter.contents() {
            Contents::Plain($held) => {
                let $ages = $crate::counting::held::ring::Ages::PLAIN;
                $call
            }
            Contents::Windowed(set) => {
                let ($held, $ages) = (&set.held, set.ring.ages());
                $call
            }
        }
    };
}

pub(super) use with_set;

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
        let spec = Spec::new(params)?;
        Ok(Self::with_contents(spec, Contents::Plain(Held::none(&spec, Ages::PLAIN))))
    }

    pub(super) fn with_contents(spec: Spec, contents: Contents) -> Self {
        Counter { spec: spec.shared(), contents }
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The layout of the bitmap that the counter has, or will have once it estimates.
    #[inline]
    pub(crate) fn layout(&self) -> Layout {
        self.spec.layout
    }

    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }

    pub(super) fn windowed(&self) -> Option<&WindowedSet> {
        match &self.contents {
            Contents::Plain(_) => None,
            Contents::Windowed(set) => Some(set),
        }
    }

    pub(super) fn windowed_mut(&mut self) -> Option<(&mut WindowedSet, &Spec)> {
        match &mut self.contents {
            Contents::Plain(_) => None,
            Contents::Windowed(set) => Some((set, &self.spec)),
        }
    }

    pub(super) const STRUCT_BYTES: u64 = size_of::<Counter>() as u64;

    pub(super) const WINDOWED_BYTES: u64 = Self::STRUCT_BYTES + WindowedSet::STRUCT_BYTES;

    /// Adds `item` to the newest slice. The result is [`Mark::New`] if the item was no member of an exact counter, or
    /// if its bit was not set in the bitmap of an estimating one.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error the counter is unchanged.
    #[inline(always)]
    pub(super) fn add_item(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<Mark, Error> {
        adding!(self, limit, (held, adding) => held.add(item, adding))
    }

    /// Does the same as [`Self::add_item`], for an item whose [`table_hash`](crate::hash::table_hash) is `hash`. If the
    /// counter is exact, `item` must not be a member yet.
    ///
    /// # Errors
    /// The errors of [`Self::add_item`].
    pub(super) fn add_absent(&mut self, item: &[u8], hash: u64, limit: &impl SizeLimit) -> Result<Mark, Error> {
        adding!(self, limit, (held, adding) => held.add_absent(item, hash, adding))
    }

    /// Adds `items`, and passes to `added` the result of [`Self::add_item`] for each.
    ///
    /// # Errors
    /// The errors of [`Self::add_item`]. The items before the rejected one have been added.
    // This method is inlined, so that the variables that `added` changes are in registers.
    #[inline(always)]
    pub(super) fn add_each<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        added: impl FnMut(Mark),
    ) -> Result<(), Error> {
        adding!(self, limit, (held, adding) => add_to(held, items, adding, added))
    }

    /// See [`Held::remove`].
    pub(super) fn remove_hashed(&mut self, items: &[(u64, &[u8])], places: Vec<(usize, usize)>, removed: &mut [bool]) {
        match &mut self.contents {
            Contents::Plain(held) => held.remove(items, places, removed),
            Contents::Windowed(set) => set.held.remove(items, places, removed),
        }
    }

    /// Makes `newest` the newest slice; no counter may have a later one. Then adds the members of `others`, each in the
    /// slice in which it was last added. If the counter estimates and has no window, the lower bound of its number of
    /// members becomes at least `lower_bound`. Returns whether members or this bound changed.
    ///
    /// # Errors
    /// The errors of `limit`, and [`Error::OutOfMemory`]. On error some members may have been added.
    pub(super) fn add_members(
        &mut self,
        others: &[&Counter],
        newest: u64,
        lower_bound: u32,
        limit: &impl SizeLimit,
    ) -> Result<bool, Error> {
        if let Some((set, spec)) = self.windowed_mut() {
            set.advance(newest, spec);
        }
        // A window has at most 254 slices. So in a counter that is 255 slices behind, all members have expired.
        let behind = |other: &Counter| u8::try_from(newest - other.reached()).unwrap_or(u8::MAX);
        let mut changed = false;
        if self.is_exact() && others.iter().all(|other| other.set_bits() == 0) {
            for other in others {
                with_set!(other, (held, ages) => {
                    for (tag, member) in held.members().into_iter().flat_map(Members::iter) {
                        let age = tag.age(ages).saturating_add(behind(other));
                        changed |= self.add_aged(member.text_in(&mut [0; 64]), age, limit)? != Mark::Same;
                    }
                });
            }
        } else {
            // At least one of the counters has only a bitmap, so all are merged as bitmaps.
            let mut union = Slots::wide(self.layout(), self.ages())?;
            for other in once(&*self).chain(others.iter().copied()) {
                other.mark_in(&mut union, self.ages().most_age.checked_sub(behind(other)), behind(other));
            }
            let set_bytes = with_set!(self, (held, _) => held.num_bytes());
            let slots = union.formed(|bytes| match bytes.saturating_sub(set_bytes) {
                0 => Ok(()),
                more_bytes => limit.check(self.num_bytes(), more_bytes),
            })?;
            changed = with_set!(self, (held, _) => held.slots().is_none_or(|own| !own.has_slots_of(&slots)));
            match &mut self.contents {
                _ if !changed => {}
                Contents::Plain(held) => *held = Held::Estimating(Box::new(slots)),
                Contents::Windowed(set) => set.held = Held::Estimating(Box::new(slots)),
            }
        }
        if let Contents::Plain(Held::Estimating(slots)) = &mut self.contents {
            changed |= slots.raise_lower_bound(lower_bound);
        }
        Ok(changed)
    }

    /// Does the same as [`Self::add_item`], for an item that was last added `age` slices before the newest slice. An
    /// expired item is not added.
    fn add_aged(&mut self, item: &[u8], age: u8, limit: &impl SizeLimit) -> Result<Mark, Error> {
        adding!(self, limit, (held, adding) => match Tag::of_age(age, adding.ages) {
            Some(tag) => held.add(item, Adding { tag, ..adding }),
            None => Ok(Mark::Same),
        })
    }

    /// Sets in the bitmap `union` the bits of the members that were last added at most `most_age` slices ago. `None`
    /// sets no bits. The newest slice of the counter is `behind` slices earlier than that of `union`.
    pub(super) fn mark_in(&self, union: &mut Slots, most_age: Option<u8>, behind: u8) {
        let Some(most_age) = most_age else { return };
        with_set!(self, (held, ages) => match held {
            Held::Exact(members) => {
                let seen = members.hashed(self.params().seed).filter(|(_, tag, _)| tag.age(ages) <= most_age);
                seen.for_each(|(hash, tag, _)| union.mark_wide(union.layout().slot_of(hash), tag.age(ages) + behind));
            }
            Held::Estimating(slots) => union.merge(slots, most_age, behind),
        });
    }

    /// The number of distinct members: exact, or the rounded estimate. Without a window, adding members never lowers
    /// it.
    pub fn count(&self) -> u64 {
        if let Contents::Plain(Held::Exact(members)) = &self.contents {
            return members.len() as u64;
        }
        // The casts round down, so this rounds to the nearest number. Estimates are far below 2^52, so the signed cast
        // is safe. It takes half as many instructions as an unsigned one.
        (self.estimate() + 0.5) as i64 as u64
    }

    /// The most likely number of distinct members, not rounded. Without a window, it is at least the number of members
    /// when the counter stopped being exact.
    pub fn estimate(&self) -> f64 {
        with_set!(self, (held, _) => held.estimate())
    }

    /// A lower bound of the number of members: their number while the counter is exact, or when it stopped being exact.
    /// A merge raises it to the largest lower bound of the merged counters. With a window it is 0.
    pub(crate) fn lower_bound(&self) -> u32 {
        match &self.contents {
            Contents::Plain(Held::Exact(members)) => members.len() as u32,
            Contents::Plain(Held::Estimating(slots)) => slots.lower_bound(),
            Contents::Windowed(_) => 0,
        }
    }

    /// The standard error of [`Self::count`], divided by the count. It is 0 while the counter is exact, and if the
    /// count is 0.
    pub fn standard_error(&self) -> f64 {
        self.estimated().relative_error()
    }

    pub(super) fn estimated(&self) -> Estimated {
        self.at(Time::Reached).estimated()
    }

    /// Whether any member was last added at most `most_age` slices ago. `None` selects no members.
    pub(super) fn has_any(&self, most_age: Option<u8>) -> bool {
        with_set!(self, (held, ages) => held.has_any(ages, most_age))
    }

    /// Whether the count is exact.
    pub fn is_exact(&self) -> bool {
        with_set!(self, (held, _) => matches!(held, Held::Exact(_)))
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
        self.empty(*self.params())
    }

    /// An empty counter with these parameters, and with the window and the newest slice of this counter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a parameter is outside its range.
    pub(super) fn empty(&self, params: Params) -> Result<Self, Error> {
        match self.ring() {
            None => Counter::new(params),
            Some(&ring) => Counter::with_ring(params, ring),
        }
    }

    /// The error for a command that needs the members, on a counter that estimates.
    pub(super) fn not_exact(&self) -> Error {
        let &Params { exact_limit, exact_bytes, .. } = self.params();
        Error::NotExact { exact_limit, exact_bytes }
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
        with_set!(self, (held, _) => held.set_bits())
    }

    /// The number of set bits in each segment of the bitmap; `None` while the counter is exact.
    pub(super) fn counts(&self) -> Option<SegmentCounts> {
        with_set!(self, (held, _) => held.slots().map(|slots| *slots.counts()))
    }

    /// The bytes of memory that the counter takes: struct and heap together.
    pub fn size_bytes(&self) -> u64 {
        let mut bytes = Self::STRUCT_BYTES;
        self.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// A copy of the counter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let contents = match &self.contents {
            Contents::Plain(held) => Contents::Plain(held.try_clone()?),
            Contents::Windowed(set) => {
                Contents::Windowed(Box::new(WindowedSet { ring: set.ring, held: set.held.try_clone()? }))
            }
        };
        Ok(Counter { spec: self.spec.clone(), contents })
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
        Self::with_ring(*self.params(), TagRing::new(window, slice))
    }

    pub(super) fn with_ring(params: Params, ring: TagRing) -> Result<Self, Error> {
        let spec = Spec::new(params)?;
        let set = WindowedSet { ring, held: Held::none(&spec, ring.ages()) };
        Ok(Self::with_contents(spec, Contents::Windowed(Box::new(set))))
    }

    pub(super) fn ring(&self) -> Option<&TagRing> {
        self.windowed().map(|set| &set.ring)
    }

    /// The window of the counter, if it has one.
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The number of the newest slice; 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.ring().map_or(0, TagRing::newest)
    }

    pub(super) fn ages(&self) -> Ages {
        self.ring().map_or(Ages::PLAIN, TagRing::ages)
    }

    /// The number of the slice that is the newest at `time`; 0 without a window.
    pub(super) fn present_slice(&self, time: Time) -> u64 {
        self.window().map_or(0, |window| window.present(self.reached(), time))
    }
}

impl OnHeap for Counter {
    fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        crate::shared::own_layout(&self.spec).into_iter().for_each(&mut *visit);
        self.windowed().into_iter().for_each(|_| visit(alloc::Layout::new::<WindowedSet>()));
        with_set!(self, (held, _) => held.heap_layouts(visit));
    }

    fn num_bytes(&self) -> u64 {
        match &self.contents {
            Contents::Plain(held) => Self::STRUCT_BYTES + held.num_bytes(),
            Contents::Windowed(set) => Self::WINDOWED_BYTES + set.held.num_bytes(),
        }
    }

    /// Moves the heap buffer of the members, or the main buffer of the bitmap, to another address. Smaller buffers are
    /// not moved.
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        match (index, &mut self.contents) {
            (0, Contents::Plain(held)) => held.relocate(mover),
            (0, Contents::Windowed(set)) => set.held.relocate(mover),
            _ => return false,
        }
        true
    }
}

#[inline(always)]
fn add_to<'a, T: Tag>(
    held: &mut Held<T>,
    mut items: impl Iterator<Item = &'a [u8]>,
    adding: Adding<'_, T, impl SizeLimit>,
    mut added: impl FnMut(Mark),
) -> Result<(), Error> {
    let (seed, mut has_reserved, mut result) = (adding.spec.params.seed, None, Ok(()));
    while result.is_ok()
        && held.members().is_some()
        && let Some(item) = items.next()
    {
        // Memory is reserved for all items at once, as if each were as long as the first.
        if has_reserved.is_none() && held.members().is_some_and(|members| members.len() == 1) {
            has_reserved = Some(held.reserve(items.size_hint().0 + 1, adding));
        }
        result = held.add(item, adding).map(&mut added);
    }
    if let (Held::Estimating(slots), true) = (&mut *held, result.is_ok()) {
        let mut hashes = items.map(|item| hash64(item, seed));
        // One loop hashes a chunk of items, and another adds them. So each loop keeps its variables in registers.
        while result.is_ok() {
            let chunk: ArrayVec<u64, CHUNK> = hashes.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                break;
            }
            result = slots.mark_all(&chunk, adding, &mut added);
        }
    }
    if has_reserved == Some(true) {
        held.trim();
    }
    result
}

#[cfg(test)]
pub(super) mod tests;
