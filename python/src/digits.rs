//! Whole numbers as decimal digits. Eight digits at a time are computed in one 64-bit word.

/// The bytes of a cell: 20 digits, or a sign and 19, at its end.
pub(crate) const CELL_BYTES: usize = 24;

/// Writes a number to the end of a cell, and returns where its text begins.
#[inline]
pub(crate) fn write(is_negative: bool, magnitude: u64, cell: &mut [u8; CELL_BYTES]) -> usize {
    let (mut rest, mut start) = (magnitude, CELL_BYTES);
    let (words, _) = cell.as_chunks_mut::<8>();
    for word in words.iter_mut().rev() {
        let digits = eight_digits(rest % 100_000_000);
        *word = (digits | 0x3030_3030_3030_3030).to_le_bytes();
        rest /= 100_000_000;
        if rest == 0 {
            // The first digit is the lowest byte. Zero has one digit.
            start -= 8 - (digits.trailing_zeros() as usize / 8).min(7);
            break;
        }
        start -= 8;
    }
    if is_negative {
        start -= 1;
        cell[start] = b'-';
    }
    start
}

/// The digits of a number below 10^8, a byte each, the first in the lowest byte.
#[inline]
fn eight_digits(number: u64) -> u64 {
    // Two parts of four digits, then four of two, then eight of one. Each quotient is a product and a shift, exact for
    // these sizes.
    let fours = (number / 10_000) | (number % 10_000) << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}
