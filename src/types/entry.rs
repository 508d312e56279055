//! A filter or counter as the server holds it: a raw pointer to a [`KeyEntry`].

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::NonNull;

use rollcall_core::error::Error;
use rollcall_core::size_limit::SizeLimit;
use rollcall_core::unstable::persist::{self, Partial};

use super::family::{Family, State, becomes_classic, serves_classic};
use crate::command_error::CommandError;
use crate::config;
use crate::server::alloc;
use crate::server::ffi::{Key, KeyError};

/// The server's own bytes for a module's value, which `MEMORY USAGE` has to include: 16 for the object, and 16 for the
/// pair of type and pointer.
const SERVER_OBJECT_BYTES: usize = 32;

/// A filter or counter as the server holds it. Its data type follows from its state, see [`Family::data_type`], and
/// must not change while the value is in the key. Until the value is dropped, the [`totals`](super::totals) include it.
pub struct KeyEntry<T: Family> {
    pub state: State<T>,
}

impl<T: Family> KeyEntry<T> {
    /// Moves a value to the heap, and adds it to the totals for `INFO`.
    pub fn new(state: State<T>) -> Box<Self> {
        state.share().enter();
        Box::new(KeyEntry { state })
    }

    /// Passes the value to the server, which then owns it.
    pub fn into_raw(self: Box<Self>) -> *mut c_void {
        Box::into_raw(self).cast()
    }

    /// Takes a value back from the server.
    ///
    /// # Safety
    /// [`Self::into_raw`] returned `value`, and the server has given it up or has not accepted it.
    pub unsafe fn from_raw(value: *mut c_void) -> Box<Self> {
        // SAFETY: as promised.
        unsafe { Box::from_raw(value.cast()) }
    }

    /// The bytes that the allocator reserved for this value and for the server's object around it.
    pub fn memory_bytes(&self) -> usize {
        let mut bytes = SERVER_OBJECT_BYTES;
        let mut visit = |layout| bytes += alloc::usable_layout_size(layout);
        visit(Layout::new::<Self>());
        match &self.state {
            State::Ready(value) => value.heap_layouts(&mut visit),
            State::Partial(partial) => {
                visit(Layout::new::<T::Partial>());
                partial.heap_layouts(&mut visit);
            }
        }
        bytes
    }

    /// An approximation of [`Self::memory_bytes`]. For a complete value it is faster, because it does not visit each
    /// buffer.
    pub fn num_bytes(&self) -> usize {
        match &self.state {
            State::Ready(value) => value.num_bytes() as usize,
            State::Partial(_) => self.memory_bytes(),
        }
    }

    /// Appends the next dump chunk to a partially loaded value. Does nothing to a complete value.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the chunk is damaged or out of order. On error the value is unchanged.
    pub fn push_chunk(&mut self, iterator: u64, data: &[u8]) -> Result<(), Error> {
        let before = self.state.share();
        let State::Partial(partial) = &mut self.state else { return Ok(()) };
        let pushed = persist::push_chunk(&mut **partial, iterator, data);
        before.becomes(&self.state.share());
        pushed
    }

    /// Copies the value, if `limit` allows it.
    pub fn try_clone(&self, limit: &impl SizeLimit) -> Result<Box<Self>, Error> {
        limit.check(0, self.num_bytes() as u64)?;
        Ok(KeyEntry::new(match &self.state {
            State::Ready(value) => State::Ready(value.try_clone()?),
            State::Partial(partial) => State::Partial(Box::new(partial.try_clone()?)),
        }))
    }
}

impl<T: Family> Drop for KeyEntry<T> {
    fn drop(&mut self) {
        self.state.share().leave();
    }
}

/// The value behind the server's raw pointer, for reading. Only this function and [`entry_mut`] make this conversion.
///
/// # Safety
/// `value` was passed to the server as a value of one of `T`'s data types. It is neither freed nor changed while the
/// reference lives.
pub unsafe fn entry<'a, T: Family>(value: *const c_void) -> &'a KeyEntry<T> {
    // SAFETY: every value of T's data types was made by `KeyEntry::into_raw`.
    unsafe { &*value.cast::<KeyEntry<T>>() }
}

