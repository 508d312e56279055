//! Writes the tables to the terminal, to docs/benchmarks-tables.md and to other pages, with a description of the
//! machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::measure::{Bench, Goal, Row};
use crate::small::{COUNTER_TABLE, FILTER_TABLE};
use rollcall_bench_output::markdown;

/// The marks around the part of the document that is replaced.
const BEGIN: &str = "<!-- measured: begin, written by make bench -->";
const END: &str = "<!-- measured: end -->";

const HEADS: [&str; 6] = ["work", "goal", "ours", "compared with", "ratio", "met"];

/// A number with its significant digits only.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 10_000.0 => {
            let digits = format!("{value:.0}");
            let groups: Vec<_> =
                digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
            groups.join(",")
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn cells(row: &Row) -> Vec<String> {
    let goal = match (row.goal, row.other) {
        (Goal::TimesFaster(least), Some((name, _))) => format!("{name} / ours ≥ {least}"),
        (Goal::Within(most), Some((name, _))) => format!("ours / {name} ≤ {most}"),
        (Goal::AtMost(most), _) => format!("≤ {} {}", short(most), row.unit),
        _ => "-".to_owned(),
    };
    let met = match row.met() {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    vec![
        row.work.clone(),
        goal,
        format!("{} {}", short(row.ours), row.unit),
        row.other.map_or_else(String::new, |(name, value)| format!("{name}: {}", short(value))),
        row.ratio().map_or_else(String::new, short),
        met.to_owned(),
    ]
}

/// The table of all rows.
pub fn table(bench: &Bench) -> String {
    markdown::table(&HEADS, &bench.rows.iter().map(cells).collect::<Vec<_>>())
}

/// The setting of the run: machine, versions and date.
pub fn setting(bench: &mut Bench) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, name)| name);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let gigabytes = kilobytes.and_then(|text| text.trim().parse::<f64>().ok()).unwrap_or(0.0) / 1048576.0;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let version = |server: &mut crate::servers::Server, field: &str| {
        let info = server.call("INFO everything").text();
        info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or("?").trim().to_owned()
    };
    let caches: Vec<_> = caches().into_iter().map(|(_, text)| text).collect();
    let lines = [
        format!("{} on {model}, {cores} cores, {gigabytes:.0} GiB of memory", output("uname", &["-sr"])),
        format!("caches: {}; AVX-512: {}", caches.join(", "), if has_avx512() { "yes" } else { "no" }),
        format!(
            "redis-server {}, {}; RedisBloom 2.8.2; Rollcall {} ({}); {}",
            version(&mut bench.ours, "redis_version"),
            version(&mut bench.ours, "mem_allocator"),
            env!("CARGO_PKG_VERSION"),
            output("git", &["describe", "--always", "--dirty"]),
            output("rustc", &["--version"]),
        ),
        format!("{}, {}", output("date", &["-u", "+%F"]), bench.pick("a quick run", "a full run")),
    ];
    lines.map(|line| format!("- {line}\n")).concat()
}

/// Whether the processor has the AVX-512 instructions with which lines are probed, as from Ice Lake or Zen 4 on.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| "?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The sizes of the processor's caches in bytes, each with its name, for the plots.
pub fn caches() -> Vec<(f64, String)> {
    let mut found = Vec::new();
    for index in 0..8 {
        let read = |file: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
            fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
        };
        let (Some(level), Some(size)) = (read("level"), read("size")) else { continue };
        let kilobytes = size.strip_suffix('K').and_then(|size| size.parse::<f64>().ok());
        if let (true, Some(kilobytes)) = (level != "1", kilobytes) {
            let size =
                if kilobytes < 1024.0 { format!("{kilobytes} KiB") } else { format!("{} MiB", kilobytes / 1024.0) };
            found.push((kilobytes * 1024.0, format!("L{level} {size}")));
        }
    }
    found
}

/// Replaces the measured part of the document.
pub fn write(document: &Path, bench: &mut Bench, plots: &[rollcall_bench_output::plot::File]) -> std::io::Result<()> {
    let old = fs::read_to_string(document).unwrap_or_else(|_| format!("# Benchmarks: the tables\n\n{BEGIN}\n{END}\n"));
    let images: String =
        plots.iter().map(|plot| format!("![{}](benchmarks/{}.svg)\n\n", plot.title, plot.name)).collect();
    let setting = setting(bench);
    let measured = format!("{setting}\n{}\n{images}{}", table(bench), bench.extras.join("\n"));
    fs::write(document, replaced(&old, BEGIN, &measured))
}

/// The document with `lines` between the mark `begin` and the next [`END`].
fn replaced(document: &str, begin: &str, lines: &str) -> String {
    let (before, rest) = document.split_once(begin).unwrap_or((document, ""));
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{begin}\n{lines}{END}{after}")
}

