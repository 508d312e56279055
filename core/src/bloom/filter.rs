//! A filter in either layout.

use std::alloc::Layout;
use std::fmt;

use super::chain::SubFilter;
use super::{ClassicFilter, Geometry, Line, LineFilter, Params};
use crate::error::{Error, Parameter};
use crate::size_limit::{SizeLimit, try_with_capacity};

/// Where the bits of an item are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitLayout {
    /// In a few cache lines ([`LineFilter`]).
    Lines,
    /// All over the bitmap, as in RedisBloom ([`ClassicFilter`]).
    Classic,
}

impl BitLayout {
    /// Its name, as users know it.
    pub fn name(self) -> &'static str {
        match self {
            BitLayout::Lines => "lines",
            BitLayout::Classic => "classic",
        }
    }
}

impl fmt::Display for BitLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Bloom filter that grows, in either layout. Methods do what those of the same name of [`LineFilter`] and
/// [`ClassicFilter`] do.
#[derive(Debug, PartialEq)]
pub enum BloomFilter {
    /// In lines.
    Lines(LineFilter),
    /// In RedisBloom's layout.
    Classic(ClassicFilter),
}

/// What there is to know of a sub-filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubFilterInfo {
    /// How many items it is made for.
    pub capacity: u64,
    /// How many insertions set a bit; after a merge an estimate.
    pub num_items: u64,
    /// The error rate it has when full.
    pub error_rate: f64,
    /// Bytes of its bitmap.
    pub num_bytes: u64,
    /// Bits of its bitmap.
    pub num_bits: u64,
    /// Bits an item sets; some may coincide.
    pub hashes: u32,
    /// Bits set.
    pub set_bits: u64,
    /// Its lines, if it has any.
    pub geometry: Option<Geometry>,
}

/// Calls the same method of either filter.
macro_rules! either {
    ($self:expr, $filter:ident => $call:expr) => {
        match $self {
            BloomFilter::Lines($filter) => $call,
            BloomFilter::Classic($filter) => $call,
        }
    };
}

impl BloomFilter {
    /// An empty filter.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, what `limit` says, [`Error::OutOfMemory`].
    pub fn new(layout: BitLayout, params: Params, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        Ok(match layout {
            BitLayout::Lines => BloomFilter::Lines(LineFilter::new(params, limit)?),
            BitLayout::Classic => BloomFilter::Classic(ClassicFilter::new(params, limit)?),
        })
    }

    /// Its layout.
    pub fn layout(&self) -> BitLayout {
        match self {
            BloomFilter::Lines(_) => BitLayout::Lines,
            BloomFilter::Classic(_) => BitLayout::Classic,
        }
    }

