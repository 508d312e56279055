//! LC.*: counters of distinct members.

use super::creation::counters::{Created, Creation, WORDS};
use super::dump;
use super::effects::{Added, Admitted, announce, announce_admitted};
use super::keyspace::{
    admission, create, create_expiring, list, open, open_all, open_merge, refusal_of, replace, value, value_mut, values,
};
use super::windows::{self, Announced, Merged, announce_merged, announce_move, time_of, time_of_change};
use crate::args::{self, Opt, Options};
use crate::limits::ServerLimit;
use crate::refusal::{Noun, Refusal, quoted};
use crate::reply::{self, Field, InfoLine};
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Args, Ctx, Key, Mode};
use crate::types::before::Before;
use crate::types::names::{Prefix, Verb};
use rollcall_core::admission::Admission;
use rollcall_core::counting::{
    self, Counter, Estimated, Present, Touch, count_union, estimate_intersection, estimate_union,
};
use rollcall_core::error::{Error, Parameter};
use rollcall_core::unstable::counting::Shaped;
use rollcall_core::window::{Merging, Move, Window};

const OF_RESERVE: &[Opt] = &[Opt::Error, Opt::Exact, Opt::Bytes, Opt::Precision, Opt::Tail, Opt::Seed];
const RESERVE_OPTIONS: [Opt; 13] = args::joined(&[OF_RESERVE, windows::OF_COUNTERS, args::EXPIRY]);
const INSERT_OPTIONS: [Opt; 16] = args::joined(&[&[Opt::Capacity, Opt::NoCreate, Opt::Items], &RESERVE_OPTIONS]);
const ADMIT_OPTIONS: [Opt; 19] = args::joined(&[&[Opt::Limit, Opt::All, Opt::DryRun], &INSERT_OPTIONS]);
/// Those of commands that must be obeyed.
const OBEYED_RESERVE_OPTIONS: [Opt; 14] = args::joined(&[&RESERVE_OPTIONS, &[Opt::Slice]]);
const OBEYED_INSERT_OPTIONS: [Opt; 17] = args::joined(&[&INSERT_OPTIONS, &[Opt::Slice]]);

fn core_error(error: Error) -> Refusal {
    refusal_of::<Counter>(error)
}

/// `LC.RESERVE key capacity [ERROR rate] [EXACT limit] [BYTES bytes] [PRECISION p TAIL c] [SEED n] [WINDOW seconds
/// [MANUAL] [SLICES g]] [EX s | PX ms | EXAT s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    // The capacity is read first: where it is missing, an option stands in its place, and the error should say so.
    let capacity = Some(args::count(Noun::Counter, Parameter::Capacity, args.get(2))?);
    let allowed: &[Opt] = if must_obey(ctx) { &OBEYED_RESERVE_OPTIONS } else { &RESERVE_OPTIONS };
    let options = Options { capacity, ..args::options(Noun::Counter, args, 3, allowed)? };
    let creation = Creation::of(ctx, &options)?;
    let mut key = open::<Counter>(ctx, args.get(1), Mode::Write)?;
    if !key.is_missing() {
        return Err(Refusal::Exists);
    }
    let counter = creation.build()?;
    let created = Created::new(&counter, &creation);
    create_expiring(&mut key, counter, creation.expiry);
    created.announce_reserved(ctx, key.close());
    reply::ok(ctx);
    Ok(())
}

/// `LC.ADD key item [item ...]`
pub fn add(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    insert(ctx, Verb::Add, args, args.from(2), Some(Creation::defaults()), true)
}

/// `LC.INSERT key [CAPACITY n] [NOCREATE] [options of LC.RESERVE] ITEMS item [item ...]`
pub fn insert_command(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let allowed: &[Opt] = if must_obey(ctx) { &OBEYED_INSERT_OPTIONS } else { &INSERT_OPTIONS };
    let options = args::options(Noun::Counter, args, 2, allowed)?;
    let items = options.items.ok_or(Refusal::Arity)?;
    let creation = Creation::of(ctx, &options)?;
    let create = if options.no_create { None } else { Some(creation) };
    insert(ctx, Verb::Insert, args, args.from(items), create, options.are_plain())
}

