//! `dump`: writes a key to a file. An interrupted dump continues if the value has not changed.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::file::{Entry, Kind, Reader, Writer, part_of};
use crate::interrupt::Interrupt;
use crate::output::{Output, report};
use crate::progress;
use crate::server::{ATTEMPTS, Chunk, Class, Read, Server, Url};
use crate::server::{chunks, expires_at, first_chunk, integer, pairs, shown, text};
use crate::table;

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct Dump {
    /// The filter or counter to dump
    key: String,
    /// The file to write
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Do not store the key's time to live in the file
    #[arg(long)]
    no_ttl: bool,
    #[command(flatten)]
    url: Url,
}

/// The result of a dump.
#[derive(Debug, Serialize)]
struct Dumped {
    key: String,
    kind: &'static str,
    bytes: u64,
    /// Bytes that an earlier dump had already written.
    resumed_bytes: u64,
    /// Whether the value changed while it was read. Items added since the dump began may be missing from the file.
    changed_meanwhile: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
}

/// The end of one attempt: the whole value was read, or the dump has to begin again.
enum Attempt {
    Whole { bytes: u64, changed: bool },
    Again,
}

impl Dump {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        let mut server = Server::connect(&self.url.url, &self.url.access)?;
        let key = self.key.as_bytes();
        let class = server.class_of(key)?.ok_or_else(|| no_key(key))?;
        let expires_at = if self.no_ttl { None } else { expires_at(&mut server, key)? };
        let kind = if class == Class::Counter { Kind::Counter } else { Kind::Filter };
        let entry = Entry { kind, key: Some(key.to_owned()), expires_at };
        let part = part_of(&self.file);
        let mut old = part.exists().then_some(&part);
        for _ in 0..ATTEMPTS {
            let mut writer = Writer::create(&self.file, self.force)?;
            let mut resumed = 0;
            match self.attempt(&mut server, class, &entry, &mut writer, old, &mut resumed, &interrupt) {
                Ok(Attempt::Whole { bytes, changed }) => {
                    writer.finish()?;
                    let dumped = Dumped {
                        key: shown(key),
                        kind: class.noun(),
                        bytes,
                        resumed_bytes: resumed,
                        changed_meanwhile: changed,
                        expires_at_ms: expires_at,
                    };
                    return output.answer(&dumped, Dumped::text);
                }
                Ok(Attempt::Again) => {
                    report(format_args!("{} changed: the dump begins again", shown(key)));
                    old = None;
                }
                Err(failure) if !writer.is_within_value() && old.is_none() => return Err(failure),
                Err(failure) => {
                    writer.keep()?;
                    return Err(failure.note(format!("what arrived is kept as {}", part.display())));
                }
            }
        }
        Err(Failure::new(format!("{} changes faster than it can be read", shown(key)))
            .advise("dump it when fewer write to it"))
    }

    /// Makes one attempt to read the value into `writer`. `old` is the file of an interrupted dump, whose chunks are
    /// copied if the value has not changed.
    #[expect(clippy::too_many_arguments, reason = "all of one attempt, which may leave the writer in the middle")]
    fn attempt(
        &self,
        server: &mut Server,
        class: Class,
        entry: &Entry,
        writer: &mut Writer,
        old: Option<&PathBuf>,
        resumed: &mut u64,
        interrupt: &Interrupt,
    ) -> Result<Attempt, Failure> {
        let key = self.key.as_bytes();
        let header = first_chunk(server, class, key)?.ok_or_else(|| no_key(key))?;
        let shape = shape(server, class, key)?;
        writer.begin(entry)?;
        let mut bytes = 0;
        let mut from = 0;
        if let Some(old) = old {
            match take_over(server, class, key, entry, &header, old, writer)? {
                Some((iterator, taken)) => (from, bytes, *resumed) = (iterator, taken, taken),
                None => return Ok(Attempt::Again),
            }
        }
        let bar = progress::bar(size(server, class, key)?, "bytes");
        bar.inc(bytes);
        let read = chunks(server, class, key, from, |(iterator, chunk)| {
            interrupt.check()?;
            bytes += chunk.len() as u64;
            bar.inc(chunk.len() as u64);
            writer.chunk(iterator, &chunk)
        })?;
        bar.finish_and_clear();
        match read {
            Read::Gone => return Err(no_key(key)),
            Read::Stale => return Ok(Attempt::Again),
            Read::Whole => {}
        }
        let now = first_chunk(server, class, key)?.ok_or_else(|| no_key(key))?;
        let changed = now != header;
        // The chunks of a value that grew while it was read do not fit together.
        if changed && self::shape(server, class, key)? != shape {
            return Ok(Attempt::Again);
        }
        writer.end()?;
        Ok(Attempt::Whole { bytes, changed })
    }
}

