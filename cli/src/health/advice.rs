//! Formats numbers and keys for the sentences and commands of findings.

/// A number of items plus a tenth, rounded up to two significant digits.
pub(super) fn round_up(items: u64) -> u64 {
    let wanted = items.saturating_add(items / 10).max(1);
    let mut unit = 1_u64;
    while wanted / unit >= 100 {
        unit *= 10;
    }
    wanted.div_ceil(unit).saturating_mul(unit)
}

/// A rate in three significant digits.
pub(super) fn rate(rate: f64) -> String {
    let rounded: f64 = format!("{rate:.2e}").parse().unwrap_or(rate);
    exact(rounded)
}

/// A rate in all its digits, for commands. MERGE takes only values with equal rates.
pub(super) fn exact(rate: f64) -> String {
    if rate > 0.0 && rate < 1e-4 { format!("{rate:e}") } else { format!("{rate}") }
}

/// A share in per cent, in three significant digits: `99.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", rate(share * 100.0))
}

/// A key as redis-cli reads it: unchanged if possible, else in double quotes with escapes.
fn quoted(key: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    match std::str::from_utf8(key) {
        Ok(plain) if !key.is_empty() && key.iter().all(is_plain) => plain.to_owned(),
        // `escape_ascii` writes `'` as `\'`, which redis-cli also accepts within double quotes.
        _ => format!("\"{}\"", key.escape_ascii()),
    }
}

/// A quoted name for the value that will replace a key, in the same cluster slot, as RENAME requires. It has the hash
/// tag of the key; a key without a hash tag becomes the tag. Only a key that has `}` and no hash tag gets a name in
/// another slot.
pub(super) fn new_name(key: &[u8]) -> String {
    const END: &[u8] = b":new";
    let opened = key.iter().position(|&byte| byte == b'{').map(|at| &key[at + 1..]);
    let has_tag = opened.is_some_and(|rest| rest.iter().position(|&byte| byte == b'}').is_some_and(|len| len > 0));
    let tagged =
        if has_tag || key.is_empty() || key.contains(&b'}') { key.to_vec() } else { [b"{", key, b"}"].concat() };
    quoted(&[&tagged, END].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_get_a_tenth_of_room() {
        let rounded = [0, 1, 10, 99, 1000, 81_234, u64::MAX].map(round_up);
        assert_eq!(rounded, [1, 1, 11, 110, 1100, 90_000, u64::MAX]);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.01, 0.010449, 1.0 / 3.0, 0.0].map(rate), ["0.01", "0.0104", "0.333", "0"]);
        // Smaller rates are written with an exponent, so that nobody has to count zeros.
        assert_eq!([1e-4, 9.99e-5, 1e-5].map(rate), ["0.0001", "9.99e-5", "1e-5"]);
        assert_eq!([0.012345678, 1.0 / 3.0, 1.2345e-5].map(exact), ["0.012345678", "0.3333333333333333", "1.2345e-5"]);
        assert_eq!([0.995, 1.0, 1.23456].map(percent), ["99.5 %", "100 %", "123 %"]);
    }

    #[test]
    fn a_new_name_is_in_the_slot_of_the_key() {
        for (key, new) in [
            (&b"seen"[..], "{seen}:new"),
            (b"user:{1}:seen", "user:{1}:seen:new"),
            (b"{a}{b}", "{a}{b}:new"),
            (b"a{b", "{a{b}:new"),
            (b"two words", "\"{two words}:new\""),
            (b"", ":new"),
            (b"a}b", "a}b:new"),
            (b"{}a", "{}a:new"),
        ] {
            assert_eq!(new_name(key), new);
        }
    }

    #[test]
    fn keys_are_quoted_for_redis_cli() {
        for (key, typed) in [
            (&b"user:{1}:seen"[..], "user:{1}:seen"),
            (b"", "\"\""),
            (b"two words", "\"two words\""),
            (b"it's", "\"it\\'s\""),
            (b"a\"\\\n\xff", "\"a\\\"\\\\\\n\\xff\""),
        ] {
            assert_eq!(quoted(key), typed);
        }
    }
}
