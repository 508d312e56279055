//! The rows of a run, and the tables in which they are written.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use rollcall_bench_output::{markdown, plot};
use rollcall_testkit::Server;

/// The goal of a row.
#[derive(Clone, Copy)]
pub enum Goal {
    /// RedisBloom's figure is at least this multiple of Rollcall's.
    Times(f64),
    /// Rollcall's figure is at most this number.
    AtMost(f64),
    /// No goal: the figures are shown for comparison.
    Shown,
}

struct Row {
    number: &'static str,
    work: String,
    goal: Goal,
    /// Rollcall's figure and RedisBloom's.
    figures: [f64; 2],
    unit: &'static str,
}

/// The rows of a run on one server.
pub struct Report {
    quick: bool,
    rows: Vec<Row>,
    /// The plot of docs/benchmarks.md.
    pub plot: Option<plot::File>,
}

/// Ends the head of a column that was measured without AVX-512.
const WITHOUT: &str = " without AVX-512";

/// The marks at both ends of a part of a page that is replaced.
const END: &str = "<!-- measured: end -->";

fn mark(name: &str) -> String {
    format!("<!-- measured: {name}, written by make bench -->")
}

/// The beginnings of the rows that README.md shows.
const IN_README: [&str; 6] = [
    "BF.MADD, 350 new, into a filter of 100 million",
    "BF.EXISTS, one absent item, of a filter of a million",
    "LC.ADD, 350 new, into a million",
    "used_memory of a full filter of 1000 ",
    "MEMORY USAGE of 1000 members",
    "MEMORY USAGE of 1000000 members",
];

impl Report {
    pub fn new(quick: bool) -> Report {
        Report { quick, rows: Vec::new(), plot: None }
    }

    /// Returns `quick` in a quick run, and `full` otherwise. A quick run gives rough figures.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Adds a row and prints it.
    pub fn row(&mut self, number: &'static str, work: &str, goal: Goal, figures: [f64; 2], unit: &'static str) {
        let row = Row { number, work: work.to_owned(), goal, figures, unit };
        println!("{number:>5}  {work}: {}", row.cell());
        self.rows.push(row);
    }

    /// Prints how many goals were met. With `write`, also writes the tables.
    pub fn finish(mut self, write: bool) {
        // Rows are measured in another order than they are shown. Rows about bytes have no number and come last.
        self.rows.sort_by_key(|row| row.number.trim_end_matches('b').parse().unwrap_or(u32::MAX));
        let goals = self.rows.iter().filter_map(Row::met);
        let (met, all) = (goals.clone().filter(|met| *met).count(), goals.count());
        println!("bench: {met} of {all} goals met");
        if write {
            self.write().unwrap_or_else(|error| panic!("the tables: {error}"));
        }
    }

    fn write(&self) -> std::io::Result<()> {
        let (server, setting) = setting();
        let cells = |row: &Row| [vec![row.number.to_owned()], row.named(), vec![row.cell()]].concat();
        let table = markdown::table(&["#", "work", "goal", &server], &self.rows.iter().map(cells).collect::<Vec<_>>());
        fs::create_dir_all("target/benchmarks")?;
        let name = server.to_lowercase().replace(' ', "-");
        fs::write(format!("target/benchmarks/{name}.md"), format!("# Benchmarks on {server}\n\n{setting}\n{table}"))?;

        let page = fs::read_to_string("docs/benchmarks.md")?;
        let rows: Vec<_> = self.rows.iter().map(|row| (cells(row), row.cell())).collect();
        let page = replaced(&page, "rows", |old| with_column(old, &["#", "work", "goal"], &server, &rows));
        let page = replaced(&page, "setting", |old| with_line(old, &server, &setting));
        fs::write("docs/benchmarks.md", &page)?;

        if let Some(plot) = &self.plot {
            fs::create_dir_all("docs/benchmarks")?;
            plot::write("docs/benchmarks".as_ref(), plot).map_err(|error| std::io::Error::other(error.to_string()))?;
        }
        let readme = fs::read_to_string("README.md")?;
        let server = server.trim_end_matches(WITHOUT);
        if !readme.contains(&format!("| {server} ")) {
            return Ok(());
        }
        let shown = self.rows.iter().filter(|row| IN_README.iter().any(|begin| row.work.starts_with(begin)));
        let lower = |row: &Row| (vec![row.work.clone()], lower_cell(&page, server, &row.work).replace("**", ""));
        let rows: Vec<_> = shown.map(lower).collect();
        fs::write("README.md", replaced(&readme, "speed", |old| with_column(old, &["work"], server, &rows)))
    }
}

impl Row {
    /// RedisBloom's figure divided by Rollcall's, rounded to two decimals. The rounded ratio is compared with the
    /// goal.
    fn ratio(&self) -> f64 {
        (self.figures[1] / self.figures[0] * 100.0).round() / 100.0
    }

    fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::Times(least) => Some(self.ratio() >= least),
            Goal::AtMost(most) => Some(self.figures[0] <= most),
            Goal::Shown => None,
        }
    }

    /// The first two cells of the row: the work and the goal.
    fn named(&self) -> Vec<String> {
        let goal = match self.goal {
            Goal::Times(least) => format!("≥ {least}"),
            Goal::AtMost(most) => format!("≤ {most} {}", self.unit),
            Goal::Shown => String::new(),
        };
        vec![self.work.clone(), goal]
    }

    /// The cell with the ratio and both figures. If only Rollcall's figure has a goal, it comes first, in bold if it
    /// misses the goal.
    fn cell(&self) -> String {
        let [ours, theirs] = self.figures.map(short);
        let bold = if self.met() == Some(false) { "**" } else { "" };
        match self.unit {
            "ms" if !matches!(self.goal, Goal::Times(_)) => format!("{bold}{ours}{bold} ({theirs})"),
            unit => format!("{bold}{}{bold} ({ours}, {theirs} {unit})", short(self.ratio())),
        }
    }
}

/// A number with its significant digits only.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The page, with the text between the marks of `name` replaced by the result of `change`.
fn replaced(page: &str, name: &str, change: impl FnOnce(&str) -> String) -> String {
    let begin = mark(name);
    let parts = page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let (before, (old, after)) = parts.unwrap_or_else(|| panic!("a page has no {begin} with an end"));
    format!("{before}{begin}\n{}{END}{after}", change(old))
}

/// The cell of this work in the page's column of this server, with or without AVX-512: that with the lower ratio.
fn lower_cell(page: &str, server: &str, work: &str) -> String {
    let mut table = page.lines().filter(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim));
    let heads: Vec<_> = table.next().into_iter().flatten().collect();
    let line = table.find(|line| line.clone().any(|cell| cell == work)).into_iter().flatten();
    let is_ours = |head: &str| head.strip_prefix(server).is_some_and(|rest| rest.is_empty() || rest == WITHOUT);
    let cells = heads.iter().zip(line).filter(|(head, cell)| is_ours(head) && !cell.is_empty()).map(|(_, cell)| cell);
    let ratio = |cell: &str| cell.trim_start_matches('*').split(['*', ' ']).next().and_then(|text| text.parse().ok());
    let lower = cells.min_by(|a, b| ratio(a).unwrap_or(f64::INFINITY).total_cmp(&ratio(b).unwrap_or(f64::INFINITY)));
    lower.unwrap_or_default().to_owned()
}

/// A table with these rows and a column for this server. Columns of other servers are copied from the table `old`.
fn with_column(old: &str, first: &[&str], server: &str, rows: &[(Vec<String>, String)]) -> String {
    let split = |line: &str| line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let old: Vec<Vec<String>> = old.lines().filter(|line| line.starts_with('|')).map(split).collect();
    let mut heads: Vec<String> =
        old.first().cloned().unwrap_or_else(|| first.iter().map(|&head| head.into()).collect());
    if !heads.iter().any(|head| head == server) {
        heads.push(server.to_owned());
    }
    let line = |(names, cell): &(Vec<String>, String)| {
        let before = old.iter().find(|line| line[..first.len()] == names[..first.len()]);
        let of = |at: usize| before.and_then(|line| line.get(at)).cloned().unwrap_or_default();
        let cells = (first.len()..heads.len()).map(|at| if heads[at] == server { cell.clone() } else { of(at) });
        names[..first.len()].iter().cloned().chain(cells).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    markdown::table(&heads.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

/// The list `old`, with a new line for this server.
fn with_line(old: &str, server: &str, line: &str) -> String {
    let begin = format!("- {server},");
    let others = old.lines().filter(|line| !line.is_empty() && !line.starts_with(&begin));
    let mut lines: Vec<_> = others.chain([line.trim_end()]).collect();
    lines.sort_unstable();
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// The server's name and version, and a line about versions, machine and date.
fn setting() -> (String, String) {
    let (_running, mut client) = Server::start().with_client();
    let (valkey, redis) = (client.info("valkey_version"), client.info("redis_version"));
    let option = if client.info("rollcall_huge_pages") == "yes" { " with huge pages" } else { "" };
    let name = if valkey.is_empty() { format!("Redis {redis}") } else { format!("Valkey {valkey}") };
    let server = format!("{name}{option}{}", if has_avx512() { "" } else { WITHOUT });
    let first = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
        line.map_or_else(|| "?".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let kilobytes: f64 = first("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0.0);
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map_or_else(|_| "?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let line = format!(
        "- {server}, {}; RedisBloom 2.8.2; Rollcall {} ({}); {}; {}, {} cores, {:.0} GiB, AVX-512: {}; {}\n",
        client.info("mem_allocator"),
        env!("CARGO_PKG_VERSION"),
        output("git", &["describe", "--always", "--dirty"]),
        output("rustc", &["--version"]),
        first("/proc/cpuinfo", "model name"),
        std::thread::available_parallelism().map_or(0, usize::from),
        kilobytes / 1048576.0,
        if has_avx512() { "yes" } else { "no" },
        output("date", &["-u", "+%F"]),
    );
    (server, line)
}

/// Whether the module was measured with the AVX-512 instructions that look up items in filters. Processors have them
/// from Ice Lake or Zen 4 on; `make bench AVX512=no` measures a build without them.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::env::var("AVX512").as_deref() != Ok("no")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vpopcntdq");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
