//! The rows of the command table for Bloom filters.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::unstable::info::OF_FILTERS;

use super::super::argument::*;
use super::super::{advance, bloom, changes, dump, info, look_up};
use super::command::*;

/// Each command is registered under BF.* and RF.*.
pub static BLOOM: &[Command] = rows! { Filter:
    c"bf.reserve" bloom::reserve, -4 WRITE_FAST Insert [
        KEY, argument(c"error-rate", ArgumentKind::Double), argument(c"capacity", ArgumentKind::Integer),
        EXPANSION, NONSCALING, SEED, LAYOUT, FILTER_WINDOW, EXPIRY
    ]
        c"O(1)"
        c"Creates an empty Bloom filter with its own error rate and capacity"
    c"bf.add" bloom::add, 3 WRITE_FAST Insert [KEY, ITEM]
        c"O(N) where N is the number of sub-filters"
        c"Adds an item to a Bloom filter; creates the filter if it is missing"
    c"bf.madd" changes::madd::<BloomFilter>, -3 WRITE_FAST Insert [KEY, ITEMS]
        c"O(N*M) where N is the number of items and M the number of sub-filters"
        c"Adds items to a Bloom filter; creates the filter if it is missing"
    c"bf.insert" changes::insert::<BloomFilter>, -4 WRITE_FAST Insert [
        KEY, CAPACITY, ERROR, EXPANSION, NOCREATE, NONSCALING, SEED, LAYOUT, FILTER_WINDOW_OF_INSERT, EXPIRY,
        WIDTH, AFTER_ITEMS
    ]
        c"O(N*M) where N is the number of items and M the number of sub-filters"
        c"Adds items to a Bloom filter; if it is missing, creates it with these options"
    c"bf.admit" changes::admit::<BloomFilter>, -6 WRITE Insert [
        KEY, LIMIT, ALL, DRYRUN, WITHROOM, CAPACITY, ERROR, EXPANSION, NOCREATE, NONSCALING, SEED, LAYOUT,
        FILTER_WINDOW_OF_INSERT, EXPIRY, WIDTH, AFTER_ITEMS
    ]
        c"O(N*M) where N is the number of items and M the number of sub-filters"
        c"Adds new items to a Bloom filter while it has fewer than a limit"
    c"bf.exists" look_up::exists::<BloomFilter>, 3 READ_FAST Read CHANGES_WITH_TIME [KEY, ITEM]
        c"O(N) where N is the number of sub-filters"
        c"Returns whether an item may be in a Bloom filter, or is certainly not"
    c"bf.mexists" look_up::mexists::<BloomFilter>, -3 READ_FAST Read CHANGES_WITH_TIME [KEY, ITEMS]
        c"O(N*M) where N is the number of items and M the number of sub-filters"
        c"Returns for each item whether it may be in a Bloom filter, or is certainly not"
    c"bf.query" look_up::query::<BloomFilter>, -4 READ_FAST Read CHANGES_WITH_TIME [KEY, SINCE, WIDTH, AFTER_ITEMS]
        c"O(N*M) where N is the number of items and M the number of sub-filters"
        c"Returns for each item whether it may be in a Bloom filter, or may have been added in the last seconds"
    c"bf.card" bloom::card, 2 READ_FAST Read CHANGES_WITH_TIME [KEY]
        c"O(1)"
        c"Returns the number of items that were added to a Bloom filter"
    c"bf.info" bloom::info, -2 READ_FAST Read CHANGES_WITH_TIME [KEY, field(&const { info::choices(&OF_FILTERS) })]
        c"O(N) where N is the number of sub-filters"
        c"Returns the parameters and the state of a Bloom filter"
    c"bf.advance" advance::advance::<BloomFilter>, -3 CHANGE_FAST Advance [KEY, TO]
        c"O(N) where N is the number of sub-filters"
        c"Moves the window of a Bloom filter on to a slice, or hands it to the clock"
    c"bf.merge" changes::merge::<BloomFilter>, -3 WRITE Merge [DESTINATION, SOURCES]
        c"O(N*M) where N is the number of filters and M their bits"
        c"Makes a Bloom filter the union of itself and others of the same parameters"
    c"bf.mergedump" changes::merge_dump::<BloomFilter>, -3 WRITE Insert [DESTINATION, PAYLOADS]
        c"O(N*M) where N is the number of payloads and M their bits"
        c"Makes a Bloom filter the union of itself and values that DUMP has returned or that files have"
    c"bf.clear" changes::clear::<BloomFilter>, 2 CHANGE_FAST Clear [KEY]
        c"O(1)"
        c"Empties a Bloom filter and keeps its parameters and time to live"
    c"bf.scandump" dump::scandump::<BloomFilter>, 3 READ Read [KEY, ITERATOR]
        c"O(N) where N is the size of the chunk"
        c"Returns the next chunk of a Bloom filter's dump"
    c"bf.loadchunk" dump::loadchunk::<BloomFilter>, 4 WRITE Insert [KEY, ITERATOR, DATA]
        c"O(N) where N is the size of the chunk"
        c"Restores a Bloom filter chunk by chunk, as BF.SCANDUMP gave them"
    c"bf.debug" bloom::debug, 2 READ Read [KEY]
        c"O(N) where N is the number of sub-filters"
        c"Describes each sub-filter of a Bloom filter"
};
