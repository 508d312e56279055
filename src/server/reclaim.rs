//! Frees large values on a background thread, not on the server's thread.
//!
//! Unmapping a gigabyte takes a fifth of a second. The server itself frees in the background after UNLINK and FLUSHALL
//! ASYNC (see `free_effort`), but on its own thread after DEL, an overwriting SET, expiry and a plain FLUSHALL. In
//! those cases this file moves the work to the background.
//!
//! While the server's memory has reached `maxmemory`, values are freed on the server's thread. Eviction measures how
//! much memory each evicted key gives back. If the memory were freed later, the server would evict more keys than
//! necessary.
//!
//! Between two values, the thread makes pages of large bitmaps [huge], one at a time.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::facts;
use super::ffi::guard;
use super::metrics::Metric;
use super::pages::huge;
use super::threads;

/// Values of at least this many bytes are freed in the background. Freeing a smaller value costs less than passing it
/// to another thread.
const BACKGROUND_BYTES: usize = 1 << 20;

/// A value to be freed, and its size in bytes. The metrics count it as waiting until it is dropped.
struct Garbage {
    value: Option<Box<dyn Send>>,
    bytes: usize,
}

impl Garbage {
    fn new(value: Box<dyn Send>, bytes: usize) -> Self {
        WAITING.add(1);
        WAITING_BYTES.add(bytes as u64);
        Garbage { value: Some(value), bytes }
    }
}

impl Drop for Garbage {
    fn drop(&mut self) {
        guard("freeing a value", || drop(self.value.take()), || ());
        WAITING.sub(1);
        WAITING_BYTES.sub(self.bytes as u64);
    }
}

/// The number of values that wait to be freed in the background.
pub static WAITING: Metric = Metric::new();
/// The number of bytes of the values that wait to be freed in the background.
pub static WAITING_BYTES: Metric = Metric::new();

static RECLAIMER: OnceLock<Option<(u32, Sender<Garbage>)>> = OnceLock::new();

/// Returns the channel to the background thread, and starts the thread at the first call. `None` in a forked child
/// process, and if the thread could not be started.
fn reclaimer() -> Option<&'static Sender<Garbage>> {
    let started = RECLAIMER.get_or_init(|| {
        let (sender, receiver) = channel::<Garbage>();
        let (ready, is_ready) = channel();
        let free = move || {
            // The first allocation of a thread sets up jemalloc's data for the thread. It is made here, because it
            // would crash later if memory is lacking.
            drop(black_box(Box::new(0u64)));
            drop(ready);
            work(&receiver);
        };
        let thread = std::thread::Builder::new().name("rollcall-free".to_owned());
        thread.spawn(free).ok().map(|_| {
            // `recv` returns, with an error, when the thread drops `ready`.
            let _: Result<(), _> = is_ready.recv();
            (std::process::id(), sender)
        })
    });
    started.as_ref().filter(|(process, _)| *process == std::process::id()).map(|(_, sender)| sender)
}

/// How long the background thread rests after it made a page huge. Page faults of the main thread may wait for each
/// page, which takes about a millisecond: a command should not have to wait for several.
const REST: Duration = Duration::from_millis(5);

/// What the background thread does, until the channel is closed.
fn work(receiver: &Receiver<Garbage>) {
    loop {
        let garbage = match huge::next_page() {
            true => receiver.recv_timeout(REST),
            false => receiver.recv().map_err(RecvTimeoutError::from),
        };
        if matches!(garbage, Err(RecvTimeoutError::Disconnected)) {
            return;
        }
    }
}

/// Starts the background thread once a value of `bytes` bytes exists that will be freed there. Starting it only when
/// the first value is freed may be too late: if the process gets no more memory, jemalloc crashes in a new thread.
/// Wakes the thread if pages of the value become huge.
pub fn prepare(bytes: u64) {
    if bytes >= BACKGROUND_BYTES as u64
        && let Some(sender) = reclaimer()
        && huge::has_new()
    {
        hand_over(sender, Box::new(()), 0);
    }
}

/// Passes a value to the background thread. Returns false if the thread has ended; the value is then freed in this
/// call.
fn hand_over(sender: &Sender<Garbage>, value: Box<dyn Send>, bytes: usize) -> bool {
    sender.send(Garbage::new(value, bytes)).is_ok()
}

/// Whether the background thread has been started.
pub fn has_started() -> bool {
    RECLAIMER.get().is_some()
}

/// Drops a value that the server frees, in the background if it is large and this is the server's main thread. Other
/// threads free values themselves, because no client waits for them. They do not call `bytes`, which computes the size.
pub fn dispose<V: Send + 'static>(value: V, bytes: impl FnOnce(&V) -> usize) {
    threads::become_freeing();
    if threads::is_main()
        && let bytes = bytes(&value)
        && bytes >= BACKGROUND_BYTES
        && !facts::is_memory_full()
        && let Some(sender) = reclaimer()
    {
        hand_over(sender, Box::new(value), bytes);
    }
}

/// Blocks until the background thread has freed all values that were queued before this call.
pub fn wait() {
    let (freed, is_freed) = channel::<()>();
    if let Some(Some((process, sender))) = RECLAIMER.get()
        && *process == std::process::id()
        && hand_over(sender, Box::new(freed), 0)
    {
        // The thread drops `freed` after it has dropped all values before it. `recv` then returns an error.
        let _ = is_freed.recv();
    }
}
