//! Sends the effects of a command: first to replicas and the AOF, then as keyspace events. A module that receives an
//! event may change the key, and its change must be replicated later.

use std::iter::once;
use std::sync::{Mutex, PoisonError};

use rollcall_core::error::Error;
use rollcall_core::window::Move;

use crate::args::Options;
use crate::command_error::CommandError;
use crate::limits::ServerLimit;
use crate::server::ffi::{Arg, Args, Closed, Ctx, NOTIFY_GENERIC, OwnedString};
use crate::types::family::Family;
use crate::types::names::{Prefix, Verb};

/// The parameters of the last created value, formatted as options of `INSERT`. Most values are created with the same
/// parameters, so this cache saves formatting.
pub(super) type LastWords<C> = Mutex<Option<(C, Vec<OwnedString>)>>;

/// The parameters with which a command creates a value of family `T`.
pub(super) trait Creating<T: Family>: PartialEq + Copy + 'static {
    /// The cache of [`Self::with_words`].
    const LAST_WORDS: &'static LastWords<Self>;

    /// The parameters of a key that a command without options creates. For a filter, the name of
    /// the command decides the layout: it is the first of the arguments `command`.
    fn defaults(ctx: Ctx, command: Args<'_>) -> Self;

    /// The parameters from `options`, with the defaults for missing options.
    ///
    /// # Errors
    /// An option is out of range, or contradicts another option.
    fn from_options(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError>;

    /// Builds an empty value with these parameters.
    ///
    /// # Errors
    /// A parameter is out of range, or the value is larger than `limit` allows.
    fn build(&self, limit: &ServerLimit) -> Result<T, Error>;

    /// The error rate and the capacity, which are positional arguments of `BF.RESERVE`; `None` for counters.
    fn size(&self) -> Option<(f64, u64)> {
        None
    }

    /// All parameters other than error rate and capacity, as options of `INSERT` with spaces between the words.
    fn options(&self) -> String;

    /// Whether a replica would create a value with these parameters if it ran the client's command unchanged. For
    /// missing options, a replica uses the library's defaults, which no later version may change.
    fn is_implied(&self) -> bool;

    /// Calls `with` with the words of an `INSERT` between its key and its items: `CAPACITY` and `ERROR` with their
    /// values (not for counters), the other options, and `ITEMS`.
    fn with_words(&self, with: impl FnOnce(&[OwnedString])) {
        let mut last = Self::LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(like, _)| like != self) {
            let size = self.size().map(|(error_rate, capacity)| format!("CAPACITY {capacity} ERROR {error_rate:?}"));
            let words = format!("{} {} ITEMS", size.unwrap_or_default(), self.options());
            *last = Some((*self, words.split_ascii_whitespace().map(OwnedString::new).collect()));
        }
        with(last.as_ref().map_or(&[], |(_, words)| words));
    }

    /// Replicates the creation of an empty value as a `RESERVE`.
    fn replicate_reserved(&self, ctx: Ctx, key: Closed<'_>, prefix: Prefix) {
        self.with_words(|words| {
            // `RESERVE` takes the error rate (word 3) and then the capacity (word 1) without their names, and no
            // `ITEMS`.
            let (size, options): (&[usize], _) = if self.size().is_some() { (&[3, 1], 4) } else { (&[], 0) };
            let words = size.iter().map(|&at| &words[at]).chain(&words[options..words.len() - 1]);
            let arguments: Vec<Arg> = once(key.name()).chain(words.map(OwnedString::as_arg)).collect();
            ctx.replicate(prefix.name(Verb::Reserve).text(), &arguments);
        });
    }
}

/// What replicas and subscribers of events must learn of a command.
#[derive(Default)]
pub(super) struct Effects {
    /// How the window moved before the value was changed.
    pub(super) before: Move,
    /// Whether the command created the value; always false for a merge.
    pub(super) created: bool,
    /// The keyspace event of the change; `None` if nothing or only the window changed.
    pub(super) event: Option<Verb>,
    /// How the window moved after the value was changed.
    pub(super) after: Move,
    /// The new expiry of the key in milliseconds since 1970, if the command set one.
    pub(super) expiry: Option<i64>,
}

/// Replicates the effects of a command on a key, then sends keyspace events. `replicate` replicates the change of the
/// value. It is called only if there is a change.
#[inline]
pub(super) fn announce<T: Family>(ctx: Ctx, key: Closed<'_>, effects: Effects, replicate: impl FnOnce()) {
    let Effects { before, created, event, after, expiry } = effects;
    replicate_move::<T>(ctx, key, before);
    if created || event.is_some() {
        replicate();
    }
    replicate_move::<T>(ctx, key, after);
    if let Some(at) = expiry {
        replicate_expiry(ctx, key, at);
    }
    notify_move::<T>(ctx, key, before);
    for verb in created.then_some(Verb::Reserve).into_iter().chain(event) {
        ctx.changed(key, T::prefix_of_events().event(verb));
    }
    notify_move::<T>(ctx, key, after);
    if expiry.is_some() {
        ctx.notify(NOTIFY_GENERIC, key, c"expire");
    }
}

/// Replicates a move of the window to another slice, as an `ADVANCE` command.
fn replicate_move<T: Family>(ctx: Ctx, key: Closed<'_>, made: Move) {
    let (slice, rebases) = match made {
        Move::Stay => return,
        Move::Advance(slice) => (slice, false),
        Move::Rebase(slice) => (slice, true),
    };
    let words = [OwnedString::new(slice.to_string()), OwnedString::new("REBASE")];
    let arguments = [key.name(), words[0].as_arg(), words[1].as_arg()];
    let arguments = if rebases { &arguments } else { &arguments[..2] };
    ctx.replicate(T::OWN_PREFIX.name(Verb::Advance).text(), arguments);
}

/// Replicates the new expiry of a key. Not inlined, because few commands set an expiry.
#[cold]
fn replicate_expiry(ctx: Ctx, key: Closed<'_>, at: i64) {
    ctx.replicate(c"PEXPIREAT", &[key.name(), OwnedString::new(at.to_string()).as_arg()]);
}

/// Counts in the metrics that a window moved, and sends the keyspace event.
fn notify_move<T: Family>(ctx: Ctx, key: Closed<'_>, made: Move) {
    if made != Move::Stay {
        T::ADVANCES.count();
        ctx.changed(key, T::prefix_of_events().event(Verb::Advance));
    }
}
