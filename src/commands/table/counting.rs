//! LC.*

use super::super::counting;
use super::super::{info, sets};
use super::argument::{
    AFTER_ITEMS, ALL, Argument, ArgumentKind, BYTES, CAPACITY, COUNTER_WINDOW, DATA, DESTINATION, DRYRUN, ERROR, EXACT,
    EXPIRY, ITEM, ITEMS, ITERATOR, KEY, LIMIT, NOCREATE, PRECISION, SEED, SOURCES, TAIL, TO, argument, field, option,
    several,
};
use super::command::{Command, Keys, READ, READ_FAST, READ_NUMBERED, WRITE, WRITE_FAST, command};

/// `numkeys key [key ...] [SINCE seconds [seconds ...]]`. Seconds are words, because of `-`.
const OF_SETS: &[Argument] = &[
    argument(c"numkeys", ArgumentKind::Integer),
    several(c"key", ArgumentKind::Key),
    Argument { token: Some(c"SINCE"), optional: true, ..several(c"seconds", ArgumentKind::String) },
];

/// LC.*
pub static COUNTING: &[Command] = &[
    command!(
        c"lc.reserve",
        counting::reserve,
        -3,
        WRITE_FAST,
        Keys::Insert,
        c"O(1)",
        c"Creates an empty counter with its own capacity, error rate and exact limit",
        &[KEY, argument(c"capacity", ArgumentKind::Integer), ERROR, EXACT, BYTES, PRECISION, TAIL, SEED, COUNTER_WINDOW, EXPIRY]
    ),
    command!(
        c"lc.add",
        counting::add,
        -3,
        WRITE_FAST,
        Keys::Insert,
        c"O(N) where N is the number of items",
        c"Counts items, each once; creates the counter if it is missing",
        &[KEY, ITEMS]
    ),
    command!(
        c"lc.insert",
        counting::insert_command,
        -4,
        WRITE_FAST,
        Keys::Insert,
        c"O(N) where N is the number of items",
        c"Counts items; if the counter is missing, creates it with these options",
        &[KEY, CAPACITY, ERROR, EXACT, BYTES, PRECISION, TAIL, SEED, NOCREATE, COUNTER_WINDOW, EXPIRY, AFTER_ITEMS]
    ),
    command!(
        c"lc.admit",
        counting::admit,
        -6,
        WRITE,
        Keys::Insert,
        c"O(N+M) where N is the number of items and M the number of members",
        c"Counts new items while there are fewer than a limit; the counter stays exact",
        &[KEY, LIMIT, ALL, DRYRUN, CAPACITY, ERROR, EXACT, BYTES, PRECISION, TAIL, SEED, NOCREATE, COUNTER_WINDOW, EXPIRY, AFTER_ITEMS]
    ),
    command!(
        c"lc.count",
        counting::count,
        -2,
        READ_FAST,
        Keys::ReadAll,
        c"O(1) for one key; O(N*M) for the union of N counters of M bits",
        c"Returns the number of distinct members of a counter, or of the union of several",
        &[several(c"key", ArgumentKind::Key)]
    ),
    command!(
        c"lc.countsince",
        sets::countsince,
        3,
        READ,
        Keys::Read,
        c"O(N) where N is the number of slots",
        c"Returns the number of distinct members that a counter with a window has seen in the last seconds, at least",
        &[KEY, argument(c"seconds", ArgumentKind::Integer)]
    ),
    command!(
        c"lc.history",
        sets::history,
        2,
        READ,
        Keys::Read,
        c"O(N) where N is the number of slots",
        c"Returns for each slice of a counter's window when it begins, how many distinct members were seen since, and the standard error",
        &[KEY]
    ),
    command!(
        c"lc.advance",
        counting::advance,
        -3,
        c"write",
        Keys::Advance,
        c"O(N) where N is the number of slots",
        c"Moves the window of a counter on to a slice, or hands it to the clock",
        &[KEY, TO]
    ),
    command!(
        c"lc.merge",
        counting::merge,
        -3,
        WRITE,
        Keys::Merge,
        c"O(N*M) where N is the number of counters and M their bits",
        c"Makes a counter the union of itself and others",
        &[DESTINATION, SOURCES]
    ),
    command!(
        c"lc.unioncard",
        sets::unioncard,
        -3,
        READ_NUMBERED,
        Keys::Numbered,
        c"O(1) for one key; O(N*M) for the union of N counters of M bits",
        c"Returns the number of distinct members of all counters together, with its standard error",
        OF_SETS
    ),
    command!(
        c"lc.intercard",
        sets::intercard,
        -3,
        READ_NUMBERED,
        Keys::Numbered,
        c"O(M*2^N) where N is the number of counters that hold estimates and M their bits; O(N*K) while all are exact, K the members of the smallest",
        c"Returns the number of members that all counters have, with its standard error",
        OF_SETS
    ),
    command!(
        c"lc.diffcard",
        sets::diffcard,
        -3,
        READ_NUMBERED,
        Keys::Numbered,
        c"O(N*M) where N is the number of counters and M their bits",
        c"Returns the number of members of the first counter that are in no other, with its standard error",
        OF_SETS
    ),
    command!(
        c"lc.union",
        sets::union,
        -3,
        READ_NUMBERED,
        Keys::Numbered,
        c"O(N) where N is the number of members of all counters",
        c"Lists the members of all counters together, while all are exact",
        OF_SETS
    ),
    command!(
        c"lc.inter",
        sets::inter,
        -3,
        READ_NUMBERED,
        Keys::Numbered,
        c"O(N*M) where N is the number of counters and M the number of members of the smallest",
        c"Lists the members that all counters have, while all are exact",
        OF_SETS
    ),
    command!(
        c"lc.diff",
        sets::diff,
        -3,
        READ_NUMBERED,
        Keys::Numbered,
        c"O(N*M) where N is the number of counters and M the number of members of the first",
        c"Lists the members of the first counter that are in no other, while all are exact",
        OF_SETS
    ),
    command!(
        c"lc.exists",
        counting::exists,
        3,
        READ_FAST,
        Keys::Read,
        c"O(1)",
        c"Tells whether an item is a member of a counter, while the counter is exact",
        &[KEY, ITEM]
    ),
    command!(
        c"lc.mexists",
        counting::mexists,
        -3,
        READ_FAST,
        Keys::Read,
        c"O(N) where N is the number of items",
        c"Tells of each item whether it is a member of a counter, while the counter is exact",
        &[KEY, ITEMS]
    ),
    command!(
        c"lc.members",
        counting::members,
        -2,
        READ,
        Keys::Read,
        c"O(N) where N is the number of members",
        c"Lists the members of a counter while it is exact",
        &[KEY, option(c"SINCE", c"seconds", ArgumentKind::Integer)]
    ),
    command!(
        c"lc.clear",
        counting::clear,
        2,
        c"write fast",
        Keys::Clear,
        c"O(1)",
        c"Empties a counter, which is exact again unless EXACT is 0, and keeps its parameters and time to live",
        &[KEY]
    ),
    command!(
        c"lc.info",
        counting::info,
        -2,
        READ_FAST,
        Keys::Read,
        c"O(1)",
        c"Returns the parameters and the state of a counter",
        &[
            KEY,
            field(&const { info::choices(&info::OF_COUNTERS) })
        ]
    ),
    command!(
        c"lc.scandump",
        counting::scandump,
        3,
        READ,
        Keys::Read,
        c"O(N) where N is the size of the chunk",
        c"Returns the next chunk of a counter's dump",
        &[KEY, ITERATOR]
    ),
    command!(
        c"lc.loadchunk",
        counting::loadchunk,
        4,
        WRITE,
        Keys::Insert,
        c"O(N) where N is the size of the chunk",
        c"Restores a counter chunk by chunk, as LC.SCANDUMP gave them",
        &[KEY, ITERATOR, DATA]
    ),
];
