//! Filters and counters as a server reports them, each with the findings of [`health`](crate::health).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::health::{
    CounterFacts, FilterFacts, Finding, HARMLESS_GROWTHS, PartiallyLoadedFacts, Severity, WindowFacts,
};
use redis::Value;
use rollcall_core::bloom::sizing::geometry;
use rollcall_core::counting::{Counter, Params};
use rollcall_core::unstable::bloom::{estimate_items, full_bits};
use rollcall_core::unstable::wire::StillLoading;
use rollcall_core::window::{ClockSource, Window};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::failure::Failure;
use crate::server::{Answer, Class, Key, Server, integer, items, number, pairs, shown, text, texts};

/// Number of keys in one batch of questions.
const BATCH: usize = 200;

/// Prefix of the commands on filters in the layout `lines` if another module on the server owns `BF.*`.
const BESIDE: &str = "RF";

/// Prefix of filter commands if no other module owns `BF.*`.
const USUAL: &str = "BF";

/// Fields that a filter is asked for one by one with `INFO key FIELD`, after the plain `INFO key`.
const FIELDS: [&str; 8] = ["ERROR", "FPR", "FILL", "WINDOW", "SLICES", "CLOCK", "VOLATILE", "REFRESH"];

/// The expansion of new filters by default. Advice leaves out options that have their default.
const DEFAULT_EXPANSION: i64 = 2;

/// RedisBloom gives this share of the requested error rate to the first sub-filter of a scaling filter.
const REDISBLOOM_TIGHTENING: f64 = 0.5;

/// The keys to look at: a pattern and a maximum number.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Glob pattern of the keys, as `KEYS` takes it; `None` for all keys.
    pub pattern: Option<&'a str>,
    /// The largest number of keys. If more keys match, the first in order of names are used.
    pub max_keys: usize,
}

impl<'a> Scope<'a> {
    /// A scope of all keys that match `pattern`; `None` for all filters and counters.
    pub fn matching(pattern: Option<&'a str>) -> Self {
        Scope { pattern, max_keys: usize::MAX }
    }
}

/// The filters and counters of a server.
#[derive(Debug, Default)]
pub struct Rows {
    /// One row for each key, in order of names.
    pub rows: Vec<Row>,
    /// Number of matching keys beyond [`Scope::max_keys`], which were not polled.
    pub left_out: u64,
}

/// One filter or counter. Unknown fields are `None`: RedisBloom reports less, and a partially loaded value hardly
/// anything.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Row {
    /// The key as commands take it.
    #[serde(skip)]
    pub name: Vec<u8>,
    /// Name of the key for display: unprintable bytes are escaped.
    pub key: String,
    /// Name of the node that has the key.
    pub server: String,
    /// `filter`, `classic` or `counter`; [`SERVER`] in a row for a node.
    pub kind: &'static str,
    /// For a counter `exact` or `estimate`, followed by its window; for a filter its window, or `grows` or `fixed`
    /// without one.
    pub mode: String,
    pub items: Option<i64>,
    /// Number of items that a filter is sized for; `None` for a counter.
    pub capacity: Option<i64>,
    /// Number of items divided by the capacity, or how full the set bits show the filter to be if that is more; `None`
    /// for a counter.
    pub fill: Option<f64>,
    /// How full a filter that cannot grow is according to its set bits: 1 if it rejects new items. `None` if only the
    /// number of items decides.
    #[serde(skip)]
    pub fill_by_bits: Option<f64>,
    /// For a filter its false positive rate now; for a counter its relative standard error now. Both are shares, 0 to
    /// 1.
    pub rate: Option<f64>,
    /// The error rate that the user asked for.
    pub asked: Option<f64>,
    /// Number of sub-filters; with a window, the mean number in each slice.
    pub filters: Option<i64>,
    /// Bytes of the value, as its INFO has them. `MEMORY USAGE` of a module's key is wrong on some servers.
    pub bytes: Option<i64>,
    /// Remaining time to live in milliseconds; `None` if the key does not expire.
    pub ttl_ms: Option<i64>,
    /// The window: its seconds, and whether the key expires once it is empty. `None` without a window.
    #[serde(flatten, serialize_with = "as_window")]
    pub window: Option<WindowFacts>,
    pub slices: Option<i64>,
    /// The options of RESERVE that make a filter like this one, except capacity and error.
    #[serde(skip)]
    pub options: String,
    /// Whether items that have expired take memory.
    #[serde(skip)]
    pub keeps_expired: bool,
    /// Whether the server evicts keys with a time to live, and no other keys. Looked up for keys with one only.
    #[serde(skip)]
    pub evicts_expiring: bool,
    /// Bytes loaded so far and in total, for a partially loaded value.
    #[serde(serialize_with = "as_partially_loaded")]
    pub partially_loaded: Option<PartiallyLoadedFacts>,
    /// The error for which figures of the key are missing; for a node the reason why keys are not listed.
    pub rejected: Option<String>,
    /// Findings about the key, each with its advice, the most urgent first.
    #[serde(serialize_with = "as_findings")]
    pub findings: Vec<Finding>,
}

