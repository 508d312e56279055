//! Recognizes error messages of servers and of RedisBloom. The messages of this module come from the library.

use rollcall_core::unstable::wire::{BAD_DATA, NOT_FOUND, StillLoading};

/// Whether this module or RedisBloom answered that the key does not exist.
pub fn is_gone(error: &str) -> bool {
    error.ends_with(NOT_FOUND) || error.contains("does not exist")
}

/// Whether this module or RedisBloom rejected a chunk because of its content.
pub fn is_bad_data(error: &str) -> bool {
    error.contains(BAD_DATA)
}

/// Whether the server does not know the command.
pub fn is_unknown_command(error: &str) -> bool {
    error.contains("unknown command")
}

/// Whether a server rejected an option of INSERT. Errors of this class with other causes are excluded.
pub fn is_wrong_option(error: &str) -> bool {
    let is_too_large = error.contains(" bytes") && error.contains("more than");
    error.starts_with("ERR ")
        && !is_unknown_command(error)
        && !is_too_large
        && StillLoading::from_error(error).is_none()
}

/// Whether the server does not know the type of keys.
pub fn is_unknown_type(error: &str) -> bool {
    error.contains("unknown type")
}

/// Whether the key to be renamed is gone.
pub fn is_no_such_key(error: &str) -> bool {
    error.contains("no such key")
}

/// Whether the user lacks the permission. Within a transaction the error has another code, so its text is searched too.
pub fn is_forbidden(error: &str) -> bool {
    error.starts_with("NOPERM") || error.contains("no permissions")
}

/// Whether a password was given to a server that has none.
pub fn needs_no_password(error: &str) -> bool {
    error.contains("without any password configured")
}

/// Whether a filter that cannot grow rejected an item.
pub fn is_full_filter(error: &str) -> bool {
    error.contains("filter is full")
}

/// Whether the server takes no more clients.
pub fn is_full(error: &str) -> bool {
    error.contains("max number of clients")
}

/// Whether the server ends a connection with this error, as it does before any command.
pub fn is_rejected_connection(error: &str) -> bool {
    error.starts_with("DENIED") || is_full(error)
}

/// The error rate in a line of a `BF.DEBUG` reply; `None` if the line has none.
pub fn ratio(line: &str) -> Option<f64> {
    line.split(' ').find_map(|word| word.strip_prefix("ratio:"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rejected_options_are_wrong_arguments() {
        for (error, is_wrong) in [
            ("ERR unknown option 'FOO'", true),
            ("ERR bad error rate: expected a number, got 'x'", true),
            ("ERR unknown command 'BF.INSERT'", false),
            ("ERR the filter needs 9 bytes, more than max-key-bytes (8)", false),
            ("ERR the filter needs 9 bytes more, more than maxmemory leaves (8)", false),
            ("ERR filter is still loading: 5 of 10 bytes", false),
            ("NOPERM no", false),
        ] {
            assert_eq!(is_wrong_option(error), is_wrong, "{error}");
        }
    }
}
