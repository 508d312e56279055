//! A counter of distinct members: what the server stores under a key.

use std::alloc;
use std::fmt;

use roaring::RoaringBitmap;

use crate::counting::estimate::{self, KeptEstimate};
use crate::counting::layout::{Layout, Slot};
use crate::counting::members::{self, Members};
use crate::counting::sizing;
use crate::counting::slots::{Bitmap, Bits};
use crate::error::{Error, Parameter};
use crate::hash::hash64;
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

    /// Checks every parameter against its range.
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
        Ok(())
    }

    /// The bitmap that a counter of these parameters is made with, unless it is given another.
    ///
    /// # Errors
    /// Those of [`Self::validate`].
    pub fn layout(&self) -> Result<Layout, Error> {
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

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Representation::Exact => "exact",
            Representation::Sparse => "sparse",
            Representation::Dense => "dense",
        })
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
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is.
    pub fn new(params: Params) -> Result<Self, Error> {
        Self::with_layout(params, params.layout()?)
    }

    /// As [`Self::new`], with a bitmap that was chosen elsewhere, by a counter that this one is to be equal to.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is.
    pub fn with_layout(params: Params, layout: Layout) -> Result<Self, Error> {
        params.validate()?;
        let state =
            if params.exact_limit > 0 { State::Exact(Members::new()) } else { State::Estimating(Bitmap::new(layout)) };
        Ok(Self::from_state(params, layout, 0, state))
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
    /// # Errors
    /// Those of `limit`, [`Error::OutOfMemory`]; nothing was changed then.
    pub fn add(&mut self, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        let hash = hash64(item, self.params.seed);
        let changed = match &mut self.state {
            State::Exact(members) => {
                if members.contains(item, hash) {
                    return Ok(false);
                }
                if members.has_room_for(item, self.params.exact_limit) {
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
    pub fn count(&self) -> u64 {
        // Estimates are finite and far below 2^53.
        libm::round(self.estimate()) as u64
    }

    /// Number of distinct members, not rounded: the most likely one, but at least [`Self::floor`].
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
    pub fn floor(&self) -> u32 {
        match &self.state {
            State::Exact(members) => members.len() as u32,
            State::Estimating(_) => self.floor,
        }
    }

    /// The standard error of [`Self::estimate`], relative to it; 0 while exact.
    pub fn standard_error(&self) -> f64 {
        match &self.state {
            State::Exact(_) => 0.0,
            State::Estimating(_) => estimate::standard_error(self.layout, self.estimate()),
        }
    }

    /// Is the count exact?
    pub fn is_exact(&self) -> bool {
        matches!(self.state, State::Exact(_))
    }

    /// How it holds its set.
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
    /// # Errors
    /// [`Error::NotExact`] once it estimates.
    pub fn members(&self) -> Result<members::Iter<'_>, Error> {
        match &self.state {
            State::Exact(members) => Ok(members.iter()),
            State::Estimating(_) => Err(Error::NotExact),
        }
    }

    /// Its parameters. [`Self::merge`] may change capacity and error rate.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The shape of its bitmap, whether or not it has one yet.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Bits of the bitmap, whether or not it has one yet.
    pub fn num_bits(&self) -> u64 {
        self.layout.num_bits()
    }

    /// Bits set; 0 while exact.
    pub fn set_bits(&self) -> u64 {
        match &self.state {
            State::Exact(_) => 0,
            State::Estimating(bitmap) => bitmap.set_bits(),
        }
    }

    /// Bytes of memory it takes in all.
    pub fn size_bytes(&self) -> u64 {
        let mut bytes = Self::STRUCT_BYTES;
        self.heap_layouts(&mut |layout| bytes += layout.size() as u64);
        bytes
    }

    /// Calls `visit` with the layout of each heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        match &self.state {
            State::Exact(members) => members.heap_layouts(visit),
            State::Estimating(bitmap) => bitmap.heap_layouts(visit),
        }
    }

    /// Lets the server's defragmenter move the words of a dense bitmap: `relocate` gets them and gives
    /// back as many words with the same values. Does nothing to other counters.
    pub fn relocate_dense(&mut self, relocate: impl FnOnce(Box<[u64]>) -> Box<[u64]>) {
        if let State::Estimating(bitmap) = &mut self.state {
            bitmap.relocate(relocate);
        }
    }

    /// A copy.
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

/// The slots that members fall in.
fn slots_of(members: &Members, seed: u64, layout: Layout) -> RoaringBitmap {
    members.hashed(seed).map(|(hash, _)| layout.slot_of(hash).index as u32).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::counting::slots::zeroed_words;
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    /// Parameters that lead to precision and tail bits (11, 8), (13, 10), (14, 10), (15, 11), (12, 11) and (16, 15).
    pub const SIZES: [(u64, f64); 6] =
        [(1000, 0.02), (1000, 0.01), (50_000, 0.01), (50_000, 0.005), (10_000_000, 0.02), (100_000_000, 0.005)];

    /// A counter whose bitmap stays sparse to more than 65,536 members.
    pub const LARGEST: (u64, f64) = (1_000_000_000, 0.001);

    pub fn layout(precision: u32, tail_bits: u32) -> Layout {
        Layout::new(precision, tail_bits).unwrap()
    }

    pub fn params(size: (u64, f64), exact_limit: u32) -> Params {
        Params { capacity: size.0, error_rate: size.1, exact_limit, seed: 0 }
    }

    /// A counter of the items numbered so.
    pub fn counter(params: Params, numbers: impl IntoIterator<Item = u64>) -> Counter {
        let mut counter = Counter::new(params).unwrap();
        add(&mut counter, numbers);
        counter
    }

    pub fn add(counter: &mut Counter, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            counter.add(format!("user:{number}").as_bytes(), &Unlimited).unwrap();
        }
    }

    /// The same bits, held densely.
    pub fn dense(counter: &Counter) -> Counter {
        Counter::from_state(
            counter.params,
            counter.layout,
            counter.floor,
            State::Estimating(Bitmap::from_words(counter.layout, words(counter))),
        )
    }

    /// The bitmap of a counter, whatever it holds.
    pub fn words(counter: &Counter) -> Box<[u64]> {
        let mut words = zeroed_words(counter.layout).unwrap();
        match &counter.state {
            State::Exact(members) => {
                for index in slots_of(members, counter.params.seed, counter.layout) {
                    crate::bits::set(&mut words, index as usize);
                }
            }
            State::Estimating(bitmap) => bitmap.or_into(counter.layout, &mut words),
        }
        words
    }

    #[test]
    fn parameters_outside_their_ranges_are_refused() {
        let good = params((50_000, 0.01), 250);
        let bad = [
            Params { capacity: 0, ..good },
            Params { capacity: Params::MAX_CAPACITY + 1, ..good },
            Params { error_rate: 0.000_999, ..good },
            Params { error_rate: 0.251, ..good },
            Params { error_rate: f64::NAN, ..good },
            Params { exact_limit: 65_537, ..good },
        ];
        for params in bad {
            assert!(matches!(Counter::new(params), Err(Error::OutOfRange { .. })), "{params:?}");
        }
    }

    #[test]
    fn an_empty_counter_is_small() {
        for exact_limit in [0, 250] {
            let counter = counter(params((10_000_000_000, 0.001), exact_limit), []);
            assert!(counter.size_bytes() < 200, "{} bytes", counter.size_bytes());
            assert_eq!(counter.size_bytes(), Counter::STRUCT_BYTES);
            assert_eq!(counter.count(), 0);
            assert_eq!(counter.standard_error(), 0.0);
            assert_eq!(counter.is_exact(), exact_limit > 0);
        }
    }

    #[test]
    fn a_large_counter_of_few_members_is_small() {
        let counter = counter(params((10_000_000, 0.01), 250), 0..1000);
        assert_eq!(counter.representation(), Representation::Sparse);
        assert_eq!(counter.layout(), layout(14, 13));
        assert!(counter.size_bytes() < 8 * 1024, "{} bytes", counter.size_bytes());
    }

    #[test]
    fn a_seeded_run_is_pinned() {
        // Set bits, estimate and XXH3-64 of the bitmap, from a program of its own.
        let runs = [
            (11, 0, 1000, 840, "976.831421", 0x6141_8437_06a6_1012),
            (14, 0, 1000, 972, "1000.755289", 0x16fa_fb13_7f16_7f94),
            (14, 7, 50_000, 16_645, "49634.891435", 0x3518_b7f1_b145_1493),
            (11, 0, 100_000, 7_061, "98221.212506", 0xeb8e_db18_4f02_f32c),
            (18, 1, 20_000, 19_200, "19937.366792", 0xc9ba_3f3e_82b1_23b9_u64),
        ];
        for (precision, seed, items, set_bits, estimate, hash) in runs {
            let params = Params { seed, ..params(SIZES[0], 250) };
            let mut counter = Counter::with_layout(params, layout(precision, 10)).unwrap();
            add(&mut counter, 1..=items);
            assert_eq!(counter.set_bits(), set_bits);
            assert_eq!(format!("{:.6}", counter.estimate()), estimate);
            assert_eq!(hash64(bytemuck::cast_slice(&words(&counter)), 0), hash);
        }
    }

    #[test]
    fn representations_follow_each_other() {
        let mut counter = Counter::new(params((50_000, 0.01), 250)).unwrap();
        let mut seen = vec![];
        for number in 0..2000u64 {
            if seen.last().is_none_or(|(_, last)| *last != counter.representation().to_string()) {
                seen.push((number, counter.representation().to_string()));
            }
            counter.add(format!("user:{number}").as_bytes(), &Unlimited).unwrap();
        }
        let names: Vec<_> = seen.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["exact", "sparse", "dense"]);
        assert_eq!(seen[1].0, 251);
    }

    #[test]
    fn members_are_listed_until_it_estimates() {
        let mut counter = counter(params((50_000, 0.01), 3), [1, 2, 1, 3]);
        let listed: Vec<_> = counter.members().unwrap().collect();
        assert_eq!(listed, [b"user:1", b"user:2", b"user:3"]);
        assert!(!counter.add(b"user:3", &Unlimited).unwrap());
        assert!(counter.add(b"user:4", &Unlimited).unwrap());
        assert_eq!(counter.members().err(), Some(Error::NotExact));
        assert_eq!((counter.count(), counter.set_bits()), (4, 4));
    }

    #[test]
    fn a_long_member_ends_exactness() {
        let mut counter = Counter::new(params((50_000, 0.01), 250)).unwrap();
        assert!(counter.add(&vec![0; members::MAX_MEMBER_BYTES], &Unlimited).unwrap());
        assert!(counter.is_exact());
        assert!(counter.add(b"x", &Unlimited).unwrap());
        assert!(!counter.is_exact());
        assert!(!counter.add(b"x", &Unlimited).unwrap());
        assert_eq!(counter.count(), 2);
    }

    #[test]
    fn adding_over_the_limit_changes_nothing() {
        for bytes in [Counter::STRUCT_BYTES, 400, 1000, 4000, 4608] {
            let limit = MaxBytes(bytes);
            let mut counter = Counter::new(params((50_000, 0.01), 20)).unwrap();
            let items: Vec<_> = (0..3000).map(|number| format!("user:{number}")).collect();
            let mut added = vec![];
            let refused = counter.add_all(items.iter().map(String::as_bytes), &limit, |new| added.push(new));
            assert!(matches!(refused, Err(Error::TooLarge { .. })), "{bytes}");
            let mut same = Counter::new(params((50_000, 0.01), 20)).unwrap();
            for (item, added) in items.iter().zip(&added) {
                assert_eq!(same.add(item.as_bytes(), &Unlimited).unwrap(), *added);
            }
            assert_eq!((words(&counter), counter.representation()), (words(&same), same.representation()));
            // A new slot is refused again, a known item is not.
            assert!(matches!(counter.add(items[added.len()].as_bytes(), &limit), Err(Error::TooLarge { .. })));
            assert!(added.is_empty() || !counter.add(items[0].as_bytes(), &limit).unwrap());
        }
    }

    #[test]
    fn relocation_keeps_the_bits() {
        let mut counter = counter(params((50_000, 0.01), 0), 0..5000);
        let before = (counter.count(), words(&counter));
        counter.relocate_dense(|words| words.to_vec().into_boxed_slice());
        assert_eq!((counter.count(), words(&counter)), before);
    }

    #[test]
    fn sizes_are_the_sum_of_the_allocations() {
        for items in [0, 10, 300, 5000] {
            let counter = counter(params((50_000, 0.01), 250), 0..items);
            let mut bytes = size_of::<Counter>();
            counter.heap_layouts(&mut |layout| bytes += layout.size());
            assert_eq!(counter.size_bytes(), bytes as u64);
        }
    }

    proptest! {
        #[test]
        fn adding_in_any_order_and_any_batches_is_the_same(
            numbers in vec(0u64..4000, 0..1500),
            size in 0..SIZES.len(),
            exact_limit in 0u32..200,
            batch in 1usize..100,
        ) {
            let params = params(SIZES[size], exact_limit);
            let one_by_one = counter(params, numbers.iter().copied());
            let mut backwards = Counter::new(params).unwrap();
            let mut changed = 0;
            let items: Vec<_> = numbers.iter().rev().map(|number| format!("user:{number}")).collect();
            for items in items.chunks(batch) {
                let mut added = vec![];
                backwards.add_all(items.iter().map(String::as_bytes), &Unlimited, |new| added.push(new)).unwrap();
                prop_assert_eq!(added.len(), items.len());
                changed += added.iter().filter(|&&added| added).count() as u64;
            }
            prop_assert_eq!(words(&one_by_one), words(&backwards));
            prop_assert_eq!(one_by_one.representation(), backwards.representation());
            prop_assert_eq!(one_by_one.floor(), backwards.floor());
            prop_assert_eq!(one_by_one.count(), backwards.count());
            if backwards.is_exact() {
                prop_assert_eq!(changed, backwards.count());
            }
        }

        #[test]
        fn the_count_never_falls_by_an_addition(
            seed in any::<u64>(),
            size in 0..SIZES.len(),
            exact_limit in prop_oneof![Just(0u32), 0u32..400],
            batch in 1usize..40,
            long in prop::option::of(0usize..300),
        ) {
            let mut one_by_one = Counter::new(Params { seed, ..params(SIZES[size], exact_limit) }).unwrap();
            let mut in_lists = one_by_one.try_clone().unwrap();
            let mut items: Vec<_> = (0..1200).map(|number| format!("user:{number}").into_bytes()).collect();
            if let Some(at) = long {
                // One that ends exactness by its length.
                items[at] = vec![b'x'; members::MAX_MEMBER_BYTES + 1];
            }
            for (known, item) in items.iter().enumerate() {
                let (before, was_exact) = (one_by_one.estimate(), one_by_one.is_exact());
                one_by_one.add(item, &Unlimited).unwrap();
                prop_assert!(one_by_one.estimate() >= before);
                if was_exact && !one_by_one.is_exact() {
                    prop_assert_eq!(u64::from(one_by_one.floor()), known as u64 + 1);
                    prop_assert!(one_by_one.count() > known as u64);
                }
            }
            for items in items.chunks(batch) {
                let before = in_lists.count();
                in_lists.add_all(items.iter().map(Vec::as_slice), &Unlimited, |_| ()).unwrap();
                prop_assert!(in_lists.count() >= before);
            }
            prop_assert_eq!((in_lists.floor(), in_lists.estimate()), (one_by_one.floor(), one_by_one.estimate()));
            prop_assert!(u64::from(in_lists.floor()) <= u64::from(exact_limit) + 1);
        }

        #[test]
        fn representations_hold_the_same_bits(numbers in btree_set(any::<u64>(), 0..600), size in 0..SIZES.len()) {
            let exact = counter(params(SIZES[size], 1000), numbers.iter().copied());
            let estimating = counter(params(SIZES[size], 0), numbers.iter().copied());
            prop_assert!(exact.is_exact() && !estimating.is_exact());
            prop_assert_eq!(exact.count(), numbers.len() as u64);
            prop_assert_eq!(words(&exact), words(&estimating));
            let dense = dense(&estimating);
            prop_assert_eq!(dense.set_bits(), estimating.set_bits());
            prop_assert_eq!(dense.estimate(), estimating.estimate());
            prop_assert_eq!(dense.standard_error(), estimating.standard_error());
        }

        #[test]
        fn adding_again_changes_nothing(numbers in vec(0u64..2000, 0..1000), exact_limit in 0u32..300) {
            let mut counter = counter(params(SIZES[2], exact_limit), numbers.iter().copied());
            let before = (words(&counter), counter.estimate());
            for number in numbers {
                let changed = counter.add(format!("user:{number}").as_bytes(), &Unlimited).unwrap();
                prop_assert!(!changed);
            }
            prop_assert_eq!((words(&counter), counter.estimate()), before);
        }
    }
}
