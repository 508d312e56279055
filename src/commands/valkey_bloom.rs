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
    // Clients cannot run this command while the server loads: they get a LOADING error. With `ASYNC_LOADING`, a replica
    // serves clients while it loads.
    let flags = ctx.flags();
    if flags & raw::REDISMODULE_CTX_FLAGS_LOADING != 0 && flags & raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING == 0 {
        let key = quoted(args.get(1).bytes());
        ctx.log(WARNING, &format!("cannot load {key} from the AOF: {WHY}"));
        std::process::exit(1);
    }
    Err(CommandError::Argument(WHY.to_owned()))
}
