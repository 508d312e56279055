//! The arguments that plans of filters and counters have in common.

use clap::Args;

use crate::numbers;
use crate::table::bytes;

/// Bytes of memory that a key takes in addition to its value on redis-server 7.0. They are its name of 9 bytes, the
/// entry of the dictionary, and the server's objects.
pub(super) const KEY_BYTES: u64 = 88;

/// The default size limit of a value in bytes: `max-key-bytes` of a server without `maxmemory`.
const MAX_KEY_BYTES: u64 = 512 << 20;

/// Whether a server with default options rejects a value of this size.
pub(super) fn is_rejected_by_default(size_bytes: u64) -> bool {
    size_bytes > MAX_KEY_BYTES
}

/// A warning that a server with default options rejects a value of this size. `what` names the value.
pub(super) fn warning(what: &str, size_bytes: u64) -> String {
    let (size, enough) = (bytes(size_bytes), size_bytes.div_ceil(1 << 30));
    format!(
        "rejected      {what}, {size}: by default a key gets 512 MiB, and 4 GiB where maxmemory is set\n\
         CONFIG SET rollcall.max-key-bytes {enough}gb"
    )
}

/// The number of keys, and the period.
#[derive(Debug, Args)]
pub(super) struct Asked {
    /// The number of keys
    #[arg(long, default_value = "1", value_parser = numbers::whole)]
    pub(super) keys: u64,
    /// Seed of the hash function, for the printed commands
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Expire items older than this: 3600 (seconds), 15m, 24h, 7d
    #[arg(long, value_parser = numbers::seconds)]
    pub(super) window: Option<u64>,
    /// The number of time slices of the window; items expire one slice at a time
    #[arg(long)]
    pub(super) slices: Option<u32>,
}

impl Asked {
    /// Bytes of all keys with their values; `None` if the number exceeds 64 bits.
    pub(super) fn bytes_of_keys(&self, size_bytes: u64) -> Option<u64> {
        size_bytes.checked_add(KEY_BYTES)?.checked_mul(self.keys)
    }

    /// The options at the end of the planned command.
    pub(super) fn options(&self) -> String {
        let option =
            |name: &str, value: Option<String>| value.map_or(String::new(), |value| format!(" {name} {value}"));
        [
            option("SEED", self.seed.map(|seed| seed.to_string())),
            option("WINDOW", self.window.map(|seconds| seconds.to_string())),
            option("SLICES", self.slices.map(|slices| slices.to_string())),
        ]
        .concat()
    }
}
