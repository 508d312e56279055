//! `BF.LOAD` of valkey-bloom, which this module rejects.

use redis_module::raw;

use crate::command_error::{CommandError, quoted};
use crate::server::ffi::{Args, Ctx, LogLevel};

/// `BF.LOAD key data`, which valkey-bloom writes into a rewritten AOF for each filter. Always rejected: valkey-bloom's
/// filters have other hashes, and the items of a filter cannot be recovered from its bits.
///
/// While the server loads an AOF, this ends the process, as an unknown command does. After an error reply the server
/// would go on without the filter, and the next rewrite would lose it for good.
pub(super) fn load(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if is_from_aof(ctx) {
        let key = quoted(args.get(1).bytes());
        let why = CommandError::ValkeyBloom.text();
        ctx.log(LogLevel::Warning, &format!("cannot load {key} from the AOF: {}", why.trim_start_matches("ERR ")));
        std::process::exit(1);
    }
    Err(CommandError::ValkeyBloom)
}

/// Whether the command was read from the AOF: only an AOF can run the command while the server loads. Clients get a
/// LOADING error, because the command lacks the flag that allows it during loading. A replica that answers while it
/// loads has the flag `ASYNC_LOADING`.
fn is_from_aof(ctx: Ctx) -> bool {
    let flags = ctx.flags();
    flags & raw::REDISMODULE_CTX_FLAGS_LOADING != 0 && flags & raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING == 0
}
