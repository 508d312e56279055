//! BF.* and RF.*: Bloom filters.

use rollcall_core::admission::Admission;
use rollcall_core::bloom::{BitLayout, BloomFilter, Moved, Params, Present, SubFilterInfo};
use rollcall_core::error::Error;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Merging;

use super::creation::filters::{Creation, WORDS};
use super::effects::{Added, Admitted, announce, announce_admitted};
use super::keyspace::{
    admission, check_copy, create, create_expiring, open, open_merge, refusal_of, replace, value, value_mut, values,
};
use super::windows::{self, Announced, Merged, announce_merged, announce_move, time_of, time_of_change};
use super::{dump, obeyed};
use crate::args::{self, Opt};
use crate::limits::ServerLimit;
use crate::number::as_c_prints;
use crate::refusal::{Noun, Refusal};
use crate::reply::{self, Field, InfoLine};
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Args, Ctx, Key, Mode};
use crate::types::before::Before;
use crate::types::family::Family;
use crate::types::names::Verb;

const OF_INSERT: &[Opt] =
    &[Opt::Capacity, Opt::Error, Opt::Expansion, Opt::NoCreate, Opt::NonScaling, Opt::Seed, Opt::Layout, Opt::Items];
const INSERT_OPTIONS: [Opt; 17] = args::joined(&[OF_INSERT, windows::OF_FILTERS, args::EXPIRY]);
/// The options of a `BF.INSERT` that must be obeyed. `EX` in one is RedisBloom's, and short for `EXPANSION`: ours is
/// never sent.
const OBEYED_INSERT_OPTIONS: [Opt; 14] = args::joined(&[OF_INSERT, windows::OF_FILTERS, &[Opt::Slice]]);
const ADMIT_OPTIONS: [Opt; 20] = args::joined(&[&[Opt::Limit, Opt::All, Opt::DryRun], &INSERT_OPTIONS]);

fn core_error(error: Error) -> Refusal {
    refusal_of::<BloomFilter>(error)
}

/// The filter as it answers now.
fn present<'a>(ctx: Ctx, filter: &'a BloomFilter) -> Present<'a> {
    filter.at(time_of(ctx, filter.asks_clock()))
}

/// Announces the move that a filter has made before it changes, and frees what it forgot by that.
fn announce_moved(ctx: Ctx, key: Arg<'_>, moved: Moved) -> Announced {
    windows::dispose(moved.forgotten);
    announce_move::<BloomFilter>(ctx, key, moved.made)
}

/// Moves a filter that goes by the clock on, if adding these items changes anything. One that the command has created
/// has the slice of the time at which it did.
fn advance_before_adding(
    ctx: Ctx,
    key: Arg<'_>,
    filter: &mut BloomFilter,
    created: Option<&Creation>,
    items: Args<'_>,
) -> Announced {
    match time_of_change(ctx, created.is_none() && filter.asks_clock()) {
        Some(now) => announce_moved(ctx, key, filter.advance_before_adding(items.bytes(), now)),
        None => Announced::NOTHING,
    }
}

/// How often items were put into a filter that notes known ones as seen now, and its newest slice; `None` of others,
/// where the replies tell whether it has changed. In a filter of the last items, known ones may begin a slice, and as
/// many are forgotten then.
fn renewals(filter: &BloomFilter) -> Option<(u64, Option<u64>)> {
    filter.sliding().filter(|sliding| sliding.refresh).map(|_| (filter.additions(), filter.newest_slice()))
}

/// `BF.RESERVE key error_rate capacity [EXPANSION n] [NONSCALING] [SEED n] [LAYOUT lines|classic] [WINDOW seconds
/// [MANUAL] [SLICES g] [REFRESH] | LAST [SLICES g | REFRESH]] [EX s | PX ms | EXAT s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let creation = if must_obey(ctx) {
        obeyed::reservation(ctx, args)
    } else {
        Creation::of_reservation(ctx, args, Creation::of)
    }?;
    let mut key = open::<BloomFilter>(ctx, args.get(1), Mode::Write)?;
    if !key.is_missing() {
        return Err(Refusal::Exists);
    }
    create_expiring(&mut key, creation.build(&ServerLimit::new(ctx)).map_err(core_error)?, creation.expiry);
    creation.announce_reserved(ctx, key.close());
    reply::ok(ctx);
    Ok(())
}

