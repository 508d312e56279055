//! What a command did, for replicas, the AOF and subscribers.

use std::ffi::CStr;

use crate::server::ffi::{Arg, ArgOrOwned, Args, Ctx};

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
}

/// The command names and events of a family that adds items.
pub(super) struct AddedWords<P> {
    /// The command that creates with parameters and adds.
    pub(super) insert: &'static CStr,
    /// The command that adds several items.
    pub(super) add_all: &'static CStr,
    pub(super) reserve_event: &'static CStr,
    pub(super) add_event: &'static CStr,
    /// All parameters, as options that `insert` takes.
    pub(super) options: fn(Ctx, &P) -> Vec<ArgOrOwned<'static>>,
}

/// Replicates the effect of adding items, and sends its events. If nothing changed, nothing is sent. A created key is
/// sent with every parameter. Refused items are left out.
pub(super) fn announce<P>(ctx: Ctx, added: &Added<'_, P>, words: &AddedWords<P>) {
    let items = added.items.first(added.handled);
    if let Some(params) = &added.created {
        let mut arguments = vec![ArgOrOwned::Arg(added.key)];
        arguments.extend((words.options)(ctx, params));
        arguments.push(word(ctx, "ITEMS"));
        ctx.replicate(words.insert, &arguments, items);
        ctx.changed(added.key, words.reserve_event);
    } else if !added.changed {
        return;
    } else if items.len() < added.items.len() {
        ctx.replicate(words.add_all, &[ArgOrOwned::Arg(added.key)], items);
    } else {
        ctx.replicate_verbatim();
    }
    if added.changed {
        ctx.changed(added.key, words.add_event);
    }
}
