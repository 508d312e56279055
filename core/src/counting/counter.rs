//! A counter of distinct members: what the server stores under a key.

use std::alloc;
use std::fmt;

use roaring::RoaringBitmap;

use crate::counting::dated::cells::DatedCells;
use crate::counting::dated::{Dated, Seen};
use crate::counting::estimate::Estimated;
use crate::counting::layout::{Layout, Slot};
use crate::counting::listing;
use crate::counting::members::Members;
use crate::counting::params::{Params, Plan};
use crate::counting::slots::{Bitmap, Bits, Dense};
use crate::error::Error;
use crate::hash::hash64;
use crate::heap::{Mover, OnHeap};
use crate::shared::Shared;
use crate::size_limit::SizeLimit;
use crate::window::{Time, Touch};

/// Items that are hashed before the first of them is set: as many reads of memory as a core keeps under way.
const BATCH: usize = 32;

/// How a counter holds its set at present. It only ever moves on, but back to exact when a window has nothing left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// The members themselves.
    Exact,
    /// The positions of the set bits.
    Sparse,
    /// The bitmap.
    Dense,
}

impl Representation {
    /// Its name, as users know it.
    ///
    /// ```
    /// assert_eq!(rollcall_core::counting::Representation::Sparse.name(), "sparse");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Representation::Exact => "exact",
            Representation::Sparse => "sparse",
            Representation::Dense => "dense",
        }
    }
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A counter of distinct members. See the [module](crate::counting) for what it guarantees.
pub struct Counter {
    /// Other counters that were made alike have it too.
    plan: Shared<Plan>,
    state: State,
}

// There are millions, most of them with few members.
const _: () = assert!(size_of::<Counter>() <= 40);

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("params", self.params())
            .field("representation", &self.representation())
            .field("estimate", &self.estimate())
            .finish_non_exhaustive()
    }
}

/// The three representations; sparse and dense are the bitmap's affair. A windowed counter has its own three.
#[derive(Debug)]
pub(super) enum State {
    /// The members themselves.
    Exact(Members),
    /// Their bits.
    Estimating(Bitmap),
    /// What was seen, with its slices.
    Windowed(Box<Dated>),
}

impl Counter {
    /// An empty counter. It allocates nothing large.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let counter = Counter::new(params)?;
    /// assert_eq!(counter.count(), 0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is.
    pub fn new(params: Params) -> Result<Self, Error> {
        Self::with_layout(params, params.layout()?)
    }

