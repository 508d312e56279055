//! A counter of distinct members: what the server stores under a key.

use std::alloc;
use std::fmt;

use roaring::RoaringBitmap;

use crate::counting::estimate::{self, KeptEstimate};
use crate::counting::layout::{Layout, Slot};
use crate::counting::members::{self, Members, Room};
use crate::counting::sizing;
use crate::counting::slots::{Bitmap, Bits};
use crate::error::{Error, Parameter};
use crate::hash::hash64;
use crate::heap::{Mover, OnHeap};
use crate::size_limit::SizeLimit;

/// Items that are hashed before the first of them is set: as many reads of memory as a core keeps under way.
const BATCH: usize = 32;

/// What a counter is asked to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Members up to which the error stays within `error_rate`; `1..=10^10`.
    pub capacity: u64,
    /// The relative standard error up to `capacity`; `0.001..=0.25`.
    pub error_rate: f64,
    /// Members up to which the count is exact and they can be listed; `0..=65536`, 0 for never.
    pub exact_limit: u32,
    /// Bytes that these members may have together; `1..=2^20`. With more it estimates.
    pub exact_bytes: u32,
    /// Seed of the hash. Only counters of one seed can be merged.
    pub seed: u64,
}

impl Params {
    /// Largest capacity.
    pub const MAX_CAPACITY: u64 = 10_000_000_000;
    /// Smallest error rate.
    pub const MIN_ERROR_RATE: f64 = 0.001;
    /// Largest error rate.
    pub const MAX_ERROR_RATE: f64 = 0.25;
    /// Largest exact limit.
    pub const MAX_EXACT_LIMIT: u32 = 65_536;
    /// The exact bytes that make sense for most: 250 members of 65 bytes.
    pub const DEFAULT_EXACT_BYTES: u32 = 16 << 10;
    /// Largest exact bytes.
    pub const MAX_EXACT_BYTES: u32 = 1 << 20;

    /// Checks every parameter against its range.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// assert!(params.validate().is_ok());
    /// assert!(Params { error_rate: 0.5, ..params }.validate().is_err());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] naming the first that is outside.
    pub fn validate(&self) -> Result<(), Error> {
        if !(1..=Self::MAX_CAPACITY).contains(&self.capacity) {
            return Err(Error::out_of_range(Parameter::Capacity, "between 1 and 10000000000", self.capacity));
        }
        // Written so that NaN is refused.
        if !(Self::MIN_ERROR_RATE..=Self::MAX_ERROR_RATE).contains(&self.error_rate) {
            return Err(Error::out_of_range(Parameter::ErrorRate, "between 0.001 and 0.25", self.error_rate));
        }
        if self.exact_limit > Self::MAX_EXACT_LIMIT {
            return Err(Error::out_of_range(Parameter::ExactLimit, "between 0 and 65536", self.exact_limit));
        }
        if !(1..=Self::MAX_EXACT_BYTES).contains(&self.exact_bytes) {
            return Err(Error::out_of_range(Parameter::ExactBytes, "between 1 and 1048576", self.exact_bytes));
        }
        Ok(())
    }

    /// What its members may take while it is exact.
    pub(super) fn room(&self) -> Room {
        Room { members: self.exact_limit, bytes: self.exact_bytes }
    }

    /// Bytes that the payload of an exact counter has at most.
    pub(crate) fn max_exact_payload_bytes(&self) -> u64 {
        self.room().arena_bytes()
    }

    /// The bitmap that a counter of these parameters is made with, unless it is given another.
    ///
    /// # Errors
    /// Those of [`Self::validate`].
    pub(crate) fn layout(&self) -> Result<Layout, Error> {
        self.validate()?;
        sizing::layout(self.error_rate, self.capacity)
    }
}

/// How a counter holds its set at present. It only ever moves on, never back.
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
    params: Params,
    /// What `params` led to when it was made, or a layout that this folds to. Kept, never worked out again.
    layout: Layout,
    /// How many members it certainly has: one more than the last exact count, the largest of those that were merged.
    /// An estimate may lie below what was known. 0 while exact.
    floor: u32,
    state: State,
    /// The estimate, or none when a bit changed since it was last worked out. Unused while exact.
    estimate: KeptEstimate,
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("params", &self.params)
            .field("representation", &self.representation())
            .field("estimate", &self.estimate())
            .finish_non_exhaustive()
    }
}

/// The three representations; sparse and dense are the bitmap's affair.
#[derive(Debug)]
pub(super) enum State {
    /// The members themselves.
    Exact(Members),
    /// Their bits.
    Estimating(Bitmap),
}

