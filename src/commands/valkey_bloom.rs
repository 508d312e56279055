//! What valkey-bloom has and we have not.

use redis_module::raw;

use crate::refusal::{Refusal, quoted};
use crate::server::ffi::{Args, Ctx, LogLevel};

/// `BF.LOAD key data`: how valkey-bloom writes a filter into a rewritten AOF. Always refused: its filters have other
/// hashes, and nothing says which items are in one.
///
/// While the server loads an AOF it ends here, as it does at a command that it does not know. It would go on after an
/// error reply, without the filter, and the next rewrite would lose it for good.
pub(super) fn load(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    if is_from_aof(ctx) {
        let key = quoted(args.get(1).bytes());
        let why = Refusal::ValkeyBloom.text();
        ctx.log(LogLevel::Warning, &format!("cannot load {key} from the AOF: {}", why.trim_start_matches("ERR ")));
        std::process::exit(1);
    }
    Err(Refusal::ValkeyBloom)
}

/// Whether the command was read from the AOF: nothing else runs one while the server loads. Clients are told that it
/// loads, for the command is not marked as allowed then; a replica that answers while it loads has another flag.
fn is_from_aof(ctx: Ctx) -> bool {
    let flags = ctx.flags();
    flags & raw::REDISMODULE_CTX_FLAGS_LOADING != 0 && flags & raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING == 0
}
