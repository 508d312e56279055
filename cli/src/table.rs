//! Formats text tables: columns as wide as necessary, numbers aligned to the right.

/// Formats `rows` as lines. The first row has the heads; a column with a head that begins with `>` is aligned to the
/// right.
pub fn table(rows: &[Vec<String>]) -> String {
    let Some(heads) = rows.first() else { return String::new() };
    let is_right: Vec<bool> = heads.iter().map(|head| head.starts_with('>')).collect();
    let cell = |at: usize, row: usize| match rows[row].get(at).map(String::as_str).unwrap_or_default() {
        head if row == 0 => head.trim_start_matches('>'),
        other => other,
    };
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| (0..rows.len()).map(|row| cell(at, row).chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: usize| {
        let cells = (0..heads.len()).map(|at| {
            let (text, width) = (cell(at, row), widths[at]);
            if is_right[at] { format!("{text:>width$}") } else { format!("{text:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    (0..rows.len()).map(line).collect::<Vec<_>>().join("\n")
}

/// Formats a number of bytes in three figures: `1.31 MB`.
pub fn bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ if value < 9.995 => format!("{value:.2} {unit}"),
        _ if value < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// A whole number with commas: `1,310,184`.
pub fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 key`, `2 keys`.
pub fn noun(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(number as i64), if number == 1 { "" } else { "s" })
}

/// Formats seconds in the two largest units: `2 d 3 h`.
pub fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["key", ">items"], ["a", "1,000"], ["längste", "2"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "key      items\na        1,000\nlängste      2");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0, "0 B"), (999, "999 B"), (1310184, "1.31 MB"), (9_999_999, "10.0 MB"), (999_999, "1.00 MB")]
        {
            assert_eq!(bytes(value), text);
        }
        assert_eq!([0, 999, 1000, -1234567].map(count), ["0", "999", "1,000", "-1,234,567"]);
        assert_eq!([59, 61, 7260, 90_000].map(seconds), ["59 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]);
    }
}