/// The role of replicas in INFO. By default they ignore `maxmemory` (`replica-ignore-maxmemory`).
pub(super) const REPLICA: &str = "slave";

/// [`Row::kind`] of a row that has the findings about a node, and nothing else.
pub const SERVER: &str = "server";

impl Row {
    /// Whether the key deserves attention: the server answered with an error, or a finding is above a notice.
    pub fn is_wrong(&self) -> bool {
        self.rejected.is_some() || self.findings.iter().any(|finding| finding.severity > Severity::Notice)
    }

    /// The severity of the worst finding; `None` without findings. A higher value is more urgent.
    pub fn urgency(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    fn is_counter(&self) -> bool {
        self.kind == kind(Class::Counter)
    }

    /// The findings of [`health`](crate::health). `prefix` is for suggested commands; `grows` says whether a full
    /// filter grows.
    fn judge(&self, prefix: &str, grows: bool) -> Vec<Finding> {
        if let Some(loading) = self.partially_loaded {
            return vec![loading.finding()];
        }
        let count = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
        // Nothing is said about a time to live that is not known.
        let (window, expires) = (self.window, self.ttl_ms.is_some() || self.rejected.is_some());
        if self.is_counter() {
            let counter = CounterFacts {
                members: count(self.items),
                window,
                keeps_expired: self.keeps_expired,
                expires,
                evicts_expiring: self.evicts_expiring,
            };
            return counter.findings();
        }
        let filter = FilterFacts {
            prefix,
            items: count(self.items),
            capacity: count(self.capacity),
            sub_filters: count(self.filters),
            grows,
            fill_by_bits: self.fill_by_bits,
            rate: self.rate,
            error_rate: self.asked,
            window,
            options: &self.options,
            keeps_expired: self.keeps_expired,
            expires,
            evicts_expiring: self.evicts_expiring,
            ..FilterFacts::new(&self.name)
        };
        filter.findings()
    }
}

/// The filters and counters of a server or cluster, in order of names.
pub fn rows(server: &mut Server, scope: &Scope<'_>) -> Result<Rows, Failure> {
    let (keys, left_out) = server.scan_first(scope.pattern, scope.max_keys)?;
    Ok(Rows { rows: rows_of(server, &keys)?, left_out })
}

/// A row for each of `keys` that still exists.
pub(super) fn rows_of(server: &mut Server, keys: &[Key]) -> Result<Vec<Row>, Failure> {
    let lines = prefix_of_lines(server)?;
    // A node is asked for its eviction policy only when its first key with a time to live is found.
    let mut evicting: BTreeMap<usize, bool> = BTreeMap::new();
    let mut rows = Vec::with_capacity(keys.len());
    for batch in keys.chunks(BATCH) {
        let all: Vec<(&Key, &str)> = batch.iter().map(|key| (key, key.class.family())).collect();
        let mut answers = answers(server, &all)?;
        // Some users may call `BF.*` but not `RF.*`. Filters whose `RF.INFO` was forbidden are therefore asked with
        // `BF.INFO`.
        let is_forbidden = |at: &usize| answers[*at].get("INFO").and_then(forbidden).is_some();
        let filters = (0..batch.len()).filter(|&at| batch[at].class == Class::Filter);
        let rejected: Vec<usize> = filters.filter(is_forbidden).collect();
        let again: Vec<(&Key, &str)> = rejected.iter().map(|&at| (&batch[at], USUAL)).collect();
        for (at, answer) in rejected.into_iter().zip(self::answers(server, &again)?) {
            answers[at] = answer;
        }
        for (key, answers) in batch.iter().zip(&answers) {
            let Some((mut row, grows)) = row(key, answers) else { continue };
            row.server = server.node_name(server.node_of(&key.name));
            // RedisBloom reports the error rate only in `BF.DEBUG`, within the description of each sub-filter.
            if row.asked.is_none() && row.filters.is_some_and(|filters| filters > HARMLESS_GROWTHS as i64) {
                let description = server.ask(&key.name, redis::cmd("BF.DEBUG").arg(&key.name))?;
                row.rejected = row.rejected.or(forbidden(&description));
                // Line 0 describes the whole filter, and line 1 the first sub-filter.
                let first = description.ok().as_ref().and_then(items).and_then(|lines| text(lines.get(1)?));
                row.asked = first.and_then(|first| texts::ratio(&first)).map(|ratio| ratio / REDISBLOOM_TIGHTENING);
            }
            if row.ttl_ms.is_some() {
                let node = server.node_of(&key.name);
                row.evicts_expiring = match evicting.entry(node) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(unknown) => *unknown.insert(evicts_expiring(server, node)?),
                };
            }
            row.findings = row.judge(if key.class == Class::Filter { lines } else { USUAL }, grows);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The answers about one key: to `PTTL`, to the plain `INFO`, and to each of [`FIELDS`].
type Answers = BTreeMap<&'static str, Answer>;

/// The answers to the questions about each key, sent as one batch. Each key comes with its command prefix.
fn answers(server: &mut Server, keys: &[(&Key, &str)]) -> Result<Vec<Answers>, Failure> {
    let (mut names, mut commands) = (Vec::new(), Vec::new());
    for (key, prefix) in keys {
        let info = redis::cmd(&format!("{prefix}.INFO")).arg(&key.name).to_owned();
        let mut questions = vec![("PTTL", redis::cmd("PTTL").arg(&key.name).to_owned()), ("INFO", info.clone())];
        if key.class != Class::Counter {
            questions.extend(FIELDS.map(|field| (field, info.clone().arg(field).to_owned())));
        }
        names.push(questions.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        commands.extend(questions.into_iter().map(|(_, command)| (&key.name[..], command)));
    }
    let mut answers = server.ask_all(&commands)?.into_iter();
    Ok(names.into_iter().map(|names| names.into_iter().zip(answers.by_ref()).collect()).collect())
}

/// The prefix to suggest for filters in the layout `lines`: `RF` if another module owns `BF.*`, otherwise `BF`.
fn prefix_of_lines(server: &mut Server) -> Result<&'static str, Failure> {
    let known = server.ask_node(0, &[redis::cmd("COMMAND").arg("INFO").arg("BF.ADVANCE").to_owned()])?.pop();
    // A user who may not call `COMMAND` gets `BF`.
    let is_another = matches!(known, Some(Ok(Value::Array(known))) if matches!(known.first(), None | Some(Value::Nil)));
    Ok(if is_another { BESIDE } else { USUAL })
}

/// Whether a node evicts keys with a time to live, and no other keys. `false` if the user may not call `INFO`.
fn evicts_expiring(server: &mut Server, node: usize) -> Result<bool, Failure> {
    let info = server.ask_node(node, &[redis::cmd("INFO").arg(&["memory", "replication"]).to_owned()])?.pop();
    let info = info.and_then(Result::ok).as_ref().and_then(text).unwrap_or_default();
    let field = |name: &str| info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
    let has_limit = field("maxmemory").is_some_and(|bytes| bytes != "0") && field("role") != Some(REPLICA);
    Ok(has_limit && field("maxmemory_policy").is_some_and(|policy| policy.starts_with("volatile-")))
}

/// The server's error if the user lacks a permission.
fn forbidden(answer: &Answer) -> Option<String> {
    answer.as_ref().err().filter(|text| texts::is_forbidden(text)).cloned()
}

/// The slices of a windowed counter, newest first: the Unix time at which each begins, and the number of members since.
pub fn history(server: &mut Server, key: &[u8]) -> Result<Vec<(i64, i64)>, Failure> {
    let reply = server.call(key, redis::cmd("LC.HISTORY").arg(key))?;
    let row = |row: &Value| {
        let row = items(row)?;
        Some((integer(row.first()?)?, integer(row.get(1)?)?))
    };
    Ok(items(&reply).unwrap_or_default().iter().filter_map(row).collect())
}

/// The name of a class in the column of kinds.
fn kind(class: Class) -> &'static str {
    match class {
        Class::Classic => "classic",
        Class::Filter => "filter",
        Class::Counter => "counter",
    }
}

/// The row of a key without findings, and whether a full filter grows. `None` if the key no longer exists.
fn row(key: &Key, answers: &Answers) -> Option<(Row, bool)> {
    let reply = |name: &str| answers.get(name).and_then(|answer| answer.as_ref().ok());
    let mut row = Row {
        name: key.name.clone(),
        key: shown(&key.name),
        kind: kind(key.class),
        ttl_ms: reply("PTTL").and_then(integer).filter(|&ttl| ttl >= 0),
        ..Row::default()
    };
    row.rejected = answers.get("PTTL").and_then(forbidden);
    let info = match answers.get("INFO")? {
        Ok(info) => pairs(info),
        Err(text) if texts::is_gone(text) => return None,
        Err(text) => {
            row.partially_loaded =
                StillLoading::from_error(text).map(|StillLoading { received_bytes, total_bytes }| {
                    PartiallyLoadedFacts { received_bytes, total_bytes }
                });
            row.bytes = row.partially_loaded.and_then(|loading| i64::try_from(loading.total_bytes).ok());
            row.rejected = row.rejected.or_else(|| row.partially_loaded.is_none().then(|| text.clone()));
            return Some((row, true));
        }
    };
    let value = |label: &str| value_of(&info, label);
    row.capacity = value("Capacity").and_then(integer);
    row.bytes = value("Size").and_then(integer);
    let mut grows = true;
    if key.class == Class::Counter {
        read_counter(&mut row, value);
    } else {
        grows = !matches!(value("Expansion rate"), Some(Value::Nil));
        read_filter(&mut row, grows, value, |name| reply(name).and_then(one));
    }
    if let (Some(items), Some(capacity)) = (row.items, row.capacity) {
        let by_count = items as f64 / capacity.max(1) as f64;
        row.fill = Some(row.fill_by_bits.map_or(by_count, |by_bits| by_bits.max(by_count)));
    }
    Some((row, grows))
}

fn value_of<'a>(info: &'a [(String, Value)], label: &str) -> Option<&'a Value> {
    info.iter().find(|(name, _)| name == label).map(|(_, value)| value)
}