/// The figures of docs/benchmarks.md: a description, the beginning of the row's work, and the contender to compare
/// with.
const FIGURES: [(&str, &str, &str); 11] = [
    ("350 new items into a filter of 100 million", "BF.MADD, 350 new, n = 100M", "RedisBloom"),
    ("350 absent items of it", "BF.MEXISTS, 350 absent, n = 100M", "RedisBloom"),
    ("350 absent items of a filter of 100,000", "BF.MEXISTS, 350 absent, n = 100k", "RedisBloom"),
    ("one new item into a filter of a million", "BF.ADD, new, one item", "RedisBloom"),
    ("350 absent items of a filter grown from 100 to 2 million", "BF.MEXISTS, 350 absent, grown", "RedisBloom, grown"),
    (
        "350 absent items of the last 7 days",
        "a window of 50,000 in 7 slices, p = 0.001: 350 absent",
        "RedisBloom, seven keys",
    ),
    ("350 new members into a counter", "LC.ADD, 350 new, capacity 50,000", "PFADD"),
    (
        "distinct members of the last 24 hours",
        "50,000 members of a day, 24 slices in cells of 8 bits: LC.COUNT",
        "PFCOUNT of 24",
    ),
    ("bytes of a counter with 50,000 members at 1 %", "bytes of a counter with 50,000 members", "HyperLogLog"),
    ("bytes of a filter of 100,000 at p = 0.01", "bytes of a filter of 100k at p = 0.01: Size", "RedisBloom"),
    ("creating a filter of 100, with 10 items", "200000 filters of 100: creating one", "RedisBloom"),
];

/// The table of [`FIGURES`]. Its last column says how many times slower or larger the other contender is. The table is
/// empty unless all figures were measured.
fn figures(bench: &Bench) -> String {
    let line = |&(asked, work, other): &(&str, &str, &str)| {
        let is_it = |row: &&Row| row.work.starts_with(work) && row.other.is_some_and(|(name, _)| name == other);
        let row = bench.rows.iter().find(is_it)?;
        let (name, theirs) = row.other?;
        let with = |value| format!("{} {}", short(value), row.unit);
        Some(vec![asked.to_owned(), with(row.ours), format!("{name}: {}", with(theirs)), short(theirs / row.ours)])
    };
    let lines: Option<Vec<_>> = FIGURES.iter().map(line).collect();
    let heads = ["what", "Rollcall", "compared with", "times ours"];
    lines.map_or(String::new(), |lines| markdown::table(&heads, &lines))
}

/// A text about the goals that were missed; empty if all were met.
fn missed(bench: &Bench) -> String {
    let rows = bench.rows.iter().filter(|row| row.met() == Some(false));
    let lines: Vec<_> = rows.map(|row| [0, 1, 4].map(|column| cells(row)[column].clone()).to_vec()).collect();
    let heads = [0, 1, 4].map(|column| HEADS[column]);
    if lines.is_empty() { String::new() } else { markdown::table(&heads, &lines) }
}

/// The beginnings of the work of the rows that the table in README.md shows.
const SPEED: [&str; 3] = ["BF.MADD, 350 new, n = 100M", "BF.MEXISTS, 350 absent, n = 100M", "BF.ADD, new, one item"];

/// Replaces the tables of a page by measured ones. A table without any measurement stays as it is.
pub fn write_page(page: &Path, bench: &mut Bench) -> std::io::Result<()> {
    let mut text = fs::read_to_string(page)?;
    let setting = setting(bench);
    let extra = |title: &str| {
        let extra = bench.extras.iter().find_map(|extra| extra.strip_prefix("### ")?.strip_prefix(title));
        extra.and_then(|extra| extra.split_once("\n\n")).map_or(String::new(), |(_, table)| table.to_owned())
    };
    let tables = [
        ("bytes of counts", extra("MEMORY USAGE of LC")),
        ("errors of counts", extra("Error of LC")),
        ("setting", setting),
        ("figures", figures(bench)),
        ("missed goals", missed(bench)),
        ("speed", beside_redisbloom(bench, &SPEED)),
        ("small filters", extra(FILTER_TABLE)),
        ("small counters", extra(COUNTER_TABLE)),
        ("bits of windows", extra("Bits an item of a window")),
    ];
    for (name, table) in tables {
        let begin = format!("<!-- measured: {name}, written by make bench -->");
        if !table.is_empty() && text.contains(&begin) {
            text = replaced(&text, &begin, &table);
        }
    }
    fs::write(page, text)
}

/// A table of the rows that compare with RedisBloom and whose work begins with one of `begins`. Its last column says
/// how many times slower or larger RedisBloom is. Empty if there is no such row.
fn beside_redisbloom(bench: &Bench, begins: &[&str]) -> String {
    let rows = bench.rows.iter().filter(|row| begins.iter().any(|begin| row.work.starts_with(begin)));
    let lines = rows.filter_map(|row| match row.other {
        Some(("RedisBloom", theirs)) => Some(vec![
            row.work.clone(),
            format!("{} {}", short(row.ours), row.unit),
            format!("{} {}", short(theirs), row.unit),
            short(theirs / row.ours),
        ]),
        _ => None,
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    markdown::table(&["work", "Rollcall", "RedisBloom", "RedisBloom / Rollcall"], &lines)
}
