//! Decides the step for each key.

use redis::Value;

use crate::failure::Failure;
use crate::server::{Answer, Class, Key, SMALL_BYTES, Server};
use crate::server::{fingerprint, first_chunk, integer, pairs, read_small, text, texts};

/// Number of keys that are looked up in one batch.
pub const BATCH: usize = 200;

/// The reply of TYPE for a key that does not exist.
pub const NONE: &str = "none";

/// RedisBloom crashes when it loads a filter with at least this number of sub-filters.
const REDISBLOOM_MAX_FILTERS: i64 = 1000;

/// Ends the work after a signal, and keeps the source paused.
pub type Look<'a> = dyn FnMut(&mut Server) -> Result<(), Failure> + 'a;

/// What the copy does with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Move,
    /// The target already has an equal value, so the key is skipped.
    Equal,
    Reject(String),
}

/// A key of the source, and what the copy does with it.
#[derive(Debug)]
pub struct Planned {
    pub key: Key,
    /// Bytes in memory.
    pub bytes: u64,
    /// When the key expires, in milliseconds since 1970; `None` if it does not.
    pub expires_at: Option<u64>,
    pub step: Step,
}

/// All keys, in order of names.
#[derive(Debug, Default)]
pub struct Plan {
    pub steps: Vec<Planned>,
}

/// The commands that a server offers.
#[derive(Debug, Clone, Copy)]
struct Serves {
    filters: bool,
    /// Whether the server accepts filters in the layout `lines`.
    lines: bool,
    /// Whether the server's `BF.*` commands belong to this module, and not to RedisBloom.
    own_filters: bool,
    counters: bool,
}

impl Serves {
    fn new(server: &mut Server) -> Result<Self, Failure> {
        let names = ["bf.loadchunk", "rf.loadchunk", "lc.loadchunk", "bf.advance"];
        let reply = server.call_node(0, redis::cmd("COMMAND").arg("INFO").arg(&names))?;
        let known: Vec<bool> = match &reply {
            redis::Value::Array(items) => items.iter().map(|item| !matches!(item, redis::Value::Nil)).collect(),
            _ => Vec::new(),
        };
        let knows = |at: usize| known.get(at).copied().unwrap_or(false);
        Ok(Serves { filters: knows(0), lines: knows(1), counters: knows(2), own_filters: knows(3) })
    }

    /// Whether RedisBloom on this server would crash when it loads a filter with this number of sub-filters.
    fn ends_at(self, class: Class, filters: i64) -> bool {
        class == Class::Classic && !self.own_filters && filters >= REDISBLOOM_MAX_FILTERS
    }

    /// The reason why the server cannot have keys of this class; `None` if it can.
    fn error(self, class: Class) -> Option<&'static str> {
        match class {
            Class::Classic if !self.filters => Some("the target has no module for filters"),
            Class::Filter if !self.filters && !self.lines => Some("the target has no module for filters"),
            Class::Filter if !self.lines => {
                Some("the target is RedisBloom, which knows only filters of LAYOUT classic without a window")
            }
            Class::Counter if !self.counters => Some("the target has no counters (LC.*)"),
            _ => None,
        }
    }

    /// The step for a key that is not equal to the target's, from its INFO and the type of the target's key.
    fn step(self, class: Class, info: &Value, found: &str, replace: bool) -> Step {
        let filters = pairs(info).into_iter().find(|(label, _)| label == "Number of filters");
        let filters = filters.and_then(|(_, value)| integer(&value)).unwrap_or(1);
        if let Some(error) = self.error(class) {
            return Step::Reject(error.to_owned());
        }
        if self.ends_at(class, filters) {
            return Step::Reject(format!(
                "it has {filters} sub-filters, and RedisBloom ends a server that loads {REDISBLOOM_MAX_FILTERS}"
            ));
        }
        match found {
            NONE => Step::Move,
            _ if replace => Step::Move,
            name if name == class.type_name() => {
                Step::Reject("the target has another value there: --replace replaces it".to_owned())
            }
            name => Step::Reject(format!("the target has a value of type {name} there: --replace replaces it")),
        }
    }
}

