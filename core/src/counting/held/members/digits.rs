//! Converts hex digits, UUIDs and decimal numbers from texts to bytes and back.

use multiversion::multiversion;

/// The lengths of hexadecimal texts that are kept in half as many bytes. The longest common ones are SHA-256 hashes.
pub(super) const HEX_DIGITS: std::ops::RangeInclusive<usize> = 8..=64;
/// Members of up to this number of characters may be encoded: as hexadecimal digits, as a UUID or as a number. Longer
/// members are kept as text.
pub(super) const MOST_CHARACTERS: usize = *HEX_DIGITS.end();
/// The number of bytes for [`MOST_CHARACTERS`] hexadecimal digits: one for two digits.
pub(super) const MOST_BYTES: usize = MOST_CHARACTERS / 2;
pub(super) const UUID: usize = 36;
/// The largest number of digits of a decimal number that is kept as a number.
const MOST_DECIMALS: usize = 19;
/// Eight characters "0".
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Upper or lower case of hexadecimal digits. The value is the distance in ASCII from the character after `9` to the
/// first letter.
#[derive(Clone, Copy)]
pub(super) enum Case {
    Lower = (b'a' - b'9' - 1) as isize,
    Upper = (b'A' - b'9' - 1) as isize,
}

/// The two hexadecimal digits of each byte. Each is added to a character of `zeros`, which is `0` for digits.
#[inline(always)]
fn digits_of<const N: usize>(bytes: [u8; N], zeros: [[u8; 2]; N], case: Case) -> [[u8; 2]; N] {
    let mut digits = zeros;
    // This loop has no branches, and compiles to vector instructions.
    for (digits, byte) in digits.iter_mut().zip(bytes) {
        let nibbles = u16::from(byte) >> 4 | (u16::from(byte) & 0x0f) << 8;
        let letters = (nibbles + 0x0606) >> 4 & 0x0101;
        *digits = (nibbles + u16::from_le_bytes(*digits) + letters * case as u16).to_le_bytes();
    }
    digits
}

/// The bytes that 32 hexadecimal digits, eight in each number, stand for. `None` if a character is no digit, or a
/// letter of the other case.
#[inline(always)]
pub(super) fn bytes_of(digits: [u64; 4], case: Case) -> Option<[u8; 16]> {
    let pairs: [u16; 16] = bytemuck::cast(digits);
    let (mut bytes, mut differences) = ([0; 16], 0);
    // This loop has no branches, and compiles to vector instructions.
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let nibbles = ((pair & 0x0f0f) + (pair >> 6 & 0x0101) * 9) & 0x0f0f;
        let letters = (nibbles + 0x0606) >> 4 & 0x0101;
        differences |= pair ^ (nibbles + 0x3030 + letters * case as u16);
        *byte = (nibbles << 4 | nibbles >> 8) as u8;
    }
    (differences == 0).then_some(bytes)
}

/// The 32 characters of a UUID in the usual form that are not hyphens. `None` if a hyphen is missing.
#[inline(always)]
pub(super) fn without_hyphens(item: &[u8; UUID]) -> Option<[u64; 4]> {
    let eight = |at: usize| u64::from_le_bytes(item[at..].first_chunk().copied().unwrap_or_default());
    let four = |at: usize| u64::from(u32::from_le_bytes(item[at..].first_chunk().copied().unwrap_or_default()));
    let digits = [eight(0), four(9) | four(14) << 32, four(19) | four(24) << 32, eight(28)];
    ([item[8], item[13], item[18], item[23]] == [b'-'; 4]).then_some(digits)
}

/// Whether `item` is the usual text, in lower case, of the UUID with these bytes.
// With AVX2, encoding the text takes half as many instructions.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn is_uuid(item: &[u8; UUID], bytes: &[u8; 16]) -> bool {
    without_hyphens(item).and_then(|digits| bytes_of(digits, Case::Lower)) == Some(*bytes)
}

/// The number of bytes of a number that is kept in as few bytes as possible.
#[inline(always)]
pub(super) fn bytes_of_number(value: u64) -> usize {
    ((u64::BITS - value.leading_zeros()).div_ceil(8) as usize).max(1)
}

/// Reads at most eight bytes as a little-endian number.
#[inline(always)]
pub(super) fn value_of(bytes: &[u8]) -> u64 {
    // Two overlapping loads take less time than a loop.
    if let (Some(&first), Some(&last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(first)) | u64::from(u32::from_le_bytes(last)) << (8 * (bytes.len() - 4));
    }
    match *bytes {
        [] => 0,
        [first] => first.into(),
        [first, second, ..] => {
            let last = bytes[bytes.len() - 1];
            u64::from(first) | u64::from(second) << 8 | u64::from(last) << (8 * (bytes.len() - 1))
        }
    }
}

/// Writes the number that [`value_of`] then reads from these bytes.
// A copy of unknown length would be a call.
#[inline(always)]
pub(super) fn put_value(bytes: &mut [u8], mut value: u64) {
    for byte in bytes {
        *byte = value as u8;
        value >>= 8;
    }
}

