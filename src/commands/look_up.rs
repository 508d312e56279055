//! The commands that look up items, which are the same for filters and counters.

use rollcall_core::unstable::try_reserve;

use super::keyspace::value;
use super::windows::{NO_SINCE, check_since, time_of};
use crate::args::{self, Items, Opt};
use crate::command_error::CommandError;
use crate::reply;
use crate::server::ffi::{Args, Ctx, Mode};
use crate::types::family::Family;

/// Replies whether a value contains an item: `BF.EXISTS key item`
pub(super) fn exists<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let (key, mut is_found) = (ctx.open(args.get(1), Mode::Read)?, false);
    if let Some(value) = value::<T>(&key)? {
        value.look_up(time_of(ctx, [value]), None, Items::single(args.from(2)), |found| is_found = found)?;
    }
    ctx.reply_bool(is_found);
    Ok(())
}

/// Replies for each item whether a value contains it: `BF.MEXISTS key item [item ...]`
pub(super) fn mexists<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    reply_found::<T>(ctx, args, Items::single(args.from(2)), None)
}

/// Replies for each item whether a value contains it, or did in the last seconds: `BF.QUERY key [SINCE seconds]
/// [WIDTH bytes] ITEMS item [item ...]`
pub(super) fn query<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let options = args::options(ctx, args, 2, &[&[Opt::Since], args::ITEMS])?;
    reply_found::<T>(ctx, args, options.items(args)?, options.since)
}

fn reply_found<T: Family>(ctx: Ctx, args: Args<'_>, items: Items, since: Option<u64>) -> Result<(), CommandError> {
    let (key, mut answers) = (ctx.open(args.get(1), Mode::Read)?, Vec::new());
    let value = value::<T>(&key)?;
    try_reserve(&mut answers, items.len)?;
    if let Some(value) = value {
        check_since(value, args.get(1), since, NO_SINCE)?;
        value.look_up(time_of(ctx, [value]), since, items, |found| answers.push(reply::answer(found)))?;
    }
    answers.resize(items.len, reply::NO);
    reply::answers(ctx, answers, items.len, None, items.width.is_some());
    Ok(())
}
