//! What follows a change of a value: the key's new expiry, then the effects for replicas and the AOF, then keyspace
//! events. A module that receives an event may change the key, and its change must be replicated later.

use std::iter::once;
use std::sync::PoisonError;

use rollcall_core::window::Move;

use crate::server::ffi::{Arg, Closed, Ctx, Key, NOTIFY_GENERIC, OwnedString};
use crate::types::family::Family;
use crate::types::names::{Prefix, Verb};

/// Calls `with` with the words of an `INSERT` between its key and its items: the options for these parameters, and
/// `ITEMS`.
pub(super) fn with_words<T: Family>(creation: &T::Creation, with: impl FnOnce(&[OwnedString])) {
    let mut last = T::LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|(like, _)| like != creation) {
        let words = T::words(creation);
        *last = Some((*creation, words.split_ascii_whitespace().chain(["ITEMS"]).map(OwnedString::new).collect()));
    }
    with(last.as_ref().map_or(&[], |(_, words)| words));
}

/// Replicates the creation of an empty value as a `RESERVE`.
pub(super) fn replicate_reserved<T: Family>(ctx: Ctx, key: Closed<'_>, prefix: Prefix, creation: &T::Creation) {
    with_words::<T>(creation, |words| {
        // For filters, `RESERVE` takes the error rate (word 3) and then the capacity (word 1) without their names. It
        // takes no `ITEMS`.
        let (size, options): (&[usize], _) = if prefix == Prefix::Lc { (&[], 0) } else { (&[3, 1], 4) };
        let words = size.iter().map(|&at| &words[at]).chain(&words[options..words.len() - 1]);
        let arguments: Vec<Arg> = once(key.name()).chain(words.map(OwnedString::as_arg)).collect();
        ctx.replicate(prefix.name(Verb::Reserve).text(), &arguments);
    });
}

/// What a command did, for replicas and subscribers of events. The expiry is still to be set.
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
    /// When the key is to expire, in milliseconds since 1970; `None` leaves its expiry as it is.
    pub(super) expiry: Option<i64>,
}

/// Sets the key's new expiry and closes the key. Replicates the effects of a command on the key, then sends keyspace
/// events. `replicate` replicates the change of the value. It is called only if there is a change.
#[inline]
pub(super) fn announce<'k, T: Family>(
    ctx: Ctx,
    mut key: Key<'k>,
    effects: Effects,
    replicate: impl FnOnce(Closed<'k>),
) -> Closed<'k> {
    let Effects { before, created, event, after, expiry } = effects;
    key.set_expiry(expiry);
    let key = key.close();
    replicate_move::<T>(ctx, key, before);
    if created || event.is_some() {
        replicate(key);
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
    key
}

/// Replicates a move of the window to another slice, as an `ADVANCE` command.
fn replicate_move<T: Family>(ctx: Ctx, key: Closed<'_>, made: Move) {
    let (slice, len) = match made {
        Move::Stay => return,
        Move::Advance(slice) => (slice, 2),
        Move::Rebase(slice) => (slice, 3),
    };
    let words = [OwnedString::new(slice.to_string()), OwnedString::new("REBASE")];
    let arguments = [key.name(), words[0].as_arg(), words[1].as_arg()];
    ctx.replicate(T::OWN_PREFIX.name(Verb::Advance).text(), &arguments[..len]);
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
