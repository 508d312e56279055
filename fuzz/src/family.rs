//! The trait of filters and counters, so that one set of checks applies to both.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::{Counter, diff_card, inter_card};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::size_limit::{SizeLimit, Unlimited};
use rollcall_core::unstable::persist::{Partial, PartialCounter};
use rollcall_core::window::Time;

use crate::fields::Field;
use crate::input::{Input, item};
use crate::limit::Limit;
use crate::made;
use crate::values::{load_filter, load_ours, rdb_of, rdb_of_filter, same_dump};

/// Number of items that every value is asked about, whether or not the value has them.
const ASKED: usize = 16;

/// Times at which a value is asked: the newest time it has reached, and times from the first to the last possible.
const TIMES: [Time; 4] = [Time::Reached, Time::At(0), Time::At(1_800_000_000), Time::At(u64::MAX)];

/// A filter or a counter, as the fuzz targets use it.
pub trait Family: Value {
    /// Makes an empty value from the input.
    ///
    /// # Errors
    /// If the input chooses invalid parameters, or if the value would exceed `limit`.
    fn empty(input: &mut Input<'_>, limit: &Limit) -> Result<Self, Error>;

    /// Makes a value from the input, with the items that the input chooses.
    ///
    /// # Errors
    /// Those of [`Self::empty`].
    fn made(input: &mut Input<'_>, limit: &Limit) -> Result<Self, Error> {
        let mut value = Self::empty(input, limit)?;
        made::fill(&mut value, input, limit);
        Ok(value)
    }

    /// Returns an equal value.
    fn copy(&self) -> Self;

    /// Returns an empty value with the same parameters.
    fn emptied(&self) -> Self;

    /// Whether both values are equal in every bit and number.
    fn is_same(&self, other: &Self) -> bool;

    /// The RDB value that a server stores for this value.
    fn save(&self) -> Vec<Field>;

    /// Loads a value from the RDB value `fields`, which may be incomplete.
    ///
    /// # Errors
    /// If loading fails, or with [`Error::Corrupt`] if fields are left over.
    fn load(&self, fields: &[Field], limit: &impl SizeLimit) -> Result<Self, Error>;

    /// Asks the value every question that its interface has, and checks the answers.
    ///
    /// # Panics
    /// If an answer is impossible.
    fn check_answers(&self);
}

impl Family for BloomFilter {
    fn empty(input: &mut Input<'_>, limit: &Limit) -> Result<Self, Error> {
        made::empty_filter(input, limit)
    }

    fn copy(&self) -> Self {
        self.try_clone().expect("memory")
    }

    fn emptied(&self) -> Self {
        self.new_like(&Unlimited).expect("memory")
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn save(&self) -> Vec<Field> {
        rdb_of_filter(self)
    }

    fn load(&self, fields: &[Field], limit: &impl SizeLimit) -> Result<Self, Error> {
        load_filter(self.layout(), fields, limit)
    }

    fn check_answers(&self) {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        assert!(is_share(self.fill_ratio()) && is_share(self.false_positive_rate()), "{self:?}");
        let bitmaps: u64 = self.sub_filters().map(|one| one.num_bytes).sum();
        assert!(self.size_bytes() >= bitmaps && self.num_bytes() == self.size_bytes());
        assert!(self.sub_filters().all(|one| one.set_bits.max(one.num_items) <= 8 * one.num_bytes));
        if self.is_empty() {
            assert!((self.num_items(), self.fill_ratio()) == (0, 0.0), "{self:?}");
        }
        let asked: Vec<&[u8]> = (0..ASKED).map(item).collect();
        let start =
            self.windowing().and_then(|windowing| Some(Time::At(windowing.window.start_of(self.newest_slice()?))));
        for now in TIMES.into_iter().chain(start) {
            let (present, mut found) = (self.at(now), Vec::new());
            present.may_contain_all(asked.iter().copied(), |is_there| found.push(is_there));
            assert!(asked.iter().zip(&found).all(|(item, &is_there)| present.may_contain(item) == is_there));
            assert!(is_share(present.fill_ratio()) && is_share(present.false_positive_rate()));
            assert!(present.num_items() <= self.num_items() && self.present_slice(now) >= self.newest_slice());
        }
    }
}

impl Family for Counter {
    fn empty(input: &mut Input<'_>, _limit: &Limit) -> Result<Self, Error> {
        made::empty_counter(input)
    }

