//! Unions and differences of counters.
//!
//! While every counter is exact, so is the answer. Otherwise each is brought to the smallest precision
//! among them, where the union is the OR of the bits.

use hashbrown::HashTable;
use roaring::RoaringBitmap;

use crate::bits;
use crate::counting::counter::{Counter, State};
use crate::counting::estimate::Segments;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::members::Members;
use crate::counting::slots::{Bitmap, Bits, counts_of, zeroed_words};
use crate::error::{Error, Parameter};
use crate::size_limit::SizeLimit;

/// Words that a union of dense bitmaps is worked out in at a time: 16 KiB, which stay in the nearest
/// cache while bitmap after bitmap is ORed into them. The tail of every layout fits.
const BLOCK_WORDS: usize = 2048;

/// How many members of one counter are in none of some others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The estimate; exact while all counters are.
    pub estimate: f64,
    /// Its standard error in members; 0 while all counters are exact. Infinite when the others leave
    /// no slot free to show anything (only made-up bitmaps are that full).
    pub standard_error: f64,
}

impl Difference {
    /// The estimate, rounded.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, seed: 0 };
    /// let mut june = Counter::new(params)?;
    /// june.add(b"ann", &Unlimited)?;
    /// let difference = june.difference(&[&Counter::new(params)?])?;
    /// assert_eq!((difference.count(), difference.estimate, difference.standard_error), (1, 1.0, 0.0));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn count(&self) -> u64 {
        libm::round(self.estimate) as u64
    }
}

/// Number of distinct members of all `counters` together; exact while every one is, whatever their limits.
///
/// ```
/// # use rollcall_core::counting::{Counter, Params, count_union};
/// # use rollcall_core::size_limit::Unlimited;
/// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, seed: 0 };
/// let [mut one, mut other] = [Counter::new(params)?, Counter::new(params)?];
/// one.add(b"ann", &Unlimited)?;
/// other.add(b"ann", &Unlimited)?;
/// other.add(b"ben", &Unlimited)?;
/// assert_eq!(count_union(&[&one, &other])?, 2);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Incompatible`] when seeds differ, [`Error::OutOfMemory`].
pub fn count_union(counters: &[&Counter]) -> Result<u64, Error> {
    let (Some(layout), Some(first)) = (common_layout(counters)?, counters.first()) else { return Ok(0) };
    if counters.len() == 1 {
        return Ok(first.count());
    }
    if let Some(sets) = exact_members(counters)? {
        return Ok(distinct(&sets, first.params().seed)?.len() as u64);
    }
    let (counts, _) = layered_counts(layout, counters, None)?;
    Ok(libm::round(Segments::new(layout, &counts).estimate()) as u64)
}

impl Counter {
    /// How many of its members are in none of `others`.
    ///
    /// With B the union of the others, a member that is not in B shows itself when it falls in a slot
    /// that B left free; members of B never do. So the slots that B left free are a bitmap of the
    /// difference alone, of less than the whole hash space, and the estimate and its standard error are
    /// those of any bitmap ([`Segments`]). For one segment that is the same as |A or B| - |B|, each by
    /// linear counting; with several it makes better use of them, and is never negative.
    ///
    /// The standard error is that of at least one member: seeing none does not prove that there is none.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, seed: 0 };
    /// let [mut june, mut july] = [Counter::new(params)?, Counter::new(params)?];
    /// june.add(b"ann", &Unlimited)?;
    /// june.add(b"ben", &Unlimited)?;
    /// july.add(b"ann", &Unlimited)?;
    /// assert_eq!(june.difference(&[&july])?.count(), 1);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Incompatible`] when seeds differ, [`Error::OutOfMemory`].
    pub fn difference(&self, others: &[&Counter]) -> Result<Difference, Error> {
        let all = with_first(self, others)?;
        let layout = common_layout(&all)?.unwrap_or(self.layout());
        if let Some([own, others @ ..]) = exact_members(&all)?.as_deref() {
            let left = distinct_from(own, others, self.params().seed)?;
            return Ok(Difference { estimate: left.len() as f64, standard_error: 0.0 });
        }
        let (base, union) = layered_counts(layout, others, Some(self))?;
        let segments = Segments::beyond(layout, &base, &union);
        let estimate = segments.estimate();
        Ok(Difference { estimate, standard_error: segments.standard_error(estimate.max(1.0)) })
    }