/// The value behind the server's raw pointer, for changes.
///
/// # Safety
/// The same as for [`entry`]. In addition, no other code reads the value while the reference lives.
pub unsafe fn entry_mut<'a, T: Family>(value: *mut c_void) -> &'a mut KeyEntry<T> {
    // SAFETY: every value of T's data types was made by `KeyEntry::into_raw`. The caller promises that no other code
    // uses it.
    unsafe { &mut *value.cast::<KeyEntry<T>>() }
}

/// The value of an open key for changes; `None` if the key is missing. The error is [`KeyError::OtherType`] if the key
/// holds a value of another type.
#[inline]
pub fn entry_of<'k, T: Family>(key: &'k mut Key<'_>) -> Result<Option<&'k mut KeyEntry<T>>, KeyError> {
    let value = key.value(T::has_type)?;
    // SAFETY: `value` has checked that the value has T's type. The key is borrowed mutably while the reference lives,
    // so `set_entry` cannot replace the value. No command opens a key twice to change its value. The server frees a
    // value only when a command deletes it, and runs no command while the reference lives.
    Ok(value.map(|value: NonNull<c_void>| unsafe { entry_mut::<T>(value.as_ptr()) }))
}

/// Like [`entry_of`], for reading.
#[inline]
pub fn peek_entry<'k, T: Family>(key: &'k Key<'_>) -> Result<Option<&'k KeyEntry<T>>, KeyError> {
    let value = key.value(T::has_type)?;
    // SAFETY: `value` has checked that the value has T's type. The key is borrowed while the reference lives, so
    // `set_entry` cannot be called.
    Ok(value.map(|value: NonNull<c_void>| unsafe { entry::<T>(value.as_ptr()) }))
}

/// Stores a value in a key that is open for writing. The server frees the old value and removes the key's expiry.
pub fn set_entry<T: Family>(key: &mut Key<'_>, entry: Box<KeyEntry<T>>) {
    let handle = T::data_type(&entry.state).handle();
    let raw = entry.into_raw();
    // SAFETY: the pointer is what the callbacks of its data type expect.
    if handle.is_null() || !unsafe { key.set_value(handle, raw) } {
        // SAFETY: the server did not take the pointer.
        drop(unsafe { KeyEntry::<T>::from_raw(raw) });
    }
}

/// Replaces the partially loaded value of a key by the complete value, if all its bytes have been loaded. With
/// `fills`, missing bytes of a classic (RedisBloom-compatible) filter are taken as zeros. The key keeps its expiry.
///
/// A complete classic filter has another data type, so it is stored as a new value of the key, and the key's expiry is
/// restored.
///
/// # Errors
/// [`CommandError::NoClassic`].
pub fn finalize<T: Family>(key: &mut Key<'_>, fills: bool) -> Result<(), CommandError> {
    let Ok(Some(entry)) = entry_of::<T>(key) else { return Ok(()) };
    let (share, data_type) = (entry.state.share(), T::data_type(&entry.state));
    match &mut entry.state {
        State::Partial(partial) if fills || partial.is_complete() => {
            check_kind(&**partial)?;
            if fills {
                partial.fill_with_zeros();
            }
        }
        _ => return Ok(()),
    }
    // An empty value takes the place of the partially loaded one until this is complete.
    let state = match std::mem::replace(&mut entry.state, State::Ready(std::iter::empty().collect())) {
        State::Partial(partial) => State::from_partial(*partial)?,
        ready => ready,
    };
    if std::ptr::eq(T::data_type(&state), data_type) {
        entry.state = state;
        share.becomes(&entry.state.share());
    } else {
        share.becomes(&entry.state.share());
        let expiry = key.expiry();
        set_entry(key, KeyEntry::new(state));
        key.set_expiry(expiry);
    }
    Ok(())
}

/// Checks that this module may complete a partially loaded value: a classic (RedisBloom-compatible) filter needs the
/// data type that is registered with BF.*.
///
/// # Errors
/// [`CommandError::NoClassic`] for a RedisBloom-compatible filter if this module has not registered BF.*.
pub fn check_kind(partial: &impl Partial) -> Result<(), CommandError> {
    if becomes_classic(partial) && !serves_classic() { Err(no_classic()) } else { Ok(()) }
}

/// The error for a classic (RedisBloom-compatible) filter if this module has not registered BF.*.
pub fn no_classic() -> CommandError {
    CommandError::NoClassic { commands: config::commands().word() }
}
