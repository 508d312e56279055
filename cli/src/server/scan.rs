//! Finds the keys of a server that are filters and counters.

use std::collections::BTreeSet;

use rollcall_core::unstable::wire;

use super::reply::{bytes, items, text};
use super::{Answer, Server, texts};
use crate::failure::Failure;
use crate::interrupt;

/// Number of keys that a server examines in one step of SCAN. A step takes some 100 microseconds.
const STEP: u32 = 1000;

/// The class of a key, by the name of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A filter in RedisBloom's layout, stored as RedisBloom's type or as the type of this module.
    Classic,
    /// A filter of this module in the layout `lines`, or one that is partially loaded.
    Filter,
    Counter,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Classic, Class::Filter, Class::Counter];

    /// The name of the type on servers.
    pub fn type_name(self) -> &'static str {
        match self {
            Class::Classic => wire::TYPE_OF_CLASSIC,
            Class::Filter => wire::TYPE_OF_LINES,
            Class::Counter => wire::TYPE_OF_COUNTERS,
        }
    }

    /// The prefix of the commands for this class. A filter in the layout `lines` gets `RF`, which works whether or not
    /// another module owns `BF.*`.
    pub fn family(self) -> &'static str {
        match self {
            Class::Classic => "BF",
            Class::Filter => "RF",
            Class::Counter => "LC",
        }
    }

    /// The command `name` of this class, with its prefix.
    pub fn command(self, name: &str) -> redis::Cmd {
        redis::cmd(&format!("{}.{name}", self.family()))
    }

    /// The command that reports the number of items.
    pub fn count(self) -> redis::Cmd {
        self.command(if self == Class::Counter { "COUNT" } else { "CARD" })
    }

    /// The name of the class for display.
    pub fn noun(self) -> &'static str {
        match self {
            Class::Counter => "counter",
            _ => "filter",
        }
    }
}

/// A key with a filter or counter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub name: Vec<u8>,
    pub class: Class,
}

/// Collects the first keys in order of names, optionally only the keys after a given one.
struct First {
    after: Option<Vec<u8>>,
    most: usize,
    keys: BTreeSet<Key>,
    left_out: u64,
}

/// The result of a scan: the first keys, and some of the keys after them.
#[derive(Debug)]
pub struct Scan {
    /// The first keys. These keys and the keys of `turn` are in order of names.
    pub first: Vec<Key>,
    /// Number of matching keys in addition to the first ones.
    pub left_out: u64,
    pub turn: Vec<Key>,
    /// The last key of `turn`, after which the next scan continues; `None` if no key follows.
    pub until: Option<Vec<u8>>,
}

impl First {
    fn new(most: usize, after: Option<&[u8]>) -> Self {
        First { after: after.map(<[u8]>::to_vec), most, keys: BTreeSet::new(), left_out: 0 }
    }

    fn take(&mut self, key: &Key) {
        if self.after.as_ref().is_some_and(|after| key.name <= *after) {
            return;
        }
        if self.keys.insert(key.clone()) && self.keys.len() > self.most {
            self.keys.pop_last();
            self.left_out += 1;
        }
    }
}

/// A key for display: unprintable bytes are escaped, and so is text that could be taken for an escape.
pub fn shown(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(|c| c.is_control() || c == '\\') => text.to_owned(),
        _ => key.escape_ascii().to_string(),
    }
}

impl Server {
    /// All filters and counters that match `pattern`, in order of names.
    pub fn scan(&mut self, pattern: Option<&str>) -> Result<Vec<Key>, Failure> {
        Ok(self.scan_first(pattern, usize::MAX)?.0)
    }

    /// The first `most` keys that [`Server::scan`] would return, and the number of the other keys. That number is too
    /// high if SCAN returns a key twice.
    pub fn scan_first(&mut self, pattern: Option<&str>, most: usize) -> Result<(Vec<Key>, u64), Failure> {
        let mut keys = First::new(most, None);
        self.scan_each(pattern, &mut |key| keys.take(&key))?;
        Ok((keys.keys.into_iter().collect(), keys.left_out))
    }

    /// Like [`Server::scan_first`], and also returns at most `most` keys after the key `after`. If `after` is `None`,
    /// they are the keys after the first ones.
    pub fn scan_turn(&mut self, pattern: Option<&str>, most: usize, after: Option<&[u8]>) -> Result<Scan, Failure> {
        let mut first = First::new(most, None);
        let mut turn = First::new(if after.is_some() { most } else { most.saturating_mul(2) }, after);
        self.scan_each(pattern, &mut |key| {
            first.take(&key);
            turn.take(&key);
        })?;
        let until = turn.keys.last().filter(|_| turn.left_out > 0).map(|key| key.name.clone());
        turn.keys.retain(|key| !first.keys.contains(key));
        let left_out = first.left_out;
        let [first, turn] = [first, turn].map(|keys| keys.keys.into_iter().collect());
        Ok(Scan { first, left_out, turn, until })
    }

    /// Passes all filters and counters that match `pattern` to `take`, some of them more than once.
    pub fn scan_each(&mut self, pattern: Option<&str>, take: &mut dyn FnMut(Key)) -> Result<(), Failure> {
        for node in 0..self.num_nodes() {
            for class in Class::ALL {
                self.scan_node(node, class, pattern, take)?;
            }
        }
        Ok(())
    }

    fn scan_node(
        &mut self,
        node: usize,
        class: Class,
        pattern: Option<&str>,
        take: &mut dyn FnMut(Key),
    ) -> Result<(), Failure> {
        let mut cursor = "0".to_owned();
        loop {
            interrupt::check()?;
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("COUNT").arg(STEP).arg("TYPE").arg(class.type_name());
            if let Some(pattern) = pattern {
                scan.arg("MATCH").arg(pattern);
            }
            let answer: Answer = self.ask_node(node, &[scan])?.pop().unwrap_or(Ok(redis::Value::Nil));
            let reply = match answer {
                Ok(reply) => reply,
                // A server that does not know a type has no keys of the type.
                Err(text) if texts::is_unknown_type(&text) => return Ok(()),
                Err(text) => return Err(self.rejected_by(node, "SCAN", &text)),
            };
            let parts = items(&reply).filter(|parts| parts.len() == 2);
            let next = parts.and_then(|parts| Some((text(&parts[0])?, items(&parts[1])?)));
            let Some((next, found)) = next else {
                return Err(Failure::new(format!("{}: SCAN answered what it never should", self.node_name(node))));
            };
            found.iter().filter_map(bytes).for_each(|name| take(Key { name, class }));
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// The class of `key`; `None` if the key does not exist.
    pub fn class_of(&mut self, key: &[u8]) -> Result<Option<Class>, Failure> {
        let name = text(&self.call(key, redis::cmd("TYPE").arg(key))?).unwrap_or_default();
        if name == "none" {
            return Ok(None);
        }
        (Class::ALL.into_iter().find(|class| class.type_name() == name))
            .map(Some)
            .ok_or_else(|| Failure::new(format!("{} is no filter and no counter: its type is {name}", shown(key))))
    }
}
