//! Golomb-Rice coding of sparse bitmaps. The code stores the distances between set bits.
//!
//! A gap is the number of zeros between a set bit and the previous set bit. It is written in Golomb-Rice code (Golomb,
//! "Run-Length Encodings", 1966; Rice and Plaunt, "Adaptive Variable-Length Coding for Efficient Compression of
//! Spacecraft Television Data", 1971): `gap >> k` ones, a zero, then the low `k` bits of the gap, lowest first. `k` is
//! computed from the number of bits and the number of set bits. The code fills each byte from its lowest bit up. Unused
//! bits of the last byte are 0.
//!
//! Worked example: 512 bits, with 0, 9 and 300 set, lead to `k` = 7. The gaps 0, 8 and 290 are written `0 0000000`, `0
//! 0001000` and `110 0100010`: bytes 00 10 13 01.
//!
//! A code takes at most 2 % more than the entropy of bits that are set at random.

use multiversion::multiversion;

use crate::bits;
use crate::error::Error;

/// The name of the coded payload in errors.
const FIELD: &str = "coded payload";

/// The number `k` of low bits of a gap that are written as they are. It is the best choice for bits that are set at
/// random (Kiely, "Selecting the Golomb Parameter in Rice Coding", 2004, equation 8).
fn low_bits(num_ones: u64, num_bits: u64) -> u32 {
    // Kiely's equation 8: log2((mean gap + 1/2) * 2 ln((1 + sqrt 5) / 2)), rounded down. `halves / ones` is twice
    // (mean gap + 1/2), and 123 / 256 is close to ln((1 + sqrt 5) / 2).
    let ones = num_ones.max(1);
    let halves = num_bits.saturating_sub(num_ones).saturating_mul(2).saturating_add(ones);
    let (over, under) = (halves.saturating_mul(123), ones.saturating_mul(256));
    // The logarithm of the quotient, without a division, which would take longer than a short code.
    let most = over.ilog2().saturating_sub(under.ilog2());
    most.saturating_sub((under << most > over).into())
}

/// The largest number of bytes of the code for `num_ones` set bits among `num_bits` bits, for any positions of the set
/// bits.
pub(crate) fn most_bytes(num_ones: u64, num_bits: u64) -> u64 {
    let low_bits = low_bits(num_ones, num_bits);
    // A gap between set bits takes `(gap >> low_bits) + 1 + low_bits` bits. The sum of all gaps is at most the number
    // of zeros.
    (((num_bits - num_ones) >> low_bits) + num_ones * (1 + u64::from(low_bits))).div_ceil(8)
}

/// The largest number of ones that [`encode`] appends in one step. At most 31 ones, a zero and 31 low bits remain,
/// which fit in 64 bits.
const STEP_BITS: u32 = 32;

/// Appends the code of `num_ones` set bits among `num_bits`, at most 2^32. `ones` are their positions, ascending.
pub(crate) fn encode(ones: impl Iterator<Item = u64>, num_ones: u64, num_bits: u64, bytes: &mut Vec<u8>) {
    let low_bits = low_bits(num_ones, num_bits);
    let (mut pending, mut len) = (0u64, 0);
    let mut push = |value: u64, value_len: u32| {
        pending |= value << len;
        len += value_len;
        if len >= u64::BITS {
            bytes.extend_from_slice(&pending.to_le_bytes());
            len -= u64::BITS;
            pending = value >> (value_len - len);
        }
    };
    let mut next = 0;
    ones.for_each(|one| {
        let gap = one - next;
        next = one + 1;
        let mut high = gap >> low_bits;
        while high >= STEP_BITS.into() {
            push((1 << STEP_BITS) - 1, STEP_BITS);
            high -= u64::from(STEP_BITS);
        }
        // Subtracting 1 turns the lowest 1 and the `high` zeros below it into a zero and `high` ones.
        let low_and_one = (gap << 1 | 1) & ((2 << low_bits) - 1);
        push((low_and_one << high) - 1, high as u32 + 1 + low_bits);
    });
    bytes.extend_from_slice(&pending.to_le_bytes()[..len.div_ceil(8) as usize]);
}

