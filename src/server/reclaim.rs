//! Frees large values on a background thread.
//!
//! Unmapping a gigabyte takes a fifth of a second. The server itself frees in the background only after UNLINK and
//! FLUSHALL ASYNC. After DEL, an overwriting SET, expiry and a plain FLUSHALL, this file moves the work to the
//! background.
//!
//! While the server's memory has reached `maxmemory`, values are freed on the server's thread. Eviction measures how
//! much memory each evicted key gives back, and would otherwise evict too many keys.
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

/// The smallest value, in bytes, that is freed in the background. Freeing a smaller one costs less than passing it on.
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
        guard("freeing a value", || drop(self.value.take()));
        WAITING.sub(1);
        WAITING_BYTES.sub(self.bytes as u64);
    }
}

/// Values that wait to be freed in the background.
pub static WAITING: Metric = Metric::new();
/// The bytes of the values that wait to be freed in the background.
pub static WAITING_BYTES: Metric = Metric::new();

static RECLAIMER: OnceLock<Option<(u32, Sender<Garbage>)>> = OnceLock::new();

/// The channel to the background thread, which the first call starts. `None` in a forked child process, and if the
/// thread could not be started.
fn reclaimer() -> Option<&'static Sender<Garbage>> {
    let started = RECLAIMER.get_or_init(|| {
        let (sender, receiver) = channel::<Garbage>();
        let (ready, is_ready) = channel();
        let free = move || {
            // A thread's first allocation sets up jemalloc's data for the thread, which crashes if memory is lacking.
            // So the thread allocates now.
            drop(black_box(Box::new(0u64)));
            drop(ready);
            work(&receiver);
        };
        let thread = std::thread::Builder::new().name("rollcall-free".to_owned());
        thread.spawn(free).ok().map(|_| {
            // Waits until the thread has made its first allocation. It then drops `ready`, which makes `recv` return an
            // error.
            let _: Result<(), _> = is_ready.recv();
            (std::process::id(), sender)
        })
    });
    started.as_ref().filter(|(process, _)| *process == std::process::id()).map(|(_, sender)| sender)
}

/// The background thread rests for this time after it has made a page huge, which takes about a millisecond. Without
/// the rest, a page fault of the main thread could wait for several pages.
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

/// Starts the background thread now if it will free this value, because memory for a new thread may be lacking later.
/// Also wakes the thread to make pages of the value huge.
pub fn prepare(bytes: u64) {
    if bytes >= BACKGROUND_BYTES as u64
        && let Some(sender) = reclaimer()
        && huge::has_new()
    {
        hand_over(sender, Box::new(()), 0);
    }
}

/// Passes a value to the background thread. If the thread has ended, frees the value here and returns false.
fn hand_over(sender: &Sender<Garbage>, value: Box<dyn Send>, bytes: usize) -> bool {
    sender.send(Garbage::new(value, bytes)).is_ok()
}

pub fn has_started() -> bool {
    RECLAIMER.get().is_some()
}

/// Drops a value that the server frees. On the main thread, a large value is dropped in the background. Other threads
/// drop it themselves, because no client waits for them.
pub fn dispose<V: Send + 'static>(value: V, bytes: impl FnOnce(&V) -> usize) {
    if threads::is_main()
        && let bytes = bytes(&value)
        && bytes >= BACKGROUND_BYTES
        && facts::used_memory_ratio() < 1.0
        && let Some(sender) = reclaimer()
    {
        hand_over(sender, Box::new(value), bytes);
    }
}

/// Waits until all values that were queued before this call are freed.
pub fn wait() {
    let (freed, is_freed) = channel::<()>();
    if let Some(Some((process, sender))) = RECLAIMER.get()
        && *process == std::process::id()
        && hand_over(sender, Box::new(freed), 0)
    {
        // The thread drops `freed` after all values that were queued before. `recv` then returns.
        let _ = is_freed.recv();
    }
}
