//! LC.*: counters of distinct members.

use super::effects::{Added, AddedWords, Admitted, announce, announce_admitted, announce_expiry, word};
use super::keyspace::{
    admission, create, create_expiring, open, open_all, open_merge, refusal_of, replace, value, value_mut, values,
};
use super::{dump, expiry};
use crate::args::{self, Opt, Options};
use crate::config;
use crate::limits::ServerLimit;
use crate::refusal::{Noun, Refusal};
use crate::reply::{self, Field, InfoLine};
use crate::server::ffi::{Arg, ArgOrOwned, Args, Ctx, Key, Mode};
use rollcall_core::admission::Admission;
use rollcall_core::counting::{Counter, Estimated, Params, count_union, estimate_intersection, estimate_union};
use rollcall_core::error::{Error, Parameter};
use rollcall_core::unstable::counting::layout::Layout;
use rollcall_core::unstable::counting::{Shaped, sizing};

const RESERVE_OPTIONS: [Opt; 10] =
    [Opt::Error, Opt::Exact, Opt::Bytes, Opt::Precision, Opt::Tail, Opt::Seed, Opt::Ex, Opt::Px, Opt::ExAt, Opt::PxAt];
const INSERT_OPTIONS: [Opt; 13] = [
    Opt::Capacity,
    Opt::Error,
    Opt::Exact,
    Opt::Bytes,
    Opt::Precision,
    Opt::Tail,
    Opt::NoCreate,
    Opt::Seed,
    Opt::Items,
    Opt::Ex,
    Opt::Px,
    Opt::ExAt,
    Opt::PxAt,
];

const ADMIT_OPTIONS: [Opt; 16] = [
    Opt::Limit,
    Opt::All,
    Opt::DryRun,
    Opt::Capacity,
    Opt::Error,
    Opt::Exact,
    Opt::Bytes,
    Opt::Precision,
    Opt::Tail,
    Opt::NoCreate,
    Opt::Seed,
    Opt::Items,
    Opt::Ex,
    Opt::Px,
    Opt::ExAt,
    Opt::PxAt,
];

/// What a counter is created with.
#[derive(Clone, Copy)]
struct Creation {
    params: Params,
    /// The shape of its bitmap, where that was decided elsewhere.
    layout: Option<Layout>,
    /// When the key expires, in milliseconds since 1970.
    expiry: Option<i64>,
}

impl Creation {
    /// What the configuration says.
    fn defaults() -> Self {
        Creation { params: config::counting_defaults(), layout: None, expiry: None }
    }

