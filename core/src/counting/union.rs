//! Unions and differences of counters.
//!
//! While every counter is exact, so is the answer. Otherwise each is brought to the finest layout that
//! all of them fold to, where the union is the OR of the bits.

use hashbrown::HashTable;
use roaring::RoaringBitmap;

use crate::bits;
use crate::counting::counter::{Counter, State};
use crate::counting::estimate::Segments;
use crate::counting::layout::{Layout, SegmentCounts};
use crate::counting::members::Members;
use crate::counting::sizing::largest_error;
use crate::counting::slots::{Bitmap, Bits, counts_of, dense_bytes, zeroed_words};
use crate::error::{Error, Parameter};
use crate::size_limit::SizeLimit;

/// Words that a union of dense bitmaps is worked out in at a time: 16 KiB, which stay in the nearest
/// cache while bitmap after bitmap is ORed into them.
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
    pub fn count(&self) -> u64 {
        libm::round(self.estimate) as u64
    }
}

/// Number of distinct members of all `counters` together; exact while every one is, whatever their limits. At least what
/// each of them is known to have.
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
    let estimate = libm::round(Segments::new(layout, &counts).estimate()) as u64;
    Ok(estimate.max(u64::from(largest_floor(counters))))
}

/// How many members the union of these counters is known to have.
fn largest_floor(counters: &[&Counter]) -> u32 {
    counters.iter().map(|counter| counter.floor()).max().unwrap_or(0)
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
    /// The result takes the finest layout that all fold to, with the capacity and the error rate of the counter
    /// that has it (the first such, itself before others). Where none has it, these are the smallest capacity and
    /// the largest standard error that this layout has up to there. It keeps its own exact limit, and stays
    /// exact while every counter is and the union is within that limit.
    ///
    /// # Errors
    /// [`Error::Incompatible`] when seeds differ, those of `limit`, [`Error::OutOfMemory`]; nothing was
    /// changed then.
    pub fn merge(&mut self, others: &[&Counter], limit: &impl SizeLimit) -> Result<bool, Error> {
        let all = with_first(self, others)?;
        let Some(layout) = common_layout(&all)? else { return Ok(false) };
        let mut params = *self.params();
        (params.capacity, params.error_rate) = kept_promise(layout, &all);
        let same_layout = layout == self.layout();

        let mut floor = largest_floor(&all);
        if let Some(sets) = exact_members(&all)? {
            match union_of_members(&sets, params.seed, params.exact_limit, limit)? {
                UnionOfMembers::Within(members) => {
                    let changed = !same_layout || members.len() as f64 != self.estimate();
                    if changed {
                        *self = Counter::from_state(params, layout, 0, State::Exact(members));
                    }
                    return Ok(changed);
                }
                UnionOfMembers::Beyond(known) => floor = floor.max(known),
            }
        }

        let before = (self.is_exact(), self.layout(), self.set_bits(), self.floor());
        let mut or_others = |layout, words: &mut [u64]| others.iter().for_each(|other| other.or_into(layout, words));
        if same_layout && self.or_dense(floor, &mut or_others) {
            return Ok((false, layout, self.set_bits(), floor) != before);
        }
        let all = with_first(self, others)?;
        let bitmap = union_of_bits(layout, &all, limit)?;
        let changed = (false, layout, bitmap.set_bits(), floor) != before;
        if changed {
            *self = Counter::from_state(params, layout, floor, State::Estimating(bitmap));
        }
        Ok(changed)
    }

    /// ORs its slots into the bitmap `words` of a layout `to` that it folds to.
    fn or_into(&self, to: Layout, words: &mut [u64]) {
        match self.state() {
            State::Estimating(bitmap) => bitmap.or_into(to, words),
            State::Exact(_) => self.for_each_position(to, &mut |index| {
                bits::set(words, index as usize);
            }),
        }
    }

    /// Calls `visit` with each slot of its in a bitmap of a layout `to` that it folds to, perhaps repeatedly.
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

/// The finest layout that all fold to, or none without counters.
fn common_layout(counters: &[&Counter]) -> Result<Option<Layout>, Error> {
    let Some((first, rest)) = counters.split_first() else { return Ok(None) };
    let seed = first.params().seed;
    if let Some(other) = rest.iter().find(|other| other.params().seed != seed) {
        return Err(Error::incompatible(Parameter::Seed, seed, other.params().seed));
    }
    Ok(Some(rest.iter().fold(first.layout(), |layout, other| layout.common(other.layout()))))
}

/// Up to how many members a union of this layout has at most which error: what the first counter of that layout was made
/// for, or where none is of it, what it comes to.
fn kept_promise(layout: Layout, counters: &[&Counter]) -> (u64, f64) {
    if let Some(same) = counters.iter().find(|counter| counter.layout() == layout) {
        return (same.params().capacity, same.params().error_rate);
    }
    let capacity = counters.iter().map(|counter| counter.params().capacity).min().unwrap_or(1);
    (capacity, largest_error(layout, capacity))
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

/// A union of members.
enum UnionOfMembers {
    /// All of them, within the limits of an exact counter.
    Within(Members),
    /// They are more than these limits allow: at least so many.
    Beyond(u32),
}

/// All members of the sets, while they are within the limits of an exact counter.
fn union_of_members(
    sets: &[&Members],
    seed: u64,
    exact_limit: u32,
    limit: &impl SizeLimit,
) -> Result<UnionOfMembers, Error> {
    let Some((first, rest)) = sets.split_first() else { return Ok(UnionOfMembers::Within(Members::new())) };
    let mut union = first.try_clone(seed)?;
    for members in rest {
        for (hash, item) in members.hashed(seed) {
            if union.contains(item, hash) {
                continue;
            }
            if !union.has_room_for(item, exact_limit) {
                return Ok(UnionOfMembers::Beyond(union.len() as u32 + 1));
            }
            union.insert(item, hash, seed)?;
        }
    }
    if union.len() > first.len() {
        limit.check(Counter::STRUCT_BYTES, union.heap_bytes())?;
    }
    Ok(UnionOfMembers::Within(union))
}

/// The union's bitmap, dense as soon as one of the counters is.
fn union_of_bits(layout: Layout, counters: &[&Counter], limit: &impl SizeLimit) -> Result<Bitmap, Error> {
    if counters.iter().any(|counter| counter.words().is_some()) {
        limit.check(Counter::STRUCT_BYTES, dense_bytes(layout))?;
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
                Bits::Sparse { positions: own, .. } if bitmap.layout() == layout => positions |= own,
                _ => positions |= folded_positions(layout, bitmap),
            },
            State::Exact(_) => counter.for_each_position(layout, &mut |index| {
                positions.insert(index as u32);
            }),
        }
    }
    positions
}

