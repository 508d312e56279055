//! Windows against exact models: random sessions by hand, with a fixed seed. A model follows the replies.
//!
//! Beside the primary there is a replica, which must be equal at all times, and the AOF, which must bring all back.

use std::collections::BTreeMap;

use redis::Value;

use crate::commands_windows_counters::history;
use rollcall_testkit::client::{Client, error_text, number, show, text, wait_until};
use rollcall_testkit::pair::Pair;
use rollcall_testkit::server::Setup;

/// Numbers by the generator of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Some of 300 items, the earlier ones more often.
    fn items(&mut self, most: u64) -> Vec<String> {
        (0..=self.below(most)).map(|_| self.below(300)).map(|n| format!("i{}", n * n / 300)).collect()
    }
}

/// What one key must know: in which slice each item was added, by the rule of its kind.
#[derive(Clone)]
struct Model {
    slices: u64,
    present: u64,
    /// Whether an item is known from its last add on. Else from the first.
    renews: bool,
    seen: BTreeMap<String, u64>,
}

impl Model {
    fn new(slices: u64, renews: bool) -> Model {
        Model { slices, present: 0, renews, seen: BTreeMap::new() }
    }

    fn is_alive(&self, slice: u64) -> bool {
        slice + self.slices >= self.present
    }

    fn knows(&self, item: &str) -> bool {
        self.seen.get(item).is_some_and(|slice| self.is_alive(*slice))
    }

    fn since(&self, slice: u64) -> Vec<&str> {
        let alive = self.seen.iter().filter(|(_, seen)| self.is_alive(**seen) && **seen >= slice);
        alive.map(|(item, _)| item.as_str()).collect()
    }

    fn count(&self) -> i64 {
        self.since(0).len() as i64
    }

    /// Adds an item and says whether it was new.
    fn add(&mut self, item: &str) -> bool {
        let is_new = !self.knows(item);
        if is_new || self.renews {
            self.seen.insert(item.to_owned(), self.present);
        }
        is_new
    }

    /// Which replies an admission gives. `all` and `dry` as in the command.
    fn admit(&mut self, limit: i64, all: bool, dry: bool, items: &[String]) -> Vec<i64> {
        let mut after = self.clone();
        let mut room = (limit - self.count()).max(0);
        let mut replies = Vec::new();
        for item in items {
            replies.push(if after.knows(item) {
                after.add(item);
                0
            } else if room > 0 {
                room -= 1;
                after.add(item);
                1
            } else {
                -1
            });
        }
        if all && replies.contains(&-1) {
            // None comes in, and known ones stay as they are.
            return items.iter().map(|item| if self.knows(item) { 0 } else { -1 }).collect();
        }
        if !dry {
            *self = after;
        }
        replies
    }

    /// The union under the later slice. `None` if the source is too far ahead.
    fn merge(&mut self, source: &Model) -> Option<()> {
        if source.present > self.present + 1 {
            return None;
        }
        for item in source.since(0) {
            let slice = source.seen[item];
            let ours = self.seen.entry(item.to_owned()).or_insert(slice);
            *ours = slice.max(*ours);
        }
        self.present = self.present.max(source.present);
        Some(())
    }
}

fn ints(reply: &Value) -> Vec<i64> {
    let int = |reply: &Value| match reply {
        Value::Int(n) => *n,
        other => panic!("expected an integer, got {}", show(other)),
    };
    match reply {
        Value::Array(replies) => replies.iter().map(int).collect(),
        single => vec![int(single)],
    }
}

/// A primary with an AOF, and a replica.
fn pair() -> Pair {
    let mut pair = Pair::of(Setup::default().line("appendonly yes"), Setup::default());
    pair.primary.assert_up();
    pair
}

/// The AOF, rewritten or not, brings the same values back.
#[track_caller]
fn assert_restart(pair: &mut Pair, rewrite: bool) {
    let before = pair.primary.client().text("DEBUG DIGEST");
    if rewrite {
        pair.primary.rewrite_aof();
    }
    pair.primary.restart();
    assert_eq!(pair.primary.client().text("DEBUG DIGEST"), before);
    pair.replica.replicate(&pair.primary);
    pair.assert_equal("a restart");
}

