//! The time to live that a key gets: when a command creates it, and with each move of one that expires once it is empty.

use rollcall_core::live::Windowed;
use rollcall_core::window::Window;

use crate::args::Expiry;
use crate::command_error::CommandError;
use crate::server::facts::must_obey;
use crate::server::ffi::Ctx;

/// When the key expires, in milliseconds since 1970. A time that has passed is rejected: every call would make the key
/// anew.
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

/// When the key of a value expires that expires once it is empty, in milliseconds since 1970. A server deletes a key that is
/// older than that. What must be obeyed was sent it.
pub(super) fn of_volatile<T: Windowed>(ctx: Ctx, value: &T) -> Option<i64> {
    of_window(ctx, value.window().zip(value.newest_slice()))
}

/// As [`of_volatile`], of a window and the newest slice.
pub(super) fn of_window(ctx: Ctx, window: Option<(&Window, u64)>) -> Option<i64> {
    let (window, newest) = window.filter(|(window, _)| window.is_volatile() && !must_obey(ctx))?;
    let empty_ms = i64::try_from(window.empty_at(newest)).ok().and_then(|seconds| seconds.checked_mul(1000));
    Some(empty_ms.unwrap_or(i64::MAX) - 1)
}
