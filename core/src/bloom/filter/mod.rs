//! A Bloom filter that grows, in either layout, with or without a window.

use super::classic::sizing::{DEFAULT_GROWTH, Rules};
use super::look_up::{look_up, look_up_chunks};
use super::params::{BitLayout, Params, Windowing};
use super::sub_filter::{Spec, SubFilter, SubFilterInfo, hash, num_items};
use crate::error::Error;
use crate::hash::Hash128;
use crate::live::{Live, Value};
use crate::size_limit::{SizeLimit, Unlimited, try_collect_ok, try_to_vec};
use crate::window::{Time, Window};

mod admit;
pub(crate) mod changes;
pub(crate) mod generations;
mod merge;
pub(crate) mod stored;
mod value;

use generations::{Generation, Generations, Parts};

/// A Bloom filter that grows. The [module](crate::bloom) describes its guarantees.
///
/// A filter is a list of sub-filters. Items are added to the newest. The filter contains an item if any sub-filter
/// does.
// The first sub-filter stores the filter's parameters, so a small filter needs no memory besides this sub-filter.
//
// Invariants: a filter without a window has at least one sub-filter, and only one if it does not scale. All sub-filters
// have the same layout, [`BitLayout::Lines`] if the filter has a window. All sub-filters except the newest of each
// slice (without a window: the newest of the filter) are full. Loading does not check whether they are full.
#[derive(Debug, PartialEq)]
pub struct BloomFilter {
    parts: Parts,
}

/// The size of a [`BloomFilter`] in bytes.
pub(crate) const OWN_BYTES: u64 = 48;

/// The size in bytes of RedisBloom's struct for a filter, which its `BF.INFO` includes.
const REDISBLOOM_BYTES: u64 = 32;

// The server module stores each filter in an enum like this `Result`, which must not be larger than a filter.
const _: () = assert!(size_of::<Result<BloomFilter, Box<()>>>() as u64 == OWN_BYTES);

impl BloomFilter {
    /// An empty filter. A RedisBloom-compatible filter ignores the seed, since RedisBloom has none.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, an error of `limit`, [`Error::OutOfMemory`].
    pub fn new(layout: BitLayout, params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        params.validate()?;
        match layout {
            BitLayout::Lines => {
                let beside = OWN_BYTES - size_of::<SubFilter>() as u64;
                Ok(BloomFilter { parts: Parts::One(SubFilter::from_spec(Spec::of_lines(&params, 0)?, beside, limit)?) })
            }
            BitLayout::Classic => Self::classic(params, DEFAULT_GROWTH, limit),
        }
    }

    /// An empty filter with the parameters of a filter that RedisBloom made, which may lie outside the ranges for new
    /// filters. A filter that does not scale stores `growth` as its growth factor, as RedisBloom does.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters that no filter can have, an error of `limit`, [`Error::OutOfMemory`].
    #[doc(hidden)]
    pub fn classic(params: Params, growth: u32, limit: &impl SizeLimit) -> Result<Self, Error> {
        // The filter's parameters are derived from its first sub-filter, as in a loaded filter. Rounding may make them
        // differ from `params`.
        let (rules, shape) = Rules::new(&params, growth)?;
        Ok(BloomFilter { parts: Parts::One(SubFilter::from_shape(rules, shape, limit)?) })
    }

    /// An empty windowed filter whose newest slice is `slice`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and an error of `limit`, which is asked once for the
    /// bytes of all slices.
    pub fn windowed(params: Params, windowing: Windowing, slice: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let filter = Self::from_generations(params, windowing, slice, Vec::new(), Vec::new())?;
        let first = Spec::of_lines(&windowing.of_generation(&params)?, 0)?;
        let bytes = first.sub_filter_bytes().saturating_add(size_of::<Generation>() as u64);
        limit.check(filter.size_bytes(), bytes.saturating_mul(windowing.generations().into()))?;
        Ok(filter)
    }

