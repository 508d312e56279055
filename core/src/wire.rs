//! Names of data types and texts of errors that servers with the module send, and that programs recognise.

use std::fmt;

/// The name of the data type of filters in the cache-line layout, and of all partially loaded filters.
pub const TYPE_OF_LINES: &str = "RCfilter-";
/// RedisBloom's name of the data type of its filters.
pub const TYPE_OF_CLASSIC: &str = "MBbloom--";
/// The name of the data type of counters.
pub const TYPE_OF_COUNTERS: &str = "RCcounter";

/// The error for a missing key.
pub const NOT_FOUND: &str = "not found";
/// The error for a rejected `LOADCHUNK`: the chunk is damaged or out of order, or the value is complete.
pub const BAD_DATA: &str = "received bad data";
/// The first word of the error after which a client must begin its dump by `SCANDUMP` again.
pub const STALE: &str = "STALE";

/// How much of a partially loaded value has been received. The error of a command on such a value contains these
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StillLoading {
    /// The number of payload bytes that have been received.
    pub received_bytes: u64,
    /// The number of bytes in the whole payload.
    pub total_bytes: u64,
}

const STILL_LOADING: &str = "still loading: ";

impl fmt::Display for StillLoading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STILL_LOADING}{} of {} bytes", self.received_bytes, self.total_bytes)
    }
}

impl StillLoading {
    /// Parses the text of a server's error; `None` if it is not "still loading".
    pub fn from_error(error: &str) -> Option<Self> {
        let (_, bytes) = error.split_once(STILL_LOADING)?;
        let (received, total) = bytes.strip_suffix(" bytes")?.split_once(" of ")?;
        Some(StillLoading { received_bytes: received.parse().ok()?, total_bytes: total.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_partial_load_is_parsed() {
        let half = StillLoading { received_bytes: 5, total_bytes: 10 };
        assert_eq!(StillLoading::from_error(&format!("ERR filter is {half}")), Some(half));
        for other in ["", "ERR not found", "still loading: 5 of ten bytes", "still loading: 5 of 10 bytes more"] {
            assert_eq!(StillLoading::from_error(other), None);
        }
    }
}