/// Adds items and replies with how many were new; creates a missing key with `create_with`, if given. If an item is
/// refused for its size, the items before it stay added, and the reply is the error. `command` are all arguments of the
/// running `verb`. `is_plain`: its options [are](args::Options::are_plain).
fn insert(
    ctx: Ctx,
    verb: Verb,
    command: Args<'_>,
    items: Args<'_>,
    create_with: Option<Creation>,
    is_plain: bool,
) -> Result<(), Refusal> {
    let name = command.get(1);
    let limit = ServerLimit::new(ctx);
    let mut key = ctx.open(name, Mode::Write);
    let (mut noted, mut moved) = (Noted::default(), Announced::NOTHING);
    let (created, outcome) = match value_mut::<Counter>(&mut key)? {
        Some(counter) => {
            let before = Before::adding(counter, items.len());
            if let Some(now) = time_of_change(ctx, counter.asks_clock()) {
                moved = announce_move::<Counter>(ctx, name, counter.advance_before_adding(items.bytes(), now));
            }
            let outcome = noted.add(counter, items, &limit);
            before.added(counter, noted.new as u64);
            (None, outcome)
        }
        None => {
            let creation = create_with.ok_or(Refusal::NotFound)?;
            let mut counter = creation.build()?;
            let (created, before) = (Created::new(&counter, &creation), Before::creating(&counter));
            let outcome = noted.add(&mut counter, items, &limit);
            before.changed(&counter);
            // The first item was refused, so the key stays missing.
            if let (0, Err(error)) = (noted.handled, &outcome) {
                return Err(core_error(error.clone()));
            }
            create_expiring(&mut key, counter, creation.expiry);
            (Some(created), outcome)
        }
    };
    let Noted { handled, new, changed } = noted;
    let (key, prefix) = (key.close(), Prefix::Lc);
    moved.notify(ctx, key);
    announce(ctx, &Added { prefix, key, verb, command, items, created, handled, changed, is_plain }, &WORDS);
    outcome.map_err(core_error)?;
    ctx.reply_integer(new as i64);
    Ok(())
}

/// What became of items.
#[derive(Default)]
struct Noted {
    handled: usize,
    new: usize,
    /// Whether the counter did: one with a window also notes that a member was seen again.
    changed: bool,
}

impl Noted {
    /// Adds items.
    fn add(&mut self, counter: &mut Counter, items: Args<'_>, limit: &ServerLimit) -> Result<(), Error> {
        let mut count = |is_new: bool, changes: bool| {
            self.handled += 1;
            self.new += usize::from(is_new);
            self.changed |= changes;
        };
        if counter.window().is_some() {
            return counter.touch_all(items.bytes(), limit, |touch| count(touch == Touch::New, touch != Touch::Same));
        }
        match items.len() {
            1 => counter.add(items.get(0).bytes(), limit).map(|is_new| count(is_new, is_new)),
            _ => counter.add_all(items.bytes(), limit, |is_new| count(is_new, is_new)),
        }
    }
}

/// `LC.ADMIT key LIMIT n [ALL] [DRYRUN] [options of LC.INSERT] ITEMS item [item ...]`
pub fn admit(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let options = args::options(Noun::Counter, args, 2, &ADMIT_OPTIONS)?;
    let creation = Creation::of(ctx, &options)?;
    let (terms, items) = admission(args, &options)?;
    let limit = ServerLimit::new(ctx);
    let mut key = ctx.open(args.get(1), Mode::Write);
    let (told, created, renewed, moved) = match value_mut::<Counter>(&mut key)? {
        Some(counter) => {
            let now = time_of(ctx, counter.asks_clock());
            let before = Before::any(counter);
            let due = counter.due(now);
            let admitted = counter.admit_at(items.bytes(), terms, now, &limit).map_err(core_error);
            before.changed(counter);
            let (told, has_changed) = admitted?;
            let moved = announce_move::<Counter>(ctx, args.get(1), if has_changed { due } else { Move::Stay });
            (told, None, has_changed && counter.window().is_some(), moved)
        }
        None if options.no_create => return Err(Refusal::NotFound),
        None => {
            let mut counter = creation.build()?;
            let before = Before::creating(&counter);
            let told = counter.admit(items.bytes(), terms, &limit).map_err(core_error)?;
            before.changed(&counter);
            let created = Created::new(&counter, &creation);
            let creates = !terms.dry_run && told.contains(&Admission::Admitted);
            if creates {
                create_expiring(&mut key, counter, creation.expiry);
            }
            (told, creates.then_some(created), false, Announced::NOTHING)
        }
    };
    let key = key.close();
    moved.notify(ctx, key);
    if !terms.dry_run {
        announce_admitted(ctx, &Admitted { prefix: Prefix::Lc, key, items, told: &told, renewed, created }, &WORDS);
    }
    reply::admissions(ctx, &told);
    Ok(())
}