    /// Makes a filter without a window from these sub-filters, oldest first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if `sub_filters` is empty, or if a RedisBloom-compatible filter has invalid option flags, a
    /// growth factor of 0 or too many sub-filters.
    #[doc(hidden)]
    pub fn from_sub_filters(sub_filters: Vec<SubFilter>) -> Result<Self, Error> {
        let first = sub_filters.first().ok_or_else(|| Error::corrupt("number of sub-filters", "at least 1", 0))?;
        first.classic().map_or(Ok(()), |classic| classic.rules.validate(sub_filters.len() as u64))?;
        Ok(BloomFilter { parts: Parts::from_vec(sub_filters) })
    }

    /// Makes a windowed filter from its generations and sub-filters, oldest first. A generation has the items of one
    /// slice.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges.
    pub(crate) fn from_generations(
        params: Params,
        windowing: Windowing,
        newest_slice: u64,
        list: Vec<Generation>,
        sub_filters: Vec<SubFilter>,
    ) -> Result<Self, Error> {
        let of_generation = windowing.of_generation(&params)?;
        debug_assert_eq!(list.iter().map(|one| one.len as usize).sum::<usize>(), sub_filters.len());
        let ring = Generations { params, windowing, of_generation, newest_slice, list };
        Ok(BloomFilter { parts: Parts::Many(sub_filters, Some(Box::new(ring))) })
    }

    /// An empty filter with the same layout, parameters and window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and an error of `limit`.
    pub fn new_like(&self, limit: &impl SizeLimit) -> Result<Self, Error> {
        if let Some(ring) = self.ring() {
            return Self::windowed(ring.params, ring.windowing, ring.newest_slice, limit);
        }
        Ok(BloomFilter { parts: Parts::One(SubFilter::from_spec(self.chain()[0].spec.clone(), 0, limit)?) })
    }

