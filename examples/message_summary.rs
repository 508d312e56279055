//! Message summary: how many people received an announcement, read it, or could not be reached, and who has not read
//! it.
//!
//! A school messenger keeps these three numbers for every message. Nearly all messages go to a class, where the
//! numbers must be exact and the people listed. A few messages go to whole districts, where a standard error of 1 %
//! is enough, but counters must stay small. The same counters do both. Up to its EXACT limit it lists its members.
//! Beyond the limit it estimates, in a few kilobytes.
//!
//! - `LC.ADD` for every receipt that comes in. Receipts may come twice, late and in batches.
//! - `LC.COUNT` for the numbers under the message.
//! - "Who has not read it?": `LC.DIFF 2 delivered read`, lists names while the counters are exact. `LC.DIFFCARD 2
//!   delivered read` counts them with a standard error.
//! - "Who came back this week?": `LC.INTER 2 read seen SINCE - 604799`, or `LC.INTERCARD`. `seen` has a window of
//!   four weeks with a slice a day, and `LC.ADD` adds everybody who opens the messenger.
//! - "Who was here this month, and not this week?": `LC.DIFF 2 seen seen SINCE - 604799` compares two time spans of
//!   one key.
//! - `LC.HISTORY seen` has the counts of each day, and `LC.COUNTSINCE` counts the people since any moment of the
//!   month.
//!
//! Here `seen` has the option `MANUAL`: `LC.ADVANCE` moves its window from day to day, so that a month passes in
//! seconds. The present is the last second of a day. A service uses the system clock instead.
//!
//! For comparison, Redis' sets and HyperLogLogs get the same receipts.

mod demo;

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use demo::{Bounds, Failure, Promises, memory_usage, print_table, progress, thousands};
use redis::Connection;
use rollcall_fuzz::random::Random;

const PREFIX: &str = "rollcall-demo:message:";

/// The error rate of the counters, which is the server's default.
const ERROR_RATE: f64 = 0.01;
const EXACT_LIMIT: u64 = 250;

/// The error rate of counters that need a more precise "delivered but not read".
const PRECISE_ERROR_RATE: f64 = 0.0025;

/// Number of receipts per call.
const BATCH: usize = 350;

/// Number of standard errors by which an estimate may be off. About one of 400 estimates is off by more than 3.
const STANDARD_ERRORS: f64 = 3.0;

/// Number of days in the month that is drawn. Each day is a slice of the window.
const DAYS: u64 = 28;
const DAY_SECONDS: u64 = 86_400;

/// The week ends at the present moment, the last second of a day.
const WEEK_DAYS: u64 = 7;
const WEEK_SECONDS: u64 = WEEK_DAYS * DAY_SECONDS - 1;

/// Number of names of an answer that are printed.
const NAMES: usize = 3;

/// Number of districts over which the average error is computed.
const DISTRICTS: u64 = 20;

fn main() -> ExitCode {
    demo::run(PREFIX, |server, promises| {
        let class = Announcement::new("class", 1_000_000, 240);
        class.record(ERROR_RATE, server)?;
        class.record_elsewhere(server)?;
        class.print_summary(server)?;
        check_class(&class, server, promises)?;
        check_month(&class, server, promises)?;

        let district = Announcement::new("district", 2_000_000, 50_000);
        district.record(ERROR_RATE, server)?;
        district.record_elsewhere(server)?;
        district.print_summary(server)?;
        check_district(&district, server, promises)?;
        check_month(&district, server, promises)?;

        let precise = Announcement::new("precise district", 2_000_000, 50_000);
        precise.record(PRECISE_ERROR_RATE, server)?;
        precise.ask(&NOT_READ, &precise.delivered_but_not_read(), server, promises)?;
        check_average_error(server, promises)?;
        println!("\n+- is one standard error: two of three estimates are within it, nearly all within three.\n");
        Ok(())
    })
}