/// `LC.COUNT key [key ...]`
pub fn count(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    if args.len() == 2 {
        let key = ctx.open(args.get(1), Mode::Read);
        let count = match value::<Counter>(&key)? {
            None => 0,
            Some(counter) if counter.window().is_none() => counter.count(),
            Some(counter) => counter.count_at(time_of(ctx, counter.asks_clock())).map_err(core_error)?,
        };
        ctx.reply_integer(count as i64);
        return Ok(());
    }
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let count = as_of_now(ctx, &values::<Counter>(&keys)?, count_union)?;
    ctx.reply_integer(count as i64);
    Ok(())
}

/// Asks about counters as they are now: of those with windows, what is alive.
fn as_of_now<R>(
    ctx: Ctx,
    counters: &[&Counter],
    ask: impl FnOnce(&[&Counter]) -> Result<R, Error>,
) -> Result<R, Refusal> {
    if counters.iter().all(|counter| counter.window().is_none()) {
        return ask(counters).map_err(core_error);
    }
    let asks_clock = counters.iter().any(|counter| counter.asks_clock());
    ask_those(&counting::at(counters, time_of(ctx, asks_clock)).map_err(core_error)?, ask)
}

/// Asks about counters of which only a part may be asked.
fn ask_those<R>(parts: &[Present<'_>], ask: impl FnOnce(&[&Counter]) -> Result<R, Error>) -> Result<R, Refusal> {
    let mut all = list::<Counter, _>(parts.len())?;
    all.extend(parts.iter().map(|part| &**part));
    ask(&all).map_err(core_error)
}

/// The seconds that `LC.COUNTSINCE` and the like go back: as far as the window of each counter, at most.
fn seconds_back(arg: Arg<'_>, counters: &[&Counter]) -> Result<u64, Refusal> {
    let seconds = args::count(Noun::Counter, Parameter::Seconds, arg)?;
    let mut most = Window::MAX_SECONDS;
    for counter in counters {
        most = most.min(counter.window().ok_or_else(windows::no_window::<Counter>)?.seconds());
    }
    if (1..=most).contains(&seconds) {
        return Ok(seconds);
    }
    Err(Refusal::Argument(format!("bad seconds: expected from 1 to {most}, the length of the window, got {seconds}")))
}

/// `LC.COUNTSINCE seconds key [key ...]`
pub fn countsince(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(2))?;
    let counters = values::<Counter>(&keys)?;
    let seconds = seconds_back(args.get(1), &counters)?;
    let now = time_of(ctx, counters.iter().any(|counter| counter.asks_clock()));
    let count = match counters[..] {
        [counter] => counter.count_since(seconds, now).map_err(core_error)?.count(),
        _ => ask_those(&counting::since(&counters, seconds, now).map_err(core_error)?, count_union)?,
    };
    ctx.reply_integer(count as i64);
    Ok(())
}

/// `LC.HISTORY key`
pub fn history(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let counter = value::<Counter>(&key)?.ok_or(Refusal::NotFound)?;
    if counter.window().is_none() {
        return Err(windows::no_window::<Counter>());
    }
    let rows = counter.history(time_of(ctx, counter.asks_clock())).map_err(core_error)?;
    ctx.reply_array(rows.len());
    for (start, count) in rows {
        ctx.reply_array(2);
        ctx.reply_integer(start);
        ctx.reply_integer(i64::try_from(count).unwrap_or(i64::MAX));
    }
    Ok(())
}

/// `LC.ADVANCE key slice | CLOCK`
pub fn advance(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    windows::advance::<Counter>(ctx, args)
}

/// `LC.MERGE destination source [source ...]`
pub fn merge(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let limit = ServerLimit::new(ctx);
    let (mut destination, source_keys) = open_merge::<Counter>(ctx, args)?;
    let sources = values::<Counter>(&source_keys)?;
    let mut reserved = None;
    let (changed, merging) = match (value_mut::<Counter>(&mut destination)?, sources.first()) {
        (Some(counter), _) => {
            let before = Before::any(counter);
            let united = if must_obey(ctx) {
                counter.merge(&sources, &limit).map(|changed| (changed, Merging::STAYS))
            } else {
                counter.merge_at(&sources, time_of(ctx, counter.asks_clock()), &limit)
            };
            before.changed(counter);
            united.map_err(core_error)?
        }
        (None, Some(first)) => {
            let merging = merging_into_copy(ctx, first, &sources)?;
            let mut union = Counter::union(first, &sources[1..], &limit).map_err(core_error)?;
            windows::rebase(&mut union, merging.after);
            create(&mut destination, union);
            (true, merging)
        }
        (None, None) => {
            let creation = Creation::defaults();
            let counter = creation.build()?;
            reserved = Some(Created::new(&counter, &creation));
            create(&mut destination, counter);
            (false, Merging::STAYS)
        }
    };
    let key = destination.close_with(source_keys);
    if let Some(created) = reserved {
        created.announce_reserved(ctx, key);
    }
    let merged = Merged { changed: changed.then_some(Prefix::Lc), merging };
    announce_merged::<Counter>(ctx, args, key, &merged);
    reply::ok(ctx);
    Ok(())
}

