//! Commands that change a key, generic over filters and counters. Each opens the key, changes its value, and replicates
//! the effects.
//!
//! A change reads the clock only if the value's window follows the system clock. A replicated command never reads it:
//! if a change moves the window, the primary first sends a command that moves it.

use std::iter::once;

use rollcall_core::admission::{Admission, Room, Terms};
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::live::{Live, Outcome, Value};
use rollcall_core::size_limit::SizeLimit;
use rollcall_core::unstable::persist::Payload;
use rollcall_core::unstable::{try_collect, try_collect_ok};
use rollcall_core::window::{Merging, Move, Time};

use super::effects::{Effects, announce, replicate_reserved, with_words};
use super::keyspace::{create, dispose, from_payload, open, value, value_mut, values};
use super::windows::{check_given, expiry_of, time_of};
use crate::args::{self, Items, Opt, Options};
use crate::command_error::{CommandError, bad};
use crate::config;
use crate::limits::ServerLimit;
use crate::reply;
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Args, Closed, Ctx, Key, Mode, NOTIFY_MODULE, OwnedString};
use crate::types::entry::finalize;
use crate::types::family::{Added, AddedItems, Family, change};
use crate::types::names::{Prefix, Verb};
use crate::types::totals::ITEMS;

/// The time at which the running command changes `value`.
#[inline]
fn time_of_change<T: Value>(ctx: Ctx, value: &T) -> Time {
    if value.window().is_none() || must_obey(ctx) { Time::Reached } else { time_of(ctx, [value]) }
}

/// A handle to change `value` at the time of the running command.
#[inline]
fn live<'v, T: Value>(ctx: Ctx, value: &'v mut T) -> Live<'v, T> {
    let time = time_of_change(ctx, value);
    Live::new(value, time)
}

/// Changes a value in place through a handle, and updates the totals for `INFO`. Also returns what the handle did.
pub(super) fn change_live<T: Family, R>(
    ctx: Ctx,
    value: &mut T,
    make: impl FnOnce(&mut Live<'_, T>) -> R,
) -> (R, Outcome<T::Expired>) {
    change(value, |value| {
        let mut live = live(ctx, value);
        (make(&mut live), live.finish())
    })
}

/// Runs `RESERVE`: creates an empty value. It fails if the key exists.
pub(super) fn reserve<T: Family>(
    ctx: Ctx,
    args: Args<'_>,
    creation: &T::Creation,
    expiry: Option<i64>,
) -> Result<(), CommandError> {
    let mut key = open::<T>(ctx, args.get(1), Mode::Write)?;
    if !key.is_missing() {
        return bad("item exists");
    }
    let value = T::build(creation, &ServerLimit::new(ctx))?;
    let prefix = value.prefix();
    let expiry = create(ctx, &mut key, value, expiry);
    let effects = Effects { created: true, expiry, ..Effects::default() };
    announce::<T>(ctx, key, effects, |key| replicate_reserved::<T>(ctx, key, prefix, creation));
    ctx.reply_simple(c"OK");
    Ok(())
}

/// The most bytes of items that are packed into one argument for replicas, unless a single item is longer.
const PACKED_BYTES: usize = 1 << 16;

/// A command that adds items, with the parameters for creating a missing key.
pub(super) struct Addition<'a, T: Family> {
    /// The name of the running command, without its prefix.
    verb: Verb,
    command: Args<'a>,
    items: Items<'a>,
    /// Whether a missing key is created. Otherwise it is an error.
    creates: bool,
    /// The parameters of a missing key; `None` for the defaults.
    given: Option<T::Creation>,
    /// The options, except in a command without options. A key that exists must have their window.
    options: Option<&'a Options>,
}

