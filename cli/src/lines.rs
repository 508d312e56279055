//! Reads items from files that have one item in each line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::failure::Failure;

/// The lines of a file, or of standard input if `path` is `-`. Lines end with `\n` or `\r\n`; empty lines are skipped.
pub fn of(path: &Path) -> Result<impl Iterator<Item = Result<Vec<u8>, Failure>>, Failure> {
    let name = path.display().to_string();
    let cannot = move |error: &io::Error| Failure::of(format!("cannot read {name}: {error}"));
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(|error| cannot(&error))?),
    };
    let lines = BufReader::with_capacity(1 << 20, input).split(b'\n');
    Ok(lines
        .map(move |line| {
            let mut line = line.map_err(|error| cannot(&error))?;
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            Ok(line)
        })
        .filter(|line| !matches!(line, Ok(line) if line.is_empty())))
}
