//! Parses numbers for the whole module, and formats them as RedisBloom does.
//!
//! Numbers from clients have no spaces and are not `inf` or `nan`. A sign is rejected if a negative number makes no
//! sense.

use std::ffi::CStr;
use std::ptr::null_mut;

/// Parses a whole number without sign; leading zeros are allowed.
pub fn parse_unsigned(bytes: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Parses a finite number.
pub fn parse_number(bytes: &[u8]) -> Option<f64> {
    // Rust would also parse "inf" and "nan".
    let plain = bytes.iter().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: f64 = std::str::from_utf8(bytes).ok().filter(|_| plain)?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Parses a whole number as the server writes it: without `+` and leading zeros.
pub fn parse_canonical(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let value: i64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// Parses a number of bytes in the syntax of redis.conf: `1kb` is 1024, `1k` is 1000.
pub fn parse_bytes(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let unit: u64 = match text[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    parse_unsigned(&text[..digits])?.checked_mul(unit)
}

/// Parses a number with the C library's `strtod`, as the server does. The whole text must be the number.
pub fn parse_as_c(text: &CStr) -> Option<f64> {
    let bytes = text.to_bytes();
    // `strtod` would skip spaces before the number.
    if bytes.first().is_none_or(|first| first.is_ascii_whitespace() || *first == b'\x0b') {
        return None;
    }
    let mut end = null_mut();
    // SAFETY: the text ends with NUL and outlives the call; `end` is written, and points into the text.
    let (value, read) = unsafe {
        let value = libc::strtod(text.as_ptr(), &raw mut end);
        (value, end.cast_const().offset_from(text.as_ptr()))
    };
    (read == bytes.len() as isize && !value.is_nan()).then_some(value)
}

/// Formats a rate with four significant digits.
pub fn four_digits(rate: f64) -> String {
    if (1e-4..1.0).contains(&rate) {
        let leading_zeros = -libm::floor(libm::log10(rate)) as usize;
        format!("{rate:.0$}", leading_zeros + 3)
    } else {
        format!("{rate:.3e}")
    }
}

/// Formats a number with C's `%g`, as RedisBloom writes rates.
pub fn as_c_prints(number: f64) -> String {
    let mut text = [0u8; 32];
    // SAFETY: the format takes one double, and `snprintf` writes no more bytes than the buffer has.
    let len = unsafe { libc::snprintf(text.as_mut_ptr().cast(), text.len(), c"%g".as_ptr(), number) };
    String::from_utf8_lossy(text.get(..len as usize).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_in_redis_conf() {
        for (text, bytes) in [("1", 1), ("5b", 5), ("1k", 1000), ("1kb", 1024), ("2MB", 2 << 20), ("4gb", 4 << 30)] {
            assert_eq!(parse_bytes(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["", "gb", "1tb", "-1", "1 kb", "99999999999999999999", "18446744073709551615kb"] {
            assert_eq!(parse_bytes(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn general_numbers_are_those_of_c() {
        for (number, text) in [
            (0.005, "0.005"),
            (0.000_625, "0.000625"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.333333"),
            (7.8125e-5, "7.8125e-05"),
            (1e-10, "1e-10"),
            (0.000_100_000_01, "0.0001"),
        ] {
            assert_eq!(as_c_prints(number), text);
        }
    }

    #[test]
    fn rates_have_four_digits() {
        for (rate, text) in [(0.0104, "0.01040"), (0.001_04, "0.001040"), (0.25, "0.2500"), (1.234_56e-5, "1.235e-5")] {
            assert_eq!(four_digits(rate), text);
        }
    }
}
