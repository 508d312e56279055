//! The set that a filter or counter is compared with. It is read in pieces of bounded size.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use redis::Value;
use xxhash_rust::xxh3::xxh3_128;

use crate::failure::Failure;
use crate::lines;
use crate::server::{Server, bytes, integer, shown, text};

/// The largest number of missing members that are listed for one key.
pub const MAX_MISSES: usize = 10;

/// Number of members in one piece, which are looked up with one command.
const PIECE: usize = 1000;

/// The members to compare with, from a key on a server or from a file.
pub enum Set {
    Key {
        name: Vec<u8>,
        kind: Kind,
    },
    /// The lines of a file. The hashes of the lines give the number of distinct lines.
    File {
        path: PathBuf,
        distinct: HashSet<u128>,
    },
}

/// The type of a key with members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Set,
    Sorted,
    Hash,
    HyperLogLog,
}

impl Set {
    /// The set that a key holds; `None` if the key does not exist.
    pub fn from_key(server: &mut Server, name: &[u8]) -> Result<Option<Set>, Failure> {
        let kind = match text(&server.call(name, redis::cmd("TYPE").arg(name))?).as_deref() {
            Some("none") => return Ok(None),
            Some("set") => Kind::Set,
            Some("zset") => Kind::Sorted,
            Some("hash") => Kind::Hash,
            // A HyperLogLog has the type `string`. PFCOUNT fails later if the string is none.
            Some("string") => Kind::HyperLogLog,
            other => {
                return Err(Failure::new(format!("{} is a {}", shown(name), other.unwrap_or_default()))
                    .advise("a set, sorted set, hash or HyperLogLog can be compared with"));
            }
        };
        Ok(Some(Set::Key { name: name.to_owned(), kind }))
    }

    /// The set of the lines in a file.
    pub fn from_file(path: &Path) -> Result<Set, Failure> {
        let mut distinct = HashSet::new();
        for line in lines::read(path)? {
            distinct.insert(xxh3_128(&line?));
        }
        Ok(Set::File { path: path.to_owned(), distinct })
    }

    pub fn name(&self) -> String {
        match self {
            Set::Key { name, .. } => shown(name),
            Set::File { path, .. } => path.display().to_string(),
        }
    }

    /// Whether the size of the set is itself an estimate.
    pub fn is_estimate(&self) -> bool {
        matches!(self, Set::Key { kind: Kind::HyperLogLog, .. })
    }

    /// The number of members in the set.
    pub fn size(&self, server: &mut Server) -> Result<u64, Failure> {
        let (name, kind) = match self {
            Set::File { distinct, .. } => return Ok(distinct.len() as u64),
            Set::Key { name, kind } => (name, kind),
        };
        let command = match kind {
            Kind::Set => "SCARD",
            Kind::Sorted => "ZCARD",
            Kind::Hash => "HLEN",
            Kind::HyperLogLog => "PFCOUNT",
        };
        let reply = server.call(name, redis::cmd(command).arg(name))?;
        integer(&reply)
            .and_then(|size| u64::try_from(size).ok())
            .ok_or_else(|| Failure::new(format!("{command} {} answered what it never should", shown(name))))
    }

    /// Passes the members to `take` in pieces; a member may be passed twice. Returns `false` for a HyperLogLog, which
    /// has no list of members.
    pub fn each_piece(
        &mut self,
        server: &mut Server,
        mut take: impl FnMut(&[Vec<u8>]) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let (name, command, step) = match self {
            Set::Key { kind: Kind::HyperLogLog, .. } => return Ok(false),
            Set::File { path, .. } => {
                let mut lines = lines::read(path)?;
                loop {
                    let piece = lines.by_ref().take(PIECE).collect::<Result<Vec<_>, _>>()?;
                    if piece.is_empty() {
                        return Ok(true);
                    }
                    take(&piece)?;
                }
            }
            Set::Key { name, kind: Kind::Set } => (name, "SSCAN", 1),
            // ZSCAN and HSCAN return a score or a value after each member.
            Set::Key { name, kind: Kind::Sorted } => (name, "ZSCAN", 2),
            Set::Key { name, .. } => (name, "HSCAN", 2),
        };
        let mut cursor = "0".to_owned();
        loop {
            let reply = server.call(name, redis::cmd(command).arg(&**name).arg(&cursor).arg("COUNT").arg(PIECE))?;
            let Value::Array(parts) = &reply else { return Ok(true) };
            let (Some(next), Some(Value::Array(found))) = (parts.first().and_then(text), parts.get(1)) else {
                return Err(Failure::new(format!("{command} {} answered what it never should", shown(name))));
            };
            let members: Vec<Vec<u8>> = found.iter().step_by(step).filter_map(bytes).collect();
            for piece in members.chunks(PIECE) {
                take(piece)?;
            }
            if next == "0" {
                return Ok(true);
            }
            cursor = next;
        }
    }
}
