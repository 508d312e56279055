//! `make bench`: the ten rows of docs/benchmarks.md, on two servers of one binary, one with Rollcall and one with
//! RedisBloom.
//!
//! Times are the server's own, from `INFO commandstats`, unless a row says otherwise, so the speed of this client
//! does not matter. Both servers take turns within each round, and medians over the rounds are compared. So a phase
//! in which the machine is slow affects both. Ratios are meaningful, microseconds are not.
//!
//! Server and modules are chosen as in the tests (`ROLLCALL_SERVER`, `ROLLCALL_MODULE`, `ROLLCALL_PEER`). With
//! `ROLLCALL_ARGS="huge-pages yes"`, Rollcall has huge pages, and the tables have a column for that. A full run
//! writes `target/benchmarks/SERVER.md`, the server's column of the tables in docs/benchmarks.md and README.md, and
//! the plot. `BENCH_QUICK=1` makes a quick run, and `BENCH_ONLY=1,7` measures these rows: both only print.
//! `BENCH_ONLY=leases` measures the rows of docs/tutorials/leases.md; other runs leave them out.

mod contenders;
mod items;
mod leases;
mod lists;
mod report;
mod single;
mod small;
mod waits;

use report::Report;

/// A part of the run: the rows that it measures, and how.
type Part = (&'static [&'static str], fn(&mut Report));

const PARTS: [Part; 13] = [
    (&["1", "2", "9"], lists::large),
    (&["3"], lists::small),
    (&["4"], single::items),
    (&["5"], lists::grown),
    (&["6"], lists::week),
    (&["7"], small::life),
    (&["8"], single::counters),
    (&["9b"], single::packed_counters),
    (&["10"], waits::run),
    (&["plot"], lists::sizes),
    (&["bytes"], small::bytes),
    (&["bytes"], single::bytes_of_counters),
    (&["leases"], leases::run),
];

fn main() {
    let quick = std::env::var("BENCH_QUICK").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let only = std::env::var("BENCH_ONLY").unwrap_or_default();
    let is_named = |rows: &[&str]| only.split(',').any(|row| rows.contains(&row));
    let is_asked = |rows: &[&str]| if only.is_empty() { rows != ["leases"] } else { is_named(rows) };
    let mut report = Report::new(quick);
    for (rows, run) in PARTS {
        if is_asked(rows) {
            run(&mut report);
        }
    }
    report.finish(!quick && only.is_empty());
}
