//! Views, for reading a counter at a given time. Reading does not change the counter, and skips expired members.

use std::borrow::Cow;

use crate::counting::counter::Counter;
use crate::counting::estimate::Estimated;
use crate::counting::held::Held;
use crate::counting::held::members::Members;
use crate::counting::held::members::record::{Member, Records};
use crate::counting::held::ring::Ages;
use crate::counting::held::slots::Slots;
use crate::counting::layout::Layout;
use crate::counting::params::Params;
use crate::error::Error;
use crate::hash::table_hash;
use crate::size_limit::{try_collect, try_with_capacity};
use crate::window::{Time, Window};

/// The part of a counter that is read: all members that have not expired at a given time, or only those added in the
/// last `n` seconds. Making a view takes hardly any time.
///
/// ```
/// use rollcall_core::counting::{Counter, diff_card};
/// use rollcall_core::size_limit::Unlimited;
/// use rollcall_core::window::{ClockSource, Time, Window};
///
/// let window = Window::new(600, 10, Counter::MAX_SLICES, ClockSource::System)?;
/// let mut counter = Counter::new(Default::default())?.with_window(window, 0)?;
/// counter.live(Time::At(100)).add(b"ann", &Unlimited)?;
/// counter.live(Time::At(400)).add(b"ben", &Unlimited)?;
/// let now = Time::At(410);
/// assert_eq!((counter.at(now).count(), counter.since(60, now)?.count()), (2, 1));
/// // Added in the last ten minutes, but not in the last minute.
/// assert_eq!(diff_card(&[counter.at(now), counter.since(60, now)?])?.count(), 1);
/// # Ok::<(), rollcall_core::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) counter: &'a Counter,
    /// The largest age, in slices, of the members in the view. It is 0 without a window, and `None` if no member can be
    /// in the view.
    most_age: Option<u8>,
}

impl Counter {
    /// A view of all members that have not expired at `time`.
    pub fn at(&self, time: Time) -> View<'_> {
        self.view(|window| window.oldest_live(window.present(self.reached(), time)))
    }

    /// A view of the members that were added in the last `seconds`. It begins with a whole slice, so it may be longer
    /// by up to one slice.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `seconds` is 0 or exceeds the window, and [`Error::Incompatible`] without a window.
    pub fn since(&self, seconds: u64, time: Time) -> Result<View<'_>, Error> {
        Window::of_span(self.window(), seconds)?;
        Ok(self.view(|window| window.since(seconds, self.reached(), time)))
    }

    fn view(&self, since: impl FnOnce(&Window) -> i128) -> View<'_> {
        let most_age = self.ring().map_or(Some(0), |ring| ring.most_age_since(since(&ring.window)));
        View { counter: self, most_age }
    }

    /// The history of the counter, from the present slice back. Each row has the Unix time at which a slice begins, and
    /// the number of distinct members that were added since that time.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn history(&self, time: Time) -> Result<Vec<(i64, Estimated)>, Error> {
        let Some(window) = self.window() else { return Ok(Vec::new()) };
        let present = window.present(self.reached(), time);
        let passed = present - self.reached();
        let counts = self.held.history(self.ages())?;
        let mut rows = try_with_capacity(counts.len())?;
        for row in 0..counts.len() as u64 {
            // A manual clock begins at 0. `start` is negative for slices before that.
            let start = (i128::from(present) - i128::from(row)) * i128::from(window.slice_seconds());
            let start = i64::try_from(start).unwrap_or(i64::MAX);
            rows.push((start, row.checked_sub(passed).map_or(Estimated::exact(0), |age| counts[age as usize])));
        }
        Ok(rows)
    }
}

impl<'a> View<'a> {
    /// The number of distinct members in the view, rounded.
    pub fn count(&self) -> u64 {
        // The counter caches the count of all its members.
        if self.is_whole() { self.counter.count() } else { self.estimated().count() }
    }

    /// Whether all members of the counter are in the view.
    pub(super) fn is_whole(&self) -> bool {
        self.most_age == Some(self.counter.ages().most_age)
    }

    /// The estimated number of members in the view, with the standard error of the rounded number.
    pub fn estimated(&self) -> Estimated {
        self.counter.held.estimated(self.counter.ages(), self.most_age)
    }

    /// Whether the counter is exact.
    pub fn is_exact(&self) -> bool {
        self.counter.is_exact()
    }

    /// The members, in the order in which they were added.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates, unless no member is in the view and its exact limit is not 0.
    pub fn members(&self) -> Result<impl Iterator<Item = Member<'a>> + Clone + use<'a>, Error> {
        if !self.is_exact() && (self.counter.params().exact_limit == 0 || self.has_any()) {
            let &Params { exact_limit, exact_bytes, .. } = self.counter.params();
            return Err(Error::NotExact { exact_limit, exact_bytes });
        }
        let (view, is_whole) = (*self, self.is_whole());
        Ok(self.records().filter_map(move |(tag, member)| (is_whole || view.sees(tag)).then_some(member)))
    }

