//! Measures the time that other clients wait while a filter of 1 GB (0.1 GB in a quick run) is created and removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::batch::fill;
use crate::items::Source;
use crate::measure::{Bench, Goal, Row, Samples};
use crate::resp::Connection;
use crate::servers::Server;

const KEY: &str = "giant";

/// Size of the filter in gigabytes, in a quick and in a full run.
const GIGABYTES: (f64, f64) = (0.1, 1.0);
const RATE: f64 = 0.001;

/// Time between two pings.
const EVERY: Duration = Duration::from_micros(200);

/// Idle time before the work, and the least idle time after it.
const AROUND: Duration = Duration::from_millis(30);

/// The longest time until memory has been given back to the system.
const SETTLED: Duration = Duration::from_secs(3);

/// A client that sends pings all the time and records its longest wait.
struct Prober {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Prober {
    fn start(mut client: Connection) -> Prober {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let start = Instant::now();
                client.call("PING");
                longest = longest.max(start.elapsed());
                std::thread::sleep(EVERY);
            }
            longest
        });
        Prober { stop, thread }
    }

    fn stop(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the prober")
    }
}

/// The longest wait of a client during `work`, in milliseconds. Waits afterwards until the process uses at most `bytes`
/// of memory.
pub fn longest_wait(server: &mut Server, bytes: f64, work: impl FnOnce(&mut Server)) -> f64 {
    let prober = Prober::start(server.connect());
    std::thread::sleep(AROUND);
    work(server);
    let end = Instant::now() + SETTLED;
    while server.resident_bytes() > bytes && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(AROUND);
    prober.stop().as_secs_f64() * 1e3
}

/// Ways in which a filter can be removed.
const ENDS: [(&str, &str); 5] = [
    ("UNLINK", "UNLINK giant"),
    ("DEL", "DEL giant"),
    ("SET over it", "SET giant x"),
    ("FLUSHALL", "FLUSHALL"),
    ("expiry", "PEXPIRE giant 1"),
];

/// Measures the waits. Must run after all sections that keep keys, because it calls FLUSHALL.
pub fn run(bench: &mut Bench) {
    bench.ours.call("FLUSHALL");
    bench.peer.call("FLUSHALL");
    let (repeats, gigabytes) = (bench.pick(1, 5), bench.pick(GIGABYTES.0, GIGABYTES.1));
    let bytes = gigabytes * 1e9;
    // Samples of no work, of reserving, of each end, and of the memory that reserving touched.
    let mut samples = [(); 2].map(|()| [(); 8].map(|()| Samples::default()));
    for repeat in 0..repeats {
        for (at, (server, samples)) in [&mut bench.ours, &mut bench.peer].into_iter().zip(&mut samples).enumerate() {
            // The size of a filter for a million items gives the capacity of one of this size.
            server.call(&format!("BF.RESERVE {KEY} {RATE} 1000000"));
            let capacity = bytes * 1e6 / server.call(&format!("BF.INFO {KEY}")).field("Size");
            server.call(&format!("DEL {KEY}"));
            samples[0].push(longest_wait(server, f64::MAX, |_| ()));
            for (index, (_, end)) in ENDS.iter().enumerate() {
                let before = server.resident_bytes();
                let reserve = format!("BF.RESERVE {KEY} {RATE} {}", capacity as u64);
                samples[1].push(longest_wait(server, f64::MAX, |server| drop(server.call(&reserve))));
                samples[7].push(server.resident_bytes() - before);
                // An item touches two or more random lines of ours, or ten of RedisBloom's. This number of items touches every
                // page.
                let items = [1_200_000.0, 300_000.0][at] * gigabytes;
                fill(server, KEY, &mut Source::From(0), items as u64);
                assert!(server.resident_bytes() - before > 0.95 * bytes, "not all of it is filled");
                samples[2 + index].push(longest_wait(server, before + 0.1 * bytes, |server| {
                    server.call(end);
                }));
                server.call("FLUSHALL");
            }
        }
        bench.step(repeat + 1, repeats);
    }
    let names = ["nothing (how quiet the machine is)", "BF.RESERVE"].into_iter().chain(ENDS.map(|(name, _)| name));
    for (index, name) in names.enumerate() {
        bench.rows.push(Row {
            work: format!("longest wait of another client, {gigabytes} GB: {name}"),
            goal: if index == 0 { Goal::Shown } else { Goal::AtMost(5.0) },
            ours: samples[0][index].median(),
            other: Some(("RedisBloom", samples[1][index].median())),
            unit: "ms",
        });
    }
    bench.rows.push(Row {
        work: format!("memory touched by BF.RESERVE of {gigabytes} GB"),
        goal: Goal::AtMost(1.0),
        ours: samples[0][7].max() / 1e6,
        other: Some(("RedisBloom", samples[1][7].max() / 1e6)),
        unit: "MB",
    });
}
