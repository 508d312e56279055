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
    // For seed 0, the function without a seed gives the same hash in a third fewer instructions for a short item.
    let h = if seed == 0 { xxh3::xxh3_128(item) } else { xxh3::xxh3_128_with_seed(item, seed) };
    Hash128 { lo: h as u64, hi: (h >> 64) as u64 }
}

/// XXH3-64 of `item` under `seed`. It determines the slot that a member marks in an estimating counter.
#[inline]
pub fn hash64(item: &[u8], seed: u64) -> u64 {
    if seed == 0 { xxh3::xxh3_64(item) } else { xxh3::xxh3_64_with_seed(item, seed) }
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
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// The number of entries of tables that were compared with an item.
        pub(crate) static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// The number `x` for which `x ^ (x >> by)` is `mixed`.
    fn unshifted(mixed: u64, by: u32) -> u64 {
        (0..u64::BITS / by).fold(mixed, |x, _| mixed ^ (x >> by))
    }

    /// The inverse of an odd number modulo 2^64, by Newton's method.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
    }

    /// Items of eight bytes whose [`hash64`] under seed 0 has only zeros below bit 20 and from bit 51 on. They share a
    /// place in any table that uses this hash.
    pub(crate) fn chosen(len: u64) -> Vec<[u8; 8]> {
        // XXH3-64 of eight bytes: a constant is added bit by bit, then `of` is applied. Both are inverted here.
        let inverse = inverse(0x9fb2_1c65_1e98_df25);
        let invert = |hash: u64| {
            let product = unshifted(hash, 28).wrapping_mul(inverse);
            let product = (product ^ ((product >> 35) + 8)).wrapping_mul(inverse);
            // x ^ rotl(x, 49) ^ rotl(x, 24) is a polynomial over GF(2), whose 64th power is 1.
            (0..6).fold(product, |x, power| x ^ x.rotate_left(49 << power & 63) ^ x.rotate_left(24 << power & 63))
        };
        let constant = invert(hash64(&[0; 8], 0));
        let items: Vec<_> =
            (0..len).map(|number| (invert(number << 20) ^ constant).rotate_left(32).to_le_bytes()).collect();
        assert!((0..).zip(&items).all(|(number, item)| hash64(item, 0) == number << 20));
        items
    }

    /// Items of eight bytes whose first [`classic_hash`] has only zeros below bit 20 and from bit 51 on.
    pub(crate) fn chosen_classic(len: u64) -> Vec<[u8; 8]> {
        let (seed, inverse) = (MURMUR_MULTIPLIER, inverse(MURMUR_MULTIPLIER));
        let items: Vec<_> = (0..len)
            .map(|number| {
                let hash = unshifted(unshifted(number << 20, MURMUR_SHIFT).wrapping_mul(inverse), MURMUR_SHIFT);
                let mixed = hash.wrapping_mul(inverse) ^ seed ^ MURMUR_MULTIPLIER.wrapping_mul(8);
                unshifted(mixed.wrapping_mul(inverse), MURMUR_SHIFT).wrapping_mul(inverse).to_le_bytes()
            })
            .collect();
        assert!((0..).zip(&items).all(|(number, item)| classic_hash(item).lo == number << 20));
        items
    }

    /// An item, the start and step of its positions, and its hash under seed 0. Start and step agree with the bits that
    /// a running RedisBloom set. The hash comes from another implementation.
    #[test]
    fn murmur64a_is_pinned() {
        let bytes: Vec<u8> = (0..=255).collect();
        let rows: [(&[u8], u64, u64, u64); 7] = [
            (b"", 0x1ab1_1ea5_a7b2_c56e, 0xbbdd_cb5a_b56d_d547, 0),
            (b"a", 0x4292_cee2_27b9_150a, 0x7e9b_5270_31f5_0c11, 0x0717_17d2_d36b_6b11),
            (b"rollcall", 0x0f59_c6d7_1373_6286, 0x2bd4_8844_3331_be07, 0xdfb1_1594_8115_d873),
            (b"1234567", 0xe4cf_1c6d_15db_29ff, 0x8e68_8fe4_a354_7f2b, 0xae9e_bd20_9527_9402),
            (b"12345678", 0x700b_ea34_3394_41c4, 0x94cc_ce09_94c5_c064, 0x758f_67d1_62b2_d202),
            (b"123456789", 0xb791_da69_f9d3_95e3, 0xabf3_563d_45e8_173b, 0x4977_4902_5167_4330),
            (&bytes, 0x8851_62f1_b728_5214, 0xb464_0bb9_4fbe_8db9, 0xaeeb_f378_0095_c6c1),
        ];
        for (item, start, step, unseeded) in rows {
            assert_eq!(classic_hash(item), Hash128 { lo: start, hi: step });
            assert_eq!(murmur64a(item, 0), unseeded);
        }
    }
}
