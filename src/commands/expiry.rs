//! The time to live that a key gets when a command creates it.

use crate::args::Expiry;
use crate::refusal::Refusal;
use crate::server::facts::must_obey;
use crate::server::ffi::Ctx;

/// When the key expires, in milliseconds since 1970. A time that has passed is refused: every call would make the key
/// anew.
pub(super) fn resolve(ctx: Ctx, given: Option<Expiry>) -> Result<Option<i64>, Refusal> {
    let now = ctx.now_ms();
    match given {
        None => Ok(None),
        Some(Expiry::In(ms)) => match now.checked_add(ms) {
            None => Err(Refusal::ExpireTime(format!("{ms} milliseconds from now are beyond the largest time"))),
            at => Ok(at),
        },
        Some(Expiry::At(ms)) if ms <= now && !must_obey(ctx) => {
            Err(Refusal::ExpireTime(format!("{ms} milliseconds since 1970 have passed")))
        }
        Some(Expiry::At(ms)) => Ok(Some(ms)),
    }
}