/// The set slots of a bitmap as they lie in one that it folds to.
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
        let end = layout.num_words().min(start + BLOCK_WORDS);
        let block = &mut block[..end - start];
        block.fill(0);
        let (eights, rest) = base.as_chunks::<8>();
        for eight in eights {
            bits::or_eight_into(block, eight.map(|words| &words[start..end]));
        }
        rest.iter().for_each(|words| bits::or_into(block, &words[start..end]));
        base_counts.add_words(layout, start, block);
        if let Some(words) = top {
            bits::or_into(block, &words[start..end]);
            counts.add_words(layout, start, block);
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
mod tests {
    use super::*;
    use crate::counting::counter::Params;
    use crate::counting::counter::tests::{SIZES, add, counter, dense, layout, params, words};
    use crate::counting::members::tests::LOOKED_AT;
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Some items in a counter of some shape: exact, sparse or dense, of any precision.
    fn any_counter() -> impl Strategy<Value = (Counter, Vec<u64>)> {
        let numbers = prop_oneof![vec(0u64..1000, 0..40), vec(0u64..3000, 0..2000)];
        let exact_limit = prop_oneof![Just(0), Just(100), Just(5000)];
        (numbers, 0..SIZES.len(), exact_limit, any::<bool>()).prop_map(|(numbers, size, exact_limit, make_dense)| {
            let made = counter(params(SIZES[size], exact_limit), numbers.iter().copied());
            let made = if make_dense && exact_limit == 0 { dense(&made) } else { made };
            (made, numbers)
        })
    }

    fn merged(counter: &Counter, others: &[&Counter]) -> Counter {
        let mut union = counter.try_clone().unwrap();
        union.merge(others, &Unlimited).unwrap();
        union
    }

    #[test]
    fn different_seeds_are_refused() {
        let mut one = counter(params(SIZES[2], 250), [1]);
        let other = counter(Params { seed: 1, ..params(SIZES[2], 250) }, [1]);
        let seed = Error::Incompatible { parameter: Parameter::Seed, ours: "0".into(), theirs: "1".into() };
        assert_eq!(one.merge(&[&other], &Unlimited), Err(seed.clone()));
        assert_eq!(count_union(&[&one, &other]), Err(seed.clone()));
        assert_eq!(one.difference(&[&other]), Err(seed));
    }

    #[test]
    fn union_of_nothing_is_empty() {
        assert_eq!(count_union(&[]), Ok(0));
        let one = counter(params(SIZES[2], 250), 0..10);
        assert_eq!(one.difference(&[]), Ok(Difference { estimate: 10.0, standard_error: 0.0 }));
    }

    #[test]
    fn merge_takes_the_parameters_of_the_smallest() {
        let mut one = counter(params((1_000_000, 0.01), 40), 0..30);
        let small = counter(params((2000, 0.02), 250), 0..10);
        let as_small = counter(params((1000, 0.02), 250), 0..10);
        assert_eq!(small.layout(), as_small.layout());
        assert!(one.merge(&[&small, &as_small], &Unlimited).unwrap());
        assert_eq!(*one.params(), params((2000, 0.02), 40));
        assert_eq!((one.layout(), one.count(), one.is_exact()), (layout(11, 8), 30, true));
        assert!(!one.merge(&[&small, &as_small], &Unlimited).unwrap());
    }

    #[test]
    fn merge_of_layouts_that_differ_both_ways_says_the_error_it_has() {
        let mut one = counter(params((100_000, 0.02), 0), 0..3000);
        let other = counter(params((1_000_000, 0.02), 0), 2000..4000);
        assert_eq!((one.layout(), other.layout()), (layout(14, 9), layout(12, 11)));
        assert!(one.merge(&[&other], &Unlimited).unwrap());
        assert_eq!((one.layout(), one.params().capacity), (layout(12, 9), 100_000));
        assert_eq!(format!("{:.3}", one.params().error_rate), "0.029");
        assert!(one.standard_error() <= one.params().error_rate);
        let mut built = Counter::with_layout(*one.params(), one.layout()).unwrap();
        add(&mut built, 0..4000);
        assert_eq!((words(&one), one.count()), (words(&built), built.count()));
    }

    #[test]
    fn merge_over_the_limit_changes_nothing() {
        let many = counter(params(SIZES[2], 0), 0..5000);
        for items in [0, 10, 300] {
            let mut one = counter(params(SIZES[2], 20), 0..items);
            let before = (words(&one), one.representation());
            assert!(matches!(one.merge(&[&many], &MaxBytes(4000)), Err(Error::TooLarge { .. })));
            assert_eq!((words(&one), one.representation()), before);
        }
    }

    #[test]
    fn difference_of_exact_counters_looks_at_no_more_members_than_a_count() {
        let own = counter(params(SIZES[2], 5000), 0..1000);
        let few: Vec<_> = (0..300).map(|n| counter(params(SIZES[2], 5000), 5 * n + 500..5 * n + 505)).collect();
        let many: Vec<_> = (0..30).map(|n| counter(params(SIZES[2], 5000), 10 * n + 500..10 * n + 2000)).collect();
        for (others, new) in [(few, 500), (many, 500)] {
            let others: Vec<_> = others.iter().collect();
            let all = with_first(&own, &others).unwrap();
            LOOKED_AT.set(0);
            count_union(&all).unwrap();
            let by_count = LOOKED_AT.replace(0);
            assert_eq!(own.difference(&others).unwrap(), Difference { estimate: f64::from(new), standard_error: 0.0 });
            let by_difference = LOOKED_AT.get();
            assert!(by_difference <= by_count, "{by_difference} against {by_count}");
        }
    }

    #[test]
    fn a_union_of_members_takes_memory_for_each_once() {
        let counter = counter(params(SIZES[2], 5000), 0..1000);
        let counters = vec![&counter; 300];
        let sets = exact_members(&counters).unwrap().unwrap();
        let union = distinct(&sets, 0).unwrap();
        assert_eq!(union.len(), 1000);
        assert!(union.capacity() <= 8000, "{}", union.capacity());
    }

    #[test]
    fn difference_of_exact_counters_is_exact() {
        let one = counter(params(SIZES[2], 250), 0..200);
        let others = [counter(params(SIZES[0], 250), 0..50), counter(params(SIZES[4], 250), 150..300)];
        let difference = one.difference(&[&others[0], &others[1]]).unwrap();
        assert_eq!(difference, Difference { estimate: 100.0, standard_error: 0.0 });
        assert_eq!(count_union(&[&one, &others[0], &others[1]]), Ok(300));
    }

    #[test]
    fn difference_from_a_superset_is_nothing_with_an_error() {
        let one = counter(params(SIZES[2], 0), 0..20_000);
        let more = counter(params(SIZES[2], 0), 0..50_000);
        let difference = one.difference(&[&more]).unwrap();
        assert_eq!(difference.count(), 0);
        assert!(difference.standard_error > 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn merge_commutes((a, _) in any_counter(), (b, _) in any_counter()) {
            let (ab, ba) = (merged(&a, &[&b]), merged(&b, &[&a]));
            prop_assert_eq!(ab.layout(), ba.layout());
            prop_assert_eq!(words(&ab), words(&ba));
            if a.is_exact() == b.is_exact() && a.params().exact_limit == b.params().exact_limit {
                prop_assert_eq!((ab.floor(), ab.count()), (ba.floor(), ba.count()));
            }
            prop_assert_eq!(count_union(&[&a, &b]), count_union(&[&b, &a]));
        }

        #[test]
        fn merge_associates((a, _) in any_counter(), (b, _) in any_counter(), (c, _) in any_counter()) {
            let left = merged(&merged(&a, &[&b]), &[&c]);
            let right = merged(&a, &[&merged(&b, &[&c])]);
            prop_assert_eq!(words(&left), words(&right));
            prop_assert_eq!(words(&left), words(&merged(&a, &[&b, &c])));
        }

        #[test]
        fn merge_is_idempotent((a, _) in any_counter(), (b, _) in any_counter()) {
            let mut union = merged(&a, &[&b]);
            let before = (words(&union), union.representation(), union.count());
            prop_assert!(!union.merge(&[&b], &Unlimited).unwrap());
            prop_assert!(!union.merge(&[&a, &b], &Unlimited).unwrap());
            prop_assert_eq!((words(&union), union.representation(), union.count()), before);
        }

        #[test]
        fn merge_equals_the_counter_built_of_all((a, items_a) in any_counter(), (b, items_b) in any_counter()) {
            let mut union = a.try_clone().unwrap();
            let changed = union.merge(&[&b], &Unlimited).unwrap();
            let mut built = Counter::with_layout(*union.params(), union.layout()).unwrap();
            add(&mut built, items_a.iter().chain(&items_b).copied());
            prop_assert_eq!(union.layout(), a.layout().common(b.layout()));
            prop_assert_eq!(words(&union), words(&built));
            prop_assert_eq!(changed, words(&union) != words(&a) || union.is_exact() != a.is_exact()
                || union.layout() != a.layout() || union.count() != a.count());
            prop_assert!(union.floor() >= a.floor().max(b.floor()));
            if !built.is_exact() {
                // Floors are of the history, what they are floors of is not.
                prop_assert_eq!(union.set_bits(), built.set_bits());
                let floor = f64::from(union.floor());
                prop_assert_eq!(union.estimate(), built.estimate().max(floor).max(floor));
            }
        }

        #[test]
        fn union_count_equals_that_of_the_merge(counters in vec(any_counter(), 1..6)) {
            let list: Vec<_> = counters.iter().map(|(counter, _)| counter).collect();
            let count = count_union(&list).unwrap();
            if list.iter().all(|counter| counter.is_exact()) {
                let naive: BTreeSet<_> = counters.iter().flat_map(|(_, items)| items).collect();
                prop_assert_eq!(count, naive.len() as u64);
            } else {
                prop_assert_eq!(count, merged(list[0], &list[1..]).count());
            }
        }

        #[test]
        fn difference_is_the_same_in_every_representation((a, _) in any_counter(), (b, _) in any_counter()) {
            prop_assume!(!a.is_exact() || !b.is_exact());
            let difference = a.difference(&[&b]).unwrap();
            prop_assert_eq!(dense(&a).difference(&[&dense(&b)]).unwrap(), difference);
            prop_assert_eq!(a.difference(&[&b, &b]).unwrap(), difference);
            prop_assert!(difference.estimate >= 0.0 && difference.standard_error > 0.0);
        }
    }
}
