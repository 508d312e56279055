//! Set operations on several counters, and LC.COUNTSINCE and LC.HISTORY. `SINCE seconds` leaves out members that were
//! last added longer ago.

use rollcall_core::counting::{Counter, Estimated, Member, View};
use rollcall_core::error::Error;
use rollcall_core::unstable::try_collect_ok;
use rollcall_core::window::Time;

use super::keyspace::{open_all, value};
use super::windows::{check_since, no_window, time_of};
use crate::args;
use crate::command_error::{CommandError, bad, quoted};
use crate::number::parse_number;
use crate::server::ffi::{Arg, Args, Ctx, Mode};

/// Parses `[SINCE seconds [seconds ...]]` behind `numkeys` keys. Returns one value for all keys, or one for each; an
/// empty list without `SINCE`. The value `None` means all members of a counter.
fn since(args: Args<'_>, numkeys: usize) -> Result<Vec<Option<u64>>, CommandError> {
    if args.len() == 0 {
        return Ok(Vec::new());
    }
    let word = args.get(0).bytes();
    if !word.eq_ignore_ascii_case(b"SINCE") {
        let got = quoted(word);
        return bad(format!("unknown option {got}: expected SINCE behind {numkeys} keys"));
    }
    let read = |given: Arg<'_>| match given.bytes() {
        b"-" => Ok(None),
        _ => args::seconds(given).map(Some),
    };
    let seconds = try_collect_ok(args.len(), args.from(1).iter().map(read))?;
    if seconds.len() != 1 && seconds.len() != numkeys {
        let got = seconds.len();
        let expected = format!("one value for all keys or one for each, {numkeys}");
        return bad(format!("bad SINCE: expected {expected}, got {got}"));
    }
    Ok(seconds)
}

/// Parses `numkeys key [key ...] [SINCE seconds [seconds ...]]`. Calls `reply` with the members that the operation
/// covers, as one view per existing key, in the order of the keys. There is no view if one of the first `needed` keys
/// is missing: the result is then empty. Any other missing key counts as empty.
fn with_views(
    ctx: Ctx,
    args: Args<'_>,
    needed: usize,
    reply: impl FnOnce(&[View<'_>]) -> Result<(), Error>,
) -> Result<(), CommandError> {
    let Some(numkeys) = args::numkeys(args) else {
        let (given, most) = (args.get(1).bytes(), args.len() - 2);
        let got = quoted(given);
        return Err(CommandError::Argument(match parse_number(given) {
            None => format!("numkeys is missing: expected the number of keys before the keys, got {got}"),
            Some(_) => format!("bad numkeys: expected from 1 to {most}, the arguments behind it, got {got}"),
        }));
    };
    let (names, seconds) = (args.from(2).first(numkeys), since(args.from(2 + numkeys), numkeys)?);
    let keys = open_all::<Counter>(ctx, names)?;
    let counters = try_collect_ok(numkeys, keys.iter().map(value::<Counter>))?;
    let now = time_of(ctx, counters.iter().copied().flatten());
    let views = counters.iter().enumerate().filter_map(|(index, counter)| {
        let seconds = seconds.get(if seconds.len() == 1 { 0 } else { index }).copied().flatten();
        counter.map(|counter| view(counter, names.get(index), seconds, now, "expected - for all of it"))
    });
    let views = try_collect_ok(numkeys, views)?;
    Ok(reply(if counters.iter().take(needed).all(Option::is_some) { &views } else { &[] })?)
}

/// A view of the members that were added to `counter` in the last `seconds`; of all members for `None`. `instead` says
/// what would be right without a window.
pub(super) fn view<'c>(
    counter: &'c Counter,
    key: Arg<'_>,
    seconds: Option<u64>,
    now: Time,
    instead: &str,
) -> Result<View<'c>, CommandError> {
    check_since(counter, key, seconds, instead)?;
    Ok(seconds.map_or_else(|| Ok(counter.at(now)), |seconds| counter.since(seconds, now))?)
}