impl<T: Family> Addition<'_, T> {
    /// Replicates the added items with a command of the prefix `prefix`. `created` has the parameters of a value that
    /// the command created. If possible, the running command is replicated unchanged: without a replica and an AOF, the
    /// server then copies no arguments.
    #[inline]
    fn replicate(&self, ctx: Ctx, key: Closed<'_>, prefix: Prefix, created: Option<&T::Creation>, added: &AddedItems) {
        let items = self.items;
        // RedisBloom may be a replica of filters in its own layout, and does not know WIDTH.
        let width = items.width.filter(|_| prefix != Prefix::Bf);
        let is_packed = width == items.width;
        let is_plain = self.options.is_none_or(Options::are_plain) && created.is_none_or(T::is_implied);
        if matches!(added, &AddedItems::First(len) if is_plain && is_packed && len == items.len) {
            return ctx.replicate_under(prefix.name(self.verb), self.command);
        }
        let copied = match items.width.is_none() || is_packed && (0..items.len).all(|index| added.has(index)) {
            true => Vec::new(),
            false => items.packed(if is_packed { PACKED_BYTES } else { 1 }, |index| added.has(index)),
        };
        let width = width.map(|width| ["WIDTH", &width.to_string()].map(OwnedString::new));
        let kept = if copied.is_empty() { items.args } else { items.args.first(0) };
        let replicate = |verb, words: &[OwnedString]| {
            let words = width.iter().flatten().chain(words).map(OwnedString::as_arg);
            let kept = kept.iter().enumerate().filter(|&(index, _)| added.has(index)).map(|(_, item)| item);
            let items = kept.chain(copied.iter().map(OwnedString::as_arg));
            let arguments: Vec<Arg> = once(key.name()).chain(words).chain(items).collect();
            ctx.replicate(prefix.name(verb).text(), &arguments);
        };
        match created {
            Some(creation) => with_words::<T>(creation, |words| replicate(Verb::Insert, words)),
            None if width.is_some() => replicate(Verb::Insert, &[OwnedString::new("ITEMS")]),
            None => replicate(prefix.add_all(), &[]),
        }
    }
}

/// Opens or creates the key of a command, and calls `add` to add the items and to reply. If `add` returns an error, it
/// has not replied. Its second argument is true for a new key. No key is created if no item was added.
#[inline]
pub(super) fn add<'a, T: Family>(
    ctx: Ctx,
    addition: Addition<'a, T>,
    limit: &ServerLimit,
    add: impl FnOnce(&mut Live<'_, T>, bool) -> Added,
) -> Result<Closed<'a>, CommandError> {
    let mut key = ctx.open(addition.command.get(1), Mode::Write)?;
    let value = match value_mut::<T>(&mut key) {
        // `must_obey` is called only for this error, because it takes as long as a look-up of a key.
        Err(CommandError::StillLoading(_)) if must_obey(ctx) => {
            // RedisBloom adds items to a partially loaded filter and acknowledges the command. So a replica must do the
            // same, and takes missing bytes as zeros.
            finalize::<T>(&mut key, true)?;
            value_mut::<T>(&mut key)
        }
        value => value,
    };
    let Some(value) = value? else { return add_to_missing(ctx, key, addition, limit, add) };
    if let Some(options) = addition.options
        && options.window.is_some()
        && !must_obey(ctx)
    {
        check_given(value, options)?;
    }
    let before = (!value.takes_in_place(addition.items.len)).then(|| value.share());
    let mut live = live(ctx, value);
    let added = add(&mut live, false);
    let Outcome { before: made, changed, expired, .. } = live.finish();
    match before {
        Some(before) => before.becomes(&value.share()),
        None => ITEMS.add(added.new as u64),
    }
    let prefix = value.prefix();
    // If the window has moved forward, a key with a `VOLATILE` window expires later.
    let expiry = if made == Move::Stay { None } else { expiry_of(ctx, value) };
    if made != Move::Stay {
        T::dispose(expired);
    }
    let effects = Effects { before: made, event: changed.then_some(Verb::Add), expiry, ..Effects::default() };
    let key = announce::<T>(ctx, key, effects, |key| addition.replicate(ctx, key, prefix, None, &added.items));
    added.error.map_or(Ok(key), Err)
}

