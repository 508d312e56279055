//! Tests of the bits of items, of lists compared with single calls, and of sizes.

use crate::bloom::lines::sizing::{self, Geometry};
use crate::bloom::look_up::{FAR_FROM_LINES, look_up_chunk, look_up_chunks};
use crate::bloom::sub_filter::SubFilter;
use crate::error::Error;
use crate::hash::{Hash128, hash128};
use crate::marks::{CHUNK, first_marks};
use crate::size_limit::{MaxBytes, Unlimited};
use proptest::prelude::*;

fn insert_list(filter: &mut SubFilter, hashes: &[Hash128], added: &mut Vec<bool>) {
    for chunk in hashes.chunks(CHUNK) {
        let new = filter.insert_chunk(chunk, first_marks(chunk.len()));
        added.extend((0..chunk.len()).map(|i| new >> i & 1 == 1));
    }
}

fn look_up_list(filter: &SubFilter, hashes: &[Hash128], found: &mut Vec<bool>) {
    for chunk in hashes.chunks(CHUNK) {
        let marks = look_up_chunk(std::slice::from_ref(filter), chunk);
        found.extend((0..chunk.len()).map(|i| marks >> i & 1 == 1));
    }
}

fn filter(error_rate: f64, capacity: u64) -> SubFilter {
    SubFilter::new(error_rate, capacity, &Unlimited).unwrap()
}

/// Positions of the set bits: bit `n` of the bitmap is bit `n % 8` of byte `n / 8`.
fn positions(filter: &SubFilter) -> Vec<u64> {
    let bytes = (0u64..).zip(filter.as_bytes()).filter(|(_, byte)| **byte != 0);
    bytes.flat_map(|(at, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)).collect()
}

fn counted(filter: &SubFilter) -> u64 {
    filter.as_bytes().iter().map(|byte| u64::from(byte.count_ones())).sum()
}

/// An error rate, a capacity, an item, a seed, and the positions of the item's bits.
type Row = (f64, u64, &'static [u8], u64, &'static [u64]);

/// Computed independently of this code.
#[rustfmt::skip]
const POSITIONS: [Row; 7] = [
    (0.01, 1000, b"", 0, &[3641, 3752, 3807, 3907, 3917, 3921]),
    (0.01, 1000, b"rollcall", 0, &[45, 259, 338, 361, 411, 496]),
    (0.01, 1000, b"rollcall", 42, &[1060, 1121, 1460, 1461, 1471]),
    (0.001, 100_000, b"rollcall", 0,
        &[55043, 55122, 55145, 55195, 55280, 936974, 937070, 937195, 937262, 937321]),
    (1e-5, 7, b"\x00\xff\x00", u64::MAX,
        &[75, 103, 112, 113, 177, 191, 233, 391, 395, 414, 429, 466, 479, 486]),
    (1e-9, 1_000_000, &[b'a'; 300], 1, &[
        6690328, 6690450, 6690464, 6690627, 6690638, 6690730, 6690809, 8444439, 8444464, 8444623, 8444635,
        8444718, 8444747, 8444782, 9474654, 9474729, 9474755, 9474795, 9474920, 9475015, 9475025, 40213513,
        40213622, 40213650, 40213762, 40213770, 40213852, 40213898]),
    // Seven lines per item: this number takes the loop that is not unrolled.
    (1e-15, 50, b"x", 7, &[
        2, 8, 27, 28, 53, 77, 113, 137, 248, 381, 401, 419, 458, 510, 516, 520, 616, 694, 733, 807, 867,
        1029, 1048, 1150, 1171, 1188, 1220, 1307, 1337, 1402, 1475, 1479, 1480, 1485, 1495, 1625, 1686,
        1956, 1962, 1979, 2020, 2046, 3596, 3713, 3778, 3802, 3808, 3882, 3921]),
];

#[test]
fn bits_are_pinned() {
    for (error_rate, capacity, item, seed, expected) in POSITIONS {
        let mut filter = filter(error_rate, capacity);
        assert!(filter.insert(hash128(item, seed)));
        assert_eq!(positions(&filter), expected, "{error_rate}");
        assert_eq!(filter.set_bits, expected.len() as u64);
    }
}

