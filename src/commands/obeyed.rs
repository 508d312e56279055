//! `BF.*` commands that were acknowledged elsewhere and must not fail here. They may have RedisBloom's options as
//! RedisBloom reads them, add to a filter that is still arriving, or add items that RedisBloom refused.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::unstable::persist::Loading;

use super::creation::filters::Creation;
use super::keyspace::refusal_of;
use crate::args::{self, Opt, Options, lenient};
use crate::refusal::{Noun, Refusal};
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, Key};
use crate::types::entry;
use crate::types::names::Prefix;

/// The options of a command that may be RedisBloom's: RF.* are not.
fn from_redisbloom(args: Args<'_>, read: fn(Args<'_>) -> Option<Options>) -> Option<Options> {
    if Prefix::Rf.is_of(args) { None } else { read(args) }
}

/// What an obeyed `BF.RESERVE` creates.
pub(super) fn reservation(ctx: Ctx, args: Args<'_>) -> Result<Creation, Refusal> {
    match from_redisbloom(args, lenient::reserve) {
        Some(options) => Creation::obeyed(ctx, args, &options),
        None => Creation::of_reservation(ctx, args, Creation::obeyed),
    }
}

/// The creation and the options of an obeyed `BF.INSERT`, beyond what clients may say. `allowed` are the options of
/// clients.
pub(super) fn insertion(ctx: Ctx, args: Args<'_>, allowed: &[Opt]) -> Result<(Creation, Options), Refusal> {
    let options = match from_redisbloom(args, lenient::insert) {
        Some(options) => options,
        None => args::options(Noun::Filter, args, 2, allowed)?,
    };
    Ok((Creation::obeyed(ctx, args, &options)?, options))
}

/// Completes a filter that is still arriving, with zeros for what is missing. RedisBloom adds to such a filter, and has
/// acknowledged the command.
pub(super) fn settle(key: &mut Key<'_>) -> Result<(), Refusal> {
    entry::settle::<BloomFilter>(key, |loading| Ok(loading.finish_with_zeros()))?;
    Ok(())
}

/// Why an item was refused, if the reply has to say so. RedisBloom also replicates a command that it refused because
/// the filter was full. Here it does nothing either, but must not fail: a replica may be set to end at an error.
pub(super) fn told(ctx: Ctx, error: Error) -> Option<Refusal> {
    match error {
        Error::Full { .. } if must_obey(ctx) => None,
        other => Some(refusal_of::<BloomFilter>(other)),
    }
}
