//! Admission: new items are added to a filter or counter only while it holds fewer items than a limit.

use hashbrown::HashTable;

use crate::error::Error;
use crate::size_limit::{array_bytes, try_with_capacity};
use crate::window::{Time, Window};

/// The outcome of admission for one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The item was new, and was added.
    Admitted,
    /// The item is in the filter or counter already, or repeats an earlier item of the same call that was admitted.
    Known,
    /// The item is new, and was rejected.
    Rejected,
}

impl Admission {
    /// The most bytes per item that a call of many items takes for itself, besides its answers.
    #[doc(hidden)]
    pub const TABLE_BYTES: u64 = 96;
}

/// The limit and the options of one call that admits items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// New items are admitted while the filter or counter holds fewer than `limit` items.
    pub limit: u64,
    /// Whether to admit either all new items or none.
    pub all: bool,
    /// Whether to only report the outcome, and change nothing.
    pub dry_run: bool,
}

impl Terms {
    /// The number of admitted items, if a call has `new` distinct new items and the filter or counter holds `present`
    /// items.
    pub(crate) fn admitted(&self, present: u64, new: usize) -> usize {
        let left = usize::try_from(self.limit.saturating_sub(present)).unwrap_or(usize::MAX);
        if self.all && new > left { 0 } else { new.min(left) }
    }

    /// The room that a call leaves. `by_age` has the number of items for each age in slices, from the present slice on;
    /// without a window it has one element. `fits` is the number of items for which a filter that does not scale has
    /// bits. `new` is the number of distinct new items of the call, and `all` that of the items which have to fit into
    /// the limit together. `window` comes with the present slice, if time moves it.
    pub(crate) fn room(
        &self,
        by_age: &[u64],
        fits: u64,
        new: usize,
        all: usize,
        window: Option<(&Window, u64, Time)>,
    ) -> Room {
        let left = |by_age: &[u64]| {
            self.limit.saturating_sub(by_age.iter().fold(0, |sum: u64, items| sum.saturating_add(*items))).min(fits)
        };
        let needed = if self.all { new.max(1) as u64 } else { 1 };
        let items = left(by_age);
        // After `slices` slices, those of the greatest ages have expired.
        let mut waits = 1..=by_age.len() as u64;
        let retry_after = if items >= needed {
            Some(0)
        } else {
            window.filter(|_| !self.all || all as u64 <= self.limit).and_then(|(window, present, time)| {
                let slices = waits.find(|&slices| left(&by_age[..by_age.len() - slices as usize]) >= needed)?;
                let until = window.start_of(present.saturating_add(slices));
                Some(u64::try_from(i128::from(until) - window.now(present, time)).unwrap_or(0))
            })
        };
        Room { items, retry_after }
    }
}

/// The room that a call of `ADMIT` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// How many more new items the next call with the same limit would admit. For a filter that does not scale it is a
    /// lower bound, exact at error rates up to 0.02.
    pub items: u64,
    /// The seconds until so many slices have expired that one new item has room, or, with [`Terms::all`], as many as
    /// the call had. After a refusal, all items of the call must have room then, since its known items may have
    /// expired. It is 0 if there is room now. `None` means never: without a window that follows the clock, or if the
    /// limit itself is too small.
    pub retry_after: Option<u64>,
}

/// The items of a call: known items, which the filter or counter holds already, and distinct new items. All memory is
/// allocated before the first change, so that no allocation can fail after it.
pub(crate) struct LookUp<K> {
    /// For each item, its index in `new`; `None` for a known item.
    items: Vec<Option<u32>>,
    /// The distinct new items, in the order of the call.
    pub(crate) new: Vec<K>,
    places: HashTable<(u64, usize)>,
    /// A buffer for the result of [`Self::into_answers`].
    answers: Vec<Admission>,
}

