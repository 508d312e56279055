//! Common parts of the examples: connecting, tables, a progress bar.

#![allow(dead_code, reason = "no example uses all of it")]

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use redis::{Connection, RedisResult};

/// Any failure of an example other than a broken promise.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs an example on the server at `ROLLCALL_URL`. `measure` may use keys that begin with `prefix`, and fills in the
/// promises. The keys are deleted afterwards, also after a failure. Fails if a promise was not kept.
pub fn run(prefix: &str, measure: impl FnOnce(&mut Connection, &mut Promises) -> Result<(), Failure>) -> ExitCode {
    let mut promises = Promises::default();
    let outcome = connect().and_then(|mut server| {
        delete_keys(&mut server, prefix)?;
        let measured = measure(&mut server, &mut promises);
        delete_keys(&mut server, prefix)?;
        measured
    });
    if let Err(failure) = outcome {
        eprintln!("{failure}");
        return ExitCode::FAILURE;
    }
    promises.print()
}

/// A connection to a server that has the module.
pub fn connect() -> Result<Connection, Failure> {
    let url = std::env::var("ROLLCALL_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379/".to_owned());
    let mut server = redis::Client::open(url.as_str())
        .and_then(|client| client.get_connection())
        .map_err(|error| format!("no server at {url}: {error}\nStart one with `make run`, or set ROLLCALL_URL."))?;
    let commands: Vec<Option<redis::Value>> =
        redis::cmd("COMMAND").arg("INFO").arg(&["BF.INSERT", "LC.INSERT"]).query(&mut server)?;
    if commands.contains(&None) {
        return Err(format!("the server at {url} has not loaded Rollcall; `make run` starts one that has").into());
    }
    Ok(server)
}

fn delete_keys(server: &mut Connection, prefix: &str) -> RedisResult<()> {
    let mut scan = redis::cmd("SCAN");
    scan.cursor_arg(0).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(10_000);
    let keys: Vec<String> = scan.iter(server)?.collect::<RedisResult<_>>()?;
    if keys.is_empty() { Ok(()) } else { redis::cmd("UNLINK").arg(keys).exec(server) }
}

/// The memory that a key takes on the server, in bytes.
pub fn memory_usage(key: &str, server: &mut Connection) -> RedisResult<u64> {
    // With SAMPLES 0 the server looks at every member of a set.
    redis::cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).query(server)
}

/// Promised and measured numbers, side by side. Numbers are compared as they are printed.
#[derive(Default)]
pub struct Promises {
    rows: Vec<Vec<String>>,
    broken: usize,
}

/// The bounds of a promised number.
pub struct Bounds {
    least: f64,
    most: f64,
    decimals: usize,
    unit: &'static str,
    why: String,
}

impl Bounds {
    /// Bounds from `least` to `most`, both included.
    pub fn between(least: f64, most: f64) -> Self {
        Bounds { least, most, decimals: 0, unit: "", why: String::new() }
    }

    /// An upper bound.
    pub fn at_most(most: f64) -> Self {
        Self::between(f64::NEG_INFINITY, most)
    }

    /// Bounds of `standard_errors` standard errors around `number`. `each` describes the size of one standard error.
    pub fn around(number: f64, standard_errors: f64, standard_error: f64, each: impl Display) -> Self {
        Self::between(number - standard_errors * standard_error, number + standard_errors * standard_error)
            .because(format!("{standard_errors} standard errors ({each} each) around {}", decimal(number, 0)))
    }

    /// Sets the number of decimals, for printing and comparing, and the unit.
    pub fn printed(self, decimals: usize, unit: &'static str) -> Self {
        Bounds { decimals, unit, ..self }
    }

    /// Adds the reason for the bounds.
    pub fn because(self, why: impl Display) -> Self {
        Bounds { why: format!(": {why}"), ..self }
    }

    /// A number as text, with the decimals of the bounds.
    fn number(&self, number: f64) -> String {
        decimal(number, self.decimals)
    }

    /// Whether the number is within the bounds. All three are compared as they are printed.
    fn include(&self, number: f64) -> bool {
        let printed = |number: f64| format!("{number:.*}", self.decimals).parse().unwrap_or(f64::NAN);
        (printed(self.least)..=printed(self.most)).contains(&printed(number))
    }
}

impl Display for Bounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Bounds { least, most, unit, why, .. } = self;
        match least.is_finite() {
            true => write!(f, "{} to {}{unit}{why}", self.number(*least), self.number(*most)),
            false => write!(f, "{}{unit} at most{why}", self.number(*most)),
        }
    }
}

