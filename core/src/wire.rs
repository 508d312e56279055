//! What servers with the module say that programs go by: names of data types, and texts of errors.

use std::fmt;

/// The data type of filters of lines, and of filters of either layout that have not fully arrived.
pub const TYPE_OF_LINES: &str = "RCfilter-";
/// That of classic filters, which is RedisBloom's.
pub const TYPE_OF_CLASSIC: &str = "MBbloom--";
/// That of counters.
pub const TYPE_OF_COUNTERS: &str = "RCcounter";

/// There is no such key.
pub const NOT_FOUND: &str = "not found";
/// A chunk is damaged, out of order, or for a value that is complete.
pub const BAD_DATA: &str = "received bad data";
/// The first word where a dump has to begin anew.
pub const STALE: &str = "STALE";

/// How much of a value is there whose dump has not fully arrived, as the error of a command on it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StillLoading {
    /// Bytes of the payload that have arrived.
    pub received_bytes: u64,
    /// Bytes of all of it.
    pub total_bytes: u64,
}

const STILL_LOADING: &str = "still loading: ";

impl fmt::Display for StillLoading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STILL_LOADING}{} of {} bytes", self.received_bytes, self.total_bytes)
    }
}

impl StillLoading {
    /// Finds it in the text of an error.
    pub fn of(error: &str) -> Option<Self> {
        let (_, bytes) = error.split_once(STILL_LOADING)?;
        let (received, total) = bytes.strip_suffix(" bytes")?.split_once(" of ")?;
        Some(StillLoading { received_bytes: received.parse().ok()?, total_bytes: total.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let half = StillLoading { received_bytes: 5, total_bytes: 10 };
        assert_eq!(StillLoading::of(&format!("ERR filter is {half}")), Some(half));
        for other in ["", "ERR not found", "still loading: 5 of ten bytes", "still loading: 5 of 10 bytes more"] {
            assert_eq!(StillLoading::of(other), None);
        }
    }
}
