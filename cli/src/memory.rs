//! Checks the memory of the machine before large amounts are allocated.

use rollcall_core::error::Error;
use rollcall_core::size_limit::MaxBytes;

use crate::failure::Failure;
use crate::table::bytes;

/// The size limit for values: the memory that the system reports as available. No limit if the system reports none.
pub fn available() -> MaxBytes {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    MaxBytes(available.unwrap_or(u64::MAX))
}

/// Rejects work that needs more memory than is available.
///
/// # Errors
/// When less memory is available than `needed`; the message says how much is available.
pub fn check(needed: u64, what: &str) -> Result<(), Failure> {
    let MaxBytes(available) = available();
    if needed > available {
        return Err(Failure::new(format!(
            "{what} needs {} of memory, and {} are free",
            bytes(needed),
            bytes(available)
        )));
    }
    Ok(())
}

/// The failure for an error of the library, in the tool's words.
pub fn failure(error: &Error) -> Failure {
    match error {
        Error::TooLarge { needed_bytes, limit_bytes, .. } => {
            let (needed, free) = (bytes(*needed_bytes), bytes(*limit_bytes));
            Failure::new(format!("{needed} of memory are needed, and {free} are free"))
                .advise("use a machine with more memory, a larger error rate or a smaller capacity")
        }
        Error::OutOfRange { .. } => Failure::arguments(error.to_string()),
        other => Failure::new(other.to_string()),
    }
}
