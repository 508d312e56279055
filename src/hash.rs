//! From bytes to hashes. XXH3 is frozen by its specification, so bits stored today can be read for ever;
//! changing anything here breaks every stored value.

use xxhash_rust::xxh3;

/// The two 64-bit halves of XXH3-128: a Bloom filter draws all its positions from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash128 {
    /// Low half.
    pub lo: u64,
    /// High half.
    pub hi: u64,
}

/// XXH3-128 of `item` under `seed`.
#[inline]
pub fn hash128(item: &[u8], seed: u64) -> Hash128 {
    let h = xxh3::xxh3_128_with_seed(item, seed);
    Hash128 { lo: h as u64, hi: (h >> 64) as u64 }
}

/// XXH3-64 of `item` under `seed`: where a counter puts it.
#[inline]
pub fn hash64(item: &[u8], seed: u64) -> u64 {
    xxh3::xxh3_64_with_seed(item, seed)
}

/// XXH3-64 of stored bytes under `position`: the checksum of a dump's pieces, so that a piece that
/// is whole but out of place does not pass.
#[inline]
pub fn checksum(bytes: &[u8], position: u64) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, position)
}
