//! Reads and copies small values in batches. On its own, a value takes one round trip for each of its chunks.

use super::reply::{bytes, integer, items};
use super::temporary::{self, Named};
use super::value::Chunk;
use super::{Answer, Class, Fingerprint, Server, Summing};
use crate::failure::Failure;

/// The most bytes of server memory that a small value takes.
pub const SMALL_BYTES: u64 = 64 << 10;

/// Reads the chunks of small values together. A result is `None` if the value has to be read on its own: it has more
/// than two chunks or a window, or the key is gone.
pub fn read_small(server: &mut Server, keys: &[(&[u8], Class)]) -> Result<Vec<Option<Vec<Chunk>>>, Failure> {
    let ask =
        |(key, class): &(&[u8], Class), iterator: u64| class.command("SCANDUMP").arg(*key).arg(iterator).to_owned();
    let first: Vec<_> = keys.iter().flat_map(|key| [(key.0, ask(key, 0)), (key.0, ask(key, 1))]).collect();
    let answers = server.ask_all(&first)?;
    let mut values: Vec<Option<Vec<Chunk>>> = answers.chunks_exact(2).map(begun).collect();
    // A small value has at most two chunks. So if a value has a second chunk, the next reply must be the end.
    let long = |value: &Option<Vec<Chunk>>| value.as_ref().filter(|chunks| chunks.len() > 1).map(|chunks| chunks[1].0);
    let rest: Vec<_> =
        keys.iter().zip(&values).filter_map(|(key, value)| Some((key.0, ask(key, long(value)?)))).collect();
    let mut ends = server.ask_all(&rest)?.into_iter();
    for value in &mut values {
        if long(value).is_some() && ends.next().and_then(|end| pair(&end)).is_none_or(|(next, _)| next != 0) {
            *value = None;
        }
    }
    Ok(values)
}

/// The header and the second chunk, if the second chunk is not empty. `None` if an answer is an error or the value
/// has a window.
fn begun(answers: &[Answer]) -> Option<Vec<Chunk>> {
    let (header, second) = (pair(&answers[0])?, pair(&answers[1])?);
    // The iterator of a windowed value contains a stamp, so it is not 1, and the second request did not match it.
    match second {
        _ if header.0 != 1 => None,
        (0, _) => Some(vec![header]),
        second => Some(vec![header, second]),
    }
}

fn pair(answer: &Answer) -> Option<Chunk> {
    let parts = items(answer.as_ref().ok()?).filter(|parts| parts.len() == 2)?;
    Some((u64::try_from(integer(&parts[0])?).ok()?, bytes(&parts[1])?))
}

/// A key that is copied together with others.
pub struct Small<'a> {
    pub key: &'a [u8],
    pub class: Class,
    /// The temporary name of the loaded value.
    pub temporary: Vec<u8>,
}

/// The outcome of copying a small value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// The value has its final name.
    Named(Fingerprint),
    /// A key with the final name already exists.
    Taken,
    /// The key has to be copied on its own.
    Alone,
}

/// Copies small values together. Each value is read back and compared, and only then renamed to its final name. An
/// existing key is replaced only if `replace` is set.
pub fn copy_small(
    (source, target): (&mut Server, &mut Server),
    smalls: &[Small<'_>],
    with_ttl: bool,
    replace: bool,
) -> Result<Vec<Arrived>, Failure> {
    let of_source: Vec<_> = smalls.iter().map(|small| (small.key, small.class)).collect();
    let of_target: Vec<_> = smalls.iter().map(|small| (&small.temporary[..], small.class)).collect();
    let values = read_small(source, &of_source)?;
    let expiries: Vec<_> =
        smalls.iter().map(|small| (small.key, redis::cmd("PEXPIRETIME").arg(small.key).to_owned())).collect();
    let expiries = source.ask_all(&expiries)?;
    let source_counts = counts(source, &of_source)?;
    send_small(target, smalls, &values)?;
    let arrived = read_small(target, &of_target)?;
    let target_counts = counts(target, &of_target)?;
    let is_same = |at: usize| {
        values[at].is_some()
            && values[at] == arrived[at]
            && expiries[at].is_ok()
            && source_counts[at].is_ok()
            && source_counts[at] == target_counts[at]
    };
    let same: Vec<usize> = (0..smalls.len()).filter(|&at| is_same(at)).collect();
    let commands = same.iter().flat_map(|&at| {
        let (name, expiry) = (&smalls[at].temporary[..], expiries[at].as_ref().ok().and_then(integer));
        let expires_at = expiry.and_then(|at| u64::try_from(at).ok()).filter(|_| with_ttl);
        temporary::naming(name, smalls[at].key, expires_at, replace).map(|command| (name, command))
    });
    let answers = target.ask_all(&commands.collect::<Vec<_>>())?;
    let mut outcomes = vec![Arrived::Alone; smalls.len()];
    for (at, answers) in same.into_iter().zip(answers.chunks_exact(temporary::STEPS)) {
        outcomes[at] = match (temporary::named(answers), &values[at]) {
            (Ok(Named::Taken), _) => Arrived::Taken,
            (Ok(Named::Yes), Some(chunks)) => Arrived::Named(Fingerprint::from_chunks(chunks)),
            _ => Arrived::Alone,
        };
    }
    Ok(outcomes)
}

/// Sends the chunks of values to their temporary names. Rejected chunks are noticed when the values are read back and
/// compared.
fn send_small(target: &mut Server, smalls: &[Small<'_>], values: &[Option<Vec<Chunk>>]) -> Result<(), Failure> {
    let mut commands = Vec::new();
    for (small, value) in smalls.iter().zip(values) {
        let Some(chunks) = value else { continue };
        let name = &small.temporary[..];
        commands.push((name, redis::cmd("UNLINK").arg(name).to_owned()));
        for chunk in chunks {
            commands.extend(temporary::arrival(small.class, name, chunk).map(|command| (name, command)));
        }
    }
    target.ask_all(&commands).map(drop)
}

/// The counts of keys.
fn counts(server: &mut Server, keys: &[(&[u8], Class)]) -> Result<Vec<Answer>, Failure> {
    let command = |&(key, class): &(&'_ [u8], Class)| class.count().arg(key).to_owned();
    server.ask_all(&keys.iter().map(|key| (key.0, command(key))).collect::<Vec<_>>())
}

impl Fingerprint {
    /// The fingerprint of these chunks.
    pub fn from_chunks(chunks: &[Chunk]) -> Self {
        let mut summing = Summing::new();
        chunks.iter().for_each(|chunk| summing.take(chunk));
        summing.end()
    }
}
