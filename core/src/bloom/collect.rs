//! `Clone`, `Extend` and `FromIterator` for filters. Errors become panics here, since these traits cannot report
//! errors.

use super::filter::BloomFilter;
use super::params::{BitLayout, Params};
use crate::size_limit::Unlimited;
use crate::window::Time;

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

/// Makes a filter that is sized for the number of items, otherwise with [`Params::default`]. The items are first
/// collected into a list.
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
mod tests {
    use super::*;
    use crate::live::BLOCK;

    #[test]
    fn items_of_any_type_come_in_blocks_of_any_length() {
        for len in [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let mut filter: BloomFilter = (0..len as u32).map(u32::to_le_bytes).collect();
            let params = Params { error_rate: 0.01, capacity: len.max(1) as u64, expansion: 2, seed: 0 };
            let mut expected = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
            (0..len as u32).for_each(|item| drop(expected.add(item.to_le_bytes(), &Unlimited)));
            assert!(filter == expected);
            let copy = filter.clone();
            filter.live(Time::Reached).extend(["ann", "ben"]);
            filter.live(Time::Reached).extend([vec![b'z'; 9]]);
            assert!(filter.may_contain("ann") && filter.may_contain("zzzzzzzzz") && !copy.may_contain("ann"));
            assert!(copy == expected);
        }
    }
}
