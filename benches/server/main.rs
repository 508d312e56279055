//! `make bench`: measures every goal of docs/benchmarks-tables.md on two servers of one binary, one with Rollcall and
//! one with RedisBloom. Writes the table and the plots.
//!
//! Times are the server's own, from `INFO commandstats`, unless a row says otherwise, so the speed of this client does
//! not matter. The contenders take turns within each round, and medians over the rounds are compared. A machine that is
//! slow for a while is therefore slow for all contenders. Ratios are meaningful, microseconds are not.
//!
//! Environment variables: `BENCH_SERVER` (by default redis-server), `BENCH_MODULE`, `BENCH_FLOOR` and `BENCH_PEER` (the
//! modules), `BENCH_TOOL` (the command-line tool), `BENCH_BUILD_LINES` (lines of the file that it builds from),
//! `BENCH_DOCUMENT` (the Markdown file to write into; plots go into the folder `benchmarks` beside it), `BENCH_ROWS`
//! (the folder in which the rows of the run on each server are kept, by default that of the plots) and, for a full run,
//! `BENCH_PAGES` (files, separated by commas, whose tables are written anew). `BENCH_QUICK=1` makes a quick run.
//! `BENCH_ONLY=word,word` runs only the sections whose name has one of the words.

mod batch;
mod building;
mod counting;
mod grid;
mod growth;
mod items;
mod measure;
mod memory;
mod misses;
mod persistence;
mod report;
mod resp;
mod runs;
mod servers;
mod sets;
mod single;
mod small;
mod stalls;
mod waits;
mod windows;

use std::path::PathBuf;

use measure::Bench;
use rollcall_bench_output::plot;
use servers::Server;

/// Runs one part and returns its plots.
type Section = fn(&mut Bench) -> Vec<plot::File>;

fn no_plots(run: fn(&mut Bench)) -> impl Fn(&mut Bench) -> Vec<plot::File> {
    move |bench| {
        run(bench);
        Vec::new()
    }
}

/// The sections in the order in which they run. The section about persistence uses the filter that the first one fills,
/// and the section "waits" empties the servers.
const SECTIONS: [(&str, [u64; 2], Section); 21] = [
    ("350 items a call", [9, 91], |bench| no_plots(batch::run)(bench)),
    ("saving and loading", [6, 60], |bench| no_plots(persistence::run)(bench)),
    ("one item a call", [2, 9], |bench| no_plots(single::run)(bench)),
    ("adding to counters", [1, 1], |bench| no_plots(counting::run_add)(bench)),
    ("unions of counters", [2, 3], |bench| no_plots(counting::run_union)(bench)),
    ("sets by a client library", [3, 12], |bench| no_plots(sets::run)(bench)),
    ("bytes of counters", [1, 1], |bench| no_plots(counting::run_bytes)(bench)),
    ("end to end", [1, 3], |bench| no_plots(single::run_throughput)(bench)),
    ("bytes of filters", [1, 2], memory::run),
    ("error of counters", [2, 17], counting::run_error),
    ("sub-filters", [2, 6], growth::run_chain),
    ("default capacity", [3, 4], |bench| no_plots(growth::run_default)(bench)),
    ("size of filters", [4, 15], growth::run_size),
    ("windows of filters", [10, 90], |bench| no_plots(windows::run_filters)(bench)),
    ("windows of counters", [2, 4], |bench| no_plots(windows::run_counters)(bench)),
    ("bytes of windows", [2, 2], windows::run_bytes),
    ("waits for windows", [6, 60], |bench| no_plots(windows::run_waits)(bench)),
    ("small keys", [15, 240], |bench| no_plots(small::run)(bench)),
    ("building from files", [8, 60], |bench| no_plots(building::run)(bench)),
    ("the longest commands", [60, 400], |bench| no_plots(stalls::run)(bench)),
    ("grid", [20, 300], |bench| no_plots(grid::run)(bench)),
];
const WAITS: (&str, [u64; 2], Section) = ("waits of other clients", [10, 50], |bench| no_plots(waits::run)(bench));

fn file(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.unwrap_or_else(|| panic!("{variable} is not set: run `make bench`"));
    path.canonicalize().unwrap_or_else(|error| panic!("{variable}: {}: {error}", path.display()))
}

fn main() {
    let quick = std::env::var("BENCH_QUICK").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let only = std::env::var("BENCH_ONLY").unwrap_or_default();
    let binary = std::env::var("BENCH_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    let document = PathBuf::from(std::env::var_os("BENCH_DOCUMENT").unwrap_or_else(|| "target/benchmarks.md".into()));

    let sections: Vec<_> = SECTIONS
        .into_iter()
        .chain([WAITS])
        .filter(|section| only.split(',').any(|word| section.0.contains(word)))
        .collect();
    let expected: Vec<_> = sections.iter().map(|(name, seconds, _)| (*name, seconds[usize::from(!quick)])).collect();
    let mut ours = Server::start(&binary, &[&file("BENCH_MODULE"), &file("BENCH_FLOOR")]);
    // Some sections have a key of a gigabyte.
    ours.configure("rollcall.max-key-bytes 4gb");
    let peer = Server::start(&binary, &[&file("BENCH_PEER")]);
    let mut bench = Bench::new(ours, peer, quick, &expected);

    let mut plots = Vec::new();
    for (index, (_, _, run)) in sections.iter().enumerate() {
        bench.section(index);
        plots.extend(run(&mut bench));
    }
    bench.finish();

    println!("{}", report::table(&bench));
    bench.extras.iter().for_each(|extra| println!("{extra}"));
    let folder = document.with_file_name("benchmarks");
    std::fs::create_dir_all(&folder).expect("the folder of the plots");
    plots.iter().for_each(|plot| plot::write(&folder, plot).expect("the plot is written"));
    let rows = std::env::var_os("BENCH_ROWS").map_or(folder, PathBuf::from);
    std::fs::create_dir_all(&rows).expect("the folder of the rows");
    let (server, setting) = (report::server(&mut bench), report::setting(&mut bench));
    let runs = runs::keep(&rows, &server, &setting, &bench.rows).unwrap_or_else(|error| panic!("the rows: {error}"));
    report::write(&document, &bench, &plots).expect("the document is written");
    let pages = std::env::var("BENCH_PAGES").unwrap_or_default();
    let pages = pages.split(',').filter(|page| !page.is_empty()).map(PathBuf::from);
    for page in pages.chain([document.clone()]) {
        report::write_page(&page, &bench, &runs).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    }
    let missed = bench.rows.iter().filter(|row| row.met() == Some(false)).count();
    let goals = bench.rows.iter().filter(|row| row.met().is_some()).count();
    println!("bench: {} of {goals} goals met; written to {}", goals - missed, document.display());
}
