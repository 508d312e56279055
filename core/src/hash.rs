//! Hash functions for items and for stored bytes. Any change of a result would make stored values unreadable, except
//! that of [`table_hash`].

use std::sync::OnceLock;

use xxhash_rust::xxh3;

/// Two 64-bit numbers from which a Bloom filter derives all positions of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash128 {
    /// The low half of XXH3-128; in RedisBloom's layout, the start of the item's positions.
    pub lo: u64,
    /// The high half of XXH3-128; in RedisBloom's layout, the step between the item's positions.
    pub hi: u64,
}

/// XXH3-128 of `item` under `seed`.
#[inline]
pub fn hash128(item: &[u8], seed: u64) -> Hash128 {
    let h = xxh3::xxh3_128_with_seed(item, seed);
    Hash128 { lo: h as u64, hi: (h >> 64) as u64 }
}

/// XXH3-64 of `item` under `seed`. It determines the slot that a member marks in an estimating counter.
#[inline]
pub fn hash64(item: &[u8], seed: u64) -> u64 {
    xxh3::xxh3_64_with_seed(item, seed)
}

/// The secret of [`table_hash`], once its key is set or it is used.
static TABLE_SECRET: OnceLock<[u64; 24]> = OnceLock::new();

/// The secret of [`table_hash`] for a key.
fn secret_of(key: u64) -> [u64; 24] {
    std::array::from_fn(|word| hash64(&[word as u8], key))
}

/// Sets the key under which this process hashes items for tables in memory. Nothing stored depends on it. Returns false
/// if the key was set before, or if a filter or counter has been used already; the older key then stays.
///
/// A program whose items come from strangers sets a random key when it starts. Without one the key is the same in every
/// process. Strangers can then choose items for which an operation takes the square of their number.
///
/// ```
/// use std::hash::{BuildHasher, RandomState};
///
/// assert!(rollcall_core::set_table_key(RandomState::new().hash_one(())));
/// assert!(!rollcall_core::set_table_key(7));
/// ```
pub fn set_table_key(key: u64) -> bool {
    TABLE_SECRET.set(secret_of(key)).is_ok()
}

/// The hash of an item in tables in memory: XXH3-64 of its bytes under the secret of this process. A short item takes
/// fewer instructions than under a seed, which is first added to the words of a fixed secret.
///
/// XXH3 is not cryptographic. What is assumed: without the key, nobody can name many items whose hashes share most
/// bits. With a known key that is easy, since XXH3-64 of eight bytes is a bijection. The seed of a filter or counter is
/// often known, so hashes under a seed are in no table.
#[inline]
pub(crate) fn table_hash(item: &[u8]) -> u64 {
    xxh3::xxh3_64_with_secret(item, bytemuck::cast_slice(TABLE_SECRET.get_or_init(|| secret_of(0))))
}

/// The checksum of stored bytes: their XXH3-64, seeded with `position`. It also fails for intact bytes at a wrong
/// position.
#[inline]
pub fn checksum(bytes: &[u8], position: u64) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, position)
}

/// The multiplier of MurmurHash64A, with which RedisBloom also seeds its first hash.
const MURMUR_MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;

const MURMUR_SHIFT: u32 = 47;

/// MurmurHash64A (Austin Appleby, public domain).
#[inline]
fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MURMUR_MULTIPLIER);
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(MURMUR_MULTIPLIER);
        let mixed = (word ^ (word >> MURMUR_SHIFT)).wrapping_mul(MURMUR_MULTIPLIER);
        hash = (hash ^ mixed).wrapping_mul(MURMUR_MULTIPLIER);
    }
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0, |last, &byte| last << 8 | u64::from(byte));
        hash = (hash ^ last).wrapping_mul(MURMUR_MULTIPLIER);
    }
    hash = (hash ^ (hash >> MURMUR_SHIFT)).wrapping_mul(MURMUR_MULTIPLIER);
    hash ^ (hash >> MURMUR_SHIFT)
}

/// The start and the step of an item's positions in RedisBloom's layout.
#[inline]
pub(crate) fn classic_hash(item: &[u8]) -> Hash128 {
    let start = murmur64a(item, MURMUR_MULTIPLIER);
    Hash128 { lo: start, hi: murmur64a(item, start) }
}

#[cfg(test)]
pub(crate) mod tests;
