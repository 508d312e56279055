//! Filters that forget, as filters: what others have no use for.

use super::filter::{BloomFilter, EitherChain, reached};
use super::params::Params;
use super::ring::{Forgotten, Moved, Ring};
use super::sliding::Sliding;
use crate::admission::{Admission, Terms};
use crate::error::Error;
use crate::size_limit::SizeLimit;
use crate::window::{Merging, Pace};

/// A filter as it answers at some time. What is forgotten by then is skipped, and nothing is changed.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    filter: &'a BloomFilter,
    slices_later: u64,
}

impl BloomFilter {
    /// An empty filter that forgets. Its methods without a time go by the newest slice that it has reached; those with
    /// one take Unix seconds.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// let (now, later) = (1_800_000_000, 1_800_000_000 + 2 * 86_400);
    /// let mut sent = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// sent.advance_before_adding([&b"ann"[..]], now);
    /// assert!(sent.add(b"ann", &Unlimited)?);
    /// assert!(sent.at(now + 86_399).may_contain(b"ann"));
    /// assert!(!sent.at(later).may_contain(b"ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for parameters outside their ranges, and what `limit` says, which is asked for all slices at
    /// once.
    pub fn windowed(params: Params, sliding: Sliding, now: u64, limit: &impl SizeLimit) -> Result<Self, Error> {
        let newest_slice = sliding.window().map_or(0, |window| window.first_slice(now));
        Self::windowed_at(params, sliding, newest_slice, limit)
    }

    /// As [`Self::windowed`], beginning with this slice.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// let filter = BloomFilter::windowed_at(params, day, 7, &Unlimited)?;
    /// assert_eq!(filter.newest_slice(), Some(7));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::windowed`].
    pub fn windowed_at(
        params: Params,
        sliding: Sliding,
        newest_slice: u64,
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        Ok(Ring::new(params, sliding, newest_slice, limit)?.into())
    }

