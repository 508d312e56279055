//! The commands LC.*, which work on counters of distinct members.

use rollcall_core::counting::{self, Counter};
use rollcall_core::error::Error;
use rollcall_core::unstable::info::{CounterAt, OF_COUNTERS};
use rollcall_core::unstable::size_limit::try_collect_ok;

use super::changes;
use super::counters::PARAMETERS;
use super::keyspace::{open_all, value, values};
use super::windows::{self, NO_SINCE, time_of};
use super::{info, sets};
use crate::args::{self, Allowed, Opt};
use crate::command_error::{CommandError, Kind, bad};
use crate::server::ffi::{Args, Ctx, Mode};
use crate::types::family::Family;

const MEMBERS_OPTIONS: Allowed<'static> = &[&[Opt::Since, Opt::WithAges]];
const RESERVE_OPTIONS: Allowed<'static> = &[PARAMETERS, windows::OF_COUNTERS, args::EXPIRY];

/// Creates an empty counter: `LC.RESERVE key [ERROR rate] [EXACT limit] [BYTES bytes] [SEED n]
/// [WINDOW seconds [MANUAL] [SLICES g]] [EX s | PX ms | EXAT s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let options = args::options(ctx, args, 2, RESERVE_OPTIONS)?;
    windows::check_reservation(ctx, &options)?;
    changes::reserve::<Counter>(ctx, args, &Counter::creation(ctx, args, &options)?, options.expiry)
}

/// Replies with the number of distinct members of one counter, or of the union of several: `LC.COUNT key [key ...]`
pub fn count(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if args.len() == 2 {
        let key = ctx.open(args.get(1), Mode::Read)?;
        let count = match value::<Counter>(&key)? {
            None => 0,
            Some(counter) if counter.window().is_none() => counter.count(),
            Some(counter) => counter.at(time_of(ctx, [counter])).count(),
        };
        ctx.reply_integer(count as i64);
        return Ok(());
    }
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let counters = values::<Counter>(&keys)?;
    let now = time_of(ctx, counters.iter().copied());
    let views = try_collect_ok(counters.len(), counters.iter().map(|counter| Ok::<_, Error>(counter.at(now))))?;
    ctx.reply_integer(counting::union_card(&views)?.count() as i64);
    Ok(())
}

/// Replies with the members of an exact counter: `LC.MEMBERS key [SINCE seconds] [WITHAGES]`
pub fn members(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let options = args::options(ctx, args, 2, MEMBERS_OPTIONS)?;
    let key = ctx.open(args.get(1), Mode::Read)?;
    let Some(counter) = value::<Counter>(&key)? else {
        ctx.reply_array(0);
        return Ok(());
    };
    let now = time_of(ctx, [counter]);
    if options.has(Opt::WithAges) && counter.window().is_none() {
        return Err(windows::no_window_for(counter, args.get(1), "leave WITHAGES out"));
    }
    let view = sets::view(counter, args.get(1), options.since, now, NO_SINCE)?;
    if options.has(Opt::WithAges) {
        sets::reply_members_with_ages(ctx, &view.members_with_ages(now)?);
        return Ok(());
    }
    sets::reply_members(ctx, view.count() as usize, view.members()?);
    Ok(())
}

/// Replies with all figures about a counter, or with one: `LC.INFO key [field]`
pub fn info(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(CommandError::Arity);
    }
    if args.len() == 3 && args.get(2).bytes().eq_ignore_ascii_case(b"CAPACITY") {
        return bad(args::NO_CAPACITY);
    }
    let key = ctx.open(args.get(1), Mode::Inspect)?;
    let counter = value::<Counter>(&key)?.ok_or(CommandError::NotFound)?;
    let at = CounterAt::new(counter, time_of(ctx, [counter]))?;
    info::info(ctx, args, Kind::Counter, &OF_COUNTERS, OF_COUNTERS.len(), |of| of(&at))
}
