//! Tables for the terminal and for documents.

/// A table in Markdown whose columns also line up as plain text.
pub fn table(heads: &[&str], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<_> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let mut table = line(&mut heads.iter().copied());
    table += &line(&mut widths.iter().map(|_| "---"));
    lines.iter().for_each(|cells| table += &line(&mut cells.iter().map(String::as_str)));
    table
}
