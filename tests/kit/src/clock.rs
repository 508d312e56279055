//! A settable time of day: libfaketime, loaded before a server, reads it from a file.
//!
//! The time of day stands still until the test sets it again. Monotonic clocks, which measure durations, keep running.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::server::Setup;

/// The time of day of one or more servers, in Unix seconds. A server must not run longer than its clock exists.
pub struct Clock {
    dir: TempDir,
    now: AtomicU64,
}

impl Clock {
    /// A clock that shows this time.
    #[track_caller]
    pub fn at(now: u64) -> Clock {
        let clock = Clock { dir: tempfile::tempdir().expect("a temporary directory"), now: AtomicU64::new(now) };
        clock.set(now);
        clock
    }

    /// Sets the clock forwards or back.
    #[track_caller]
    pub fn set(&self, now: u64) {
        self.now.store(now, Ordering::Relaxed);
        // The file is replaced, because a server may read it at any moment.
        let next = self.dir.path().join("next");
        fs::write(&next, format!("{now}\n")).expect("the time is written");
        fs::rename(next, self.file()).expect("the time is set");
        // Valkey 9 reads the time at most once a millisecond of the monotonic clock, so this waits longer than that.
        std::thread::sleep(Duration::from_millis(3));
    }

    /// Sets the clock forwards by a number of seconds.
    #[track_caller]
    pub fn pass(&self, seconds: u64) {
        self.set(self.now() + seconds);
    }

    /// The time that the clock shows.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The setup of a server that uses this clock.
    #[track_caller]
    pub fn setup(&self) -> Setup {
        // Loads the C library first, so that its allocator is used. libfaketime needs memory while another allocator,
        // which asks for the time, is still being initialised.
        let mut preload = OsString::from(library());
        preload.push(" libc.so.6");
        Setup::default()
            .environment("LD_PRELOAD", preload)
            .environment("FAKETIME_TIMESTAMP_FILE", self.file())
            .environment("FAKETIME_FMT", "%s")
            .environment("FAKETIME_NO_CACHE", "1")
            .environment("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            // libfaketime supports one thread. If jemalloc's thread also asked for the time, the server would see the
            // real time once, and then run its periodic tasks for decades.
            .line("jemalloc-bg-thread no")
            // The time limit is so high that a jump of the clock does not end the replication link.
            .line("repl-timeout 2000000000")
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("time")
    }
}

/// The library libfaketime: the file in `ROLLCALL_FAKETIME`, or else the one of Debian's package.
#[track_caller]
fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("ROLLCALL_FAKETIME") {
        return path.into();
    }
    let mut folders: Vec<PathBuf> = ["/usr/lib", "/usr/lib64"].map(PathBuf::from).into();
    folders.extend(fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path()));
    let mut libraries = folders.iter().map(|folder| folder.join("faketime/libfaketime.so.1"));
    libraries.find(|path| path.exists()).expect("libfaketime is missing: `scripts/setup.sh clocks` installs it")
}
