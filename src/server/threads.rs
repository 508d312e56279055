//! The roles of the process's threads for this module.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The role of a thread. At most one thread has each role, except for [`Role::Other`].
/// [`Metric`](super::metrics::Metric) relies on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server's main thread, which runs the commands of clients.
    Main,
    /// The first thread, other than the main thread, on which the server freed a value. It is taken to be the server's
    /// background thread for freeing.
    Freeing,
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

#[inline]
pub fn is_main() -> bool {
    role() == Role::Main
}

/// Called while the module loads, because the server loads modules on its main thread.
pub fn become_main() {
    ROLE.set(Role::Main);
}

/// Gives this thread the role [`Role::Freeing`], if it has no role and no other thread has this one. Called when the
/// server frees a value. The server's threads never end, so the role never becomes free again.
#[inline]
pub fn become_freeing() {
    if role() == Role::Other && !IS_FREEING.load(Ordering::Relaxed) && !IS_FREEING.swap(true, Ordering::Relaxed) {
        ROLE.set(Role::Freeing);
    }
}