/// `BF.ADD key item`
pub fn add(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let (name, limit) = (args.get(1), ServerLimit::new(ctx));
    let mut key = ctx.open(name, Mode::Write);
    let (filter, created) = match open_or_create(&mut key, Some(|| Creation::defaults(ctx, args)), &limit) {
        Err(Refusal::StillLoading { .. }) if must_obey(ctx) => (obeyed::settled(&mut key)?, None),
        opened => opened?,
    };
    let before = Before::adding(filter, 1);
    let moved = advance_before_adding(ctx, name, filter, created.as_ref(), args.from(2));
    let renewed = renewals(filter);
    let outcome = filter.add(args.get(2).bytes(), &limit);
    let (handled, is_new) = outcome.as_ref().map_or((0, false), |&is_new| (1, is_new));
    before.added(filter, is_new.into());
    let changed = is_new || renewals(filter) != renewed;
    let (prefix, items) = (filter.prefix(), args.from(2));
    let key = key.close();
    moved.notify(ctx, key);
    let added = Added { prefix, key, verb: Verb::Add, command: args, items, created, handled, changed, is_plain: true };
    announce(ctx, &added, &WORDS);
    if let Some(refusal) = outcome.err().and_then(|error| obeyed::told(ctx, error)) {
        return Err(refusal);
    }
    ctx.reply_bool(is_new);
    Ok(())
}

/// `BF.MADD key item [item ...]`
pub fn madd(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    insert(ctx, Verb::AddAll, args, args.from(2), Some(|| Creation::defaults(ctx, args)), true)
}

/// `BF.INSERT key [CAPACITY n] [ERROR rate] [NOCREATE] [options of BF.RESERVE] ITEMS item [item ...]`
pub fn insert_command(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let allowed: &[Opt] = if must_obey(ctx) { &OBEYED_INSERT_OPTIONS } else { &INSERT_OPTIONS };
    let read = args::options(Noun::Filter, args, 2, allowed)
        .and_then(|options| Ok((Creation::of(ctx, args, &options)?, options)))
        .map_err(Refusal::of_insert);
    let (creation, options) = match read {
        // RedisBloom's options are read only where ours do not fit: an option that both have means the same in both.
        Err(_) if must_obey(ctx) => obeyed::insertion(ctx, args, allowed)?,
        read => read?,
    };
    let items = options.items.ok_or(Refusal::Arity)?;
    let create_with = (!options.no_create).then_some(|| creation);
    insert(ctx, Verb::Insert, args, args.from(items), create_with, options.are_plain())
}

/// The filter of a key. If the key is missing, `create_with` creates the filter, and the creation is returned too.
fn open_or_create<'k>(
    key: &'k mut Key<'_>,
    create_with: Option<impl FnOnce() -> Creation>,
    limit: &ServerLimit,
) -> Result<(&'k mut BloomFilter, Option<Creation>), Refusal> {
    let mut created = None;
    if key.is_missing() {
        let creation = create_with.ok_or(Refusal::NotFound)?();
        let mut filter = creation.build(limit).map_err(core_error)?;
        // Without memory for an item no key is made.
        filter.reserve_first(limit).map_err(core_error)?;
        create_expiring(key, filter, creation.expiry);
        created = Some(creation);
    }
    let filter = value_mut(key)?.ok_or(Refusal::NotFound)?;
    Ok((filter, created))
}