    /// Makes it the union of itself and `others`; true when that changed it.
    ///
    /// The result takes the smallest precision of all, with the capacity and the error rate of the counter
    /// that has it (the first such, itself before others), and keeps its own exact limit. It stays exact
    /// while every counter is and the union is within that limit.
    ///
    /// ```
    /// # use rollcall_core::counting::{Counter, Params};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, seed: 0 };
    /// let [mut june, mut july] = [Counter::new(params)?, Counter::new(params)?];
    /// june.add(b"ann", &Unlimited)?;
    /// july.add(b"ben", &Unlimited)?;
    /// assert!(june.merge(&[&july], &Unlimited)?);
    /// assert_eq!(june.count(), 2);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Incompatible`] when seeds differ, those of `limit`, [`Error::OutOfMemory`]; nothing was
    /// changed then.
    pub fn merge(&mut self, others: &[&Counter], limit: &impl SizeLimit) -> Result<bool, Error> {
        let all = with_first(self, others)?;
        let Some(layout) = common_layout(&all)? else { return Ok(false) };
        let mut params = *self.params();
        if let Some(smallest) = all.iter().find(|counter| counter.layout() == layout) {
            params.capacity = smallest.params().capacity;
            params.error_rate = smallest.params().error_rate;
        }
        let same_layout = layout == self.layout();

        if let Some(sets) = exact_members(&all)?
            && let Some(members) = union_of_members(&sets, params.seed, params.exact_limit, limit)?
        {
            let changed = !same_layout || members.len() as f64 != self.estimate();
            if changed {
                *self = Counter::from_state(params, layout, State::Exact(members));
            }
            return Ok(changed);
        }

        let bits_before = self.set_bits();
        let was_exact = self.is_exact();
        if same_layout
            && let State::Estimating(bitmap) = self.state_mut()
            && bitmap.or_dense(&mut |layout, words| others.iter().for_each(|other| other.or_into(layout, words)))
        {
            return Ok(bitmap.counts().total() != bits_before);
        }
        let all = with_first(self, others)?;
        let bitmap = union_of_bits(layout, &all, limit)?;
        let changed = !same_layout || was_exact || bitmap.counts().total() != bits_before;
        if changed {
            *self = Counter::from_state(params, layout, State::Estimating(bitmap));
        }
        Ok(changed)
    }

    /// ORs its slots into the bitmap `words` of a precision `to` no larger.
    fn or_into(&self, to: Layout, words: &mut [u64]) {
        match self.state() {
            State::Estimating(bitmap) => bitmap.or_into(to, words),
            State::Exact(_) => self.for_each_position(to, &mut |index| {
                bits::set(words, index as usize);
            }),
        }
    }

    /// Calls `visit` with each slot of its in the bitmap of a precision `to` no larger, perhaps repeatedly.
    fn for_each_position(&self, to: Layout, visit: &mut dyn FnMut(u64)) {
        match self.state() {
            State::Estimating(bitmap) => bitmap.for_each_position(to, visit),
            State::Exact(members) => {
                members.hashed(self.params().seed).for_each(|(hash, _)| visit(to.slot_of(hash).index));
            }
        }
    }

    /// The words, when dense and of this very layout.
    fn words_at(&self, layout: Layout) -> Option<&[u64]> {
        self.words().filter(|_| self.layout() == layout)
    }

    /// The words, when dense.
    fn words(&self) -> Option<&[u64]> {
        match self.state() {
            State::Estimating(bitmap) => bitmap.words(),
            State::Exact(_) => None,
        }
    }
}

