//! Filters built from many items, which several threads may hash.

use super::classic::sub_filter::ClassicSubFilter;
use super::filter::{BloomFilter, EitherChain};
use super::lines::sub_filter::LineSubFilter;
use super::params::{BitLayout, Params};
use super::sub_filter::SubFilter;
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
    /// counts as after [`Live::add_all`](crate::live::Live::add_all).
    ///
    /// # Errors
    /// The errors of [`Live::add`](crate::live::Live::add). The items before the rejected one are added.
    pub fn add(&mut self, hashes: &[Hash128], limit: &impl SizeLimit) -> Result<u64, Error> {
        let mut new = 0;
        let (hashes, added) = (hashes.iter().copied(), |is_new| new += u64::from(is_new));
        match &mut self.0.chain {
            EitherChain::Lines(filter) => filter.add_hashes(hashes, limit, &mut false, added)?,
            EitherChain::Classic(filter) => filter.add_hashes(hashes, limit, &mut false, added)?,
        }
        Ok(new)
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

    /// The filter that is built of these items, `block` hashes at a time, and the number of new items.
    fn built(
        layout: BitLayout,
        params: Params,
        items: &[[u8; 8]],
        block: usize,
    ) -> (BloomFilter, u64, Result<(), Error>) {
        let mut build = FilterBuild::new(layout, params, &Unlimited).unwrap();
        let hash = build.hasher();
        let hashes: Vec<Hash128> = items.iter().map(|item| hash(item)).collect();
        let (mut new, mut result) = (0, Ok(()));
        for hashes in hashes.chunks(block) {
            match build.add(hashes, &Unlimited) {
                Ok(more) => new += more,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        (build.finish(), new, result)
    }

    #[test]
    fn a_filter_built_of_hashes_is_the_one_built_of_items() {
        let items = items(30_000);
        for (layout, error_rate, capacity, expansion, seed) in [
            (BitLayout::Lines, 0.01, 50_000, 2, 0),
            (BitLayout::Lines, 0.3, 15_000, 2, 7),
            (BitLayout::Lines, 1e-9, 10_000, 1, 3),
            (BitLayout::Lines, 0.01, 10, 3, 0),
            (BitLayout::Lines, 0.01, 5, 0, 0),
            (BitLayout::Classic, 0.01, 3000, 2, 0),
            (BitLayout::Classic, 0.01, 300, 30, 0),
        ] {
            let params = Params { error_rate, capacity, expansion, seed };
            let mut expected = BloomFilter::new(layout, params, &Unlimited).unwrap();
            let mut expected_new = 0;
            let added = |is_new| expected_new += u64::from(is_new);
            let rejected = expected.add_all(items.iter().map(|item| &item[..]), &Unlimited, added);
            for block in [777, 1 << 20] {
                let (filter, new, result) = built(layout, params, &items, block);
                assert!(filter == expected && result == rejected, "{params:?}");
                // An error does not say how many of its block were new.
                assert!(result.is_err() || new == expected_new);
            }
        }
    }

    #[test]
    fn a_build_asks_its_limit() {
        let limit = MaxBytes(10_000);
        let params = Params { error_rate: 0.01, capacity: 5000, expansion: 2, seed: 0 };
        let mut build = FilterBuild::new(BitLayout::Lines, params, &limit).unwrap();
        let hash = build.hasher();
        let hashes: Vec<Hash128> = items(60_000).iter().map(|item| hash(item)).collect();
        assert!(matches!(build.add(&hashes, &limit), Err(Error::TooLarge { .. })));
        assert_eq!(build.finish().num_items(), 5000);
    }
}