    /// An equal filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(match self {
            BloomFilter::Lines(filter) => BloomFilter::Lines(filter.try_clone()?),
            BloomFilter::Classic(filter) => BloomFilter::Classic(filter.try_clone()?),
        })
    }

    /// An empty filter of the same layout and parameters, in new memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and what `limit` says.
    pub fn empty_twin(&self, limit: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        Ok(match self {
            BloomFilter::Lines(filter) => BloomFilter::Lines(filter.empty_twin(limit)?),
            BloomFilter::Classic(filter) => BloomFilter::Classic(filter.empty_twin(limit)?),
        })
    }

    /// Adds an item; tells whether it was new.
    ///
    /// # Errors
    /// As [`LineFilter::add`].
    pub fn add(&mut self, item: &[u8], limit: &(impl SizeLimit + ?Sized)) -> Result<bool, Error> {
        either!(self, filter => filter.add(item, limit))
    }

    /// Adds items; tells `added` of each whether it was new.
    ///
    /// # Errors
    /// As [`LineFilter::add_all`].
    pub fn add_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8]>,
        limit: &(impl SizeLimit + ?Sized),
        added: impl FnMut(bool),
    ) -> Result<(), Error> {
        either!(self, filter => filter.add_all(items, limit, added))
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    pub fn may_contain(&self, item: &[u8]) -> bool {
        either!(self, filter => filter.may_contain(item))
    }

    /// [`BloomFilter::may_contain`] for many items. Tells `found` the answers.
    pub fn may_contain_all<'a>(&self, items: impl IntoIterator<Item = &'a [u8]>, found: impl FnMut(bool)) {
        either!(self, filter => filter.may_contain_all(items, found));
    }

    /// The parameters it was made with.
    pub fn params(&self) -> &Params {
        either!(self, filter => filter.params())
    }

    /// How many sub-filters it has.
    pub fn num_sub_filters(&self) -> usize {
        either!(self, filter => filter.sub_filters().len())
    }

    /// Its sub-filters, oldest first.
    pub fn sub_filters(&self) -> impl Iterator<Item = SubFilterInfo> + '_ {
        (0..self.num_sub_filters()).map(move |index| match self {
            BloomFilter::Lines(filter) => {
                let (sub_filter, geometry) = (&filter.sub_filters()[index], *filter.sub_filters()[index].geometry());
                SubFilterInfo {
                    capacity: sub_filter.capacity(),
                    num_items: sub_filter.num_items(),
                    error_rate: sub_filter.error_rate(),
                    num_bytes: geometry.num_bytes(),
                    num_bits: geometry.num_bits(),
                    hashes: geometry.lines_per_item * geometry.probes_per_line,
                    set_bits: sub_filter.set_bits(),
                    geometry: Some(geometry),
                }
            }
            BloomFilter::Classic(filter) => {
                let (sub_filter, shape) = (&filter.sub_filters()[index], filter.sub_filters()[index].shape());
                SubFilterInfo {
                    capacity: shape.capacity,
                    num_items: sub_filter.num_items(),
                    error_rate: shape.error_rate,
                    num_bytes: shape.num_bytes,
                    num_bits: shape.num_bits(),
                    hashes: shape.hashes,
                    set_bits: sub_filter.set_bits(),
                    geometry: None,
                }
            }
        })
    }

    /// The bitmaps of its sub-filters, oldest first.
    pub fn bitmaps(&self) -> impl Iterator<Item = &[u8]> + '_ {
        (0..self.num_sub_filters()).map(move |index| either!(self, filter => filter.sub_filters()[index].as_bytes()))
    }

    /// How many of the items added were new; after a merge an estimate.
    pub fn num_items(&self) -> u64 {
        either!(self, filter => filter.num_items())
    }

    /// Whether nothing was ever added, so that clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        either!(self, filter => filter.is_empty())
    }

    /// How many items its sub-filters are made for.
    pub fn capacity(&self) -> u64 {
        either!(self, filter => filter.capacity())
    }

    /// How many items can be added before it has to grow, or refuses them: so many at least, for known ones take no room.
    pub fn room(&self) -> u64 {
        either!(self, filter => filter.room())
    }

    /// Bytes of all bitmaps and structs.
    pub fn size_bytes(&self) -> u64 {
        either!(self, filter => filter.size_bytes())
    }

    /// The share of its bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        either!(self, filter => filter.fill_ratio())
    }

    /// The estimated share of the items it does not hold for which it errs now.
    pub fn false_positive_rate(&self) -> f64 {
        either!(self, filter => filter.false_positive_rate())
    }

    /// Empties it: one sub-filter as when it was new, and the same parameters.
    pub fn clear(&mut self) {
        either!(self, filter => filter.clear());
    }

    /// Whether `other` could be merged into this filter, but for the error rate that would result.
    ///
    /// # Errors
    /// [`Error::Incompatible`] naming what differs.
    pub fn check_mergeable(&self, other: &BloomFilter) -> Result<(), Error> {
        match (self, other) {
            (BloomFilter::Lines(ours), BloomFilter::Lines(theirs)) => ours.check_mergeable(theirs),
            (BloomFilter::Classic(ours), BloomFilter::Classic(theirs)) => ours.check_mergeable(theirs),
            _ => Err(Error::incompatible(Parameter::Layout, self.layout(), other.layout())),
        }
    }

    /// Becomes the union of itself and `others`; tells whether that set a bit.
    ///
    /// # Errors
    /// As [`LineFilter::merge`]. Nothing is changed then.
    pub fn merge(&mut self, others: &[&BloomFilter]) -> Result<bool, Error> {
        for other in others {
            self.check_mergeable(other)?;
        }
        match self {
            BloomFilter::Lines(ours) => {
                let mut same = try_with_capacity(others.len())?;
                same.extend(others.iter().filter_map(|other| match other {
                    BloomFilter::Lines(filter) => Some(filter),
                    BloomFilter::Classic(_) => None,
                }));
                ours.merge(&same)
            }
            BloomFilter::Classic(ours) => {
                let mut same = try_with_capacity(others.len())?;
                same.extend(others.iter().filter_map(|other| match other {
                    BloomFilter::Classic(filter) => Some(filter),
                    BloomFilter::Lines(_) => None,
                }));
                ours.merge(&same)
            }
        }
    }

    /// Lets `f` move the bitmap of sub-filter `index` to another place in memory; false if there is none.
    ///
    /// # Panics
    /// If `f` returns another number of lines than it was given.
    pub fn relocate(&mut self, index: usize, f: impl FnOnce(Box<[Line]>) -> Box<[Line]>) -> bool {
        match self {
            BloomFilter::Lines(filter) => filter.sub_filters_mut().get_mut(index).map(|one| one.relocate(f)),
            BloomFilter::Classic(filter) => filter.sub_filters_mut().get_mut(index).map(|one| one.relocate(f)),
        }
        .is_some()
    }

    /// Calls `visit` with the layout of every heap allocation it owns.
    pub fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        either!(self, filter => filter.heap_layouts(visit));
    }
}

