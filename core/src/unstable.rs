//! Interfaces for the server module, and for this repository's tests and benches. **All of them may change in any
//! release.** Applications do not need them.

pub use crate::hash::{Hash128, checksum, hash64, hash128};
pub use crate::heap::Mover;
pub use crate::size_limit::{try_collect, try_collect_ok, try_reserve};

/// The fields of `BF.INFO` and `LC.INFO`.
pub mod info {
    pub use crate::info::{CounterAt, FILTER_FIELDS_SHOWN, Field, InfoField, OF_COUNTERS, OF_FILTERS};
}

/// The parts of filters, and their sizes in both layouts.
pub mod bloom {
    pub use crate::bloom::classic::sizing::{DEFAULT_GROWTH, Rules, Shape};
    pub use crate::bloom::lines::sizing::{estimate_items, full_bits, sub_filter_capacity};
    pub use crate::bloom::params::expansion_error;
    pub use crate::bloom::sub_filter::SubFilter;
}

/// The parts of a counter: the positions of members in a bitmap, and estimates from the bitmap.
pub mod counting {
    pub use crate::counting::estimate::{Segments, standard_error};
    pub use crate::counting::layout::{LARGEST_ERRORS, Layout, SegmentCounts};
    pub use crate::counting::sample::sample;
}

/// Functions that store and load filters and counters chunk by chunk.
pub mod persist {
    pub use crate::bloom::filter::stored::{PartialFilter, has_window, is_redisbloom_header};
    pub use crate::counting::stored::PartialCounter;
    pub use crate::persist::bytes::parse;
    pub use crate::persist::chunks::{dump_partial, is_header, piece_checksum, push_chunk, scandump, unstamped};
    pub use crate::stored::payload::{Apart, Payload};
    pub use crate::stored::{ChunkFormat, Partial};

    /// RDB values and `DUMP` payloads.
    pub mod rdb {
        pub use crate::persist::rdb::{ENCODING, PIECE_BYTES, load, save, save_partial};
        pub use crate::stored::{Sink, Source};
    }

    /// RDB values of RedisBloom.
    pub mod redisbloom {
        pub use crate::bloom::filter::stored::redisbloom::{RDB_ENCODING_NEWEST, load_rdb, save_rdb};
    }
}

/// Names and texts that servers with the module send, and that programs recognise.
pub mod wire {
    pub use crate::wire::{BAD_DATA, NOT_FOUND, STALE, StillLoading, TYPE_OF_CLASSIC, TYPE_OF_COUNTERS, TYPE_OF_LINES};
}
