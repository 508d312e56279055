//! Decides the step for each key before the first key is moved.

use redis::Value;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::server::{Answer, Class, Key, SMALL_BYTES, Server};
use crate::server::{fingerprint, first_chunk, integer, pairs, read_small, text, texts};

/// Number of keys that are looked up in one batch.
const BATCH: usize = 200;

/// RedisBloom crashes when it loads a filter with at least this number of sub-filters.
const REDISBLOOM_MAX_FILTERS: i64 = 1000;

/// What the copy does with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Move,
    /// The target already has an equal value, so the key is skipped.
    Equal,
    Reject(String),
}

/// All keys, each with its bytes in memory and its step.
#[derive(Debug, Default)]
pub struct Plan {
    pub steps: Vec<(Key, u64, Step)>,
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
}

impl Plan {
    /// Examines every key on both servers, and decides its step.
    pub fn new(
        source: &mut Server,
        target: &mut Server,
        keys: Vec<Key>,
        replace: bool,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let serves = Serves::new(target)?;
        let mut plan = Plan::default();
        for batch in keys.chunks(BATCH) {
            interrupt.check()?;
            let about = |command: fn(&Key) -> redis::Cmd| {
                batch.iter().map(|key| (&key.name[..], command(key).arg(&key.name).to_owned())).collect::<Vec<_>>()
            };
            let infos = source.ask_all(&about(|key| key.class.command("INFO")))?;
            let types = target.ask_all(&about(|_| redis::cmd("TYPE")))?;
            let sizes: Vec<Option<u64>> = infos.iter().map(|info| size_of(info.as_ref().ok()?)).collect();
            let same = same_of(source, target, batch, &sizes, &types)?;
            for (at, key) in batch.iter().enumerate() {
                let bytes = sizes[at].unwrap_or(0);
                let filters = match &infos[at] {
                    Err(text) if texts::is_gone(text) => continue,
                    Err(text) => {
                        plan.steps.push((key.clone(), bytes, Step::Reject(text.clone())));
                        continue;
                    }
                    Ok(info) => {
                        let found = pairs(info).into_iter().find(|(label, _)| label == "Number of filters");
                        found.and_then(|(_, value)| integer(&value)).unwrap_or(1)
                    }
                };
                let step = match &types[at] {
                    _ if serves.error(key.class).is_some() => {
                        Step::Reject(serves.error(key.class).unwrap_or_default().to_owned())
                    }
                    _ if serves.ends_at(key.class, filters) => Step::Reject(format!(
                        "it has {filters} sub-filters, and RedisBloom ends a server that loads {REDISBLOOM_MAX_FILTERS}"
                    )),
                    Err(text) => return Err(target.rejected(&key.name, "TYPE", text)),
                    Ok(found) => match text(found).as_deref() {
                        Some("none") => Step::Move,
                        Some(name) if name == key.class.type_name() && same[at] => Step::Equal,
                        _ if replace => Step::Move,
                        Some(name) if name == key.class.type_name() => {
                            Step::Reject("the target has another value there: --replace replaces it".into())
                        }
                        name => Step::Reject(format!(
                            "the target has a value of type {} there: --replace replaces it",
                            name.unwrap_or_default()
                        )),
                    },
                };
                plan.steps.push((key.clone(), bytes, step));
            }
        }
        Ok(plan)
    }

    /// The number of keys that cannot be moved.
    pub fn rejected(&self) -> usize {
        self.steps.iter().filter(|(_, _, step)| matches!(step, Step::Reject(_))).count()
    }

    /// Bytes of all keys in the source's memory.
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|(_, bytes, _)| bytes).sum()
    }
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
    types: &[Answer],
) -> Result<Vec<bool>, Failure> {
    let is_there = |at: usize| {
        let found = types[at].as_ref().ok().and_then(text);
        found.as_deref() == Some(keys[at].class.type_name())
    };
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
            None => is_there(at) && same_alone(source, target, key)?,
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
    fn no_server_is_given_what_ends_it() {
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
