//! Measures saving, loading, and the cost of a background save while items are added.

use std::time::{Duration, Instant};

use crate::batch::BIG;
use crate::items::{Source, calls};
use crate::measure::{Bench, Goal, NEVER_BEHIND, Row, Samples};
use crate::servers::Server;

/// Number of BF.ADD calls per second during a background save.
const LOAD: usize = 10_000;

/// Saves and loads the filter of 180 MB that [`crate::batch`] filled.
pub fn run(bench: &mut Bench) {
    let repeats = bench.pick(1, 5);
    let [mut copied, mut adds, mut saved, mut loaded] = [(); 4].map(|()| [(); 2].map(|()| Samples::default()));
    for repeat in 0..repeats {
        for (at, server) in [&mut bench.ours, &mut bench.peer].into_iter().enumerate() {
            let (bytes, count) = save_under_load(server, repeat);
            copied[at].push(bytes / 1e6);
            adds[at].push(count as f64);
            saved[at].push(seconds(|| drop(server.call("SAVE"))));
            assert!(server.rdb().exists(), "nothing was saved");
            // Otherwise the time would include freeing the old filter, which ours does in another thread.
            server.call(&format!("DEL {BIG}"));
            std::thread::sleep(Duration::from_millis(500));
            loaded[at].push(seconds(|| drop(server.call("DEBUG RELOAD NOSAVE"))));
            assert_eq!(server.call(&format!("EXISTS {BIG}")).number(), 1.0, "nothing was loaded");
        }
        for server in [&mut bench.ours, &mut bench.peer] {
            let sub_filters = server.call(&format!("BF.INFO {BIG}")).field("Number of filters");
            assert_eq!(sub_filters, 1.0, "the filter has grown: it is not the one that the rows are about");
        }
        bench.step(repeat + 1, repeats);
    }
    let row = |work: String, goal, [ours, peer]: &[Samples; 2], unit| Row {
        work,
        goal,
        ours: ours.median(),
        other: Some(("RedisBloom", peer.median())),
        unit,
    };
    let under = format!("BGSAVE of 180 MB under {LOAD} BF.ADD a second");
    bench.rows.push(row(format!("{under}: memory copied"), NEVER_BEHIND, &copied, "MB"));
    bench.rows.push(row(format!("{under}: BF.ADD while it lasted"), Goal::Shown, &adds, "calls"));
    bench.rows.push(row("SAVE of a filter of 180 MB".to_owned(), NEVER_BEHIND, &saved, "s"));
    bench.rows.push(row("loading it from the RDB file".to_owned(), NEVER_BEHIND, &loaded, "s"));
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Saves in the background while new items are added at a steady rate. Returns the bytes that were copied on write, and
/// the number of items added.
fn save_under_load(server: &mut Server, repeat: usize) -> (f64, usize) {
    const TICK: Duration = Duration::from_millis(1);
    let mut source = Source::From((repeat as u64 + 1) << 36);
    let mut control = server.connect();
    let mut next = Instant::now();
    let mut added = 0;
    control.call("BGSAVE");
    loop {
        for _ in 0..10 {
            let a_tick = LOAD / 1000;
            server.client.run_one(&calls(&["BF.ADD", BIG], &mut source, a_tick, 1, a_tick).remove(0));
            added += a_tick;
            next += TICK;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        if control.call("INFO persistence").text().contains("rdb_bgsave_in_progress:0") {
            break;
        }
    }
    assert!(control.call("INFO persistence").text().contains("rdb_last_bgsave_status:ok"), "BGSAVE failed");
    (server.info("rdb_last_cow_size"), added)
}
