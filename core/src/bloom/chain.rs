//! What chains of sub-filters have in common, whatever the layout of their bits: an item is looked for in all
//! of them and added to the newest, which is followed by a new one once it is full.

use crate::error::{Error, Parameter};
use crate::hash::Hash128;
use crate::size_limit::{SizeLimit, try_reserve};

/// Hashes that are handled together: one bit each in a `u32`, and about as many cache misses as a core has in flight.
pub(super) const CHUNK: usize = 32;

/// One filter of a chain. Where a method takes `pending`, the hashes are at most [`CHUNK`], and those are meant that have
/// their bit set in it.
pub(super) trait SubFilter {
    /// How many items it is made for.
    fn capacity(&self) -> u64;
    /// How many items it counts.
    fn num_items(&self) -> u64;
    /// Bits in all.
    fn num_bits(&self) -> u64;
    /// How many bits are set.
    fn set_bits(&self) -> u64;
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
    /// How many bits the union with mergeable `others` has set.
    fn count_union<'a>(&'a self, others: impl Iterator<Item = &'a Self> + Clone) -> u64;
    /// The number of items most likely to have set so many bits.
    fn estimate_items(&self, set_bits: u64) -> f64;
    /// The estimated share of the items it does not hold for which it errs when it holds so many.
    fn rate_at(&self, num_items: u64) -> f64;
}

/// What most items of a chunk are expected to be.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Expected {
    Absent,
    Present,
}

/// A chain of them, oldest first, never empty.
pub(super) trait Chain {
    type SubFilter: SubFilter;

    fn sub_filters(&self) -> &[Self::SubFilter];
    fn newest_mut(&mut self) -> Option<&mut Self::SubFilter>;
    fn seed(&self) -> u64;
    fn hash(item: &[u8], seed: u64) -> Hash128;
    /// Whether the item of this hash may have been added.
    fn look_up(&self, hash: Hash128) -> bool {
        // Newest first: it is the largest, so it most likely has what is there.
        self.sub_filters().iter().rev().any(|sub_filter| sub_filter.may_contain(hash))
    }
    /// Which of at most [`CHUNK`] hashes may have been added. What is expected of most of them makes it faster, if it is so.
    fn look_up_chunk(&self, hashes: &[Hash128], _expected: Expected) -> u32 {
        let (all, mut found) = (first_marks(hashes.len()), 0);
        for sub_filter in self.sub_filters().iter().rev() {
            let pending = all & !found;
            if pending == 0 {
                break;
            }
            found |= sub_filter.look_up_chunk(hashes, pending);
        }
        found
    }
    /// Appends the next sub-filter.
    fn grow(&mut self, limit: &(impl SizeLimit + ?Sized)) -> Result<(), Error>;
}

/// Most sub-filters a filter grows to. Each is asked for each item, so a chain of many is slow and growing one takes
/// time by the square of their number. Chains that grow by 2 or more end at 64, where numbers end.
pub(super) const MAX_SUB_FILTERS: usize = 1024;

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

/// [`Chain::grow`], as long as the chain is not too long for it.
fn grow<C: Chain>(chain: &mut C, limit: &(impl SizeLimit + ?Sized)) -> Result<(), Error> {
    let len = chain.sub_filters().len();
    if len >= MAX_SUB_FILTERS {
        let expected = "at most 1024, as a larger capacity or expansion needs";
        return Err(Error::out_of_range(Parameter::SubFilters, expected, len + 1));
    }
    chain.grow(limit)
}

/// Adds an item; tells whether it was new.
pub(super) fn add<C: Chain>(chain: &mut C, item: &[u8], limit: &(impl SizeLimit + ?Sized)) -> Result<bool, Error> {
    let hash = C::hash(item, chain.seed());
    let is_full = room(chain) == 0;
    // The newest one sees by itself whether it has the item, and a full one even then takes no new one.
    if (is_full || chain.sub_filters().len() > 1) && chain.look_up(hash) {
        return Ok(false);
    }
    if is_full {
        grow(chain, limit)?;
    }
    Ok(chain.newest_mut().is_some_and(|newest| newest.insert(hash)))
}

/// How many more items the newest sub-filter takes.
pub(super) fn room<C: Chain>(chain: &C) -> u64 {
    chain.sub_filters().last().map_or(0, |newest| newest.capacity().saturating_sub(newest.num_items()))
}

/// Adds items, as [`add`] one after another would.
pub(super) fn add_all<'a, C: Chain>(
    chain: &mut C,
    items: impl IntoIterator<Item = &'a [u8]>,
    limit: &(impl SizeLimit + ?Sized),
    mut added: impl FnMut(bool),
) -> Result<(), Error> {
    let mut hashes = hashes_of::<C>(items, chain.seed());
    // While there is one sub-filter, it is told of as many as fit even if all are new.
    while chain.sub_filters().len() == 1 && room(chain) > 0 {
        let mut fitting = usize::try_from(room(chain)).unwrap_or(usize::MAX);
        if let Some(only) = chain.newest_mut() {
            only.insert_all(hashes.up_to(&mut fitting), &mut added);
        }
        if fitting > 0 {
            return Ok(());
        }
    }
    while let Some((chunk, len)) = next_chunk(&mut hashes) {
        let (chunk, result) = add_chunk(chain, &chunk[..len], limit);
        (0..chunk.handled).for_each(|i| added(chunk.new >> i & 1 == 1));
        result?;
    }
    Ok(())
}

/// Whether the item of this hash may have been added.
pub(super) fn may_contain<C: Chain>(chain: &C, item: &[u8]) -> bool {
    chain.look_up(C::hash(item, chain.seed()))
}

