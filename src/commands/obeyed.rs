//! `BF.*` commands that were acknowledged elsewhere and must not fail here. They may have RedisBloom's options as
//! RedisBloom reads them, add to a partially loaded filter, or add items that RedisBloom rejected.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::unstable::persist::Loading;

use super::creation::filters::Creation;
use super::keyspace::command_error_of;
use crate::args::{self, Opt, Options, lenient};
use crate::command_error::{CommandError, Noun};
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, Key};
use crate::types::entry;
use crate::types::names::Prefix;

/// Reads the options of a command as RedisBloom does. Returns `None` for RF.*, which RedisBloom does not have, and for
/// options that `read` rejects.
fn from_redisbloom(args: Args<'_>, read: fn(Args<'_>) -> Option<Options>) -> Option<Options> {
    if Prefix::Rf.is_of(args) { None } else { read(args) }
}

/// Returns the parameters of the filter that a `BF.RESERVE` creates if it must be obeyed.
pub(super) fn reservation(ctx: Ctx, args: Args<'_>) -> Result<Creation, CommandError> {
    match from_redisbloom(args, lenient::reserve) {
        Some(options) => Creation::obeyed(ctx, args, &options),
        None => Creation::of_reservation(ctx, args, Creation::obeyed),
    }
}

/// Returns the parameters and the options of a `BF.INSERT` that must be obeyed, beyond the ranges of clients. `allowed`
/// are this module's options, read if the command is not RedisBloom's.
pub(super) fn insertion(ctx: Ctx, args: Args<'_>, allowed: &[Opt]) -> Result<(Creation, Options), CommandError> {
    let options = match from_redisbloom(args, lenient::insert) {
        Some(options) => options,
        None => args::options(Noun::Filter, args, 2, allowed)?,
    };
    Ok((Creation::obeyed(ctx, args, &options)?, options))
}

/// Completes a partially loaded filter, with zeros for the missing bytes. RedisBloom adds items to a partially loaded
/// filter, and has acknowledged the command.
pub(super) fn finalize(key: &mut Key<'_>) -> Result<(), CommandError> {
    entry::finalize::<BloomFilter>(key, |loading| Ok(loading.finish_with_zeros()))?;
    Ok(())
}

/// Returns the error of a rejected item, or `None` if the reply must not contain the error. RedisBloom also replicates
/// a command that it rejected because the filter was full. Such a command has no effect here either, but must not fail:
/// a replica may be set to end at an error.
pub(super) fn reported(ctx: Ctx, error: Error) -> Option<CommandError> {
    match error {
        Error::Full { .. } if must_obey(ctx) => None,
        other => Some(command_error_of::<BloomFilter>(other)),
    }
}
