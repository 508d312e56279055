//! The roles of the process' threads in this module.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The role of a thread. At most one thread of the process has each role other than [`Role::Other`]:
/// [`Metric`](super::metrics::Metric) relies on that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server's main thread, on which clients wait.
    Main,
    /// The first other thread on which the server freed a value: the one that frees in the background.
    Freeing,
    /// Any other thread.
    Other,
}

/// The number of roles.
pub const ROLES: usize = Role::Other as usize + 1;

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Other) };
}

/// Whether a thread has the role [`Role::Freeing`].
static IS_FREEING: AtomicBool = AtomicBool::new(false);

/// The role of this thread.
#[inline]
pub fn role() -> Role {
    ROLE.get()
}

/// Whether this is the server's main thread.
#[inline]
pub fn is_main() -> bool {
    role() == Role::Main
}

/// Makes this thread the main one. Called when the module is loaded, which the server does on its main thread.
pub fn become_main() {
    ROLE.set(Role::Main);
}

/// Gives this thread the role [`Role::Freeing`] if it has none and no other thread has that one. Called when the server
/// frees a value. The server's threads never end, so the role is never free again.
#[inline]
pub fn become_freeing() {
    if role() == Role::Other && !IS_FREEING.load(Ordering::Relaxed) && !IS_FREEING.swap(true, Ordering::Relaxed) {
        ROLE.set(Role::Freeing);
    }
}
