//! A Bloom filter in the cache-line layout or in RedisBloom's, with or without a window: all queries and all changes.

use std::alloc::Layout;

use super::classic::ClassicFilter;
use super::classic::spec::Classic;
use super::lines::LineFilter;
use super::lines::sizing::Geometry;
use super::lines::spec::{LineSubFilter, Lines};
use super::params::{BitLayout, Params, Windowing};
use super::sub_filter::{Placement, SubFilter};
use crate::admission::{Admission, Terms};
use crate::error::{Error, Parameter};
use crate::hash::Hash128;
use crate::heap::{Mover, OnHeap};
use crate::live::sealed::Sealed;
use crate::live::{Live, Windowed};
use crate::size_limit::{SizeLimit, Unlimited, try_collect};
use crate::window::{ClockSource, Mark, Merging, Move, Time, Window};

/// A Bloom filter that grows, in either layout. The [module](crate::bloom) describes its guarantees.
#[derive(Debug, PartialEq)]
pub struct BloomFilter {
    pub(crate) chain: EitherChain,
}

/// The size of the struct matters because a server may hold millions of small filters: it fits in a cache line.
const _: () = assert!(size_of::<BloomFilter>() == 56);

/// A chain of either layout.
#[derive(Debug, PartialEq)]
pub enum EitherChain {
    /// A filter in the cache-line layout, the only one that can have a window.
    Lines(LineFilter),
    /// A filter in RedisBloom's layout.
    Classic(ClassicFilter),
}

/// Parameters, size and fill of a sub-filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SubFilterInfo {
    /// The number of items that the sub-filter is sized for.
    pub capacity: u64,
    /// The number of insertions that set a bit; after a merge an estimate.
    pub num_items: u64,
    /// The error rate of the sub-filter when full.
    pub error_rate: f64,
    /// Bytes of the bitmap.
    pub num_bytes: u64,
    /// The number of bits that an item sets; some may coincide.
    pub hashes: u32,
    /// The number of set bits.
    pub set_bits: u64,
    /// The geometry of the cache-line layout; `None` in the classic layout.
    pub geometry: Option<Geometry>,
}

/// Calls a method of the chain, whatever its layout.
macro_rules! either {
    ($chain:expr, $filter:ident => $call:expr) => {
        match $chain {
            EitherChain::Lines($filter) => $call,
            EitherChain::Classic($filter) => $call,
        }
    };
}

pub(crate) use either;

