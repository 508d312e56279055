//! What a server says about its filters and counters, and what is wrong with them.

use redis::Value;
use serde::Serialize;

use crate::failure::Failure;
use crate::server::{Answer, Class, Key, Server, integer, is_gone, number, pairs, shown, text};

/// Keys that are asked about together.
const BATCH: usize = 200;

/// Sub-filters of a filter that has grown more than three times.
const MANY_FILTERS: i64 = 5;

/// A rate that is more than this many times the one asked for is past it; less may be chance.
const PAST_RATE: f64 = 1.05;

/// The rate of RedisBloom's first sub-filter is this part of the one asked for, if it scales.
const REDISBLOOM_TIGHTENING: f64 = 0.5;

/// One filter or counter.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Row {
    pub key: String,
    /// `filter`, `classic` or `counter`.
    pub kind: &'static str,
    /// `exact`, `sparse` or `dense`; of a filter whether it grows; with a window its length.
    pub mode: String,
    pub items: Option<i64>,
    pub capacity: Option<i64>,
    /// Items in parts of the capacity.
    pub fill: Option<f64>,
    /// False positives to be expected now, or the standard error of the count.
    pub rate: Option<f64>,
    /// What was asked for.
    pub asked: Option<f64>,
    pub filters: Option<i64>,
    pub bytes: Option<i64>,
    /// Milliseconds.
    pub ttl: Option<i64>,
    /// What is wrong with it, and what to do.
    pub wrong: Vec<String>,
}

/// All of a server or cluster.
pub fn rows(server: &mut Server, pattern: Option<&str>) -> Result<Vec<Row>, Failure> {
    let keys = server.scan(pattern)?;
    let mut rows = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH) {
        let mut commands = Vec::new();
        for key in batch {
            for command in questions(key) {
                commands.push((&key.name[..], command));
            }
        }
        let mut answers = server.ask_all(&commands)?.into_iter();
        for key in batch {
            let answers: Vec<Answer> = answers.by_ref().take(questions(key).len()).collect();
            rows.extend(row(key, &answers));
        }
        for (row, key) in rows.iter_mut().rev().zip(batch.iter().rev()) {
            // RedisBloom does not say the rate that was asked for but in the description of sub-filters.
            if row.asked.is_none() && row.filters.is_some_and(|filters| filters >= MANY_FILTERS) {
                let description = server.ask(&key.name, redis::cmd("BF.DEBUG").arg(&key.name))?;
                row.asked = description.ok().as_ref().and_then(first_ratio).map(|ratio| ratio / REDISBLOOM_TIGHTENING);
            }
        }
    }
    for row in &mut rows {
        row.judge();
    }
    Ok(rows)
}

/// What a key is asked: the same for all of its class.
fn questions(key: &Key) -> Vec<redis::Cmd> {
    let about = |command: &mut redis::Cmd| command.arg(&key.name).to_owned();
    let mut questions = vec![
        about(&mut redis::cmd("PTTL")),
        redis::cmd("MEMORY").arg("USAGE").arg(&key.name).to_owned(),
        about(&mut key.class.command("INFO")),
    ];
    if key.class != Class::Counter {
        for field in ["ERROR", "FPR", "WINDOW", "SLICES"] {
            questions.push(key.class.command("INFO").arg(&key.name).arg(field).to_owned());
        }
    }
    questions
}

