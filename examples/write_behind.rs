//! Write-behind: a hot counter gets one command an interval, however often the application adds.
//!
//! Four threads add a million visits of a page. They add to a counter of the process, and every 100 milliseconds a
//! thread sends it.
//!
//! - `DUMP key` gives the parameters of the key, so that the counter of the process can be merged into it.
//! - `LC.MERGEDUMP key bytes` merges it. The reply may be lost: to merge it again changes nothing.
//! - `LC.INSERT key EX seconds ITEMS member` before it, in the same transaction, makes a missing key with its time to
//!   live. On a key that exists it adds a member that is merged anyway.
//!
//! Each interval begins with an empty counter, and is sent again with the next one, in case the server has lost it,
//! here by a `DEL`. What a flush cannot send, the next one sends: here the connection is closed once. For Python, the
//! package has this as the class `WriteBehind`.

mod demo;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{scope, sleep};
use std::time::Duration;

use demo::{Bounds, Failure, Promises, thousands};
use redis::Connection;
use rollcall_core::counting::{Counter, Params};
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::window::Time;
use rollcall_fuzz::random::Random;

const PREFIX: &str = "rollcall-demo:behind:";
const KEY: &str = "rollcall-demo:behind:visitors";
const TTL_SECONDS: u64 = 3600;
const INTERVAL: Duration = Duration::from_millis(100);
const THREADS: u64 = 4;
const VISITS: u64 = 250_000;
const VISITORS: u64 = 50_000;

/// A counter with the parameters of the key, and one of its members. Without a member it is empty.
type Part = (Counter, Option<String>);

/// Members that the server may lack.
struct WriteBehind {
    key: &'static str,
    /// What was added since the last flush, and before it since the one before, or since the last that succeeded.
    parts: Mutex<[Part; 2]>,
}

impl WriteBehind {
    /// Makes the key if it is missing, and reads its parameters.
    fn new(key: &'static str, first: &str, server: &mut Connection) -> Result<Self, Failure> {
        creation(key, first).exec(server)?;
        let part = || Counter::new(Params::default()).map(|counter| (counter, None));
        let behind = WriteBehind { key, parts: Mutex::new([part()?, part()?]) };
        behind.learn(server)?;
        Ok(behind)
    }

    fn parts(&self) -> MutexGuard<'_, [Part; 2]> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the parameters of the key, which may have been made anew, and collects on with these.
    fn learn(&self, server: &mut Connection) -> Result<(), Failure> {
        let Some(payload) = redis::cmd("DUMP").arg(self.key).query::<Option<Vec<u8>>>(server)? else { return Ok(()) };
        let stored = persist::from_bytes::<Counter>(&payload, &MaxBytes(64 << 20))?;
        for (counter, _) in &mut *self.parts() {
            let mut empty = stored.new_like()?;
            empty.live(Time::Reached).merge(&[counter], &Unlimited)?;
            *counter = empty;
        }
        Ok(())
    }

    fn add(&self, member: &str) -> Result<(), Failure> {
        let [(counter, first), _] = &mut *self.parts();
        first.get_or_insert_with(|| member.to_owned());
        counter.live(Time::Reached).add(member, &Unlimited)?;
        Ok(())
    }

    /// Sends both parts. If that succeeds, only the newer one is kept, to be sent again.
    fn flush(&self, server: &mut Connection) -> Result<(), Failure> {
        let (bytes, first, added) = {
            let [new, old] = &mut *self.parts();
            let Some(first) = new.1.clone().or_else(|| old.1.clone()) else { return Ok(()) };
            let (mut all, empty) = (new.0.new_like()?, new.0.new_like()?);
            all.live(Time::Reached).merge(&[&new.0, &old.0], &Unlimited)?;
            let bytes = persist::to_bytes(&all)?;
            // The next flush sends all of it again, unless this one succeeds.
            *old = (all, Some(first.clone()));
            (bytes, first, std::mem::replace(new, (empty, None)))
        };
        let merge = redis::cmd("LC.MERGEDUMP").arg(self.key).arg(bytes).to_owned();
        redis::pipe().atomic().add_command(creation(self.key, &first)).add_command(merge).exec(server)?;
        self.parts()[1] = added;
        Ok(())
    }
}

/// The command that makes the key, if it is missing, with a member.
fn creation(key: &str, member: &str) -> redis::Cmd {
    redis::cmd("LC.INSERT").arg(key).arg("EX").arg(TTL_SECONDS).arg("ITEMS").arg(member).to_owned()
}

fn main() -> ExitCode {
    demo::run(PREFIX, visit)
}

fn visit(server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    println!(
        "{} visits by {THREADS} threads; the key is deleted and a connection closed meanwhile\n",
        thousands(THREADS * VISITS)
    );
    let behind = WriteBehind::new(KEY, "0", server)?;
    let (is_done, mut flushes, mut failures) = (AtomicBool::new(false), 0, 0);
    scope(|scope| {
        let behind = &behind;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || add_visits(thread, behind))).collect();
        let sending = scope.spawn(|| {
            let (mut own, mut flushes, mut failures) = (None, 0, 0);
            loop {
                let is_last = is_done.load(Ordering::Relaxed);
                sleep(INTERVAL);
                // After an error, the next interval has a new connection, and may have other parameters.
                own = own.or_else(|| {
                    let mut server = demo::connect().ok()?;
                    behind.learn(&mut server).ok().map(|()| server)
                });
                if let Some(connection) = &mut own {
                    if failures == 0 {
                        // The server closes this connection, so the first flush fails.
                        let _ = redis::cmd("QUIT").exec(connection);
                    }
                    match behind.flush(connection) {
                        Ok(()) => flushes += 1,
                        Err(_) => (own, failures) = (None, failures + 1),
                    }
                }
                if is_last {
                    return (flushes, failures);
                }
            }
        });
        redis::cmd("DEL").arg(KEY).exec(server)?;
        for thread in threads {
            thread.join().map_err(|_| "a thread has panicked")??;
        }
        is_done.store(true, Ordering::Relaxed);
        (flushes, failures) = sending.join().map_err(|_| "the sending thread has panicked")?;
        // An error that no retry heals is raised here.
        behind.flush(server)
    })?;
    let direct: Counter = (0..VISITORS).map(|visitor| visitor.to_string()).collect();
    let (count,): (u64,) = redis::pipe().cmd("LC.COUNT").arg(KEY).query(server)?;
    let ttl: f64 = redis::cmd("TTL").arg(KEY).query(server)?;
    promises.same("visitors, as if each had been added directly", direct.count(), count);
    promises.number("seconds to live of the key", &Bounds::between(1.0, TTL_SECONDS as f64), ttl, "");
    promises.same("failed flushes, whose members the next one sent", 1, failures);
    promises.report("visits for each command", thousands(THREADS * VISITS / flushes.max(1)));
    Ok(())
}

/// Adds visits of random visitors, and in the end one of each.
fn add_visits(thread: u64, behind: &WriteBehind) -> Result<(), Failure> {
    let mut random = Random::new(thread);
    for _ in 0..VISITS {
        behind.add(&random.below(VISITORS).to_string())?;
    }
    (0..VISITORS).try_for_each(|visitor| behind.add(&visitor.to_string()))
}