impl Dumped {
    fn text(&self) -> String {
        let mut text = format!("{}: a {}, {}", self.key, self.kind, table::bytes(self.bytes));
        if self.resumed_bytes > 0 {
            text += &format!(", {} of it from before", table::bytes(self.resumed_bytes));
        }
        if self.changed_meanwhile {
            text += "\nit was written to meanwhile: what was added since the dump began may be missing";
        }
        text
    }
}

/// Copies the chunks of an interrupted dump to `writer`. Returns the iterator at which reading continues, and the
/// number of bytes copied; `None` if the value has changed since.
///
/// `writer` overwrites the file `old` itself, chunk by chunk. All records before a chunk keep their lengths, so each
/// chunk is read before it is overwritten.
fn take_over(
    server: &mut Server,
    class: Class,
    key: &[u8],
    entry: &Entry,
    header: &Chunk,
    old: &Path,
    writer: &mut Writer,
) -> Result<Option<(u64, u64)>, Failure> {
    // A truncated file is read up to its last complete chunk.
    let Ok(mut reader) = Reader::open(old) else { return Ok(None) };
    match reader.next_value() {
        Ok(Some(found)) if found.kind == entry.kind && found.key == entry.key => {}
        _ => return Ok(None),
    }
    let (mut at, mut before, mut bytes) = (0, 0, 0);
    let mut last = Vec::new();
    while let Ok(Some((iterator, chunk))) = reader.next_chunk() {
        if at == 0 && (iterator, &chunk) != (header.0, &header.1) {
            return Ok(None);
        }
        writer.chunk(iterator, &chunk)?;
        bytes += chunk.len() as u64;
        (before, at, last) = (at, iterator, chunk);
    }
    if at == 0 {
        return Ok(None);
    }
    // The caller has compared the header, which shows new items. Changed bits show in the last chunk, which is read
    // again.
    let mut same = None;
    let read = chunks(server, class, key, before, |(iterator, chunk)| {
        same = Some(iterator == at && chunk == last);
        Err(Failure::new("one is enough"))
    });
    match same {
        Some(same) => Ok(same.then_some((at, bytes))),
        None => read.map(|_| None),
    }
}

/// Properties of a value that must not change during a dump; otherwise the chunks would not fit together.
fn shape(server: &mut Server, class: Class, key: &[u8]) -> Result<Vec<String>, Failure> {
    let info = pairs(&server.call(key, class.command("INFO").arg(key))?);
    let value = |label: &str| info.iter().find(|(name, _)| name == label).map(|(_, value)| value);
    let mut shape: Vec<String> = Vec::new();
    shape.extend(value("Number of filters").and_then(integer).map(|number| number.to_string()));
    shape.extend(value("Mode").and_then(text));
    shape.extend(value("Count").and_then(integer).map(|number| number.to_string()));
    Ok(shape)
}

/// An estimate of the size of the dump in bytes; `None` if the server does not report a size.
fn size(server: &mut Server, class: Class, key: &[u8]) -> Result<Option<u64>, Failure> {
    let info = pairs(&server.call(key, class.command("INFO").arg(key))?);
    let size = info.iter().find(|(name, _)| name == "Size").and_then(|(_, value)| integer(value));
    Ok(size.and_then(|size| u64::try_from(size).ok()))
}

fn no_key(key: &[u8]) -> Failure {
    Failure::nothing(format!("there is no key {}", shown(key)))
}
