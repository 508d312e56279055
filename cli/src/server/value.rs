//! Reads whole values by SCANDUMP.

use redis::Value;
use rollcall_core::unstable::wire::STALE;

use super::reply::{bytes, integer, items};
use super::texts::is_gone;
use super::{Class, Server, shown};
use crate::failure::Failure;

/// A reply to SCANDUMP: the next iterator, and the chunk.
pub type Chunk = (u64, Vec<u8>);

/// The outcome of reading a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The whole value was read.
    Whole,
    /// The key is gone: deleted, or expired.
    Gone,
    /// The window moved on, so the dump has to begin again.
    Stale,
}

/// Reads the chunks of a key's value, beginning with `SCANDUMP` iterator `from`, and passes each chunk to `take`.
pub fn chunks(
    server: &mut Server,
    class: Class,
    key: &[u8],
    from: u64,
    mut take: impl FnMut(Chunk) -> Result<(), Failure>,
) -> Result<Read, Failure> {
    let mut iterator = from;
    loop {
        match chunk(server, class, key, iterator)? {
            Err(read) => return Ok(read),
            Ok((0, _)) => return Ok(Read::Whole),
            Ok((next, bytes)) => {
                take((next, bytes))?;
                iterator = next;
            }
        }
    }
}

/// The header of a value, which is its first chunk; `None` if the key does not exist.
pub fn first_chunk(server: &mut Server, class: Class, key: &[u8]) -> Result<Option<Chunk>, Failure> {
    Ok(chunk(server, class, key, 0)?.ok())
}

fn chunk(server: &mut Server, class: Class, key: &[u8], iterator: u64) -> Result<Result<Chunk, Read>, Failure> {
    let reply: Value = match server.ask(key, class.command("SCANDUMP").arg(key).arg(iterator))? {
        Ok(reply) => reply,
        Err(text) if text.starts_with(STALE) => return Ok(Err(Read::Stale)),
        Err(text) if is_gone(&text) => return Ok(Err(Read::Gone)),
        Err(text) => return Err(server.rejected(key, &format!("{}.SCANDUMP {}", class.family(), shown(key)), &text)),
    };
    let parts = items(&reply).filter(|parts| parts.len() == 2);
    let pair = parts.and_then(|parts| Some((u64::try_from(integer(&parts[0])?).ok()?, bytes(&parts[1])?)));
    pair.map(Ok).ok_or_else(|| Failure::new(format!("SCANDUMP of {} answered what it never should", shown(key))))
}
