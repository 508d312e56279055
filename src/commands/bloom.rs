//! Filters in this module: how they differ from counters, and the commands BF.* and RF.*, which work on them.
//!
//! Replicated `BF.*` commands, from a primary or the AOF, must not fail here: another server has acknowledged them. If
//! that server was RedisBloom, it may have read the options differently.

use redis_module::raw::RedisModuleType;
use rollcall_core::bloom::{BitLayout, BloomFilter, Expired, Params, SubFilterInfo, Windowing};
use rollcall_core::error::{Error, Parameter};
use rollcall_core::live::{Live, Value};
use rollcall_core::size_limit::{SizeLimit, Unlimited};
use rollcall_core::unstable::bloom::{DEFAULT_GROWTH, expansion_error};
use rollcall_core::unstable::info::{FILTER_FIELDS_SHOWN, OF_FILTERS};
use rollcall_core::unstable::persist::rdb::{self, Sink};
use rollcall_core::unstable::persist::redisbloom;
use rollcall_core::unstable::try_reserve;
use rollcall_core::window::Time;

use super::keyspace::value;
use super::windows::{self, time_of};
use super::{changes, info};
use crate::args::{self, Allowed, Items, Opt, Options, lenient};
use crate::command_error::{CommandError, Kind, bad};
use crate::config;
use crate::limits::ServerLimit;
use crate::number::as_c_prints;
use crate::reply;
use crate::server::facts::{is_redis_8, must_obey};
use crate::server::ffi::{Args, Ctx, Mode};
use crate::server::metrics::{FILTER_ADVANCES, FILTER_ITEMS_REJECTED, Metric};
use crate::server::reclaim;
use crate::types::entry::no_classic;
use crate::types::family::{Added, AddedItems, CLASSIC, DataType, Family, LINES, LastWords, State, serves_classic};
use crate::types::names::{Prefix, Verb};
use crate::types::totals::{ValueKind, ValueShare};

const OF_INSERT: &[Opt] =
    &[Opt::Capacity, Opt::Error, Opt::Expansion, Opt::NoCreate, Opt::NonScaling, Opt::Seed, Opt::Layout];
/// The options of a replicated `BF.INSERT`. Expiry options are left out: this module never replicates them, and
/// RedisBloom reads `EX` as `EXPANSION`.
const OBEYED_INSERT_OPTIONS: Allowed<'static> = &[OF_INSERT, windows::OF_FILTERS, args::ITEMS];

const RESERVE_OPTIONS: Allowed<'static> =
    &[&[Opt::Expansion, Opt::NonScaling, Opt::Seed, Opt::Layout], windows::OF_FILTERS, args::EXPIRY];

/// Redis 8 lowers any larger error rate of a filter to this rate.
const LARGEST_RATE_OF_REDIS_8: f64 = 0.25;

/// The parameters of a new filter.
#[derive(Clone, Copy, PartialEq)]
pub struct Creation {
    params: Params,
    layout: BitLayout,
    /// The expansion of a RedisBloom-compatible filter with `NONSCALING`, which RedisBloom stores although the filter
    /// never grows.
    noted_growth: Option<u32>,
    /// The sliding window, and the number of its newest slice.
    windowing: Option<(Windowing, u64)>,
}

static LAST_WORDS: LastWords<Creation> = LastWords::new(None);

impl Creation {
    /// Like [`Family::creation`], for a replicated command. If a parameter is outside this module's ranges, the
    /// filter becomes a RedisBloom-compatible filter, whose ranges are wider.
    fn obeyed(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        BloomFilter::creation(ctx, command, options).or_else(|error| {
            if options.layout == Some(BitLayout::Lines) || Prefix::Rf.is_of(command) {
                return Err(error);
            }
            Ok(Creation { layout: BitLayout::Classic, ..Self::from_any_range(ctx, command, options)? })
        })
    }