/// How many keys of a set operation, from the first on, must exist: otherwise the result is empty.
pub const NONE: usize = 0;
pub const FIRST: usize = 1;
pub const EVERY: usize = usize::MAX;

/// A command that replies with the number of members of a union, difference or intersection, computed by `ask`, and its
/// standard error: `LC.UNIONCARD numkeys key [key ...] [SINCE seconds [seconds ...]]`
pub fn card(
    needed: usize,
    ask: impl FnOnce(&[View<'_>]) -> Result<Estimated, Error>,
) -> impl FnOnce(Ctx, Args<'_>) -> Result<(), CommandError> {
    move |ctx, args| {
        with_views(ctx, args, needed, |views| {
            let estimated = ask(views)?;
            ctx.reply_array(2);
            ctx.reply_integer(estimated.count() as i64);
            ctx.reply_double(estimated.standard_error);
            Ok(())
        })
    }
}

/// A command that replies with the members of a union, difference or intersection of exact counters, computed by `ask`:
/// `LC.UNION numkeys key [key ...] [SINCE seconds [seconds ...]]`
pub fn members(
    needed: usize,
    ask: impl for<'v> FnOnce(&[View<'v>]) -> Result<Vec<Member<'v>>, Error>,
) -> impl FnOnce(Ctx, Args<'_>) -> Result<(), CommandError> {
    move |ctx, args| {
        with_views(ctx, args, needed, |views| {
            let members = ask(views)?;
            reply_members(ctx, members.len(), members.into_iter());
            Ok(())
        })
    }
}

/// Replies with a list of `len` members.
pub(super) fn reply_members<'m>(ctx: Ctx, len: usize, members: impl Iterator<Item = Member<'m>>) {
    ctx.reply_array(len);
    let mut buffer = [0; 64];
    // A loop with `for` would call the iterator for each member.
    members.for_each(|member| ctx.reply_bulk(member.text_in(&mut buffer)));
}

/// Replies with members and the seconds since the slice of their last use began: pairs in RESP3, a flat list in RESP2.
pub(super) fn reply_members_with_ages(ctx: Ctx, members: &[(Member<'_>, u64)]) {
    let is_resp3 = ctx.is_resp3();
    ctx.reply_array(if is_resp3 { members.len() } else { 2 * members.len() });
    let mut buffer = [0; 64];
    for (member, seconds) in members {
        if is_resp3 {
            ctx.reply_array(2);
        }
        ctx.reply_bulk(member.text_in(&mut buffer));
        ctx.reply_integer(i64::try_from(*seconds).unwrap_or(i64::MAX));
    }
}

/// What is right for a counter without a window instead of `LC.COUNTSINCE` or `LC.HISTORY`.
const USE_COUNT: &str = "LC.COUNT counts its members";

/// Replies with the number of distinct members that were added in the last `seconds`: `LC.COUNTSINCE key seconds`
pub fn countsince(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let seconds = args::seconds(args.get(2))?;
    let key = ctx.open(args.get(1), Mode::Read)?;
    let count = match value::<Counter>(&key)? {
        None => 0,
        Some(counter) => view(counter, args.get(1), Some(seconds), time_of(ctx, [counter]), USE_COUNT)?.count(),
    };
    ctx.reply_integer(count as i64);
    Ok(())
}

/// Runs `LC.HISTORY key`, with one row per slice: the start of the slice, the number of distinct members added since
/// then, and its standard error.
pub fn history(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let key = ctx.open(args.get(1), Mode::Read)?;
    let counter = value::<Counter>(&key)?.ok_or(CommandError::NotFound)?;
    if counter.window().is_none() {
        return Err(no_window(counter, args.get(1), USE_COUNT));
    }
    let rows = counter.history(time_of(ctx, [counter]))?;
    ctx.reply_array(rows.len());
    for (start, estimated) in rows {
        ctx.reply_array(3);
        ctx.reply_integer(start);
        ctx.reply_integer(estimated.count() as i64);
        ctx.reply_double(estimated.standard_error);
    }
    Ok(())
}