/// `first` and the rest in one list.
fn with_first<'a>(first: &'a Counter, rest: &[&'a Counter]) -> Result<Vec<&'a Counter>, Error> {
    let mut all = try_with_capacity(rest.len() + 1)?;
    all.push(first);
    all.extend_from_slice(rest);
    Ok(all)
}

/// The smallest layout, or none without counters.
fn common_layout(counters: &[&Counter]) -> Result<Option<Layout>, Error> {
    let Some((first, rest)) = counters.split_first() else { return Ok(None) };
    let seed = first.params().seed;
    if let Some(other) = rest.iter().find(|other| other.params().seed != seed) {
        return Err(Error::incompatible(Parameter::Seed, seed, other.params().seed));
    }
    Ok(Some(rest.iter().fold(first.layout(), |layout, other| layout.min(other.layout()))))
}

/// The members of all counters, while all are exact.
fn exact_members<'a>(counters: &[&'a Counter]) -> Result<Option<Vec<&'a Members>>, Error> {
    let mut sets = try_with_capacity(counters.len())?;
    for counter in counters {
        match counter.state() {
            State::Exact(members) => sets.push(members),
            State::Estimating(_) => return Ok(None),
        }
    }
    Ok(Some(sets))
}

/// Members of several sets, each once and with its hash.
type Distinct<'a> = HashTable<(u64, &'a [u8])>;

/// The distinct members of the sets. The table grows with them, however often each comes.
fn distinct<'a>(sets: &[&'a Members], seed: u64) -> Result<Distinct<'a>, Error> {
    let mut seen = Distinct::new();
    for set in sets {
        let needed_bytes = (set.len() * size_of::<(u64, &[u8])>()) as u64;
        seen.try_reserve(set.len(), |&(hash, _)| hash).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        for (hash, item) in set.hashed(seed) {
            if seen.find(hash, |&(_, other)| other == item).is_none() {
                seen.insert_unique(hash, (hash, item), |&(hash, _)| hash);
            }
        }
    }
    Ok(seen)
}

/// The members of `own` that are in none of `others`. Of each of these it looks at no more members than are left.
fn distinct_from<'a>(own: &'a Members, others: &[&Members], seed: u64) -> Result<Distinct<'a>, Error> {
    let mut left = distinct(&[own], seed)?;
    for other in others {
        if left.len() <= other.len() {
            left.retain(|&mut (hash, item)| !other.contains(item, hash));
            continue;
        }
        for (hash, item) in other.hashed(seed) {
            if let Ok(entry) = left.find_entry(hash, |&(_, own)| own == item) {
                entry.remove();
            }
        }
    }
    Ok(left)
}

/// All members of the sets, while they are within the limits of an exact counter.
fn union_of_members(
    sets: &[&Members],
    seed: u64,
    exact_limit: u32,
    limit: &impl SizeLimit,
) -> Result<Option<Members>, Error> {
    let Some((first, rest)) = sets.split_first() else { return Ok(Some(Members::new())) };
    let mut union = first.try_clone(seed)?;
    for members in rest {
        for (hash, item) in members.hashed(seed) {
            if union.contains(item, hash) {
                continue;
            }
            if !union.has_room_for(item, exact_limit) {
                return Ok(None);
            }
            union.insert(item, hash, seed)?;
        }
    }
    if union.len() > first.len() {
        limit.check(Counter::STRUCT_BYTES, union.heap_bytes())?;
    }
    Ok(Some(union))
}

/// The union's bitmap, dense as soon as one of the counters is.
fn union_of_bits(layout: Layout, counters: &[&Counter], limit: &impl SizeLimit) -> Result<Bitmap, Error> {
    if counters.iter().any(|counter| counter.words().is_some()) {
        limit.check(Counter::STRUCT_BYTES, layout.num_bytes())?;
        let mut words = zeroed_words(layout)?;
        counters.iter().for_each(|counter| counter.or_into(layout, &mut words));
        return Ok(Bitmap::from_words(layout, words));
    }
    Bitmap::from_positions(layout, union_of_positions(layout, counters), Counter::STRUCT_BYTES, limit)
}

/// The set slots of counters none of which is dense.
fn union_of_positions(layout: Layout, counters: &[&Counter]) -> RoaringBitmap {
    let mut positions = RoaringBitmap::new();
    for counter in counters {
        // Whole containers at a time: inserting millions of positions takes seconds.
        match counter.state() {
            State::Estimating(bitmap) => match bitmap.bits() {
                Bits::Sparse(own) if bitmap.layout() == layout => positions |= own,
                _ => positions |= folded_positions(layout, bitmap),
            },
            State::Exact(_) => counter.for_each_position(layout, &mut |index| {
                positions.insert(index as u32);
            }),
        }
    }
    positions
}

