//! Size limits: a size is computed with checked arithmetic, then asked for, and only then allocated.

use crate::error::Error;

/// Decides whether a value may take more memory. The server glue answers from its configuration
/// and the server's `maxmemory`; a library user picks [`Unlimited`] or [`MaxBytes`].
pub trait SizeLimit {
    /// May a value that takes `held_bytes` take `more_bytes` on top?
    ///
    /// # Errors
    /// [`Error::TooLarge`] when it may not.
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error>;
}

/// No limit but the machine's.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl SizeLimit for Unlimited {
    fn check(&self, _held_bytes: u64, _more_bytes: u64) -> Result<(), Error> {
        Ok(())
    }
}

/// At most so many bytes a value.
#[derive(Debug, Clone, Copy)]
pub struct MaxBytes(pub u64);

impl SizeLimit for MaxBytes {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let needed_bytes = held_bytes.saturating_add(more_bytes);
        if needed_bytes > self.0 {
            return Err(Error::TooLarge { needed_bytes, limit_bytes: self.0, limit: "the limit" });
        }
        Ok(())
    }
}
