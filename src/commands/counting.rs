//! Counters in this module: how they differ from filters, and the commands LC.*, which work on them.

use rollcall_core::counting::{self, Counter, Params};
use rollcall_core::error::Error;
use rollcall_core::live::{Live, Value};
use rollcall_core::unstable::info::{CounterAt, OF_COUNTERS};
use rollcall_core::unstable::try_collect_ok;
use rollcall_core::window::{Time, Window};

use super::keyspace::{open_all, value, values};
use super::windows::{self, NO_SINCE, time_of};
use super::{changes, info, sets};
use crate::args::{self, Allowed, Items, Opt, Options, narrow};
use crate::command_error::{CommandError, Kind, bad};
use crate::config;
use crate::limits::ServerLimit;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, Mode};
use crate::server::metrics::{COUNTER_ADVANCES, COUNTER_ITEMS_REJECTED, Metric};
use crate::types::family::{Added, AddedItems, COUNTERS, DataType, Family, LastWords};
use crate::types::names::Prefix;
use crate::types::totals::{ValueKind, ValueShare};

/// The options that set the parameters of a counter.
const PARAMETERS: &[Opt] = &[Opt::Error, Opt::Exact, Opt::Bytes, Opt::Seed];

/// The parameters of a new counter.
#[derive(Clone, Copy, PartialEq)]
pub struct Creation {
    params: Params,
    /// The sliding window, and the number of its newest slice.
    window: Option<(Window, u64)>,
}

static LAST_WORDS: LastWords<Creation> = LastWords::new(None);

impl Family for Counter {
    type Creation = Creation;
    const OWN_PREFIX: Prefix = Prefix::Lc;
    const PARTIAL: ValueKind = ValueKind::PartialCounter;
    const ADVANCES: &'static Metric = &COUNTER_ADVANCES;
    const ITEMS_REJECTED: &'static Metric = &COUNTER_ITEMS_REJECTED;
    const OWN_TYPE: &'static DataType = &COUNTERS;
    const INSERT_OPTIONS: Allowed<'static> =
        &[&[Opt::NoCreate], PARAMETERS, windows::OF_COUNTERS, args::EXPIRY, args::ITEMS];
    const LAST_WORDS: &'static LastWords<Creation> = &LAST_WORDS;

    fn share(&self) -> ValueShare {
        let kind = match (self.window(), self.is_exact()) {
            (Some(_), _) => ValueKind::WindowedCounter,
            (None, true) => ValueKind::Exact,
            (None, false) => ValueKind::Estimate,
        };
        ValueShare::new(kind, self.num_bytes())
    }

    fn try_clone(&self) -> Result<Self, Error> {
        self.try_clone()
    }