/// Creates the value of a missing key and adds items to it, as [`add`] does. As a branch of `add`, this code would slow
/// down every addition of one item by a seventh.
#[inline(never)]
fn add_to_missing<'a, T: Family>(
    ctx: Ctx,
    mut key: Key<'a>,
    addition: Addition<'a, T>,
    limit: &ServerLimit,
    add: impl FnOnce(&mut Live<'_, T>, bool) -> Added,
) -> Result<Closed<'a>, CommandError> {
    if !addition.creates {
        return Err(CommandError::NotFound);
    }
    let default = || T::creation(ctx, addition.command, &Options::default());
    let creation = addition.given.map_or_else(default, Ok)?;
    let mut value = T::build(&creation, limit)?;
    let before = value.share();
    // The window of a new value begins at the present slice, so it does not have to move.
    let mut live = Live::new(&mut value, Time::Reached);
    let added = add(&mut live, true);
    let changed = live.finish().changed;
    if !changed && !matches!(added.items, AddedItems::First(1..)) {
        return added.error.map_or(Ok(key.close()), Err);
    }
    // `create` adds the new value to the totals for `INFO`. Here only events are counted: a counter's promotion to an
    // estimate, and a filter's growth.
    before.count_events(&value.share());
    let prefix = value.prefix();
    let expiry = create(ctx, &mut key, value, addition.options.and_then(|options| options.expiry));
    let effects = Effects { created: true, event: changed.then_some(Verb::Add), expiry, ..Effects::default() };
    let key = announce::<T>(ctx, key, effects, |key| match changed {
        true => addition.replicate(ctx, key, prefix, Some(&creation), &added.items),
        false => replicate_reserved::<T>(ctx, key, prefix, &creation),
    });
    added.error.map_or(Ok(key), Err)
}

/// The [`Addition`] for an `ADD` or `MADD`. A missing key is created with the default parameters, unless the option
/// `auto-create` forbids it. A replicated command always creates the key, because its primary did.
#[inline]
pub(super) fn to_default<'a, T: Family>(ctx: Ctx, verb: Verb, command: Args<'a>) -> Addition<'a, T> {
    let creates = config::auto_create() || must_obey(ctx);
    Addition { verb, command, items: Items::single(command.from(2)), creates, given: None, options: None }
}

/// The [`Addition`] for a command with these options.
fn to_given<'a, T: Family>(
    command: Args<'a>,
    creation: T::Creation,
    options: &'a Options,
) -> Result<Addition<'a, T>, CommandError> {
    let (items, creates) = (options.items(command)?, !options.has(Opt::NoCreate));
    Ok(Addition { verb: Verb::Insert, command, items, creates, given: Some(creation), options: Some(options) })
}

fn add_all<T: Family>(ctx: Ctx, addition: Addition<'_, T>) -> Result<(), CommandError> {
    let (items, limit) = (addition.items, ServerLimit::new(ctx));
    add(ctx, addition, &limit, |live, is_new_key| T::add_all(ctx, live, items, &limit, is_new_key)).map(drop)
}

/// Runs `MADD key item [item ...]` or `LC.ADD`: adds items, and creates a missing key with the defaults.
pub(super) fn madd<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    add_all(ctx, to_default::<T>(ctx, T::OWN_PREFIX.add_all(), args))
}

/// Runs `INSERT key [options] ITEMS item [item ...]`: adds items, and creates a missing key with these options.
pub(super) fn insert<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let (creation, options) = T::insertion(ctx, args)?;
    add_all(ctx, to_given::<T>(args, creation, &options)?)
}

/// Runs `ADMIT key LIMIT n [ALL] [DRYRUN] [WITHROOM] [options of INSERT] ITEMS item [item ...]`: adds new items while
/// the value has fewer than `n`.
pub(super) fn admit<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let allowed = [&[args::ADMISSION], T::INSERT_OPTIONS].concat();
    let (creation, options) = T::given(ctx, args, &allowed)?;
    let Some(most) = options.limit else { return bad("option LIMIT is missing: give it before ITEMS") };
    let terms = Terms { limit: most, all: options.has(Opt::All), dry_run: options.has(Opt::DryRun) };
    let (addition, limit) = (to_given::<T>(args, creation, &options)?, ServerLimit::new(ctx));
    let items = addition.items;
    let mut rejections = 0;
    let key = add(ctx, addition, &limit, |live, is_new_key| {
        let checked = T::check_limit(live.value(), most, is_new_key);
        let now = options.has(Opt::WithRoom).then(|| time_of(ctx, [live.value()]));
        let answered = checked.and_then(|()| match items.runs() {
            None => Ok(answers_of(live, items.args.bytes(), terms, now, &limit)?),
            Some(runs) => {
                limit.check(0, (items.len as u64).saturating_mul(Admission::TABLE_BYTES))?;
                Ok(answers_of(live, runs, terms, now, &limit)?)
            }
        });
        let (answers, room) = match answered {
            Ok(answered) => answered,
            Err(error) => return Added { items: AddedItems::First(0), new: 0, error: Some(error) },
        };
        reply::admissions(ctx, &answers, room, items.width.is_some());
        let renews = !is_new_key && live.value().renews();
        let count = |which| if terms.dry_run { 0 } else { answers.iter().filter(|&&one| one == which).count() };
        rejections = count(reply::REJECTED) as u64;
        let new = count(reply::YES);
        Added { items: AddedItems::Admitted { answers, renews }, new, error: None }
    })?;
    if rejections > 0 {
        T::ITEMS_REJECTED.add(rejections);
        ctx.notify(NOTIFY_MODULE, key, T::prefix_of_events().event(Verb::Admit));
    }
    Ok(())
}

