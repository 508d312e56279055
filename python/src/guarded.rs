//! A value with its own lock, for threads that release Python's lock while they work on the value.
//!
//! Deadlocks are impossible by two rules. A thread that holds Python's lock only tries a value's lock, and releases
//! Python's lock before it waits. A thread that holds a value's lock never waits for Python's lock: closures that run
//! under it (`FnOnce ... + Send`) have no access to Python. Several values are locked in the order of their addresses,
//! each once.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;

/// A value that threads share.
#[derive(Debug)]
pub(crate) struct Guarded<T>(RwLock<T>);

/// A held lock, for reading or for writing.
enum Held<'a, T> {
    Shared(RwLockReadGuard<'a, T>),
    Alone(RwLockWriteGuard<'a, T>),
}

impl<T: Send + Sync> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Guarded(RwLock::new(value))
    }

    /// Calls `ask` with the value, for short reads. Python's lock is kept unless another thread holds the value's lock.
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, ask: impl FnOnce(&T) -> R + Send) -> R {
        match self.0.try_read() {
            Ok(value) => ask(&value),
            Err(TryLockError::Poisoned(value)) => ask(&value.into_inner()),
            Err(TryLockError::WouldBlock) => self.read_long(py, ask),
        }
    }

    /// Calls `ask` with the value, for long reads. Python's lock is released during the call.
    pub(crate) fn read_long<R: Send>(&self, py: Python<'_>, ask: impl FnOnce(&T) -> R + Send) -> R {
        py.detach(|| ask(&self.shared()))
    }

    /// Calls `change` with the value, for short changes. Python's lock is kept unless another thread holds the value's
    /// lock.
    pub(crate) fn write<R: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut T) -> R + Send) -> R {
        match self.0.try_write() {
            Ok(mut value) => change(&mut value),
            Err(TryLockError::Poisoned(value)) => change(&mut value.into_inner()),
            Err(TryLockError::WouldBlock) => self.write_long(py, change),
        }
    }

    /// Calls `change` with the value, for long changes. Python's lock is released during the call.
    pub(crate) fn write_long<R: Send>(&self, py: Python<'_>, change: impl FnOnce(&mut T) -> R + Send) -> R {
        py.detach(|| self.write_detached(change))
    }

    /// Calls `change` with the value, for a thread that has released Python's lock.
    pub(crate) fn write_detached<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.alone())
    }

    /// Calls `ask` with several values, all locked for reading. Python's lock is released during the call.
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

    /// Calls `change` with this value to be changed, and the other values to be read. If `self` is among the others, it
    /// is left out.
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
            // `self` is in `order`, so `ours` is always set.
            match ours {
                Some(ours) => change(ours, &theirs),
                None => change(&mut self.alone(), &theirs),
            }
        })
    }

    // A poisoned lock is used anyway: a panic in the core is a defect, reaches Python as an exception, and leaves a
    // usable value.
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