/// What a merge into a copy of the first of these counters does to its slices.
fn merging_into_copy(ctx: Ctx, first: &Counter, sources: &[&Counter]) -> Result<Merging, Refusal> {
    if must_obey(ctx) {
        return Ok(Merging::STAYS);
    }
    first.merging(sources, time_of(ctx, first.asks_clock())).map_err(core_error)
}

/// A counter and then others.
fn with_first<'a>(first: &'a Counter, others: &[&'a Counter]) -> Result<Vec<&'a Counter>, Refusal> {
    let mut all = list::<Counter, _>(others.len() + 1)?;
    all.push(first);
    all.extend_from_slice(others);
    Ok(all)
}

/// `LC.DIFFCOUNT key other [other ...]`
pub fn diffcount(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let others = values::<Counter>(&keys[1..])?;
    let difference = match value::<Counter>(&keys[0])? {
        None => NOTHING,
        Some(counter) => as_of_now(ctx, &with_first(counter, &others)?, |all| match all {
            [counter, others @ ..] => counter.difference(others),
            [] => Ok(NOTHING),
        })?,
    };
    reply_estimated(ctx, &difference);
    Ok(())
}

/// Of missing keys.
const NOTHING: Estimated = Estimated { estimate: 0.0, standard_error: 0.0 };

fn reply_estimated(ctx: Ctx, estimated: &Estimated) {
    ctx.reply_array(2);
    ctx.reply_integer(estimated.count() as i64);
    ctx.reply_double(estimated.standard_error);
}

/// `LC.INTERCOUNT key key [key ...]`
pub fn intercount(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let counters = values::<Counter>(&keys)?;
    let intersection = match keys.iter().any(Key::is_missing) {
        true => NOTHING,
        false => as_of_now(ctx, &counters, estimate_intersection)?,
    };
    reply_estimated(ctx, &intersection);
    Ok(())
}

/// `LC.ESTIMATE key [key ...]`
pub fn estimate(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let union = as_of_now(ctx, &values::<Counter>(&keys)?, estimate_union)?;
    reply_estimated(ctx, &union);
    Ok(())
}

/// `LC.EXISTS key item`
pub fn exists(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let found = match value::<Counter>(&key)? {
        Some(counter) => counter.contains_since(args.get(2).bytes(), oldest_alive(ctx, counter)).map_err(core_error)?,
        None => false,
    };
    ctx.reply_bool(found);
    Ok(())
}

/// The oldest slice that is alive now; 0 without a window.
fn oldest_alive(ctx: Ctx, counter: &Counter) -> i128 {
    counter.oldest_alive(time_of(ctx, counter.asks_clock()))
}

/// `LC.MEXISTS key item [item ...]`
pub fn mexists(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let items = args.from(2);
    let key = ctx.open(args.get(1), Mode::Read);
    let counter = value::<Counter>(&key)?;
    let oldest = counter.map_or(0, |counter| oldest_alive(ctx, counter));
    if let Some(counter) = counter {
        // An estimate answers for no item, so the error comes instead of the array.
        counter.contains_since(items.get(0).bytes(), oldest).map_err(core_error)?;
    }
    // Of an estimate that is asked all the same nobody is alive.
    let counter = counter.filter(|counter| counter.is_exact());
    ctx.reply_array(items.len());
    for item in items.bytes() {
        ctx.reply_bool(counter.is_some_and(|counter| counter.contains_since(item, oldest) == Ok(true)));
    }
    Ok(())
}

/// `LC.DIFF key other [other ...]`
pub fn diff(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let others = values::<Counter>(&keys[1..])?;
    let Some(counter) = value::<Counter>(&keys[0])? else {
        ctx.reply_array(0);
        return Ok(());
    };
    as_of_now(ctx, &with_first(counter, &others)?, |all| {
        let [counter, others @ ..] = all else { return Ok(()) };
        reply_members(ctx, &counter.members_beyond(others)?);
        Ok(())
    })
}

fn reply_members(ctx: Ctx, members: &[&[u8]]) {
    ctx.reply_array(members.len());
    members.iter().for_each(|member| ctx.reply_bulk(member));
}

/// `LC.CLEAR key`
pub fn clear(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let mut key = ctx.open(args.get(1), Mode::Write);
    let counter = value_mut::<Counter>(&mut key)?.ok_or(Refusal::NotFound)?;
    if !counter.is_empty() {
        let empty = counter.empty_twin().map_err(core_error)?;
        replace(counter, empty);
        ctx.replicate_under(Prefix::Lc.name(Verb::Clear), args);
        ctx.changed(key.close(), Prefix::Lc.event(Verb::Clear));
    }
    reply::ok(ctx);
    Ok(())
}

/// `LC.MEMBERS key [SINCE seconds]`
pub fn members(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let back = match args.len() {
        2 => None,
        4 if args.get(2).bytes().eq_ignore_ascii_case(b"SINCE") => Some(args.get(3)),
        4 => {
            let got = quoted(args.get(2).bytes());
            return Err(Refusal::Argument(format!("unknown option {got}: expected SINCE and seconds")));
        }
        _ => return Err(Refusal::Arity),
    };
    let key = ctx.open(args.get(1), Mode::Read);
    let Some(counter) = value::<Counter>(&key)? else {
        ctx.reply_array(0);
        return Ok(());
    };
    if counter.window().is_none() && back.is_none() {
        let members = counter.members().map_err(core_error)?;
        ctx.reply_array(counter.count() as usize);
        members.for_each(|member| ctx.reply_bulk(member));
        return Ok(());
    }
    let now = time_of(ctx, counter.asks_clock());
    let since = match back {
        None => counter.oldest_alive(now),
        Some(seconds) => counter.since(seconds_back(seconds, &[counter])?, now),
    };
    let mut alive = list::<Counter, _>(counter.count() as usize)?;
    alive.extend(counter.members_since(since).map_err(core_error)?);
    reply_members(ctx, &alive);
    Ok(())
}

fn info_lines(counter: &Counter, now: u64) -> Result<[InfoLine; 17], Error> {
    let (params, layout) = (counter.params(), counter.layout());
    let present = counting::at(&[counter], now)?;
    let present = present.first().map_or(counter, |present| present);
    let [window, slices, slice, pace] = windows::info_lines(counter, now);
    Ok([
        ("Capacity", "CAPACITY", Field::Integer(params.capacity)),
        ("Error rate", "ERROR", Field::Double(params.error_rate)),
        ("Exact limit", "EXACT", Field::Integer(u64::from(params.exact_limit))),
        ("Exact bytes", "BYTES", Field::Integer(u64::from(params.exact_bytes))),
        ("Mode", "MODE", Field::Text(if counter.is_exact() { "exact" } else { "estimate" })),
        ("Representation", "REPRESENTATION", Field::Text(counter.representation().name())),
        ("Size", "SIZE", Field::Integer(counter.size_bytes())),
        ("Count", "COUNT", Field::Integer(present.count())),
        ("Standard error", "STDERR", Field::Double(present.standard_error())),
        ("Bits", "BITS", Field::Integer(counter.num_bits())),
        ("Bits set", "BITSSET", Field::Integer(present.set_bits())),
        ("Precision", "PRECISION", Field::Integer(u64::from(layout.precision()))),
        ("Tail bits", "TAIL", Field::Integer(u64::from(layout.tail_bits()))),
        window,
        slices,
        slice,
        pace,
    ])
}

/// `LC.INFO key [field]`
pub fn info(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    if args.len() > 3 {
        return Err(Refusal::Arity);
    }
    let key = ctx.open(args.get(1), Mode::Read);
    let counter = value::<Counter>(&key)?.ok_or(Refusal::NotFound)?;
    let lines = info_lines(counter, time_of(ctx, counter.asks_clock())).map_err(core_error)?;
    if args.len() == 2 {
        reply::info_all(ctx, lines.iter());
        return Ok(());
    }
    reply::info_field(ctx, &lines, args.get(2).bytes())
}

/// `LC.SCANDUMP key iterator`
pub fn scandump(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    dump::scandump::<Counter>(ctx, args)
}

/// `LC.LOADCHUNK key iterator data`
pub fn loadchunk(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    dump::loadchunk::<Counter>(ctx, args)
}