/// Admits `items`. Returns an answer for each, and with a time `now` the room that is left then.
fn answers_of<'i, T: Value>(
    live: &mut Live<'_, T>,
    items: impl ExactSizeIterator<Item = &'i [u8]> + Clone,
    terms: Terms,
    now: Option<Time>,
    limit: &ServerLimit,
) -> Result<(Vec<u8>, Option<Room>), Error> {
    let (reported, room) = match now {
        None => (live.admit(items, terms, limit)?, None),
        Some(now) => live.admit_with_room(items, terms, now, limit).map(|(reported, room)| (reported, Some(room)))?,
    };
    // The answers take the memory of the list.
    let answers = reported.into_iter().map(|one| match one {
        Admission::Admitted => reply::YES,
        Admission::Known => reply::NO,
        Admission::Rejected => reply::REJECTED,
    });
    Ok((answers.collect(), room))
}

/// Runs `LC.REM key member [member ...]`: removes members of an exact counter. Only the removed members are replicated.
pub(super) fn remove(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let (members, mut key) = (args.from(2), ctx.open(args.get(1), Mode::Write)?);
    let Some(counter) = value_mut::<Counter>(&mut key)? else {
        ctx.reply_integer(0);
        return Ok(());
    };
    let (removed, outcome) = change_live(ctx, counter, |live| live.remove(members.bytes()));
    let (removed, before) = (removed?, outcome.before);
    let expiry = if before == Move::Stay { None } else { expiry_of(ctx, counter) };
    let gone = members.iter().zip(&removed).filter(|&(_, &removed)| removed).map(|(member, _)| member);
    let replicated: Vec<Arg> = once(args.get(1)).chain(gone).collect();
    let effects = Effects { before, event: outcome.changed.then_some(Verb::Remove), expiry, ..Effects::default() };
    announce::<Counter>(ctx, key, effects, |_| ctx.replicate(Prefix::Lc.name(Verb::Remove).text(), &replicated));
    ctx.reply_integer(replicated.len() as i64 - 1);
    Ok(())
}

/// Runs `MERGE destination source [source ...]`: makes the destination the union of itself and the sources.
pub(super) fn merge<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let mut destination = open::<T>(ctx, args.get(1), Mode::Write)?;
    // The destination as a source of itself changes nothing.
    let names = args.from(2).iter().filter(|name| name.bytes() != args.get(1).bytes());
    let source_keys = names.map(|name| ctx.open(name, Mode::Read).map_err(CommandError::from));
    let source_keys = try_collect_ok(args.len() - 2, source_keys)?;
    let (sources, limit) = (values::<T>(&source_keys)?, ServerLimit::new(ctx));
    let united = unite(ctx, args, &mut destination, &sources, &limit, |live| live.merge(&sources, &limit))?;
    drop(source_keys);
    united.announce(ctx, args, destination, Verb::Merge);
    Ok(())
}

/// Runs `MERGEDUMP destination payload [payload ...]`, which is [`merge`] with sources given by value. All payloads are
/// read before anything changes.
pub(super) fn merge_dump<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let limit = ServerLimit::new(ctx);
    let mut destination = open::<T>(ctx, args.get(1), Mode::Write)?;
    // A missing destination becomes a copy of the first value, which has to be whole.
    let apart = value::<T>(&destination)?.is_some();
    let read = args.from(2).bytes().zip(1..).map(|argument| {
        let mut payload = Payload::default();
        Ok((from_payload::<T>(argument, apart.then_some(&mut payload), &limit)?, payload))
    });
    let read = try_collect_ok::<_, CommandError>(args.len() - 2, read)?;
    let sources = try_collect(read.len(), read.iter().map(|(value, _)| value))?;
    let united = unite(ctx, args, &mut destination, &sources, &limit, |live| live.merge_apart(&read, &limit));
    let united = united.map_err(|error| differing(ctx, &destination, &sources).unwrap_or(error))?;
    drop(sources);
    // Of a filter without its bits, little is left to free.
    read.into_iter().filter(|(_, payload)| payload.is_empty()).for_each(|(value, _)| dispose(value));
    united.announce(ctx, args, destination, Verb::MergeDump);
    Ok(())
}

