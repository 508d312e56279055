//! Chains of sub-filters, whatever the layout of their bits: an item is looked for in all of them and added to the
//! newest, which is followed by a new one once it is full.

use std::alloc::Layout;
use std::fmt;

use super::bitmap::Line;
use super::params::Params;
use crate::error::{Error, Parameter};
use crate::hash::Hash128;
use crate::size_limit::{SizeLimit, held_bytes, try_reserve, try_with_capacity};

/// Hashes that are handled together: one bit each in a `u32`, and about as many cache misses as a core has in flight.
pub(super) const CHUNK: usize = 32;

/// Most sub-filters a filter grows to. Each is asked for each item, so a chain of many is slow and growing one takes
/// time by the square of their number. Chains that grow by 2 or more end at 64, where numbers end.
pub(super) const MAX_SUB_FILTERS: usize = 1024;

/// Keeps other crates from implementing [`SubFilter`].
pub trait Sealed {}

/// One filter of a chain: what the two layouts do differently. There are no others.
///
/// Where a method takes `pending`, the hashes are at most 32, and those are meant that have their bit set in it.
pub trait SubFilter: Sealed + fmt::Debug + PartialEq + Sized + Send + 'static {
    /// What a chain of them is made with, and how it grows.
    type Rules: fmt::Debug + Copy + PartialEq;

    /// The parameters among the rules.
    fn params(rules: &Self::Rules) -> &Params;
    /// The hash of an item.
    fn hash(item: &[u8], seed: u64) -> Hash128;
    /// The sub-filter that follows these, for which `limit` is asked; `held_bytes` are those of the chain without it.
    fn next(
        rules: &Self::Rules,
        sub_filters: &[Self],
        held_bytes: u64,
        limit: &(impl SizeLimit + ?Sized),
    ) -> Result<Self, Error>;
    /// An empty one of the same sizes.
    fn empty_twin(&self, held_bytes: u64, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error>;
    /// An equal one.
    fn try_clone(&self) -> Result<Self, Error>;
    /// Bytes as `INFO` tells them: of the chain itself, and of a sub-filter.
    const CHAIN_BYTES: u64;
    /// As [`Self::CHAIN_BYTES`], of this one.
    fn size_bytes(&self) -> u64;

    /// How many items it is made for.
    fn capacity(&self) -> u64;
    /// How many items it counts.
    fn num_items(&self) -> u64;
    /// For loading and unions: how many items the bits stand for.
    fn set_num_items(&mut self, num_items: u64) -> Result<(), Error>;
    /// Bits in all.
    fn num_bits(&self) -> u64;
    /// How many bits are set.
    fn set_bits(&self) -> u64;
    /// The bitmap.
    fn as_bytes(&self) -> &[u8];
    /// For loading: writes bytes of the bitmap of which no bit is set yet.
    fn append_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Whether the item of this hash may have been inserted.
    fn may_contain(&self, hash: Hash128) -> bool;
    /// Inserts the item of this hash; tells whether that set a bit.
    fn insert(&mut self, hash: Hash128) -> bool;
    /// Which of the hashes may have been inserted. Looks after its cache misses itself.
    fn look_up_chunk(&self, hashes: &[Hash128], pending: u32) -> u32;
    /// Inserts the hashes in order; returns those that set a bit. Looks after its cache misses itself.
    fn insert_chunk(&mut self, hashes: &[Hash128], pending: u32) -> u32;
    /// Whether each of the hashes may have been inserted.
    fn look_up_all(&self, hashes: impl Iterator<Item = Hash128>, found: &mut impl FnMut(bool));
    /// Inserts the hashes in order; whether each set a bit.
    fn insert_all(&mut self, hashes: impl Iterator<Item = Hash128>, added: &mut impl FnMut(bool));

    /// Whether any of these may contain the item of this hash.
    fn look_up(sub_filters: &[Self], hash: Hash128) -> bool {
        // Newest first: it is the largest, so it most likely has what is there.
        sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash))
    }
    /// Which of at most 32 hashes any of these may contain. It is faster if most of them are what is expected.
    fn look_up_chunk_in(sub_filters: &[Self], hashes: &[Hash128], _expected: Expected) -> u32 {
        let (all, mut found) = (first_marks(hashes.len()), 0);
        for sub_filter in sub_filters.iter().rev() {
            let pending = all & !found;
            if pending == 0 {
                break;
            }
            found |= sub_filter.look_up_chunk(hashes, pending);
        }
        found
    }

    /// Whether the bits of both mean the same items.
    fn check_mergeable(&self, other: &Self) -> Result<(), Error>;
    /// Has the bits of both afterwards; tells whether that set a bit.
    fn union_with(&mut self, other: &Self) -> bool;
    /// How many bits the union with mergeable `others` has set.
    fn count_union<'a>(&'a self, others: impl Iterator<Item = &'a Self> + Clone) -> u64;
    /// The number of items most likely to have set so many bits.
    fn estimate_items(&self, set_bits: u64) -> f64;
    /// The estimated share of the items it does not hold for which it errs when it holds so many.
    fn rate_at(&self, num_items: u64) -> f64;

    /// Empties it, in place.
    fn clear(&mut self);
    /// Lets `f` move the bitmap to another place in memory.
    fn relocate(&mut self, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>);
    /// Calls `visit` with the layout of every heap allocation it owns.
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout));
}