impl BloomFilter {
    /// An empty filter with this layout and these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(layout: BitLayout, params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(match layout {
            BitLayout::Lines => LineFilter::new(params, limit)?.into(),
            BitLayout::Classic => ClassicFilter::new(params, limit)?.into(),
        })
    }

    /// The layout of the filter.
    pub fn layout(&self) -> BitLayout {
        match self.chain {
            EitherChain::Lines(_) => BitLayout::Lines,
            EitherChain::Classic(_) => BitLayout::Classic,
        }
    }

    /// A copy of the filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(either!(&self.chain, filter => filter.try_clone()?.into()))
    }

    /// An empty filter with the same layout and parameters, in new memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and an error of `limit`.
    pub fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        Ok(match &self.chain {
            EitherChain::Classic(filter) => filter.new_like(limit)?.into(),
            EitherChain::Lines(filter) => match (filter.windowing(), filter.newest_slice()) {
                (Some(&windowing), Some(newest)) => LineFilter::windowed(*filter.params(), windowing, newest, limit)?,
                _ => LineFilter::new(*filter.params(), limit)?,
            }
            .into(),
        })
    }

    /// An empty windowed filter whose newest slice is `newest_slice`. Methods without a time parameter answer as of the
    /// newest slice.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and an error of `limit`, which is asked for the bytes
    /// of all slices at once.
    pub fn windowed(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        Ok(LineFilter::windowed(params, windowing, newest_slice, limit)?.into())
    }

    /// The window, if the filter has one.
    pub fn windowing(&self) -> Option<&Windowing> {
        either!(&self.chain, filter => filter.windowing())
    }

    /// A view of the filter at this time.
    #[inline]
    pub fn at(&self, time: Time) -> Present<'_> {
        let reached = either!(&self.chain, filter => filter.windowing().zip(filter.newest_slice()));
        let slices_later = reached.map_or(0, |(windowing, newest)| windowing.window.present(newest, time) - newest);
        Present { filter: self, slices_later }
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        self.at(Time::Reached).may_contain(item)
    }

    /// Calls `found` with the answer of [`Self::may_contain`] for each item, in order. This is faster than one call
    /// after another. Some hundred items may be taken from the iterator before the first answer.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        self.at(Time::Reached).may_contain_all(items, found);
    }

    /// The parameters that the filter was made with. RedisBloom does not store them: for a classic filter, rate and
    /// capacity follow from the first sub-filter, and the seed is 0.
    pub fn params(&self) -> &Params {
        either!(&self.chain, filter => filter.params())
    }

    /// The sub-filters, oldest first.
    pub fn sub_filters(&self) -> impl ExactSizeIterator<Item = SubFilterInfo> + '_ {
        let len = either!(&self.chain, filter => filter.sub_filters().len());
        (0..len).map(move |index| match &self.chain {
            EitherChain::Lines(filter) => {
                let sub_filter = &filter.sub_filters()[index];
                info(sub_filter, Some(sub_filter.geometry()))
            }
            EitherChain::Classic(filter) => info(&filter.sub_filters()[index], None),
        })
    }

    /// The number of items that the filter holds: added items that were new and have not expired. After a merge the
    /// number is an estimate.
    pub fn num_items(&self) -> u64 {
        self.at(Time::Reached).num_items()
    }

    /// Whether the filter is in the state of a new filter: clearing it would change nothing.
    pub fn is_empty(&self) -> bool {
        either!(&self.chain, filter => filter.is_empty())
    }

    /// The number of items that all sub-filters together are sized for. In a windowed filter, it is the number of items
    /// per window.
    pub fn capacity(&self) -> u64 {
        either!(&self.chain, filter => filter.capacity())
    }

    /// A lower bound of the number of new items that fit before the filter grows or rejects them. Known items take no
    /// room.
    pub fn room(&self) -> u64 {
        either!(&self.chain, filter => filter.room())
    }

    /// Bytes of all bitmaps and structs. For a classic filter they are counted as RedisBloom's `BF.INFO` counts them.
    pub fn size_bytes(&self) -> u64 {
        either!(&self.chain, filter => filter.size_bytes())
    }

    /// The share of set bits.
    pub fn fill_ratio(&self) -> f64 {
        self.at(Time::Reached).fill_ratio()
    }

    /// The current false-positive rate, estimated from the set bits.
    pub fn false_positive_rate(&self) -> f64 {
        self.at(Time::Reached).false_positive_rate()
    }

    /// Gives access to the filter, to change it at this time.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
    }

    /// The function that hashes an item for [`Live::add_hashes`]. For the command-line tool.
    #[doc(hidden)]
    pub fn hasher(&self) -> impl Fn(&[u8]) -> Hash128 + Copy + Send + Sync + use<> {
        let (layout, seed) = (self.layout(), self.params().seed);
        move |item| match layout {
            BitLayout::Lines => Lines::hash(item, seed),
            BitLayout::Classic => Classic::hash(item, seed),
        }
    }

    /// Checks that `other` has the layout of this filter, and that both filters or neither have a window.
    fn check_kind(&self, other: &BloomFilter) -> Result<(), Error> {
        Error::check_same(Parameter::Layout, self.layout(), other.layout())?;
        if self.windowing().is_some() == other.windowing().is_some() {
            return Ok(());
        }
        let [ours, theirs] = [self, other].map(|filter| filter.windowing().map_or("none".into(), Windowing::to_string));
        Err(Error::incompatible(Parameter::Window, ours, theirs))
    }

    fn as_lines(&self) -> Option<&LineFilter> {
        if let EitherChain::Lines(filter) = &self.chain { Some(filter) } else { None }
    }

    fn as_classic(&self) -> Option<&ClassicFilter> {
        if let EitherChain::Classic(filter) = &self.chain { Some(filter) } else { None }
    }
}

