//! `compare`: compares counters and filters with the sets that a service still keeps alongside them.
//!
//! Every member of a set must be found in its filter. The estimates of many counters must differ from the sizes of
//! their sets only as far as their stated standard errors explain.

mod judge;
mod set;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::lines;
use crate::numbers;
use crate::output::Output;
use crate::progress;
use crate::server::{Access, Class, Given, Server, Url, integer, number, pairs, shown, text};
use crate::table::{count, noun, table};
use judge::{Counters, Judged};
use set::{MAX_MISSES, Set};

/// The relative standard error of a Redis HyperLogLog, which has 2^14 registers: 1.04 / 2^7.
const HYPERLOGLOG_ERROR: f64 = 0.008125;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[group(id = "which", required = true)]
pub struct Compare {
    /// The filter or counter to compare
    #[arg(group = "which")]
    key: Option<String>,
    /// The set, sorted set, hash or HyperLogLog that should have the same members
    #[arg(requires = "key")]
    set: Option<String>,
    /// A file with the members, one per line, to compare with instead of a set
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "set")]
    file: Option<PathBuf>,
    /// Compare all keys whose names match this pattern, which has one *, such as seen:*
    #[arg(long, group = "which", requires = "map")]
    pattern: Option<String>,
    /// The name of the set for a key that matches --pattern; {} stands for the text that the * matched
    #[arg(long, requires = "pattern", value_name = "NAME")]
    map: Option<String>,
    /// A file with the pairs to compare, one per line: the key, a tab, and the set
    #[arg(long, group = "which", value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// The server that has the sets, if they are on another server than the keys
    #[arg(long, value_name = "URL")]
    set_url: Option<String>,
    #[command(flatten)]
    url: Url,
}

/// The name of a key, and the name of its set if one was given.
type Pair = (Vec<u8>, Option<Vec<u8>>);

/// The comparison of one key with its set.
#[derive(Debug, Serialize)]
pub struct Compared {
    pub key: String,
    pub set: String,
    pub kind: &'static str,
    /// Members of the set.
    pub members: u64,
    /// The count that the key reports.
    pub counted: u64,
    /// The difference between count and set in standard errors; `None` unless the counter or the set is
    /// an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<f64>,
    /// The standard error of the difference between count and set, in members.
    #[serde(skip)]
    pub standard_error: f64,
    /// Number of members of the set that the filter or the exact counter does not contain.
    pub missing: u64,
    /// The first of the missing members.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<String>,
    /// Whether the counter is certainly wrong: it is exact and has other members, or the set is empty.
    pub wrong: bool,
}

/// The comparisons of all keys.
#[derive(Debug, Serialize)]
struct Report {
    compared: Vec<Compared>,
    /// Keys without a set.
    without_set: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Counters>,
}

