//! The version of this module, from Cargo.toml.

use std::ffi::{CStr, c_int};

use super::ffi::c_str;

pub const TEXT: &CStr = c_str(concat!(env!("CARGO_PKG_VERSION"), "\0"));

/// The version as a number: major * 10000 + minor * 100 + patch.
pub const NUMBER: c_int =
    number(env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH"));

const fn number(major: &str, minor: &str, patch: &str) -> c_int {
    part(major) * 10_000 + part(minor) * 100 + part(patch)
}

/// Parses one part of a version. It must be below 100, because it takes two decimal digits of [`NUMBER`].
const fn part(digits: &str) -> c_int {
    match c_int::from_str_radix(digits, 10) {
        Ok(part) if part < 100 => part,
        _ => panic!("a part of the version is not below 100"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_the_order_of_versions() {
        assert_eq!(number("0", "1", "0"), 100);
        assert_eq!(number("1", "2", "3"), 10_203);
        assert!(number("1", "0", "99") < number("1", "1", "0"));
    }

    #[test]
    fn version_number_and_text_agree() {
        let [major, minor, patch] = [NUMBER / 10_000, NUMBER / 100 % 100, NUMBER % 100];
        assert!(TEXT.to_string_lossy().starts_with(&format!("{major}.{minor}.{patch}")));
    }
}
