//! Row 10 of docs/benchmarks.md: the longest time that another client waits while a filter of a gigabyte is created,
//! saved, loaded and freed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rollcall_testkit::wait_until;

use crate::contenders::{Contender, Pair, medians};
use crate::items::Items;
use crate::report::{Goal, Report};

/// Time between two pings.
const EVERY: Duration = Duration::from_micros(200);

/// Idle time before and after the work.
const AROUND: Duration = Duration::from_millis(30);

/// The longest wait of a client that pings all the time during `work`, in milliseconds.
fn longest_wait(contender: &mut Contender, work: impl FnOnce(&mut Contender)) -> f64 {
    let mut client = contender.server.client();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let prober = std::thread::spawn(move || {
        let mut longest = Duration::ZERO;
        while !stopped.load(Ordering::Relaxed) {
            let start = Instant::now();
            // While the server loads, the reply is an error, which counts as a reply.
            client.call(&["PING"]);
            longest = longest.max(start.elapsed());
            std::thread::sleep(EVERY);
        }
        longest
    });
    std::thread::sleep(AROUND);
    work(contender);
    std::thread::sleep(AROUND);
    stop.store(true, Ordering::Relaxed);
    prober.join().expect("the prober").as_secs_f64() * 1e3
}

pub fn run(report: &mut Report) {
    let gigabytes = report.pick(0.1, 1.0);
    let mut pair = Pair::start();
    let mut round = |_| {
        pair.round(|contender| {
            // Compression is switched off, because full filters cannot be compressed. The nearly empty filter of this
            // test could be.
            contender.client.expect("CONFIG SET rdbcompression no", "+OK");
            let idle = longest_wait(contender, |_| ());
            // Creates a filter for a million items, and computes from its size the capacity for a filter of a
            // gigabyte.
            contender.client.expect("BF.RESERVE giant 0.001 1000000", "+OK");
            let capacity = gigabytes * 1e15 / contender.info("giant", "Size");
            contender.client.expect("DEL giant", "1");
            let before = contender.resident_bytes();
            let reserve = format!("BF.RESERVE giant 0.001 {capacity:.0}");
            let created = longest_wait(contender, |contender| contender.client.expect(&reserve, "+OK"));
            // Adds enough items to touch every page of memory. An item touches at least two random lines of
            // Rollcall's filter, or ten of RedisBloom's.
            let items = if contender.is_ours { 1_200_000.0 } else { 300_000.0 } * gigabytes;
            contender.fill("BF.MADD", "giant", &mut Items::new(1), items as usize);
            assert!(contender.resident_bytes() - before > 0.95 * gigabytes * 1e9, "not all of it is filled");
            let saved = longest_wait(contender, |contender| {
                contender.client.expect("BGSAVE", "+Background saving started");
                let is_saving = |contender: &mut Contender| contender.client.info_number("rdb_bgsave_in_progress") == 1;
                wait_until("BGSAVE", || (!is_saving(contender)).then_some(()));
            });
            assert_eq!(contender.client.info("rdb_last_bgsave_status"), "ok");
            let fork = contender.client.info_number("latest_fork_usec") as f64 / 1e3;
            let freed = longest_wait(contender, |contender| {
                contender.client.expect("UNLINK giant", "1");
                let is_freed = |contender: &mut Contender| contender.resident_bytes() < before + 0.1 * gigabytes * 1e9;
                wait_until("the memory to be given back", || is_freed(contender).then_some(()));
            });
            let loaded = longest_wait(contender, |contender| contender.client.expect("DEBUG RELOAD NOSAVE", "+OK"));
            contender.client.expect("FLUSHALL", "+OK");
            [idle, created, fork, (saved - fork).max(0.0), loaded, freed]
        })
    };
    let figures = medians(&(0..report.pick(1, 3)).map(&mut round).collect::<Vec<_>>());
    for ((work, goal), figures) in [
        ("nothing (how quiet the machine is)", Goal::Shown),
        ("BF.RESERVE", Goal::AtMost(5.0)),
        ("the fork of BGSAVE, which the server makes", Goal::Shown),
        ("BGSAVE beyond its fork", Goal::AtMost(5.0)),
        ("loading", Goal::AtMost(5.0)),
        ("UNLINK", Goal::AtMost(5.0)),
    ]
    .into_iter()
    .zip(figures)
    {
        report.row(
            "10",
            &format!("longest wait of another client, a filter of {gigabytes} GB: {work}"),
            goal,
            figures,
            "ms",
        );
    }
}
