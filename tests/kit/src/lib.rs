//! The parts that test programs share: servers in their own folders, connections that show raw replies, clocks.
//!
//! - `ROLLCALL_SERVER`: the server's program, `redis-server` from the PATH by default.
//! - `ROLLCALL_MODULE`: the module, `release/librollcall.so` of the target directory by default.
//! - `ROLLCALL_ARGS`: load-time arguments of the module on every server, such as `huge-pages yes`.
//! - `ROLLCALL_FAKETIME`: the library that gives a server a clock of its own, Debian's libfaketime by default.
//! - `ROLLCALL_LOGS`: a folder for the logs of servers whose test fails (by default logs are not kept).
//! - `ROLLCALL_PATIENCE`: a factor of all time limits, for servers that something slows down.
//! - `ROLLCALL_THOROUGH`: if set, tests that try some of many cases try all (`make hostile`).

mod client;
mod clock;
mod cluster;
mod fixture;
mod pair;
mod reply;
mod server;
mod version;

use std::sync::atomic::{AtomicBool, Ordering};

pub use client::{
    Client, add_many, deadline, error_text, excerpt, field, lines, matches, message, number, pack, pairs, patience,
    rows, shorten, show, sum, text, typed, wait_until, with_items, words,
};
pub use clock::Clock;
pub use cluster::{Moving, SLOTS, add_replica, cluster, cluster_of, ended_moves, start_move};
pub use fixture::{
    CHANGES_NOTHING, assert_same, figures, go_on, populate, populate_for_no_change, populate_without_ttl, snapshot,
};
pub use pair::{OTHER_DEFAULTS, Pair};
pub use reply::Reply;
pub use server::{Server, Setup, is_thorough, module_path, optional_file, session};
pub use version::Version;

/// A command that Ctrl-C ends, even if this process ignores Ctrl-C, as background processes of a shell do.
pub fn heeding_signals(program: &str) -> std::process::Command {
    let mut command = std::process::Command::new("env");
    command.args(["--default-signal=INT,TERM,HUP", program]);
    command
}

/// Sets a flag when it goes out of scope, also after a failure: threads that write until then end too.
pub struct EndOnDrop<'a>(pub &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
