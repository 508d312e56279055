//! A value with a lock, for threads that release Python's lock.
//!
//! A thread that holds Python's lock never waits for a value's: it tries it, and lets go of Python's before it waits. A
//! thread that holds a value's lock never waits for Python's: what runs under it (`FnOnce ... + Send`) knows no Python.
//! Several values are locked in the order of their addresses, each once.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;

/// A value that threads share.
#[derive(Debug)]
pub(crate) struct Guarded<T>(RwLock<T>);

/// Modes of locking a value.
enum Held<'a, T> {
    Shared(RwLockReadGuard<'a, T>),
    Alone(RwLockWriteGuard<'a, T>),
}

impl<T: Send + Sync> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Guarded(RwLock::new(value))
    }

    /// Asks the value something short.
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, ask: impl FnOnce(&T) -> R + Send) -> R {
        match self.0.try_read() {
            Ok(value) => ask(&value),
            Err(TryLockError::Poisoned(value)) => ask(&value.into_inner()),
            Err(TryLockError::WouldBlock) => self.read_long(py, ask),
        }
    }

    /// Reads the value for a while, without Python's lock.
    pub(crate) fn read_long<R: Send>(&self, py: Python<'_>, ask: impl FnOnce(&T) -> R + Send) -> R {
        py.detach(|| ask(&self.shared()))
    }

    /// Changes the value, shortly.
    pub(crate) fn write<R: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut T) -> R + Send) -> R {
        match self.0.try_write() {
            Ok(mut value) => change(&mut value),
            Err(TryLockError::Poisoned(value)) => change(&mut value.into_inner()),
            Err(TryLockError::WouldBlock) => self.write_long(py, change),
        }
    }

    /// Changes the value for a while, without Python's lock.
    pub(crate) fn write_long<R: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut T) -> R + Send) -> R {
        py.detach(|| change(&mut self.alone()))
    }

    /// Asks values something together.
    pub(crate) fn read_all<R: Send>(py: Python<'_>, values: &[&Self], ask: impl FnOnce(&[&T]) -> R + Send) -> R {
        py.detach(|| {
            let mut order = values.to_vec();
            order.sort_unstable_by_key(|value| value.address());
            order.dedup_by_key(|value| value.address());
            let held: Vec<_> = order.iter().map(|value| (value.address(), value.shared())).collect();
            let of = |value: &&Self| held.iter().find(|(address, _)| *address == value.address());
            let all: Vec<&T> = values.iter().filter_map(of).map(|(_, value)| &**value).collect();
            ask(&all)
        })
    }

    /// Changes the value with the help of other values. The value itself is never among them.
    pub(crate) fn write_with<R: Send>(
        &self,
        py: Python<'_>,
        others: &[&Self],
        change: impl FnOnce(&mut T, &[&T]) -> R + Send,
    ) -> R {
        py.detach(|| {
            let mut order = others.to_vec();
            order.push(self);
            order.sort_unstable_by_key(|value| value.address());
            order.dedup_by_key(|value| value.address());
            let mut held = Vec::with_capacity(order.len());
            for value in order {
                held.push(match value.address() == self.address() {
                    true => Held::Alone(value.alone()),
                    false => Held::Shared(value.shared()),
                });
            }
            let (mut ours, mut theirs) = (None, Vec::with_capacity(held.len()));
            for value in &mut held {
                match value {
                    Held::Alone(value) => ours = Some(value),
                    Held::Shared(value) => theirs.push(&**value),
                }
            }
            // It was pushed above.
            match ours {
                Some(ours) => change(ours, &theirs),
                None => change(&mut self.alone(), &theirs),
            }
        })
    }

    // A panic under a lock would be a defect of the core. It reaches Python as an exception, and leaves a usable value.
    fn shared(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
