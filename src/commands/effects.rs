//! Sends the effects of a command: first to replicas and the AOF, then as keyspace events. A module that subscribes to
//! events may change the key. This order ensures that its change is replicated after the effects of the command.

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

/// A cache of the parameters of the last created value, formatted as options of `INSERT`. It saves formatting, because
/// most values are created with the same parameters.
pub(super) type LastWords<C> = Mutex<Option<(C, Vec<OwnedString>)>>;

/// The parameters with which a command creates a value of family `T`.
pub(super) trait Creating<T: Family>: PartialEq + Copy + 'static {
    /// The cache of [`Self::with_words`].
    const LAST_WORDS: &'static LastWords<Self>;

    /// Returns the configured default parameters for a value that the running command creates. `command` has all
    /// arguments of the command.
    fn defaults(ctx: Ctx, command: Args<'_>) -> Self;

    /// Returns the parameters from `options`. Missing options are taken from the defaults.
    ///
    /// # Errors
    /// An option is out of range, or contradicts another option.
    fn from_options(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError>;

    /// Builds an empty value with these parameters.
    ///
    /// # Errors
    /// A parameter is out of range, or the value is larger than `limit` allows.
    fn build(&self, limit: &ServerLimit) -> Result<T, Error>;

    /// Returns the error rate and the capacity, which are positional arguments of `BF.RESERVE`; `None` for counters.
    fn size(&self) -> Option<(f64, u64)> {
        None
    }

    /// Returns all parameters that [`Self::size`] does not return, as option words of `RESERVE` and `INSERT` with
    /// spaces between them.
    fn options(&self) -> String;

    /// Whether a replica creates a value with these parameters if it gets the client's command without changes. A
    /// replica uses the library's defaults for missing options. So no later version may change these defaults.
    fn is_implied(&self) -> bool;

    /// Calls `with` with all parameters as option words of `INSERT`. If there is a [`Self::size`], `CAPACITY` and
    /// `ERROR` come first. The last word is `ITEMS`.
    fn with_words(&self, with: impl FnOnce(&[OwnedString])) {
        let mut last = Self::LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(like, _)| like != self) {
            let size = self.size().map(|(error_rate, capacity)| format!("CAPACITY {capacity} ERROR {error_rate:?}"));
            let words = format!("{} {} ITEMS", size.unwrap_or_default(), self.options());
            *last = Some((*self, words.split_ascii_whitespace().map(OwnedString::new).collect()));
        }
        with(last.as_ref().map_or(&[], |(_, words)| words));
    }

    /// Replicates the creation of an empty value as a `RESERVE` command with the given prefix.
    fn replicate_reserved(&self, ctx: Ctx, key: Closed<'_>, prefix: Prefix) {
        self.with_words(|words| {
            // `RESERVE` has the error rate and the capacity first, without the words `ERROR` and `CAPACITY`. It has no
            // items.
            let (size, options): (&[usize], _) = if self.size().is_some() { (&[3, 1], 4) } else { (&[], 0) };
            let words = size.iter().map(|&at| &words[at]).chain(&words[options..words.len() - 1]);
            let arguments: Vec<Arg> = once(key.name()).chain(words.map(OwnedString::as_arg)).collect();
            ctx.replicate(prefix.name(Verb::Reserve).text(), &arguments);
        });
    }
}

/// The effects of a command on a key, which replicas and subscribers of events must learn of.
#[derive(Default)]
pub(super) struct Effects {
    /// The move of the window that was made before the value was changed.
    pub(super) before: Move,
    /// Whether the command created the value. For a merge it is false, even if the merge created the value.
    pub(super) created: bool,
    /// The keyspace event of the change; `None` if nothing or only the window changed.
    pub(super) event: Option<Verb>,
    /// The move of the window that was made after the value was changed.
    pub(super) after: Move,
    /// The new expiry of the key in milliseconds since 1970, if the command set one.
    pub(super) expiry: Option<i64>,
}

/// Replicates the effects of a command on a key, then sends their keyspace events. `replicate` is called only if the
/// command created or changed the value, and replicates this change.
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

/// Replicates the move `made` of a window as an `ADVANCE` command. Does nothing for [`Move::Stay`].
fn replicate_move<T: Family>(ctx: Ctx, key: Closed<'_>, made: Move) {
    let (slice, rebases) = match made {
        Move::Stay => return,
        Move::Advance(slice) => (slice, false),
        Move::Rebase(slice) => (slice, true),
    };
    let words = [OwnedString::new(&slice.to_string()), OwnedString::new("REBASE")];
    let arguments = [key.name(), words[0].as_arg(), words[1].as_arg()];
    let arguments = if rebases { &arguments } else { &arguments[..2] };
    ctx.replicate(T::OWN_PREFIX.name(Verb::Advance).text(), arguments);
}

/// Replicates the new expiry of a key. Most commands set no expiry, so this function is not inlined.
#[cold]
fn replicate_expiry(ctx: Ctx, key: Closed<'_>, at: i64) {
    ctx.replicate(c"PEXPIREAT", &[key.name(), OwnedString::new(&at.to_string()).as_arg()]);
}

/// Counts the move `made` of a window in the metrics, and sends its keyspace event. Does nothing for [`Move::Stay`].
fn notify_move<T: Family>(ctx: Ctx, key: Closed<'_>, made: Move) {
    if made != Move::Stay {
        T::ADVANCES.count();
        ctx.changed(key, T::prefix_of_events().event(Verb::Advance));
    }
}
