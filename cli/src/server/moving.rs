//! Transfers one key from server to server, and computes fingerprints to compare keys.

use std::time::{SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh3::Xxh3;

use super::reply::integer;
use super::temporary::arrive;
use super::value::{Chunk, Read, chunks};
use super::{Class, Server, texts};
use crate::failure::Failure;

/// A fingerprint of all chunks of a value, which does not depend on how the payload is cut into chunks. `build` cuts
/// the payload of a classic filter into smaller chunks than a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Bytes of all chunks.
    pub bytes: u64,
    sum: u128,
}

/// Computes a [`Fingerprint`] chunk by chunk.
pub struct Summing {
    sum: Xxh3,
    bytes: u64,
}

impl Summing {
    pub fn new() -> Self {
        Summing { sum: Xxh3::new(), bytes: 0 }
    }

    pub fn take(&mut self, chunk: &Chunk) {
        self.sum.update(&chunk.1);
        self.bytes += chunk.1.len() as u64;
    }

    pub fn end(self) -> Fingerprint {
        Fingerprint { bytes: self.bytes, sum: self.sum.digest128() }
    }
}

/// The largest number of times that a value is read if it changes while being read.
pub const ATTEMPTS: u32 = 5;

/// The fingerprint of a key's value; `None` if the key is gone.
pub fn fingerprint(server: &mut Server, class: Class, key: &[u8]) -> Result<Option<Fingerprint>, Failure> {
    for _ in 0..ATTEMPTS {
        let mut summing = Summing::new();
        let read = chunks(server, class, key, 0, |chunk| {
            summing.take(&chunk);
            Ok(())
        })?;
        match read {
            Read::Whole => return Ok(Some(summing.end())),
            Read::Gone => return Ok(None),
            Read::Stale => {}
        }
    }
    Err(Failure::new(format!("{}: its window moves on faster than it can be read", super::shown(key))))
}

/// The outcome of a transfer.
#[derive(Debug)]
pub enum Transfer {
    /// All chunks were transferred.
    Done(Fingerprint),
    /// The source is gone.
    Gone,
    /// The value changed during every attempt, so that its chunks did not fit together.
    Unsteady(String),
}

/// Reads the value of `key` and loads it as `temporary`, replacing an existing value. `moved` is called with the length
/// of each chunk.
pub fn transfer(
    (source, target): (&mut Server, &mut Server),
    class: Class,
    key: &[u8],
    temporary: &[u8],
    mut moved: impl FnMut(u64) -> Result<(), Failure>,
) -> Result<Transfer, Failure> {
    let mut error = String::new();
    for _ in 0..ATTEMPTS {
        target.call(temporary, redis::cmd("UNLINK").arg(temporary))?;
        error.clear();
        let mut summing = Summing::new();
        let read = chunks(source, class, key, 0, |chunk| {
            if error.is_empty() {
                summing.take(&chunk);
                if let Err(text) = arrive(target, class, temporary, &chunk)? {
                    error = text;
                }
                moved(chunk.1.len() as u64)?;
            }
            Ok(())
        })?;
        match read {
            Read::Whole if error.is_empty() => return Ok(Transfer::Done(summing.end())),
            Read::Gone => {
                target.call(temporary, redis::cmd("UNLINK").arg(temporary))?;
                return Ok(Transfer::Gone);
            }
            // Chunks that do not fit together are read again; any other error would occur again.
            Read::Whole if !texts::is_bad_data(&error) => break,
            _ => {}
        }
    }
    target.call(temporary, redis::cmd("UNLINK").arg(temporary))?;
    Ok(Transfer::Unsteady(error))
}

/// When a key expires, in milliseconds since 1970; `None` if it does not.
pub fn expires_at(server: &mut Server, key: &[u8]) -> Result<Option<u64>, Failure> {
    let at = match server.ask(key, redis::cmd("PEXPIRETIME").arg(key))? {
        Ok(reply) => integer(&reply).unwrap_or(-1),
        Err(text) if texts::is_unknown_command(&text) => {
            let left = integer(&server.call(key, redis::cmd("PTTL").arg(key))?).unwrap_or(-1);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            if left < 0 { left } else { left.saturating_add(i64::try_from(now).unwrap_or(i64::MAX)) }
        }
        Err(text) => return Err(server.rejected(key, "PEXPIRETIME", &text)),
    };
    Ok(u64::try_from(at).ok())
}