/// A view of a filter at a given time. The view ignores items that have expired by this time, and changes nothing.
///
/// ```
/// use rollcall_core::bloom::BloomFilter;
/// use rollcall_core::window::Time;
///
/// // A filter without a window gives the same answers at any time.
/// let seen: BloomFilter = ["ann"].into_iter().collect();
/// assert!(seen.at(Time::At(1_800_000_000)).may_contain("ann"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    filter: &'a BloomFilter,
    slices_later: u64,
}

impl Present<'_> {
    /// The answer of [`BloomFilter::may_contain`] at the time of the view.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        let item = item.as_ref();
        either!(&self.filter.chain, filter => filter.may_contain(item, self.slices_later))
    }

    /// Calls `found` like [`BloomFilter::may_contain_all`], with the answers at the time of the view.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        let items = items.into_iter().map(AsRef::as_ref);
        either!(&self.filter.chain, filter => filter.may_contain_all(items, self.slices_later, found));
    }

    /// The result of [`BloomFilter::num_items`] at the time of the view.
    pub fn num_items(&self) -> u64 {
        either!(&self.filter.chain, filter => filter.num_items(self.slices_later))
    }

    /// The result of [`BloomFilter::fill_ratio`] at the time of the view.
    pub fn fill_ratio(&self) -> f64 {
        either!(&self.filter.chain, filter => filter.fill_ratio(self.slices_later))
    }

    /// The result of [`BloomFilter::false_positive_rate`] at the time of the view.
    pub fn false_positive_rate(&self) -> f64 {
        either!(&self.filter.chain, filter => filter.false_positive_rate(self.slices_later))
    }
}

impl OnHeap for BloomFilter {
    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        either!(&self.chain, filter => filter.heap_layouts(visit));
    }

    fn num_bytes(&self) -> u64 {
        self.size_bytes()
    }

    fn relocate(&mut self, index: usize, mover: &impl Mover) -> bool {
        either!(&mut self.chain, filter => match filter.sub_filters_mut().get_mut(index) {
            Some(one) => {
                one.bitmap.relocate(|lines| mover.relocate(lines));
                true
            }
            None => false,
        })
    }
}

fn info<L: Placement>(sub_filter: &SubFilter<L>, geometry: Option<Geometry>) -> SubFilterInfo {
    let num_bytes = sub_filter.as_bytes().len() as u64;
    SubFilterInfo {
        capacity: sub_filter.capacity(),
        num_items: sub_filter.num_items(),
        error_rate: sub_filter.error_rate(),
        num_bytes,
        hashes: sub_filter.hashes(),
        set_bits: sub_filter.set_bits(),
        geometry,
    }
}

impl From<LineFilter> for BloomFilter {
    fn from(filter: LineFilter) -> Self {
        BloomFilter { chain: EitherChain::Lines(filter) }
    }
}

impl From<ClassicFilter> for BloomFilter {
    fn from(filter: ClassicFilter) -> Self {
        BloomFilter { chain: EitherChain::Classic(filter) }
    }
}

impl AsRef<EitherChain> for BloomFilter {
    fn as_ref(&self) -> &EitherChain {
        &self.chain
    }
}

impl Live<'_, BloomFilter> {
    /// Adds the items with these hashes, in order, and returns how many were new. The result is the same as that of
    /// [`Live::add_all`], but the caller can hash on several threads. For the command-line tool.
    ///
    /// # Errors
    /// The errors of [`Live::add`]. The items before the rejected one are added.
    #[doc(hidden)]
    pub fn add_hashes(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> Result<u64, Error> {
        self.move_on();
        let mut new = 0;
        let (hashes, added) = (hashes.iter().copied(), |is_new| new += u64::from(is_new));
        let changed = &mut self.outcome.changed;
        either!(&mut self.value.chain, filter => filter.add_hashes(hashes, limit, changed, added)?);
        Ok(new)
    }
}