impl Promises {
    /// Records a number that must be within bounds. `detail` is printed after the number.
    pub fn number(&mut self, what: &str, bounds: &Bounds, measured: f64, detail: impl Display) {
        let measured_text = format!("{}{}{detail}", bounds.number(measured), bounds.unit);
        self.verdict(what, bounds, measured_text, bounds.include(measured));
    }

    /// Records a value that must be exactly the promised one.
    pub fn same(&mut self, what: &str, promised: impl Display, measured: impl Display) {
        let (promised, measured) = (promised.to_string(), measured.to_string());
        let kept = promised == measured;
        self.verdict(what, promised, measured, kept);
    }

    fn verdict(&mut self, what: &str, promised: impl Display, measured: impl Display, kept: bool) {
        self.broken += usize::from(!kept);
        self.push(what, promised, measured, if kept { "kept" } else { "BROKEN" });
    }

    /// Records a measurement without a promise.
    pub fn report(&mut self, what: &str, measured: impl Display) {
        self.push(what, "", measured, "");
    }

    fn push(&mut self, what: &str, promised: impl Display, measured: impl Display, verdict: &str) {
        self.rows.push(vec![what.to_owned(), promised.to_string(), measured.to_string(), verdict.to_owned()]);
    }

    /// Prints the table. Returns a failure if a promise was broken.
    pub fn print(&self) -> ExitCode {
        print_table(&["", "promised", "measured", ""], &self.rows);
        match self.broken {
            0 => ExitCode::SUCCESS,
            broken => {
                eprintln!("promises broken: {broken}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Prints a table with its columns aligned: numbers to the right, the rest to the left.
pub fn print_table(header: &[&str], rows: &[Vec<String>]) {
    let is_number =
        |cell: &str| cell.starts_with(|c: char| "+-".contains(c) || c.is_ascii_digit()) && !cell.contains(' ');
    let columns = header.iter().enumerate().map(|(column, name)| {
        let cells = || rows.iter().map(move |row| row[column].as_str());
        let width = cells().map(|cell| cell.chars().count()).chain([name.chars().count()]).max().unwrap_or(0);
        (width, cells().all(is_number))
    });
    let columns: Vec<(usize, bool)> = columns.collect();
    let print_row = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&columns).map(
            |(cell, &(width, right))| {
                if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            },
        );
        println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    };
    print_row(&mut header.iter().copied());
    println!("  {}", columns.iter().map(|&(width, _)| "-".repeat(width)).collect::<Vec<_>>().join("  "));
    rows.iter().for_each(|row| print_row(&mut row.iter().map(String::as_str)));
    println!();
}

/// A number with a separator after each three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

/// A number with `decimals` decimals, and a separator after each three digits.
fn decimal(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}{fraction}", whole.parse().map_or(whole.to_owned(), thousands))
}

/// A progress bar for `total` units named `what`, which is shown only on a terminal.
pub fn progress(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} {msg}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers in a text.
    fn numbers(text: &str) -> Vec<f64> {
        let plain = text.replace(',', "");
        plain.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect()
    }

    #[test]
    fn promises_are_judged_by_the_printed_bounds() {
        let bounds = [
            Bounds::around(999.0, 3.0, 9.99, "1%"),
            Bounds::between(9_499.5, 10_499.5),
            Bounds::at_most(1_000.0),
            Bounds::at_most(180.0).printed(1, " MiB"),
            Bounds::at_most(1.0).printed(2, "%"),
        ];
        for bounds in bounds {
            let printed = numbers(&bounds.to_string());
            let (least, most) = if bounds.least.is_finite() { (printed[0], printed[1]) } else { (0.0, printed[0]) };
            let mut verdicts = [0, 0];
            for off in -2000..=2000 {
                let measured = (most + f64::from(off) / 1000.0).max(0.0);
                let mut promises = Promises::default();
                promises.number("a number", &bounds, measured, "");
                let printed = numbers(&promises.rows[0][2])[0];
                let verdict = if (least..=most).contains(&printed) { "kept" } else { "BROKEN" };
                assert_eq!(promises.rows[0][3], verdict, "{bounds}: {measured}");
                verdicts[promises.broken] += 1;
            }
            assert!(verdicts.iter().all(|&count| count > 0), "{bounds}: {verdicts:?}");
        }
        let around = Bounds::around(999.0, 3.0, 9.99, "1%");
        assert_eq!(around.to_string(), "969 to 1,029: 3 standard errors (1% each) around 999");
        assert_eq!(Bounds::at_most(180.0).printed(1, " MiB").to_string(), "180.0 MiB at most");
    }
}