    /// The parameters from `options`, whose ranges are not checked.
    ///
    /// RF.* commands create filters in Rollcall's own layout (`lines`). A replicated BF.* command without a layout
    /// creates a RedisBloom-compatible filter, because RedisBloom and this module replicate only such filters by BF.*
    /// commands.
    ///
    /// A replicated RF.* command gets the library's defaults: a primary with other defaults sends all parameters. All
    /// other commands get the configured defaults.
    fn from_any_range(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let (layout, defaults) = match (Prefix::Rf.is_of(command), must_obey(ctx)) {
            (true, true) => (BitLayout::Lines, Params::default()),
            (true, false) => (BitLayout::Lines, config::bloom_defaults()),
            (false, true) => (BitLayout::Classic, config::bloom_defaults()),
            (false, false) => (config::bloom_layout(), config::bloom_defaults()),
        };
        let narrow = |expansion: u64| u32::try_from(expansion).map_err(|_| expansion_error(expansion));
        let given = options.expansion.map(narrow).transpose()?;
        let mut params = Params {
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            capacity: options.capacity.unwrap_or(defaults.capacity),
            expansion: given.unwrap_or(defaults.expansion),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        if options.has(Opt::NonScaling) {
            params.expansion = 0;
        }
        let noted_growth = given.filter(|&expansion| params.expansion == 0 && expansion != 0);
        let layout = options.layout.unwrap_or(layout);
        if layout == BitLayout::Classic && !serves_classic() {
            return Err(no_classic());
        }
        let mut creation = Creation { params, layout, noted_growth, windowing: None };
        if let Some(windowing) = windows::filter_windowing(options)? {
            if options.layout == Some(BitLayout::Classic) {
                return bad("option WINDOW needs layout lines, got classic");
            }
            creation.layout = BitLayout::Lines;
            if creation.params.expansion == 0 {
                creation.params.expansion = DEFAULT_GROWTH;
            }
            let first = || windowing.window.first_slice(ctx.now_seconds());
            creation.windowing = Some((windowing, options.slice.unwrap_or_else(first)));
        }
        Ok(creation)
    }
}

impl Family for BloomFilter {
    type Creation = Creation;
    const OWN_PREFIX: Prefix = Prefix::Rf;
    const PARTIAL: ValueKind = ValueKind::PartialFilter;
    const ADVANCES: &'static Metric = &FILTER_ADVANCES;
    const ITEMS_REJECTED: &'static Metric = &FILTER_ITEMS_REJECTED;
    const OWN_TYPE: &'static DataType = &LINES;
    const INSERT_OPTIONS: Allowed<'static> = &[OF_INSERT, windows::OF_FILTERS, args::EXPIRY, args::ITEMS];
    const LAST_WORDS: &'static LastWords<Creation> = &LAST_WORDS;

    #[inline]
    fn has_type(handle: *mut RedisModuleType) -> bool {
        handle == LINES.handle() || handle == CLASSIC.handle()
    }

    fn data_type(state: &State<Self>) -> &'static DataType {
        match state {
            State::Ready(filter) if filter.layout() == BitLayout::Classic => &CLASSIC,
            State::Ready(_) | State::Partial(_) => &LINES,
        }
    }

    fn save(&self, sink: &mut impl Sink) {
        match self.layout() {
            BitLayout::Lines => rdb::save(self, sink),
            BitLayout::Classic => redisbloom::save_rdb(self, sink),
        }
    }

    fn prefix(&self) -> Prefix {
        match self.layout() {
            BitLayout::Classic => Prefix::Bf,
            BitLayout::Lines => Prefix::Rf,
        }
    }

    fn prefix_of_events() -> Prefix {
        if serves_classic() { Prefix::Bf } else { Prefix::Rf }
    }

    fn share(&self) -> ValueShare {
        let kind = match (self.windowing(), self.layout()) {
            (Some(_), _) => ValueKind::WindowedFilter,
            (None, BitLayout::Lines) => ValueKind::Lines,
            (None, BitLayout::Classic) => ValueKind::Classic,
        };
        ValueShare {
            kind,
            bytes: self.num_bytes(),
            items: self.num_items(),
            capacity: self.capacity(),
            sub_filters: self.sub_filters().len() as u64,
        }
    }

    #[inline(always)]
    fn takes_in_place(&self, additions: usize) -> bool {
        self.has_room_for(additions as u64)
    }

    fn try_clone(&self) -> Result<Self, Error> {
        self.try_clone()
    }

