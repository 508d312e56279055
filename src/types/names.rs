//! Names of the commands whose effects are sent to replicas and the AOF, and the events of keys.
//!
//! A filter of lines is sent under RF.* and a classic one under BF.*, whatever name the client used. So a stream means the
//! same to every server of ours, and to one where BF.* are another module's.

use std::ffi::CStr;

use rollcall_core::bloom::BitLayout;

use crate::server::ffi::{Args, Name};

/// The prefix of commands: of classic filters, of filters of lines, of counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Bf,
    Rf,
    Lc,
}

/// A command that changes a value.
#[derive(Clone, Copy)]
pub enum Verb {
    Reserve,
    /// Creates with parameters, and adds.
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

/// A command, and the event of a key that it has changed.
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

/// In the order of [`Prefix`].
static TABLE: [[Row; 8]; 3] = [
    rows!("BF.", "bf.", "MADD"),
    rows!("RF.", "rf.", "MADD"),
    // Adding takes several items there.
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

    /// Whether the command was called by a name of this prefix. `args` are all of the running command's.
    pub fn is_of(self, args: Args<'_>) -> bool {
        let text = self.name(Verb::Add).text().to_bytes();
        args.get(0).bytes().first().is_some_and(|first| first.eq_ignore_ascii_case(&text[0]))
    }

    /// The name of a command.
    #[inline]
    pub fn name(self, verb: Verb) -> &'static Name {
        &TABLE[self as usize][verb as usize].name
    }

    /// The event of a key that a command has changed.
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
