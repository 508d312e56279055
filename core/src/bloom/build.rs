//! Filters built from many items, on several threads.

use super::chain::SubFilter;
use super::classic::sub_filter::ClassicSubFilter;
use super::filter::{BloomFilter, EitherChain};
use super::lines::sub_filter::LineSubFilter;
use super::params::{BitLayout, Params};
use crate::error::Error;
use crate::hash::Hash128;
use crate::size_limit::SizeLimit;

/// A filter under construction, without a window. It takes hashes instead of items, so that several threads can hash.
#[derive(Debug)]
pub struct FilterBuild(BloomFilter);

impl FilterBuild {
    /// An empty filter for this layout and these parameters.
    ///
    /// # Errors
    /// The errors of [`BloomFilter::new`].
    pub fn new(layout: BitLayout, params: Params, limit: &impl SizeLimit) -> Result<Self, Error> {
        BloomFilter::new(layout, params, limit).map(FilterBuild)
    }

    /// The function that hashes an item for [`Self::add`].
    pub fn hasher(&self) -> impl Fn(&[u8]) -> Hash128 + Copy + Send + Sync + use<> {
        let (layout, seed) = (self.0.layout(), self.0.params().seed);
        move |item| match layout {
            BitLayout::Lines => LineSubFilter::hash(item, seed),
            BitLayout::Classic => ClassicSubFilter::hash(item, seed),
        }
    }

    /// Adds the items with these hashes, in order, and returns how many were new. The result has the same bits and
    /// counts as after [`Live::add_all`](crate::live::Live::add_all). In the cache-line layout, `threads` threads set
    /// the bits. In the classic layout one thread sets them, since the bits of an item lie anywhere in the bitmap.
    ///
    /// # Errors
    /// The errors of [`Live::add`](crate::live::Live::add). The items before the rejected one are added.
    ///
    /// # Panics
    /// If the system cannot start the threads.
    pub fn add(&mut self, blocks: &[&[Hash128]], threads: usize, limit: &impl SizeLimit) -> Result<u64, Error> {
        match &mut self.0.chain {
            EitherChain::Lines(filter) => filter.add_hashed(blocks, threads, limit),
            EitherChain::Classic(filter) => filter.add_hashed(blocks, threads, limit),
            // [`FilterBuild::new`] makes no windowed filter.
            EitherChain::Windowed(_) => Ok(0),
        }
    }

    /// The finished filter.
    pub fn finish(self) -> BloomFilter {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_limit::{MaxBytes, Unlimited};

    /// Test items with repetitions: some items occur twice in a row, others again later.
    fn items(count: u64) -> Vec<[u8; 8]> {
        (0..count).map(|i| if i % 3 == 2 { i / 7 } else { i - i % 2 }).map(u64::to_le_bytes).collect()
    }

    fn built(
        layout: BitLayout,
        params: Params,
        items: &[[u8; 8]],
        block: usize,
        threads: usize,
    ) -> (BloomFilter, u64, Result<(), Error>) {
        let mut build = FilterBuild::new(layout, params, &Unlimited).unwrap();
        let hash = build.hasher();
        let hashes: Vec<Hash128> = items.iter().map(|item| hash(item)).collect();
        let blocks: Vec<&[Hash128]> = hashes.chunks(block).collect();
        let (mut new, mut result) = (0, Ok(()));
        for round in blocks.chunks(3) {
            match build.add(round, threads, &Unlimited) {
                Ok(more) => new += more,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        (build.finish(), new, result)
    }

    /// The cases have one, two, three and five lines per item, with and without growth, few and many threads, and
    /// blocks of any size.
    #[test]
    fn a_filter_built_on_threads_is_the_one_built_in_order() {
        let items = items(30_000);
        let mut lines_per_item = std::collections::BTreeSet::new();
        for (error_rate, capacity, expansion, seed) in [
            (0.01, 50_000, 2, 0),
            (0.3, 15_000, 2, 7),
            (0.0001, 30_000, 0, 0),
            (1e-6, 4_500, 2, 0),
            (1e-9, 10_000, 1, 3),
            (1e-13, 500, 2, 0),
            (0.01, 10, 3, 0),
        ] {
            let params = Params { error_rate, capacity, expansion, seed };
            let mut expected = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
            let mut expected_new = 0;
            let added = |is_new| expected_new += u64::from(is_new);
            expected.add_all(items.iter().map(|item| &item[..]), &Unlimited, added).unwrap();
            lines_per_item.extend(expected.sub_filters().map(|sub| sub.geometry.unwrap().lines_per_item));
            for (block, threads) in [(1 << 20, 1), (2500, 2), (10_011, 3), (777, 8), (5000, 61)] {
                let (filter, new, result) = built(BitLayout::Lines, params, &items, block, threads);
                result.unwrap();
                assert!(filter == expected, "{params:?}, {threads} threads");
                assert_eq!((new, filter.num_items()), (expected_new, expected_new));
            }
        }
        assert!(lines_per_item.len() >= 4 && lines_per_item.contains(&1), "{lines_per_item:?}");
    }

    #[test]
    fn a_classic_filter_is_built_alike() {
        let items = items(20_000);
        // Small sub-filters, and large ones with nothing before them and with some.
        for (capacity, expansion) in [(3000, 2), (30_000, 2), (300, 30)] {
            let params = Params { error_rate: 0.01, capacity, expansion, seed: 0 };
            let mut expected = BloomFilter::new(BitLayout::Classic, params, &Unlimited).unwrap();
            expected.add_all(items.iter().map(|item| &item[..]), &Unlimited, |_| {}).unwrap();
            let (filter, new, result) = built(BitLayout::Classic, params, &items, 4000, 2);
            result.unwrap();
            assert!(filter == expected);
            assert_eq!(new, expected.num_items());
        }
    }

    /// Fewer threads are started than asked for if there are too few items.
    #[test]
    fn more_threads_than_items_may_be_asked_for() {
        let items = items(500);
        let params = Params { error_rate: 0.01, capacity: 10, expansion: 2, seed: 0 };
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            let mut expected = BloomFilter::new(layout, params, &Unlimited).unwrap();
            expected.add_all(items.iter().map(|item| &item[..]), &Unlimited, |_| {}).unwrap();
            let (filter, new, result) = built(layout, params, &items, 100, 1_000_000);
            assert_eq!((result, new), (Ok(()), expected.num_items()));
            assert!(filter == expected);
        }
    }

    #[test]
    fn a_full_filter_rejects_what_it_would_reject_in_order() {
        let items = items(60_000);
        for capacity in [5, 20_000] {
            let params = Params { error_rate: 0.01, capacity, expansion: 0, seed: 0 };
            let mut expected = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
            let rejected = expected.add_all(items.iter().map(|item| &item[..]), &Unlimited, |_| {});
            for threads in [1, 4] {
                let (filter, _, result) = built(BitLayout::Lines, params, &items, 9000, threads);
                assert_eq!(result, rejected);
                assert!(filter == expected);
            }
        }
        let limit = MaxBytes(10_000);
        let params = Params { error_rate: 0.01, capacity: 5000, expansion: 2, seed: 0 };
        let mut build = FilterBuild::new(BitLayout::Lines, params, &limit).unwrap();
        let hash = build.hasher();
        let hashes: Vec<Hash128> = items.iter().map(|item| hash(item)).collect();
        assert!(matches!(build.add(&[&hashes], 2, &limit), Err(Error::TooLarge { .. })));
        assert_eq!(build.finish().num_items(), 5000);
    }
}
