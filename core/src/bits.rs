//! Functions on bitmaps of 64-bit words.
//!
//! Bit `i` of a bitmap is bit `i % 64` (least significant first) of word `i / 64`. Bitmaps are stored as these words in
//! little-endian order, so this numbering is part of the stored format.
//!
//! Functions that read whole bitmaps are also compiled for newer processors, which have an instruction that counts
//! bits. `multiversion` chooses a version at run time.

use std::ops::BitOrAssign;

use multiversion::multiversion;

use crate::marks::marked;
use crate::parallel::{self, PIECE_BYTES};

pub(crate) const WORD_BITS: usize = u64::BITS as usize;

/// Whether bit `index` is set.
///
/// # Panics
/// If `index` is outside `words`.
#[inline]
pub(crate) fn get(words: &[u64], index: usize) -> bool {
    words[index / WORD_BITS] >> (index % WORD_BITS) & 1 == 1
}

/// Sets bit `index`. Returns whether it was 0 before.
///
/// # Panics
/// If `index` is outside `words`.
#[inline]
pub(crate) fn set(words: &mut [u64], index: usize) -> bool {
    let (word, bit) = (&mut words[index / WORD_BITS], index % WORD_BITS);
    let before = *word;
    // No branch, because a processor could not predict it.
    *word = before | 1 << bit;
    before >> bit & 1 == 0
}

/// Sets the bits at these positions by changing one byte for each. Neighbouring positions are often in the same word,
/// and each change of a word would wait for the previous one.
// Not inlined: for parameters of a separate function, the compiler knows that a store to `words` does not change
// `positions`.
#[inline(never)]
pub(crate) fn set_all(words: &mut [u64], positions: &[u16]) {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    positions.iter().map(|&position| usize::from(position)).for_each(|at| bytes[at / 8] |= 1 << (at % 8));
}

/// The positions of the set bits of some words, ascending.
pub(crate) fn ones_of(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let starts = (0u64..).step_by(WORD_BITS);
    starts.zip(words).flat_map(|(start, word)| marked(word).map(move |bit| start + bit as u64))
}

/// The number of set bits.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt", "x86_64+sse4.2+popcnt"))]
pub fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The number of set bits in `bytes`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt", "x86_64+sse4.2+popcnt"))]
pub(crate) fn count_ones_in_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// ORs `src` into `dst`, up to the length of the shorter slice.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(crate) fn or_into<T: Copy + BitOrAssign>(dst: &mut [T], src: &[T]) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to |= *from;
    }
}

/// The smallest size of a memory page on the supported systems, in bytes. Nothing stored depends on it.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Copies `src` over `dst`, which is all zeros and of the same length. Pages of zeros are not written, because the
/// first write to a page costs a page fault, and memory.
pub(crate) fn copy_to_zeroed(dst: &mut [u8], src: &[u8]) {
    let pieces = dst.chunks_mut(PIECE_BYTES).zip(src.chunks(PIECE_BYTES));
    parallel::sum(pieces, src.len(), |(dst, src)| {
        let pages = dst.chunks_mut(PAGE_BYTES).zip(src.chunks(PAGE_BYTES));
        pages.filter(|(_, from)| has_ones(from)).for_each(|(to, from)| to.copy_from_slice(from));
        0
    });
}

/// ORs `src`, at most a page, into `dst`. Zeros are not written, because the first write to a page costs a page fault.
pub(crate) fn or_page(dst: &mut [u8], src: &[u8]) {
    if has_ones(src) {
        or_into(dst, src);
    }
}

/// Whether every page of `bytes` has a set bit.
pub(crate) fn fills_every_page(bytes: &[u8]) -> bool {
    bytes.chunks(PAGE_BYTES).all(has_ones)
}

#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn has_ones(bytes: &[u8]) -> bool {
    // Blocks of 64 bytes are tested as a whole, because an exit after each byte would prevent vectorization.
    let (lines, rest) = bytes.as_chunks::<64>();
    lines.iter().any(|line| line.iter().fold(0, |all, byte| all | byte) != 0) || rest.iter().any(|&byte| byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn bit_order_is_least_significant_first() {
        let mut words = [0u64; 2];
        assert!(set(&mut words, 0));
        assert!(set(&mut words, 65));
        assert!(!set(&mut words, 65));
        assert_eq!(words, [1, 2]);
        assert!(get(&words, 65) && !get(&words, 64));
        assert!(ones_of(words.into_iter()).eq([0, 65]));
    }

    #[test]
    fn or_ends_with_the_shorter_slice() {
        let mut words = [1u64, 1, 1];
        or_into(&mut words, &[2]);
        assert_eq!(words, [3, 1, 1]);
        or_into(&mut words, &[0, 4, 0, 8]);
        assert_eq!(words, [3, 5, 1]);
    }

    #[test]
    fn pages_of_zeros_are_left_alone() {
        let (one, last) = (PAGE_BYTES, 3 * PAGE_BYTES);
        let mut src = vec![0; last + 1];
        (src[one], src[last]) = (6, 1);
        let mut dst = vec![0; src.len()];
        copy_to_zeroed(&mut dst, &src);
        assert_eq!(dst, src);
        // Pages of zeros in `src` are not written, so these bytes stay 2.
        dst.fill(2);
        copy_to_zeroed(&mut dst, &src);
        assert_eq!((dst[0], dst[one], dst[one + 1], dst[last]), (2, 6, 0, 1));
        dst.fill(2);
        dst.chunks_mut(PAGE_BYTES).zip(src.chunks(PAGE_BYTES)).for_each(|(dst, src)| or_page(dst, src));
        assert_eq!((dst[0], dst[one], dst[one + 1], dst[last]), (2, 6, 2, 3));
        assert!(!fills_every_page(&src) && fills_every_page(&dst));
    }

    /// The buffers are large enough for several threads, and their last piece is shorter.
    #[test]
    fn large_buffers_are_copied_as_small_ones_are() {
        let src: Vec<u8> = (0..3 * PIECE_BYTES as u32 + 5).map(|at| (at.wrapping_mul(at) >> 8) as u8).collect();
        let mut copy = vec![0; src.len()];
        copy_to_zeroed(&mut copy, &src);
        assert!(copy == src);
    }

    proptest! {
        #[test]
        fn or_and_counts_match_one_bit_at_a_time(pairs in vec(any::<(u64, u64)>(), 0..70)) {
            let (mut left, right): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            let mut naive = left.clone();
            for index in ones_of(right.iter().copied()) {
                set(&mut naive, index as usize);
            }
            let set_bits = ones_of(naive.iter().copied()).count() as u64;
            or_into(&mut left, &right);
            prop_assert_eq!(count_ones(&left), set_bits);
            prop_assert_eq!(count_ones(&naive), set_bits);
            prop_assert_eq!(&left, &naive);
        }

        #[test]
        fn counting_bytes_matches_one_byte_at_a_time(bytes in vec(any::<u8>(), 0..200), from in 0usize..9) {
            let bytes = &bytes[from.min(bytes.len())..];
            let naive: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            prop_assert_eq!(count_ones_in_bytes(bytes), u64::from(naive));
        }
    }
}