/// What most items of a chunk are expected to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// Not there.
    Absent,
    /// There.
    Present,
}

/// Whether a sub-filter of so many bits can count so many items: each has set one at least.
///
/// # Errors
/// [`Error::Corrupt`].
pub(super) fn check_items(num_items: u64, num_bits: u64) -> Result<(), Error> {
    if num_items > num_bits {
        return Err(Error::corrupt("num_items", format_args!("at most {num_bits}, one a bit"), num_items));
    }
    Ok(())
}

/// A Bloom filter that grows: sub-filters, of which the newest takes what is added. It holds an item if any of them does.
/// There are two: `LineFilter` and `ClassicFilter`.
///
/// Invariants: at least one sub-filter, and one only if it does not scale; all but the newest are full.
#[derive(Debug, PartialEq)]
pub struct Chain<S: SubFilter> {
    rules: S::Rules,
    pub(super) sub_filters: Vec<S>,
}

impl<S: SubFilter> Chain<S> {
    /// A chain of these sub-filters, oldest first.
    pub(super) fn of(rules: S::Rules, sub_filters: Vec<S>) -> Self {
        Chain { rules, sub_filters }
    }

    /// What it is made with.
    pub(super) fn rules(&self) -> &S::Rules {
        &self.rules
    }

    /// An equal filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut sub_filters = try_with_capacity(self.sub_filters.len())?;
        for sub_filter in &self.sub_filters {
            sub_filters.push(sub_filter.try_clone()?);
        }
        Ok(Chain { rules: self.rules, sub_filters })
    }

    /// An empty filter of the same parameters, in new memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and what `limit` says.
    pub fn empty_twin(&self, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        let mut sub_filters = try_with_capacity(1)?;
        if let Some(first) = self.sub_filters.first() {
            sub_filters.push(first.empty_twin(size_of::<Self>() as u64, limit)?);
        }
        Ok(Chain { rules: self.rules, sub_filters })
    }

    /// Adds an item. Tells whether it was new; `false` means that the filter already answered that it may contain it.
    ///
    /// # Errors
    /// For a new item that finds the filter full: [`Error::Full`] if it does not scale, else what
    /// keeps it from growing ([`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::OutOfRange`]). Nothing is changed then.
    #[inline]
    pub fn add(&mut self, item: &[u8], limit: &(impl SizeLimit + ?Sized)) -> Result<bool, Error> {
        let hash = self.hash(item);
        let is_full = self.room() == 0;
        // The newest one sees by itself whether it has the item, and a full one even then takes no new one.
        if (is_full || self.sub_filters.len() > 1) && S::look_up(&self.sub_filters, hash) {
            return Ok(false);
        }
        if is_full {
            self.grow(limit)?;
        }
        Ok(self.sub_filters.last_mut().is_some_and(|newest| newest.insert(hash)))
    }

    /// Adds items, with the same outcome as [`Self::add`] for one after another, but faster
    /// for many: their cache misses overlap. Tells `added` of each whether it was new.
    ///
    /// # Errors
    /// As [`Self::add`]. The items before the one that failed are in, and `added` was told of them.
    pub fn add_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &(impl SizeLimit + ?Sized),
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let mut hashes = hashes_of::<S>(items, self.params().seed);
        // While there is one sub-filter, it is told of as many as fit even if all are new.
        while self.sub_filters.len() == 1 && self.room() > 0 {
            let mut fitting = usize::try_from(self.room()).unwrap_or(usize::MAX);
            if let Some(only) = self.sub_filters.last_mut() {
                only.insert_all(hashes.up_to(&mut fitting), &mut added);
            }
            if fitting > 0 {
                return Ok(());
            }
        }
        while let Some((chunk, len)) = next_chunk(&mut hashes) {
            let (chunk, result) = self.add_chunk(&chunk[..len], limit);
            (0..chunk.handled).for_each(|i| added(chunk.new >> i & 1 == 1));
            result?;
        }
        Ok(())
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    #[inline]
    pub fn may_contain(&self, item: &[u8]) -> bool {
        S::look_up(&self.sub_filters, self.hash(item))
    }

    /// [`Self::may_contain`] for many items, faster than one after another. Tells `found` the answers.
    pub fn may_contain_all<'a>(&self, items: impl IntoIterator<Item = &'a [u8]>, mut found: impl FnMut(bool)) {
        let mut hashes = hashes_of::<S>(items, self.params().seed);
        if let [only] = self.sub_filters.as_slice() {
            return only.look_up_all(hashes, &mut found);
        }
        let mut expected = Expected::Absent;
        while let Some((chunk, len)) = next_chunk(&mut hashes) {
            let marks = self.look_up_chunk(&chunk[..len], expected);
            // The next ones are most likely like these.
            expected = if marks.count_ones() as usize > len / 2 { Expected::Present } else { Expected::Absent };
            (0..len).for_each(|i| found(marks >> i & 1 == 1));
        }
    }

    /// The parameters it was made with. Of a filter of RedisBloom's layout, as far as RedisBloom keeps them: the rate
    /// asked for follows from that of the first sub-filter, and so does the capacity; the seed is 0.
    pub fn params(&self) -> &Params {
        S::params(&self.rules)
    }

    /// Its sub-filters, oldest first.
    pub fn sub_filters(&self) -> &[S] {
        &self.sub_filters
    }

    /// Its sub-filters, to relocate them, which leaves bits and numbers as they are, or to write over their bits, which
    /// forgets items only where RedisBloom did.
    pub(crate) fn sub_filters_mut(&mut self) -> &mut [S] {
        &mut self.sub_filters
    }

    /// How many of the items added were new; after a merge an estimate.
    pub fn num_items(&self) -> u64 {
        self.sub_filters.iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.num_items()))
    }

    /// Whether nothing was ever added, so that clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self.sub_filters.as_slice(), [only] if only.num_items() == 0 && only.set_bits() == 0)
    }

    /// How many items its sub-filters are made for.
    pub fn capacity(&self) -> u64 {
        self.sub_filters.iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.capacity()))
    }

    /// How many items can be added before it has to grow, or refuses them: so many at least, for known ones take no room.
    #[inline]
    pub fn room(&self) -> u64 {
        self.sub_filters.last().map_or(0, |newest| newest.capacity().saturating_sub(newest.num_items()))
    }

    /// Bytes of all bitmaps and structs; of a filter of RedisBloom's layout as RedisBloom's `BF.INFO` counts them.
    pub fn size_bytes(&self) -> u64 {
        S::CHAIN_BYTES + self.sub_filters.iter().map(S::size_bytes).sum::<u64>()
    }

    /// The share of its bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        let (set, all) = self.sub_filters.iter().fold((0.0, 0.0), |(set, all), sub_filter| {
            (set + sub_filter.set_bits() as f64, all + sub_filter.num_bits() as f64)
        });
        set / all
    }

    /// The estimated share of the items it does not hold for which it errs now.
    pub fn false_positive_rate(&self) -> f64 {
        chain_rate(self.sub_filters.iter().map(|sub_filter| sub_filter.rate_at(sub_filter.num_items())))
    }

    /// Empties it: one sub-filter as when it was new, and the same parameters.
    pub fn clear(&mut self) {
        self.sub_filters.truncate(1);
        self.sub_filters.shrink_to_fit();
        self.sub_filters.iter_mut().for_each(S::clear);
    }

    /// Whether `other` could be merged into this filter, but for the error rate that would result.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs.
    pub fn check_mergeable(&self, other: &Self) -> Result<(), Error> {
        let (ours, theirs) = (self.params(), other.params());
        if ours.capacity != theirs.capacity {
            return Err(Error::incompatible(Parameter::Capacity, ours.capacity, theirs.capacity));
        }
        if ours.error_rate != theirs.error_rate {
            return Err(Error::incompatible(Parameter::ErrorRate, ours.error_rate, theirs.error_rate));
        }
        if ours.expansion != theirs.expansion {
            return Err(Error::incompatible(Parameter::Expansion, ours.expansion, theirs.expansion));
        }
        if ours.seed != theirs.seed {
            return Err(Error::incompatible(Parameter::Seed, ours.seed, theirs.seed));
        }
        if self.sub_filters.len() != other.sub_filters.len() {
            return Err(Error::incompatible(Parameter::SubFilters, self.sub_filters.len(), other.sub_filters.len()));
        }
        // Filters from elsewhere need not have the sizes that follow from their parameters.
        self.sub_filters.iter().zip(&other.sub_filters).try_for_each(|(ours, theirs)| ours.check_mergeable(theirs))
    }

    /// Becomes the union of itself and `others`: contains what any of them contained. Tells whether
    /// that set a bit; if not, nothing at all was changed.
    ///
    /// The number of items of a sub-filter is then the estimate from its bits, within what is
    /// certain: no fewer than each of the filters merged had, no more than all together.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs, [`Error::RateExceeded`] when the union would err
    /// more often than the error rate asked for. Nothing is changed then.
    pub fn merge(&mut self, others: &[&Self]) -> Result<bool, Error> {
        for other in others {
            self.check_mergeable(other)?;
        }
        let Some(unions) = self.plan_union(others)? else { return Ok(false) };
        for (index, (ours, num_items)) in self.sub_filters.iter_mut().zip(unions).enumerate() {
            for other in others {
                ours.union_with(&other.sub_filters[index]);
            }
            ours.set_num_items(num_items)?;
        }
        Ok(true)
    }

    /// Calls `visit` with the layout of every heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[S]>(&self.sub_filters));
        self.sub_filters.iter().for_each(|sub_filter| sub_filter.heap_layouts(visit));
    }

    #[inline(always)]
    fn hash(&self, item: &[u8]) -> Hash128 {
        S::hash(item, self.params().seed)
    }

    /// Which of at most [`CHUNK`] hashes may have been added.
    fn look_up_chunk(&self, hashes: &[Hash128], expected: Expected) -> u32 {
        match hashes {
            [hash] => u32::from(S::look_up(&self.sub_filters, *hash)),
            _ => S::look_up_chunk_in(&self.sub_filters, hashes, expected),
        }
    }

    /// Appends the next sub-filter.
    pub(super) fn grow(&mut self, limit: &(impl SizeLimit + ?Sized)) -> Result<(), Error> {
        let len = self.sub_filters.len();
        if len >= MAX_SUB_FILTERS {
            let expected = "at most 1024, as a larger capacity or expansion needs";
            return Err(Error::out_of_range(Parameter::SubFilters, expected, len + 1));
        }
        let held_bytes = held_bytes::<Self>(limit, |visit| self.heap_layouts(visit));
        let sub_filter = S::next(&self.rules, &self.sub_filters, held_bytes, limit)?;
        try_reserve(&mut self.sub_filters, 1)?;
        self.sub_filters.push(sub_filter);
        Ok(())
    }

    /// Adds the items of at most [`CHUNK`] hashes, in order, up to the first that fails.
    fn add_chunk(&mut self, hashes: &[Hash128], limit: &(impl SizeLimit + ?Sized)) -> (Added, Result<(), Error>) {
        // A sub-filter that takes nothing more says of an item what it said before. So only those are asked again that
        // items of this chunk went into.
        let (mut new, mut left) = (0, first_marks(hashes.len()) & !self.look_up_chunk(hashes, Expected::Absent));
        while left != 0 {
            if self.room() == 0
                && let Err(error) = self.grow(limit)
            {
                return (Added { new, handled: left.trailing_zeros() as usize }, Err(error));
            }
            // No more than fit, even if all are new: so there is no need to look at the room after each. A sub-filter that
            // was just made takes one whatever it is made for, as for `add`.
            let fitting = first_marked(left, self.room().max(1));
            left ^= fitting;
            let Some(newest) = self.sub_filters.last_mut() else { break };
            // Items that come twice, or whose bits the ones before them set, are sorted out here.
            new |= newest.insert_chunk(hashes, fitting);
            if newest.num_items() >= newest.capacity() {
                left &= !newest.look_up_chunk(hashes, left);
            }
        }
        (Added { new, handled: hashes.len() }, Ok(()))
    }

    /// What a union with mergeable filters would be: the number of items of each sub-filter, estimated from its bits
    /// within what is certain. `None` when it would have no bit that this one has not.
    ///
    /// # Errors
    /// [`Error::RateExceeded`] when it would err more often than was asked for.
    fn plan_union(&self, others: &[&Self]) -> Result<Option<Vec<u64>>, Error> {
        // From reading alone: the bitmaps are not held twice.
        let mut unions = try_with_capacity(self.sub_filters.len())?;
        let mut changed = false;
        for (index, ours) in self.sub_filters.iter().enumerate() {
            let theirs = others.iter().map(|other| &other.sub_filters[index]);
            let set_bits = ours.count_union(theirs.clone());
            if set_bits == ours.set_bits() {
                unions.push(ours.num_items());
                continue;
            }
            changed = true;
            let (most, sum) = theirs.fold((ours.num_items(), ours.num_items()), |(most, sum), their| {
                (most.max(their.num_items()), sum.saturating_add(their.num_items()))
            });
            let estimate = libm::round(ours.estimate_items(set_bits)) as u64;
            unions.push(estimate.clamp(most, sum).min(ours.num_bits()));
        }
        if !changed {
            return Ok(None);
        }
        let rates = self.sub_filters.iter().zip(&unions);
        let would_be = chain_rate(rates.map(|(ours, &num_items)| ours.rate_at(num_items)));
        let asked = self.params().error_rate;
        if would_be > asked {
            return Err(Error::RateExceeded { would_be, asked });
        }
        Ok(Some(unions))
    }
}