    fn creation(ctx: Ctx, _command: Args<'_>, options: &Options) -> Result<Creation, CommandError> {
        // A replicated command uses the library's defaults, because a primary sends all parameters that differ from
        // them.
        let defaults = if must_obey(ctx) { Params::default() } else { config::counting_defaults() };
        let params = Params {
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            exact_limit: options.exact_limit.map_or(defaults.exact_limit, narrow),
            exact_bytes: options.exact_bytes.map_or(defaults.exact_bytes, narrow),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        params.validate().map_err(|error| options.as_given(error))?;
        let first = |window: Window| options.slice.unwrap_or_else(|| window.first_slice(ctx.now_seconds()));
        Ok(Creation { params, window: windows::counter_window(options)?.map(|window| (window, first(window))) })
    }

    fn build(creation: &Creation, _limit: &ServerLimit) -> Result<Self, Error> {
        let counter = Counter::new(creation.params)?;
        match creation.window {
            None => Ok(counter),
            Some((window, slice)) => counter.with_window(window, slice),
        }
    }

    fn words(creation: &Creation) -> String {
        let Params { error_rate, exact_limit, exact_bytes, seed } = creation.params;
        let window = creation.window.map_or(String::new(), |(window, slice)| windows::words(&window, false, slice));
        format!("ERROR {error_rate:?} EXACT {exact_limit} BYTES {exact_bytes} SEED {seed} {window}")
    }

    fn is_implied(creation: &Creation) -> bool {
        creation.params == Params::default()
    }

    /// Adds items and replies with the number of new items, or with an error if an item is too large. The items before
    /// it stay added.
    fn add_all(ctx: Ctx, live: &mut Live<Self>, items: Items, limit: &ServerLimit, _is_new_key: bool) -> Added {
        let (mut len, mut new) = (0, 0);
        let count = |is_new: bool| (len, new) = (len + 1, new + usize::from(is_new));
        let added = match items.runs() {
            None if items.len == 1 => live.add(items.args.get(0).bytes(), limit).map(count),
            None => live.add_all(items.args.bytes(), limit, count),
            Some(runs) => live.add_all(runs, limit, count),
        };
        if added.is_ok() {
            ctx.reply_integer(new as i64);
        }
        Added { items: AddedItems::First(len), new, error: added.err().map(CommandError::from) }
    }

    /// Rejects a `LIMIT` above the counter's `EXACT` limit, which could never be reached.
    fn check_limit(&self, limit: u64, is_new_key: bool) -> Result<(), CommandError> {
        let exact_limit = self.params().exact_limit;
        if limit <= u64::from(exact_limit) {
            return Ok(());
        }
        let way_out = match (limit <= u64::from(Params::MAX_EXACT_LIMIT), is_new_key) {
            (true, true) => format!("give EXACT {limit} in each call, or use a filter's ADMIT"),
            (true, false) => format!("create one with EXACT {limit} and LC.MERGE into it, or use a filter's ADMIT"),
            (false, _) => format!("use a filter's ADMIT, since EXACT is at most {}", Params::MAX_EXACT_LIMIT),
        };
        bad(format!("bad limit: LIMIT {limit} is above the counter's EXACT limit of {exact_limit}: {way_out}"))
    }

    fn look_up(&self, time: Time, since: Option<u64>, items: Items, mut found: impl FnMut(bool)) -> Result<(), Error> {
        let view = since.map_or_else(|| Ok(self.at(time)), |seconds| self.since(seconds, time))?;
        // An estimating counter cannot answer for any item, unless all its members have expired.
        drop(view.members()?);
        let look_up = |item: &[u8]| {
            found(view.is_exact() && view.contains(item)?);
            Ok(())
        };
        match items.runs() {
            None => items.args.bytes().try_for_each(look_up),
            Some(mut runs) => runs.try_for_each(look_up),
        }
    }

    fn union(first: &Self, others: &[&Self], limit: &ServerLimit) -> Result<Self, Error> {
        Counter::union(first, others, limit)
    }

    fn emptied(&self) -> Result<Option<Self>, Error> {
        (!self.is_empty()).then(|| self.new_like()).transpose()
    }

    fn dispose((): ()) {}
}

/// Creates an empty counter: `LC.RESERVE key [ERROR rate] [EXACT limit] [BYTES bytes] [SEED n]
/// [WINDOW seconds [MANUAL] [SLICES g]] [EX s | PX ms | EXAT s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let options = args::options(ctx, args, 2, &[PARAMETERS, windows::OF_COUNTERS, args::EXPIRY])?;
    windows::check_reservation(ctx, &options)?;
    changes::reserve::<Counter>(ctx, args, &Counter::creation(ctx, args, &options)?, options.expiry)
}

/// Replies with the number of distinct members of one counter, or of the union of several: `LC.COUNT key [key ...]`
pub fn count(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if args.len() == 2 {
        let key = ctx.open(args.get(1), Mode::Read)?;
        let count = value::<Counter>(&key)?.map_or(0, |counter| counter.at(time_of(ctx, [counter])).count());
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
    let options = args::options(ctx, args, 2, &[&[Opt::Since, Opt::WithAges]])?;
    let key = ctx.open(args.get(1), Mode::Read)?;
    let Some(counter) = value::<Counter>(&key)? else {
        ctx.reply_array(0);
        return Ok(());
    };
    let now = time_of(ctx, [counter]);
    if options.has(Opt::WithAges) && counter.window().is_none() {
        return Err(windows::no_window(counter, args.get(1), "leave WITHAGES out"));
    }
    let view = sets::view(counter, args.get(1), options.since, now, NO_SINCE)?;
    if options.has(Opt::WithAges) {
        sets::reply_members_with_ages(ctx, &view.members_with_ages(now)?);
    } else {
        sets::reply_members(ctx, view.count() as usize, view.members()?);
    }
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
    let at = CounterAt::new(counter, time_of(ctx, [counter]));
    info::info(ctx, args, Kind::Counter, &OF_COUNTERS, OF_COUNTERS.len(), |of| of(&at))
}