/// The set slots of a bitmap as they lie in one of a smaller precision.
fn folded_positions(layout: Layout, bitmap: &Bitmap) -> RoaringBitmap {
    let mut positions = RoaringBitmap::new();
    bitmap.for_each_position(layout, &mut |index| {
        // Folding keeps the order, so what cannot be pushed is the last once more.
        let pushed = positions.try_push(index as u32);
        debug_assert!(pushed.is_ok() || positions.max() == Some(index as u32));
    });
    positions
}

/// The counts of the union of `base`, and of that with `top` on top (the same without one).
fn layered_counts(
    layout: Layout,
    base: &[&Counter],
    top: Option<&Counter>,
) -> Result<(SegmentCounts, SegmentCounts), Error> {
    let mut words = try_with_capacity(base.len())?;
    words.extend(base.iter().filter_map(|counter| counter.words_at(layout)));
    let top_words = top.and_then(|counter| counter.words_at(layout));
    if words.len() == base.len() && top_words.is_some() == top.is_some() {
        return Ok(counts_by_block(layout, &words, top_words));
    }

    let mut union = zeroed_union(layout, base, top)?;
    let base_counts = union.or(base);
    let counts = match &top {
        Some(top) => union.or(std::slice::from_ref(top)),
        None => base_counts,
    };
    Ok((base_counts, counts))
}

/// [`layered_counts`] of dense bitmaps of one layout, without holding the union.
fn counts_by_block(layout: Layout, base: &[&[u64]], top: Option<&[u64]>) -> (SegmentCounts, SegmentCounts) {
    let mut base_counts = SegmentCounts::default();
    let mut counts = SegmentCounts::default();
    let mut block = [0u64; BLOCK_WORDS];
    let mut start = 0;
    if let ([one, other], None) = (base, top) {
        // The main bitmap of two, by far the most frequent case, in one pass without a block.
        start = layout.main_words();
        base_counts.add_main_of_both(&one[..start], &other[..start]);
    }
    while start < layout.num_words() {
        // Blocks of main, the last of them shorter, then the tail in one.
        let in_main = start < layout.main_words();
        let part_end = if in_main { layout.main_words() } else { layout.num_words() };
        let end = part_end.min(start + BLOCK_WORDS);
        let block = &mut block[..end - start];
        let count = |counts: &mut SegmentCounts, block: &[u64]| {
            if in_main { counts.add_main(block) } else { counts.add_tail(block) }
        };
        block.fill(0);
        let (eights, rest) = base.as_chunks::<8>();
        for eight in eights {
            bits::or_eight_into(block, eight.map(|words| &words[start..end]));
        }
        rest.iter().for_each(|words| bits::or_into(block, &words[start..end]));
        count(&mut base_counts, block);
        if let Some(words) = top {
            bits::or_into(block, &words[start..end]);
            count(&mut counts, block);
        }
        start = end;
    }
    (base_counts, if top.is_some() { counts } else { base_counts })
}

/// A union being gathered: dense as soon as one of the counters is, else in proportion to their members.
enum Gathering {
    Dense(Layout, Box<[u64]>),
    Sparse(Layout, RoaringBitmap),
}

/// An empty union fit for these counters.
fn zeroed_union(layout: Layout, base: &[&Counter], top: Option<&Counter>) -> Result<Gathering, Error> {
    if base.iter().chain(&top).any(|counter| counter.words().is_some()) {
        return Ok(Gathering::Dense(layout, zeroed_words(layout)?));
    }
    Ok(Gathering::Sparse(layout, RoaringBitmap::new()))
}

impl Gathering {
    /// ORs the counters in and counts what is set then.
    fn or(&mut self, counters: &[&Counter]) -> SegmentCounts {
        match self {
            Gathering::Dense(layout, words) => {
                counters.iter().for_each(|counter| counter.or_into(*layout, words));
                SegmentCounts::of_words(words, *layout)
            }
            Gathering::Sparse(layout, positions) => {
                *positions |= union_of_positions(*layout, counters);
                counts_of(positions, *layout)
            }
        }
    }
}

fn try_with_capacity<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    let needed_bytes = (len * size_of::<T>()) as u64;
    list.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { needed_bytes })?;
    Ok(list)
}

#[cfg(test)]
mod tests;