impl From<LineFilter> for BloomFilter {
    fn from(filter: LineFilter) -> Self {
        BloomFilter::Lines(filter)
    }
}

impl From<ClassicFilter> for BloomFilter {
    fn from(filter: ClassicFilter) -> Self {
        BloomFilter::Classic(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::MAX_SUB_FILTERS;
    use super::*;
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::prelude::*;

    fn filled(layout: BitLayout, items: std::ops::Range<u32>) -> BloomFilter {
        let params = Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 0 };
        let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
        for item in items {
            filter.add(&item.to_le_bytes(), &Unlimited).unwrap();
        }
        filter
    }

    #[test]
    fn either_layout_behaves_alike() {
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            let mut filter = filled(layout, 0..500);
            assert_eq!((filter.layout(), filter.num_sub_filters(), filter.capacity()), (layout, 3, 700));
            assert!(filter.num_items() > 480 && filter.false_positive_rate() < 0.01 && filter.fill_ratio() > 0.2);
            assert_eq!(filter.sub_filters().map(|one| one.num_items).sum::<u64>(), filter.num_items());
            for (info, bitmap) in filter.sub_filters().zip(filter.bitmaps()) {
                assert_eq!((info.num_bytes, info.num_bits), (bitmap.len() as u64, bitmap.len() as u64 * 8));
                let set_bits: u64 = bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum();
                assert_eq!(info.set_bits, set_bits);
                assert_eq!(info.geometry.is_some(), layout == BitLayout::Lines);
            }
            let copy = filter.try_clone().unwrap();
            assert!((0..4).map(|index| filter.relocate(index, |lines| lines)).eq([true, true, true, false]));
            assert!(copy == filter);
            let mut found = Vec::new();
            let items: Vec<[u8; 4]> = (0..500u32).map(u32::to_le_bytes).collect();
            filter.may_contain_all(items.iter().map(|item| &item[..]), |is_there| found.push(is_there));
            assert_eq!(found, [true; 500]);
            assert!(items.iter().all(|item| filter.may_contain(item)));
            let twin = filter.empty_twin(&Unlimited).unwrap();
            filter.clear();
            assert!(filter.is_empty() && filter == twin && filter.params() == copy.params());
        }
    }