fn seconds(value: &Value) -> Option<u64> {
    integer(value).and_then(|seconds| u64::try_from(seconds).ok())
}

/// Reads the fields of a counter. `value` is a field of its INFO.
fn read_counter<'a>(row: &mut Row, value: impl Fn(&str) -> Option<&'a Value>) {
    row.items = value("Count").and_then(integer);
    row.asked = value("Error rate").and_then(number);
    row.rate = value("Standard error").and_then(number);
    row.window =
        value("Window").and_then(seconds).map(|seconds| window_of_time(seconds, value("Clock"), value("Volatile")));
    row.slices = value("Slices").and_then(integer);
    row.mode = value("Mode").and_then(text).unwrap_or_default();
    if let Some(window) = row.window {
        row.mode += &format!(", {}", mode(window));
    }
    let exact = ["Exact limit", "Exact bytes"].map(|label| value(label).and_then(integer));
    row.keeps_expired = row.items == Some(0) && empty_bytes(row, exact).is_some_and(|empty| row.bytes > Some(empty));
}

/// Reads the fields of a filter. `value` is a field of its INFO, `field` the answer to a question for one field.
fn read_filter<'a>(
    row: &mut Row,
    grows: bool,
    value: impl Fn(&str) -> Option<&'a Value>,
    field: impl Fn(&str) -> Option<Value>,
) {
    row.items = value("Number of items inserted").and_then(integer);
    row.filters = value("Number of filters").and_then(integer);
    row.asked = field("ERROR").as_ref().and_then(number);
    row.rate = field("FPR").as_ref().and_then(number);
    row.window = (field("WINDOW").as_ref().and_then(seconds))
        .map(|seconds| window_of_time(seconds, field("CLOCK").as_ref(), field("VOLATILE").as_ref()));
    row.slices = field("SLICES").as_ref().and_then(integer);
    row.mode = match row.window {
        Some(window) => mode(window),
        None if grows => "grows".to_owned(),
        None => "fixed".to_owned(),
    };
    if row.kind == kind(Class::Filter) && !grows && row.window.is_none() {
        row.fill_by_bits = field("FILL").as_ref().and_then(number).and_then(|ratio| fill_by_bits(row, ratio));
    }
    let expansion = option("EXPANSION", value("Expansion rate").and_then(integer), DEFAULT_EXPANSION);
    let window = match row.window {
        Some(window) => Some(options_of(window, row.slices)),
        None => (!grows).then(|| "NONSCALING".to_owned()),
    };
    let is_refreshed = field("REFRESH").as_ref().and_then(integer) == Some(1);
    let refresh = is_refreshed.then(|| "REFRESH".to_owned());
    row.options = [expansion, window, refresh].into_iter().flatten().collect::<Vec<_>>().join(" ");
    // Each slice allocates a sub-filter at its first item.
    row.keeps_expired = row.filters > Some(0);
    row.filters = match row.slices {
        // Each of the `slices + 1` generations is a chain of sub-filters. Growth shows in the mean length of the
        // chains.
        Some(slices) => row.filters.map(|filters| (filters / (slices + 1)).max(1)),
        None => row.filters,
    };
}

