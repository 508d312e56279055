//! LC.*: counters of distinct members.

use super::dump;
use super::effects::{Added, AddedWords, announce, word};
use super::keyspace::{create, open, open_all, open_merge, refusal_of, value, value_mut, values};
use crate::args::{self, Opt, Options};
use crate::config;
use crate::limits::ServerLimit;
use crate::refusal::{Noun, Refusal};
use crate::reply::{self, Field, InfoLine};
use crate::server::ffi::{Arg, ArgOrOwned, Args, Ctx, Mode};
use rollcall_core::counting::{Counter, Params, count_union};
use rollcall_core::error::{Error, Parameter};

const RESERVE_OPTIONS: [Opt; 3] = [Opt::Error, Opt::Exact, Opt::Seed];
const INSERT_OPTIONS: [Opt; 6] = [Opt::Capacity, Opt::Error, Opt::Exact, Opt::NoCreate, Opt::Seed, Opt::Items];

const WORDS: AddedWords<Params> = AddedWords {
    insert: c"LC.INSERT",
    add_all: c"LC.ADD",
    reserve_event: c"lc.reserve",
    add_event: c"lc.add",
    options: |ctx, params| {
        let mut words = vec![word(ctx, "CAPACITY"), word(ctx, params.capacity.to_string())];
        words.extend(precision(ctx, params));
        words
    },
};

/// The options that `LC.RESERVE` and `LC.INSERT` share, as words.
fn precision(ctx: Ctx, params: &Params) -> [ArgOrOwned<'static>; 6] {
    [
        word(ctx, "ERROR"),
        word(ctx, format!("{:?}", params.error_rate)),
        word(ctx, "EXACT"),
        word(ctx, params.exact_limit.to_string()),
        word(ctx, "SEED"),
        word(ctx, params.seed.to_string()),
    ]
}

fn core_error(error: Error) -> Refusal {
    refusal_of::<Counter>(error)
}

/// The parameters from the options, and from the defaults for those not given.
fn params(options: &Options) -> Result<Params, Refusal> {
    let defaults = config::counting_defaults();
    let exact_limit = options.exact_limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
    let params = Params {
        capacity: options.capacity.unwrap_or(defaults.capacity),
        error_rate: options.error_rate.unwrap_or(defaults.error_rate),
        exact_limit: exact_limit.unwrap_or(defaults.exact_limit),
        seed: options.seed.unwrap_or(defaults.seed),
    };
    params.validate().map_err(core_error)?;
    Ok(params)
}

/// `LC.RESERVE key capacity [ERROR rate] [EXACT limit] [SEED n]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    // The capacity is read first: where it is missing, an option stands in its place, and the error should say so.
    let capacity = Some(args::count(Noun::Counter, Parameter::Capacity, args.get(2))?);
    let params = params(&Options { capacity, ..args::options(Noun::Counter, args, 3, &RESERVE_OPTIONS)? })?;
    let key = open::<Counter>(ctx, args.get(1), Mode::Write)?;
    if !key.is_missing() {
        return Err(Refusal::Exists);
    }
    create(&key, Counter::new(params).map_err(core_error)?);
    announce_reserved(ctx, args.get(1), &params);
    reply::ok(ctx);
    Ok(())
}

/// Replicates the creation of an empty key, and sends its event.
fn announce_reserved(ctx: Ctx, key: Arg<'_>, params: &Params) {
    let mut arguments = vec![ArgOrOwned::Arg(key), word(ctx, params.capacity.to_string())];
    arguments.extend(precision(ctx, params));
    ctx.replicate(c"LC.RESERVE", &arguments, Args::none());
    ctx.changed(key, c"lc.reserve");
}

/// `LC.ADD key item [item ...]`
pub fn add(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    insert(ctx, args.get(1), args.from(2), Some(config::counting_defaults()))
}

/// `LC.INSERT key [CAPACITY n] [ERROR rate] [EXACT limit] [NOCREATE] [SEED n] ITEMS item [item ...]`
pub fn insert_command(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let options = args::options(Noun::Counter, args, 2, &INSERT_OPTIONS)?;
    let items = options.items.ok_or(Refusal::Arity)?;
    let params = params(&options)?;
    let create = if options.no_create { None } else { Some(params) };
    insert(ctx, args.get(1), args.from(items), create)
}

