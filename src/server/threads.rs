//! The roles that the threads of the process have for this module.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The role of a thread. Except for [`Role::Other`], at most one thread of the process has each role.
/// [`Metric`](super::metrics::Metric) relies on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server's main thread, which runs the commands of clients.
    Main,
    /// The thread that frees in the background: the first thread besides the main thread on which the server freed a
    /// value.
    Freeing,
    /// Any other thread.
    Other,
}

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

/// Records that this is the main thread. Called during loading, because the server loads modules on its main thread.
pub fn become_main() {
    ROLE.set(Role::Main);
}

/// Gives this thread the role [`Role::Freeing`], if it has no role and no other thread has this role. The module calls
/// this when the server frees a value. The server's threads never end, so the role never becomes free again.
#[inline]
pub fn become_freeing() {
    if role() == Role::Other && !IS_FREEING.load(Ordering::Relaxed) && !IS_FREEING.swap(true, Ordering::Relaxed) {
        ROLE.set(Role::Freeing);
    }
}