/// Adds items, and creates a missing key with `create_with`, if given. The reply has a boolean for each item handled,
/// then the error of the first item refused, if any. `command` are all arguments of the running `verb`. `is_plain`: its
/// options [are](args::Options::are_plain).
fn insert(
    ctx: Ctx,
    verb: Verb,
    command: Args<'_>,
    items: Args<'_>,
    create_with: Option<impl FnOnce() -> Creation>,
    is_plain: bool,
) -> Result<(), Refusal> {
    let name = command.get(1);
    let limit = ServerLimit::new(ctx);
    let mut key = ctx.open(name, Mode::Write);
    let (filter, created) = match open_or_create(&mut key, create_with, &limit) {
        Err(Refusal::StillLoading { .. }) if must_obey(ctx) => (obeyed::settled(&mut key)?, None),
        opened => opened?,
    };
    let before = Before::adding(filter, items.len());
    let moved = advance_before_adding(ctx, name, filter, created.as_ref(), items);
    let (mut handled, mut new) = (0, 0);
    let renewed = renewals(filter);
    if filter.room() >= items.len() as u64 {
        // No item can be refused, so the length of the reply is known, and each answer is written at once.
        ctx.reply_array(items.len());
        let outcome = filter.add_all(items.bytes(), &limit, |is_new| {
            (handled, new) = (handled + 1, new + u64::from(is_new));
            ctx.reply_bool(is_new);
        });
        // If an item is refused all the same, errors fill the array to its length: otherwise the client would wait for
        // more.
        if let Err(error) = outcome {
            let refusal = core_error(error);
            reply::count(&refusal);
            let text = refusal.text();
            (handled..items.len()).for_each(|_| ctx.reply_error(&text));
        }
    } else {
        let mut results: Vec<bool> = Vec::new();
        let no_memory = |_| Error::OutOfMemory { needed_bytes: items.len() as u64 };
        let outcome = results
            .try_reserve_exact(items.len())
            .map_err(no_memory)
            .and_then(|()| filter.add_all(items.bytes(), &limit, |is_new| results.push(is_new)));
        let stopped = outcome.err().and_then(|error| obeyed::told(ctx, error));
        (handled, new) = (results.len(), results.iter().map(|&is_new| u64::from(is_new)).sum());
        reply::bools(ctx, &results, stopped);
    }
    before.added(filter, new);
    let changed = new > 0 || renewals(filter) != renewed;
    let prefix = filter.prefix();
    let key = key.close();
    moved.notify(ctx, key);
    announce(ctx, &Added { prefix, key, verb, command, items, created, handled, changed, is_plain }, &WORDS);
    Ok(())
}

/// `BF.ADMIT key LIMIT n [ALL] [DRYRUN] [options of BF.INSERT] ITEMS item [item ...]`
pub fn admit(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let options = args::options(Noun::Filter, args, 2, &ADMIT_OPTIONS).map_err(Refusal::of_insert)?;
    let creation = Creation::of(ctx, args, &options).map_err(Refusal::of_insert)?;
    let (terms, items) = admission(args, &options)?;
    let limit = ServerLimit::new(ctx);
    let mut key = ctx.open(args.get(1), Mode::Write);
    let (prefix, told, created, renewed, moved) = match value_mut::<BloomFilter>(&mut key)? {
        Some(filter) => {
            let now = time_of(ctx, filter.asks_clock());
            let before = Before::any(filter);
            let renewed = renewals(filter);
            let admitted = filter.admit_at(items.bytes(), terms, now, &limit).map_err(core_error);
            before.changed(filter);
            let (told, moved) = admitted?;
            let has_renewed = renewals(filter) != renewed;
            (filter.prefix(), told, None, has_renewed, announce_moved(ctx, args.get(1), moved))
        }
        None if options.no_create => return Err(Refusal::NotFound),
        None => {
            let mut filter = creation.build(&limit).map_err(core_error)?;
            let before = Before::creating(&filter);
            let told = filter.admit(items.bytes(), terms, &limit).map_err(core_error)?;
            before.changed(&filter);
            let creates = !terms.dry_run && told.contains(&Admission::Admitted);
            let prefix = filter.prefix();
            if creates {
                create_expiring(&mut key, filter, creation.expiry);
            }
            (prefix, told, creates.then_some(creation), false, Announced::NOTHING)
        }
    };
    let key = key.close();
    moved.notify(ctx, key);
    if !terms.dry_run {
        announce_admitted(ctx, &Admitted { prefix, key, items, told: &told, renewed, created }, &WORDS);
    }
    reply::admissions(ctx, &told);
    Ok(())
}

/// `BF.ADVANCE key slice | CLOCK`
pub fn advance(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    windows::advance::<BloomFilter>(ctx, args)
}

/// `BF.EXISTS key item`
pub fn exists(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let found = value::<BloomFilter>(&key)?.is_some_and(|filter| present(ctx, filter).may_contain(args.get(2).bytes()));
    ctx.reply_bool(found);
    Ok(())
}