/// Which of at most [`CHUNK`] hashes may have been added.
fn look_up<C: Chain>(chain: &C, hashes: &[Hash128], expected: Expected) -> u32 {
    match hashes {
        [hash] => u32::from(chain.look_up(*hash)),
        _ => chain.look_up_chunk(hashes, expected),
    }
}

/// [`may_contain`] for many items.
pub(super) fn may_contain_all<'a, C: Chain>(
    chain: &C,
    items: impl IntoIterator<Item = &'a [u8]>,
    mut found: impl FnMut(bool),
) {
    let mut hashes = hashes_of::<C>(items, chain.seed());
    if let [only] = chain.sub_filters() {
        return only.look_up_all(hashes, &mut found);
    }
    let mut expected = Expected::Absent;
    while let Some((chunk, len)) = next_chunk(&mut hashes) {
        let marks = look_up(chain, &chunk[..len], expected);
        // The next ones are most likely like these.
        expected = if marks.count_ones() as usize > len / 2 { Expected::Present } else { Expected::Absent };
        (0..len).for_each(|i| found(marks >> i & 1 == 1));
    }
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

fn hashes_of<'a, C: Chain>(
    items: impl IntoIterator<Item = &'a [u8]>,
    seed: u64,
) -> Hashes<impl Iterator<Item = &'a [u8]>, impl Fn(&[u8]) -> Hash128> {
    Hashes { items: items.into_iter().fuse(), hash: move |item: &[u8]| C::hash(item, seed) }
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

/// How far a chunk was added.
struct Added {
    /// A mark for each item that was new.
    new: u32,
    /// Items handled.
    handled: usize,
}

/// Adds the items of at most [`CHUNK`] hashes, in order, up to the first that fails.
fn add_chunk<C: Chain>(
    chain: &mut C,
    hashes: &[Hash128],
    limit: &(impl SizeLimit + ?Sized),
) -> (Added, Result<(), Error>) {
    // A sub-filter that takes nothing more says of an item what it said before. So only those are asked again that items
    // of this chunk went into.
    let (mut new, mut left) = (0, first_marks(hashes.len()) & !look_up(chain, hashes, Expected::Absent));
    while left != 0 {
        if room(chain) == 0
            && let Err(error) = grow(chain, limit)
        {
            return (Added { new, handled: left.trailing_zeros() as usize }, Err(error));
        }
        // No more than fit, even if all are new: so there is no need to look at the room after each. A sub-filter that was
        // just made takes one whatever it is made for, as for `add`.
        let fitting = first_marked(left, u32::try_from(room(chain)).unwrap_or(u32::MAX).max(1));
        left ^= fitting;
        let Some(newest) = chain.newest_mut() else { break };
        // Items that come twice, or whose bits the ones before them set, are sorted out here.
        new |= newest.insert_chunk(hashes, fitting);
        if newest.num_items() >= newest.capacity() {
            left &= !newest.look_up_chunk(hashes, left);
        }
    }
    (Added { new, handled: hashes.len() }, Ok(()))
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

/// How many items all of them count.
pub(super) fn num_items<C: Chain>(chain: &C) -> u64 {
    chain.sub_filters().iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.num_items()))
}

/// How many items all of them are made for.
pub(super) fn capacity<C: Chain>(chain: &C) -> u64 {
    chain.sub_filters().iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.capacity()))
}

/// Whether nothing was ever added.
pub(super) fn is_empty<C: Chain>(chain: &C) -> bool {
    matches!(chain.sub_filters(), [only] if only.num_items() == 0 && only.set_bits() == 0)
}

/// The share of all bits that are set.
pub(super) fn fill_ratio<C: Chain>(chain: &C) -> f64 {
    let (set, all) = chain.sub_filters().iter().fold((0.0, 0.0), |(set, all), sub_filter| {
        (set + sub_filter.set_bits() as f64, all + sub_filter.num_bits() as f64)
    });
    set / all
}

/// The estimated share of the items not held for which any of them errs now.
pub(super) fn false_positive_rate<C: Chain>(chain: &C) -> f64 {
    chain_rate(chain.sub_filters().iter().map(|sub_filter| sub_filter.rate_at(sub_filter.num_items())))
}

/// Chance that any of several filters errs, from the chance of each.
fn chain_rate(rates: impl Iterator<Item = f64>) -> f64 {
    // In logarithms: 1 - (1 - r) would lose rates below 1e-16.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum())
}

/// What a union of mergeable chains would be: the number of items of each sub-filter, estimated from its bits
/// within what is certain. `None` when it would have no bit that `chain` has not.
///
/// # Errors
/// [`Error::RateExceeded`] when it would err more often than `asked`.
pub(super) fn plan_union<C: Chain>(chain: &C, others: &[&C], asked: f64) -> Result<Option<Vec<u64>>, Error> {
    // From reading alone: the bitmaps are not held twice.
    let mut unions = Vec::new();
    try_reserve(&mut unions, chain.sub_filters().len())?;
    let mut changed = false;
    for (index, ours) in chain.sub_filters().iter().enumerate() {
        let theirs = others.iter().map(|other| &other.sub_filters()[index]);
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
    let rates = chain.sub_filters().iter().zip(&unions);
    let would_be = chain_rate(rates.map(|(ours, &num_items)| ours.rate_at(num_items)));
    if would_be > asked {
        return Err(Error::RateExceeded { would_be, asked });
    }
    Ok(Some(unions))
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
pub(super) fn first_marked(marks: u32, count: u32) -> u32 {
    let rest = (0..count.min(u32::BITS)).fold(marks, |rest, _| rest & rest.wrapping_sub(1));
    marks ^ rest
}