    fn creation(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Creation, CommandError> {
        let mut creation = Creation::from_any_range(ctx, command, options)?;
        // A given expansion has to be in range even if NONSCALING overrides it.
        let expansion = creation.noted_growth.unwrap_or(creation.params.expansion);
        Params { expansion, ..creation.params }.validate()?;
        // As Redis 8 does. A command of the primary or of an AOF must create the filter unchanged.
        if creation.layout == BitLayout::Classic && is_redis_8() && !must_obey(ctx) {
            creation.params.error_rate = creation.params.error_rate.min(LARGEST_RATE_OF_REDIS_8);
        }
        Ok(creation)
    }

    fn build(creation: &Creation, limit: &ServerLimit) -> Result<Self, Error> {
        match (creation.windowing, creation.layout) {
            (Some((windowing, slice)), _) => BloomFilter::windowed(creation.params, windowing, slice, limit),
            // A client's parameters have been checked already. Those of a replicated command may lie outside the ranges
            // for clients, and `BloomFilter::classic` accepts them.
            (None, BitLayout::Classic) => {
                BloomFilter::classic(creation.params, creation.noted_growth.unwrap_or(DEFAULT_GROWTH), limit)
            }
            (None, BitLayout::Lines) => BloomFilter::new(BitLayout::Lines, creation.params, limit),
        }
    }

    /// All parameters as options of a replicated command. For a RedisBloom-compatible filter, RedisBloom must know all
    /// these options, because a replica with RedisBloom may run the command.
    fn words(creation: &Creation) -> String {
        let Params { error_rate, capacity, expansion, seed } = creation.params;
        let mut words = format!("CAPACITY {capacity} ERROR {error_rate:?} ");
        if expansion == 0 {
            words += "NONSCALING ";
        }
        if let Some(expansion) = creation.noted_growth.or((expansion != 0).then_some(expansion)) {
            words += &format!("EXPANSION {expansion} ");
        }
        if creation.layout == BitLayout::Lines {
            words += &format!("SEED {seed} LAYOUT {} ", creation.layout);
        }
        if let Some((windowing, slice)) = &creation.windowing {
            words += &windows::words(&windowing.window, windowing.refresh, *slice);
        }
        words
    }

    fn is_implied(creation: &Creation) -> bool {
        creation.layout == BitLayout::Lines && config::bloom_defaults() == Params::default()
    }

    fn insertion(ctx: Ctx, args: Args<'_>) -> Result<(Creation, Options), CommandError> {
        if !must_obey(ctx) {
            return Self::given(ctx, args, Self::INSERT_OPTIONS);
        }
        // A replicated command that this module's parser rejects may come from RedisBloom, and is then parsed as
        // RedisBloom parses it.
        Self::given(ctx, args, OBEYED_INSERT_OPTIONS).or_else(|_| {
            // A primary with this module sent what RedisBloom would reject, so the strict parser reads it.
            let strict = || args::options(ctx, args, 2, OBEYED_INSERT_OPTIONS);
            let options = from_redisbloom(args, lenient::insert).map_or_else(strict, Ok)?;
            Ok((Creation::obeyed(ctx, args, &options)?, options))
        })
    }

    /// Adds items and replies for each whether it was new, as [`reply::answers`] says.
    fn add_all(ctx: Ctx, live: &mut Live<Self>, items: Items, limit: &ServerLimit, is_new_key: bool) -> Added {
        let mut answers = Vec::new();
        let outcome = try_reserve(&mut answers, items.len).and_then(|()| {
            let added = |is_new| answers.push(reply::answer(is_new));
            match items.runs() {
                None => live.add_all(items.args.bytes(), limit, added),
                Some(runs) => live.add_all(runs, limit, added),
            }
        });
        let error = outcome.err().and_then(|error| reported(ctx, error));
        let new = answers.iter().filter(|&&answer| answer == reply::YES).count();
        let added = AddedItems::First(answers.len());
        // If the first item is rejected, the key is not created.
        if is_new_key && answers.is_empty() && error.is_some() {
            return Added { items: added, new, error };
        }
        reply::answers(ctx, answers, items.len, error, items.width.is_some());
        Added { items: added, new, error: None }
    }

    fn look_up(&self, time: Time, since: Option<u64>, items: Items, mut found: impl FnMut(bool)) -> Result<(), Error> {
        let view = since.map_or_else(|| Ok(self.at(time)), |seconds| self.since(seconds, time))?;
        match items.runs() {
            None if items.len == 1 => found(view.may_contain(items.args.get(0).bytes())),
            None => view.may_contain_all(items.args.bytes(), found),
            Some(runs) => view.may_contain_all(runs, found),
        }
        Ok(())
    }

    fn union(first: &Self, others: &[&Self], limit: &ServerLimit) -> Result<Self, Error> {
        others.iter().try_for_each(|other| first.check_mergeable(other))?;
        limit.check(0, first.num_bytes())?;
        let mut union = first.try_clone()?;
        union.live(Time::Reached).merge(others, limit)?;
        Ok(union)
    }

    fn emptied(&self) -> Result<Option<Self>, Error> {
        (!self.is_empty()).then(|| self.new_like(&Unlimited)).transpose()
    }

    fn dispose(expired: Expired) {
        reclaim::dispose(expired, |expired| expired.num_bytes() as usize);
    }
}

/// Parses the options of a command by `read`, as RedisBloom does. `None` if `read` rejects the options, and for RF.*,
/// which RedisBloom does not have.
fn from_redisbloom(args: Args<'_>, read: fn(Args<'_>) -> Option<Options>) -> Option<Options> {
    if Prefix::Rf.is_of(args) { None } else { read(args) }
}

/// The error to reply for a rejected item; `None` if the command must not fail. RedisBloom also replicates commands
/// that it rejected because the filter was full. They have no effect here either, but must not fail: a replica can be
/// configured to exit at an error.
fn reported(ctx: Ctx, error: Error) -> Option<CommandError> {
    match error {
        Error::Full { .. } if must_obey(ctx) => None,
        other => Some(other.into()),
    }
}