/// Chance that any of several filters errs, from the chance of each.
fn chain_rate(rates: impl Iterator<Item = f64>) -> f64 {
    // In logarithms: 1 - (1 - r) would lose rates below 1e-16.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum())
}

/// How far a chunk was added.
struct Added {
    /// A mark for each item that was new.
    new: u32,
    /// Items handled.
    handled: usize,
}

/// The hashes of items.
///
/// What the loops of a list take them from is always inlined, unlike `map` and `take`: where these are called, they return
/// a hash through memory as two words, which the loops then load as one, and for that a processor has to wait until they
/// are written: a tenth of the time of a list.
struct Hashes<I, H> {
    items: I,
    hash: H,
}

fn hashes_of<'a, S: SubFilter>(
    items: impl IntoIterator<Item = &'a [u8]>,
    seed: u64,
) -> Hashes<impl Iterator<Item = &'a [u8]>, impl Fn(&[u8]) -> Hash128> {
    Hashes { items: items.into_iter().fuse(), hash: move |item: &[u8]| S::hash(item, seed) }
}

impl<'a, I: Iterator<Item = &'a [u8]>, H: Fn(&[u8]) -> Hash128> Hashes<I, H> {
    /// At most `left` of them, which counts down.
    fn up_to<'h>(&'h mut self, left: &'h mut usize) -> UpTo<'h, I, H> {
        UpTo { hashes: self, left }
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>, H: Fn(&[u8]) -> Hash128> Iterator for Hashes<I, H> {
    type Item = Hash128;

    #[inline(always)]
    fn next(&mut self) -> Option<Hash128> {
        let item = self.items.next()?;
        Some((self.hash)(item))
    }
}

struct UpTo<'h, I, H> {
    hashes: &'h mut Hashes<I, H>,
    left: &'h mut usize,
}

impl<'a, I: Iterator<Item = &'a [u8]>, H: Fn(&[u8]) -> Hash128> Iterator for UpTo<'_, I, H> {
    type Item = Hash128;