    /// How far back it reaches, if it forgets.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// assert_eq!(filter.sliding(), Some(&day));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn sliding(&self) -> Option<&Sliding> {
        self.as_ring().map(Ring::sliding)
    }

    /// The newest slice that it has reached, if it forgets.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// assert_eq!(filter.newest_slice(), Some(now / 21_600));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn newest_slice(&self) -> Option<u64> {
        self.as_ring().map(Ring::newest_slice)
    }

    /// Whether it asks a clock.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// assert!(filter.asks_clock());
    /// filter.set_pace(Pace::Manual);
    /// assert!(!filter.asks_clock());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn asks_clock(&self) -> bool {
        let window = self.sliding().and_then(Sliding::window);
        window.is_some_and(|window| window.pace() == Pace::Clock)
    }

    /// The filter as it answers at this time.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(filter.at(now).may_contain(b"ann"));
    /// assert!(!filter.at(now + 2 * 86_400).may_contain(b"ann"));
    /// // Nothing was changed by asking.
    /// assert!(filter.may_contain(b"ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    #[inline]
    pub fn at(&self, now: u64) -> Present<'_> {
        Present { filter: self, slices_later: self.as_ring().map_or(0, |ring| ring.slices_later(now)) }
    }

    /// As [`Self::admit`], at a time, and tells which move was made. What changes the filter makes the one that is due
    /// first; what does not, as a dry run, asks it as it is by then.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// use rollcall_core::admission::{Admission, Terms};
    /// let terms = Terms { limit: 1, all: false, dry_run: false };
    /// let items = ["ann", "ben"].map(str::as_bytes);
    /// let (told, _) = filter.admit_at(items.into_iter(), terms, now, &Unlimited)?;
    /// assert_eq!(told, [Admission::Admitted, Admission::Refused]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub fn admit_at<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a T>,
        terms: Terms,
        now: u64,
        limit: &impl SizeLimit,
    ) -> Result<(Vec<Admission>, Moved), Error> {
        match &mut self.chain {
            EitherChain::Windowed(ring) => ring.admit(items.map(AsRef::as_ref), terms, Some(now), limit),
            EitherChain::Lines(_) | EitherChain::Classic(_) => Ok((self.admit(items, terms, limit)?, Moved::not())),
        }
    }

    /// How many times an item was put into a sub-filter that is still there. It differs from
    /// [`num_items`](Self::num_items) by the items that were renewed. Equal numbers before and after an
    /// [`admit`](Self::admit) mean that it changed nothing: this shows what the answers do not, whether known items were
    /// renewed.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let online = Sliding::time(60, 2, Pace::Manual, true)?;
    /// let mut filter = BloomFilter::windowed(params, online, 0, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// filter.advance(1);
    /// filter.add(b"ann", &Unlimited)?;
    /// assert_eq!((filter.num_items(), filter.additions()), (1, 2));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn additions(&self) -> u64 {
        match &self.chain {
            EitherChain::Windowed(ring) => ring.additions(),
            EitherChain::Lines(filter) => filter.num_items(),
            EitherChain::Classic(filter) => filter.num_items(),
        }
    }

    /// Takes the memory that the first item needs. A filter that forgets has none before it; others have it from the
    /// start, and nothing is done.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 0, seed: 0 };
    /// let mut filter = BloomFilter::windowed(params, Sliding::last(1)?, 0, &Unlimited)?;
    /// assert_eq!(filter.room(), 0);
    /// filter.reserve_first(&Unlimited)?;
    /// assert_eq!(filter.room(), 1000);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `limit` says, [`Error::OutOfMemory`]. Nothing is changed then.
    pub fn reserve_first(&mut self, limit: &impl SizeLimit) -> Result<(), Error> {
        match &mut self.chain {
            EitherChain::Windowed(ring) => ring.reserve_first(limit),
            EitherChain::Lines(_) | EitherChain::Classic(_) => Ok(()),
        }
    }

    /// Begins all slices up to this one, and forgets what dies by that. A slice that has begun changes nothing, and so
    /// does any in a filter that goes by no slices of time.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// let forgotten = filter.advance(filter.newest_slice().unwrap_or(0) + 5);
    /// assert!(!filter.may_contain(b"ann"));
    /// // The memory is freed here, or on another thread.
    /// drop(forgotten);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn advance(&mut self, slice: u64) -> Forgotten {
        self.ring_of_time().map_or_else(Forgotten::default, |ring| ring.advance(slice))
    }

    /// Renumbers all slices so that the newest is this earlier one: nothing is forgotten early after a clock had jumped
    /// ahead. Another slice changes nothing.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// let slice = now / 21_600;
    /// filter.advance(slice + 1000);
    /// filter.add(b"ann", &Unlimited)?;
    /// filter.rebase(slice);
    /// assert_eq!(filter.newest_slice(), Some(slice));
    /// assert!(filter.may_contain(b"ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn rebase(&mut self, slice: u64) {
        if let Some(ring) = self.ring_of_time() {
            ring.rebase(slice);
        }
    }

    /// Lets the clock, or its user, move it on from now on.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.set_pace(Pace::Manual);
    /// assert_eq!(filter.at(now + 86_400).slice(), filter.newest_slice());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn set_pace(&mut self, pace: Pace) {
        if let Some(ring) = self.ring_of_time() {
            ring.set_pace(pace);
        }
    }

    /// Makes the move that is due at this time: what is to come before any change.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// use rollcall_core::window::Move;
    /// let later = now + 21_600;
    /// assert_eq!(filter.advance_due(later).made, Move::Advance(later / 21_600));
    /// assert_eq!(filter.advance_due(later).made, Move::Stay);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn advance_due(&mut self, now: u64) -> Moved {
        self.ring_of_time().map_or_else(Moved::not, |ring| ring.advance_due(now))
    }

    /// As [`Self::advance_due`], if adding these items would change anything. The answers to them stay the same.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// use rollcall_core::window::Move;
    /// filter.add(b"ann", &Unlimited)?;
    /// let later = now + 21_600;
    /// // It is known, so adding it changes nothing.
    /// assert_eq!(filter.advance_before_adding([&b"ann"[..]], later).made, Move::Stay);
    /// assert_eq!(filter.advance_before_adding([&b"ben"[..]], later).made, Move::Advance(later / 21_600));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn advance_before_adding<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a T>,
        now: u64,
    ) -> Moved {
        let items = items.into_iter().map(AsRef::as_ref);
        self.ring_of_time().map_or_else(Moved::not, |ring| ring.advance_before_adding(items, now))
    }

    /// As [`Self::merge`], and gives back what it has forgotten by that: freeing much of it takes a while.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let day = Sliding::time(86_400, 4, Pace::Manual, false)?;
    /// let mut here = BloomFilter::windowed(params, day, 0, &Unlimited)?;
    /// let mut there = here.try_clone()?;
    /// there.add(b"ann", &Unlimited)?;
    /// let (changed, forgotten) = here.merge_forgetting(&[&there], &Unlimited)?;
    /// assert!(changed && here.may_contain(b"ann"));
    /// std::thread::spawn(move || drop(forgotten));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::merge`].
    pub fn merge_forgetting(
        &mut self,
        others: &[&BloomFilter],
        limit: &impl SizeLimit,
    ) -> Result<(bool, Forgotten), Error> {
        let (changed, _, forgotten) = self.unite(others, None, limit)?;
        Ok((changed, forgotten))
    }

    /// What a merge with these at this time does to the numbers of its slices, and first whether it may be.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// let mut ahead = filter.try_clone()?;
    /// ahead.advance(now / 21_600 + 2);
    /// assert!(filter.merging(&[&ahead], now).is_err());
    /// assert!(ahead.merging(&[&filter], now).is_ok());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where one of these is more than a slice ahead: after a merge, this filter would have forgotten
    /// early.
    pub fn merging(&self, others: &[&BloomFilter], now: u64) -> Result<Merging, Error> {
        match self.as_ring() {
            Some(ring) => ring.merging(others.iter().filter_map(|other| other.as_ring()), now),
            None => Ok(Merging::STAYS),
        }
    }

    /// As [`Self::merge_forgetting`], at this time, with the rebase that is due by then. Tells which: the same merge between
    /// these moves gives the same filter elsewhere.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::{Move, Pace};
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// let (jumped, now) = (2_000_000_000, 1_800_000_000);
    /// let mut filter = BloomFilter::windowed(params, day, jumped, &Unlimited)?;
    /// let mut other = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// other.add(b"ann", &Unlimited)?;
    /// let (changed, moves, _) = filter.merge_at(&[&other], now, &Unlimited)?;
    /// assert_eq!((changed, moves.before, moves.after), (true, Move::Rebase(now / 21_600), Move::Stay));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::merging`] and [`Self::merge`]. Nothing is changed then, and nothing renumbered.
    pub fn merge_at(
        &mut self,
        others: &[&BloomFilter],
        now: u64,
        limit: &impl SizeLimit,
    ) -> Result<(bool, Merging, Forgotten), Error> {
        self.unite(others, Some(now), limit)
    }

    fn ring_of_time(&mut self) -> Option<&mut Ring> {
        match &mut self.chain {
            EitherChain::Windowed(ring) => ring.sliding().window().is_some().then_some(ring),
            _ => None,
        }
    }
}