/// Calls `visit` with each position that [`encode`] wrote, in ascending order.
///
/// # Errors
/// [`Error::Corrupt`] unless the bytes are exactly the code of `num_ones` positions below `num_bits`.
pub(crate) fn decode(bytes: &[u8], num_ones: u64, num_bits: u64, visit: impl FnMut(u64)) -> Result<(), Error> {
    let rest = decode_front(bytes, num_ones, num_bits, visit)?;
    Error::check_field(rest.is_empty(), FIELD, "the end after the last code", "more")
}

/// Does the same as [`decode`], but other bytes may follow the code. Returns the bytes after the code.
///
/// # Errors
/// [`Error::Corrupt`] unless the bytes begin with a code of `num_ones` positions below `num_bits`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(crate) fn decode_front<'a, F: FnMut(u64)>(
    bytes: &'a [u8],
    num_ones: u64,
    num_bits: u64,
    visit: F,
) -> Result<&'a [u8], Error> {
    Codes::new(bytes, num_ones, num_bits).read(bytes, visit)
}

/// Flips the bits of `words`, which are all zeros or all ones, at the positions that [`decode_front`] visits.
///
/// # Errors
/// The errors of [`decode_front`].
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(crate) fn flip_front<'a>(bytes: &'a [u8], num_ones: u64, words: &mut [u64]) -> Result<&'a [u8], Error> {
    let mut codes = Codes::new(bytes, num_ones, (words.len() * bits::WORD_BITS) as u64);
    match codes.low_bits {
        1 => codes.flip::<4>(&STEPS[0], words),
        2 => codes.flip::<2>(&STEPS[1], words),
        3 => codes.flip::<1>(&STEPS[2], words),
        _ => {}
    }
    codes.read(bytes, |one| words[one as usize / bits::WORD_BITS] ^= 1 << (one % u64::from(u64::BITS)))
}

/// What a byte of codes with 1, 2 or 3 low bits means. The first table has a row for each state: 0 between codes and
/// among the ones of a code, or 1 plus the number of low bits before. The entry of a byte is the positions that end in
/// it (from bit 7 on), and how far it moves the next position (at most 64).
///
/// The second table has the states after a byte, times 8: from bit 8 s on, the one after state s. So the next state
/// takes a single shift.
///
/// Such short codes come in large numbers. Decoded one by one, or looked up by a state that was looked up, each would
/// wait for the one before.
static STEPS: [([[u64; 256]; 4], [u32; 256]); 3] = [steps(1), steps(2), steps(3)];

const fn steps(low_bits: usize) -> ([[u64; 256]; 4], [u32; 256]) {
    let (mut steps, mut states, mut index) = ([[0; 256]; 4], [0; 256], 0);
    while index < (low_bits + 1) << 8 {
        let (byte, before) = (index & 0xff, index >> 8);
        let (mut state, mut next, mut ones, mut bit) = (before, 0, 0, 0);
        while bit < u8::BITS {
            let is_one = byte >> bit & 1;
            next += if state > 0 { is_one << (state - 1) } else { is_one << low_bits };
            state += if state > 0 { 1 } else { 1 - is_one };
            if state > low_bits {
                ones |= 1 << next;
                (next, state) = (next + 1, 0);
            }
            bit += 1;
        }
        steps[before][byte] = ones << 7 | next as u64;
        states[byte] |= (state as u32) << 3 << (8 * before);
        index += 1;
    }
    (steps, states)
}

/// Reads the codes of ascending positions below `num_bits`.
struct Codes<'a> {
    bits: Bits<'a>,
    low_bits: u32,
    num_bits: u64,
    /// The smallest possible next position.
    next: u64,
    /// The number of codes that are still to be read.
    left: u64,
}

