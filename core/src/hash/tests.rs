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
