//! Small values, many at a time: a value on its own takes a round trip for each of its chunks.

use redis::Value;

use super::reply::{bytes, integer, items};
use super::value::Chunk;
use super::{Answer, Class, Fingerprint, Server, Summing};
use crate::failure::Failure;

/// What a server's memory has of a value that is small, at most.
pub const SMALL_BYTES: u64 = 64 << 10;

/// The chunks of small values, all read together. `None` for one that has to be read on its own: it has more than two
/// chunks, or a window, or is gone.
pub fn read_small(server: &mut Server, keys: &[(&[u8], Class)]) -> Result<Vec<Option<Vec<Chunk>>>, Failure> {
    let ask =
        |(key, class): &(&[u8], Class), iterator: u64| class.command("SCANDUMP").arg(*key).arg(iterator).to_owned();
    let first: Vec<_> = keys.iter().flat_map(|key| [(key.0, ask(key, 0)), (key.0, ask(key, 1))]).collect();
    let answers = server.ask_all(&first)?;
    let mut values: Vec<Option<Vec<Chunk>>> = answers.chunks_exact(2).map(begun).collect();
    // What has a second chunk must end after it.
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

/// The header, and the chunk after it if there is one.
fn begun(answers: &[Answer]) -> Option<Vec<Chunk>> {
    let (header, second) = (pair(&answers[0])?, pair(&answers[1])?);
    // That of a window has a stamp, and the second was not asked for with it.
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

/// A key that is to be copied with others.
pub struct Small<'a> {
    pub key: &'a [u8],
    pub class: Class,
    /// The name that it arrives under.
    pub temporary: Vec<u8>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// It has its name.
    Named(Fingerprint),
    /// There is such a key already.
    Taken,
    /// It has to be copied on its own.
    Alone,
}

/// Copies small values together. Each is read back, compared, and only then gets its name, which replaces one that
/// exists if `replace`.
pub fn copy_small(
    (source, target): (&mut Server, &mut Server),
    smalls: &[Small<'_>],
    with_ttl: bool,
    replace: bool,
) -> Result<Vec<Arrived>, Failure> {
    let of_source: Vec<_> = smalls.iter().map(|small| (small.key, small.class)).collect();
    let counts = |name: fn(&Small<'_>) -> Vec<u8>| {
        smalls.iter().map(move |small| (name(small), small.class.count())).collect::<Vec<_>>()
    };
    let count_of = |server: &mut Server, names: Vec<(Vec<u8>, redis::Cmd)>| {
        let commands: Vec<_> =
            names.iter().map(|(name, command)| (&name[..], command.clone().arg(&name[..]).to_owned())).collect();
        server.ask_all(&commands)
    };
    let values = read_small(source, &of_source)?;
    let expiries: Vec<_> =
        smalls.iter().map(|small| (small.key, redis::cmd("PEXPIRETIME").arg(small.key).to_owned())).collect();
    let expiries = source.ask_all(&expiries)?;
    let source_counts = count_of(source, counts(|small| small.key.to_vec()))?;
    let mut commands = Vec::new();
    for ((small, value), expiry) in smalls.iter().zip(&values).zip(&expiries) {
        let Some(chunks) = value else { continue };
        let name = &small.temporary[..];
        commands.push((name, redis::cmd("UNLINK").arg(name).to_owned()));
        for (iterator, chunk) in chunks {
            commands.push((name, small.class.command("LOADCHUNK").arg(name).arg(*iterator).arg(&chunk[..]).to_owned()));
        }
        if let (Ok(Value::Int(at)), true) = (expiry, with_ttl)
            && *at >= 0
        {
            commands.push((name, redis::cmd("PEXPIREAT").arg(name).arg(*at).to_owned()));
        }
    }
    // A chunk that was refused shows in what is read back.
    target.ask_all(&commands)?;
    let of_target: Vec<_> = smalls.iter().map(|small| (&small.temporary[..], small.class)).collect();
    let arrived = read_small(target, &of_target)?;
    let target_counts = count_of(target, counts(|small| small.temporary.clone()))?;
    let rename = if replace { "RENAME" } else { "RENAMENX" };
    let is_same = |at: usize| {
        values[at].is_some()
            && values[at] == arrived[at]
            && expiries[at].is_ok()
            && source_counts[at].is_ok()
            && source_counts[at] == target_counts[at]
    };
    let same: Vec<usize> = (0..smalls.len()).filter(|&at| is_same(at)).collect();
    let commands: Vec<_> = same
        .iter()
        .map(|&at| {
            let name = &smalls[at].temporary[..];
            (name, redis::cmd(rename).arg(name).arg(smalls[at].key).to_owned())
        })
        .collect();
    let mut outcomes = vec![Arrived::Alone; smalls.len()];
    for (at, named) in same.into_iter().zip(target.ask_all(&commands)?) {
        outcomes[at] = match (named, &values[at]) {
            (Ok(Value::Int(0)), _) => Arrived::Taken,
            (Ok(_), Some(chunks)) => Arrived::Named(Fingerprint::of(chunks)),
            _ => Arrived::Alone,
        };
    }
    let taken = smalls.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Arrived::Taken);
    let unlink: Vec<_> = taken
        .map(|(small, _)| (&small.temporary[..], redis::cmd("UNLINK").arg(&small.temporary[..]).to_owned()))
        .collect();
    target.ask_all(&unlink)?;
    Ok(outcomes)
}

impl Fingerprint {
    /// Of all chunks.
    pub fn of(chunks: &[Chunk]) -> Self {
        let mut summing = Summing::new();
        chunks.iter().for_each(|chunk| summing.take(chunk));
        summing.end()
    }
}
