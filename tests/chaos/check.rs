//! Compares the replies of a server with the writes that it acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use redis::Value;
use rollcall_core::counting::{Counter, Params};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;

use crate::key::{Command, Key, Step};
use crate::line::Line;
use crate::run::Run;
use crate::shapes::{Kind, Remembers};
use rollcall_testkit::{error_text, number, show, words};

/// Number of items in one command.
const LIST: usize = 1000;
/// Milliseconds by which a key may expire later than it should. `MIGRATE` sends the remaining time, so the key
/// expires later by the duration of the move.
const MOVED_LATER: u64 = 60_000;
/// Number of items that are looked up in each filter although they were never added.
const STRANGERS: u64 = 500;
/// Number of standard errors by which a sum over a whole run may differ from its expectation.
const SIGMAS: f64 = 5.0;
/// Difference that is allowed in addition to `SIGMAS` standard errors: sums of few events are whole numbers, and not
/// normally distributed.
const FEW: f64 = 6.0;

/// Sums over all keys of one shape. Each key is counted once, before it is deleted or at the end of the run.
#[derive(Clone, Copy, Default)]
struct Sums {
    keys: u64,
    strangers: u64,
    hits: u64,
    expected_hits: f64,
    bound_of_hits: f64,
    counters: u64,
    members: f64,
    deviation: f64,
    variance: f64,
}

/// The sums of a run, by shape.
#[derive(Default)]
pub struct Tally(Mutex<BTreeMap<&'static str, Sums>>);

impl Tally {
    fn add(&self, shape: &'static str, change: impl FnOnce(&mut Sums)) {
        change(self.0.lock().expect("the sums").entry(shape).or_default());
    }

    /// Compares the sums with their expected values.
    pub fn judge(&self, run: &Run) {
        let all = self.0.lock().expect("the sums").clone();
        for (shape, sums) in &all {
            let Sums { keys, strangers, hits, expected_hits, bound_of_hits, .. } = *sums;
            if strangers > 0 {
                run.say(&format!(
                    "{shape}: {keys} filters, {hits} of {strangers} strangers found, {expected_hits:.1} expected, at \
                     most {bound_of_hits:.1} promised"
                ));
                // The true rate of a filter differs by chance from the rate predicted by its set bits. On average,
                // the difference is below 3 %.
                let (hits, scatter) = (hits as f64, 0.03 * expected_hits);
                if (hits - expected_hits).abs() > SIGMAS * expected_hits.sqrt() + FEW + scatter {
                    let came = format!("{hits} of {strangers} strangers found");
                    run.violation(shape, &format!("{expected_hits} expected by the bits that are set"), &came);
                }
                if hits > bound_of_hits + SIGMAS * bound_of_hits.sqrt() + FEW {
                    let came = format!("{hits} of {strangers} strangers found");
                    run.violation(shape, &format!("at most {bound_of_hits} by the error rate"), &came);
                }
            }
            if sums.counters > 0 {
                let Sums { counters, members, deviation, variance, .. } = *sums;
                run.say(&format!(
                    "{shape}: {counters} counters of {members} members, off by {deviation:.0} in all, \
                     standard error {:.1}",
                    variance.sqrt(),
                ));
                // Counts are rounded to whole numbers. Counters of the same size may all be rounded in the same
                // direction.
                if deviation.abs() > SIGMAS * variance.sqrt() + 0.5 * counters as f64 + FEW {
                    let came = format!("off by {deviation}, standard error {}", variance.sqrt());
                    run.violation(shape, &format!("{members} members of {counters} counters"), &came);
                }
            }
        }
    }
}

fn command(line: &str, key: &str) -> Command {
    words(line).into_iter().map(|word| if word == "?" { key } else { word }.as_bytes().to_vec()).collect()
}

/// Checks a key. The writers of the key must not write meanwhile; each may have one command without a reply. The check
/// ends early if the server goes away. With a tally, the key's results are added to the sums, which may happen once per
/// key.
pub fn check(line: &mut dyn Line, run: &Run, writers: &[&Key], tally: Option<&Tally>) {
    let exist = writers.iter().all(|key| key.exists && key.pending != Some(Step::Delete));
    if exist {
        let _ = Look { line, run, writers }.at_all(tally);
    }
}

struct Look<'a> {
    line: &'a mut dyn Line,
    run: &'a Run,
    writers: &'a [&'a Key],
}