/// Some values by RESTORE, or as they are copied.
fn copy(client: &mut Client, random: &mut Random, from: &str, to: &str) {
    if random.below(2) == 0 {
        client.expect(&format!("COPY {from} {to} REPLACE"), "1");
        return;
    }
    let Value::BulkString(payload) = client.cmd(&format!("DUMP {from}")) else { panic!("a payload") };
    let words: [&[u8]; 5] = [b"RESTORE", to.as_bytes(), b"0", &payload, b"REPLACE"];
    assert_eq!(client.call(&words), Value::Okay);
}

/// Rates so small that no false positive is to be expected in all the sessions, so that every reply is known.
#[test]
fn filters_follow_their_model() {
    for (seed, slices, renews) in [(1, 4, false), (2, 4, true), (3, 1, false), (4, 16, false), (5, 7, true)] {
        let mut pair = pair();
        let mut client = pair.primary.client();
        let mut random = Random(seed);
        let options = if renews { "REFRESH" } else { "" };
        let keys = ["k0", "k1", "k2"];
        let mut models = Vec::new();
        // Whether CARD is a count. After a merge it is an estimate.
        let mut is_counted = [true; 3];
        for key in keys {
            client.expect(&format!("BF.RESERVE {key} 0.000001 6000 WINDOW 64 MANUAL SLICES {slices} {options}"), "+OK");
            models.push(Model::new(slices, renews));
        }
        for round in 0..1500 {
            let at = random.below(3) as usize;
            let (key, other) = (keys[at], random.below(3) as usize);
            let line = match random.below(16) {
                0..6 => {
                    let items = random.items(20);
                    let line = match random.below(3) {
                        0 => format!("BF.MADD {key} {}", items.join(" ")),
                        1 => format!("BF.INSERT {key} ITEMS {}", items.join(" ")),
                        _ => format!("BF.ADD {key} {}", items[0]),
                    };
                    let added = if line.starts_with("BF.ADD") { &items[..1] } else { &items[..] };
                    let expected: Vec<_> = added.iter().map(|item| i64::from(models[at].add(item))).collect();
                    assert_eq!(ints(&client.cmd(&line)), expected, "round {round}: {line}");
                    line
                }
                6..9 => {
                    let items = random.items(12);
                    let (all, dry) = (random.below(3) == 0, random.below(4) == 0);
                    let limit = models[at].count() + random.below(9) as i64 - 2;
                    let limit = if is_counted[at] { limit.max(0) } else { [0, i64::MAX][random.below(2) as usize] };
                    let flags = format!("{}{}", if all { "ALL " } else { "" }, if dry { "DRYRUN " } else { "" });
                    let line = format!("BF.ADMIT {key} LIMIT {limit} {flags}ITEMS {}", items.join(" "));
                    let expected = models[at].admit(limit, all, dry, &items);
                    assert_eq!(ints(&client.cmd(&line)), expected, "round {round}: {line}");
                    line
                }
                9..12 => {
                    let by = [0, 1, 1, 1, 2, slices, slices + 1][random.below(7) as usize];
                    models[at].present += by;
                    let line = format!("BF.ADVANCE {key} {}", models[at].present);
                    client.expect(&line, "+OK");
                    line
                }
                12 => {
                    let line = format!("BF.MERGE {key} {}", keys[other]);
                    let reply = client.cmd(&line);
                    let source = models[other].clone();
                    let merged = if at == other { Some(()) } else { models[at].merge(&source) };
                    assert_eq!(
                        error_text(&reply).is_none(),
                        merged.is_some(),
                        "round {round}: {line}: {}",
                        show(&reply)
                    );
                    if merged.is_some() && at != other {
                        is_counted[at] = false;
                    }
                    line
                }
                13 if random.below(4) == 0 => {
                    models[at].seen.clear();
                    is_counted[at] = true;
                    client.expect(&format!("BF.CLEAR {key}"), "+OK");
                    format!("BF.CLEAR {key}")
                }
                14 if at != other => {
                    copy(&mut client, &mut random, keys[other], key);
                    models[at] = models[other].clone();
                    is_counted[at] = is_counted[other];
                    format!("copy to {key}")
                }
                _ => {
                    let items: Vec<_> = (0..300).map(|n| format!("i{n}")).collect();
                    let found = ints(&client.cmd(&format!("BF.MEXISTS {key} {}", items.join(" "))));
                    let expected: Vec<_> = items.iter().map(|item| i64::from(models[at].knows(item))).collect();
                    assert_eq!(found, expected, "round {round}: {key}");
                    "reads".to_owned()
                }
            };
            let (card, truth) = (client.int(&format!("BF.CARD {key}")), models[at].count());
            // An estimate of each generation; an item that a merge brought may be in several.
            let least = 0.9 * truth as f64 - 2.0 - slices as f64 / 2.0;
            let is_right = if is_counted[at] { card == truth } else { card as f64 >= least };
            assert!(is_right, "round {round}: {line}: {card}, {truth}");
            if round % 50 == 0 {
                pair.assert_equal(&line);
            }
        }
        pair.assert_equal("all");
        pair.assert_no_errors();
        assert_restart(&mut pair, seed % 2 == 0);
    }
}

