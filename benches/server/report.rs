//! Writes the tables of one run to the terminal, to docs/benchmarks-tables.md and to other pages, with a description of
//! the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::measure::{Bench, HEADS, cells, short};
use crate::runs::{self, Run};
use crate::small::{COUNTER_TABLE, FILTER_TABLE};
use rollcall_bench_output::markdown;

/// The mark after each part of a page that is replaced.
const END: &str = "<!-- measured: end -->";

/// The table of all rows.
pub fn table(bench: &Bench) -> String {
    markdown::table(&HEADS, &bench.rows.iter().map(|row| cells(row).to_vec()).collect::<Vec<_>>())
}

/// The server's name and version, such as `redis-8.2.3`. Valkey also says which version of Redis it is like.
pub fn server(bench: &mut Bench) -> String {
    let info = bench.ours.call("INFO server").text();
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let valkey = field("valkey_version:").map(|version| format!("valkey-{version}"));
    valkey.unwrap_or_else(|| format!("redis-{}", field("redis_version:").unwrap_or("?")))
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
    let memory_info = bench.ours.call("INFO memory").text();
    let allocator = memory_info.lines().find_map(|line| line.strip_prefix("mem_allocator:")).unwrap_or("?").trim();
    let caches: Vec<_> = caches().into_iter().map(|(_, text)| text).collect();
    let lines = [
        format!("{} on {model}, {cores} cores, {gigabytes:.0} GiB of memory", output("uname", &["-sr"])),
        format!("caches: {}; AVX-512: {}", caches.join(", "), if has_avx512() { "yes" } else { "no" }),
        format!(
            "{}, {allocator}; RedisBloom 2.8.2; Rollcall {} ({}); {}; {}, {}",
            server(bench),
            env!("CARGO_PKG_VERSION"),
            output("git", &["describe", "--always", "--dirty"]),
            output("rustc", &["--version"]),
            output("date", &["-u", "+%F"]),
            bench.pick("a quick run", "a full run"),
        ),
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

/// Replaces the plots and tables of the document that this run alone has. A new document gets all marks.
pub fn write(document: &Path, bench: &Bench, plots: &[rollcall_bench_output::plot::File]) -> std::io::Result<()> {
    let old = fs::read_to_string(document).unwrap_or_else(|_| {
        let marks = ["setting", "goals"].map(|name| format!("{}\n{END}\n\n", mark(name)));
        format!("# Benchmarks: the tables\n\n{}{}\n{END}\n", marks.concat(), mark("begin"))
    });
    let images: String =
        plots.iter().map(|plot| format!("![{}](benchmarks/{}.svg)\n\n", plot.title, plot.name)).collect();
    fs::write(document, replaced(&old, &mark("begin"), &format!("{images}{}", bench.extras.join("\n"))))
}

/// The mark before a part of a page that is replaced, up to [`END`].
fn mark(name: &str) -> String {
    format!("<!-- measured: {name}, written by make bench -->")
}

/// The document with `lines` between the mark `begin` and the next [`END`].
fn replaced(document: &str, begin: &str, lines: &str) -> String {
    let (before, rest) = document.split_once(begin).unwrap_or((document, ""));
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{begin}\n{lines}{END}{after}")
}

/// The beginnings of the work of the rows that the table in README.md shows.
const SPEED: [&str; 3] = ["BF.MADD, 350 new, n = 100M", "BF.MEXISTS, 350 absent, n = 100M", "BF.ADD, new, one item"];

/// Replaces the tables of a page by measured ones: some of this run, some of the last run on each server. A table
/// without any measurement stays as it is.
pub fn write_page(page: &Path, bench: &Bench, runs: &[Run]) -> std::io::Result<()> {
    let mut text = fs::read_to_string(page)?;
    let extra = |title: &str| {
        let extra = bench.extras.iter().find_map(|extra| extra.strip_prefix("### ")?.strip_prefix(title));
        extra.and_then(|extra| extra.split_once("\n\n")).map_or(String::new(), |(_, table)| table.to_owned())
    };
    let tables = [
        ("bytes of counts", extra("MEMORY USAGE of LC")),
        ("errors of counts", extra("Error of LC")),
        ("setting", runs::settings(runs)),
        ("goals", runs::goals(runs, &bench.rows)),
        ("figures", runs::figures(runs, &bench.rows)),
        ("missed goals", runs::missed(runs, &bench.rows)),
        ("speed", beside_redisbloom(bench, &SPEED)),
        ("small filters", extra(FILTER_TABLE)),
        ("small counters", extra(COUNTER_TABLE)),
        ("bits of windows", extra("Bits an item of a window")),
    ];
    for (name, table) in tables {
        let begin = mark(name);
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