impl<K: PartialEq> LookUp<K> {
    /// Allocates the memory for `len` items.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn of(len: usize) -> Result<Self, Error> {
        let mut places = HashTable::new();
        let needed_bytes = array_bytes::<(u64, usize)>(len as u64);
        u32::try_from(len).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        places.try_reserve(len, |&(hash, _)| hash).map_err(|_| Error::OutOfMemory { needed_bytes })?;
        let (items, new, answers) = (try_with_capacity(len)?, try_with_capacity(len)?, try_with_capacity(len)?);
        Ok(LookUp { items, new, places, answers })
    }

    /// Records the next item of the call. `key` distinguishes items, and `hash` is the [`table_hash`] of its bytes.
    ///
    /// [`table_hash`]: crate::hash::table_hash
    pub(crate) fn record(&mut self, hash: u64, key: K, is_known: bool) {
        if is_known {
            return self.items.push(None);
        }
        let is_it = |&(other, place): &(u64, usize)| {
            #[cfg(test)]
            crate::hash::tests::COMPARED.set(crate::hash::tests::COMPARED.get() + 1);
            other == hash && self.new[place] == key
        };
        let (_, place) = *self.places.entry(hash, is_it, |&(hash, _)| hash).or_insert((hash, self.new.len())).get();
        if place == self.new.len() {
            self.new.push(key);
        }
        self.items.push(Some(place as u32));
    }

    /// The outcome of every item, from `of_new`, the outcomes of the distinct new items. A repeated item is
    /// [`Admission::Known`] if its first occurrence was admitted.
    pub(crate) fn into_answers(self, of_new: &[Admission]) -> Vec<Admission> {
        let (mut reported, mut answers) = (0, self.answers);
        answers.extend(self.items.iter().map(|&item| {
            let Some(place) = item else { return Admission::Known };
            let is_first = place as usize == reported;
            reported += usize::from(is_first);
            match of_new[place as usize] {
                Admission::Admitted if !is_first => Admission::Known,
                first => first,
            }
        }));
        answers
    }
}

/// The outcomes of `len` new items, of which the first `admitted` are admitted.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn first_of(admitted: usize, len: usize) -> Result<Vec<Admission>, Error> {
    let mut all = try_with_capacity(len)?;
    all.resize(admitted.min(len), Admission::Admitted);
    all.resize(len, Admission::Rejected);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Admission::{Admitted, Known, Rejected};

    #[test]
    fn items_are_admitted_up_to_the_limit() {
        for (limit, present, new, some, all) in [
            (5, 0, 3, 3, 3),
            (5, 3, 2, 2, 2),
            (5, 4, 2, 1, 0),
            (5, 5, 2, 0, 0),
            (5, 9, 0, 0, 0),
            (u64::MAX, 1, 7, 7, 7),
        ] {
            let terms = |all| Terms { limit, all, dry_run: false };
            assert_eq!(terms(false).admitted(present, new), some);
            assert_eq!(terms(true).admitted(present, new), all);
        }
    }

    /// The hash table has the most bytes per item just above seven eighths of a power of two.
    #[test]
    fn an_admission_takes_at_most_table_bytes_an_item() {
        for len in [917_505, 1 << 20] {
            let LookUp { items, new, places, .. } = LookUp::<(u64, &[u8])>::of(len).unwrap();
            let own = items.capacity() * size_of::<Option<u32>>() + new.capacity() * size_of::<(u64, &[u8])>();
            // A counter also lists the members that it renews, and the outcome of each new item.
            let others = len * (size_of::<&[u8]>() + size_of::<Admission>());
            let most = len as u64 * Admission::TABLE_BYTES;
            assert!((own + places.allocation_size() + others) as u64 <= most, "{len}");
        }
    }

    #[test]
    fn repeats_count_once() {
        let mut look_up = LookUp::of(3).unwrap();
        // Two items have the same hash, so the items themselves are compared.
        for (hash, key, is_known) in
            [(1, "a", false), (1, "b", false), (2, "k", true), (1, "a", false), (3, "c", false), (3, "c", false)]
        {
            look_up.record(hash, key, is_known);
        }
        assert_eq!(look_up.new, ["a", "b", "c"]);
        let of_new = first_of(2, 3).unwrap();
        assert_eq!(of_new, [Admitted, Admitted, Rejected]);
        assert_eq!(look_up.into_answers(&of_new), [Admitted, Admitted, Known, Known, Rejected, Rejected]);
    }
}