/// A window of `seconds`. A volatile window takes precedence; otherwise the clock source decides.
fn window_of_time(seconds: u64, clock_source: Option<&Value>, is_volatile: Option<&Value>) -> WindowFacts {
    let is_manual = clock_source.and_then(text).is_some_and(|clock_source| clock_source == "manual");
    match is_volatile.and_then(integer) {
        Some(1) => WindowFacts::Volatile(seconds),
        _ if is_manual => WindowFacts::Manual(seconds),
        _ => WindowFacts::Seconds(seconds),
    }
}

/// An option of RESERVE; `None` if it has its default, or is unknown.
fn option(word: &str, number: Option<i64>, default: i64) -> Option<String> {
    number.filter(|&number| number != default).map(|number| format!("{word} {number}"))
}

/// The options of RESERVE that make a value with this window.
fn options_of(window: WindowFacts, slices: Option<i64>) -> String {
    let slices = slices.map(|slices| format!(" SLICES {slices}")).unwrap_or_default();
    match window {
        WindowFacts::Seconds(seconds) => format!("WINDOW {seconds}{slices}"),
        WindowFacts::Volatile(seconds) => format!("WINDOW {seconds}{slices} VOLATILE"),
        WindowFacts::Manual(seconds) => format!("WINDOW {seconds}{slices} MANUAL"),
    }
}