impl<'a> Codes<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8], num_ones: u64, num_bits: u64) -> Self {
        let low_bits = low_bits(num_ones, num_bits).min(STEP_BITS - 1);
        Codes { bits: Bits { rest: bytes, pending: 0, len: 0 }, low_bits, num_bits, next: 0, left: num_ones }
    }

    /// Calls `visit` with the positions of all codes that are left. Returns the bytes after the last code of `bytes`.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline(always)]
    fn read(self, bytes: &'a [u8], mut visit: impl FnMut(u64)) -> Result<&'a [u8], Error> {
        let Codes { mut bits, low_bits, num_bits, mut next, mut left } = self;
        while left > 0 {
            bits.fill();
            // Local variables stay in registers.
            let Bits { mut pending, mut len, .. } = bits;
            if pending.trailing_zeros() + low_bits >= len {
                // The code begins with more ones than fit, or the bytes end.
                let ones = pending.trailing_zeros().min(len);
                Error::check_field(ones > 0, FIELD, "more bits", "the end")?;
                (bits.pending, bits.len) = (pending >> ones, len - ones);
                next = (next + (u64::from(ones) << low_bits)).min(num_bits);
                continue;
            }
            // `pending` nearly always has four codes, so a processor can predict when to load bytes.
            for _ in 0..4 {
                let high = pending.trailing_zeros();
                if left == 0 || high + low_bits >= len {
                    break;
                }
                let low = !(pending >> high >> 1) & ((1 << low_bits) - 1);
                let one = next + (u64::from(high) << low_bits | low);
                Error::check_field(one < num_bits, FIELD, format_args!("bits below {num_bits}"), "one beyond")?;
                visit(one);
                let code_len = high + 1 + low_bits;
                (pending, len, next, left) = (pending >> code_len, len - code_len, one + 1, left - 1);
            }
            (bits.pending, bits.len) = (pending, len);
        }
        let is_valid = !bits.pending & ((1 << (bits.len % 8)) - 1) == 0;
        Error::check_field(is_valid, FIELD, "zeros to the end of a byte after the last code", "a one")?;
        Ok(&bytes[bytes.len() - bits.rest.len() - (bits.len / 8) as usize..])
    }

    /// Flips the bits of `words` at the positions of the codes, byte by byte, until few codes, bytes or words are left.
    /// `GROUP` bytes move the next position by at most 64.
    #[inline(always)]
    fn flip<const GROUP: usize>(&mut self, (steps, states): &([[u64; 256]; 4], [u32; 256]), words: &mut [u64]) {
        let blank = words.first().copied().unwrap_or(0);
        debug_assert!([0, u64::MAX].contains(&blank) && words.iter().all(|&word| word == blank));
        let (mut at, mut word, mut state) = (0, blank, 0);
        // A byte ends at most four codes.
        while self.left > 4 * GROUP as u64
            && let (Some((group, rest)), Some(own)) = (self.bits.rest.split_first_chunk::<GROUP>(), words.get_mut(at))
        {
            let (mut ones, mut moved) = (0, 0);
            for &byte in group {
                let step = steps[state as usize >> 3 & 3][usize::from(byte)];
                state = states[usize::from(byte)].wrapping_shr(state);
                ones |= (step >> 7).wrapping_shl(moved as u32);
                moved = step.wrapping_add(moved);
            }
            moved &= 0x7f;
            let shift = self.next % u64::from(u64::BITS);
            word ^= ones << shift;
            *own = word;
            (self.next, self.left, self.bits.rest) =
                (self.next + moved, self.left - u64::from(ones.count_ones()), rest);
            let (before, after) = (at, blank ^ ones >> 1 >> (63 - shift));
            at = self.next as usize / bits::WORD_BITS;
            word = if at == before { word } else { after };
        }
        if let Some(last) = words.get_mut(at) {
            *last = word;
        }
        // The bits that were read of an unfinished code, with zeros for its low bits, which `next` includes.
        self.bits.len = state >> 3 & 3;
        self.bits.pending = (1 << self.bits.len) - 1;
    }
}

/// Reads bits from bytes, the lowest bit of each byte first.
struct Bits<'a> {
    rest: &'a [u8],
    /// The next `len` bits, inverted. Bits above are 0, or bits of `rest`. A code begins with ones, which are the
    /// trailing zeros here. `len` is at most 63, so that no shift is by 64 bits.
    pending: u64,
    len: u32,
}

