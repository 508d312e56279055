//! Message summary: how many received an announcement, read it, or could not be reached, and who is missing.
//!
//! A school messenger keeps these three numbers for every message. Nearly all messages go to a class: there the numbers
//! must be exact and the people behind them listed. A few go to whole districts: there a standard error of 1 % is fine,
//! but the counters must stay small. One kind of counter does both: it lists its members up to its EXACT limit. Beyond
//! the limit it estimates, in a few kilobytes.
//!
//! - `LC.ADD` for every receipt that comes in. Receipts come twice, late and in batches; a counter does not care.
//! - `LC.COUNT` for the numbers under the message.
//! - `LC.DIFF 2 delivered read`: whom to remind, by name, while the counters are exact.
//! - `LC.DIFFCARD 2 delivered read` beyond that: how many they are, with the standard error of that number.
//! - `LC.RESERVE key 50000 WINDOW 86400 SLICES 24` for those who look at it now, by the hour. It is fed by `LC.ADD` too;
//!   `LC.HISTORY` draws the day and `LC.COUNTSINCE` counts any part of it up to now. Here it is also `MANUAL`:
//!   `LC.ADVANCE` moves it from hour to hour, so that a day passes in seconds.
//!
//! Redis' sets and HyperLogLogs are fed the same receipts, to compare.

mod demo;

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use demo::{Bounds, Failure, Promises, Random, memory_usage, print_table, progress, thousands};
use redis::Connection;

const PREFIX: &str = "rollcall-demo:message:";

/// What a counter is made for. These are the server's defaults too, unless its configuration says otherwise.
const CAPACITY: u64 = 50_000;
const ERROR_RATE: f64 = 0.01;
const EXACT_LIMIT: u64 = 250;

/// The error rate for those who must know "delivered but not read" better than by the defaults.
const PRECISE_ERROR_RATE: f64 = 0.001;

/// Receipts a call.
const BATCH: usize = 350;

/// How many standard errors an estimate may be off: of 400 estimates one is off by more than 3.
const STANDARD_ERRORS: f64 = 3.0;

/// Hours of the day that is drawn, each a slice of its window.
const HOURS: u64 = 24;

/// Districts over which the average error is taken.
const DISTRICTS: u64 = 20;

fn main() -> ExitCode {
    demo::run(PREFIX, |server, promises| {
        let class = Announcement::new("class", 1_000_000, 240);
        class.record(ERROR_RATE, server)?;
        class.record_elsewhere(server)?;
        class.print_summary(server)?;
        check_class(&class, server, promises)?;

        let district = Announcement::new("district", 2_000_000, 50_000);
        district.record(ERROR_RATE, server)?;
        district.record_elsewhere(server)?;
        district.print_summary(server)?;
        check_district(&district, server, promises)?;

        let precise = Announcement::new("precise district", 2_000_000, 50_000);
        precise.record(PRECISE_ERROR_RATE, server)?;
        check_missing(&precise, server, promises)?;
        check_average_error(server, promises)?;
        check_day(&district, server, promises)?;
        println!("+- is one standard error: two of three estimates are within it, nearly all within three.\n");
        Ok(())
    })
}

/// A class: everything is exact, and the names are there.
fn check_class(class: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    for (status, people) in &class.truth {
        promises.same(&format!("class: {status}"), people.len(), class.count(status, server)?);
    }
    let [delivered, read] = ["delivered", "read"].map(|status| class.key("LC", status));
    let missing: HashSet<String> = redis::cmd("LC.DIFF").arg(2).arg(delivered).arg(read).query(server)?;
    let truth = class.delivered_but_not_read();
    let right = truth.iter().filter(|person| missing.contains(**person)).count();
    let names = |listed: usize, right: usize| format!("{listed} names, {right} of them right");
    promises.same("class: delivered but not read", names(truth.len(), truth.len()), names(missing.len(), right));
    Ok(())
}

/// A district: estimates within some of their standard errors, in little memory.
fn check_district(district: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    for (status, people) in &district.truth {
        let truth = people.len() as f64;
        let count = district.count(status, server)?;
        let bounds = Bounds::around(truth, STANDARD_ERRORS, ERROR_RATE * truth, format!("{}%", 100.0 * ERROR_RATE));
        let off = format!(" ({:+.2}%)", 100.0 * (count as f64 - truth) / truth);
        promises.number(&format!("district: {status}"), &bounds, count as f64, off);
    }
    check_missing(district, server, promises)?;
    let delivered = district.key("LC", "delivered");
    let counter_bytes = memory_usage(&delivered, server)?;
    let log_bytes = memory_usage(&district.key("PF", "delivered"), server)?;
    let half = Bounds::at_most((log_bytes / 2) as f64).because("half of a HyperLogLog's");
    promises.number("district: bytes of a counter", &half, counter_bytes as f64, "");
    Ok(())
}

