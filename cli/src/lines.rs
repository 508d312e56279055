//! Reads items from files that have one item in each line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;
use crate::interrupt;

/// The byte-order mark of UTF-8, which some editors write at the start of a file. It is not part of the first item.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of a file of gzip.
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// The number of bytes that [`start`] reads.
pub const MARK_BYTES: usize = UTF8_MARK.len();

/// Reads the first bytes of an input, and returns those that belong to its first item: none if they are a byte-order
/// mark.
///
/// # Errors
/// When the input cannot be read, or begins with the byte-order mark of UTF-16 or as a file of gzip.
pub fn start(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.take(MARK_BYTES as u64).read_to_end(&mut start)?;
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(io::Error::other("it is UTF-16; write it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW"));
    }
    if start == GZIP {
        return Err(io::Error::other("it is compressed by gzip; write it as text: gunzip -c FILE > NEW"));
    }
    Ok(if start == UTF8_MARK { Vec::new() } else { start })
}

/// Bytes per read.
const BUFFER_BYTES: usize = 1 << 20;

/// A pipe. A signal ends a wait for its writer with an error.
struct Pipe(Option<Box<dyn Read + Send>>);

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ended = || io::Error::other("interrupted");
        let (mut input, len) = (self.0.take().ok_or_else(ended)?, into.len());
        let read = move || {
            let mut bytes = vec![0; len];
            let len = input.read(&mut bytes);
            (input, bytes, len)
        };
        let (input, bytes, len) = interrupt::wait(Duration::ZERO, read).map_err(|_| ended())?;
        self.0 = Some(input);
        let len = len?;
        into[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }
}

/// The lines of a file, or of standard input if `path` is `-`. Lines end with `\n` or `\r\n`; empty lines are skipped,
/// and so is a byte-order mark of UTF-8. A signal ends a wait for more lines.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Result<Vec<u8>, Failure>>, Failure> {
    let name = path.display().to_string();
    let cannot = move |error: &io::Error| match interrupt::check() {
        Err(interrupted) => interrupted,
        Ok(()) => Failure::new(format!("cannot read {name}: {error}")),
    };
    let mut input = BufReader::with_capacity(BUFFER_BYTES, opened(path).map_err(|error| cannot(&error))?);
    let start = start(&mut input).map_err(|error| cannot(&error))?;
    let lines = io::Cursor::new(start).chain(input).split(b'\n');
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

fn opened(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(Pipe(Some(Box::new(io::stdin())))));
    }
    let file = File::open(path)?;
    let is_file = file.metadata()?.is_file();
    Ok(if is_file { Box::new(file) } else { Box::new(Pipe(Some(Box::new(file)))) })
}