impl Bits<'_> {
    /// Loads whole bytes into `pending`, until it is full or no bytes are left.
    #[inline(always)]
    fn fill(&mut self) {
        let num_bytes = ((u64::BITS - 1 - self.len) / 8) as usize;
        if let Some(word) = self.rest.first_chunk() {
            self.pending |= !u64::from_le_bytes(*word) << self.len;
            (self.len, self.rest) = (self.len | 56, &self.rest[num_bytes..]);
            return;
        }
        let (bytes, rest) = self.rest.split_at(num_bytes.min(self.rest.len()));
        for &byte in bytes {
            self.pending |= u64::from(!byte) << self.len;
            self.len += 8;
        }
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    fn encoded(ones: &[u64], num_bits: u64) -> Vec<u8> {
        let mut bytes = vec![];
        encode(ones.iter().copied(), ones.len() as u64, num_bits, &mut bytes);
        bytes
    }

    fn decoded(bytes: &[u8], num_ones: u64, num_bits: u64) -> Result<Vec<u64>, Error> {
        let mut ones = vec![];
        decode(bytes, num_ones, num_bits, |one| ones.push(one)).map(|()| ones)
    }

    #[test]
    fn code_is_pinned() {
        assert_eq!(low_bits(3, 512), 7);
        assert_eq!(encoded(&[0, 9, 300], 512), [0x00, 0x10, 0x13, 0x01]);
        assert_eq!(encoded(&[], 512), []);
        for (num_ones, num_bits, expected) in [(0, 512, 8), (1, 1, 0), (512, 512, 0), (60, 512, 2), (1, 1 << 32, 31)] {
            assert_eq!(low_bits(num_ones, num_bits), expected, "{num_ones} of {num_bits}");
        }
    }

    /// Encodes bit by bit, according to the definition of the code.
    fn by_definition(ones: &[u64], num_bits: u64) -> Vec<u8> {
        let (k, mut bits, mut next) = (low_bits(ones.len() as u64, num_bits), Vec::new(), 0);
        for &one in ones {
            let gap = one - next;
            bits.extend((0..gap >> k).map(|_| true).chain([false]).chain((0..k).map(|bit| gap >> bit & 1 == 1)));
            next = one + 1;
        }
        let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        bits.chunks(8).map(byte).collect()
    }

    /// Codes are correct at every offset in a word, and over any number of words.
    #[test]
    fn codes_of_every_length_are_whole_wherever_they_begin() {
        for k in [0, 1, 7, 20] {
            for high in 0..100u64 {
                for before in 0..40u64 {
                    let gap = (high << k) + (1 << k) - 1;
                    let start: Vec<u64> = (0..before).chain([before + gap, before + gap + 1]).collect();
                    // This finds a number of bits for which `k` bits of the gap are low bits.
                    let fits = |num_bits: &u64| low_bits(start.len() as u64, *num_bits) == k;
                    let sizes = (0..40).map(|size| (before + gap + 2).max(1 << size));
                    let Some(num_bits) = sizes.filter(|size| *size <= 1 << 32).find(fits) else { continue };
                    let code = encoded(&start, num_bits);
                    assert_eq!(code, by_definition(&start, num_bits), "{high} << {k} after {before}");
                    assert_eq!(decoded(&code, start.len() as u64, num_bits).as_deref(), Ok(&start[..]));
                }
            }
        }
    }

    /// Two codes of 33 bits. The first code ends with the last bit of a word, so the second code begins in a new word.
    #[test]
    fn codes_that_are_a_bit_longer_than_a_word_are_whole() {
        for k in 1..12u64 {
            let gap = ((32 - k) << k) + (1 << k) - 1;
            let ones: Vec<u64> = (1..=70).map(|number| number * (gap + 1) - 1).collect();
            let last = ones[ones.len() - 1];
            // Short gaps are appended until `k` bits of each gap are low bits.
            let ones: Vec<u64> = ones.into_iter().chain(last + 1..last + 4000).collect();
            let fits = |num_bits: &u64| u64::from(low_bits(ones.len() as u64, *num_bits)) == k;
            let num_bits = (1..100).map(|step| last + 4000 + (step << (k + 8))).find(fits).unwrap();
            assert_eq!(encoded(&ones, num_bits), by_definition(&ones, num_bits), "{k}");
        }
    }

    #[test]
    fn the_farthest_bits_are_coded() {
        for num_bits in [1, 8, 64, 512, 1 << 20, 1 << 32] {
            for ones in [vec![0], vec![num_bits - 1]] {
                assert_eq!(decoded(&encoded(&ones, num_bits), 1, num_bits).unwrap(), ones);
            }
        }
        // The code of the long gap has hundreds of ones in a row.
        let ones: Vec<u64> = (0..300).chain([100_000]).collect();
        assert_eq!(decoded(&encoded(&ones, 1 << 17), 301, 1 << 17).unwrap(), ones);
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(decoded(&encoded(&all, 100), 100, 100).unwrap(), all);
    }

    /// If bits are set independently, from one in four to one in a thousand, the code is little longer than their
    /// entropy.
    #[test]
    fn code_is_near_entropy() {
        for one_in in [4u64, 7, 10, 30, 100, 1000] {
            let num_bits = 1 << 20;
            let is_set = |bit: &u64| crate::hash::checksum(&bit.to_le_bytes(), one_in).is_multiple_of(one_in);
            let ones: Vec<u64> = (0..num_bits).filter(is_set).collect();
            let p = ones.len() as f64 / num_bits as f64;
            let entropy = -(p * p.log2() + (1.0 - p) * (1.0 - p).log2()) * num_bits as f64 / 8.0;
            let bytes = encoded(&ones, num_bits).len() as f64;
            assert!(bytes >= 0.99 * entropy && bytes <= 1.025 * entropy, "{one_in}: {bytes} of {entropy}");
            assert!(bytes <= most_bytes(ones.len() as u64, num_bits) as f64);
        }
    }

    #[test]
    fn damaged_codes_are_rejected() {
        let bytes = encoded(&[0, 9, 300], 512);
        for (bytes, num_ones, num_bits) in [
            (&bytes[..3], 3, 512),
            (&[&bytes[..], &[0]].concat(), 3, 512),
            (&[&bytes[..3], &[0x81]].concat(), 3, 512),
            (&bytes, 2, 512),
            (&bytes, u64::MAX, 512),
            (&bytes, 3, 300),
            (&[0xff; 40], 1, 512),
            (&[], 1, 512),
            (&[0], 0, 512),
        ] {
            assert!(matches!(decoded(bytes, num_ones, num_bits), Err(Error::Corrupt { field: FIELD, .. })));
        }
    }

    proptest! {
        #[test]
        fn any_bits_read_back(ones in btree_set(0u64..5000, 0..1500)) {
            let ones: Vec<u64> = ones.into_iter().collect();
            prop_assert!(encoded(&ones, 5000).len() as u64 <= most_bytes(ones.len() as u64, 5000));
            prop_assert_eq!(decoded(&encoded(&ones, 5000), ones.len() as u64, 5000).unwrap(), ones);
        }

        /// Half, a quarter, an eighth and so on of the bits are set, and perhaps a byte of the code is damaged.
        #[test]
        fn bits_are_flipped_where_the_code_has_ones(
            words in proptest::collection::vec(any::<[u64; 5]>(), 1..70),
            sparse in 1usize..6,
            (at, damage) in prop_oneof![Just((0, 0)), any::<(usize, u8)>()],
        ) {
            let all = |words: &[u64; 5]| words[..sparse].iter().fold(u64::MAX, |all, word| all & word);
            let words: Vec<u64> = words.iter().map(all).collect();
            let (num_ones, num_bits) = (bits::count_ones(&words), (words.len() * bits::WORD_BITS) as u64);
            let mut bytes = vec![];
            encode(bits::ones_of(words.iter().copied()), num_ones, num_bits, &mut bytes);
            bytes.extend([7; 9]);
            let at = at % bytes.len();
            bytes[at] ^= damage;
            let (mut visited, mut flipped) = (vec![0; words.len()], vec![u64::MAX; words.len()]);
            let rest = decode_front(&bytes, num_ones, num_bits, |one| _ = bits::set(&mut visited, one as usize));
            prop_assert_eq!(&flip_front(&bytes, num_ones, &mut flipped), &rest);
            prop_assert!(rest.is_err() || flipped.iter().zip(&visited).all(|(flipped, visited)| *flipped == !visited));
            prop_assert!(damage != 0 || visited == words);
        }

        #[test]
        fn any_bytes_are_read_or_rejected(
            bytes in proptest::collection::vec(any::<u8>(), 0..60), num_ones in 0u64..400, num_bits in 1u64..3000,
        ) {
            if let Ok(ones) = decoded(&bytes, num_ones, num_bits) {
                prop_assert!(ones.is_sorted() && ones.last().is_none_or(|&last| last < num_bits));
                prop_assert_eq!(encoded(&ones, num_bits), bytes);
            }
        }
    }
}
