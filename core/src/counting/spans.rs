//! What a windowed counter has seen since a slice: who, and how many.

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::estimate::Estimated;
use crate::counting::held::Held;
use crate::counting::held::bitmap::{Bitmap, Slots};
use crate::counting::held::members::Members;
use crate::counting::held::words::{Words, zeroed_words};
use crate::counting::listing;
use crate::error::Error;
use crate::hash::hash64;
use crate::size_limit::try_with_capacity;
use crate::window::Time;

impl Counter {
    /// The members that a windowed counter has seen in `slice` or later, all members of another, in the order in which
    /// they came. A member that died comes again at the end. That there are none is known of an estimate too.
    ///
    /// # Errors
    /// Those of [`Self::members`].
    pub fn members_since(&self, slice: i128) -> Result<listing::Iter<'_>, Error> {
        let Some(set) = self.windowed() else { return self.members() };
        let (ages, most_age) = (set.ring().ages(), set.ring().most_age_since(slice));
        match set.held() {
            Held::Exact(members) => Ok(listing::Iter::windowed(members.iter(), ages, most_age)),
            Held::Estimating(_) if !set.has_any(most_age) => Ok(listing::Iter::none()),
            Held::Estimating(_) => Err(self.not_exact()),
        }
    }

    /// Is `item` a member that was seen in `slice` or later?
    ///
    /// # Errors
    /// Those of [`Self::contains`], if any were seen then.
    pub fn contains_since(&self, item: impl AsRef<[u8]>, slice: i128) -> Result<bool, Error> {
        let item = item.as_ref();
        Ok(self.age_of_member(item, hash64(item, self.params().seed), slice)?.is_some())
    }

    /// A counter without a window of those that it has seen in `slice` or later: the same as one that has seen only them.
    /// If none were, it is exact. Of a counter without a window it is a copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn seen_since(&self, slice: i128) -> Result<Counter, Error> {
        let Some(set) = self.windowed() else { return self.try_clone() };
        let (&params, layout, ages) = (self.params(), self.layout(), set.ring().ages());
        let Some(most_age) = set.ring().most_age_since(slice).filter(|&most_age| set.has_any(Some(most_age))) else {
            return Counter::with_layout(params, layout);
        };
        let bitmap = match set.held() {
            Held::Exact(held) => {
                let mut members = Members::new();
                for (_, member) in held.iter().filter(|&(tag, _)| ages.age(tag) <= most_age) {
                    members.insert(member, hash64(member, params.seed), params.seed, ())?;
                }
                return Ok(Self::with_contents(params, layout, Contents::Plain(Held::Exact(members))));
            }
            Held::Estimating(bitmap) => match bitmap.slots() {
                Slots::Sparse(held) => {
                    let live = held.iter().filter(|&(_, tag)| ages.age(tag) <= most_age);
                    Bitmap::from_ascending(layout, live.map(|(position, _)| (position, ())), ())?
                }
                Slots::Dense(cells) => {
                    let mut words = zeroed_words(layout)?;
                    cells.to_words(ages, most_age, &mut words);
                    Bitmap::dense(layout, Words::counted(layout, words))
                }
            },
        };
        Ok(Self::of_slots(params, bitmap))
    }

    /// The count at a time, Unix seconds. It is made out of what is there, without a counter beside.
    ///
    /// # Errors
    /// None; the signature is that of counts of several counters.
    pub fn count_at(&self, time: Time) -> Result<u64, Error> {
        if self.oldest_alive(time) == self.oldest_alive(Time::Reached) {
            return Ok(self.count());
        }
        Ok(self.estimated_at(time)?.count())
    }

    /// As [`Self::count_at`], with the standard error.
    ///
    /// # Errors
    /// As there.
    pub fn estimated_at(&self, time: Time) -> Result<Estimated, Error> {
        Ok(self.seen_by(self.oldest_alive(time)))
    }

    /// As [`Self::estimated_at`], of those only that were seen in the last `seconds` at least. Without a window all were.
    ///
    /// # Errors
    /// As there.
    pub fn count_since(&self, seconds: u64, time: Time) -> Result<Estimated, Error> {
        Ok(self.seen_by(self.since(seconds, time)))
    }

    /// How many it has seen in `slice` or later.
    fn seen_by(&self, slice: i128) -> Estimated {
        match self.windowed() {
            None => self.estimated(),
            Some(set) => set.estimated(set.ring().most_age_since(slice)),
        }
    }

    /// For every slice that is alive, from the present one back: when it begins, Unix seconds, and how many distinct
    /// members were seen since. None without a window.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn history(&self, time: Time) -> Result<Vec<(i64, u64)>, Error> {
        let Some((set, window)) = self.windowed().zip(self.window()) else { return Ok(Vec::new()) };
        let present = self.present_slice(time);
        let passed = present - self.reached();
        let counts = set.history()?;
        let mut rows = try_with_capacity(counts.len())?;
        for row in 0..counts.len() as u64 {
            // By hand a window begins at slice 0: those before it begin before the epoch.
            let start = (i128::from(present) - i128::from(row)) * i128::from(window.slice_seconds());
            let start = i64::try_from(start).unwrap_or(i64::MAX);
            let count = row.checked_sub(passed).map_or(0.0, |age| counts[age as usize]);
            rows.push((start, libm::round(count) as u64));
        }
        Ok(rows)
    }
}
