//! Compares `rollcall build`, which makes a filter from a file of lines on all cores, with one client that sends the
//! same items.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_128;

use crate::items::{PER_CALL, Source, calls, item};
use crate::measure::{Bench, Goal, Row, Samples, throughput};

const KEY: &str = "built";

/// A folder for files in memory, where the system has one. The tool waits until its file is on the disk, which says more
/// of the disk than of the tool.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for the file of lines")
}

/// Number of lines of the file: `BENCH_BUILD_LINES`, or 2 million in a quick run and 20 million in a full one.
fn lines(bench: &Bench) -> u64 {
    let set = std::env::var("BENCH_BUILD_LINES").ok().filter(|text| !text.is_empty());
    set.map_or(bench.pick(2_000_000, 20_000_000), |text| text.parse().expect("BENCH_BUILD_LINES is a number"))
}

/// The nanoseconds per line that a program takes to read the file.
fn timed(program: &Path, arguments: &[&str], lines: u64) -> f64 {
    let start = Instant::now();
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{} {}", program.display(), arguments.join(" "));
    start.elapsed().as_secs_f64() * 1e9 / lines as f64
}

/// Measures `rollcall build`. `BENCH_TOOL` is the path of the tool.
pub fn run(bench: &mut Bench) {
    let tool = PathBuf::from(std::env::var_os("BENCH_TOOL").expect("BENCH_TOOL is not set: run `make bench`"));
    let lines = lines(bench);
    let folder = folder();
    let (input, out) = (folder.path().join("lines"), folder.path().join("out"));
    let mut file = BufWriter::new(File::create(&input).expect("the file of lines"));
    for number in 0..lines {
        file.write_all(&item(number)).and_then(|()| file.write_all(b"\n")).expect("lines are written");
    }
    drop(file.into_inner().expect("lines are written"));
    let (input, out) = (input.to_string_lossy(), out.to_string_lossy());
    let capacity = lines.to_string();
    let build = ["build", "filter", &out, &input, "--capacity", &capacity, "--error", "0.001", "--force"];
    let counted = ["build", "filter", &out, &input, "--error", "0.001", "--force"];
    let counter = ["build", "counter", &out, &input, "--force"];
    let sent = (lines as usize / PER_CALL).min(bench.pick(2000, 10_000));
    let batches = calls(&["BF.MADD", KEY], &mut Source::From(0), sent, PER_CALL, 1);
    let mut samples = [(); 7].map(|()| Samples::default());
    let rounds = bench.pick(2, 5);
    for round in 0..rounds {
        bench.step(round, rounds);
        bench.ours.call(&format!("DEL {KEY}"));
        bench.ours.call(&format!("BF.RESERVE {KEY} 0.001 {lines}"));
        let hashed = Instant::now();
        for number in 0..lines.min(2_000_000) {
            let _ = black_box(xxh3_128(&item(number)));
        }
        let hashed = hashed.elapsed().as_secs_f64() * 1e9 / lines.min(2_000_000) as f64;
        let figures = [
            timed(&tool, &build, lines),
            timed(&tool, &counted, lines),
            timed(&tool, &counter, lines),
            1e9 / (throughput(&mut bench.ours, &batches) * PER_CALL as f64),
            timed(Path::new("cat"), &[&input], lines),
            timed(Path::new("wc"), &["-l", &input], lines),
            hashed,
        ];
        samples.iter_mut().zip(figures).for_each(|(samples, figure)| samples.push(figure));
    }
    bench.ours.call(&format!("DEL {KEY}"));
    let [built, counted, counter, client, cat, wc, hashed] = samples.map(|samples| samples.median());
    let millions = lines / 1_000_000;
    let mut row = |what: &str, goal, ours, other| {
        let work = format!("{what}, {millions}M lines of 29 bytes");
        bench.rows.push(Row { work, goal, ours, other: Some(other), unit: "ns a line" });
    };
    let filter = "rollcall build filter, p = 0.001";
    row(filter, Goal::TimesFaster(4.0), built, ("one client, BF.MADD of 350", client));
    row("the same, lines counted first", Goal::TimesFaster(4.0), counted, ("one client, BF.MADD of 350", client));
    row(filter, Goal::Shown, built, ("cat FILE > /dev/null", cat));
    row(filter, Goal::Shown, built, ("wc -l", wc));
    row(filter, Goal::Shown, built, ("making and hashing each, one thread", hashed));
    row("rollcall build counter", Goal::Shown, counter, ("wc -l", wc));
}