    #[inline(always)]
    fn next(&mut self) -> Option<Hash128> {
        if *self.left == 0 {
            return None;
        }
        let hash = self.hashes.next()?;
        *self.left -= 1;
        Some(hash)
    }
}

/// The next hashes, as many as a chunk holds, and how many they are; `None` when there are no more.
pub(super) fn next_chunk(hashes: &mut impl Iterator<Item = Hash128>) -> Option<([Hash128; CHUNK], usize)> {
    let mut chunk = [Hash128 { lo: 0, hi: 0 }; CHUNK];
    let len = fill(&mut chunk, hashes);
    (len > 0).then_some((chunk, len))
}

/// Marks for the first `len` of a chunk.
pub(super) fn first_marks(len: usize) -> u32 {
    ((1u64 << len) - 1) as u32
}

/// Takes as many hashes as fit and there are; tells how many.
#[inline(always)]
pub(super) fn fill(chunk: &mut [Hash128], hashes: &mut impl Iterator<Item = Hash128>) -> usize {
    let mut len = 0;
    for (slot, hash) in chunk.iter_mut().zip(hashes) {
        *slot = hash;
        len += 1;
    }
    len
}

/// The positions of the bits set in `marks`, ascending.
#[inline(always)]
pub(super) fn marked(marks: u32) -> Marked {
    Marked(marks)
}

pub(super) struct Marked(u32);

impl Iterator for Marked {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let next = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(next)
    }
}

/// The lowest `count` of the bits set in `marks`.
#[inline(always)]
pub(super) fn first_marked(marks: u32, count: u64) -> u32 {
    if count >= u64::from(u32::BITS) {
        return marks;
    }
    let rest = (0..count).fold(marks, |rest, _| rest & rest.wrapping_sub(1));
    marks ^ rest
}

#[cfg(test)]
mod tests;