/// A question about two counters, over all their members or over those of a time span.
struct Question {
    words: &'static str,
    /// The command that counts, and the command that lists.
    commands: [&'static str; 2],
    counters: [&'static str; 2],
    since: Option<u64>,
}

const NOT_READ: Question = Question {
    words: "who has not read it",
    commands: ["LC.DIFFCARD", "LC.DIFF"],
    counters: ["delivered", "read"],
    since: None,
};
const CAME_BACK: Question = Question {
    words: "who came back this week",
    commands: ["LC.INTERCARD", "LC.INTER"],
    counters: ["read", "seen"],
    since: Some(WEEK_SECONDS),
};
const DRIFTS_AWAY: Question = Question {
    words: "who was here this month, and not this week",
    commands: ["LC.DIFFCARD", "LC.DIFF"],
    counters: ["seen", "seen"],
    since: Some(WEEK_SECONDS),
};

/// Checks a class: all numbers are exact, and all names are listed.
fn check_class(class: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    for (status, people) in &class.truth {
        promises.same(&format!("class: {status}"), people.len(), class.count(status, server)?);
    }
    class.ask(&NOT_READ, &class.delivered_but_not_read(), server, promises)
}

/// Checks a district: estimates are within some of their standard errors, and take little memory.
fn check_district(district: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    for (status, people) in &district.truth {
        let truth = people.len() as f64;
        let count = district.count(status, server)?;
        let bounds = Bounds::around(truth, STANDARD_ERRORS, ERROR_RATE * truth, format!("{}%", 100.0 * ERROR_RATE));
        let off = format!(" ({:+.2}%)", 100.0 * (count as f64 - truth) / truth);
        promises.number(&format!("district: {status}"), &bounds, count as f64, off);
    }
    district.ask(&NOT_READ, &district.delivered_but_not_read(), server, promises)?;
    let delivered = district.key("LC", "delivered");
    let counter_bytes = memory_usage(&delivered, server)?;
    let log_bytes = memory_usage(&district.key("PF", "delivered"), server)?;
    let half = Bounds::at_most((log_bytes / 2) as f64).because("half of a HyperLogLog's");
    promises.number("district: bytes of a counter", &half, counter_bytes as f64, "");
    Ok(())
}

/// Checks the average error of several districts, because a single estimate may be right by chance.
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

/// Simulates four weeks of the messenger. Readers open it in the first week, most of them early. One in three people
/// opens it on a later day too. Each person counts on the last day of opening it.
fn check_month(message: &Announcement, server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let key = message.key("LC", "seen");
    let options = ("ERROR", ERROR_RATE, "EXACT", EXACT_LIMIT, "WINDOW", DAYS * DAY_SECONDS, "SLICES", DAYS, "MANUAL");
    redis::cmd("LC.RESERVE").arg(&key).arg(options).exec(server)?;
    let mut random = Random::new(3);
    let mut by_day: Vec<Vec<&String>> = vec![Vec::new(); DAYS as usize];
    let mut last_seen: HashMap<&String, u64> = HashMap::new();
    let read: HashSet<&String> = message.people("read").iter().collect();
    for person in message.people("delivered") {
        // Of two random days the earlier one is used, so that most readers come early.
        let first = random.below(WEEK_DAYS).min(random.below(WEEK_DAYS));
        let again = first + 1 + random.below(DAYS - first - 1);
        let days = [(read.contains(person), first), (random.below(3) == 0, again)];
        for (_, day) in days.into_iter().filter(|(comes, _)| *comes) {
            by_day[day as usize].push(person);
            last_seen.insert(person, day);
        }
    }
    for (day, people) in by_day.iter().enumerate() {
        redis::cmd("LC.ADVANCE").arg(&key).arg(day).exec(server)?;
        for batch in people.chunks(BATCH) {
            redis::cmd("LC.ADD").arg(&key).arg(batch).exec(server)?;
        }
    }
    let is_back = |person: &&String| last_seen.get(person).is_some_and(|&day| day >= DAYS - WEEK_DAYS);
    let came_back: Vec<&String> = read.iter().copied().filter(is_back).collect();
    message.ask(&CAME_BACK, &came_back, server, promises)?;
    let drifts_away: Vec<&String> = last_seen.keys().copied().filter(|person| !is_back(person)).collect();
    message.ask(&DRIFTS_AWAY, &drifts_away, server, promises)?;

    let history: Vec<(i64, u64, f64)> = redis::cmd("LC.HISTORY").arg(&key).query(server)?;
    print_history(message, &history);
    // The window also has the empty slice before the first day.
    let rows = history.iter().filter_map(|&(start, count, error)| {
        let day = u64::try_from(start).ok()? / DAY_SECONDS;
        let truth = last_seen.values().filter(|&&last| last >= day).count() as f64;
        Some(((count as f64 - truth).abs(), error))
    });
    // The bound allows for the worst of many estimates: one in a million exceeds it.
    let off = rows.map(|(off, error)| if off == 0.0 { 0.0 } else { off / error }).fold(0.0, f64::max);
    let name = &message.name;
    let bounds = Bounds::at_most(5.0).printed(2, " standard errors");
    promises.number(&format!("{name}: the worst of {DAYS} spans up to now"), &bounds, off, " off");
    let count: u64 = redis::cmd("LC.COUNTSINCE").arg(&key).arg(WEEK_SECONDS).query(server)?;
    let row = history.get(WEEK_DAYS as usize - 1).map_or(0, |&(_, count, _)| count);
    promises.same(&format!("{name}: LC.COUNTSINCE of a week, and the row of LC.HISTORY"), row, count);
    promises
        .report(&format!("{name}: bytes of the one key for all of the month"), thousands(memory_usage(&key, server)?));
    Ok(())
}

/// Draws the days of a window, each with the people whose last visit was on that day.
fn print_history(message: &Announcement, history: &[(i64, u64, f64)]) {
    const WIDTH: u64 = 50;
    // A row counts everyone seen since its slice began. The difference from the row before was last seen in this
    // slice.
    let before = std::iter::once(0).chain(history.iter().map(|&(_, count, _)| count));
    let rows: Vec<(i64, u64)> =
        history.iter().zip(before).map(|(&(start, count, _), before)| (start, count.saturating_sub(before))).collect();
    let most = rows.iter().map(|&(_, seen)| seen).max().unwrap_or(0).max(1);
    println!("\n  {}: the day on which each was last seen\n", message.name);
    for (start, seen) in rows.iter().rev().filter(|&&(start, _)| start >= 0) {
        let bar = "#".repeat((seen * WIDTH / most) as usize);
        println!("  day {:2}  {bar} {}", start / DAY_SECONDS as i64 + 1, thousands(*seen));
    }
    println!();
}

/// A message, and the people in each status.
struct Announcement {
    name: String,
    /// The people who are really in each status.
    truth: [(&'static str, Vec<String>); 3],
}

impl Announcement {
    /// A message that nearly all recipients receive and most read.
    fn new(name: &str, first_person: u64, recipients: u64) -> Self {
        let mut random = Random::new(first_person);
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

    /// Asks a question and prints the answer: names while the counters are exact, otherwise a number with its standard
    /// error.
    fn ask(
        &self,
        question: &Question,
        truth: &[&String],
        server: &mut Connection,
        promises: &mut Promises,
    ) -> Result<(), Failure> {
        let command = |name: &str| {
            let mut command = redis::cmd(name);
            command.arg(2).arg(&question.counters.map(|counter| self.key("LC", counter)));
            if let Some(seconds) = question.since {
                command.arg("SINCE").arg("-").arg(seconds);
            }
            command
        };
        let [how_many, who] = question.commands.map(command);
        let what = format!("{}: {}", self.name, question.words);
        let (number, standard_error): (u64, f64) = how_many.query(server)?;
        if standard_error > 0.0 {
            println!("  {what}? {} +- {standard_error:.0}", thousands(number));
            let truth = truth.len() as f64;
            let bounds = Bounds::around(truth, STANDARD_ERRORS, standard_error, format!("{standard_error:.0}"));
            promises.number(&what, &bounds, number as f64, format!(" +- {standard_error:.0}"));
            return Ok(());
        }
        let mut people: Vec<String> = who.query(server)?;
        people.sort();
        println!("  {what}? {}, ... {number} in all", people[..NAMES.min(people.len())].join(", "));
        let truth: HashSet<&String> = truth.iter().copied().collect();
        let right = people.iter().filter(|person| truth.contains(person)).count();
        let names = |listed: usize, right: usize| format!("{listed} names, {right} of them right");
        promises.same(&what, names(truth.len(), truth.len()), names(people.len(), right));
        Ok(())
    }

    /// Sends all receipts to one counter per status.
    fn record(&self, error_rate: f64, server: &mut Connection) -> Result<(), Failure> {
        for (status, _) in &self.truth {
            let options = ("ERROR", error_rate, "EXACT", EXACT_LIMIT);
            redis::cmd("LC.RESERVE").arg(self.key("LC", status)).arg(options).exec(server)?;
        }
        self.send("LC.ADD", "LC", server)
    }

    /// Sends all receipts to one set and one HyperLogLog per status.
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
