//! Leases: fifty workers compete for ten seats. Some are killed while they hold one.
//!
//! A licence server, a pool of expensive jobs or a limit of sessions is a list of holders that must not grow beyond a
//! limit. A holder may crash, so its seat must become free without being released.
//!
//! - `LC.ADMIT key LIMIT 10 WINDOW 3 SLICES 3 VOLATILE ITEMS worker` acquires a seat. The reply is 1 if the worker
//!   got one, and -1 if all are taken. The same call renews a seat, with reply 0. A worker that does not call for
//!   three to four seconds loses its seat.
//! - `LC.REM key worker` releases the seat.
//!
//! Workers are processes. All of them write to one pipe: `+` after acquiring a seat, and `-` before releasing it. So
//! the pipe never shows more holders than there are.

mod demo;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use demo::{Bounds, Failure, Promises, thousands};
use redis::Connection;
use rollcall_fuzz::random::Random;

const PREFIX: &str = "rollcall-demo:leases:";
const KEY: &str = "rollcall-demo:leases:seats";
const WORKERS: usize = 50;
const SEATS: usize = 10;
/// The window in seconds. With slices of one second, a seat that is not renewed is lost after three to four seconds.
const WINDOW_SECONDS: u64 = 3;
const RUN: Duration = Duration::from_secs(6);
/// The number of workers that are killed while they hold a seat. They start first, so that their seats become free
/// during the run.
const KILLED: usize = 5;

fn main() -> ExitCode {
    if let Some(worker) = std::env::args().nth(1) {
        return work(&worker).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    demo::run(PREFIX, compete)
}

/// Acquires a seat, or renews it.
fn acquire(worker: &str, server: &mut Connection) -> Result<i64, Failure> {
    let mut admit = redis::cmd("LC.ADMIT");
    admit.arg(KEY).arg("LIMIT").arg(SEATS);
    admit.arg("WINDOW").arg(WINDOW_SECONDS).arg("SLICES").arg(WINDOW_SECONDS).arg("VOLATILE");
    let (answer,) = admit.arg("ITEMS").arg(worker).query(server)?;
    Ok(answer)
}

/// Acquires a seat, renews it while working, and releases it, again and again.
fn work(worker: &str) -> Result<(), Failure> {
    let (start, number, mut server) = (Instant::now(), worker.parse::<usize>()?, demo::connect()?);
    let mut random = Random::new(number as u64);
    while start.elapsed() < RUN {
        if acquire(worker, &mut server)? == 1 {
            println!("+ {worker}");
            if number < KILLED {
                println!("x {worker}");
                sleep(RUN);
            }
            for _ in 0..random.below(4) {
                sleep(Duration::from_millis(100));
                if acquire(worker, &mut server)? != 0 {
                    println!("! {worker}");
                }
            }
            println!("- {worker}");
            redis::cmd("LC.REM").arg(KEY).arg(worker).exec(&mut server)?;
        }
        sleep(Duration::from_millis(10 + random.below(40)));
    }
    Ok(())
}

fn compete(server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    println!("{WORKERS} workers for {SEATS} seats; {KILLED} are killed while they hold one\n");
    let (pipe, end) = std::io::pipe()?;
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let mut worker = Command::new(std::env::current_exe()?);
        workers.push(worker.arg(number.to_string()).stdout(end.try_clone()?).spawn()?);
    }
    drop(end);
    let (start, mut holders) = (Instant::now(), HashSet::new());
    let (mut most, mut most_at_last, mut taken, mut lost, mut killed) = (0, 0, 0, 0, 0);
    // Reads until all workers have ended.
    for line in BufReader::new(pipe).lines() {
        let line = line?;
        let (event, worker) = line.split_once(' ').ok_or("a line without a worker")?;
        let worker: usize = worker.parse()?;
        match event {
            "+" => (taken, _) = (taken + 1, holders.insert(worker)),
            "!" => lost += 1,
            _ => _ = holders.remove(&worker),
        }
        if event == "x" {
            workers[worker].kill()?;
            killed += 1;
        }
        most = most.max(holders.len());
        if start.elapsed() > RUN - Duration::from_secs(1) {
            most_at_last = most_at_last.max(holders.len());
        }
    }
    let ended = workers.iter_mut().map(|worker| worker.wait()).collect::<Result<Vec<_>, _>>()?;
    let left: usize = redis::cmd("LC.COUNT").arg(KEY).query(server)?;
    promises.number("holders at a time", &Bounds::at_most(SEATS as f64), most as f64, "");
    promises.same("workers killed with a seat", KILLED, killed);
    promises.same("workers that ended well", WORKERS - KILLED, ended.iter().filter(|status| status.success()).count());
    promises.same("seats lost although they were renewed", 0, lost);
    promises.same("holders at a time, in the last second", SEATS, most_at_last);
    promises.same("seats still taken at the end", 0, left);
    promises.report("seats taken in all", thousands(taken));
    Ok(())
}
