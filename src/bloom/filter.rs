//! One filter of a fixed size.

use std::alloc::Layout;

use super::lines::{self, CHUNK, Contain, Insert, Line, Prefetch};
use super::math::{self, Geometry};
use crate::bits;
use crate::error::Error;
use crate::hash::Hash128;
use crate::limit::SizeLimit;

/// Lines that [`Filter::count_union`] looks at together: 4 KiB, on the stack.
const BLOCK: usize = 64;

/// A Bloom filter of a fixed size, by hashes: it does not know the seed they were made under.
///
/// Invariants: `lines` has `geometry.num_lines` lines, `set_bits` of their bits are set, and
/// `geometry` is what `error_rate` and `capacity` give.
#[derive(Debug)]
pub struct Filter {
    lines: Box<[Line]>,
    geometry: Geometry,
    error_rate: f64,
    capacity: u64,
    num_items: u64,
    set_bits: u64,
}

impl Filter {
    /// An empty filter that errs for at most `error_rate` of the items it does not hold while it holds
    /// `capacity` items. `limit` is asked whether the value it will be part of, `held_bytes` without it, may grow by it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters that no filter can have, what `limit` says, and
    /// [`Error::OutOfMemory`] when the allocator refuses.
    pub fn new(
        error_rate: f64,
        capacity: u64,
        held_bytes: u64,
        limit: &(impl SizeLimit + ?Sized),
    ) -> Result<Self, Error> {
        let geometry = math::geometry(error_rate, capacity)?;
        limit.check(held_bytes, geometry.num_bytes().saturating_add(size_of::<Self>() as u64))?;
        Ok(Filter { lines: zeroed_lines(&geometry)?, geometry, error_rate, capacity, num_items: 0, set_bits: 0 })
    }

