//! The server's main thread, which runs the commands of clients.

use std::cell::Cell;

thread_local! {
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is the server's main thread.
pub fn is_main() -> bool {
    IS_MAIN.get()
}

/// Called while the module loads, because the server loads modules on its main thread.
pub fn become_main() {
    IS_MAIN.set(true);
}