    /// A copy of the filter.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let sub_filters = try_collect_ok(self.chain().len(), self.chain().iter().map(SubFilter::try_clone))?;
        let Some(ring) = self.ring() else { return Ok(BloomFilter { parts: Parts::from_vec(sub_filters) }) };
        let ring = Generations { list: try_to_vec(&ring.list)?, ..*ring };
        Ok(BloomFilter { parts: Parts::Many(sub_filters, Some(Box::new(ring))) })
    }

    /// The layout of the filter.
    #[inline(always)]
    pub fn layout(&self) -> BitLayout {
        // A windowed filter may have no sub-filters, but its layout is always `Lines`.
        self.chain().first().map_or(BitLayout::Lines, |first| first.spec.layout())
    }

    /// The window, if the filter has one.
    #[inline]
    pub fn windowing(&self) -> Option<&Windowing> {
        self.ring().map(|ring| &ring.windowing)
    }

    /// The parameters that the filter was made with. RedisBloom does not store them: for its filters, error rate and
    /// capacity are derived from the first sub-filter, and the seed is 0.
    #[inline(always)]
    pub fn params(&self) -> &Params {
        match self.ring() {
            None => &self.chain()[0].spec.params,
            Some(ring) => &ring.params,
        }
    }

    /// The sub-filters, oldest first.
    pub fn sub_filters(&self) -> impl ExactSizeIterator<Item = SubFilterInfo> + '_ {
        self.chain().iter().map(SubFilter::info)
    }

    /// The sub-filters, oldest first.
    #[doc(hidden)]
    #[inline(always)]
    pub fn chain(&self) -> &[SubFilter] {
        match &self.parts {
            Parts::One(only) => std::slice::from_ref(only),
            Parts::Many(all, _) => all,
        }
    }

    #[inline(always)]
    pub(crate) fn chain_mut(&mut self) -> &mut [SubFilter] {
        match &mut self.parts {
            Parts::One(only) => std::slice::from_mut(only),
            Parts::Many(all, _) => all,
        }
    }

    /// The bytes of each sub-filter. End to end, they are the payload of the filter.
    pub(crate) fn bitmaps(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.chain().iter().map(SubFilter::as_bytes)
    }

    /// The index of the sub-filter that has byte `position` of the payload, and the byte's offset in the sub-filter.
    fn place_of(&self, position: u64) -> Option<(usize, u64)> {
        let mut offset = position;
        let index = self.chain().iter().position(|one| {
            let is_before = offset < one.spec.num_bytes;
            offset -= if is_before { 0 } else { one.spec.num_bytes };
            is_before
        });
        index.map(|index| (index, offset))
    }

    /// What only a windowed filter has: its window, and the list of its slices that have items.
    #[inline(always)]
    fn ring(&self) -> Option<&Generations> {
        if let Parts::Many(_, ring) = &self.parts { ring.as_deref() } else { None }
    }

    #[inline(always)]
    fn ring_mut(&mut self) -> Option<&mut Generations> {
        if let Parts::Many(_, ring) = &mut self.parts { ring.as_deref_mut() } else { None }
    }

    /// The slices of a windowed filter that have items, oldest first.
    pub(crate) fn generations(&self) -> &[Generation] {
        self.ring().map_or(&[], |ring| &ring.list)
    }

    /// Each generation (the items of one slice) with its sub-filters, oldest first. A filter without a window has one
    /// generation.
    pub(crate) fn by_generation(&self) -> impl Iterator<Item = (Generation, &[SubFilter])> {
        let whole = Generation { age: 0, len: self.chain().len() as u32, renewed: 0 };
        let (plain, mut rest) = (self.ring().is_none().then_some(whole), self.chain());
        plain.into_iter().chain(self.generations().iter().copied()).map_while(move |generation| {
            let (these, later) = rest.split_at_checked(generation.len as usize)?;
            rest = later;
            Some((generation, these))
        })
    }

    /// How many generations (slices with items) and how many sub-filters expire when the window moves forward by
    /// `slices_later` slices.
    fn dead(&self, slices_later: u64) -> (usize, usize) {
        let Some(ring) = self.ring() else { return (0, 0) };
        let most = u64::from(ring.windowing.generations());
        let dead = ring.list.iter().take_while(|one| u64::from(one.age).saturating_add(slices_later) >= most);
        dead.fold((0, 0), |(generations, sub_filters), one| (generations + 1, sub_filters + one.len as usize))
    }

    /// The sub-filters that do not expire when the window moves forward by `slices_later` slices, oldest first.
    #[inline]
    fn live_after(&self, slices_later: u64) -> &[SubFilter] {
        if slices_later == 0 { self.chain() } else { &self.chain()[self.dead(slices_later).1..] }
    }

    /// The index of the newest slice's first sub-filter.
    #[inline]
    fn newest_start(&self) -> usize {
        let Some(ring) = self.ring() else { return 0 };
        let newest = ring.list.last().filter(|one| one.age == 0).map_or(0, |one| one.len as usize);
        self.chain().len() - newest
    }

    #[inline]
    fn newest(&self) -> &[SubFilter] {
        &self.chain()[self.newest_start()..]
    }

    /// Hashes an item for [`Live::add_hashes`]. The command-line tool calls it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn hasher(&self) -> impl Fn(&[u8]) -> Hash128 + Copy + Send + Sync + use<> {
        // If this function were inlined, the loops that call it would become too large to be inlined.
        #[inline(never)]
        fn hash_in_list(layout: BitLayout, item: &[u8], seed: u64) -> Hash128 {
            hash(layout, item, seed)
        }
        let (layout, seed) = (self.layout(), self.params().seed);
        move |item| hash_in_list(layout, item, seed)
    }

    /// A view of the filter that ignores items that have expired at `time`.
    #[inline]
    pub fn at(&self, time: Time) -> Present<'_> {
        let ring = self.ring();
        self.after(ring.map_or(0, |ring| ring.windowing.window.present(ring.newest_slice, time) - ring.newest_slice))
    }

    /// A view of the items that were added in the last `seconds`. It begins with a whole slice, so it may be longer by
    /// up to one slice. Without `refresh`, an item counts as added when it was new.
    ///
    /// ```
    /// use rollcall_core::bloom::{BloomFilter, Params, Windowing};
    /// use rollcall_core::size_limit::Unlimited;
    /// use rollcall_core::window::{ClockSource, Time};
    ///
    /// let hour = Windowing::new(3600, 4, ClockSource::System, false)?;
    /// let mut shown = BloomFilter::windowed(Params::default(), hour, 0, &Unlimited)?;
    /// shown.live(Time::At(100)).add("ann", &Unlimited)?;
    /// let now = Time::At(2000);
    /// assert!(shown.at(now).may_contain("ann") && !shown.since(1000, now)?.may_contain("ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `seconds` is 0 or exceeds the window, and [`Error::Incompatible`] without a window.
    pub fn since(&self, seconds: u64, time: Time) -> Result<Present<'_>, Error> {
        let window = Window::of_span(self.window(), seconds)?;
        let newest = self.newest_slice().unwrap_or_default();
        // A span never begins before the oldest slice that `newest` leaves live, so the cast loses nothing.
        Ok(self.after((window.since(seconds, newest, time) - window.oldest_live(newest)) as u64))
    }

    /// A view of the filter as it will be after its window has moved forward by `slices_later` slices.
    #[inline]
    fn after(&self, slices_later: u64) -> Present<'_> {
        Present { filter: self, slices_later }
    }

    /// Access to the filter for changes at `time`.
    #[inline]
    pub fn live(&mut self, time: Time) -> Live<'_, Self> {
        Live::new(self, time)
    }

    /// Whether the item may have been added; if `false`, it certainly was not.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        self.after(0).may_contain(item)
    }

    /// Calls `found` with the answer of [`Self::may_contain`] for each item, in order. This is faster than single
    /// calls. Up to a few hundred items are taken from the iterator before the first answer.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        self.after(0).may_contain_all(items, found);
    }

    /// The number of unexpired items that were new when added. After a merge the number is an estimate.
    #[inline]
    pub fn num_items(&self) -> u64 {
        self.after(0).num_items()
    }

    /// The fraction of bits that are set.
    pub fn fill_ratio(&self) -> f64 {
        self.after(0).fill_ratio()
    }

    /// The current false-positive rate, estimated from the set bits.
    pub fn false_positive_rate(&self) -> f64 {
        self.after(0).false_positive_rate()
    }

    /// Whether the filter has neither items nor set bits.
    pub fn is_empty(&self) -> bool {
        match &self.parts {
            Parts::One(only) => only.num_items == 0 && only.set_bits == 0,
            Parts::Many(all, _) => all.is_empty(),
        }
    }

    /// The number of items that the filter, or its window, is sized for.
    pub fn capacity(&self) -> u64 {
        match self.ring() {
            None => self.chain().iter().fold(0, |sum, sub_filter| sum.saturating_add(sub_filter.spec.capacity)),
            Some(ring) => ring.params.capacity,
        }
    }

    /// A lower bound of the number of new items that fit before the filter grows or rejects items.
    #[inline]
    pub fn room(&self) -> u64 {
        self.newest().last().map_or(0, SubFilter::room)
    }

    /// Whether `additions` items certainly need no new sub-filter; false with a window. The server module calls this
    /// method.
    #[doc(hidden)]
    #[inline]
    pub fn has_room_for(&self, additions: u64) -> bool {
        let fits = |newest: &SubFilter| if additions == 1 { !newest.is_full() } else { newest.room() >= additions };
        // In RedisBloom's layout, the number of items is at most the number of bits, which may be less than the
        // capacity at high error rates.
        let counts = |newest: &SubFilter| newest.num_items.saturating_add(additions) <= newest.spec.num_bits;
        self.ring().is_none() && self.chain().last().is_some_and(|newest| fits(newest) && counts(newest))
    }

    /// The bytes of the filter with all bitmaps. For a RedisBloom-compatible filter, the number that RedisBloom's
    /// `BF.INFO` reports.
    pub fn size_bytes(&self) -> u64 {
        // In the layout `lines`, the struct of a single sub-filter is a part of the filter's struct. `held_bytes`
        // counts it twice.
        let in_place = match &self.parts {
            Parts::One(only) if only.classic().is_none() => size_of::<SubFilter>() as u64,
            _ => 0,
        };
        self.held_bytes(self.chain()) - in_place
    }

    /// The bytes of the filter if it held a list of these sub-filters.
    fn held_bytes(&self, sub_filters: &[SubFilter]) -> u64 {
        let own = if self.layout() == BitLayout::Lines { OWN_BYTES } else { REDISBLOOM_BYTES };
        let ring = self.ring().map_or(0, |ring| size_of::<Generations>() + size_of_val(&*ring.list));
        let bytes = sub_filters.iter().map(SubFilter::reported_bytes);
        bytes.fold(own + ring as u64, u64::saturating_add)
    }
}

