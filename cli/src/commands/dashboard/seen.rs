//! The state of the dashboard: the last poll, and the history of all keys together and of each key.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::history::{Ring, Trend, trend};

/// Time for which one serialized state answers requests, in milliseconds.
const WRITTEN_MS: u64 = 1000;

/// How long the history of a key is kept after the key was last seen, in seconds.
const KEPT_AFTER: u64 = 3600;

/// The values in the history of a key: items, capacity, bytes, and the present error rate.
pub type KeyValues = [f64; 4];

/// The values in the history of all keys: items of filters, members of counters, bytes.
pub type TotalValues = [f64; 3];

/// The id of a key in URLs: the hash of its name as 16 hexadecimal digits.
pub fn id_of(name: &[u8]) -> String {
    format!("{:016x}", xxh3_64(name))
}

/// The present in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The place and the history of a key that was found at least once.
#[derive(Debug)]
struct Known {
    place: Place,
    ring: Ring<4>,
    seen: u64,
}

/// The node and the name of a key, needed to ask for its slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub name: Vec<u8>,
    /// The name of the node for display.
    pub node: String,
    /// Whether the key is a windowed counter, which itself reports a history: its slices.
    pub has_slices: bool,
}

/// Everything that the dashboard knows.
#[derive(Debug)]
pub struct Seen {
    /// The result of the last poll as JSON.
    state: String,
    /// The serialized state and the time at which it was written. Requests within one second share it.
    written: Option<(u64, Bytes)>,
    totals: Ring<3>,
    keys: HashMap<String, Known>,
    /// The largest number of keys for which a history is kept.
    most: usize,
}

/// Values over time as pages receive them: times in Unix seconds, and null for values that are unknown.
#[derive(Debug, Default, Serialize)]
pub struct Series {
    now: u64,
    times: Vec<u64>,
    items: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capacity: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rate: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<Option<f64>>,
    bytes: Vec<Option<f64>>,
    /// The slices of a windowed counter: the Unix time at which each begins, and its number of members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Vec<(i64, i64)>>,
    /// Why `window` is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_trouble: Option<String>,
}

impl Seen {
    /// A state before the first poll. `max_keys` is the number of keys that are polled.
    pub fn new(max_keys: usize) -> Self {
        Seen {
            state: "null".to_owned(),
            written: None,
            totals: Ring::new(),
            keys: HashMap::new(),
            most: max_keys.saturating_mul(2),
        }
    }

    /// The result of the last poll and the present time, as JSON.
    pub fn state(&mut self) -> Bytes {
        let now = now_ms();
        let state = &self.state;
        let (at, text) = self
            .written
            .take()
            .filter(|(at, _)| now.abs_diff(*at) < WRITTEN_MS)
            .unwrap_or_else(|| (now, Bytes::from(format!("{{\"now\":{now},\"state\":{state}}}"))));
        self.written.insert((at, text)).1.clone()
    }

    pub fn set_state(&mut self, state: String) {
        (self.state, self.written) = (state, None);
    }

    /// Adds the values of a key at the time `at`, and returns the trend of its items.
    pub fn add_key(&mut self, id: &str, place: &Place, at: u64, values: KeyValues) -> Option<Trend> {
        let known = self.keys.entry(id.to_owned()).or_insert_with(|| Known {
            place: place.clone(),
            ring: Ring::new(),
            seen: at,
        });
        known.seen = at;
        if known.place != *place {
            known.place = place.clone();
        }
        known.ring.push(at, values);
        trend(&known.ring)
    }

    /// Adds the sums over all keys at the time `at`.
    pub fn add_totals(&mut self, at: u64, values: TotalValues) {
        self.totals.push(at, values);
    }

    /// Ends the poll at the time `at`. Keys that the poll did not find get a gap in their curves, and keys that are
    /// long gone are dropped.
    pub fn end_look(&mut self, at: u64) {
        self.keys.retain(|_, known| known.seen + KEPT_AFTER >= at);
        for known in self.keys.values_mut().filter(|known| known.seen != at) {
            known.ring.interrupt();
        }
        if self.keys.len() > self.most {
            let mut by_age: Vec<u64> = self.keys.values().map(|known| known.seen).collect();
            by_age.sort_unstable();
            let oldest = by_age[self.keys.len() - self.most];
            self.keys.retain(|_, known| known.seen >= oldest);
        }
    }