/// Creates an empty filter: `BF.RESERVE key error_rate capacity [EXPANSION n] [NONSCALING] [SEED n] [LAYOUT
/// lines|classic] [WINDOW seconds [MANUAL] [SLICES g] [REFRESH]] [EX s | PX ms | EXAT s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if must_obey(ctx)
        && let Some(options) = from_redisbloom(args, lenient::reserve)
    {
        return changes::reserve::<BloomFilter>(ctx, args, &Creation::obeyed(ctx, args, &options)?, None);
    }
    let creation = if must_obey(ctx) { Creation::obeyed } else { BloomFilter::creation };
    // The checks are in RedisBloom's order, so that a command with several errors gets RedisBloom's reply.
    let error_rate = Some(args::number(Parameter::ErrorRate, args.get(2))?);
    creation(ctx, args, &Options { error_rate, ..Options::default() })?;
    let capacity = Some(args::capacity(args.get(3))?);
    creation(ctx, args, &Options { capacity, ..Options::default() })?;
    let options = Options { error_rate, capacity, ..args::options(ctx, args, 4, RESERVE_OPTIONS)? };
    windows::check_reservation(ctx, &options)?;
    // As in RedisBloom, only `BF.INSERT` accepts both `NONSCALING` and `EXPANSION`.
    if options.has(Opt::NonScaling) && options.expansion.is_some() {
        return bad("Nonscaling filters cannot expand: give NONSCALING or EXPANSION, not both");
    }
    changes::reserve::<BloomFilter>(ctx, args, &creation(ctx, args, &options)?, options.expiry)
}

/// Adds an item to a filter: `BF.ADD key item`
pub fn add(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let addition = changes::to_default::<BloomFilter>(ctx, Verb::Add, args);
    let limit = ServerLimit::new(ctx);
    changes::add(ctx, addition, &limit, |live, _| {
        let (items, is_new, error) = match live.add(args.get(2).bytes(), &limit) {
            Ok(is_new) => (1, is_new, None),
            Err(error) => (0, false, reported(ctx, error)),
        };
        if error.is_none() {
            ctx.reply_bool(is_new);
        }
        Added { items: AddedItems::First(items), new: is_new.into(), error }
    })?;
    Ok(())
}

/// Replies with the number of items in a filter: `BF.CARD key`
pub fn card(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let key = ctx.open(args.get(1), Mode::Read)?;
    let items = value::<BloomFilter>(&key)?.map_or(0, |filter| filter.at(time_of(ctx, [filter])).num_items());
    ctx.reply_integer(i64::try_from(items).unwrap_or(i64::MAX));
    Ok(())
}

/// Replies with all figures about a filter, or with one: `BF.INFO key [field]`
pub fn info(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(CommandError::Arity);
    }
    let key = ctx.open(args.get(1), Mode::Inspect)?;
    let filter = value::<BloomFilter>(&key)?.ok_or(CommandError::NotFound)?;
    let at = filter.at(time_of(ctx, [filter]));
    info::info(ctx, args, Kind::Filter, &OF_FILTERS, FILTER_FIELDS_SHOWN, |of| of(&at))
}

/// Replies with a line of text about each sub-filter: `BF.DEBUG key`
pub fn debug(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let key = ctx.open(args.get(1), Mode::Inspect)?;
    let filter = value::<BloomFilter>(&key)?.ok_or(CommandError::NotFound)?;
    ctx.reply_array(filter.sub_filters().len() + 1);
    ctx.reply_bulk(debug_totals(filter).as_bytes());
    filter.sub_filters().for_each(|sub_filter| ctx.reply_bulk(debug_sub_filter(&sub_filter).as_bytes()));
    Ok(())
}

/// The first line of the `BF.DEBUG` reply. For a RedisBloom-compatible filter it is RedisBloom's.
fn debug_totals(filter: &BloomFilter) -> String {
    let size = filter.num_items();
    if filter.layout() == BitLayout::Classic {
        return format!("size:{size}");
    }
    let Params { error_rate, expansion, seed, .. } = filter.params();
    let window = match (filter.windowing(), filter.newest_slice()) {
        (Some(windowing), Some(slice)) => format!(" window:{} slice:{slice}", windowing.to_string().replace(' ', "_")),
        _ => String::new(),
    };
    format!(
        "size:{size} filters:{} bytes:{} layout:lines ratio:{error_rate:?} expansion:{expansion} seed:{seed}{window}",
        filter.sub_filters().len(),
        filter.size_bytes()
    )
}

/// The `BF.DEBUG` line of a sub-filter. For a RedisBloom-compatible filter it is RedisBloom's.
fn debug_sub_filter(info: &SubFilterInfo) -> String {
    let SubFilterInfo { num_bytes, hashes, capacity, num_items, error_rate, set_bits, .. } = info;
    let num_bits = 8 * num_bytes;
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
