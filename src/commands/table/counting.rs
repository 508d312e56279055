//! The rows of the command table for counters.

use rollcall_core::counting::{Counter, diff, diff_card, inter, inter_card, union, union_card};
use rollcall_core::unstable::info::OF_COUNTERS;

use super::super::argument::*;
use super::super::sets::{EVERY, FIRST, NONE};
use super::super::{advance, changes, counting, dump, info, look_up, sets};
use super::command::*;

const NUMKEYS: Argument = argument(c"numkeys", ArgumentKind::Integer);
const KEYS: Argument = several(c"key", ArgumentKind::Key);
/// The values of `SINCE` are documented as strings, because `-` is accepted besides numbers.
const SINCES: Argument =
    Argument { token: Some(c"SINCE"), optional: true, ..several(c"seconds", ArgumentKind::String) };

pub static COUNTING: &[Command] = rows! { Counter:
    c"lc.reserve" counting::reserve, -2 WRITE_FAST Insert [KEY, ERROR, EXACT, BYTES, SEED, COUNTER_WINDOW, EXPIRY]
        c"O(1)"
        c"Creates an empty counter with its own error rate and exact limit"
    c"lc.add" changes::madd::<Counter>, -3 WRITE_FAST Insert [KEY, ITEMS]
        c"O(N) where N is the number of items"
        c"Adds items to a counter; creates the counter if it is missing"
    c"lc.insert" changes::insert::<Counter>, -4 WRITE_FAST Insert [
        KEY, ERROR, EXACT, BYTES, SEED, NOCREATE, COUNTER_WINDOW_OF_INSERT, EXPIRY, WIDTH, AFTER_ITEMS
    ]
        c"O(N) where N is the number of items"
        c"Adds items to a counter; if it is missing, creates it with these options"
    c"lc.admit" changes::admit::<Counter>, -6 WRITE Insert [
        KEY, LIMIT, ALL, DRYRUN, WITHROOM, ERROR, EXACT, BYTES, SEED, NOCREATE, COUNTER_WINDOW_OF_INSERT, EXPIRY,
        WIDTH, AFTER_ITEMS
    ]
        c"O(N+M) where N is the number of items and M the number of members"
        c"Adds new items to a counter while it has fewer than a limit; the counter stays exact"
    c"lc.rem" changes::remove, -3 CHANGE Remove [KEY, several(c"member", ArgumentKind::String)]
        c"O(N+M) where N is the number of members to remove and M the number of members"
        c"Removes members of a counter, while the counter is exact"
    c"lc.count" counting::count, -2 READ_FAST ReadAll CHANGES_WITH_TIME [KEYS]
        c"O(1) for one key; O(N*M) for the union of N counters of M bytes"
        c"Returns the number of distinct members of a counter, or of the union of several"
    c"lc.countsince" sets::countsince, 3 READ Read CHANGES_WITH_TIME [KEY, argument(c"seconds", ArgumentKind::Integer)]
        c"O(N) where N is the number of slots"
        c"Returns the number of distinct members that a counter with a window has seen in the last seconds, and at \
          most one slice before"
    c"lc.history" sets::history, 2 READ Read CHANGES_WITH_TIME [KEY]
        c"O(N) where N is the number of slots"
        c"Returns for each slice of a counter's window when it begins, how many distinct members were seen since, and \
          the standard error"
    c"lc.advance" advance::advance::<Counter>, -3 CHANGE Advance [KEY, TO]
        c"O(N) where N is the number of slots"
        c"Moves the window of a counter on to a slice, or hands it to the clock"
    c"lc.merge" changes::merge::<Counter>, -3 WRITE Merge [DESTINATION, SOURCES]
        c"O(N*M) where N is the number of counters and M their bytes"
        c"Makes a counter the union of itself and others"
    c"lc.mergedump" changes::merge_dump::<Counter>, -3 WRITE Insert [DESTINATION, PAYLOADS]
        c"O(N*M) where N is the number of payloads and M their bytes"
        c"Makes a counter the union of itself and values that DUMP has returned or that files have"
    c"lc.unioncard" sets::card(NONE, union_card), -3 READ_NUMBERED Numbered CHANGES_WITH_TIME [NUMKEYS, KEYS, SINCES]
        c"O(1) for one key; O(N*M) for the union of N counters of M bytes"
        c"Returns the number of distinct members of all counters together, with its standard error"
    c"lc.intercard" sets::card(EVERY, inter_card), -3 READ_NUMBERED Numbered CHANGES_WITH_TIME [NUMKEYS, KEYS, SINCES]
        c"O(M*2^N) where N is the number of counters that hold estimates and M their bytes; O(N*K) while all are \
          exact, K the members of the smallest"
        c"Returns the number of members that all counters have, with its standard error"
    c"lc.diffcard" sets::card(FIRST, diff_card), -3 READ_NUMBERED Numbered CHANGES_WITH_TIME [NUMKEYS, KEYS, SINCES]
        c"O(N*M) where N is the number of counters and M their bytes"
        c"Returns the number of members of the first counter that are in no other, with its standard error"
    c"lc.union" sets::members(NONE, union), -3 READ_NUMBERED Numbered CHANGES_WITH_TIME [NUMKEYS, KEYS, SINCES]
        c"O(N) where N is the number of members of all counters"
        c"Lists the members of all counters together, while all are exact"
    c"lc.inter" sets::members(EVERY, inter), -3 READ_NUMBERED Numbered CHANGES_WITH_TIME [NUMKEYS, KEYS, SINCES]
        c"O(N*M) where N is the number of counters and M the number of members of the smallest"
        c"Lists the members that all counters have, while all are exact"
    c"lc.diff" sets::members(FIRST, diff), -3 READ_NUMBERED Numbered CHANGES_WITH_TIME [NUMKEYS, KEYS, SINCES]
        c"O(N*M) where N is the number of counters and M the number of members of the first"
        c"Lists the members of the first counter that are in no other, while all are exact"
    c"lc.exists" look_up::exists::<Counter>, 3 READ_FAST Read CHANGES_WITH_TIME [KEY, ITEM]
        c"O(1)"
        c"Returns whether an item is a member of a counter, while the counter is exact"
    c"lc.mexists" look_up::mexists::<Counter>, -3 READ_FAST Read CHANGES_WITH_TIME [KEY, ITEMS]
        c"O(N) where N is the number of items"
        c"Returns for each item whether it is a member of a counter, while the counter is exact"
    c"lc.query" look_up::query::<Counter>, -4 READ_FAST Read CHANGES_WITH_TIME [KEY, SINCE, WIDTH, AFTER_ITEMS]
        c"O(N) where N is the number of items"
        c"Returns for each item whether it is a member of a counter, or was added in the last seconds, while the \
          counter is exact"
    c"lc.members" counting::members, -2 READ Read CHANGES_WITH_TIME [KEY, SINCE, flag(c"WITHAGES", c"withages")]
        c"O(N) where N is the number of members; O(N*log(N)) with WITHAGES"
        c"Lists the members of a counter while it is exact"
    c"lc.clear" changes::clear::<Counter>, 2 CHANGE_FAST Clear [KEY]
        c"O(1)"
        c"Empties a counter, which is exact again unless EXACT is 0, and keeps its parameters and time to live"
    c"lc.info" counting::info, -2 READ_FAST Read CHANGES_WITH_TIME [KEY, field(&const { info::choices(&OF_COUNTERS) })]
        c"O(1)"
        c"Returns the parameters and the state of a counter"
    c"lc.scandump" dump::scandump::<Counter>, 3 READ Read [KEY, ITERATOR]
        c"O(N) where N is the size of the chunk"
        c"Returns the next chunk of a counter's dump"
    c"lc.loadchunk" dump::loadchunk::<Counter>, 4 WRITE Insert [KEY, ITERATOR, DATA]
        c"O(N) where N is the size of the chunk"
        c"Restores a counter chunk by chunk, as LC.SCANDUMP gave them"
};