impl Counter {
    /// An empty counter; allocates nothing.
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
        Counter { params, layout, floor, state, estimate: KeptEstimate::none() }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// ORs others of which it has the layout into its words, when it is dense; false, and nothing done, when it is not.
    /// `floor` is that of them all.
    pub(super) fn or_dense(&mut self, floor: u32, others: &mut dyn FnMut(Layout, &mut [u64])) -> bool {
        let State::Estimating(bitmap) = &mut self.state else { return false };
        if !bitmap.or_dense(others) {
            return false;
        }
        self.floor = floor;
        self.estimate.forget();
        true
    }

    /// Bytes of the struct itself, which a counter takes whatever it holds.
    pub(super) const STRUCT_BYTES: u64 = size_of::<Counter>() as u64;

    /// Adds `item`; true when that changed the counter: while it is exact, when the item is new; when it
    /// estimates, when its slot was free.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// assert!(counter.add(b"ann", &Unlimited)?);
    /// assert!(!counter.add(b"ann", &Unlimited)?);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`]; nothing was changed then.
    pub fn add(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        let hash = hash64(item, self.params.seed);
        let changed = match &mut self.state {
            State::Exact(members) => {
                if members.contains(item, hash) {
                    return Ok(false);
                }
                if members.has_room_for(item, self.params.room()) {
                    limit.check(Self::STRUCT_BYTES + members.heap_bytes(), Members::bytes_for(item))?;
                    members.insert(item, hash, self.params.seed)?;
                } else {
                    let mut slots = slots_of(members, self.params.seed, self.layout);
                    slots.insert(self.layout.slot_of(hash).index as u32);
                    let bitmap = Bitmap::from_positions(self.layout, slots, Self::STRUCT_BYTES, limit)?;
                    self.floor = members.len() as u32 + 1;
                    self.state = State::Estimating(bitmap);
                }
                true
            }
            State::Estimating(bitmap) => bitmap.insert(self.layout.slot_of(hash), Self::STRUCT_BYTES, limit)?,
        };
        if changed {
            self.estimate.forget();
        }
        Ok(changed)
    }

