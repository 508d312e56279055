//! Opens keys, checks their types, and borrows their values.

use std::collections::HashSet;

use rollcall_core::error::Error;
use rollcall_core::persist::file::FileError;
use rollcall_core::unstable::persist::{Partial, Payload, parse};
use rollcall_core::unstable::try_collect_ok;

use super::windows::expiry_of;
use crate::command_error::CommandError;
use crate::limits::ServerLimit;
use crate::server::ffi::{Arg, Args, Ctx, Key, Mode};
use crate::server::metrics::CORRUPT_REJECTED;
use crate::server::reclaim;
use crate::types::entry::{KeyEntry, entry_of, no_classic, peek_entry, set_entry};
use crate::types::family::{Family, State, serves_classic};
use crate::types::names::Prefix;

/// Opens a key, and fails if it holds a value of another type than `T`. It is for commands that check the type before
/// they use the value.
pub(super) fn open<'k, T: Family>(ctx: Ctx, name: Arg<'k>, mode: Mode) -> Result<Key<'k>, CommandError> {
    let key = ctx.open(name, mode)?;
    peek_entry::<T>(&key)?;
    Ok(key)
}

/// The value of an open key for reading; `None` if the key is missing.
#[inline]
pub(super) fn value<'k, T: Family>(key: &'k Key<'_>) -> Result<Option<&'k T>, CommandError> {
    match peek_entry::<T>(key)?.map(|entry| &entry.state) {
        None => Ok(None),
        Some(State::Ready(value)) => Ok(Some(value)),
        Some(State::Partial(partial)) => Err(CommandError::StillLoading(partial.progress())),
    }
}

/// The value of an open key for changes; `None` if the key is missing.
///
/// A command must not open a key twice, because both handles would refer to the same value.
#[inline]
pub(super) fn value_mut<'k, T: Family>(key: &'k mut Key<'_>) -> Result<Option<&'k mut T>, CommandError> {
    match entry_of::<T>(key)?.map(|entry| &mut entry.state) {
        None => Ok(None),
        Some(State::Ready(value)) => Ok(Some(value)),
        Some(State::Partial(partial)) => Err(CommandError::StillLoading(partial.progress())),
    }
}

/// Stores a new value in a missing key. Returns when the key is to expire, in milliseconds since 1970: at `expiry`, or
/// else at the end of a `VOLATILE` window.
#[must_use = "the effects of the command set the expiry"]
pub(super) fn create<T: Family>(ctx: Ctx, key: &mut Key<'_>, value: T, expiry: Option<i64>) -> Option<i64> {
    let expiry = expiry.or_else(|| expiry_of(ctx, &value));
    set_entry(key, KeyEntry::new(State::Ready(value)));
    expiry
}

/// Frees a value that is in no key, in the background if it is large.
pub(super) fn dispose<T: Family>(value: T) {
    reclaim::dispose(value, |value| value.num_bytes() as usize);
}

/// Reads a value from the bytes of a `DUMP` payload or a file, the argument `number` of these. With `apart`, the bits
/// of a filter may stay there.
pub(super) fn from_payload<'a, T: Family>(
    (bytes, number): (&'a [u8], usize),
    apart: Option<&mut Payload<'a>>,
    limit: &ServerLimit,
) -> Result<T, CommandError> {
    let read = parse::<T>(bytes, apart, limit).map_err(|error| match error {
        FileError::Value(error) if !matches!(error, Error::Corrupt { .. }) => CommandError::Core(error),
        error => {
            // A client's mix-up of keys is no damage, and must not raise an alert of it.
            if !matches!(error, FileError::NotAFile | FileError::OtherKind { .. }) {
                CORRUPT_REJECTED.count();
            }
            CommandError::Argument(match error {
                FileError::NotAFile => "expected what DUMP replies, or a file with one value".to_owned(),
                error => error.to_string(),
            })
        }
    });
    let is_served = |value: &T| value.prefix() != Prefix::Bf || serves_classic();
    let checked = read.and_then(|value| if is_served(&value) { Ok(value) } else { Err(no_classic()) });
    checked.map_err(|error| CommandError::in_payload(number, error))
}

pub(super) fn open_all<'a, T: Family>(ctx: Ctx, names: Args<'a>) -> Result<Vec<Key<'a>>, CommandError> {
    try_collect_ok(names.len(), names.iter().map(|name| open::<T>(ctx, name, Mode::Read)))
}

/// The values of open keys, without duplicates and missing keys. A union reads all bits of each value, so duplicates
/// would cost time.
pub(super) fn values<'k, T: Family>(keys: &'k [Key<'_>]) -> Result<Vec<&'k T>, CommandError> {
    let mut found = try_collect_ok(keys.len(), keys.iter().filter_map(|key| value::<T>(key).transpose()))?;
    let mut seen = HashSet::new();
    let needed_bytes = (found.len() * size_of::<&T>()) as u64;
    seen.try_reserve(found.len()).map_err(|_| Error::OutOfMemory { needed_bytes })?;
    found.retain(|&value| seen.insert(std::ptr::from_ref(value)));
    Ok(found)
}