impl Look<'_> {
    fn key(&self) -> &Key {
        self.writers[0]
    }

    /// Sends a command and returns its reply; `None` if the server has gone away.
    fn ask(&mut self, command: &Command) -> Option<Value> {
        let name = self.key().name.clone();
        let reply = self.line.read(&name, command)?;
        if error_text(&reply).is_some() {
            self.broken(&format!("{} to {}", show(&reply), rollcall_testkit::shorten(command)));
        }
        Some(reply)
    }

    fn broken(&self, came: &str) -> ! {
        let known: Vec<String> = self.writers.iter().map(|key| key.describe()).collect();
        self.run.violation(&self.key().name, &known.join("\n                "), came)
    }

    fn at_all(&mut self, tally: Option<&Tally>) -> Option<()> {
        if let Some(time) = self.key().shape.expires_at() {
            let name = self.key().name.clone();
            let expiry = number(&self.ask(&command("PEXPIRETIME ?", &name))?) as u64;
            if !(time..time + MOVED_LATER).contains(&expiry) {
                self.broken(&format!("the key expires at {expiry}, not at {time}"));
            }
        }
        match self.key().shape.kind {
            Kind::Filter { rate, has_card } => self.at_filter(rate, has_card, tally),
            Kind::Exact => self.at_members(),
            Kind::Estimate { .. } => {
                let params = self.key().shape.params().expect("an estimate's parameters");
                self.at_estimate(params, tally)
            }
            Kind::Theory => self.at_theory(tally),
        }
    }

    fn at_filter(&mut self, rate: f64, has_card: bool, tally: Option<&Tally>) -> Option<()> {
        for key in self.writers {
            self.has_found(key, &key.name, |key| key.must())?;
            if let Some(len) = key.shadow {
                self.has_found(key, &key.shadow_name(), |_| 0..len)?;
            }
        }
        let name = self.key().name.clone();
        if !has_card {
            return Some(());
        }
        let card = number(&self.ask(&command("BF.CARD ?", &name))?) as u64;
        let news: u64 = self.writers.iter().map(|key| key.news).sum();
        let doubt: u64 = self.writers.iter().map(|key| key.doubt + key.in_flight().count() as u64).sum();
        if !(news..=news + doubt).contains(&card) {
            self.broken(&format!("BF.CARD {card}, expected from {news} to {}", news + doubt));
        }
        let Some(tally) = tally.filter(|_| rate < 1.0) else { return Some(()) };
        let reply = self.ask(&command("BF.INFO ? FPR", &name))?;
        let Value::Array(fields) = &reply else { self.broken(&show(&reply)) };
        let expected = number(&fields[0]);
        let strangers: Vec<Vec<u8>> =
            self.run.strangers(STRANGERS).map(|at| format!("stranger:{at}").into_bytes()).collect();
        let found = self.ask_list("BF.MEXISTS ?", &name, &strangers)?;
        let hits = found.iter().filter(|answer| **answer == Value::Int(1)).count() as u64;
        tally.add(self.key().shape.name, |sums| {
            sums.keys += 1;
            sums.strangers += STRANGERS;
            sums.hits += hits;
            sums.expected_hits += expected * STRANGERS as f64;
            sums.bound_of_hits += rate * STRANGERS as f64;
        });
        Some(())
    }

    fn ask_list(&mut self, line: &str, name: &str, items: &[Vec<u8>]) -> Option<Vec<Value>> {
        let asked: Command = command(line, name).into_iter().chain(items.iter().cloned()).collect();
        match self.ask(&asked)? {
            Value::Array(answers) if answers.len() == items.len() => Some(answers),
            other => self.broken(&format!("{} to {line} of {} items", show(&other), items.len())),
        }
    }

    /// Looks up all items that a filter has to have.
    fn has_found(&mut self, key: &Key, name: &str, must: impl Fn(&Key) -> std::ops::Range<u64>) -> Option<()> {
        let promised: Vec<u64> = key.promised(must(key)).collect();
        for piece in promised.chunks(LIST) {
            let items: Vec<Vec<u8>> = piece.iter().map(|at| key.item(*at)).collect();
            let answers = self.ask_list("BF.QUERY ? ITEMS", name, &items)?;
            // For a window with the system clock, items that may have expired meanwhile are not required.
            let still = must(key);
            let missing: Vec<u64> = piece
                .iter()
                .zip(&answers)
                .filter(|(at, answer)| still.contains(*at) && **answer != Value::Int(1))
                .map(|(at, _)| *at)
                .collect();
            if let Some(first) = missing.first() {
                let item = key.item(*first);
                self.broken(&format!(
                    "{name} has lost {} of {} items, the first '{}', by number {missing:?}",
                    missing.len(),
                    items.len(),
                    item.escape_ascii()
                ));
            }
        }
        Some(())
    }

    fn members(&mut self, name: &str) -> Option<BTreeSet<Vec<u8>>> {
        self.members_of(&format!("LC.MEMBERS {name}"))
    }

    fn members_of(&mut self, question: &str) -> Option<BTreeSet<Vec<u8>>> {
        let reply = self.ask(&command(question, ""))?;
        let Value::Array(items) = reply else { self.broken(&show(&reply)) };
        let len = items.len();
        let bytes = |item| match item {
            Value::BulkString(bytes) => bytes,
            other => self.broken(&show(&other)),
        };
        let members: BTreeSet<Vec<u8>> = items.into_iter().map(bytes).collect();
        if members.len() != len {
            self.broken(&format!("{} of {len} members of {question} are different", members.len()));
        }
        Some(members)
    }

    /// Checks a counter that lists its members. It must have all acknowledged items, no item that was never sent, and
    /// all or none of the items of an unacknowledged command.
    fn at_members(&mut self) -> Option<()> {
        let name = self.key().name.clone();
        let members = self.members(&name)?;
        let count = number(&self.ask(&command("LC.COUNT ?", &name))?) as usize;
        if count != members.len() {
            self.broken(&format!("LC.COUNT {count} of {} members", members.len()));
        }
        self.at_sets(&name, &members)?;
        let expires = matches!(self.key().shape.remembers, Remembers::Slices(_));
        let mut known = 0;
        for key in self.writers {
            if let Some(lost) = key.items(key.must()).find(|item| !members.contains(item)) {
                self.broken(&format!("'{}' is missing of {count} members", lost.escape_ascii()));
            }
            known += key.items(key.may()).filter(|item| members.contains(item)).count();
            let in_flight = key.in_flight().start..key.in_flight().end.min(key.may().end);
            let arrived = key.items(in_flight.clone()).filter(|item| members.contains(item)).count();
            if arrived != 0 && arrived != in_flight.count() && !expires {
                self.broken(&format!("{arrived} items of a list that was on its way"));
            }
            let leaving = key.may().start..key.must().start;
            let left = key.items(leaving.clone()).filter(|item| members.contains(item)).count();
            if left != 0 && left != leaving.count() && !expires {
                self.broken(&format!("{left} items of a list that was being removed"));
            }
        }
        if known != members.len() {
            self.broken(&format!("{} members that nobody sent", members.len() - known));
        }
        for key in self.writers {
            let Some(len) = key.shadow else { continue };
            let members = self.members(&key.shadow_name())?;
            if let Some(lost) = key.items(0..len).find(|item| !members.contains(item)) {
                self.broken(&format!("'{}' is missing in {}", lost.escape_ascii(), key.shadow_name()));
            }
        }
        Some(())
    }

    /// Checks unions, intersections and differences of a counter and its shadow, or of the counter with itself if it
    /// has no shadow. For a windowed counter, also for the last slices of its window.
    fn at_sets(&mut self, name: &str, members: &BTreeSet<Vec<u8>>) -> Option<()> {
        let other = self.key().shadow.map_or(name.to_owned(), |_| self.key().shadow_name());
        let others = self.members(&other)?;
        let mut spans = vec![("-".to_owned(), members.clone())];
        if let Remembers::Slices(_) = self.key().shape.remembers {
            spans.extend(self.at_spans(name, members)?);
        }
        for (span, seen) in spans {
            for (question, expected) in [
                (format!("UNION 2 {name} {other} SINCE {span} -"), &seen | &others),
                (format!("INTER 2 {name} {other} SINCE {span} -"), &seen & &others),
                (format!("DIFF 2 {name} {other} SINCE {span} -"), &seen - &others),
                (format!("DIFF 2 {name} {name} SINCE - {span}"), members - &seen),
            ] {
                let count = expected.len() as f64;
                if self.members_of(&format!("LC.{question}"))? != expected {
                    self.broken(&format!("LC.{question} lists other members than {count}"));
                }
                let question = question.replacen(' ', "CARD ", 1);
                let asked = self.pair_of(&format!("LC.{question}"))?;
                if asked != (count, 0.0) {
                    self.broken(&format!("LC.{question} {asked:?} of {count} members"));
                }
            }
        }
        Some(())
    }

    /// The members that were added in the last slices, for a window with the manual clock. Checks that their number is
    /// the one in LC.HISTORY, and that no member added in these slices is missing.
    fn at_spans(&mut self, name: &str, members: &BTreeSet<Vec<u8>>) -> Option<Vec<(String, BTreeSet<Vec<u8>>)>> {
        let Value::Array(rows) = self.ask(&command("LC.HISTORY ?", name))? else { self.broken("LC.HISTORY") };
        let row = |row: &Value| match row {
            Value::Array(row) => (number(&row[0]), number(&row[1])),
            other => self.broken(&show(other)),
        };
        let rows: Vec<(f64, f64)> = rows.iter().map(row).collect();
        let (length, oldest) = ((rows[0].0 - rows[1].0) as u64, rows.len() - 1);
        let mut spans = Vec::new();
        for back in [0, 3, oldest] {
            let seconds = (back as u64 * length).max(1);
            let seen = self.members_of(&format!("LC.UNION 1 {name} SINCE {seconds}"))?;
            let lost =
                self.writers.iter().any(|key| key.items(key.since(back as u64)).any(|item| !seen.contains(&item)));
            let (count, expected) = (seen.len(), rows[back].1);
            if lost || count as f64 != expected || !seen.is_subset(members) || back == oldest && seen != *members {
                self.broken(&format!("{count} members in the last {seconds} seconds, {expected} by LC.HISTORY"));
            }
            spans.push((seconds.to_string(), seen));
        }
        Some(spans)
    }

    /// Checks a counter that estimates: its count must equal the count of a library counter with the same members.
    fn at_estimate(&mut self, params: Params, tally: Option<&Tally>) -> Option<()> {
        let (name, key) = (self.key().name.clone(), self.writers[0]);
        let count = number(&self.ask(&command("LC.COUNT ?", &name))?) as u64;
        let least = oracle(params, key, key.acked);
        let most = if key.sent == key.acked { least } else { oracle(params, key, key.sent) };
        if !(least..=most).contains(&count) {
            self.broken(&format!("LC.COUNT {count}, expected from {least} to {most}"));
        }
        if let Some(len) = key.shadow {
            let copied = number(&self.ask(&command("LC.COUNT ?", &key.shadow_name()))?) as u64;
            // The copy may have been made again since, but it has no items that the key lacks.
            let least = oracle(params, key, len);
            if !(least..=most).contains(&copied) {
                self.broken(&format!("LC.COUNT {copied} of the copy, expected from {least} to {most}"));
            }
        }
        self.tally_count(tally)
    }

    /// Checks a counter whose count is known only up to its standard error.
    fn at_theory(&mut self, tally: Option<&Tally>) -> Option<()> {
        let name = self.key().name.clone();
        let (count, error) = self.estimate(&name)?;
        let least: u64 = self.writers.iter().map(|key| key.acked).sum();
        let most: u64 = self.writers.iter().map(|key| key.sent).sum();
        // The window is so long that all items were added in its first slice.
        if self.key().shape.create.contains("WINDOW")
            && (self.pair_of(&format!("LC.UNIONCARD 1 {name} SINCE 1"))? != (count, error)
                || self.pair_of(&format!("LC.DIFFCARD 2 {name} {name} SINCE - 1"))?.0 != 0.0)
        {
            self.broken(&format!("a span of LC.UNIONCARD {count} {error} has other members"));
        }
        // With few members, errors are whole members.
        let off = 6.0 * error + if error > 0.0 { 3.0 } else { 0.0 };
        if count < least as f64 - off || count > most as f64 + off {
            self.broken(&format!("LC.UNIONCARD {count} {error}, expected from {least} to {most}"));
        }
        self.tally_count(tally)
    }

    fn estimate(&mut self, name: &str) -> Option<(f64, f64)> {
        self.pair_of(&format!("LC.UNIONCARD 1 {name}"))
    }

    fn pair_of(&mut self, question: &str) -> Option<(f64, f64)> {
        match self.ask(&command(question, ""))? {
            Value::Array(pair) if pair.len() == 2 => Some((number(&pair[0]), number(&pair[1]))),
            other => self.broken(&show(&other)),
        }
    }

    fn tally_count(&mut self, tally: Option<&Tally>) -> Option<()> {
        let (Some(tally), key) = (tally, self.writers[0]) else { return Some(()) };
        if key.pending.is_some() {
            return Some(());
        }
        let (count, error) = self.estimate(&key.name)?;
        tally.add(key.shape.name, |sums| {
            sums.counters += 1;
            sums.members += key.acked as f64;
            sums.deviation += count - key.acked as f64;
            sums.variance += error * error;
        });
        Some(())
    }
}

/// The count of a library counter with the first `len` items of the key.
fn oracle(params: Params, key: &Key, len: u64) -> u64 {
    let mut counter = Counter::new(params).expect("a counter");
    for item in key.items(0..len) {
        counter.live(Time::Reached).add(&item, &Unlimited).expect("nothing limits it");
    }
    counter.count()
}