impl Present<'_> {
    /// The slice that it is.
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// assert_eq!(filter.at(now + 21_600).slice(), Some(now / 21_600 + 1));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn slice(&self) -> Option<u64> {
        Some(self.filter.newest_slice()?.saturating_add(self.slices_later))
    }

    /// As [`BloomFilter::may_contain`].
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(filter.at(now).may_contain(b"ann"));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    #[inline]
    pub fn may_contain(&self, item: impl AsRef<[u8]>) -> bool {
        let item = item.as_ref();
        reached!(&self.filter.chain, may_contain(item), self.slices_later)
    }

    /// As [`BloomFilter::may_contain_all`].
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// let mut known = Vec::new();
    /// filter.at(now).may_contain_all([&b"ann"[..], b"zoe"], |found| known.push(found));
    /// assert_eq!(known, [true, false]);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn may_contain_all<'a, T: AsRef<[u8]> + ?Sized + 'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        found: impl FnMut(bool),
    ) {
        let items = items.into_iter().map(AsRef::as_ref);
        reached!(&self.filter.chain, may_contain_all(items, found), self.slices_later);
    }

    /// As [`BloomFilter::num_items`].
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert_eq!((filter.at(now).num_items(), filter.at(now + 2 * 86_400).num_items()), (1, 0));
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn num_items(&self) -> u64 {
        reached!(&self.filter.chain, num_items(), self.slices_later)
    }

    /// As [`BloomFilter::fill_ratio`].
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// filter.add(b"ann", &Unlimited)?;
    /// assert!(filter.at(now).fill_ratio() > filter.at(now + 2 * 86_400).fill_ratio());
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        reached!(&self.filter.chain, fill_ratio(), self.slices_later)
    }

    /// As [`BloomFilter::false_positive_rate`].
    ///
    /// ```
    /// # use rollcall_core::bloom::{BloomFilter, Params, Sliding};
    /// # use rollcall_core::size_limit::Unlimited;
    /// # use rollcall_core::window::Pace;
    /// # let params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };
    /// # let day = Sliding::time(86_400, 4, Pace::Clock, false)?;
    /// # let now = 1_800_000_000;
    /// # let mut filter = BloomFilter::windowed(params, day, now, &Unlimited)?;
    /// assert_eq!(filter.at(now).false_positive_rate(), 0.0);
    /// # Ok::<(), rollcall_core::error::Error>(())
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        reached!(&self.filter.chain, false_positive_rate(), self.slices_later)
    }
}

#[cfg(test)]
mod tests;