/// The bytes of a counter with the parameters of `row` that nobody has written to; `None` unless it has a window.
fn empty_bytes(row: &Row, [exact_limit, exact_bytes]: [Option<i64>; 2]) -> Option<i64> {
    let Some(WindowFacts::Seconds(seconds)) = row.window else { return None };
    let params = Params {
        error_rate: row.asked?,
        exact_limit: u32::try_from(exact_limit?).ok()?,
        exact_bytes: u32::try_from(exact_bytes?).ok()?,
        seed: 0,
    };
    let slices = u32::try_from(row.slices?).ok()?;
    let window = Window::new(seconds, slices, Counter::MAX_SLICES, ClockSource::System).ok()?;
    let counter = Counter::new(params).ok()?.with_window(window, 0).ok()?;
    i64::try_from(counter.size_bytes()).ok()
}

/// How full a filter of layout `lines` with one sub-filter is according to the share of its bits that are set, by the
/// rule of the module. `None` if the module goes by the number of items alone.
fn fill_by_bits(row: &Row, set_share: f64) -> Option<f64> {
    let (error_rate, capacity) = (row.asked?, u64::try_from(row.capacity?).ok()?);
    let geometry = geometry(error_rate, capacity).ok()?;
    let full_bits = full_bits(error_rate, &geometry)?;
    let set_bits = (set_share * geometry.num_bits() as f64).round() as u64;
    Some(estimate_items(&geometry, set_bits) / estimate_items(&geometry, full_bits))
}