/// `BF.MEXISTS key item [item ...]`
pub fn mexists(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let items = args.from(2);
    let key = ctx.open(args.get(1), Mode::Read);
    let filter = value::<BloomFilter>(&key)?;
    ctx.reply_array(items.len());
    match filter {
        Some(filter) => present(ctx, filter).may_contain_all(items.bytes(), |found| ctx.reply_bool(found)),
        None => items.iter().for_each(|_| ctx.reply_bool(false)),
    }
    Ok(())
}

/// `BF.CARD key`
pub fn card(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let items = value::<BloomFilter>(&key)?.map_or(0, |filter| present(ctx, filter).num_items());
    ctx.reply_integer(i64::try_from(items).unwrap_or(i64::MAX));
    Ok(())
}

/// Lines in the reply of a plain `BF.INFO`. Clients parse exactly five, so the others are replied only by name.
const INFO_LINES: usize = 5;

fn info_lines(filter: &BloomFilter, now: u64) -> [InfoLine; 14] {
    let (params, present) = (filter.params(), filter.at(now));
    let expansion = match params.expansion {
        0 => Field::Null,
        expansion => Field::Integer(u64::from(expansion)),
    };
    let [mut window, mut slices, slice, pace] = windows::info_lines(filter, now);
    let refresh = filter.sliding().map_or(Field::Null, |sliding| Field::Integer(sliding.refresh.into()));
    if let Some(of_last) = filter.sliding().filter(|sliding| sliding.window().is_none()) {
        let given = of_last.slices().map_or(Field::Null, |given| Field::Integer(given.into()));
        (window.2, slices.2) = (Field::Text("last"), given);
    }
    [
        ("Capacity", "CAPACITY", Field::Integer(filter.capacity())),
        ("Size", "SIZE", Field::Integer(filter.size_bytes())),
        ("Number of filters", "FILTERS", Field::Integer(filter.sub_filters().len() as u64)),
        ("Number of items inserted", "ITEMS", Field::Integer(present.num_items())),
        ("Expansion rate", "EXPANSION", expansion),
        ("Error rate", "ERROR", Field::Double(params.error_rate)),
        ("False positive rate", "FPR", Field::Double(present.false_positive_rate())),
        ("Fill ratio", "FILL", Field::Double(present.fill_ratio())),
        ("Layout", "LAYOUT", Field::Text(filter.layout().name())),
        window,
        slices,
        slice,
        pace,
        ("Refresh", "REFRESH", refresh),
    ]
}

/// `BF.INFO key [field]`
pub fn info(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    if args.len() > 3 {
        return Err(Refusal::Arity);
    }
    let key = ctx.open(args.get(1), Mode::Read);
    let filter = value::<BloomFilter>(&key)?.ok_or(Refusal::NotFound)?;
    let lines = info_lines(filter, time_of(ctx, filter.asks_clock()));
    if args.len() == 2 {
        reply::info_all(ctx, lines[..INFO_LINES].iter());
        return Ok(());
    }
    reply::info_field(ctx, &lines, args.get(2).bytes())
}

/// `BF.MERGE destination source [source ...]`
pub fn merge(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let limit = ServerLimit::new(ctx);
    let (mut destination, source_keys) = open_merge::<BloomFilter>(ctx, args)?;
    let sources = values::<BloomFilter>(&source_keys)?;
    let mut reserved = None;
    let merged = match (value_mut::<BloomFilter>(&mut destination)?, sources.split_first()) {
        (Some(filter), _) => {
            let before = Before::any(filter);
            let united = if must_obey(ctx) {
                let united = filter.merge_forgetting(&sources, &limit);
                united.map(|(changed, forgotten)| (changed, Merging::STAYS, forgotten))
            } else {
                filter.merge_at(&sources, time_of(ctx, filter.asks_clock()), &limit)
            };
            before.changed(filter);
            let (changed, merging, forgotten) = united.map_err(core_error)?;
            windows::dispose(forgotten);
            Merged { changed: changed.then(|| filter.prefix()), merging }
        }
        (None, Some((first, rest))) => {
            let merging = merging_into_copy(ctx, first, &sources)?;
            check_copy(*first, &limit)?;
            let mut filter = first.try_clone().map_err(core_error)?;
            filter.merge(rest, &limit).map_err(core_error)?;
            windows::rebase(&mut filter, merging.after);
            let prefix = filter.prefix();
            create(&mut destination, filter);
            Merged { changed: Some(prefix), merging }
        }
        (None, None) => {
            let creation = Creation::defaults(ctx, args);
            create(&mut destination, creation.build(&limit).map_err(core_error)?);
            reserved = Some(creation);
            Merged { changed: None, merging: Merging::STAYS }
        }
    };
    let key = destination.close_with(source_keys);
    if let Some(creation) = reserved {
        creation.announce_reserved(ctx, key);
    }
    announce_merged::<BloomFilter>(ctx, args, key, &merged);
    reply::ok(ctx);
    Ok(())
}