    pub(super) fn from_state(params: Params, layout: Layout, floor: u32, state: State) -> Self {
        let state = match state {
            State::Estimating(bitmap) => State::Estimating(bitmap.with_floor(floor)),
            other => other,
        };
        Counter { plan: Plan { params, layout }.shared(), state }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What a windowed counter has seen.
    pub(super) fn dated(&self) -> Option<&Dated> {
        match &self.state {
            State::Windowed(dated) => Some(dated),
            _ => None,
        }
    }

    /// As [`Self::dated`], with its plan, to change it.
    pub(super) fn dated_mut(&mut self) -> Option<(&mut Dated, &Plan)> {
        match &mut self.state {
            State::Windowed(dated) => Some((dated, &self.plan)),
            _ => None,
        }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// ORs others of which it has the layout into its words, when it is dense; false, and nothing done, when it is not.
    /// `floor` is that of them all.
    pub(super) fn or_dense(&mut self, floor: u32, others: &mut dyn FnMut(Layout, &mut [u64])) -> bool {
        match &mut self.state {
            State::Exact(_) | State::Windowed(_) => false,
            State::Estimating(bitmap) => bitmap.or_dense(floor, others),
        }
    }

    /// Bytes of the struct itself, which a counter takes whatever it holds.
    pub(super) const STRUCT_BYTES: u64 = size_of::<Counter>() as u64;

    /// Adds an item, whose hash is `hash`, to the newest slice that was reached.
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`]; nothing was changed then.
    #[inline]
    pub(super) fn touch_hashed(&mut self, item: &[u8], hash: u64, limit: &impl SizeLimit) -> Result<Touch, Error> {
        match self.dated_mut() {
            Some((dated, plan)) => dated.touch(item, hash, plan, Self::WINDOWED_BYTES, limit),
            None => self.add_plain(item, hash, limit).map(|is_new| if is_new { Touch::New } else { Touch::Same }),
        }
    }

    /// The same without a window. It is new to an exact counter when it is no member, to an estimating one when its slot
    /// was free.
    ///
    /// # Errors
    /// As there.
    // Inlined, since the result is large and nearly all of it an error.
    #[inline(always)]
    pub(super) fn add_plain(&mut self, item: &[u8], hash: u64, limit: &impl SizeLimit) -> Result<bool, Error> {
        match &mut self.state {
            State::Exact(members) if members.contains(item, hash) => Ok(false),
            State::Exact(_) => self.add_member(item, hash, limit),
            State::Estimating(bitmap) => bitmap.insert(bitmap.layout().slot_of(hash), Self::STRUCT_BYTES, limit),
            State::Windowed(_) => Ok(false),
        }
    }

    /// Adds an item that is no member of an exact counter.
    ///
    /// # Errors
    /// Those of [`Self::touch_hashed`].
    pub(super) fn add_absent(&mut self, item: &[u8], hash: u64, limit: &impl SizeLimit) -> Result<(), Error> {
        match &mut self.state {
            State::Exact(_) => self.add_member(item, hash, limit).map(|_| ()),
            State::Windowed(dated) => {
                dated.touch_unknown(item, hash, &self.plan, Self::WINDOWED_BYTES, limit).map(|_| ())
            }
            State::Estimating(_) => Ok(()),
        }
    }

    /// Adds an item that is no member of an exact counter yet.
    #[inline(never)]
    fn add_member(&mut self, item: &[u8], hash: u64, limit: &impl SizeLimit) -> Result<bool, Error> {
        let Plan { params, layout } = &*self.plan;
        let State::Exact(members) = &mut self.state else { return Ok(false) };
        if members.has_room_for(item, params.room()) {
            let held_bytes = Self::STRUCT_BYTES + members.heap_bytes();
            members.insert_if(item, hash, params.seed, |more_bytes| limit.check(held_bytes, more_bytes))?;
        } else {
            let mut slots = slots_of(members, params.seed, *layout);
            slots.insert(layout.slot_of(hash).index as u32);
            let bitmap = Bitmap::from_positions(*layout, slots, Self::STRUCT_BYTES, limit)?;
            self.state = State::Estimating(bitmap.with_floor(members.len() as u32 + 1));
        }
        Ok(true)
    }

    /// Adds items; tells `touched` for each what [`Self::touch_hashed`] would return. Faster than one by one when all
    /// slots are held, because reads of memory overlap.
    ///
    /// # Errors
    /// Those of [`Self::touch_hashed`], at the first item that has one: those before it are in, and `touched` was called.
    pub(super) fn touch_all<'a>(
        &mut self,
        mut items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut touched: impl FnMut(Touch),
    ) -> Result<(), Error> {
        while self.representation() != Representation::Dense {
            let Some(item) = items.next() else { return Ok(()) };
            touched(self.touch_hashed(item, hash64(item, self.plan.params.seed), limit)?);
        }
        let (seed, layout) = (self.plan.params.seed, self.plan.layout);
        match &mut self.state {
            State::Exact(_) => {}
            State::Estimating(bitmap) => {
                if let Some(dense) = bitmap.dense_mut() {
                    let touch = |dense: &mut Dense, slot| if dense.insert(slot) { Touch::New } else { Touch::Same };
                    if in_blocks(dense, items, layout, seed, Dense::prefetch, touch, touched) {
                        dense.forget_estimate();
                    }
                }
            }
            State::Windowed(dated) => {
                if let Some((cells, tag)) = dated.cells_mut() {
                    let touch = |cells: &mut DatedCells, slot| Touch::over(cells.replace(slot, tag), tag);
                    if in_blocks(cells, items, layout, seed, DatedCells::prefetch, touch, touched) {
                        dated.forget_estimate();
                    }
                }
            }
        }
        Ok(())
    }

    /// Number of distinct members: exact while exact, else the estimate, rounded. It never falls when members are added.
    pub fn count(&self) -> u64 {
        if let State::Exact(members) = &self.state {
            return members.len() as u64;
        }
        // Estimates are finite and far below 2^53.
        libm::round(self.estimate()) as u64
    }

    /// Number of distinct members, not rounded: the most likely one, but at least one more than the last exact count.
    pub fn estimate(&self) -> f64 {
        match &self.state {
            State::Exact(members) => members.len() as f64,
            State::Estimating(bitmap) => bitmap.estimate(),
            State::Windowed(dated) => dated.estimate(self.layout()),
        }
    }

    /// How many members it is known to have: the count while exact, then one more than the last exact count, of all
    /// counters that were merged the largest. Windowed counters keep none.
    pub(crate) fn floor(&self) -> u32 {
        match &self.state {
            State::Exact(members) => members.len() as u32,
            State::Estimating(bitmap) => bitmap.floor(),
            State::Windowed(_) => 0,
        }
    }

    /// The standard error of [`Self::count`], relative to it; 0 while exact, and of none.
    pub fn standard_error(&self) -> f64 {
        self.estimated().relative_error()
    }

    /// The estimate, and the standard error of the count.
    pub(super) fn estimated(&self) -> Estimated {
        let estimate = self.estimate();
        if self.is_exact() {
            return Estimated { estimate, standard_error: 0.0 };
        }
        Estimated::of(self.layout(), estimate)
    }

    /// Is the count exact?
    pub fn is_exact(&self) -> bool {
        match &self.state {
            State::Exact(_) => true,
            State::Estimating(_) => false,
            State::Windowed(dated) => matches!(dated.seen(), Seen::Exact(_)),
        }
    }

    /// How it holds its set.
    pub fn representation(&self) -> Representation {
        match &self.state {
            State::Exact(_) => Representation::Exact,
            State::Estimating(bitmap) => match bitmap.bits() {
                Bits::Sparse(_) => Representation::Sparse,
                Bits::Dense(_) => Representation::Dense,
            },
            State::Windowed(dated) => match dated.seen() {
                Seen::Exact(_) => Representation::Exact,
                Seen::Sparse(_) => Representation::Sparse,
                Seen::Dense(_) => Representation::Dense,
            },
        }
    }

    /// The members, in the order they were added.
    ///
    /// # Errors
    /// [`Error::NotExact`] once it estimates.
    pub fn members(&self) -> Result<listing::Iter<'_>, Error> {
        match &self.state {
            State::Exact(members) => Ok(listing::Iter::plain(members.iter())),
            State::Windowed(_) => self.members_since(self.oldest_alive(Time::Reached)),
            State::Estimating(_) => Err(self.not_exact()),
        }
    }

    /// The error of an estimate that is asked for members.
    pub(super) fn not_exact(&self) -> Error {
        let &Params { exact_limit, exact_bytes, .. } = self.params();
        Error::NotExact { exact_limit, exact_bytes }
    }

    /// Its parameters. [A merge](crate::live::Live::merge) may change capacity and error rate.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let counter = Counter::new(params)?;
    /// assert_eq!(counter.params(), &params);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn params(&self) -> &Params {
        &self.plan.params
    }

    /// Bits of the bitmap, whether or not it has one yet. An eighth of them, in bytes, is what a counter takes at its
    /// largest beside its struct, once it estimates.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let counter = Counter::new(params)?;
    /// let expected_bytes = counter.num_bits() / 8;
    /// assert!((1_000..10_000).contains(&expected_bytes));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn num_bits(&self) -> u64 {
        self.layout().num_bits()
    }

    /// Bits set; 0 while exact.
    pub fn set_bits(&self) -> u64 {
        match &self.state {
            State::Exact(_) => 0,
            State::Estimating(bitmap) => bitmap.set_bits(),
            State::Windowed(dated) => dated.set_bits(self.layout()),
        }
    }

    /// Bytes of memory it takes in all.
    pub fn size_bytes(&self) -> u64 {
        let mut bytes = Self::STRUCT_BYTES;
        self.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let state = match &self.state {
            State::Exact(members) => State::Exact(members.try_clone(self.params().seed)?),
            State::Estimating(bitmap) => State::Estimating(bitmap.try_clone()?),
            State::Windowed(dated) => State::Windowed(Box::new(dated.try_clone(self.params().seed)?)),
        };
        Ok(Counter { plan: self.plan.clone(), state })
    }
}

impl OnHeap for Counter {
    fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        crate::shared::own_layout(&self.plan).into_iter().for_each(&mut *visit);
        match &self.state {
            State::Exact(members) => members.heap_layouts(visit),
            State::Estimating(bitmap) => bitmap.heap_layouts(visit),
            State::Windowed(dated) => dated.heap_layouts(visit),
        }
    }

    fn num_bytes(&self) -> u64 {
        Self::STRUCT_BYTES
            + match &self.state {
                State::Exact(members) => members.heap_bytes(),
                State::Estimating(bitmap) => bitmap.num_bytes(),
                State::Windowed(dated) => Dated::STRUCT_BYTES + dated.num_bytes(self.layout()),
            }
    }

    /// The members or the words of a dense bitmap. What a sparse one has is left where it is.
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        match (index, &mut self.state) {
            (0, State::Exact(members)) => members.relocate(mover),
            (0, State::Estimating(bitmap)) => bitmap.relocate(|words| mover.relocate(words)),
            (0, State::Windowed(dated)) => dated.relocate(mover),
            _ => return false,
        }
        true
    }
}

/// The shape of a counter's bitmap: chosen elsewhere, and told there.
pub trait Shaped: Sized {
    /// An empty counter with a bitmap of this layout. It allocates nothing large.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is.
    fn with_layout(params: Params, layout: Layout) -> Result<Self, Error>;

    /// The shape of its bitmap, whether or not it has one yet.
    fn layout(&self) -> Layout;
}

impl Shaped for Counter {
    fn with_layout(params: Params, layout: Layout) -> Result<Self, Error> {
        params.validate()?;
        let state =
            if params.exact_limit > 0 { State::Exact(Members::new()) } else { State::Estimating(Bitmap::new(layout)) };
        Ok(Self::from_state(params, layout, 0, state))
    }

    #[inline]
    fn layout(&self) -> Layout {
        self.plan.layout
    }
}

/// Touches the slots of items, a block at a time, whose reads overlap. Neither grows nor fails. True when any was free.
#[inline(always)]
fn in_blocks<'a, S>(
    held: &mut S,
    mut items: impl Iterator<Item = &'a [u8]>,
    layout: Layout,
    seed: u64,
    prefetch: impl Fn(&S, Slot),
    touch: impl Fn(&mut S, Slot) -> Touch,
    mut touched: impl FnMut(Touch),
) -> bool {
    let mut changed = false;
    let mut block = [Slot { index: 0, segment: 0 }; BATCH];
    loop {
        let mut len = 0;
        for (slot, item) in block.iter_mut().zip(items.by_ref()) {
            *slot = layout.slot_of(hash64(item, seed));
            prefetch(held, *slot);
            len += 1;
        }
        for &slot in &block[..len] {
            let touch = touch(held, slot);
            changed |= touch == Touch::New;
            touched(touch);
        }
        if len < BATCH {
            return changed;
        }
    }
}

/// The slots that members fall in.
fn slots_of(members: &Members, seed: u64, layout: Layout) -> RoaringBitmap {
    members.hashed(seed).map(|(hash, _)| layout.slot_of(hash).index as u32).collect()
}

#[cfg(test)]
pub(super) mod tests;