    /// An equal filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut lines = zeroed_lines(&self.geometry)?;
        lines.copy_from_slice(&self.lines);
        Ok(Filter { lines, ..*self })
    }

    /// Whether the item of this hash may have been inserted; if `false`, it certainly was not.
    pub fn may_contain(&self, hash: Hash128) -> bool {
        self.may_contain_chunk(&[hash], 1) != 0
    }

    /// Inserts the item of this hash. Tells whether that set a bit; if `false`, [`Filter::may_contain`]
    /// was true before. The filter takes items beyond its capacity, at the cost of its error rate.
    pub fn insert(&mut self, hash: Hash128) -> bool {
        self.insert_chunk(&[hash], 1) != 0
    }

    /// Brings every line of the item of this hash to the cache.
    pub fn prefetch(&self, hash: Hash128) {
        self.prefetch_chunk(&[hash], 1);
    }

    /// Which of the hashes that have their bit set in `pending` may have been inserted. At most [`CHUNK`] hashes.
    pub(super) fn may_contain_chunk(&self, hashes: &[Hash128], pending: u32) -> u32 {
        debug_assert!(hashes.len() <= CHUNK && u64::from(pending) < 1 << hashes.len());
        lines::run(&self.geometry, Contain { lines: &self.lines, hashes, pending })
    }

    /// Inserts, in order, the hashes that have their bit set in `pending`; returns those that set a bit.
    pub(super) fn insert_chunk(&mut self, hashes: &[Hash128], pending: u32) -> u32 {
        debug_assert!(hashes.len() <= CHUNK && u64::from(pending) < 1 << hashes.len());
        let inserted = lines::run(&self.geometry, Insert { lines: &mut self.lines, hashes, pending });
        self.set_bits += inserted.bits;
        self.num_items = self.num_items.saturating_add(u64::from(inserted.new.count_ones()));
        inserted.new
    }

    /// Brings the lines of the hashes that have their bit set in `pending` to the cache.
    pub(super) fn prefetch_chunk(&self, hashes: &[Hash128], pending: u32) {
        lines::run(&self.geometry, Prefetch { lines: &self.lines, hashes, pending });
    }

    /// Lines, lines an item and bits a line.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// How many items it is made for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The share of the items it does not hold for which it may err while it holds [`Filter::capacity`] items.
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// How many insertions set a bit; after a union an estimate.
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// How many more items it takes until it is full.
    pub fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.num_items)
    }

    /// For loading: how many items the bits written stand for.
    pub fn set_num_items(&mut self, num_items: u64) {
        self.num_items = num_items;
    }

    /// How many bits are set.
    pub fn set_bits(&self) -> u64 {
        self.set_bits
    }

    /// The share of the bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        self.set_bits as f64 / self.geometry.num_bits() as f64
    }

    /// The estimated share of the items it does not hold for which it errs now.
    pub fn false_positive_rate(&self) -> f64 {
        math::false_positive_rate(&self.geometry, self.num_items as f64)
    }

    /// Bytes of the bitmap and of this struct.
    pub fn size_bytes(&self) -> u64 {
        self.geometry.num_bytes() + size_of::<Self>() as u64
    }

    /// The bitmap: words of 64 bits, little-endian, eight a line.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.lines)
    }

    /// For loading: overwrites the bitmap from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `bytes` reach past the end; nothing is changed then.
    pub fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let bitmap: &mut [u8] = bytemuck::cast_slice_mut(&mut self.lines);
        let len = bitmap.len();
        let start = usize::try_from(offset).ok();
        let Some(old) = start.and_then(|start| bitmap.get_mut(start..start.checked_add(bytes.len())?)) else {
            let got = format!("{} bytes from byte {offset} on", bytes.len());
            return Err(Error::corrupt("bitmap", format_args!("at most {len} bytes"), got));
        };
        // The old bits are among those counted, so this cannot go below zero.
        self.set_bits = self.set_bits - count_ones_in_bytes(old) + count_ones_in_bytes(bytes);
        old.copy_from_slice(bytes);
        Ok(())
    }

    /// Becomes the union: has the bits of both set. Tells whether that set a bit. The number of items
    /// is left to the caller, who knows what the bits stand for ([`Filter::set_num_items`]).
    ///
    /// # Errors
    /// [`Error::Incompatible`] for a filter of another capacity or error rate.
    pub fn union_with(&mut self, other: &Filter) -> Result<bool, Error> {
        self.check_mergeable(other)?;
        let set_bits = bits::or_count(bytemuck::cast_slice_mut(&mut self.lines), bytemuck::cast_slice(&other.lines));
        let changed = set_bits != self.set_bits;
        self.set_bits = set_bits;
        Ok(changed)
    }

    /// How many bits the union of this filter and mergeable `others` has set.
    pub(super) fn count_union<'a>(&self, others: impl Iterator<Item = &'a Filter> + Clone) -> u64 {
        let mut set_bits = 0;
        for (index, block) in self.lines.chunks(BLOCK).enumerate() {
            let mut union = [Line::default(); BLOCK];
            let union = &mut union[..block.len()];
            union.copy_from_slice(block);
            let union: &mut [u64] = bytemuck::cast_slice_mut(union);
            let start = index * BLOCK;
            let mut ones = None;
            for other in others.clone() {
                let theirs = &other.lines[start..start + block.len()];
                ones = Some(bits::or_count(union, bytemuck::cast_slice(theirs)));
            }
            set_bits += ones.unwrap_or_else(|| bits::count_ones(union));
        }
        set_bits
    }

    /// Whether the bits of both mean the same items.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs.
    pub(super) fn check_mergeable(&self, other: &Filter) -> Result<(), Error> {
        if self.capacity != other.capacity {
            return Err(Error::incompatible("capacity", self.capacity, other.capacity));
        }
        if self.error_rate != other.error_rate {
            return Err(Error::incompatible("error_rate", self.error_rate, other.error_rate));
        }
        Ok(())
    }

    /// Empties it, in place.
    pub fn clear(&mut self) {
        self.lines.fill(Line::default());
        self.num_items = 0;
        self.set_bits = 0;
    }

    /// Lets `f` move the bitmap to another place in memory, as the server's defragmenter does.
    ///
    /// # Panics
    /// If `f` returns another number of lines than it was given.
    pub fn relocate(&mut self, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>) {
        let len = self.lines.len();
        self.lines = f(std::mem::take(&mut self.lines));
        assert_eq!(self.lines.len(), len, "a relocated bitmap keeps its length");
    }

    /// Calls `visit` with the layout of every heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value::<[Line]>(&self.lines));
    }
}

/// Equal in every bit and number.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.error_rate == other.error_rate
            && self.capacity == other.capacity
            && self.num_items == other.num_items
            && self.set_bits == other.set_bits
            && self.as_bytes() == other.as_bytes()
    }
}

/// A zeroed bitmap, or an error where the usual allocation would end the process.
fn zeroed_lines(geometry: &Geometry) -> Result<Box<[Line]>, Error> {
    let out_of_memory = || Error::OutOfMemory { needed_bytes: geometry.num_bytes() };
    let len = usize::try_from(geometry.num_lines).map_err(|_| out_of_memory())?;
    bytemuck::allocation::try_zeroed_slice_box(len).map_err(|()| out_of_memory())
}

fn count_ones_in_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}
