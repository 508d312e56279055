//! Figures and keys as sentences and commands have them.

/// A number of items with a tenth of room, in two figures.
pub(super) fn round_up(items: u64) -> u64 {
    let wanted = items.saturating_add(items / 10).max(1);
    let mut unit = 1_u64;
    while wanted / unit >= 100 {
        unit *= 10;
    }
    wanted.div_ceil(unit).saturating_mul(unit)
}

/// A rate in three figures.
pub(super) fn rate(rate: f64) -> String {
    let rounded: f64 = format!("{rate:.2e}").parse().unwrap_or(rate);
    if rounded > 0.0 && rounded < 1e-4 { format!("{rounded:e}") } else { format!("{rounded}") }
}

/// A share in three figures: `99.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", rate(share * 100.0))
}

/// A key as redis-cli takes it: plain where it can be, else in double quotes with escapes.
fn quoted(key: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    match std::str::from_utf8(key) {
        Ok(plain) if !key.is_empty() && key.iter().all(is_plain) => plain.to_owned(),
        // `escape_ascii` writes `\'`, which redis-cli takes for `'` in double quotes too.
        _ => format!("\"{}\"", key.escape_ascii()),
    }
}

/// The name for what will replace a key, quoted. In a cluster both are in one slot, as RENAME needs them: the tag in
/// braces of the key is that of the new name, and a key without a tag becomes one. (A key with `}` and without a tag
/// cannot become one.)
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
        // Below a ten-thousandth the zeros would have to be counted.
        assert_eq!([1e-4, 9.99e-5, 1e-5].map(rate), ["0.0001", "9.99e-5", "1e-5"]);
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
    fn keys_can_be_typed() {
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
