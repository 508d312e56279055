//! The expiry of keys. A command may give an expiry to a key that it creates. A key with a `VOLATILE` window gets a new
//! expiry each time the window advances.

use rollcall_core::live::Windowed;
use rollcall_core::window::Window;

use crate::args::Expiry;
use crate::command_error::CommandError;
use crate::server::facts::must_obey;
use crate::server::ffi::Ctx;

/// Converts the expiry that a command gives to milliseconds since 1970; `None` if `given` is `None`. A client's time in
/// the past is an error, because every call would create the key anew.
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

/// Returns the expiry of a key with a `VOLATILE` window, in milliseconds since 1970: the last millisecond before all
/// its items have left the window. `None` for any other value, and for a replicated command, because the primary sends
/// the expiry itself.
pub(super) fn of_volatile<T: Windowed>(ctx: Ctx, value: &T) -> Option<i64> {
    of_window(ctx, value.window().zip(value.newest_slice()))
}

/// Returns the same as [`of_volatile`], for a window and its newest slice.
pub(super) fn of_window(ctx: Ctx, window: Option<(&Window, u64)>) -> Option<i64> {
    let (window, newest) = window.filter(|(window, _)| window.is_volatile() && !must_obey(ctx))?;
    let empty_ms = i64::try_from(window.empty_at(newest)).ok().and_then(|seconds| seconds.checked_mul(1000));
    Some(empty_ms.unwrap_or(i64::MAX) - 1)
}
