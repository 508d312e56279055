//! Replicated `BF.*` commands, from a primary or the AOF. Another server has acknowledged them, so they must not fail
//! here. If that server was RedisBloom, it may have read the options differently.

use rollcall_core::error::Error;

use super::creation::filters::Creation;
use crate::args::{self, Allowed, Options, lenient};
use crate::command_error::CommandError;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx};
use crate::types::names::Prefix;

/// Parses the options of a command by `read`, as RedisBloom does. `None` if `read` rejects the options, and for RF.*,
/// which RedisBloom does not have.
fn from_redisbloom(args: Args<'_>, read: fn(Args<'_>) -> Option<Options>) -> Option<Options> {
    if Prefix::Rf.is_of(args) { None } else { read(args) }
}

/// The parameters of the filter that a replicated `BF.RESERVE` creates, and the expiry of its key.
pub(super) fn reservation(ctx: Ctx, args: Args<'_>) -> Result<(Creation, Option<i64>), CommandError> {
    match from_redisbloom(args, lenient::reserve) {
        Some(options) => Ok((Creation::obeyed(ctx, args, &options)?, None)),
        None => Creation::from_reservation(ctx, args, Creation::obeyed),
    }
}

/// The parameters and the options of a replicated `BF.INSERT`. If RedisBloom would reject the command, a primary with
/// this module sent it, so the strict parser reads it, with the `allowed` options.
pub(super) fn insertion(ctx: Ctx, args: Args<'_>, allowed: Allowed) -> Result<(Creation, Options), CommandError> {
    let options = match from_redisbloom(args, lenient::insert) {
        Some(options) => options,
        None => args::options(ctx, args, 2, allowed)?,
    };
    Ok((Creation::obeyed(ctx, args, &options)?, options))
}

/// The error to reply for a rejected item; `None` if the command must not fail. RedisBloom also replicates commands
/// that it rejected because the filter was full. They have no effect here either, but must not fail: a replica can be
/// configured to exit at an error.
pub(super) fn reported(ctx: Ctx, error: Error) -> Option<CommandError> {
    match error {
        Error::Full { .. } if must_obey(ctx) => None,
        other => Some(other.into()),
    }
}
