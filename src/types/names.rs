//! Names of the commands that are sent to replicas and the AOF, and names of the keyspace events.
//!
//! A filter in the layout `lines` is sent under RF.* and a classic filter under BF.*, whatever name the client used. A
//! stream therefore means the same to every server with this module, even if another module owns BF.* there.

use std::ffi::CStr;

use rollcall_core::bloom::BitLayout;

use crate::server::ffi::{Args, Name};

/// The prefix of command names: BF.* for classic filters, RF.* for filters in the layout `lines`, LC.* for counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Bf,
    Rf,
    Lc,
}

/// A command that changes a value: the part of its name after the prefix.
#[derive(Clone, Copy)]
pub enum Verb {
    Reserve,
    /// Adds items; creates a missing key with the given parameters.
    Insert,
    Add,
    /// Adds several items.
    AddAll,
    Advance,
    Merge,
    Clear,
    LoadChunk,
}

/// A C string from a text that ends with NUL.
const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a NUL at the end, and nowhere else"),
    }
}

/// The name of a command, and the keyspace event for a key that the command has changed.
struct Row {
    name: Name,
    event: &'static CStr,
}

/// The rows of one prefix, in the order of [`Verb`].
macro_rules! rows {
    ($upper:literal, $lower:literal, $add_all:literal) => {
        [
            rows!(@one $upper, "RESERVE", $lower, "reserve"),
            rows!(@one $upper, "INSERT", $lower, "add"),
            rows!(@one $upper, "ADD", $lower, "add"),
            rows!(@one $upper, $add_all, $lower, "add"),
            rows!(@one $upper, "ADVANCE", $lower, "advance"),
            rows!(@one $upper, "MERGE", $lower, "merge"),
            rows!(@one $upper, "CLEAR", $lower, "clear"),
            rows!(@one $upper, "LOADCHUNK", $lower, "loadchunk"),
        ]
    };
    (@one $upper:literal, $verb:literal, $lower:literal, $event:literal) => {
        Row { name: Name::new(c_str(concat!($upper, $verb, "\0"))), event: c_str(concat!($lower, $event, "\0")) }
    };
}

/// Commands and their events, in the order of [`Prefix`].
static TABLE: [[Row; 8]; 3] = [
    rows!("BF.", "bf.", "MADD"),
    rows!("RF.", "rf.", "MADD"),
    // `LC.ADD` takes several items, so no `LC.MADD` exists.
    rows!("LC.", "lc.", "ADD"),
];

impl Prefix {
    /// The prefix for filters of this layout.
    pub fn of_layout(layout: BitLayout) -> Self {
        match layout {
            BitLayout::Classic => Prefix::Bf,
            BitLayout::Lines => Prefix::Rf,
        }
    }

    /// Whether the running command was called by a name with this prefix. `args` are all its arguments, from its name
    /// on.
    pub fn is_of(self, args: Args<'_>) -> bool {
        let text = self.name(Verb::Add).text().to_bytes();
        args.get(0).bytes().first().is_some_and(|first| first.eq_ignore_ascii_case(&text[0]))
    }

    /// Returns the name of the command `verb` with this prefix.
    #[inline]
    pub fn name(self, verb: Verb) -> &'static Name {
        &TABLE[self as usize][verb as usize].name
    }

    /// Returns the keyspace event for a key that the command `verb` has changed.
    #[inline]
    pub fn event(self, verb: Verb) -> &'static CStr {
        TABLE[self as usize][verb as usize].event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_where_they_are_looked_up() {
        let name = |prefix: Prefix, verb| prefix.name(verb).text().to_str().unwrap();
        assert_eq!(name(Prefix::Bf, Verb::Reserve), "BF.RESERVE");
        assert_eq!(name(Prefix::Rf, Verb::AddAll), "RF.MADD");
        assert_eq!(name(Prefix::Lc, Verb::AddAll), "LC.ADD");
        assert_eq!(name(Prefix::Rf, Verb::LoadChunk), "RF.LOADCHUNK");
        for prefix in [Prefix::Bf, Prefix::Rf, Prefix::Lc] {
            for verb in [Verb::Reserve, Verb::Add, Verb::Advance, Verb::Merge, Verb::Clear, Verb::LoadChunk] {
                assert_eq!(name(prefix, verb).to_lowercase(), prefix.event(verb).to_str().unwrap());
            }
            for verb in [Verb::Insert, Verb::AddAll] {
                assert_eq!(prefix.event(verb), prefix.event(Verb::Add));
            }
        }
    }
}