    fn copy(&self) -> Self {
        self.try_clone().expect("memory")
    }

    fn emptied(&self) -> Self {
        self.new_like().expect("memory")
    }

    fn is_same(&self, other: &Self) -> bool {
        let state = |counter: &Self| (*counter.params(), counter.is_exact(), counter.estimate().to_bits());
        state(self) == state(other) && same_dump(self, other)
    }

    fn save(&self) -> Vec<Field> {
        rdb_of(self)
    }

    fn load(&self, fields: &[Field], limit: &impl SizeLimit) -> Result<Self, Error> {
        load_ours(fields, limit).and_then(PartialCounter::finish)
    }

    fn check_answers(&self) {
        let is_number = |number: f64| number.is_finite() && number >= 0.0;
        assert!(is_number(self.estimate()) && self.standard_error() >= 0.0, "{self:?}");
        // The size includes parameters that counters share, so it may exceed the sum by some bytes.
        assert!(self.num_bytes() + 256 >= self.size_bytes(), "{} of {}", self.num_bytes(), self.size_bytes());
        match self.members() {
            Ok(members) => {
                let (len, count) = (members.clone().count() as u64, self.count());
                assert!(self.is_exact() || len == 0, "{self:?}");
                assert_eq!((len, self.standard_error() == 0.0 || count == 0), (count, true));
                members.for_each(|member| assert_eq!(self.contains(member.text()), Ok(true)));
            }
            Err(_) => assert!(!self.is_exact()),
        }
        for number in 0..ASKED / 2 {
            let _ = self.contains(item(number));
            let _ = self.since(10, Time::Reached).map(|view| view.contains(item(number)));
        }
        let start = self.window().map(|window| Time::At(window.start_of(self.newest_slice().unwrap_or(0))));
        for now in TIMES.into_iter().chain(start) {
            let all = self.at(now);
            let most = all.estimated().estimate;
            assert!(is_number(most) && all.count() == all.estimated().count());
            let Some(window) = self.window() else { continue };
            let of_seconds = |seconds| self.since(seconds, now).expect("seconds of its window").estimated().estimate;
            let (of_moment, of_now) = (of_seconds(1), of_seconds(window.seconds()));
            assert!(is_number(of_moment) && of_moment <= of_now && of_now <= most, "{of_moment}, {of_now} of {most}");
            // If the window is no multiple of the slice, a time span as long as the window covers fewer slices.
            assert!(of_now == most || window.seconds() % window.slice_seconds() != 0, "{of_now} of {most}");
            assert!(self.since(0, now).is_err() && self.since(window.seconds() + 1, now).is_err());
        }
        let rows = self.history(start.unwrap_or(Time::Reached)).expect("memory");
        assert!(rows.is_sorted_by(|newer, older| newer.0 >= older.0 && newer.1.count() <= older.1.count()), "{rows:?}");
        let all = self.at(Time::Reached);
        let seen = all.counter().expect("memory");
        assert!((seen.is_exact() || !self.is_exact()) && seen.count() == self.count());
        assert_eq!(diff_card(&[all, all]).expect("the same seed").count(), 0);
        // Every command must report the same number for the same members.
        assert_eq!(diff_card(&[all]).expect("a seed"), all.estimated());
        let common = inter_card(&[all, all]).expect("the same seed").estimate;
        assert!((common - self.estimate()).abs() <= 1e-6 * common, "{common} of {self:?}");
        // Both copies behave equally when the same item is added.
        let (mut one, mut other) = (self.copy(), self.copy());
        assert_eq!(
            one.live(Time::Reached).add(b"one more", &Unlimited),
            other.live(Time::Reached).add(b"one more", &Unlimited)
        );
    }
}
