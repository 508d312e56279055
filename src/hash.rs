//! From bytes to hashes. XXH3 is frozen by its specification and MurmurHash64A by its author, so bits stored
//! today can be read for ever; changing anything here breaks every stored value.

use xxhash_rust::xxh3;

/// Two 64-bit numbers from which a Bloom filter draws all positions of an item: the halves of XXH3-128 for
/// line filters ([`hash128`]), start and step for classic ones ([`classic_hash`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash128 {
    /// Low half, or start.
    pub lo: u64,
    /// High half, or step.
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

/// The multiplier of MurmurHash64A; RedisBloom seeds its first hash with it as well.
const MURMUR_MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;

/// MurmurHash64A (Austin Appleby, public domain), the 64-bit variant of MurmurHash2 for 64-bit machines.
#[inline]
pub fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    const SHIFT: u32 = 47;
    let (words, tail) = bytes.as_chunks::<8>();
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MURMUR_MULTIPLIER);
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(MURMUR_MULTIPLIER);
        let mixed = (word ^ (word >> SHIFT)).wrapping_mul(MURMUR_MULTIPLIER);
        hash = (hash ^ mixed).wrapping_mul(MURMUR_MULTIPLIER);
    }
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0, |last, &byte| last << 8 | u64::from(byte));
        hash = (hash ^ last).wrapping_mul(MURMUR_MULTIPLIER);
    }
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MURMUR_MULTIPLIER);
    hash ^ (hash >> SHIFT)
}

/// Start and step of an item's positions in RedisBloom's layout: the second hash is seeded with the first.
#[inline]
pub fn classic_hash(item: &[u8]) -> Hash128 {
    let start = murmur64a(item, MURMUR_MULTIPLIER);
    Hash128 { lo: start, hi: murmur64a(item, start) }
}