/// The text for a window in the column of modes.
fn mode(window: WindowFacts) -> String {
    match window {
        WindowFacts::Seconds(seconds) => format!("{seconds} s"),
        WindowFacts::Volatile(seconds) => format!("{seconds} s volatile"),
        WindowFacts::Manual(seconds) => format!("{seconds} s manual"),
    }
}

/// The value in a reply to `INFO key FIELD`; `None` if the value is nil.
fn one(reply: &Value) -> Option<Value> {
    match reply {
        Value::Array(items) => items.first().filter(|item| !matches!(item, Value::Nil)).cloned(),
        Value::Map(pairs) => pairs.first().map(|(_, value)| value.clone()),
        _ => None,
    }
}

/// Writes findings as a JSON list.
pub(super) fn as_findings<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(findings.len()))?;
    for finding in findings {
        list.serialize_element(&Shown(finding))?;
    }
    list.end()
}

struct Shown<'a>(&'a Finding);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Shown(finding) = self;
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("problem", finding.problem.name())?;
        map.serialize_entry("severity", finding.severity.name())?;
        map.serialize_entry("wrong", &finding.wrong)?;
        map.serialize_entry("advice", &finding.advice)?;
        map.serialize_entry("command", &finding.command)?;
        map.end()
    }
}

fn as_window<S: Serializer>(window: &Option<WindowFacts>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    match window {
        Some(WindowFacts::Seconds(seconds) | WindowFacts::Volatile(seconds) | WindowFacts::Manual(seconds)) => {
            map.serialize_entry("window_seconds", seconds)?;
        }
        None => map.serialize_entry("window_seconds", &())?,
    }
    map.serialize_entry("volatile", &window.map(|window| matches!(window, WindowFacts::Volatile(_))))?;
    map.end()
}