/// The probability that at least one of several sub-filters reports an absent item as present, from the rate of each.
fn chain_rate(rates: impl Iterator<Item = f64>) -> f64 {
    // The sum of logarithms is precise even for rates below 1e-16.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum())
}

/// A view of a filter at a given time, which ignores items that have expired by then.
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
    pub(crate) filter: &'a BloomFilter,
    pub(crate) slices_later: u64,
}

impl Present<'_> {
    /// The sub-filters that have not expired at this view's time, oldest first.
    #[inline]
    fn live(&self) -> &[SubFilter] {
        self.filter.live_after(self.slices_later)
    }

    /// [`BloomFilter::may_contain`] at this view's time.
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        let item = item.as_ref();
        match &self.filter.parts {
            Parts::One(only) => only.may_contain(only.hash(item)),
            Parts::Many(..) => look_up(self.live(), self.filter.hasher()(item)),
        }
    }

    /// [`BloomFilter::may_contain_all`] at this view's time.
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        mut found: impl FnMut(bool),
    ) {
        let hash = self.filter.hasher();
        let hashes = items.into_iter().map(|item| hash(item.as_ref()));
        look_up_chunks(self.live(), hashes, |_, is_found| found(is_found));
    }

    /// [`BloomFilter::num_items`] at this view's time.
    #[inline]
    pub fn num_items(&self) -> u64 {
        let (dead, _) = self.filter.dead(self.slices_later);
        self.filter.by_generation().skip(dead).fold(0, |sum, (generation, sub_filters)| {
            sum.saturating_add(num_items(sub_filters).saturating_sub(generation.renewed))
        })
    }

    /// [`BloomFilter::fill_ratio`] at this view's time.
    pub fn fill_ratio(&self) -> f64 {
        // In a loaded sub-filter, padding bits after the first `num_bits` may be set too.
        let (set, all) = self.live().iter().fold((0.0, 0.0), |(set, all), sub_filter| {
            let num_bits = sub_filter.spec.num_bits;
            (set + sub_filter.set_bits.min(num_bits) as f64, all + num_bits as f64)
        });
        if all > 0.0 { set / all } else { 0.0 }
    }

    /// [`BloomFilter::false_positive_rate`] at this view's time.
    pub fn false_positive_rate(&self) -> f64 {
        let (live, generations) = (self.live(), &self.filter.generations()[self.filter.dead(self.slices_later).0..]);
        // The sum of no rates may be -0.0; `abs` makes it 0.0.
        let rate = chain_rate(live.iter().map(|sub_filter| sub_filter.false_positive_rate())).abs();
        let renewed = generations.iter().fold(0.0, |sum, generation| sum + generation.renewed as f64);
        // If each slice has a single sub-filter, all these have the same size, and an item has the same bits in each.
        // The rate then has a smaller bound.
        let Some(first) = live.first().filter(|_| renewed > 0.0 && live.len() == generations.len()) else {
            return rate;
        };
        // The rate is at most that of a single sub-filter that has the items of all slices, each once.
        let items = live.iter().map(|one| one.spec.estimate_items(one.set_bits));
        let (all, most) = items.fold((0.0, 0.0), |(all, most): (f64, f64), items| (all + items, most.max(items)));
        rate.min(first.spec.rate_of((all - renewed).max(most)))
    }
}

/// The sub-filters that a filter has removed because they expired. Freeing them takes long if they are large, so the
/// caller may do it on another thread.
///
/// ```
/// use rollcall_core::bloom::{BloomFilter, Params, Windowing};
/// use rollcall_core::live::Value;
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
pub struct Expired(Vec<SubFilter>);

impl Expired {
    /// The total size of the expired bitmaps, in bytes.
    pub fn num_bytes(&self) -> u64 {
        self.0.iter().map(|sub_filter| sub_filter.as_bytes().len() as u64).sum()
    }
}

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

/// Makes a filter with the number of items as its capacity, and otherwise [`Params::default`].
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
