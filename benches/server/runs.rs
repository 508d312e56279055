//! Keeps the rows of the last full run on each server, so that the tables show the servers side by side: a run on one
//! server reads what the runs on the others kept.
//!
//! A file such as `redis-8.2.3.tsv` has the lines of `report::setting`, each after `# `, then one
//! line a row: work, kind of goal, limit, figure, unit, name of the other contender, its figure (`-` without one).

use std::fs;
use std::io;
use std::path::Path;

use crate::measure::{Goal, Row, cells, short};
use rollcall_bench_output::markdown;

/// A run on one server.
pub struct Run {
    /// The server and its version, such as `redis-8.2.3`: the name of the run's file.
    pub server: String,
    /// The lines of its setting.
    pub setting: String,
    pub rows: Vec<Row>,
}

fn line(row: &Row) -> String {
    let (goal, limit) = match row.goal {
        Goal::TimesFaster(least) => ("faster", least),
        Goal::Within(most) => ("within", most),
        Goal::AtMost(most) => ("at most", most),
        Goal::Shown => ("shown", 0.0),
    };
    let (name, theirs) = row.other.map_or(("-", "-".to_owned()), |(name, theirs)| (name, theirs.to_string()));
    format!("{}\t{goal}\t{limit}\t{}\t{}\t{name}\t{theirs}\n", row.work, row.ours, row.unit)
}

/// The row of a line; `None` if it is none. Its strings are leaked: a run reads a few hundred lines once.
fn row(line: &str) -> Option<Row> {
    let leaked = |text: &str| -> &'static str { text.to_owned().leak() };
    let [work, goal, limit, ours, unit, name, theirs] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let limit = limit.parse().ok()?;
    let goal = match goal {
        "faster" => Goal::TimesFaster(limit),
        "within" => Goal::Within(limit),
        "at most" => Goal::AtMost(limit),
        _ => Goal::Shown,
    };
    let other = theirs.parse().ok().map(|theirs| (leaked(name), theirs));
    Some(Row { work: work.to_owned(), goal, ours: ours.parse().ok()?, other, unit: leaked(unit) })
}

/// Keeps a run on `server` in `folder`. Returns the runs that are kept there, by server.
pub fn keep(folder: &Path, server: &str, setting: &str, rows: &[Row]) -> io::Result<Vec<Run>> {
    let setting = setting.lines().map(|line| format!("# {line}\n")).collect::<String>();
    fs::write(folder.join(format!("{server}.tsv")), setting + &rows.iter().map(line).collect::<String>())?;
    let mut runs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(server) = path.to_str().and_then(|path| path.strip_suffix(".tsv")) else { continue };
        let server = server.rsplit('/').next().unwrap_or(server).to_owned();
        let text = fs::read_to_string(&path)?;
        let setting = text.lines().filter_map(|line| line.strip_prefix("# ")).map(|line| format!("{line}\n")).collect();
        let rows = text.lines().filter(|line| !line.starts_with("# "));
        let rows = rows.map(|line| row(line).ok_or_else(|| io::Error::other(format!("{}: {line}", path.display()))));
        runs.push(Run { server, setting, rows: rows.collect::<Result<_, _>>()? });
    }
    runs.sort_by(|a, b| a.server.cmp(&b.server));
    Ok(runs)
}

/// The settings of all runs. A line that several runs share stands once.
pub fn settings(runs: &[Run]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in runs.iter().flat_map(|run| run.setting.lines()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// What tells the rows of one run apart.
fn key(row: &Row) -> [String; 3] {
    let [work, goal, ..] = cells(row);
    [work, goal, row.other.map_or_else(String::new, |(name, _)| name.to_owned())]
}

/// A table that begins each line with some cells, under the heads `first`, and adds a few columns for each run. `of`
/// makes these from the row that the run has for the line; they are empty if it has none.
fn table(
    runs: &[Run],
    lines: Vec<(Vec<String>, &Row)>,
    first: &[&str],
    heads: &[&str],
    of: impl Fn(&Row) -> Vec<String>,
) -> String {
    let lines = lines.into_iter().map(|(mut line, row)| {
        for run in runs {
            let same = run.rows.iter().find(|other| key(other) == key(row));
            line.extend(same.map_or_else(|| vec![String::new(); heads.len()], &of));
        }
        line
    });
    let mut all: Vec<String> = first.iter().map(|head| (*head).to_owned()).collect();
    for run in runs {
        let title = run.server.replacen("redis-", "Redis ", 1).replacen("valkey-", "Valkey ", 1);
        all.extend(heads.iter().map(|head| head.replace("SERVER", &title)));
    }
    markdown::table(&all.iter().map(String::as_str).collect::<Vec<_>>(), &lines.collect::<Vec<_>>())
}

fn work_and_goal(row: &Row) -> (Vec<String>, &Row) {
    let [work, goal, ..] = cells(row);
    (vec![work, goal], row)
}

/// Whether the goal is for the figure itself, and not for its ratio to another contender's.
fn is_of_figure(row: &Row) -> bool {
    matches!(row.goal, Goal::AtMost(_))
}

fn bold_if(missed: bool, text: String) -> String {
    if missed && !text.is_empty() { format!("**{text}**") } else { text }
}

/// The table of all rows that this run measured. What misses a goal is bold: the ratio, or the figure.
pub fn goals(runs: &[Run], rows: &[Row]) -> String {
    let lines = rows.iter().map(work_and_goal).collect();
    table(runs, lines, &["work", "goal"], &["SERVER: ours", "compared with", "ratio"], |row| {
        let [_, _, ours, other, ratio, _] = cells(row);
        let (missed, is_figure) = (row.met() == Some(false), is_of_figure(row));
        vec![bold_if(missed && is_figure, ours), other, bold_if(missed && !is_figure, ratio)]
    })
}

/// The table of the rows whose goal was missed on a server, with the ratio or the figure on each. Bold is what misses
/// the goal.
pub fn missed(runs: &[Run], rows: &[Row]) -> String {
    let all = || runs.iter().flat_map(|run| &run.rows).filter(|row| row.met() == Some(false));
    let lines: Vec<_> =
        rows.iter().filter(|row| all().any(|other| key(other) == key(row))).map(work_and_goal).collect();
    if lines.is_empty() {
        return "No goal was missed.\n".to_owned();
    }
    table(runs, lines, &["work", "goal"], &["SERVER"], |row| {
        let [_, _, ours, _, ratio, _] = cells(row);
        vec![bold_if(row.met() == Some(false), if is_of_figure(row) { ours } else { ratio })]
    })
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
    ("creating a filter of 100, with 10 items", "100000 filters of 100: creating one", "RedisBloom"),
];

/// The table of [`FIGURES`]. "times ours" says how many times slower or larger the other contender is. The table is
/// empty unless this run measured all figures.
pub fn figures(runs: &[Run], rows: &[Row]) -> String {
    let line = |&(asked, work, other): &(&str, &str, &str)| {
        let is_it = |row: &&Row| row.work.starts_with(work) && row.other.is_some_and(|(name, _)| name == other);
        rows.iter().find(is_it).map(|row| (vec![asked.to_owned(), other.to_owned()], row))
    };
    let Some(lines) = FIGURES.iter().map(line).collect() else { return String::new() };
    table(runs, lines, &["what", "compared with"], &["SERVER: ours, theirs", "times ours"], |row| {
        let theirs = row.other.map_or(f64::NAN, |(_, theirs)| theirs);
        vec![format!("{}, {} {}", short(row.ours), short(theirs), row.unit), short(theirs / row.ours)]
    })
}
