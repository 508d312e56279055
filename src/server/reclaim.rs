//! Frees large values on a background thread, not on the server's thread.
//!
//! Unmapping a gigabyte takes a fifth of a second. The server itself frees in the background after UNLINK and FLUSHALL
//! ASYNC (see `free_effort`). After DEL, an overwriting SET, expiry and a plain FLUSHALL, it frees on its own thread,
//! and this file moves the work to the background.
//!
//! While the server's memory has reached `maxmemory`, values are freed on the server's thread. Eviction measures how
//! much memory each evicted key gives back. If the memory were freed later, the server would evict more keys than
//! necessary.
//!
//! When it has no value to free, the thread turns pages of large bitmaps into [huge] pages, one at a time.

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

/// A value to be freed, and its size in bytes. Until it is dropped, the metrics count it as waiting.
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

/// Returns the channel to the background thread, and starts the thread at the first call. Returns `None` in a forked
/// child process, and if the thread could not be started.
fn reclaimer() -> Option<&'static Sender<Garbage>> {
    let started = RECLAIMER.get_or_init(|| {
        let (sender, receiver) = channel::<Garbage>();
        let (ready, is_ready) = channel();
        let free = move || {
            // The first allocation of a thread sets up jemalloc's data for the thread. It is made here, because it
            // would crash later if memory were lacking.
            drop(black_box(Box::new(0u64)));
            drop(ready);
            work(&receiver);
        };
        let thread = std::thread::Builder::new().name("rollcall-free".to_owned());
        thread.spawn(free).ok().map(|_| {
            // This waits until the thread drops `ready`. `recv` then returns an error, which is expected.
            let _: Result<(), _> = is_ready.recv();
            (std::process::id(), sender)
        })
    });
    started.as_ref().filter(|(process, _)| *process == std::process::id()).map(|(_, sender)| sender)
}

/// After the background thread has made a page huge, it rests for this time. Page faults of the main thread may have to
/// wait for each page, which takes about a millisecond. A command should not have to wait for several pages.
const REST: Duration = Duration::from_millis(5);

/// Runs on the background thread, until the channel is closed.
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

/// Starts the background thread if a value of `bytes` bytes will be freed there. When the first value is freed, it may
/// be too late to start the thread: jemalloc crashes in a new thread if the process gets no more memory. This function
/// also wakes the thread if pages of the value have to become huge.
pub fn prepare(bytes: u64) {
    if bytes >= BACKGROUND_BYTES as u64
        && let Some(sender) = reclaimer()
        && huge::has_new()
    {
        hand_over(sender, Box::new(()), 0);
    }
}

/// Passes a value to the background thread. If the thread has ended, returns false, and the value is freed in this
/// call.
fn hand_over(sender: &Sender<Garbage>, value: Box<dyn Send>, bytes: usize) -> bool {
    sender.send(Garbage::new(value, bytes)).is_ok()
}

pub fn has_started() -> bool {
    RECLAIMER.get().is_some()
}

/// Drops a value that the server frees. On the server's main thread, a large value is dropped in the background. Other
/// threads drop it themselves, because no client waits for them. They do not call `bytes`, which computes the size.
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
        // The thread drops `freed` after it has dropped all earlier values. `recv` then returns an error, which is
        // expected.
        let _ = is_freed.recv();
    }
}