    /// The members of an exact counter, each with its age in slices, in the order in which they were added.
    pub(super) fn aged(&self) -> impl Iterator<Item = (u8, Member<'a>)> + Clone + use<'a> {
        let (ages, view) = (self.counter.ages(), *self);
        self.records().filter(move |&(tag, _)| view.sees(tag)).map(move |(tag, member)| (ages.age(tag), member))
    }

    fn records(&self) -> Records<'a> {
        self.counter.held.members().map(Members::iter).unwrap_or_default()
    }

    /// The members, each with the seconds since the slice began in which it was last added, oldest first. So these
    /// seconds are an upper bound of a member's age. Members of one slice come in any order.
    ///
    /// # Errors
    /// [`Error::Incompatible`] without a window, [`Error::OutOfMemory`], and the errors of [`Self::members`].
    pub fn members_with_ages(&self, time: Time) -> Result<Vec<(Member<'a>, u64)>, Error> {
        let Some(window) = self.counter.window() else { return Err(Window::none()) };
        drop(self.members()?);
        let newest = self.counter.reached();
        let now = window.now(window.present(newest, time), time);
        let start = |age: u8| (i128::from(newest) - i128::from(age)) * i128::from(window.slice_seconds());
        let seconds = |age: u8| u64::try_from(now - start(age)).unwrap_or(0);
        let mut members = try_collect(self.count() as usize, self.aged().map(|(age, member)| (member, seconds(age))))?;
        members.sort_unstable_by_key(|&(_, seconds)| std::cmp::Reverse(seconds));
        Ok(members)
    }

    /// Whether `item` is a member in the view.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the counter estimates, unless no member is in the view and its exact limit is not 0.
    pub fn contains(&self, item: impl AsRef<[u8]>) -> Result<bool, Error> {
        let item = item.as_ref();
        let Held::Exact(members) = &self.counter.held else { return self.members().map(|_| false) };
        Ok(members.tag_of(item, members.hash_of(item)).is_some_and(|tag| self.sees(tag)))
    }

    /// The age in slices of the member `item`, whose [`table_hash`] is `hash`; `None` if `item` is no member. Without a
    /// window the age is 0.
    ///
    /// # Errors
    /// The errors of [`Self::members`].
    #[inline]
    pub(super) fn age_of(&self, item: &[u8], hash: u64) -> Result<Option<u8>, Error> {
        match &self.counter.held {
            Held::Exact(members) => {
                let tag = members.tag_of(item, hash).filter(|&tag| self.sees(tag));
                Ok(tag.map(|tag| self.counter.ages().age(tag)))
            }
            // A bitmap cannot tell whether `item` is a member. So `members` returns an error, unless it knows that the
            // view has no members.
            Held::Estimating(_) => self.members().map(|_| None),
        }
    }

    /// Whether a member with this slice tag is in the view.
    fn sees(&self, tag: u8) -> bool {
        self.most_age.is_some_and(|most_age| self.counter.ages().age(tag) <= most_age)
    }

    /// The place of the member `item` in the set of an exact counter; `None` if `item` is no member.
    pub(super) fn place_of(&self, item: &[u8]) -> Option<usize> {
        let (place, tag) = self.counter.held.members()?.find(item, table_hash(item))?;
        (self.counter.ages().age(tag) <= self.most_age?).then_some(place)
    }

    /// A counter of the members in the view. It is the counter itself if the view has all members, otherwise a new
    /// counter without a window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn counter(&self) -> Result<Cow<'a, Counter>, Error> {
        if self.is_whole() { Ok(Cow::Borrowed(self.counter)) } else { self.plain() }
    }

    /// A counter of the members in the view, always without a window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn plain(&self) -> Result<Cow<'a, Counter>, Error> {
        if self.counter.ring().is_none() {
            return Ok(Cow::Borrowed(self.counter));
        }
        let (spec, ages) = (*self.counter.spec, self.counter.ages());
        let Some(most_age) = self.most_age.filter(|_| self.has_any()) else {
            return Counter::new(spec.params).map(Cow::Owned);
        };
        let held = match &self.counter.held {
            Held::Exact(all) => Held::Exact(all.within(ages, most_age)?),
            Held::Estimating(_) => Held::Estimating(Box::new(union_of(spec.layout, &[*self])?.formed(|_| Ok(()))?)),
        };
        Ok(Cow::Owned(Counter::holding(spec, held, None)))
    }

    pub(super) fn has_any(&self) -> bool {
        self.counter.held.has_any(self.counter.ages(), self.most_age)
    }

    pub(super) fn lower_bound(&self) -> u32 {
        if self.is_exact() { self.count() as u32 } else { self.counter.lower_bound() }
    }

    /// Equal for views of the same members of the same counter.
    pub(super) fn id(&self) -> (usize, Option<u8>) {
        (std::ptr::from_ref(self.counter).addr(), self.most_age)
    }
}

/// The bitmap of the union of all views, in this layout, with a bit for each slot of every segment.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn union_of(layout: Layout, views: &[View<'_>]) -> Result<Slots, Error> {
    let mut union = Slots::wide(layout, Ages::PLAIN)?;
    views.iter().for_each(|view| view.counter.mark_in(&mut union, view.most_age, 0));
    Ok(union)
}

#[cfg(test)]
pub(super) mod tests;
