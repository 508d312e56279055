//! Sends the effects of a command to replicas and the AOF, and its events to subscribers of keyspace events.

use std::iter::once;
use std::sync::{Mutex, PoisonError};

use rollcall_core::error::Error;
use rollcall_core::window::Move;

use crate::args::Options;
use crate::command_error::CommandError;
use crate::limits::ServerLimit;
use crate::server::ffi::{Arg, Args, Closed, Ctx, OwnedString};
use crate::types::family::Family;
use crate::types::names::{Prefix, Verb};

/// A cache of the parameters of the last created value, and of their words as options of `INSERT`. It saves formatting,
/// because most values are created with the same parameters.
pub(super) type LastWords<C> = Mutex<Option<(C, Vec<OwnedString>)>>;

/// The parameters with which a command creates a value of family `T`.
pub(super) trait Creating<T: Family>: PartialEq + Sized + 'static {
    /// The cache of the last parameters and their words.
    const LAST_WORDS: &'static LastWords<Self>;

    /// Returns the configured default parameters for a value that the running command creates. `command` are all its
    /// arguments.
    fn defaults(ctx: Ctx, command: Args<'_>) -> Self;

    /// Returns the parameters from `options`. Missing options are taken from the defaults.
    ///
    /// # Errors
    /// An option that is out of range, or that does not go with another one.
    fn from_options(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError>;

    /// Returns these parameters without the expiry, which is replicated as a command of its own.
    fn without_expiry(&self) -> Self;

    /// Builds an empty value with these parameters.
    ///
    /// # Errors
    /// The errors of the core library: a parameter is out of range, or the value is larger than `limit` allows.
    fn build(&self, limit: &ServerLimit) -> Result<T, Error>;

    /// Returns the prefix (RF, BF or LC) of the commands by which the value is sent to replicas and the AOF.
    fn prefix(&self) -> Prefix;

    /// Returns the time at which the key expires, in milliseconds since 1970; `None` if the key does not expire.
    fn expiry(&self) -> Option<i64>;

    /// Returns the error rate and the capacity, which are positional arguments of `BF.RESERVE`; `None` for counters.
    fn size(&self) -> Option<(f64, u64)>;

    /// Returns all parameters that [`Self::size`] does not return, as option words of `RESERVE` and `INSERT` with
    /// spaces between them.
    fn options(&self) -> String;

    /// Whether the running command, sent unchanged, makes a replica or the AOF create a value with these parameters. A
    /// replica uses the library's own defaults for missing options. So no later version may change these defaults.
    fn is_implied(&self) -> bool;

    /// Calls `with` with all parameters as option words of `INSERT`, first `CAPACITY` and `ERROR` if there is a
    /// [`Self::size`]. The last word is `ITEMS`.
    fn with_words(&self, ctx: Ctx, with: impl FnOnce(&[OwnedString])) {
        let creation = self.without_expiry();
        let mut last = Self::LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(like, _)| *like != creation) {
            let size = self.size().map(|(error_rate, capacity)| format!("CAPACITY {capacity} ERROR {error_rate:?}"));
            let words = format!("{} {} ITEMS", size.unwrap_or_default(), self.options());
            *last = Some((creation, words.split_ascii_whitespace().map(|word| ctx.string(word)).collect()));
        }
        with(last.as_ref().map_or(&[], |(_, words)| words));
    }

    /// Replicates the creation of an empty value, and sends its keyspace event.
    fn announce_reserved(&self, ctx: Ctx, key: Closed<'_>) {
        self.with_words(ctx, |words| {
            // The size comes first, without the words `CAPACITY` and `ERROR`. No items follow.
            let (size, options): (&[usize], _) = if self.size().is_some() { (&[3, 1], 4) } else { (&[], 0) };
            let words = size.iter().map(|&at| &words[at]).chain(&words[options..words.len() - 1]);
            let arguments: Vec<Arg> = once(key.name()).chain(words.map(OwnedString::as_arg)).collect();
            ctx.replicate(self.prefix().name(Verb::Reserve).text(), &arguments);
        });
        ctx.changed(key, T::prefix_of_events().event(Verb::Reserve));
        announce_expiry(ctx, key, self.expiry());
    }
}

/// Replicates the move `made` of a window as an `ADVANCE` command with the given prefix. Does nothing for
/// [`Move::Stay`].
pub(super) fn announce_move(ctx: Ctx, prefix: Prefix, key: Closed<'_>, made: Move) {
    let (slice, rebases) = match made {
        Move::Stay => return,
        Move::Advance(slice) => (slice, false),
        Move::Rebase(slice) => (slice, true),
    };
    let words = [ctx.string(&slice.to_string()), ctx.string("REBASE")];
    let arguments = [key.name(), words[0].as_arg(), words[1].as_arg()];
    let arguments = if rebases { &arguments } else { &arguments[..2] };
    ctx.replicate(prefix.name(Verb::Advance).text(), arguments);
}

/// An addition of items to a key, as it is replicated.
pub(super) struct Added<'a, C> {
    /// The prefix (RF, BF or LC) of the commands by which the value is sent to replicas and the AOF.
    pub(super) prefix: Prefix,
    pub(super) key: Closed<'a>,
    /// The parameters of the value, if the command created it.
    pub(super) created: Option<C>,
    /// The name and all arguments of the running command, if it may be replicated unchanged.
    pub(super) whole: Option<(Verb, Args<'a>)>,
    /// The items to replicate if `whole` is `None`: those in `some`, followed by those in `items`.
    pub(super) some: Vec<Arg<'a>>,
    pub(super) items: Args<'a>,
}

/// Replicates an addition of items, and sends its keyspace events. If the command created the key, all parameters are
/// replicated too, unless the unchanged command leads to the same parameters. Replicating the unchanged command is
/// cheapest: without a replica and an AOF, the server copies nothing.
pub(super) fn announce_added<T: Family, C: Creating<T>>(ctx: Ctx, added: Added<'_, C>) {
    let Added { prefix, key, created, whole, some, items } = added;
    let events = T::prefix_of_events();
    if let Some((verb, command)) = whole {
        ctx.replicate_under(prefix.name(verb), command);
    } else if let Some(creation) = &created {
        creation.with_words(ctx, |words| {
            let words = words.iter().map(OwnedString::as_arg);
            let arguments: Vec<Arg> = once(key.name()).chain(words).chain(some).chain(items.iter()).collect();
            ctx.replicate(prefix.name(Verb::Insert).text(), &arguments);
        });
    } else {
        let arguments: Vec<Arg> = once(key.name()).chain(some).chain(items.iter()).collect();
        ctx.replicate(prefix.name(Verb::AddAll).text(), &arguments);
    }
    if created.is_some() {
        ctx.changed(key, events.event(Verb::Reserve));
    }
    ctx.changed(key, events.event(Verb::Add));
    announce_expiry(ctx, key, created.and_then(|creation| creation.expiry()));
}

/// Replicates the new expiry of a key and sends its keyspace event. `expiry` is in milliseconds since 1970; nothing
/// happens if it is `None`.
#[inline]
pub(super) fn announce_expiry(ctx: Ctx, key: Closed<'_>, expiry: Option<i64>) {
    // Most additions set no expiry, so they only make this comparison.
    #[cold]
    fn announce(ctx: Ctx, key: Closed<'_>, at: i64) {
        ctx.replicate(c"PEXPIREAT", &[key.name(), ctx.string(&at.to_string()).as_arg()]);
        ctx.notify_generic(key, c"expire");
    }
    if let Some(at) = expiry {
        announce(ctx, key, at);
    }
}
