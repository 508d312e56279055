//! The command `BF.LOAD` of valkey-bloom, which this module rejects.

use redis_module::raw;

use crate::command_error::{CommandError, quoted};
use crate::server::ffi::{Args, Ctx, WARNING};

/// The reason for the rejection.
const WHY: &str = "BF.LOAD carries a filter of valkey-bloom in a rewritten AOF, and its data is not read here: see \
    \"Coming from valkey-bloom\" in docs/migrating.md";

/// Rejects `BF.LOAD key data`, which valkey-bloom writes into a rewritten AOF for each filter. The filter cannot be
/// converted: valkey-bloom uses other hashes, and the items of a filter cannot be recovered from its bits.
///
/// While the server loads an AOF, this function ends the process, as the server does for an unknown command. If the
/// server went on after an error reply, the filter would be missing, and the next rewrite of the AOF would lose it
/// permanently.
pub(super) fn load(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if is_from_aof(ctx) {
        let key = quoted(args.get(1).bytes());
        ctx.log(WARNING, &format!("cannot load {key} from the AOF: {WHY}"));
        std::process::exit(1);
    }
    Err(CommandError::Argument(WHY.to_owned()))
}

/// Whether the server is loading an AOF and has read the command from it. Clients cannot run this command while the
/// server loads: they get a LOADING error. The flag `ASYNC_LOADING` is excluded, because a replica with that flag
/// serves clients while it loads.
fn is_from_aof(ctx: Ctx) -> bool {
    let flags = ctx.flags();
    flags & raw::REDISMODULE_CTX_FLAGS_LOADING != 0 && flags & raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING == 0
}
