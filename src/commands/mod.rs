//! The commands. Each one parses, opens its keys, calls the core, replicates what it changed, notifies, replies.
//!
//! [`bloom`] and [`counting`] are twins; what both do in the same way stands here, generic over the family.

pub mod bloom;
pub mod counting;
mod dump;
mod register;
mod table;
mod valkey_bloom;

pub use register::register;

use std::collections::HashSet;
use std::ffi::CStr;

use crate::config;
use crate::refusal::Refusal;
use crate::server::ffi::{Arg, ArgOrOwned, Args, Ctx, Key, Mode};
use crate::server::reclaim;
use crate::types::callbacks::{Entry, State, entry_of, peek_entry, set_entry};
use crate::types::family::Family;
use rollcall_core::error::Error;
use rollcall_core::persist::{Loading, Stored};
use rollcall_core::size_limit::SizeLimit;

/// Opens a key that is missing or holds a `T`, where that is to be known before the value is asked for.
fn open<T: Family>(ctx: Ctx, name: Arg<'_>, mode: Mode) -> Result<Key<'_>, Refusal> {
    let key = ctx.open(name, mode);
    peek_entry::<T>(&key)?;
    Ok(key)
}

/// An error of the core, about a value of family `T`.
fn refusal_of<T: Family>(error: Error) -> Refusal {
    Refusal::Core { noun: T::NOUN, error }
}

fn still_loading<T: Family>(loading: &<T as Stored>::Loading) -> Refusal {
    Refusal::StillLoading {
        noun: T::NOUN,
        received_bytes: loading.received_bytes(),
        total_bytes: loading.total_bytes(),
    }
}

/// The value of an open key to read; `None` if the key is missing.
fn value<'k, T: Family>(key: &'k Key<'_>) -> Result<Option<&'k T>, Refusal> {
    match peek_entry::<T>(key)?.map(|entry| &entry.state) {
        None => Ok(None),
        Some(State::Ready(value)) => Ok(Some(value)),
        Some(State::Loading(loading)) => Err(still_loading::<T>(loading)),
    }
}

/// The value of an open key to change; `None` if the key is missing.
///
/// No other key may be open under the same name meanwhile: both would be the same value.
fn value_mut<'k, T: Family>(key: &'k mut Key<'_>) -> Result<Option<&'k mut T>, Refusal> {
    match entry_of::<T>(key)?.map(|entry| &mut entry.state) {
        None => Ok(None),
        Some(State::Ready(value)) => Ok(Some(value)),
        Some(State::Loading(loading)) => Err(still_loading::<T>(loading)),
    }
}

/// Stores a new value in a key that is missing.
fn create<T: Family>(key: &Key<'_>, value: T) {
    set_entry(key, Entry::ready(value));
}

/// Puts `value` in the place of `old` and lets the old one go where that does not hold the server up.
fn replace<T: Family>(old: &mut T, value: T) {
    let old = Entry::ready(std::mem::replace(old, value));
    let bytes = old.memory_bytes();
    reclaim::dispose(old, bytes);
}

/// A word of a replicated command.
fn word(ctx: Ctx, text: impl AsRef<[u8]>) -> ArgOrOwned<'static> {
    ArgOrOwned::Owned(ctx.string(text.as_ref()))
}

/// What adding items did, to replicate and to tell.
struct Added<'a, P> {
    key: Arg<'a>,
    items: Args<'a>,
    /// The parameters of the key, if the command created it.
    created: Option<P>,
    /// How many items were handled; fewer than all when one was refused.
    handled: usize,
    /// Whether the value changed.
    changed: bool,
}

/// The words and events by which a family tells what was added.
struct AddedWords<P> {
    /// The command that creates with parameters and adds.
    insert: &'static CStr,
    /// The command that adds several items.
    add_all: &'static CStr,
    reserve_event: &'static CStr,
    add_event: &'static CStr,
    /// All parameters, as options that `insert` takes.
    options: fn(Ctx, &P) -> Vec<ArgOrOwned<'static>>,
}

/// Replicates the effect of adding items and notifies. Nothing goes out when nothing changed; a key that was
/// created goes out with every parameter; items that were refused do not go out.
fn announce<P>(ctx: Ctx, added: &Added<'_, P>, words: &AddedWords<P>) {
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

/// An empty list with room for as many elements as a client gave keys or items, or an error about a value of family `T`.
fn list<T: Family, E>(len: usize) -> Result<Vec<E>, Refusal> {
    let mut list = Vec::new();
    let needed_bytes = (len * size_of::<E>()) as u64;
    list.try_reserve_exact(len).map_err(|_| refusal_of::<T>(Error::OutOfMemory { needed_bytes }))?;
    Ok(list)
}

/// Opens all of these keys to read.
fn open_all<'a, T: Family>(ctx: Ctx, names: Args<'a>) -> Result<Vec<Key<'a>>, Refusal> {
    let mut keys = list::<T, _>(names.len())?;
    for name in names.iter() {
        keys.push(open::<T>(ctx, name, Mode::Read)?);
    }
    Ok(keys)
}

/// Opens the destination and the sources of a merge. A source that is missing, or is the destination itself,
/// adds nothing and is left out.
fn open_merge<'a, T: Family>(ctx: Ctx, args: Args<'a>) -> Result<(Key<'a>, Vec<Key<'a>>), Refusal> {
    let destination = open::<T>(ctx, args.get(1), Mode::Write)?;
    let mut sources = list::<T, _>(args.len() - 2)?;
    for name in args.from(2).iter() {
        if name.bytes() == args.get(1).bytes() {
            continue;
        }
        let source = open::<T>(ctx, name, Mode::Read)?;
        if value::<T>(&source)?.is_some() {
            sources.push(source);
        }
    }
    Ok((destination, sources))
}

/// Up to so many values are compared with each other to find those that are given twice.
const FEW: usize = 8;

/// The values of opened keys, each once: a union costs a walk over all bits of every value given, however short
/// its name. Those that are missing are left out.
fn values<'k, T: Family>(keys: &'k [Key<'_>]) -> Result<Vec<&'k T>, Refusal> {
    let mut found: Vec<&T> = list::<T, _>(keys.len())?;
    for key in keys {
        found.extend(value::<T>(key)?);
    }
    if found.len() <= FEW {
        // Without an allocation: a union of two is a matter of microseconds.
        for at in (1..found.len()).rev() {
            if found[..at].iter().any(|&other| std::ptr::eq(other, found[at])) {
                found.remove(at);
            }
        }
    } else {
        let mut seen = HashSet::new();
        let needed_bytes = (found.len() * size_of::<&T>()) as u64;
        seen.try_reserve(found.len()).map_err(|_| refusal_of::<T>(Error::OutOfMemory { needed_bytes }))?;
        found.retain(|&value| seen.insert(std::ptr::from_ref(value)));
    }
    Ok(found)
}

/// Checks that a copy of `value` may be made.
fn check_copy<T: Family>(value: &T, limit: &impl SizeLimit) -> Result<(), Refusal> {
    let mut bytes = 0u64;
    value.heap_layouts(&mut |layout| bytes += limit.allocation_bytes(layout));
    limit.check(size_of::<T>() as u64, bytes).map_err(refusal_of::<T>)
}
