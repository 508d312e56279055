//! What a command did, for replicas, the AOF and subscribers.

use std::ffi::CStr;

use crate::server::ffi::{Arg, ArgOrOwned, Args, Ctx};
use rollcall_core::admission::Admission;

/// A word of a replicated command.
pub(super) fn word(ctx: Ctx, text: impl AsRef<[u8]>) -> ArgOrOwned<'static> {
    ArgOrOwned::Owned(ctx.string(text.as_ref()))
}

/// The effect of adding items: what is replicated, and which events are sent.
pub(super) struct Added<'a, P> {
    pub(super) key: Arg<'a>,
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

/// The command names and events of a family that adds items.
pub(super) struct AddedWords<P> {
    /// Announces the creation of an empty key.
    pub(super) announce_reserved: fn(&P, Ctx, Arg<'_>),
    /// The command that creates with parameters and adds.
    pub(super) insert: &'static CStr,
    /// The command that adds several items.
    pub(super) add_all: &'static CStr,
    pub(super) reserve_event: &'static CStr,
    pub(super) add_event: &'static CStr,
    /// All parameters, as options that `insert` takes.
    pub(super) options: fn(Ctx, &P) -> Vec<ArgOrOwned<'static>>,
    /// When the created key expires, in milliseconds since 1970.
    pub(super) expiry: fn(&P) -> Option<i64>,
}

/// Replicates the effect of adding items, and sends its events. If nothing changed, nothing is sent. A created key is
/// sent with every parameter. Refused items are left out.
pub(super) fn announce<P>(ctx: Ctx, added: &Added<'_, P>, words: &AddedWords<P>) {
    let items = added.items.first(added.handled);
    if let Some(params) = &added.created {
        // A filter with a window gets its memory with its first item. Where that is refused, the empty key stays.
        if items.len() == 0 {
            return (words.announce_reserved)(params, ctx, added.key);
        }
        let mut arguments = vec![ArgOrOwned::Arg(added.key)];
        arguments.extend((words.options)(ctx, params));
        arguments.push(word(ctx, "ITEMS"));
        ctx.replicate(words.insert, &arguments, items);
        ctx.changed(added.key, words.reserve_event);
    } else if !added.changed {
        return;
    } else if items.len() < added.items.len() || !added.is_plain {
        ctx.replicate(words.add_all, &[ArgOrOwned::Arg(added.key)], items);
    } else {
        ctx.replicate_verbatim();
    }
    if added.changed {
        ctx.changed(added.key, words.add_event);
    }
    announce_expiry(ctx, added.key, added.created.as_ref().and_then(words.expiry));
}

/// The effect of admitting items.
pub(super) struct Admitted<'a, P> {
    pub(super) key: Arg<'a>,
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
    let mut arguments = vec![ArgOrOwned::Arg(admitted.key)];
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
    let command = if admitted.created.is_some() { words.insert } else { words.add_all };
    ctx.replicate(command, &arguments, Args::none());
    if admitted.created.is_some() {
        ctx.changed(admitted.key, words.reserve_event);
    }
    ctx.changed(admitted.key, words.add_event);
    announce_expiry(ctx, admitted.key, admitted.created.as_ref().and_then(words.expiry));
}

/// Replicates the expiry of a key that was created just now, and sends its event.
pub(super) fn announce_expiry(ctx: Ctx, key: Arg<'_>, expiry: Option<i64>) {
    if let Some(at) = expiry {
        ctx.replicate(c"PEXPIREAT", &[ArgOrOwned::Arg(key), word(ctx, at.to_string())], Args::none());
        ctx.notify_generic(key, c"expire");
    }
}