impl Sealed for BloomFilter {}

/// The expired sub-filters of a filter. Freeing large sub-filters takes long, so the caller may send them to another
/// thread.
///
/// ```
/// use rollcall_core::bloom::{BloomFilter, Params, Windowing};
/// use rollcall_core::live::Windowed;
/// use rollcall_core::size_limit::Unlimited;
/// use rollcall_core::window::{ClockSource, Time};
///
/// let day = Windowing::new(86_400, 4, ClockSource::Manual, false)?;
/// let mut filter = BloomFilter::windowed(Params::default(), day, 0, &Unlimited)?;
/// filter.live(Time::Reached).add("ann", &Unlimited)?;
/// assert_eq!(filter.advance(4).num_bytes(), 0);
/// assert!(filter.advance(5).num_bytes() > 0);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Expired(
    /// The expired sub-filters; `None` if nothing expired. After nearly every change nothing has, and dropping `None`
    /// costs only a comparison.
    Option<Vec<LineSubFilter>>,
);

impl Expired {
    /// Bytes of the expired bitmaps.
    pub fn num_bytes(&self) -> u64 {
        self.0.iter().flatten().map(|sub_filter| sub_filter.as_bytes().len() as u64).sum()
    }
}

impl Windowed for BloomFilter {
    type Expired = Expired;

    #[inline]
    fn window(&self) -> Option<&Window> {
        self.windowing().map(|windowing| &windowing.window)
    }

    #[inline]
    fn newest_slice(&self) -> Option<u64> {
        either!(&self.chain, filter => filter.newest_slice())
    }

    fn set_clock_source(&mut self, clock_source: ClockSource) {
        either!(&mut self.chain, filter => filter.set_clock_source(clock_source));
    }

    fn advance(&mut self, slice: u64) -> Expired {
        match &mut self.chain {
            EitherChain::Lines(filter) => Expired(filter.advance(slice)),
            EitherChain::Classic(_) => Expired::default(),
        }
    }

    fn rebase(&mut self, slice: u64) {
        either!(&mut self.chain, filter => filter.rebase(slice));
    }

    fn renews(&self) -> bool {
        either!(&self.chain, filter => filter.renews())
    }

    fn merging(&self, others: &[&Self], time: Time) -> Result<Merging, Error> {
        let others = others.iter().filter_map(|other| other.as_lines());
        self.as_lines().map_or_else(|| Ok(Merging::default()), |filter| filter.merging(others, time))
    }

    #[inline(always)]
    fn add_live(live: &mut Live<'_, Self>, item: &[u8], limit: &impl SizeLimit) -> Result<bool, Error> {
        let due = live.due();
        if due != Move::Stay {
            if !either!(&live.value.chain, filter => filter.is_changed_by(item, due)) {
                return Ok(false);
            }
            live.make(due);
        }
        let mark = either!(&mut live.value.chain, filter => filter.add(item, limit)?);
        live.outcome.changed |= mark != Mark::Same;
        Ok(mark == Mark::New)
    }