fn as_partially_loaded<S: Serializer>(
    loading: &Option<PartiallyLoadedFacts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some(loading) = loading else { return serializer.serialize_none() };
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("received_bytes", &loading.received_bytes)?;
    map.serialize_entry("total_bytes", &loading.total_bytes)?;
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn info(pairs: &[(&str, Value)]) -> Value {
        Value::Array(pairs.iter().flat_map(|(label, value)| [text(label), value.clone()]).collect())
    }

    fn field(value: Value) -> Value {
        Value::Array(vec![value])
    }

    /// The row of a filter of 1,000 items with ten sub-filters. A window is its length, its slices and its clock.
    fn filter(window: Option<(i64, i64, &str)>, expansion: Value, is_volatile: bool) -> Row {
        let key = Key { name: b"k".to_vec(), class: Class::Filter };
        let fields = [
            ("Capacity", Value::Int(1000)),
            ("Number of filters", Value::Int(10)),
            ("Number of items inserted", Value::Int(990)),
            ("Expansion rate", expansion),
        ];
        let (seconds, slices) =
            window.map_or((Value::Nil, Value::Nil), |(seconds, slices, _)| (Value::Int(seconds), Value::Int(slices)));
        let answers = [
            ("PTTL", Value::Int(-1)),
            ("INFO", info(&fields)),
            ("REFRESH", field(Value::Int(0))),
            ("VOLATILE", field(Value::Int(is_volatile.into()))),
            ("CLOCK", field(text(window.map_or("system", |(_, _, clock)| clock)))),
            ("SLICES", field(slices)),
            ("WINDOW", field(seconds)),
            ("FPR", field(text("0.02"))),
            ("ERROR", field(text("0.01"))),
        ];
        let answers = answers.into_iter().map(|(name, reply)| (name, Ok(reply))).collect();
        let (mut row, grows) = row(&key, &answers).expect("a row");
        row.findings = row.judge("BF", grows);
        row
    }

    #[test]
    fn rows_of_filters_have_a_mode_and_findings() {
        let of_window = |clock, is_volatile| filter(Some((60, 4, clock)), Value::Int(2), is_volatile);
        let rows = [
            (filter(None, Value::Int(2), false), "grows", &["past-rate", "grown"][..]),
            (filter(None, Value::Nil, false), "fixed", &["past-rate", "nearly-full", "grown"]),
            (of_window("system", false), "60 s", &["past-rate"]),
            (of_window("manual", false), "60 s manual", &["past-rate"]),
            (of_window("system", true), "60 s volatile", &["past-rate"]),
        ];
        for (row, mode, findings) in &rows {
            assert!(row.mode == *mode && row.is_wrong(), "{mode}: {}", row.mode);
            assert!(row.findings.iter().map(|finding| finding.problem.name()).eq(findings.iter().copied()), "{mode}");
        }
        let [growing, _, window, manual, volatile] = &rows.map(|(row, ..)| row);
        assert_eq!((growing.fill, growing.filters), (Some(0.99), Some(10)));
        assert_eq!((window.filters, window.slices), (Some(2), Some(4)));
        let command = manual.findings[0].command.as_ref().expect("a command");
        assert!(command.ends_with(" WINDOW 60 SLICES 4 MANUAL"), "{command}");
        assert_eq!((volatile.window, &volatile.findings[0].command), (Some(WindowFacts::Volatile(60)), &None));
        // In JSON, filters without a window have neither of its fields.
        for (row, seconds, is_volatile) in
            [(growing, None, None), (window, Some(60), Some(false)), (volatile, Some(60), Some(true))]
        {
            let json = serde_json::to_value(row).expect("JSON");
            assert_eq!((json["window_seconds"].as_u64(), json["volatile"].as_bool()), (seconds, is_volatile), "{json}");
            assert!(json["ttl_ms"].is_null() && json["name"].is_null(), "{json}");
            assert_eq!(json["findings"][0]["problem"], "past-rate");
        }
    }

    #[test]
    fn errors_are_partially_loaded_keys_or_errors() {
        let key = Key { name: b"k".to_vec(), class: Class::Counter };
        let of = |error: &str| row(&key, &Answers::from([("INFO", Err(error.to_owned()))]));
        let (half, _) = of("ERR counter is still loading: 5 of 10 bytes").expect("a row");
        assert_eq!(half.partially_loaded, Some(PartiallyLoadedFacts { received_bytes: 5, total_bytes: 10 }));
        assert_eq!(half.judge("LC", true)[0].problem.name(), "partially-loaded");
        let (rejected, _) = of("NOPERM no").expect("a row");
        assert_eq!((rejected.rejected.as_deref(), rejected.is_wrong()), (Some("NOPERM no"), true));
        assert!(rejected.judge("LC", true).is_empty());
        assert!(of("ERR not found").is_none());
    }
}