    /// Records a gap in all histories until the next successful poll.
    pub fn interrupt(&mut self) {
        self.interrupt_totals();
        self.keys.values_mut().for_each(|known| known.ring.interrupt());
    }

    /// Records a gap in the sums until the next sums are added.
    pub fn interrupt_totals(&mut self) {
        self.totals.interrupt();
    }

    /// The node and the name of a key.
    pub fn place(&self, id: &str) -> Option<&Place> {
        self.keys.get(id).map(|known| &known.place)
    }

    /// The history of the sums in the last `seconds` seconds.
    pub fn totals(&self, seconds: u64) -> Series {
        let (now, times, [items, members, bytes]) = columns(&self.totals, seconds);
        Series { now, times, items, members, bytes, ..Series::default() }
    }

    /// The history of a key in the last `seconds` seconds; empty for a key that was never seen.
    pub fn key(&self, id: &str, seconds: u64) -> Series {
        let empty = Ring::new();
        let ring = self.keys.get(id).map_or(&empty, |known| &known.ring);
        let (now, times, [items, capacity, bytes, rate]) = columns(ring, seconds);
        Series { now, times, items, capacity, bytes, rate, ..Series::default() }
    }
}

type Columns<const N: usize> = (u64, Vec<u64>, [Vec<Option<f64>>; N]);

/// The samples as columns. Where samples are missing, all columns have a null.
fn columns<const N: usize>(ring: &Ring<N>, seconds: u64) -> Columns<N> {
    let now = now_ms() / 1000;
    let mut times = Vec::new();
    let mut columns: [Vec<Option<f64>>; N] = std::array::from_fn(|_| Vec::new());
    for sample in ring.since(now.saturating_sub(seconds)) {
        if sample.is_after_gap {
            times.push(sample.at);
            columns.iter_mut().for_each(|column| column.push(None));
        }
        times.push(sample.at);
        for (column, value) in columns.iter_mut().zip(sample.values) {
            column.push(value.is_finite().then_some(value));
        }
    }
    (now, times, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        Place { name: name.into(), node: "here".into(), has_slices: false }
    }

    fn see(seen: &mut Seen, names: &[&str], at: u64) {
        for name in names {
            seen.add_key(&id_of(name.as_bytes()), &place(name), at, [1.0, 2.0, 3.0, f64::NAN]);
        }
        seen.end_look(at);
    }

    #[test]
    fn histories_are_bounded_and_gone_keys_dropped() {
        let mut seen = Seen::new(2);
        see(&mut seen, &["a", "b"], 1000);
        see(&mut seen, &["a", "c"], 1010);
        see(&mut seen, &["a", "d"], 1020);
        assert_eq!(seen.keys.len(), 4);
        see(&mut seen, &["a", "e"], 1030);
        assert_eq!(seen.place(&id_of(b"b")), None, "the oldest of five went");
        assert_eq!(seen.place(&id_of(b"c")), Some(&place("c")));
        see(&mut seen, &["a"], 1030 + KEPT_AFTER + 1);
        assert_eq!(seen.keys.len(), 1);
    }

    #[test]
    fn a_key_that_was_away_has_a_gap() {
        let mut seen = Seen::new(10);
        let now = now_ms() / 1000;
        see(&mut seen, &["a", "b"], now - 20);
        see(&mut seen, &["a"], now - 10);
        see(&mut seen, &["a", "b"], now);
        assert_eq!(seen.key(&id_of(b"a"), 60).items, [Some(1.0); 3]);
        let series = seen.key(&id_of(b"b"), 60);
        assert_eq!(series.items, [Some(1.0), None, Some(1.0)]);
        assert_eq!(series.times, [now - 20, now, now]);
        assert_eq!(series.rate, [None; 3], "what is not known");
        assert_eq!(seen.key(&id_of(b"b"), 5).items, [None, Some(1.0)], "what was asked for");
        assert!(seen.key("nobody", 60).times.is_empty());
        seen.add_totals(now - 1, [1.0, 2.0, 3.0]);
        seen.interrupt();
        seen.add_totals(now, [1.0, 2.0, 3.0]);
        assert_eq!(seen.totals(60).members, [Some(2.0), None, Some(2.0)]);
    }
}