    /// What options and defaults make.
    fn of(ctx: Ctx, options: &Options) -> Result<Self, Refusal> {
        let defaults = config::counting_defaults();
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let params = Params {
            capacity: options.capacity.unwrap_or(defaults.capacity),
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            exact_limit: options.exact_limit.map_or(defaults.exact_limit, narrow),
            exact_bytes: options.exact_bytes.map_or(defaults.exact_bytes, narrow),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        params.validate().map_err(|error| core_error(as_given(error, options)))?;
        let layout = match (options.precision, options.tail_bits) {
            (None, None) => None,
            (Some(precision), Some(tail_bits)) => {
                let layout = Layout::new(narrow(precision), narrow(tail_bits));
                Some(layout.map_err(|error| core_error(as_given(error, options)))?)
            }
            (Some(_), None) => return Err(Refusal::Argument("option PRECISION needs option TAIL".to_owned())),
            (None, Some(_)) => return Err(Refusal::Argument("option TAIL needs option PRECISION".to_owned())),
        };
        Ok(Creation { params, layout, expiry: expiry::resolve(ctx, options.expiry)? })
    }

    fn build(&self) -> Result<Counter, Refusal> {
        let layout = self
            .layout
            .map_or_else(|| sizing::layout(self.params.error_rate, self.params.capacity), Ok)
            .map_err(core_error)?;
        Counter::with_layout(self.params, layout).map_err(core_error)
    }
}

/// The error, about the number that was given and not about what 32 bits hold of it.
fn as_given(error: Error, options: &Options) -> Error {
    match error {
        Error::OutOfRange { parameter, expected, got } => {
            let given = match parameter {
                Parameter::ExactLimit => options.exact_limit,
                Parameter::ExactBytes => options.exact_bytes,
                Parameter::Precision => options.precision,
                Parameter::TailBits => options.tail_bits,
                _ => None,
            };
            Error::OutOfRange { parameter, expected, got: given.map_or(got, |given| given.to_string()) }
        }
        error => error,
    }
}

/// What a counter was created with, all of which its replicas are told.
#[derive(Clone, Copy)]
struct Created {
    params: Params,
    layout: Layout,
    expiry: Option<i64>,
}

impl Created {
    fn new(counter: &Counter, creation: &Creation) -> Self {
        Created { params: *counter.params(), layout: counter.layout(), expiry: creation.expiry }
    }
}

const WORDS: AddedWords<Created> = AddedWords {
    insert: c"LC.INSERT",
    add_all: c"LC.ADD",
    reserve_event: c"lc.reserve",
    add_event: c"lc.add",
    options: |ctx, created| {
        let mut words = vec![word(ctx, "CAPACITY"), word(ctx, created.params.capacity.to_string())];
        words.extend(created.reserve_words(ctx));
        words
    },
    expiry: |created| created.expiry,
};

impl Created {
    /// The options that `LC.RESERVE` and `LC.INSERT` share, as words.
    fn reserve_words(&self, ctx: Ctx) -> [ArgOrOwned<'static>; 12] {
        let Created { params, layout, .. } = self;
        [
            word(ctx, "ERROR"),
            word(ctx, format!("{:?}", params.error_rate)),
            word(ctx, "EXACT"),
            word(ctx, params.exact_limit.to_string()),
            word(ctx, "BYTES"),
            word(ctx, params.exact_bytes.to_string()),
            word(ctx, "PRECISION"),
            word(ctx, layout.precision().to_string()),
            word(ctx, "TAIL"),
            word(ctx, layout.tail_bits().to_string()),
            word(ctx, "SEED"),
            word(ctx, params.seed.to_string()),
        ]
    }
}

fn core_error(error: Error) -> Refusal {
    refusal_of::<Counter>(error)
}

/// `LC.RESERVE key capacity [ERROR rate] [EXACT limit] [BYTES bytes] [PRECISION p TAIL c] [SEED n] [EX s | PX ms | EXAT
/// s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    // The capacity is read first: where it is missing, an option stands in its place, and the error should say so.
    let capacity = Some(args::count(Noun::Counter, Parameter::Capacity, args.get(2))?);
    let options = Options { capacity, ..args::options(Noun::Counter, args, 3, &RESERVE_OPTIONS)? };
    let creation = Creation::of(ctx, &options)?;
    let key = open::<Counter>(ctx, args.get(1), Mode::Write)?;
    if !key.is_missing() {
        return Err(Refusal::Exists);
    }
    let counter = creation.build()?;
    let created = Created::new(&counter, &creation);
    create_expiring(&key, counter, creation.expiry);
    announce_reserved(ctx, args.get(1), &created);
    reply::ok(ctx);
    Ok(())
}

/// Replicates the creation of an empty key, and sends its event.
fn announce_reserved(ctx: Ctx, key: Arg<'_>, created: &Created) {
    let mut arguments = vec![ArgOrOwned::Arg(key), word(ctx, created.params.capacity.to_string())];
    arguments.extend(created.reserve_words(ctx));
    ctx.replicate(c"LC.RESERVE", &arguments, Args::none());
    ctx.changed(key, c"lc.reserve");
    announce_expiry(ctx, key, created.expiry);
}

/// `LC.ADD key item [item ...]`
pub fn add(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    insert(ctx, args.get(1), args.from(2), Some(Creation::defaults()), true)
}

/// `LC.INSERT key [CAPACITY n] [ERROR rate] [EXACT limit] [BYTES bytes] [PRECISION p TAIL c] [NOCREATE] [SEED n] [EX s
/// | PX ms | EXAT s | PXAT ms] ITEMS item [item ...]`
pub fn insert_command(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let options = args::options(Noun::Counter, args, 2, &INSERT_OPTIONS)?;
    let items = options.items.ok_or(Refusal::Arity)?;
    let creation = Creation::of(ctx, &options)?;
    let create = if options.no_create { None } else { Some(creation) };
    insert(ctx, args.get(1), args.from(items), create, options.expiry.is_none())
}

/// Adds items and replies with how many were new; creates a missing key with `create_with`, if given. If an item is
/// refused for its size, the items before it stay added, and the reply is the error. `is_plain`: the command has no
/// options of expiry.
fn insert(
    ctx: Ctx,
    name: Arg<'_>,
    items: Args<'_>,
    create_with: Option<Creation>,
    is_plain: bool,
) -> Result<(), Refusal> {
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
            let creation = create_with.ok_or(Refusal::NotFound)?;
            let mut counter = creation.build()?;
            let created = Created::new(&counter, &creation);
            let outcome = add(&mut counter);
            // The first item was refused, so the key stays missing.
            if let (0, Err(error)) = (handled, &outcome) {
                return Err(core_error(error.clone()));
            }
            create_expiring(&key, counter, creation.expiry);
            (Some(created), outcome)
        }
    };
    announce(ctx, &Added { key: name, items, created, handled, changed: new > 0, is_plain }, &WORDS);
    outcome.map_err(core_error)?;
    ctx.reply_integer(new as i64);
    Ok(())
}

