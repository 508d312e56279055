//! Gives large values back to the allocator away from the server's thread.
//!
//! Unmapping a gigabyte takes a fifth of a second. UNLINK and its like are freed in the background by the
//! server itself (see `free_effort`), but DEL, SET over a key, expiry and a plain FLUSHALL free on its thread.
//!
//! Not while the server is at its `maxmemory`: eviction looks at what each key that goes gives back, and would
//! take one key after another until the memory of the first is there.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::ThreadId;

use super::facts;

/// Values of this size and more are freed in the background, bytes. Below it, freeing costs less than
/// handing over.
const BACKGROUND_BYTES: usize = 1 << 20;

type Garbage = Box<dyn Send>;

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();
static RECLAIMER: OnceLock<Option<(u32, Sender<Garbage>)>> = OnceLock::new();

/// Remembers the server's thread: the others may take their time.
pub fn init() {
    MAIN_THREAD.get_or_init(|| std::thread::current().id());
}

/// The sender to the background thread, which starts when first needed. A forked child has no such thread.
fn reclaimer() -> Option<&'static Sender<Garbage>> {
    let started = RECLAIMER.get_or_init(|| {
        let (sender, receiver) = channel::<Garbage>();
        let thread = std::thread::Builder::new().name("rollcall-free".to_owned());
        thread.spawn(move || receiver.into_iter().for_each(drop)).ok().map(|_| (std::process::id(), sender))
    });
    started.as_ref().filter(|(process, _)| *process == std::process::id()).map(|(_, sender)| sender)
}

/// Whether the background thread has been started.
pub fn has_started() -> bool {
    RECLAIMER.get().is_some()
}

/// Drops a value of so many bytes, in the background where it is large and this is the server's thread.
pub fn dispose(value: Box<impl Send + 'static>, bytes: usize) {
    let on_main_thread = MAIN_THREAD.get() == Some(&std::thread::current().id());
    if on_main_thread
        && bytes >= BACKGROUND_BYTES
        && !facts::is_memory_full()
        && let Some(sender) = reclaimer()
    {
        // Should the thread be gone, the value comes back in the error and is dropped here.
        let _ = sender.send(value);
    }
}

/// Waits until all that was handed over so far is freed.
pub fn wait() {
    let (freed, is_freed) = channel::<()>();
    if let Some(Some((process, sender))) = RECLAIMER.get()
        && *process == std::process::id()
        && sender.send(Box::new(freed)).is_ok()
    {
        // The thread drops the sender in its turn, which ends this with an error.
        let _ = is_freed.recv();
    }
}
