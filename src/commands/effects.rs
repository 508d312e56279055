//! What a command did, for replicas, the AOF and subscribers.

use crate::server::ffi::{ArgOrOwned, Args, Closed, Ctx};
use crate::types::names::{Prefix, Verb};
use rollcall_core::admission::Admission;

/// A word of a replicated command.
pub(super) fn word(ctx: Ctx, text: impl AsRef<[u8]>) -> ArgOrOwned<'static> {
    ArgOrOwned::Owned(ctx.string(text.as_ref()))
}

/// The effect of adding items: what is replicated, and which events are sent.
pub(super) struct Added<'a, P> {
    /// Whose commands replicas are told of.
    pub(super) prefix: Prefix,
    pub(super) key: Closed<'a>,
    /// Which command is running.
    pub(super) verb: Verb,
    /// All arguments of it.
    pub(super) command: Args<'a>,
    pub(super) items: Args<'a>,
    /// The parameters of the key, if the command created it.
    pub(super) created: Option<P>,
    /// How many items were handled; fewer than all when one was refused.
    pub(super) handled: usize,
    /// Whether the value changed.
    pub(super) changed: bool,
    /// Whether the command may be sent as it came: its options [are](crate::args::Options::are_plain).
    pub(super) is_plain: bool,
}

/// What the families that add items differ in.
pub(super) struct AddedWords<P> {
    /// Announces the creation of an empty key.
    pub(super) announce_reserved: fn(&P, Ctx, Closed<'_>),
    /// The prefix of events.
    pub(super) events: fn() -> Prefix,
    /// All parameters, as options that `INSERT` takes.
    pub(super) options: fn(Ctx, &P) -> Vec<ArgOrOwned<'static>>,
    /// When the created key expires, in milliseconds since 1970.
    pub(super) expiry: fn(&P) -> Option<i64>,
}

/// Replicates the effect of adding items, and sends its events. If nothing changed, nothing is sent. A created key is
/// sent with every parameter. Refused items are left out.
pub(super) fn announce<P>(ctx: Ctx, added: &Added<'_, P>, words: &AddedWords<P>) {
    let (prefix, key, events) = (added.prefix, added.key, (words.events)());
    let items = added.items.first(added.handled);
    if let Some(params) = &added.created {
        // A filter with a window gets its memory with its first item. Where that is refused, the empty key stays.
        if items.len() == 0 {
            return (words.announce_reserved)(params, ctx, key);
        }
        let mut arguments = vec![ArgOrOwned::Arg(key.name())];
        arguments.extend((words.options)(ctx, params));
        arguments.push(word(ctx, "ITEMS"));
        ctx.replicate(prefix.name(Verb::Insert).text(), &arguments, items);
        ctx.changed(key, events.event(Verb::Reserve));
    } else if !added.changed {
        return;
    } else if items.len() < added.items.len() || !added.is_plain {
        ctx.replicate(prefix.name(Verb::AddAll).text(), &[ArgOrOwned::Arg(key.name())], items);
    } else {
        ctx.replicate_under(prefix.name(added.verb), added.command);
    }
    if added.changed {
        ctx.changed(key, events.event(Verb::Add));
    }
    announce_expiry(ctx, key, added.created.as_ref().and_then(words.expiry));
}

/// The effect of admitting items.
pub(super) struct Admitted<'a, P> {
    /// Whose commands replicas are told of.
    pub(super) prefix: Prefix,
    pub(super) key: Closed<'a>,
    /// All items of the call, and what became of each.
    pub(super) items: Args<'a>,
    pub(super) told: &'a [Admission],
    /// Whether known items were noted as seen now.
    pub(super) renewed: bool,
    /// The parameters of the key, if the command created it.
    pub(super) created: Option<P>,
}

/// Replicates the items that came in or were renewed, as if these alone had been added, and sends the events. If none
/// was, nothing is sent.
pub(super) fn announce_admitted<P>(ctx: Ctx, admitted: &Admitted<'_, P>, words: &AddedWords<P>) {
    let mut arguments = vec![ArgOrOwned::Arg(admitted.key.name())];
    if let Some(params) = &admitted.created {
        arguments.extend((words.options)(ctx, params));
        arguments.push(word(ctx, "ITEMS"));
    }
    let before = arguments.len();
    let changed = |told: &Admission| match told {
        Admission::Admitted => true,
        Admission::Known => admitted.renewed,
        Admission::Refused => false,
    };
    let items = admitted.items.iter().zip(admitted.told).filter(|(_, told)| changed(told));
    arguments.extend(items.map(|(item, _)| ArgOrOwned::Arg(item)));
    if arguments.len() == before {
        return;
    }
    let verb = if admitted.created.is_some() { Verb::Insert } else { Verb::AddAll };
    ctx.replicate(admitted.prefix.name(verb).text(), &arguments, Args::none());
    let events = (words.events)();
    if admitted.created.is_some() {
        ctx.changed(admitted.key, events.event(Verb::Reserve));
    }
    ctx.changed(admitted.key, events.event(Verb::Add));
    announce_expiry(ctx, admitted.key, admitted.created.as_ref().and_then(words.expiry));
}

/// Replicates the expiry of a key that was created just now, and sends its event.
pub(super) fn announce_expiry(ctx: Ctx, key: Closed<'_>, expiry: Option<i64>) {
    if let Some(at) = expiry {
        ctx.replicate(c"PEXPIREAT", &[ArgOrOwned::Arg(key.name()), word(ctx, at.to_string())], Args::none());
        ctx.notify_generic(key, c"expire");
    }
}