/// What a merge into a copy of the first of these filters does to its slices.
fn merging_into_copy(ctx: Ctx, first: &BloomFilter, sources: &[&BloomFilter]) -> Result<Merging, Refusal> {
    if must_obey(ctx) {
        return Ok(Merging::STAYS);
    }
    first.merging(sources, time_of(ctx, first.asks_clock())).map_err(core_error)
}

/// `BF.CLEAR key`
pub fn clear(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let mut key = ctx.open(args.get(1), Mode::Write);
    let filter = value_mut::<BloomFilter>(&mut key)?.ok_or(Refusal::NotFound)?;
    if !filter.is_empty() {
        // A new filter costs less than clearing: its memory comes zeroed, and the old one is freed in the background.
        let empty = filter.empty_twin(&Unlimited).map_err(core_error)?;
        replace(filter, empty);
        ctx.replicate_under(filter.prefix().name(Verb::Clear), args);
        ctx.changed(key.close(), BloomFilter::prefix_of_events().event(Verb::Clear));
    }
    reply::ok(ctx);
    Ok(())
}

/// `BF.SCANDUMP key iterator`
pub fn scandump(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    dump::scandump::<BloomFilter>(ctx, args)
}

/// `BF.LOADCHUNK key iterator data`
pub fn loadchunk(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    dump::loadchunk::<BloomFilter>(ctx, args)
}

/// `BF.DEBUG key`
pub fn debug(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let filter = value::<BloomFilter>(&key)?.ok_or(Refusal::NotFound)?;
    ctx.reply_array(filter.sub_filters().len() + 1);
    ctx.reply_bulk(debug_totals(filter).as_bytes());
    filter.sub_filters().for_each(|sub_filter| ctx.reply_bulk(debug_sub_filter(&sub_filter).as_bytes()));
    Ok(())
}

/// The first line. For a classic filter it is the text of RedisBloom.
fn debug_totals(filter: &BloomFilter) -> String {
    let size = filter.num_items();
    if filter.layout() == BitLayout::Classic {
        return format!("size:{size}");
    }
    let Params { error_rate, expansion, seed, .. } = filter.params();
    let window = match (filter.sliding(), filter.newest_slice()) {
        (Some(sliding), Some(slice)) => format!(" window:{} slice:{slice}", sliding.to_string().replace(' ', "_")),
        _ => String::new(),
    };
    format!(
        "size:{size} filters:{} bytes:{} layout:lines ratio:{error_rate:?} expansion:{expansion} seed:{seed}{window}",
        filter.sub_filters().len(),
        filter.size_bytes()
    )
}

/// The line of a sub-filter. For one of a classic filter it is the text of RedisBloom.
fn debug_sub_filter(info: &SubFilterInfo) -> String {
    let SubFilterInfo { num_bytes, num_bits, hashes, capacity, num_items, error_rate, set_bits, .. } = info;
    match info.geometry {
        None => format!(
            "bytes:{num_bytes} bits:{num_bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{num_items} \
             ratio:{}",
            as_c_prints(*error_rate)
        ),
        Some(geometry) => format!(
            "bytes:{num_bytes} bits:{num_bits} hashes:{hashes} lines:{} lines_per_item:{} probes_per_line:{} \
             capacity:{capacity} size:{num_items} ratio:{error_rate:?} bits_set:{set_bits}",
            geometry.num_lines, geometry.lines_per_item, geometry.probes_per_line
        ),
    }
}