/// At a rate of one in twenty: what the model knows is found, and no more than the rate of what it does not know.
#[test]
fn filters_with_false_positives_lose_nothing_of_what_they_took() {
    for (seed, renews) in [(1, false), (2, true)] {
        let mut pair = pair();
        let mut client = pair.primary.client();
        let mut random = Random(seed);
        let options = if renews { "REFRESH" } else { "" };
        client.expect(&format!("BF.RESERVE k 0.05 2000 WINDOW 64 MANUAL SLICES 4 {options}"), "+OK");
        let mut model = Model::new(4, renews);
        let (mut asked, mut wrong) = (0_u64, 0_u64);
        for slice in 0..60 {
            model.present = slice;
            client.expect(&format!("BF.ADVANCE k {slice}"), "+OK");
            for _ in 0..40 {
                let items: Vec<_> = (0..10).map(|_| format!("n{}", random.below(6000))).collect();
                let replies = ints(&client.cmd(&format!("BF.MADD k {}", items.join(" "))));
                for (item, reply) in items.iter().zip(replies) {
                    let is_known = model.knows(item);
                    assert!(reply == 0 || !is_known, "{item} was known in slice {slice}");
                    // Answered 0, it was not written, unless it is with REFRESH.
                    if reply == 1 || renews {
                        model.add(item);
                    }
                }
            }
            let items: Vec<_> = (0..6000).map(|n| format!("n{n}")).collect();
            for piece in items.chunks(1000) {
                let found = ints(&client.cmd(&format!("BF.MEXISTS k {}", piece.join(" "))));
                for (item, found) in piece.iter().zip(found) {
                    assert!(found == 1 || !model.knows(item), "{item} is lost in slice {slice}");
                    if !model.knows(item) {
                        asked += 1;
                        wrong += found as u64;
                    }
                }
            }
            let beyond: Vec<_> = (0..500).map(|n| format!("never:{slice}:{n}")).collect();
            let found: i64 = ints(&client.cmd(&format!("BF.MEXISTS k {}", beyond.join(" ")))).iter().sum();
            assert!(found as f64 <= 25.0 + 5.0 * 25.0_f64.sqrt(), "{found} of 500 in slice {slice}");
            pair.assert_equal(&format!("slice {slice}"));
        }
        // The window never holds its capacity, so the rate stays below what was asked for.
        let expected = asked as f64 * 0.05;
        assert!((wrong as f64) < expected, "{wrong} of {asked}");
        pair.assert_no_errors();
        assert_restart(&mut pair, renews);
    }
}

