//! The expiry of keys. A key gets one when a command creates it; a key with a `VOLATILE` window gets a new one with
//! each move.

use rollcall_core::live::Windowed;
use rollcall_core::window::Window;

use crate::args::Expiry;
use crate::command_error::CommandError;
use crate::server::facts::must_obey;
use crate::server::ffi::Ctx;

/// Returns the time at which the key expires, in milliseconds since 1970; `None` if `given` is `None`. A client's time
/// in the past is rejected: every call would create the key anew.
pub(super) fn resolve(ctx: Ctx, given: Option<Expiry>) -> Result<Option<i64>, CommandError> {
    let Some(given) = given else { return Ok(None) };
    let now = ctx.now_ms();
    match given {
        Expiry::In(ms) => match now.checked_add(ms) {
            None => Err(CommandError::ExpireTime(format!("{ms} milliseconds from now are beyond the largest time"))),
            at => Ok(at),
        },
        Expiry::At(ms) if ms <= now && !must_obey(ctx) => {
            Err(CommandError::ExpireTime(format!("{ms} milliseconds since 1970 have passed")))
        }
        Expiry::At(ms) => Ok(Some(ms)),
    }
}

/// Returns the time at which the key of a `VOLATILE` window expires, in milliseconds since 1970. `None` for any other
/// value, and for a command that must be obeyed: the primary sends the expiry itself. The server deletes a key after
/// its time of expiry, so the time is the last millisecond before the value is empty.
pub(super) fn of_volatile<T: Windowed>(ctx: Ctx, value: &T) -> Option<i64> {
    of_window(ctx, value.window().zip(value.newest_slice()))
}

/// As [`of_volatile`], for a window and its newest slice.
pub(super) fn of_window(ctx: Ctx, window: Option<(&Window, u64)>) -> Option<i64> {
    let (window, newest) = window.filter(|(window, _)| window.is_volatile() && !must_obey(ctx))?;
    let empty_ms = i64::try_from(window.empty_at(newest)).ok().and_then(|seconds| seconds.checked_mul(1000));
    Some(empty_ms.unwrap_or(i64::MAX) - 1)
}
