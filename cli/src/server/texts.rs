//! What servers and RedisBloom say in words, where the tool has to understand them. What this module says the library
//! knows.

use rollcall_core::unstable::wire::{BAD_DATA, NOT_FOUND};

/// Whether there is no such key, for a command of this module or of RedisBloom.
pub fn is_gone(error: &str) -> bool {
    error.ends_with(NOT_FOUND) || error.contains("does not exist")
}

/// Whether a chunk was rejected for what is in it, by this module or RedisBloom.
pub fn is_bad_data(error: &str) -> bool {
    error.contains(BAD_DATA)
}

/// Whether the server has no such command.
pub fn is_unknown_command(error: &str) -> bool {
    error.contains("unknown command")
}

/// Whether the server has no such type of keys.
pub fn is_unknown_type(error: &str) -> bool {
    error.contains("unknown type")
}

/// Whether the key to be renamed is gone.
pub fn is_no_such_key(error: &str) -> bool {
    error.contains("no such key")
}

/// Whether the user may not do it. Within a transaction the code is another.
pub fn is_forbidden(error: &str) -> bool {
    error.starts_with("NOPERM") || error.contains("no permissions")
}

/// Whether a password was given to a server that has none.
pub fn needs_no_password(error: &str) -> bool {
    error.contains("without any password configured")
}

/// The rate in a line of `BF.DEBUG`.
pub fn ratio(line: &str) -> Option<f64> {
    line.split(' ').find_map(|word| word.strip_prefix("ratio:"))?.parse().ok()
}
