//! `BF.*` that was acknowledged elsewhere and must not fail here: RedisBloom's options as RedisBloom reads them, filters
//! that are still arriving, items that were refused there too.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::unstable::persist::Loading;

use super::creation::Creation;
use super::keyspace::{refusal_of, value_mut};
use crate::args::{self, Opt, Options, lenient};
use crate::refusal::{Noun, Refusal};
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, Key};
use crate::types::entry::settle;

/// What `BF.RESERVE` is to create.
pub(super) fn reservation(ctx: Ctx, args: Args<'_>) -> Result<Creation, Refusal> {
    match lenient::reserve(args) {
        Some(options) => Creation::obeyed(ctx, &options),
        None => Creation::of_reservation(ctx, args, Creation::obeyed),
    }
}

/// What `BF.INSERT` says, beyond what our clients may say. `allowed` are the options that those may give.
pub(super) fn insertion(ctx: Ctx, args: Args<'_>, allowed: &[Opt]) -> Result<(Creation, Options), Refusal> {
    let options = match lenient::insert(args) {
        Some(options) => options,
        None => args::options(Noun::Filter, args, 2, allowed)?,
    };
    Ok((Creation::obeyed(ctx, &options)?, options))
}

/// A filter that is still arriving, as it stands: RedisBloom adds to such a one, and has acknowledged it.
pub(super) fn settled<'k>(key: &'k mut Key<'_>) -> Result<&'k mut BloomFilter, Refusal> {
    settle::<BloomFilter>(key, |loading| Ok(loading.finish_with_zeros())).map_err(refusal_of::<BloomFilter>)?;
    value_mut(key)?.ok_or(Refusal::NotFound)
}

/// Why an item was refused, if that is to be told. RedisBloom replicates what it refused because the filter was full as
/// well; such a command does nothing here either, but it must not fail: a replica may be set to end at an error.
pub(super) fn told(ctx: Ctx, error: Error) -> Option<Refusal> {
    match error {
        Error::Full { .. } if must_obey(ctx) => None,
        other => Some(refusal_of::<BloomFilter>(other)),
    }
}