/// The error for the first of `payloads` that cannot be merged into the destination, or with the first payload if the
/// key is missing. `None` if a merge failed for another reason.
fn differing<T: Family>(ctx: Ctx, destination: &Key<'_>, payloads: &[&T]) -> Option<CommandError> {
    let base = value::<T>(destination).ok()?.or(payloads.first().copied())?;
    // The value with the longest chain of sub-filters so far.
    let mut longest = base;
    payloads.iter().zip(1..).find_map(|(&payload, number)| {
        let checked = longest.check_mergeable(payload);
        longest = if payload.num_bytes() > longest.num_bytes() { payload } else { longest };
        let checked = checked.and_then(|()| base.merging(&[payload], time_of_change(ctx, base)));
        Some(CommandError::in_payload(number, checked.err()?))
    })
}

/// What a merge did to its destination.
struct United<T: Family> {
    effects: Effects,
    prefix: Prefix,
    /// The parameters of a destination that was created empty, because neither it nor a source existed.
    reserved: Option<T::Creation>,
    expired: T::Expired,
}

/// Makes the value of `destination` the union of itself and `sources`. If it exists, `merge` merges these.
fn unite<T: Family>(
    ctx: Ctx,
    args: Args<'_>,
    destination: &mut Key<'_>,
    sources: &[&T],
    limit: &ServerLimit,
    merge: impl FnOnce(&mut Live<'_, T>) -> Result<bool, Error>,
) -> Result<United<T>, CommandError> {
    let (mut reserved, mut outcome) = (None, Outcome::<T::Expired>::default());
    let (prefix, expiry) = match (value_mut::<T>(destination)?, sources.split_first()) {
        (Some(value), _) => {
            let newest = value.newest_slice();
            let merged;
            (merged, outcome) = change_live(ctx, value, merge);
            merged?;
            // The merge may have moved the window forward to the newest slice of the sources.
            let has_moved = newest != value.newest_slice();
            (value.prefix(), if has_moved { expiry_of(ctx, value) } else { None })
        }
        (None, Some((&first, others))) => {
            let Merging { after, .. } = first.merging(sources, time_of_change(ctx, first))?;
            let mut union = T::union(first, others, limit)?;
            union.make(after);
            (outcome.changed, outcome.after) = (true, after);
            (union.prefix(), create(ctx, destination, union, None))
        }
        (None, None) => {
            let creation = T::creation(ctx, args, &Options::default())?;
            let value = T::build(&creation, limit)?;
            reserved = Some(creation);
            (value.prefix(), create(ctx, destination, value, None))
        }
    };
    let Outcome { before, changed, after, expired } = outcome;
    let event = (changed || reserved.is_some()).then_some(Verb::Merge);
    Ok(United { effects: Effects { before, created: false, event, after, expiry }, prefix, reserved, expired })
}

impl<T: Family> United<T> {
    /// Sets the expiry, replicates the merge, sends its events and replies. `verb` is the command's.
    fn announce(self, ctx: Ctx, args: Args<'_>, key: Key<'_>, verb: Verb) {
        T::dispose(self.expired);
        announce::<T>(ctx, key, self.effects, |key| match self.reserved {
            Some(creation) => replicate_reserved::<T>(ctx, key, self.prefix, &creation),
            None => ctx.replicate_under(self.prefix.name(verb), args),
        });
        ctx.reply_simple(c"OK");
    }
}

/// Runs `CLEAR key`: empties a value, and keeps its parameters and its expiry.
pub(super) fn clear<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let mut key = ctx.open(args.get(1), Mode::Write)?;
    let value = value_mut::<T>(&mut key)?.ok_or(CommandError::NotFound)?;
    // A new value is cheaper than clearing the old one: new memory is zeroed already, and the old value is freed in the
    // background.
    if let Some(empty) = value.emptied()? {
        dispose(change(value, |value| std::mem::replace(value, empty)));
        ctx.replicate_under(value.prefix().name(Verb::Clear), args);
        ctx.changed(key.close(), T::prefix_of_events().event(Verb::Clear));
    }
    ctx.reply_simple(c"OK");
    Ok(())
}