/// The row of a key; `None` if it is gone by now.
fn row(key: &Key, answers: &[Answer]) -> Option<Row> {
    let kind = match key.class {
        Class::Classic => "classic",
        Class::Filter => "filter",
        Class::Counter => "counter",
    };
    let of = |at: usize| answers.get(at).and_then(|answer| answer.as_ref().ok());
    let mut row = Row {
        key: shown(&key.name),
        kind,
        ttl: of(0).and_then(integer).filter(|&ttl| ttl >= 0),
        bytes: of(1).and_then(integer),
        ..Row::default()
    };
    let info = match answers.get(2)? {
        Ok(info) => pairs(info),
        Err(text) if is_gone(text) => return None,
        Err(text) => {
            row.wrong.push(match text.split_once("still loading: ") {
                Some((_, how)) => format!("half loaded: {how}; go on with its dump, or delete it"),
                None => text.clone(),
            });
            return Some(row);
        }
    };
    let value = |label: &str| info.iter().find(|(name, _)| name == label).map(|(_, value)| value);
    row.capacity = value("Capacity").and_then(integer);
    let window = value("Window").and_then(integer);
    if key.class == Class::Counter {
        row.items = value("Count").and_then(integer);
        row.asked = value("Error rate").and_then(number);
        row.rate = value("Standard error").and_then(number);
        row.mode = value("Representation").and_then(text).unwrap_or_default();
        row.mode += &window.map(|seconds| format!(", {seconds} s")).unwrap_or_default();
    } else {
        row.items = value("Number of items inserted").and_then(integer);
        row.filters = value("Number of filters").and_then(integer);
        row.asked = of(3).and_then(one).as_ref().and_then(number);
        row.rate = of(4).and_then(one).as_ref().and_then(number);
        let slices = of(6).and_then(one).as_ref().and_then(integer);
        row.mode = match (of(5).and_then(one).as_ref().and_then(text), slices) {
            (Some(last), _) => last,
            (None, Some(_)) => of(5)
                .and_then(one)
                .as_ref()
                .and_then(integer)
                .map_or_else(String::new, |seconds| format!("{seconds} s")),
            _ if matches!(value("Expansion rate"), Some(Value::Nil)) => "fixed".to_owned(),
            _ => "grows".to_owned(),
        };
        if let Some(slices) = slices {
            // Each generation has a chain of its own; their sum says nothing of growth up to here.
            row.filters = row.filters.map(|filters| (filters / (slices + 1)).max(1));
        }
    }
    if let (Some(items), Some(capacity)) = (row.items, row.capacity) {
        row.fill = Some(items as f64 / capacity.max(1) as f64);
    }
    Some(row)
}

impl Row {
    /// Notes what is wrong.
    fn judge(&mut self) {
        let items = self.items.unwrap_or(0);
        if self.filters.is_some_and(|filters| filters >= MANY_FILTERS) {
            let grown = self.filters.unwrap_or(0) - 1;
            let rate = self.asked.map_or_else(|| "RATE".to_owned(), |rate| format!("{}", round(rate)));
            let capacity = round_up(items);
            self.wrong.push(format!("grown {grown} times: BF.RESERVE {} {rate} {capacity}", self.key));
        }
        if let (Some(rate), Some(asked)) = (self.rate, self.asked)
            && self.kind != "counter"
            && rate > asked * PAST_RATE
        {
            self.wrong.push(format!("past its rate of {}", round(asked)));
        }
        if self.kind == "counter" && self.fill.is_some_and(|fill| fill > 1.0) {
            self.wrong.push(format!("past its capacity: LC.RESERVE {} {}", self.key, round_up(items)));
        }
    }
}

/// The value of a reply to INFO with a field.
fn one(reply: &Value) -> Option<Value> {
    match reply {
        Value::Array(items) => items.first().filter(|item| !matches!(item, Value::Nil)).cloned(),
        Value::Map(pairs) => pairs.first().map(|(_, value)| value.clone()),
        _ => None,
    }
}

/// The rate of the first sub-filter in what BF.DEBUG says.
fn first_ratio(reply: &Value) -> Option<f64> {
    let Value::Array(lines) = reply else { return None };
    let line = text(lines.get(1)?)?;
    line.split(' ').find_map(|word| word.strip_prefix("ratio:"))?.parse().ok()
}

/// A number of items with a tenth of room, in two figures.
fn round_up(items: i64) -> i64 {
    let wanted = items.saturating_add(items / 10).max(1);
    let mut unit = 1_i64;
    while wanted / unit >= 100 {
        unit = unit.saturating_mul(10);
    }
    (wanted.saturating_add(unit - 1) / unit).saturating_mul(unit)
}

/// A rate in three figures.
pub fn round(rate: f64) -> f64 {
    format!("{rate:.2e}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_the_command() {
        let mut row = Row { key: "k".into(), kind: "filter", items: Some(81_234), ..Row::default() };
        (row.filters, row.asked, row.rate) = (Some(4), Some(0.01), Some(0.0104));
        row.judge();
        assert!(row.wrong.is_empty(), "{:?}", row.wrong);
        (row.filters, row.rate) = (Some(5), Some(0.0106));
        row.judge();
        assert_eq!(row.wrong, ["grown 4 times: BF.RESERVE k 0.01 90000", "past its rate of 0.01"]);
        let mut counter =
            Row { key: "c".into(), kind: "counter", items: Some(101), fill: Some(1.01), ..Row::default() };
        counter.judge();
        assert_eq!(counter.wrong, ["past its capacity: LC.RESERVE c 120"]);
    }
}