impl Compare {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        let Url { url, access } = &self.url;
        let (set_url, option) = match &self.set_url {
            Some(set_url) => (set_url, Some("--set-url")),
            None => (url, access.given.url),
        };
        let of_set = Access { given: Given { url: option, ..access.given }, ..access.of(set_url, &[url, set_url]) };
        let mut server = Server::connect(url, &access.of(url, &[url, set_url]))?;
        let mut of_sets = Server::connect(set_url, &of_set)?;
        if self.pattern.is_some() {
            server.check_whole()?;
        }
        let mut report = Report { compared: Vec::new(), without_set: Vec::new(), counters: None };
        let all = self.names(&mut server)?;
        if all.is_empty() {
            return Err(Failure::nothing("there is nothing to compare: no filter or counter matches"));
        }
        let bar = progress::bar(Some(all.len() as u64), "keys");
        for (key, set) in all {
            interrupt.check()?;
            let set = match (&self.file, set) {
                (Some(path), _) => Some(Set::from_file(path)?),
                (None, Some(name)) => Set::from_key(&mut of_sets, &name)?,
                (None, None) => None,
            };
            match set {
                Some(set) => report.compared.push(compare(&mut server, &mut of_sets, &key, set, &interrupt)?),
                None => report.without_set.push(shown(&key)),
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        report.counters = Counters::from_differences(
            report.compared.iter().filter_map(|row| Some((row.errors?, row.standard_error))),
        );
        output.answer(&report, Report::text)?;
        report.verdict()
    }

    /// The keys to compare, each with the name of its set.
    fn names(&self, server: &mut Server) -> Result<Vec<Pair>, Failure> {
        if let Some(path) = &self.pairs {
            let pair = |line: Result<Vec<u8>, Failure>| {
                let line = line?;
                let at = line.iter().position(|&byte| byte == b'\t').ok_or_else(|| {
                    Failure::new(format!("{}: no tab in the line {}", path.display(), shown(&line)))
                        .advise("a line is: key, a tab, set")
                })?;
                Ok((line[..at].to_vec(), Some(line[at + 1..].to_vec())))
            };
            return lines::read(path)?.map(pair).collect();
        }
        if let (Some(pattern), Some(map)) = (&self.pattern, &self.map) {
            let wrong = || {
                Failure::arguments(format!(
                    "--pattern {pattern} --map {map}: one * in the pattern, and {{}} in the name"
                ))
                .advise("--pattern 'visitors:*' --map 'visitors-set:{}'")
            };
            let (before, after) = pattern.split_once('*').ok_or_else(wrong)?;
            let (head, tail) = map.split_once("{}").ok_or_else(wrong)?;
            if after.contains('*') {
                return Err(wrong());
            }
            let keys = server.scan(Some(pattern))?.into_iter().filter_map(|key| {
                let middle = key.name.strip_prefix(before.as_bytes())?.strip_suffix(after.as_bytes())?;
                let set = [head.as_bytes(), middle, tail.as_bytes()].concat();
                Some((key.name, Some(set)))
            });
            return Ok(keys.collect());
        }
        let (Some(key), true) = (&self.key, self.set.is_some() || self.file.is_some()) else {
            return Err(
                Failure::arguments("nothing to compare with").advise("rollcall compare KEY SET, or KEY --file FILE")
            );
        };
        Ok(vec![(key.clone().into_bytes(), self.set.clone().map(String::into_bytes))])
    }
}

/// Compares one key with its set.
fn compare(
    server: &mut Server,
    of_sets: &mut Server,
    key: &[u8],
    mut set: Set,
    interrupt: &Interrupt,
) -> Result<Compared, Failure> {
    let class = server.class_of(key)?.ok_or_else(|| Failure::nothing(format!("there is no key {}", shown(key))))?;
    let counted = integer(&server.call(key, class.count().arg(key))?).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let mut compared = Compared {
        key: shown(key),
        set: set.name(),
        kind: class.noun(),
        members: set.size(of_sets)?,
        counted,
        errors: None,
        standard_error: 0.0,
        missing: 0,
        misses: Vec::new(),
        wrong: false,
    };
    if class != Class::Counter {
        if compared.members == 0 {
            return Err(Failure::nothing(format!("{} has no members to look for", set.name())));
        }
        if !look_up(server, of_sets, (class, key), &mut set, &mut compared, interrupt)? {
            return Err(Failure::new(format!("{} has no members to look for: it is a HyperLogLog", set.name()))
                .advise("a filter is compared with a set, a sorted set, a hash or a file"));
        }
        return Ok(compared);
    }
    let info = pairs(&server.call(key, class.command("INFO").arg(key))?);
    let value = |label: &str| info.iter().find(|(name, _)| name == label).map(|(_, value)| value);
    let relative = value("Standard error").and_then(number).unwrap_or(0.0);
    let is_exact = value("Mode").and_then(text).as_deref() == Some("exact");
    let others = if set.is_estimate() { HYPERLOGLOG_ERROR } else { 0.0 };
    let difference = counted as f64 - compared.members as f64;
    compared.standard_error = relative.hypot(others) * compared.members as f64;
    if compared.standard_error > 0.0 {
        compared.errors = Some(difference / compared.standard_error);
    } else {
        // Equal numbers are no proof: an exact counter is compared member by member. A HyperLogLog lists none.
        if is_exact {
            look_up(server, of_sets, (class, key), &mut set, &mut compared, interrupt)?;
        }
        compared.wrong = difference != 0.0 || compared.missing > 0;
    }
    Ok(compared)
}

/// Asks a filter or an exact counter for each member of the set, and notes those that it does not contain. Returns
/// `false` for a HyperLogLog, which has no list of members.
fn look_up(
    server: &mut Server,
    of_sets: &mut Server,
    (class, key): (Class, &[u8]),
    set: &mut Set,
    compared: &mut Compared,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    set.each_piece(of_sets, |items| {
        interrupt.check()?;
        let reply = server.call(key, class.command("MEXISTS").arg(key).arg(items))?;
        let redis::Value::Array(found) = &reply else {
            return Err(Failure::new(format!("MEXISTS {} answered what it never should", shown(key))));
        };
        for (item, _) in items.iter().zip(found).filter(|(_, found)| integer(found) != Some(1)) {
            compared.missing += 1;
            if compared.misses.len() < MAX_MISSES {
                compared.misses.push(shown(item));
            }
        }
        Ok(())
    })
}

impl Compared {
    fn is_filter(&self) -> bool {
        self.kind == Class::Filter.noun()
    }
}

impl Report {
    fn text(&self) -> String {
        let mut parts = Vec::new();
        let few = self.compared.len() <= 20;
        let bad = |row: &&Compared| row.missing > 0 || row.wrong || few;
        let shown: Vec<&Compared> = self.compared.iter().filter(bad).collect();
        if !shown.is_empty() {
            let heads = ["key", "set", ">members", ">counted", ">difference", ">in errors", ">not found", "such as"];
            let mut rows = vec![heads.map(str::to_owned).to_vec()];
            for row in shown {
                let whole = |value: u64| count(i64::try_from(value).unwrap_or(i64::MAX));
                rows.push(vec![
                    row.key.clone(),
                    row.set.clone(),
                    whole(row.members),
                    whole(row.counted),
                    numbers::change(row.members, row.counted),
                    row.errors.map(numbers::signed).unwrap_or_default(),
                    if row.errors.is_none() { whole(row.missing) } else { String::new() },
                    row.misses.join(" "),
                ]);
            }
            parts.push(table(&rows));
        }
        if let Some(counters) = &self.counters {
            parts.push(counters.text());
        }
        if !self.without_set.is_empty() {
            parts.push(format!("without a set: {}", self.without_set.join(" ")));
        }
        parts.push(self.summary());
        parts.join("\n\n")
    }