impl Plan {
    /// Examines every key on both servers, and decides its step. With `times`, keys of the target with an equal value
    /// but another expiry time are moved. Calls `look` with the source before each part of the work.
    pub fn new(
        (source, target): (&mut Server, &mut Server),
        keys: Vec<Key>,
        replace: bool,
        times: bool,
        look: &mut Look,
    ) -> Result<Self, Failure> {
        let serves = Serves::new(target)?;
        let mut plan = Plan::default();
        for batch in keys.chunks(BATCH) {
            look(source)?;
            let about = |command: fn(&Key) -> redis::Cmd| {
                batch.iter().map(|key| (&key.name[..], command(key).arg(&key.name).to_owned())).collect::<Vec<_>>()
            };
            let infos = source.ask_all(&about(|key| key.class.command("INFO")))?;
            let expiries = source.ask_all(&about(|_| redis::cmd("PEXPIRETIME")))?;
            let there = if times { target.ask_all(&about(|_| redis::cmd("PEXPIRETIME")))? } else { Vec::new() };
            let types = types(target, &batch.iter().map(|key| &key.name[..]).collect::<Vec<_>>())?;
            let sizes: Vec<Option<u64>> = infos.iter().map(|info| size_of(info.as_ref().ok()?)).collect();
            let same = same_of(source, target, batch, &sizes, &types, look)?;
            for (at, key) in batch.iter().enumerate() {
                let step = match &infos[at] {
                    Err(text) if texts::is_gone(text) => continue,
                    Err(text) => Step::Reject(text.clone()),
                    Ok(_) if types[at] == key.class.type_name() && same[at] => match (&expiries[at], there.get(at)) {
                        (Ok(here), Some(Ok(there))) if here != there => Step::Move,
                        _ => Step::Equal,
                    },
                    Ok(info) => serves.step(key.class, info, &types[at], replace),
                };
                let expires_at = expiries[at].as_ref().ok().and_then(integer).and_then(|at| u64::try_from(at).ok());
                plan.steps.push(Planned { key: key.clone(), bytes: sizes[at].unwrap_or(0), expires_at, step });
            }
        }
        Ok(plan)
    }

    /// The number of keys that cannot be moved.
    pub fn rejected(&self) -> usize {
        self.steps.iter().filter(|planned| matches!(planned.step, Step::Reject(_))).count()
    }

    /// Bytes of all keys in the source's memory.
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|planned| planned.bytes).sum()
    }
}

/// The type of each key; [`NONE`] if the key does not exist.
pub fn types(server: &mut Server, names: &[&[u8]]) -> Result<Vec<String>, Failure> {
    let commands: Vec<_> = names.iter().map(|name| (*name, redis::cmd("TYPE").arg(*name).to_owned())).collect();
    let answers = server.ask_all(&commands)?;
    let type_of = |(name, answer): (&&[u8], Answer)| match answer {
        Ok(reply) => Ok(text(&reply).unwrap_or_default()),
        Err(text) => Err(server.rejected(name, "TYPE", &text)),
    };
    names.iter().zip(answers).map(type_of).collect()
}

/// The bytes of a value in memory, from the reply to its INFO.
fn size_of(info: &Value) -> Option<u64> {
    let (_, size) = pairs(info).into_iter().find(|(label, _)| label == "Size")?;
    u64::try_from(integer(&size)?).ok()
}

/// Whether source and target have equal values, for each key. Small values are read in batches.
fn same_of(
    source: &mut Server,
    target: &mut Server,
    keys: &[Key],
    sizes: &[Option<u64>],
    types: &[String],
    look: &mut Look,
) -> Result<Vec<bool>, Failure> {
    let is_there = |at: usize| types[at] == keys[at].class.type_name();
    let is_small = |at: usize| sizes[at].is_some_and(|bytes| bytes <= SMALL_BYTES);
    let small: Vec<usize> = (0..keys.len()).filter(|&at| is_there(at) && is_small(at)).collect();
    let names: Vec<_> = small.iter().map(|&at| (&keys[at].name[..], keys[at].class)).collect();
    let (ours, theirs) = (read_small(source, &names)?, read_small(target, &names)?);
    let mut read: Vec<Option<bool>> = vec![None; keys.len()];
    for (&at, (one, other)) in small.iter().zip(ours.into_iter().zip(theirs)) {
        if let (Some(one), Some(other)) = (one, other) {
            read[at] = Some(one == other);
        }
    }
    let mut same = Vec::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        same.push(match read[at] {
            Some(known) => known,
            None if is_there(at) => {
                look(source)?;
                same_alone(source, target, key)?
            }
            None => false,
        });
    }
    Ok(same)
}

/// Whether source and target have equal values: the headers are compared first, then the whole values.
fn same_alone(source: &mut Server, target: &mut Server, key: &Key) -> Result<bool, Failure> {
    let theirs = target.ask(&key.name, key.class.count().arg(&key.name))?;
    if theirs.is_err() || first_chunk(source, key.class, &key.name)? != first_chunk(target, key.class, &key.name)? {
        return Ok(false);
    }
    Ok(fingerprint(source, key.class, &key.name)? == fingerprint(target, key.class, &key.name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_server_cannot_load_are_rejected() {
        let ours = Serves { filters: true, lines: true, own_filters: true, counters: true };
        let beside = Serves { own_filters: false, ..ours };
        let redisbloom = Serves { lines: false, counters: false, ..beside };
        assert!(beside.ends_at(Class::Classic, 1000) && redisbloom.ends_at(Class::Classic, 1000));
        assert!(!beside.ends_at(Class::Classic, 999) && !beside.ends_at(Class::Filter, 1000));
        assert!(!ours.ends_at(Class::Classic, 1000));
        assert_eq!([ours, beside].map(|serves| serves.error(Class::Filter)), [None, None]);
        assert!(redisbloom.error(Class::Filter).is_some() && redisbloom.error(Class::Counter).is_some());
    }
}