/// The value of a decimal number below 2^63 without leading zeros. `None` for other texts.
#[inline(always)]
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    match digits {
        [] | [b'0', _, ..] => None,
        [..] if digits.len() < 8 => value_of_few(digits),
        [..] => long_decimal(digits),
    }
}

#[inline(never)]
fn long_decimal(digits: &[u8]) -> Option<u64> {
    let (first, eights) = digits.as_rchunks();
    let mut value = if digits.len() > MOST_DECIMALS { None } else { value_of_few(first) };
    for &eight in eights {
        value = Some(100_000_000 * value? + value_of_eight(u64::from_le_bytes(eight))?);
    }
    value.filter(|&value| value <= i64::MAX as u64)
}

/// The value of fewer than eight decimal digits. `None` if a character is not a digit.
#[inline(always)]
fn value_of_few(digits: &[u8]) -> Option<u64> {
    // Zeros are put before the digits, so that there are eight digits.
    let bits = 8 * digits.len() as u32;
    value_of_eight(value_of(digits).unbounded_shl(64 - bits) | ZEROS >> bits)
}

/// The value of eight decimal digits. The first digit is in the lowest byte of `digits`. `None` if a character is not a
/// digit.
#[inline(always)]
fn value_of_eight(digits: u64) -> Option<u64> {
    let digits = digits ^ ZEROS;
    // For a byte above 9, one of the two terms has the high bit set.
    if (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    // Each step joins two neighbouring lanes into one of twice the width.
    let twos = (10 * digits + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (100 * twos + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some((10_000 * fours + (fours >> 32)) & 0xffff_ffff)
}

/// The eight digits of a number below 10^8, as values 0 to 9 and not as ASCII. The first digit is in the lowest byte.
#[inline]
pub(super) fn eight_decimals(value: u32) -> u64 {
    // The number is split into two of four digits, then four of two digits, then eight digits. A multiplication and a
    // shift do the divisions by 100 and by 10. Another multiplication takes the quotient out of its lane, and puts it
    // into the lane before.
    let thousands = u64::from(value / 10_000);
    let fours = (u64::from(value) << 32).wrapping_sub(thousands * ((10_000 << 32) - 1));
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let twos = (fours << 16).wrapping_sub(hundreds * ((100 << 16) - 1));
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    (twos << 8).wrapping_sub(tens * ((10 << 8) - 1))
}

#[inline(always)]
pub(super) fn put_uuid<'b>(body: &[u8], case: Case, characters: &'b mut [u8; MOST_CHARACTERS]) -> &'b [u8] {
    const NIL: [u8; 48] = *b"00000000-0000-0000-0000-000000000000000000000000";
    let halves: [[u8; 8]; 2] = bytemuck::cast(*body.first_chunk::<16>().unwrap_or(&[0; 16]));
    let [first, second] = halves.map(u64::from_be_bytes);
    // Every half byte is where its digit is in the text, with a 0 for each hyphen.
    let words = [
        first & 0xffff_ffff_0000_0000 | first >> 4 & 0x0fff_f000 | first >> 8 & 0xff,
        first << 56 | second >> 12 & 0x000f_fff0_0000_0000 | second >> 16 & 0xffff_ffff,
        second << 48,
    ];
    let digits = digits_of::<24>(bytemuck::cast(words.map(u64::to_be)), bytemuck::cast(NIL), case);
    characters[..NIL.len()].copy_from_slice(digits.as_flattened());
    &characters[..UUID]
}

#[inline(never)]
pub(super) fn put_hex<'b>(body: &[u8], case: Case, characters: &'b mut [u8; MOST_CHARACTERS]) -> &'b [u8] {
    let mut bytes = [0; MOST_BYTES];
    bytes[..body.len()].copy_from_slice(body);
    *characters = bytemuck::cast(digits_of(bytes, [[b'0'; 2]; MOST_BYTES], case));
    &characters[..2 * body.len()]
}

/// Writes `prefix` and the decimal number in `body` at the end of `characters`. Returns the written text.
#[inline(always)]
pub(super) fn put_decimal<'b>(prefix: &[u8], body: &[u8], characters: &'b mut [u8; MOST_CHARACTERS]) -> &'b [u8] {
    let (mut value, mut start) = (value_of(body), MOST_CHARACTERS);
    let mut put_eight = |value| {
        let eight = eight_decimals(value as u32);
        start -= 8;
        characters[start..start + 8].copy_from_slice(&(eight | ZEROS).to_le_bytes());
        eight
    };
    while value >= 100_000_000 {
        put_eight(value % 100_000_000);
        value /= 100_000_000;
    }
    // Leading zeros are skipped, but not the last digit.
    start += (put_eight(value) | 1 << 56).trailing_zeros() as usize / 8;
    let from = start - prefix.len();
    match prefix.len() {
        0 => {}
        // Storing eight bytes takes less time than copying a few.
        len @ 1..=8 => {
            characters[start - 8..start].copy_from_slice(&(value_of(prefix) << (64 - 8 * len)).to_le_bytes());
        }
        _ => characters[from..start].copy_from_slice(prefix),
    }
    &characters[from..]
}
