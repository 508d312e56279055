//! Random values of arguments. Most are valid, and some are nearly valid.

use rollcall_fuzz::random::Random;

/// Number of key names. One name is empty, and one is not valid UTF-8.
pub const KEYS: usize = 24;

/// The length of the longest string in bytes.
const LARGE: usize = 1 << 20;

/// Numbers that hardly any argument accepts, next to the powers of two of [`integer`]: limits of types, and text that
/// is nearly a whole number.
const ODD_NUMBERS: &str = "0|-1|-0|+1|01| 1|1 ||1.5|1e3|0x10|1mb|nan|inf|x|-|3.0|10000000000|\
     9223372036854775807|-9223372036854775808|18446744073709551615|18446744073709551616|99999999999999999999999999999";

/// Numbers that are hardly ever valid as a rate.
const ODD_RATES: &str = "0|1|-0.0|-0.1|1.0|2|0.25|0.250000001|0.999999999999|1e-9|1e-300|1e-400|5e-324|1e300|\
     1e400|nan|-nan|inf|-inf|.5|5.|0x1p-4|| 0.1|0.1x|1e|+0.1|0,1";

const RATES: [&str; 10] = ["0.01", "0.001", "0.1", "0.05", "0.25", "0.0001", "0.2", "0.5", "1e-6", "0.02"];

/// Usual numbers of seconds, slices, items or bytes.
const USUAL: [&str; 14] = ["1", "2", "3", "4", "8", "10", "16", "60", "64", "100", "250", "1000", "3600", "86400"];

/// The key name with this number.
pub fn key(number: usize) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        1 => b"\0\xff\r\n \"k".to_vec(),
        number => format!("k{number}").into_bytes(),
    }
}

pub fn integer(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0..4 => random.of(&USUAL).as_bytes().to_vec(),
        4..7 => random.up_to(5_000).to_string().into_bytes(),
        7 => (1u64 << random.below(64)).wrapping_add_signed(random.below(3) as i64 - 1).to_string().into_bytes(),
        8 => random.up_to(1 << 24).to_string().into_bytes(),
        _ => random.of_texts(ODD_NUMBERS),
    }
}

pub fn double(random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0 => random.of_texts(ODD_RATES),
        1 => f64::from_bits(random.number()).to_string().into_bytes(),
        _ => random.of(&RATES).as_bytes().to_vec(),
    }
}

/// A time near `now`, in seconds or milliseconds since the Unix epoch.
pub fn unix_time(random: &mut Random, now: u64) -> Vec<u8> {
    let unit = *random.of(&[1, 1000]);
    match random.below(4) {
        0 => integer(random),
        1 => (now * unit).wrapping_sub(random.up_to(100) as u64).to_string().into_bytes(),
        _ => (now * unit + unit * (60 + random.up_to(100_000) as u64)).to_string().into_bytes(),
    }
}

/// An item, mostly one of a thousand different ones.
pub fn item(random: &mut Random) -> Vec<u8> {
    match random.below(400) {
        0 => vec![random.number() as u8; LARGE],
        1..8 => Vec::new(),
        8..40 => random.number().to_be_bytes()[random.below(8)..].to_vec(),
        40..48 => vec![b'a'; random.up_to(5_000)],
        _ => format!("item:{}", random.up_to(1_000)).into_bytes(),
    }
}

/// Any argument: a number, a rate, an item or random bytes.
pub fn any(random: &mut Random) -> Vec<u8> {
    match random.below(5) {
        0 => integer(random),
        1 => double(random),
        2 => random.of_texts(ODD_NUMBERS),
        3 => key(random.below(KEYS)),
        _ => item(random),
    }
}