#[test]
fn counters_follow_their_model() {
    for (seed, slices, length) in [(1, 4, 10), (2, 12, 10), (3, 1, 5), (4, 100, 2), (5, 14, 1), (6, 15, 3)] {
        let mut pair = pair();
        let mut client = pair.primary.client();
        let mut random = Random(seed);
        let keys = ["k0", "k1", "k2"];
        let mut models = Vec::new();
        let seconds = slices * length;
        for key in keys {
            client.expect(&format!("LC.RESERVE {key} 5000 EXACT 1000 WINDOW {seconds} MANUAL SLICES {slices}"), "+OK");
            models.push(Model::new(slices, true));
        }
        for round in 0..1500 {
            let at = random.below(3) as usize;
            let (key, other) = (keys[at], random.below(3) as usize);
            match random.below(16) {
                0..5 => {
                    let items = random.items(20);
                    let command = ["LC.ADD ? ", "LC.INSERT ? ITEMS "][random.below(2) as usize].replace('?', key);
                    let line = format!("{command}{}", items.join(" "));
                    let expected: i64 = items.iter().map(|item| i64::from(models[at].add(item))).sum();
                    assert_eq!(client.int(&line), expected, "round {round}: {line}");
                }
                5..8 => {
                    let items = random.items(12);
                    let (all, dry) = (random.below(3) == 0, random.below(4) == 0);
                    let limit = (models[at].count() + random.below(9) as i64 - 2).max(0);
                    let flags = format!("{}{}", if all { "ALL " } else { "" }, if dry { "DRYRUN " } else { "" });
                    let line = format!("LC.ADMIT {key} LIMIT {limit} {flags}ITEMS {}", items.join(" "));
                    let expected = models[at].admit(limit, all, dry, &items);
                    assert_eq!(ints(&client.cmd(&line)), expected, "round {round}: {line}");
                }
                8..11 => {
                    let by = [0, 1, 1, 1, 2, slices, slices + 1][random.below(7) as usize];
                    models[at].present += by;
                    client.expect(&format!("LC.ADVANCE {key} {}", models[at].present), "+OK");
                }
                11 => {
                    let line = format!("LC.MERGE {key} {}", keys[other]);
                    let reply = client.cmd(&line);
                    let source = models[other].clone();
                    let merged = if at == other { Some(()) } else { models[at].merge(&source) };
                    assert_eq!(
                        error_text(&reply).is_none(),
                        merged.is_some(),
                        "round {round}: {line}: {}",
                        show(&reply)
                    );
                }
                12 if random.below(4) == 0 => {
                    models[at].seen.clear();
                    client.expect(&format!("LC.CLEAR {key}"), "+OK");
                }
                13 if at != other => {
                    copy(&mut client, &mut random, keys[other], key);
                    models[at] = models[other].clone();
                }
                _ => {}
            }
            let (one, two) = (&models[at], &models[other]);
            let since =
                |model: &Model, seconds: u64| ((model.present + 1) * length - 1).saturating_sub(seconds) / length;
            let span = 1 + random.below(seconds);
            let mut union: Vec<_> = one.since(since(one, span));
            let mut members = union.clone();
            union.extend(two.since(since(two, span)));
            union.sort_unstable();
            union.dedup();
            let line = format!("LC.COUNTSINCE {span} {key} {}", keys[other]);
            assert_eq!(client.int(&line), union.len() as i64, "round {round}: {line}");
            let line = format!("LC.MEMBERS {key} SINCE {span}");
            let mut found: Vec<_> = client.list(&line).iter().map(text).collect();
            found.sort_unstable();
            members.sort_unstable();
            assert_eq!(found, members, "round {round}: {line}");
            client.expect(&format!("LC.COUNT {key}"), &one.count().to_string());
            let rows = history(&mut client, key);
            assert_eq!(rows.len() as u64, slices + 1);
            for (back, (start, count)) in rows.into_iter().enumerate() {
                let slice = one.present as i64 - back as i64;
                assert_eq!(start, slice * length as i64, "round {round}: {key}");
                assert_eq!(count, one.since(slice.max(0) as u64).len() as i64, "round {round}: {key}, {back} back");
            }
            let missing = one.since(0).iter().filter(|item| !two.knows(item)).count();
            assert_eq!(client.list(&format!("LC.DIFF {key} {}", keys[other])).len(), missing, "round {round}");
            let both = one.count() - missing as i64;
            if at != other {
                let inter = client.list(&format!("LC.INTERCOUNT {key} {}", keys[other]));
                assert_eq!((number(&inter[0]), number(&inter[1])), (both as f64, 0.0), "round {round}");
            }
            if round % 50 == 0 {
                pair.assert_equal(&format!("round {round}"));
            }
        }
        pair.assert_equal("all");
        pair.assert_no_errors();
        assert_restart(&mut pair, seed % 2 == 0);
    }
}