/// `LC.ADMIT key LIMIT n [ALL] [DRYRUN] [options of LC.INSERT] ITEMS item [item ...]`
pub fn admit(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let options = args::options(Noun::Counter, args, 2, &ADMIT_OPTIONS)?;
    let creation = Creation::of(ctx, &options)?;
    let (terms, items) = admission(args, &options)?;
    let limit = ServerLimit::new(ctx);
    let mut key = ctx.open(args.get(1), Mode::Write);
    let (told, created) = match value_mut::<Counter>(&mut key)? {
        Some(counter) => (counter.admit(items.bytes(), terms, &limit).map_err(core_error)?, None),
        None if options.no_create => return Err(Refusal::NotFound),
        None => {
            let mut counter = creation.build()?;
            let told = counter.admit(items.bytes(), terms, &limit).map_err(core_error)?;
            let created = Created::new(&counter, &creation);
            let creates = !terms.dry_run && told.contains(&Admission::Admitted);
            if creates {
                create_expiring(&key, counter, creation.expiry);
            }
            (told, creates.then_some(created))
        }
    };
    if !terms.dry_run {
        announce_admitted(ctx, &Admitted { key: args.get(1), items, told: &told, created }, &WORDS);
    }
    reply::admissions(ctx, &told);
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
            create(&destination, Counter::union(first, &sources[1..], &limit).map_err(core_error)?);
            true
        }
        (None, None) => {
            let creation = Creation::defaults();
            let counter = creation.build()?;
            let created = Created::new(&counter, &creation);
            create(&destination, counter);
            announce_reserved(ctx, args.get(1), &created);
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
    let difference = match value::<Counter>(&keys[0])? {
        None => NOTHING,
        Some(counter) => counter.difference(&others).map_err(core_error)?,
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
        false => estimate_intersection(&counters).map_err(core_error)?,
    };
    reply_estimated(ctx, &intersection);
    Ok(())
}

/// `LC.ESTIMATE key [key ...]`
pub fn estimate(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let keys = open_all::<Counter>(ctx, args.from(1))?;
    let union = estimate_union(&values::<Counter>(&keys)?).map_err(core_error)?;
    reply_estimated(ctx, &union);
    Ok(())
}

/// `LC.EXISTS key item`
pub fn exists(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let found = match value::<Counter>(&key)? {
        Some(counter) => counter.contains(args.get(2).bytes()).map_err(core_error)?,
        None => false,
    };
    ctx.reply_bool(found);
    Ok(())
}

/// `LC.MEXISTS key item [item ...]`
pub fn mexists(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let items = args.from(2);
    let key = ctx.open(args.get(1), Mode::Read);
    let counter = value::<Counter>(&key)?;
    if let Some(counter) = counter {
        // An estimate answers for no item, so the error comes instead of the array.
        counter.members().map_err(core_error)?;
    }
    ctx.reply_array(items.len());
    for item in items.bytes() {
        ctx.reply_bool(counter.is_some_and(|counter| counter.contains(item) == Ok(true)));
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
    let members = counter.members_beyond(&others).map_err(core_error)?;
    ctx.reply_array(members.len());
    members.into_iter().for_each(|member| ctx.reply_bulk(member));
    Ok(())
}

/// `LC.CLEAR key`
pub fn clear(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let mut key = ctx.open(args.get(1), Mode::Write);
    let counter = value_mut::<Counter>(&mut key)?.ok_or(Refusal::NotFound)?;
    if !counter.is_empty() {
        let empty = counter.empty_twin().map_err(core_error)?;
        replace(counter, empty);
        ctx.replicate_verbatim();
        ctx.changed(args.get(1), c"lc.clear");
    }
    reply::ok(ctx);
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

fn info_lines(counter: &Counter) -> [InfoLine; 13] {
    let (params, layout) = (counter.params(), counter.layout());
    [
        ("Capacity", "CAPACITY", Field::Integer(params.capacity)),
        ("Error rate", "ERROR", Field::Double(params.error_rate)),
        ("Exact limit", "EXACT", Field::Integer(u64::from(params.exact_limit))),
        ("Exact bytes", "BYTES", Field::Integer(u64::from(params.exact_bytes))),
        ("Mode", "MODE", Field::Text(if counter.is_exact() { "exact" } else { "estimate" })),
        ("Representation", "REPRESENTATION", Field::Text(counter.representation().name())),
        ("Size", "SIZE", Field::Integer(counter.size_bytes())),
        ("Count", "COUNT", Field::Integer(counter.count())),
        ("Standard error", "STDERR", Field::Double(counter.standard_error())),
        ("Bits", "BITS", Field::Integer(counter.num_bits())),
        ("Bits set", "BITSSET", Field::Integer(counter.set_bits())),
        ("Precision", "PRECISION", Field::Integer(u64::from(layout.precision()))),
        ("Tail bits", "TAIL", Field::Integer(u64::from(layout.tail_bits()))),
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
