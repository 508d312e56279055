//! What the examples share and what is not about Rollcall: connecting, a random generator, tables, a progress bar.

use std::fmt::Display;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use redis::{Connection, RedisResult};

/// How an example fails when it is not the promises that are broken.
pub type Failure = Box<dyn std::error::Error>;

/// Runs an example against the server at `ROLLCALL_URL`: `measure` uses keys that begin with `prefix` and fills
/// in the promises. Afterwards, whatever happened, the keys are deleted. Fails if a promise was not kept.
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
fn connect() -> Result<Connection, Failure> {
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

/// What a key takes of the server's memory, bytes.
pub fn memory_usage(key: &str, server: &mut Connection) -> RedisResult<u64> {
    // SAMPLES 0: of a set, every member is looked at.
    redis::cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).query(server)
}

/// What was promised beside what was measured.
#[derive(Default)]
pub struct Promises {
    rows: Vec<Vec<String>>,
    broken: usize,
}

impl Promises {
    /// A promise, and whether it was kept.
    pub fn check(&mut self, what: &str, promised: impl Display, measured: impl Display, kept: bool) {
        self.broken += usize::from(!kept);
        self.push(what, promised, measured, if kept { "kept" } else { "BROKEN" });
    }

    /// A measurement to know beside the promises.
    #[allow(dead_code, reason = "one of the examples has none")]
    pub fn tell(&mut self, what: &str, measured: impl Display) {
        self.push(what, "", measured, "");
    }

    fn push(&mut self, what: &str, promised: impl Display, measured: impl Display, verdict: &str) {
        self.rows.push(vec![what.to_owned(), promised.to_string(), measured.to_string(), verdict.to_owned()]);
    }

    fn print(&self) -> ExitCode {
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

/// A number with its thousands set apart.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

/// A progress bar for so many `what`; it shows only on a terminal.
pub fn progress(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} {msg}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what)
}

/// Numbers that look random and are the same in every run: splitmix64 (Steele, Lea and Flood 2014).
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits. Different states give different numbers.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// A number from 0 to `end - 1`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