/// Adds items and replies with how many were new; creates a missing key with `create_with`, if given. If an item is
/// refused for its size, the items before it stay added, and the reply is the error.
fn insert(ctx: Ctx, name: Arg<'_>, items: Args<'_>, create_with: Option<Params>) -> Result<(), Refusal> {
    let limit = ServerLimit::new(ctx);
    let mut key = ctx.open(name, Mode::Write);
    let (mut handled, mut new) = (0, 0);
    let mut add = |counter: &mut Counter| {
        let mut count = |is_new| {
            handled += 1;
            new += usize::from(is_new);
        };
        match items.len() {
            1 => counter.add(items.get(0).bytes(), &limit).map(count),
            _ => counter.add_all(items.bytes(), &limit, &mut count),
        }
    };
    let (created, outcome) = match value_mut::<Counter>(&mut key)? {
        Some(counter) => (None, add(counter)),
        None => {
            let params = create_with.ok_or(Refusal::NotFound)?;
            let mut counter = Counter::new(params).map_err(core_error)?;
            let outcome = add(&mut counter);
            // The first item was refused, so the key stays missing.
            if let (0, Err(error)) = (handled, &outcome) {
                return Err(core_error(error.clone()));
            }
            create(&key, counter);
            (Some(params), outcome)
        }
    };
    announce(ctx, &Added { key: name, items, created, handled, changed: new > 0 }, &WORDS);
    outcome.map_err(core_error)?;
    ctx.reply_integer(new as i64);
    Ok(())
}

/// `LC.COUNT key [key ...]`
pub fn count(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    if args.len() == 2 {
        let key = ctx.open(args.get(1), Mode::Read);
        let count = value::<Counter>(&key)?.map_or(0, Counter::count);
        ctx.reply_integer(count as i64);
        return Ok(());
    }
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let count = count_union(&values::<Counter>(&keys)?).map_err(core_error)?;
    ctx.reply_integer(count as i64);
    Ok(())
}

/// `LC.MERGE destination source [source ...]`
pub fn merge(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let limit = ServerLimit::new(ctx);
    let (mut destination, sources) = open_merge::<Counter>(ctx, args)?;
    let sources = values::<Counter>(&sources)?;
    let changed = match (value_mut::<Counter>(&mut destination)?, sources.first()) {
        (Some(counter), _) => counter.merge(&sources, &limit).map_err(core_error)?,
        (None, Some(first)) => {
            let mut counter = Counter::new(*first.params()).map_err(core_error)?;
            counter.merge(&sources, &limit).map_err(core_error)?;
            create(&destination, counter);
            true
        }
        (None, None) => {
            let params = config::counting_defaults();
            create(&destination, Counter::new(params).map_err(core_error)?);
            announce_reserved(ctx, args.get(1), &params);
            false
        }
    };
    if changed {
        ctx.replicate_verbatim();
        ctx.changed(args.get(1), c"lc.merge");
    }
    reply::ok(ctx);
    Ok(())
}

/// `LC.DIFFCOUNT key other [other ...]`
pub fn diffcount(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let others = values::<Counter>(&keys[1..])?;
    let (count, standard_error) = match value::<Counter>(&keys[0])? {
        None => (0, 0.0),
        Some(counter) => {
            let difference = counter.difference(&others).map_err(core_error)?;
            (difference.count(), difference.standard_error)
        }
    };
    ctx.reply_array(2);
    ctx.reply_integer(count as i64);
    ctx.reply_double(standard_error);
    Ok(())
}

/// `LC.MEMBERS key`
pub fn members(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let Some(counter) = value::<Counter>(&key)? else {
        ctx.reply_array(0);
        return Ok(());
    };
    let members = counter.members().map_err(core_error)?;
    ctx.reply_array(counter.count() as usize);
    members.for_each(|member| ctx.reply_bulk(member));
    Ok(())
}

fn info_lines(counter: &Counter) -> [InfoLine; 10] {
    let params = counter.params();
    [
        ("Capacity", "CAPACITY", Field::Integer(params.capacity)),
        ("Error rate", "ERROR", Field::Double(params.error_rate)),
        ("Exact limit", "EXACT", Field::Integer(u64::from(params.exact_limit))),
        ("Mode", "MODE", Field::Text(if counter.is_exact() { "exact" } else { "estimate" })),
        ("Representation", "REPRESENTATION", Field::Text(counter.representation().name())),
        ("Size", "SIZE", Field::Integer(counter.size_bytes())),
        ("Count", "COUNT", Field::Integer(counter.count())),
        ("Standard error", "STDERR", Field::Double(counter.standard_error())),
        ("Bits", "BITS", Field::Integer(counter.num_bits())),
        ("Bits set", "BITSSET", Field::Integer(counter.set_bits())),
    ]
}

/// `LC.INFO key [field]`
pub fn info(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    if args.len() > 3 {
        return Err(Refusal::Arity);
    }
    let key = ctx.open(args.get(1), Mode::Read);
    let counter = value::<Counter>(&key)?.ok_or(Refusal::NotFound)?;
    let lines = info_lines(counter);
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
    dump::loadchunk::<Counter>(ctx, args, c"lc.loadchunk")
}