#[test]
fn every_unrolled_shape_sets_the_bits_of_the_looped_one() {
    for exponent in 1..=280 {
        let error_rate = libm::pow(10.0, -f64::from(exponent) / 20.0);
        let mut filter = filter(error_rate, 100);
        let Geometry { lines_per_item, probes_per_line, num_lines } = filter.spec.as_lines;
        let (hash, mut expected) = (hash128(b"item", exponent as u64), std::collections::BTreeSet::new());
        for i in 0..u64::from(lines_per_item) {
            // The third summand of `x`, as a sum of `i` terms.
            let third = (0..i).fold(0u64, |sum, j| sum.wrapping_add(j.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            let x = hash.lo.wrapping_add(i.wrapping_mul(hash.hi | 1)).wrapping_add(third);
            let y = x.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            for j in 0..probes_per_line {
                let line = ((u128::from(x) * u128::from(num_lines)) >> 64) as u64;
                expected.insert(line * 512 + (((y ^ (y >> 32)) >> (9 * j)) & 511));
            }
        }
        assert!(!filter.may_contain(hash) && filter.insert(hash) && filter.may_contain(hash));
        assert!(positions(&filter).into_iter().eq(expected), "{error_rate}");
    }
}

#[test]
fn every_shape_of_a_list_sets_the_bits_of_one_by_one() {
    let mut shapes = std::collections::BTreeSet::new();
    for exponent in 1..=280 {
        let error_rate = libm::pow(10.0, -f64::from(exponent) / 20.0);
        let (mut single, mut listed) = (filter(error_rate, 100), filter(error_rate, 100));
        let Geometry { lines_per_item, probes_per_line, .. } = single.spec.as_lines;
        if !shapes.insert((lines_per_item, probes_per_line)) {
            continue;
        }
        let hashes: Vec<_> = (0..500u32).map(|item| hash128(&(item / 4 * 3).to_le_bytes(), 0)).collect();
        let expected: Vec<_> = hashes.iter().map(|&hash| single.insert(hash)).collect();
        let mut added = Vec::new();
        insert_list(&mut listed, &hashes, &mut added);
        assert_eq!(added, expected, "{error_rate}");
        assert!(single == listed && listed.set_bits == counted(&listed), "{error_rate}");
        let others: Vec<_> = (0..500u32).map(|item| hash128(&item.to_le_bytes(), u64::from(item % 2))).collect();
        let expected: Vec<_> = others.iter().map(|&hash| single.may_contain(hash)).collect();
        let mut found = Vec::new();
        look_up_list(&listed, &others, &mut found);
        assert_eq!(found, expected, "{error_rate}");
    }
    assert!(shapes.len() > 20, "{shapes:?}");
}

/// Small and large bitmaps take different loops, and so do short and long lists.
#[test]
fn lists_set_and_find_the_bits_of_one_by_one() {
    for (capacity, error_rate) in [(1000, 0.01), (1000, 1e-5), (2_000_000, 0.01), (2_000_000, 0.001)] {
        let (mut single, mut listed) = (filter(error_rate, capacity), filter(error_rate, capacity));
        let mut start = 0u32;
        for len in [0u32, 1, 15, 16, 17, 33, 63, 64, 65, 128, 200] {
            let hashes: Vec<_> = (start / 2..start / 2 + len).map(|item| hash128(&item.to_le_bytes(), 0)).collect();
            let expected: Vec<_> = hashes.iter().map(|&hash| single.may_contain(hash)).collect();
            let mut found = Vec::new();
            look_up_list(&listed, &hashes, &mut found);
            assert_eq!(found, expected);
            let expected: Vec<_> = hashes.iter().map(|&hash| single.insert(hash)).collect();
            let mut added = Vec::new();
            insert_list(&mut listed, &hashes, &mut added);
            assert_eq!(added, expected);
            assert!(single == listed);
            start += len;
        }
    }
}

/// With half of all bits set, many items have all bits of their first line set, and few have all bits of all lines.
#[test]
fn lists_are_answered_in_order_when_lines_differ() {
    for (error_rate, capacity) in [(1e-3, 2_000_000), (1e-6, 1_000_000), (1e-9, 500_000), (1e-15, 300_000)] {
        let mut filter = filter(error_rate, capacity);
        assert!(filter.lines.len() >= FAR_FROM_LINES && filter.spec.as_lines.lines_per_item > 1);
        let words = (0..filter.as_bytes().len() as u64 / 8).map(|i| hash128(&i.to_le_bytes(), 0).lo);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        filter.append_bytes(0, &bytes).unwrap();
        let known: Vec<_> = (0..2000u32).map(|item| hash128(&item.to_le_bytes(), 1)).collect();
        insert_list(&mut filter, &known, &mut Vec::new());
        // First all items are absent. Then one of three is present, then two of three, then all.
        let hashes = (0..8000u32).map(|i| {
            let is_known = i >= 6000 || i >= 4000 && i % 3 > 0 || i >= 2000 && i % 3 == 0;
            if is_known { known[i as usize % 2000] } else { hash128(&i.to_le_bytes(), 2) }
        });
        let expected: Vec<_> = hashes.clone().map(|hash| filter.may_contain(hash)).collect();
        let (hashes, mut found) = (hashes.collect::<Vec<_>>(), Vec::new());
        look_up_list(&filter, &hashes, &mut found);
        assert!(found == expected, "{error_rate}");
        for len in [1, 2, 63, 64, 65, 127, 128, 129, 200, 8000] {
            let (mut of, mut found) = (Vec::new(), Vec::new());
            let one = std::slice::from_ref(&filter);
            look_up_chunks(one, hashes[..len].iter().copied(), |hash, is_found| {
                of.push(hash);
                found.push(is_found);
            });
            assert!(of == hashes[..len] && found == expected[..len], "{error_rate} {len}");
        }
        assert!(expected[6000..].iter().all(|&is_there| is_there) && expected[..2000].contains(&false));
    }
}

#[test]
fn sizes_are_checked_before_allocation() {
    let needed = 20 * 64 + size_of::<SubFilter>() as u64;
    assert!(SubFilter::new(0.01, 1000, &MaxBytes(needed)).is_ok());
    let rejected = SubFilter::new(0.01, 1000, &MaxBytes(needed - 1));
    assert!(matches!(rejected, Err(Error::TooLarge { needed_bytes, .. }) if needed_bytes == needed));
    // 2^40 items at the smallest rate take 220 TB, more than a process can address.
    let smallest = f64::from_bits(1);
    assert!(matches!(SubFilter::new(smallest, 1 << 40, &MaxBytes(1 << 32)), Err(Error::TooLarge { .. })));
    assert!(matches!(SubFilter::new(smallest, 1 << 40, &Unlimited), Err(Error::OutOfMemory { .. })));
    assert!(matches!(SubFilter::new(0.01, u64::MAX, &Unlimited), Err(Error::OutOfRange { .. })));
    assert!(matches!(SubFilter::new(f64::NAN, 1, &Unlimited), Err(Error::OutOfRange { .. })));
}

/// At a high error rate, a sub-filter is full by its set bits too. The last item that fits may exceed their limit.
#[test]
fn a_sub_filter_is_full_by_items_or_bits() {
    let one = filter(0.1, 1000);
    let full = sizing::full_bits(0.1, &one.spec.as_lines).unwrap();
    let most = full + u64::from(one.spec.as_lines.probes_per_line) - 1;
    assert_eq!(
        [(1000, most), (1000, most + 1), (1001, most), (0, 0)].map(|(items, bits)| one.holds(items, bits)),
        [true, false, false, true]
    );
    // At a low rate, only the number of items decides.
    let one = filter(0.01, 1000);
    assert!(one.holds(1000, one.spec.num_bits) && !one.holds(1001, 0));
}

#[test]
fn writes_past_the_end_are_rejected() {
    let mut filter = filter(0.01, 1000);
    let len = filter.as_bytes().len() as u64;
    filter.append_bytes(len, &[]).unwrap();
    filter.append_bytes(len - 1, &[3]).unwrap();
    for (offset, bytes) in [(len, 1), (len - 1, 2), (u64::MAX, 1), (u64::MAX, 0)] {
        assert!(matches!(filter.append_bytes(offset, &vec![255; bytes]), Err(Error::Corrupt { .. })));
    }
    assert_eq!((filter.set_bits, counted(&filter)), (2, 2));
}

proptest! {
    #[test]
    fn pieces_written_in_any_order_make_the_bitmap(
        items in prop::collection::vec(any::<u32>(), 0..200), piece in 1usize..300, reversed: bool,
    ) {
        let (mut source, mut copy) = (filter(0.01, 150), filter(0.01, 150));
        for item in &items {
            source.insert(hash128(&item.to_le_bytes(), 0));
        }
        let mut pieces: Vec<_> = source.as_bytes().chunks(piece).enumerate().collect();
        if reversed {
            pieces.reverse();
        }
        for (i, bytes) in pieces {
            copy.append_bytes((i * piece) as u64, bytes).unwrap();
            prop_assert_eq!(copy.set_bits, counted(&copy));
        }
        copy.set_num_items(source.num_items).unwrap();
        prop_assert!(copy == source);
    }
}