/// Estimates of random spans, from the sparse form to cells of four bits and of eight, against the truth.
#[test]
fn estimates_follow_their_model() {
    for (seed, slices) in [(1, 12), (2, 30)] {
        let mut pair = pair();
        let mut client = pair.primary.client();
        let mut random = Random(seed);
        let keys = ["k0", "k1"];
        let mut models = Vec::new();
        for key in keys {
            let options = format!("ERROR 0.01 EXACT 20 WINDOW {slices} MANUAL SLICES {slices}");
            client.expect(&format!("LC.RESERVE {key} 30000 {options}"), "+OK");
            models.push(Model::new(slices, true));
        }
        for round in 0..150 {
            let at = random.below(2) as usize;
            let key = keys[at];
            let count = [1, 10, 100, 1000][random.below(4) as usize];
            let items: Vec<_> = (0..count).map(|_| format!("m{}", random.below(20_000))).collect();
            items.iter().for_each(|item| {
                models[at].add(item);
            });
            client.cmd(&format!("LC.ADD {key} {}", items.join(" ")));
            let span = 1 + random.below(slices);
            // Slices of one second: the span reaches back as many slices as it has seconds.
            let truth = |model: &Model| model.since(model.present.saturating_sub(span)).len() as f64;
            let bound = |truth: f64| 3.0 + 5.0 * 0.01 * truth;
            let found = client.int(&format!("LC.COUNTSINCE {span} {key}")) as f64;
            let expected = truth(&models[at]);
            assert!((found - expected).abs() <= bound(expected), "round {round}: {found} of {expected} in {span}");
            let mut union: Vec<_> = models.iter().flat_map(|model| model.since(0)).collect();
            union.sort_unstable();
            union.dedup();
            let (found, expected) = (client.int("LC.COUNT k0 k1") as f64, union.len() as f64);
            assert!((found - expected).abs() <= bound(expected), "round {round}: {found} of {expected} in both");
            match random.below(6) {
                0 | 1 => models[at].present += 1,
                2 if random.below(5) == 0 => models[at].present += random.below(2 * slices),
                3 => {
                    let source = models[1 - at].clone();
                    let reply = client.cmd(&format!("LC.MERGE {key} {}", keys[1 - at]));
                    let merged = models[at].merge(&source);
                    assert_eq!(error_text(&reply).is_none(), merged.is_some(), "round {round}: {}", show(&reply));
                }
                _ => {}
            }
            client.expect(&format!("LC.ADVANCE {key} {}", models[at].present), "+OK");
            if round % 10 == 0 {
                pair.assert_equal(&format!("round {round}"));
            }
        }
        pair.assert_equal("all");
        pair.assert_no_errors();
        assert_restart(&mut pair, true);
    }
}

/// The newest items by number: of those that were taken as new, the last `capacity` are there, in any mix of commands.
#[test]
fn the_last_items_follow_their_model() {
    for (seed, options) in [(1, ""), (2, "SLICES 9"), (3, "REFRESH")] {
        let mut pair = pair();
        let mut client = pair.primary.client();
        let mut random = Random(seed);
        client.expect(&format!("BF.RESERVE k 0.001 200 LAST {options}"), "+OK");
        // Oldest first. With REFRESH an item goes to the end whenever it is added.
        let mut order: Vec<String> = Vec::new();
        for round in 0..400 {
            let items: Vec<_> = (0..=random.below(20)).map(|_| format!("n{}", random.below(3000))).collect();
            let command = ["BF.MADD k ", "BF.INSERT k ITEMS "][random.below(2) as usize];
            let replies = ints(&client.cmd(&format!("{command}{}", items.join(" "))));
            for (item, reply) in items.iter().zip(replies) {
                let at = order.iter().position(|known| known == item);
                let must_know = at.is_some_and(|at| order.len() - at <= 200);
                assert!(reply == 0 || !must_know, "round {round}: {item}");
                if reply == 1 || options == "REFRESH" {
                    at.map(|at| order.remove(at));
                    order.push(item.clone());
                }
            }
            let last = &order[order.len().saturating_sub(200)..];
            let found = ints(&client.cmd(&format!("BF.MEXISTS k {}", last.join(" "))));
            assert!(found.iter().all(|found| *found == 1), "round {round}");
            match random.below(40) {
                0 => client.expect("DEBUG RELOAD", "+OK"),
                1 => {
                    copy(&mut client, &mut random, "k", "l");
                    client.expect("RENAME l k", "+OK");
                }
                _ => {}
            }
            if round % 40 == 0 {
                wait_until("the replica's link", || {
                    (pair.replica.client().info("master_link_status") == "up").then_some(())
                });
                pair.assert_equal(&format!("round {round}"));
            }
        }
        assert_restart(&mut pair, seed == 2);
    }
}