/// "Delivered but not read" as a number.
fn check_missing(message: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let [delivered, read] = ["delivered", "read"].map(|status| message.key("LC", status));
    let (missing, standard_error): (u64, f64) =
        redis::cmd("LC.DIFFCARD").arg(2).arg(&delivered).arg(read).query(server)?;
    let truth = message.delivered_but_not_read().len() as u64;
    let detail = format!(" +- {standard_error:.0}, in {} bytes", thousands(memory_usage(&delivered, server)?));
    let bounds = Bounds::around(truth as f64, STANDARD_ERRORS, standard_error, format!("{standard_error:.0}"));
    promises.number(&format!("{}: delivered but not read", message.name), &bounds, missing as f64, detail);
    Ok(())
}

/// One count may be lucky; the average error of many is not.
fn check_average_error(server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let bar = progress(DISTRICTS, "districts");
    let mut sum = 0.0;
    for number in 0..DISTRICTS {
        let district = Announcement::new(&format!("district {number}"), 10_000_000 + 50_000 * number, 50_000);
        district.record(ERROR_RATE, server)?;
        let truth = district.people("delivered").len() as f64;
        sum += (district.count("delivered", server)? as f64 - truth).abs() / truth;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let average = sum / DISTRICTS as f64;
    let bounds = Bounds::at_most(100.0 * ERROR_RATE).printed(2, "%");
    promises.number(&format!("{DISTRICTS} districts: average error"), &bounds, 100.0 * average, "");
    Ok(())
}

/// A day of a message: most look at it in the first hours, and every third comes back later. Each person counts where
/// they came last.
fn check_day(district: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let key = district.key("LC", "looking");
    let options = ("ERROR", ERROR_RATE, "EXACT", EXACT_LIMIT, "WINDOW", 86_400, "SLICES", HOURS, "MANUAL");
    redis::cmd("LC.RESERVE").arg(&key).arg(CAPACITY).arg(options).exec(server)?;
    let mut random = Random(3);
    let mut by_hour: Vec<Vec<&String>> = vec![Vec::new(); HOURS as usize];
    let mut last_seen: HashMap<&String, u64> = HashMap::new();
    for person in district.people("read") {
        // The lesser of some is early.
        let first = (0..4).map(|_| random.below(HOURS)).min().unwrap_or(0);
        let again = if random.below(3) == 0 { first + random.below(HOURS - first) } else { first };
        for hour in [first, again] {
            by_hour[hour as usize].push(person);
        }
        last_seen.insert(person, again);
    }
    for (hour, people) in by_hour.iter().enumerate() {
        redis::cmd("LC.ADVANCE").arg(&key).arg(hour).exec(server)?;
        let mut pipeline = redis::pipe();
        for batch in people.chunks(BATCH) {
            pipeline.cmd("LC.ADD").arg(&key).arg(batch).ignore();
        }
        pipeline.exec(server)?;
    }
    let truth_since = |hour: u64| last_seen.values().filter(|&&last| last >= hour).count() as f64;
    let history: Vec<(i64, u64, f64)> = redis::cmd("LC.HISTORY").arg(&key).query(server)?;
    print_history(&history);

    // The slice before the first hour is remembered too, and empty.
    let hours = history.iter().filter_map(|&(start, count, _)| Some((u64::try_from(start).ok()? / 3600, count as f64)));
    let off = hours.map(|(hour, count)| 100.0 * (count / truth_since(hour) - 1.0).abs()).fold(0.0, f64::max);
    let bounds = Bounds::at_most(STANDARD_ERRORS * 100.0 * ERROR_RATE)
        .printed(2, "%")
        .because(format!("{STANDARD_ERRORS} standard errors of {}%", 100.0 * ERROR_RATE));
    promises.number(&format!("the day: the worst of {HOURS} spans up to now"), &bounds, off, " off");
    // Now is the last second of the last hour. So this reaches back into the hour before the last six.
    let count: u64 = redis::cmd("LC.COUNTSINCE").arg(&key).arg(6 * 3600).query(server)?;
    let row = history.get(6).map_or(0, |&(_, count, _)| count);
    promises.same("the day: LC.COUNTSINCE of six hours, and the row of LC.HISTORY", row, count);
    let bytes = memory_usage(&key, server)?;
    promises.tell("the day: bytes of the one key for all of it", thousands(bytes));
    Ok(())
}

/// The hours of a window, the newest first, each with those who were last seen in it.
fn print_history(history: &[(i64, u64, f64)]) {
    const WIDTH: u64 = 50;
    // A row counts all since its slice began: what the row before has not, was last seen in this slice.
    let before = std::iter::once(0).chain(history.iter().map(|&(_, count, _)| count));
    let rows: Vec<(i64, u64)> =
        history.iter().zip(before).map(|(&(start, count, _), before)| (start, count.saturating_sub(before))).collect();
    let most = rows.iter().map(|&(_, seen)| seen).max().unwrap_or(0).max(1);
    println!("The day of the district's message: who looked at it, by the hour in which they last did\n");
    for (start, seen) in rows.iter().rev().filter(|&&(start, _)| start >= 0) {
        let bar = "#".repeat((seen * WIDTH / most) as usize);
        println!("  {:02}:00  {bar} {}", start / 3600, thousands(*seen));
    }
    println!();
}

/// A message, and what became of it.
struct Announcement {
    name: String,
    /// The people who are truly in each status.
    truth: [(&'static str, Vec<String>); 3],
}

impl Announcement {
    /// One that nearly all receive and most read.
    fn new(name: &str, first_person: u64, recipients: u64) -> Self {
        let mut random = Random(first_person);
        let (mut delivered, mut read, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for person in (first_person..first_person + recipients).map(|id| format!("user:{id}")) {
            match random.below(100) {
                0..2 => failed.push(person),
                2..20 => delivered.push(person),
                _ => {
                    delivered.push(person.clone());
                    read.push(person);
                }
            }
        }
        Announcement { name: name.to_owned(), truth: [("delivered", delivered), ("read", read), ("failed", failed)] }
    }

    fn key(&self, kind: &str, status: &str) -> String {
        format!("{PREFIX}{}:{status}:{kind}", self.name)
    }

    fn people(&self, status: &str) -> &[String] {
        self.truth.iter().find(|(name, _)| *name == status).map_or(&[], |(_, people)| people)
    }

    fn delivered_but_not_read(&self) -> Vec<&String> {
        let read: HashSet<&String> = self.people("read").iter().collect();
        self.people("delivered").iter().filter(|person| !read.contains(person)).collect()
    }

    /// Sends all receipts to a counter a status.
    fn record(&self, error_rate: f64, server: &mut Connection) -> Result<(), Failure> {
        for (status, _) in &self.truth {
            let options = ("ERROR", error_rate, "EXACT", EXACT_LIMIT);
            redis::cmd("LC.RESERVE").arg(self.key("LC", status)).arg(CAPACITY).arg(options).exec(server)?;
        }
        self.send("LC.ADD", "LC", server)
    }

    /// Sends all receipts to a set and a HyperLogLog a status.
    fn record_elsewhere(&self, server: &mut Connection) -> Result<(), Failure> {
        self.send("SADD", "S", server)?;
        self.send("PFADD", "PF", server)
    }

    fn send(&self, command: &str, kind: &str, server: &mut Connection) -> Result<(), Failure> {
        for (status, people) in &self.truth {
            // Every tenth receipt comes a second time.
            let receipts: Vec<&String> = people.iter().chain(people.iter().step_by(10)).collect();
            let mut pipeline = redis::pipe();
            for batch in receipts.chunks(BATCH) {
                pipeline.cmd(command).arg(self.key(kind, status)).arg(batch).ignore();
            }
            pipeline.exec(server)?;
        }
        Ok(())
    }

    fn count(&self, status: &str, server: &mut Connection) -> Result<u64, Failure> {
        Ok(redis::cmd("LC.COUNT").arg(self.key("LC", status)).query(server)?)
    }

    fn print_summary(&self, server: &mut Connection) -> Result<(), Failure> {
        println!("An announcement to a {}: counts, and bytes of memory\n", self.name);
        let mut rows = Vec::new();
        for (status, people) in &self.truth {
            let hyper_log_log: u64 = redis::cmd("PFCOUNT").arg(self.key("PF", status)).query(server)?;
            let mut row = vec![people.len() as u64, self.count(status, server)?, hyper_log_log];
            for kind in ["LC", "S", "PF"] {
                row.push(memory_usage(&self.key(kind, status), server)?);
            }
            rows.push([status.to_string()].into_iter().chain(row.into_iter().map(thousands)).collect());
        }
        print_table(&["", "truth", "LC.COUNT", "PFCOUNT", "counter", "set", "HyperLogLog"], &rows);
        Ok(())
    }
}