    /// What was compared and what differs, in one line.
    fn summary(&self) -> String {
        let number = |of: fn(&Compared) -> bool| self.compared.iter().filter(|row| of(row)).count();
        let (filters, estimates) = (number(Compared::is_filter), number(|row| row.errors.is_some()));
        let counters = self.compared.len() - filters - estimates;
        let mut parts = vec![format!("{} compared", noun(self.compared.len(), "key"))];
        if filters > 0 {
            let found = match self.missing() {
                0 => "all members are found".to_owned(),
                missing => format!("{} not found", noun(missing as usize, "member")),
            };
            parts.push(format!("{}: {found}", noun(filters, "filter")));
        }
        if counters > 0 {
            let same = match number(|row| row.wrong) {
                0 => "the same members as the set".to_owned(),
                wrong => format!("{} with other members than the set", count(wrong as i64)),
            };
            parts.push(format!("{}: {same}", noun(counters, "counter")));
        }
        if estimates > 0 {
            let judged = match self.counters.as_ref().map(|counters| &counters.judged) {
                Some(Judged::BeyondChance { .. }) => "off by more than chance",
                _ => "off by no more than chance",
            };
            parts.push(format!("{}: {judged}", noun(estimates, "estimate")));
        }
        parts.join("; ")
    }

    /// The number of members that filters lack.
    fn missing(&self) -> u64 {
        self.compared.iter().filter(|row| row.is_filter()).map(|row| row.missing).sum()
    }

    fn verdict(&self) -> Result<(), Failure> {
        let missing = self.missing();
        if missing > 0 {
            return Err(Failure::does_not_hold(format!("{missing} members are not in their filters"))
                .advise("a filter finds all that was added: these were never added to it"));
        }
        let wrong = self.compared.iter().filter(|row| row.wrong).count();
        if wrong > 0 {
            return Err(Failure::does_not_hold(format!("{wrong} counters differ from their sets, and not by chance"))
                .advise("an exact counter has what was added to it: the two were not given the same"));
        }
        match self.counters.as_ref().map(|counters| &counters.judged) {
            Some(Judged::BeyondChance { what }) => Err(Failure::does_not_hold(what.clone())
                .advise("were both given the same members, and for as long? A counter does not remove any")),
            _ if self.without_set.is_empty() => Ok(()),
            _ => {
                let number = self.without_set.len();
                let text = format!("{number} of {} keys have no set", number + self.compared.len());
                let is_nothing = self.compared.is_empty();
                let failure = if is_nothing { Failure::nothing(text) } else { Failure::does_not_hold(text) };
                Err(failure.advise("name the set as it is on the server; --set-url if it is on another"))
            }
        }
    }
}
