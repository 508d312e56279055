//! Names of replicated commands and of keyspace events.
//!
//! Changes of a RedisBloom-compatible filter are replicated as BF.* commands, which RedisBloom can run too. Changes of
//! other filters are replicated as RF.* commands. So are those of a RedisBloom-compatible filter if another module owns
//! BF.*; this server then has it only partially loaded. The prefix that the client used has no effect.

use std::ffi::CStr;

use crate::server::ffi::{Args, Name, c_str};

/// The prefix of command names: BF.* for RedisBloom-compatible filters, RF.* for filters in Rollcall's own layout
/// (`lines`), and LC.* for counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Bf,
    Rf,
    Lc,
}

/// The name of a command, and of the keyspace event that it causes.
struct Row {
    name: Name,
    event: &'static CStr,
}

/// Declares [`Verb`], and the table of command and event names, from one list.
macro_rules! verbs {
    ($($(#[$what:meta])* $verb:ident = $name:literal, $event:literal;)+) => {
        /// The part after the prefix in the name of a command that changes a value.
        #[derive(Clone, Copy)]
        pub enum Verb {
            $($(#[$what])* $verb,)+
        }

        /// One array per [`Prefix`], one row per [`Verb`].
        static TABLE: [[Row; Verb::LoadChunk as usize + 1]; 3] = [
            [$(verbs!(@row "BF.", $name, "bf.", $event)),+],
            [$(verbs!(@row "RF.", $name, "rf.", $event)),+],
            [$(verbs!(@row "LC.", $name, "lc.", $event)),+],
        ];
    };
    (@row $upper:literal, $name:literal, $lower:literal, $event:literal) => {
        Row { name: Name::new(c_str(concat!($upper, $name, "\0"))), event: c_str(concat!($lower, $event, "\0")) }
    };
}

verbs! {
    Reserve = "RESERVE", "reserve";
    /// `INSERT`: adds items, and creates a missing key with the given parameters.
    Insert = "INSERT", "add";
    Add = "ADD", "add";
    /// `MADD` adds several items to a filter. Counters have no `MADD`, because `LC.ADD` takes several items.
    Madd = "MADD", "add";
    Remove = "REM", "rem";
    /// The items that `ADMIT` adds are replicated by another command. The event of `ADMIT` is sent if it rejected
    /// items.
    Admit = "ADMIT", "reject";
    Advance = "ADVANCE", "advance";
    Merge = "MERGE", "merge";
    MergeDump = "MERGEDUMP", "merge";
    Clear = "CLEAR", "clear";
    LoadChunk = "LOADCHUNK", "loadchunk";
}

impl Prefix {
    /// Whether the running command was called by a name with this prefix. `args` has all arguments, with the name.
    pub fn is_of(self, args: Args<'_>) -> bool {
        let text = self.name(Verb::Add).text().to_bytes();
        args.get(0).bytes().first().is_some_and(|first| first.eq_ignore_ascii_case(&text[0]))
    }

    /// The verb of the command that adds several items: filters have `MADD`, and counters `ADD`.
    pub fn add_all(self) -> Verb {
        if self == Prefix::Lc { Verb::Add } else { Verb::Madd }
    }

    #[inline]
    pub fn name(self, verb: Verb) -> &'static Name {
        &TABLE[self as usize][verb as usize].name
    }

    #[inline]
    pub fn event(self, verb: Verb) -> &'static CStr {
        TABLE[self as usize][verb as usize].event
    }
}