    fn add_all_live<'a>(
        live: &mut Live<'_, Self>,
        mut items: impl Iterator<Item = &'a [u8]>,
        limit: &impl SizeLimit,
        mut added: impl FnMut(bool),
    ) -> Result<(), Error> {
        let (due, mut first) = (live.due(), None);
        if due != Move::Stay {
            // The move is made at the first item that changes the filter. Known items before it change nothing.
            while first.is_none() {
                let Some(item) = items.next() else { return Ok(()) };
                if either!(&live.value.chain, filter => filter.is_changed_by(item, due)) {
                    first = Some(item);
                } else {
                    added(false);
                }
            }
            live.make(due);
        }
        let (items, changed) = (first.into_iter().chain(items), &mut live.outcome.changed);
        either!(&mut live.value.chain, filter => filter.add_all(items, limit, changed, added))
    }

    fn admit_live<'a>(
        live: &mut Live<'_, Self>,
        items: impl ExactSizeIterator<Item = &'a [u8]>,
        terms: Terms,
        limit: &impl SizeLimit,
    ) -> Result<Vec<Admission>, Error> {
        let due = live.due();
        let slices_later = match (due, live.value.newest_slice()) {
            (Move::Advance(slice), Some(newest)) => slice - newest,
            _ => 0,
        };
        // If the clock had jumped ahead and was set back, the move back is made even if all items are rejected.
        // Otherwise no item would expire for a long time, so no room would be made below the limit.
        let rebases = matches!(due, Move::Rebase(_)) && items.len() > 0 && !terms.dry_run;
        let reported = match &mut live.value.chain {
            EitherChain::Lines(filter) => {
                let admitting = filter.plan_admission(items, terms, slices_later, limit)?;
                live.outcome.changed |= admitting.renews();
                if admitting.adds() || rebases {
                    live.make(due);
                }
                // The ring is borrowed anew, because the move has changed the filter.
                let EitherChain::Lines(filter) = &mut live.value.chain else { return Ok(Vec::new()) };
                filter.admit(admitting)?
            }
            EitherChain::Classic(filter) => {
                let admitting = filter.plan_admission(items, terms, 0, limit)?;
                filter.admit(admitting)?
            }
        };
        live.outcome.changed |= !terms.dry_run && reported.contains(&Admission::Admitted);
        Ok(reported)
    }

    fn merge_live(live: &mut Live<'_, Self>, others: &[&Self], limit: &impl SizeLimit) -> Result<bool, Error> {
        others.iter().try_for_each(|other| live.value.check_kind(other))?;
        let merging = live.value.merging(others, live.time)?;
        let changed = match &mut live.value.chain {
            EitherChain::Lines(ours) => {
                let (changed, expired) = ours.merge(&all_of(others, Self::as_lines)?, merging, limit)?;
                live.outcome.expired = Expired(expired);
                changed
            }
            EitherChain::Classic(ours) => ours.merge(&all_of(others, Self::as_classic)?, merging, limit)?.0,
        };
        (live.outcome.before, live.outcome.after) = (merging.before, merging.after);
        live.outcome.changed |= changed;
        Ok(changed)
    }
}

/// The filters for which `as_kind` returns `Some`, in order.
fn all_of<'a, F>(
    filters: &[&'a BloomFilter],
    as_kind: impl Fn(&'a BloomFilter) -> Option<&'a F>,
) -> Result<Vec<&'a F>, Error> {
    try_collect(filters.len(), filters.iter().filter_map(|filter| as_kind(filter)))
}

/// Copies the filter as [`BloomFilter::try_clone`] does.
///
/// ```
/// # use rollcall_core::bloom::BloomFilter;
/// let filter: BloomFilter = ["ann", "ben"].into_iter().collect();
/// assert!(filter.clone() == filter);
/// ```
///
/// # Panics
/// If an allocation fails.
impl Clone for BloomFilter {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Makes a filter that is sized for the number of items. Its other parameters are those of [`Params::default`]. The
/// items are first collected into a list.
///
/// ```
/// use rollcall_core::bloom::BloomFilter;
///
/// let filter: BloomFilter = ["ann", "ben"].into_iter().collect();
/// assert!(filter.may_contain("ann") && filter.num_items() == 2);
/// ```
///
/// # Panics
/// If an allocation fails.
impl<T: AsRef<[u8]>> FromIterator<T> for BloomFilter {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        let params = Params { capacity: (items.len() as u64).max(1), ..Params::default() };
        let mut filter =
            BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap_or_else(|error| panic!("{error}"));
        filter.live(Time::Reached).extend(items);
        filter
    }
}

#[cfg(test)]
mod tests;