    /// Adds many items; tells `added` for each what [`Self::add`] would return. Faster than one by
    /// one when the bitmap is dense, because reads of memory overlap.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// let (members, mut new) = (["ann", "ben", "ann"], Vec::new());
    /// counter.add_all(members.iter().map(|member| member.as_bytes()), &Unlimited, |is_new| new.push(is_new))?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::add`], at the first item that has one: those before it are in, and `added` was told.
    pub fn add_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let mut items = items.into_iter();
        while self.representation() != Representation::Dense {
            match items.next() {
                Some(item) => added(self.add(item, limit)?),
                None => return Ok(()),
            }
        }
        self.add_all_dense(items, added);
        Ok(())
    }

    /// The batch path: a dense bitmap neither grows nor fails.
    fn add_all_dense<'a>(&mut self, mut items: impl Iterator<Item = &'a [u8]>, mut added: impl FnMut(bool)) {
        let State::Estimating(bitmap) = &mut self.state else { return };
        let Some(bitmap) = bitmap.dense_mut() else { return };
        let mut changed = false;
        let mut slots = [Slot { index: 0, segment: 0 }; BATCH];
        loop {
            let mut len = 0;
            for (slot, item) in slots.iter_mut().zip(items.by_ref()) {
                *slot = self.layout.slot_of(hash64(item, self.params.seed));
                bitmap.prefetch(*slot);
                len += 1;
            }
            for &slot in &slots[..len] {
                let free = bitmap.insert(slot);
                changed |= free;
                added(free);
            }
            if len < BATCH {
                break;
            }
        }
        if changed {
            self.estimate.forget();
        }
    }

    /// Number of distinct members: exact while exact, else the estimate, rounded. It never falls when members are added.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// for member in 0..10_000u32 {
    ///     counter.add(&member.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert!(counter.count().abs_diff(10_000) < 300);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn count(&self) -> u64 {
        // Estimates are finite and far below 2^53.
        libm::round(self.estimate()) as u64
    }

    /// Number of distinct members, not rounded: the most likely one, but at least one more than the last exact count.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// for member in 0..10_000u32 {
    ///     counter.add(&member.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert_eq!(counter.count(), counter.estimate().round() as u64);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn estimate(&self) -> f64 {
        match &self.state {
            State::Exact(members) => members.len() as f64,
            State::Estimating(bitmap) => {
                let work_out = || estimate::Segments::new(self.layout, &bitmap.counts()).estimate();
                self.estimate.get_or(|| work_out().max(f64::from(self.floor)))
            }
        }
    }

    /// How many members it is known to have: the count while exact, then one more than the last exact count, of all
    /// counters that were merged the largest.
    pub(crate) fn floor(&self) -> u32 {
        match &self.state {
            State::Exact(members) => members.len() as u32,
            State::Estimating(_) => self.floor,
        }
    }

    /// The standard error of [`Self::estimate`], relative to it; 0 while exact.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// assert_eq!(counter.standard_error(), 0.0);
    /// for member in 0..10_000u32 {
    ///     counter.add(&member.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert!(counter.standard_error() > 0.0 && counter.standard_error() < 0.01);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn standard_error(&self) -> f64 {
        match &self.state {
            State::Exact(_) => 0.0,
            State::Estimating(_) => estimate::standard_error(self.layout, self.estimate()),
        }
    }

    /// Is the count exact?
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// assert!(counter.is_exact());
    /// for member in 0..10_000u32 {
    ///     counter.add(&member.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert!(!counter.is_exact());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn is_exact(&self) -> bool {
        matches!(self.state, State::Exact(_))
    }

    /// How it holds its set.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// counter.add(b"ann", &Unlimited)?;
    /// assert_eq!(counter.representation().name(), "exact");
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn representation(&self) -> Representation {
        match &self.state {
            State::Exact(_) => Representation::Exact,
            State::Estimating(bitmap) => match bitmap.bits() {
                Bits::Sparse { .. } => Representation::Sparse,
                Bits::Dense(_) => Representation::Dense,
            },
        }
    }

    /// The members, in the order they were added.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// for member in ["ann", "ben", "ann"] {
    ///     counter.add(member.as_bytes(), &Unlimited)?;
    /// }
    /// assert_eq!(counter.members()?.collect::<Vec<_>>(), [b"ann", b"ben"]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExact`] once it estimates.
    pub fn members(&self) -> Result<members::Iter<'_>, Error> {
        match &self.state {
            State::Exact(members) => Ok(members.iter()),
            State::Estimating(_) => {
                let Params { exact_limit, exact_bytes, .. } = self.params;
                Err(Error::NotExact { exact_limit, exact_bytes })
            }
        }
    }

    /// Its parameters. [`Self::merge`] may change capacity and error rate.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let counter = Counter::new(params)?;
    /// assert_eq!(counter.params(), &params);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn params(&self) -> &Params {
        &self.params
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
        self.layout.num_bits()
    }

    /// Bits set; 0 while exact.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// assert_eq!(counter.set_bits(), 0);
    /// for member in 0..10_000u32 {
    ///     counter.add(&member.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert!(counter.set_bits() > 0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn set_bits(&self) -> u64 {
        match &self.state {
            State::Exact(_) => 0,
            State::Estimating(bitmap) => bitmap.set_bits(),
        }
    }

    /// Bytes of memory it takes in all.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// assert!(counter.size_bytes() < 200);
    /// for member in 0..10_000u32 {
    ///     counter.add(&member.to_le_bytes(), &Unlimited)?;
    /// }
    /// assert!(counter.size_bytes() > counter.num_bits() / 8);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn size_bytes(&self) -> u64 {
        let mut bytes = Self::STRUCT_BYTES;
        self.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// A copy.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    /// let mut counter = Counter::new(params)?;
    /// counter.add(b"ann", &Unlimited)?;
    /// assert_eq!(counter.try_clone()?.count(), 1);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let state = match &self.state {
            State::Exact(members) => State::Exact(members.try_clone(self.params.seed)?),
            State::Estimating(bitmap) => State::Estimating(bitmap.try_clone()?),
        };
        let Counter { params, layout, floor, .. } = *self;
        Ok(Counter { params, layout, floor, state, estimate: self.estimate.clone() })
    }
}

impl OnHeap for Counter {
    fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        match &self.state {
            State::Exact(members) => members.heap_layouts(visit),
            State::Estimating(bitmap) => bitmap.heap_layouts(visit),
        }
    }

    /// Only a dense bitmap is large; other counters have buffers that are left where they are.
    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        if let (0, State::Estimating(bitmap)) = (index, &mut self.state) {
            bitmap.relocate(|words| mover.relocate(words));
        }
        index == 0
    }
}

/// The shape of a counter's bitmap: chosen elsewhere, and told there.
pub trait Shaped: Sized {
    /// An empty counter with a bitmap of this layout; allocates nothing.
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
        self.layout
    }
}

/// The slots that members fall in.
fn slots_of(members: &Members, seed: u64, layout: Layout) -> RoaringBitmap {
    members.hashed(seed).map(|(hash, _)| layout.slot_of(hash).index as u32).collect()
}

#[cfg(test)]
pub(super) mod tests;
