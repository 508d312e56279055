//! Reads numbers as people type them (`100M`, `1.5k`, `2^20`, `1e6`, `0.1%`, `12 h`), and formats numbers for display.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::table;

/// Reads a whole number: with a suffix k, M, G or T (powers of 1,000), Ki, Mi, Gi or Ti (powers of 1,024), as a power
/// `2^20`, or as `1e6`. Commas and underscores are ignored.
///
/// # Errors
/// When `text` is not a whole number. The error is a message for the user.
pub fn whole(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no whole number: give one as 1000000, 1e6, 1M, 1Mi or 2^20");
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    if let Some((base, exponent)) = plain.split_once('^') {
        let (base, exponent) = (base.parse::<u64>().map_err(|_| wrong())?, exponent.parse().map_err(|_| wrong())?);
        return base.checked_pow(exponent).ok_or_else(|| format!("{text} is too large"));
    }
    let (digits, times) = split_suffix(&plain).ok_or_else(wrong)?;
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(times).ok_or_else(|| format!("{text} is too large"));
    }
    let number = digits.parse::<f64>().map_err(|_| wrong())? * times as f64;
    if number > 9e15 && digits.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(format!("{text} is too large"));
    }
    // An `f64` represents every whole number up to this one.
    if number.fract() != 0.0 || !(0.0..=9e15).contains(&number) { Err(wrong()) } else { Ok(number as u64) }
}

fn split_suffix(text: &str) -> Option<(&str, u64)> {
    let suffixes = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1000),
        ("K", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    let found = suffixes.into_iter().find_map(|(suffix, times)| Some((text.strip_suffix(suffix)?, times)));
    found.or(Some((text, 1)))
}

/// A share: `0.001`, `0.1%`, `1e-3`, `1/1000`.
///
/// # Errors
/// When `text` is not a share. The error is a message for the user.
pub fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is no share: give one as 0.001, 0.1%, 1e-3 or 1/1000");
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
    let share = if let Some(percent) = text.strip_suffix('%') {
        // Dividing by 100 gives the `f64` nearest to 0.001 for `0.1%`; multiplying by 0.01, which no `f64` equals, may
        // miss it.
        number(percent)? / 100.0
    } else if let Some((of, all)) = text.split_once('/') {
        number(of)? / number(all)?
    } else {
        number(text)?
    };
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err(format!("{text} is not between 0 and 1")) }
}

/// A time in seconds: `3600`, `90s`, `15m`, `12h`, `7d`.
///
/// # Errors
/// When `text` is not a time. The error is a message for the user.
pub fn seconds(text: &str) -> Result<u64, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let found = units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (digits, times) = found.unwrap_or((text, 1));
    let number = digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(times));
    number.ok_or_else(|| format!("'{text}' is no time: give one as 3600, 90s, 15m, 12h or 7d"))
}

/// A time to live in seconds, for `--ex`.
///
/// # Errors
/// When `text` is no time, or is out of range.
pub fn expiry(text: &str) -> Result<u64, String> {
    const MOST: u64 = 100_000_000_000;
    let wrong = |time| format!("{time} seconds are not from 1 to {MOST}");
    seconds(text).and_then(|time| if (1..=MOST).contains(&time) { Ok(time) } else { Err(wrong(time)) })
}

/// When a key expires that has this number of seconds from now on: milliseconds since 1970.
pub fn expires_in(seconds: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or(u64::MAX).saturating_add(seconds.saturating_mul(1000))
}

/// Formats a share in per cent, in up to three figures: `0.1 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (2 - percent.log10().floor() as i64).clamp(0, 15) as usize } else { 0 };
    let text = format!("{percent:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match percent.abs() {
        1000.0.. => format!("{} %", table::count(percent as i64)),
        _ => format!("{text} %"),
    }
}

/// Formats a number with two decimals if they are significant, else without decimals.
pub fn decimal(number: f64) -> String {
    match number.abs() {
        1000.0.. => table::count(number as i64),
        _ => format!("{number:.2}"),
    }
}

/// Formats a number like [`decimal`], with its sign.
pub fn signed(number: f64) -> String {
    let sign = if number.is_sign_negative() { "" } else { "+" };
    format!("{sign}{}", decimal(number))
}

/// Formats the change between two numbers: `+1.25 %`, `12,000 times`, or the difference if `from` is 0.
pub fn change(from: u64, to: u64) -> String {
    match to as f64 / from as f64 {
        _ if from == 0 => format!("+{}", table::count(i64::try_from(to).unwrap_or(i64::MAX))),
        times if times >= 10.0 => format!("{} times", table::count(times as i64)),
        times => format!("{:+.2} %", (times - 1.0) * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_type_them() {
        for (text, number) in [
            ("0", 0),
            ("100M", 100_000_000),
            ("2^20", 1 << 20),
            ("1e6", 1_000_000),
            ("1.5k", 1500),
            ("1_000,000", 1_000_000),
            ("3Gi", 3 << 30),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(whole(text), Ok(number), "{text}");
        }
        for text in ["", "k", "1.5", "-1", "1e99", "2^64", "2^-1", "20000000000G", "ten", "NaN", "inf"] {
            assert!(whole(text).is_err(), "{text}");
        }
        for (text, error) in [("1e30", "1e30 is too large"), ("1e999", "1e999 is too large"), ("inf", "'inf' is no")] {
            assert!(whole(text).is_err_and(|said| said.starts_with(error)), "{text}");
        }
        for (text, number) in [("0.1%", 0.001), ("1e-3", 0.001), ("1/1000", 0.001), ("1%", 0.01), ("0.5", 0.5)] {
            assert_eq!(share(text), Ok(number), "{text}");
        }
        for text in ["0", "1", "100%", "-0.1", "1/0", "", "%", "NaN"] {
            assert!(share(text).is_err(), "{text}");
        }
        for (text, number) in [("3600", 3600), ("12h", 43_200), ("7d", 604_800), ("15m", 900), ("9s", 9)] {
            assert_eq!(seconds(text), Ok(number), "{text}");
        }
        assert!(["", "h", "1.5h", "-1", "300000000000000000d"].into_iter().all(|text| seconds(text).is_err()));
    }

    #[test]
    fn shares_are_shown_in_three_figures() {
        let shown = [0.001, 0.01, 0.012345, 0.5, 0.999, 1e-9, 0.0].map(percent);
        assert_eq!(shown, ["0.1 %", "1 %", "1.23 %", "50 %", "99.9 %", "0.0000001 %", "0 %"]);
        assert_eq!([9.99, 10.0, 104.08, 1_249_888.5].map(percent), ["999 %", "1,000 %", "10,408 %", "124,988,850 %"]);
    }

    /// The difference between a counter and a set that did not exist was once printed as `+124988850.00 %`.
    #[test]
    fn large_numbers_have_no_decimals_and_have_commas() {
        assert_eq!([0.0, -1.234, 999.994, 12_294_231.221].map(decimal), ["0.00", "-1.23", "999.99", "12,294,231"]);
        assert_eq!([0.0, -1.234, 1_249_888.5].map(signed), ["+0.00", "-1.23", "+1,249,888"]);
        let changes = [(100, 99), (100, 100), (3, 4), (0, 1_249_888), (0, 0), (1, 1_249_888), (10, 0)];
        let shown = changes.map(|(from, to)| change(from, to));
        assert_eq!(shown, ["-1.00 %", "+0.00 %", "+33.33 %", "+1,249,888", "+0", "1,249,888 times", "-100.00 %"]);
    }
}