    #[test]
    fn only_equal_layouts_merge() {
        let (mut lines, mut classic) = (filled(BitLayout::Lines, 0..30), filled(BitLayout::Classic, 0..30));
        for (ours, theirs) in
            [(&mut lines, &filled(BitLayout::Lines, 30..60)), (&mut classic, &filled(BitLayout::Classic, 30..60))]
        {
            assert_eq!(ours.merge(&[theirs, theirs]), Ok(true));
            assert!((0..60u32).all(|item| ours.may_contain(&item.to_le_bytes())));
        }
        assert!(matches!(lines.merge(&[&classic]), Err(Error::Incompatible { parameter: Parameter::Layout, .. })));
        assert!(matches!(classic.merge(&[&lines]), Err(Error::Incompatible { parameter: Parameter::Layout, .. })));
    }

    fn bytes(items: &[u16]) -> impl Iterator<Item = &[u8]> {
        items.iter().map(bytemuck::bytes_of)
    }

    proptest! {
        /// With known items, items that come twice, chains that do not scale and growth that is refused in the middle.
        #[test]
        fn lists_on_long_chains_are_one_by_one(
            lists in prop::collection::vec(prop::collection::vec(0u16..500, 0..90), 1..8), capacity in 1u64..=3,
            error_rate in prop_oneof![Just(0.9), Just(0.3), Just(0.01)], expansion in prop_oneof![9 => Just(1u32), 1 => Just(0)],
            max_bytes in prop_oneof![Just(u64::MAX), 300u64..60_000],
        ) {
            let (params, limit) = (Params { error_rate, capacity, expansion, seed: 0 }, MaxBytes(max_bytes));
            for layout in [BitLayout::Lines, BitLayout::Classic] {
                let [mut single, mut listed] = [(); 2].map(|()| BloomFilter::new(layout, params, &Unlimited).unwrap());
                for items in &lists {
                    let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
                    let stopped = bytes(items).try_for_each(|item| {
                        one_by_one.push(single.add(item, &limit)?);
                        Ok(())
                    });
                    prop_assert_eq!(listed.add_all(bytes(items), &limit, |is_new| at_once.push(is_new)), stopped);
                    prop_assert_eq!(&at_once, &one_by_one);
                    prop_assert!(listed == single);
                    let (mut found, all) = (Vec::new(), (0..600).collect::<Vec<u16>>());
                    listed.may_contain_all(bytes(&all), |is_there| found.push(is_there));
                    prop_assert!(bytes(&all).map(|item| single.may_contain(item)).eq(found));
                }
            }
        }
    }

    /// Up to the last sub-filter there may be, whichever way it is reached.
    #[test]
    fn the_longest_chains_are_one_by_one() {
        let items: Vec<u16> = (0..3000).map(|i| i * 7 % 2900).collect();
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            for capacity in 1..=2 {
                let params = Params { error_rate: 0.2, capacity, expansion: 1, seed: 0 };
                let [mut single, mut listed] = [(); 2].map(|()| BloomFilter::new(layout, params, &Unlimited).unwrap());
                let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
                let stopped = bytes(&items).try_for_each(|item| {
                    one_by_one.push(single.add(item, &Unlimited)?);
                    Ok(())
                });
                assert_eq!(listed.add_all(bytes(&items), &Unlimited, |is_new| at_once.push(is_new)), stopped);
                assert_eq!(at_once, one_by_one);
                assert!(listed == single && listed.num_sub_filters() > 700, "{}", listed.num_sub_filters());
                assert_eq!(
                    stopped.is_err(),
                    listed.num_sub_filters() == MAX_SUB_FILTERS && at_once.len() < items.len()
                );
            }
        }
    }
}
