//! Tests one logical filter and one logical counter that are partitioned over a cluster by the client of
//! examples/cluster, while slots move. Results are compared with filters and counters of the library that have the same
//! parameters.

use redis::Value;
use redis::cluster::ClusterClient;
use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::counting::{self, Counter};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;

use crate::cluster::partition::{Partitioned, unite};
use crate::cluster::{ClusterCounter, ClusterFilter};
use rollcall_testkit::{Moving, Server, cluster};

const PARTS: u32 = 16;
const ITEMS: u64 = 16_000;
const BATCH: u64 = 500;
const ERROR_RATE: f64 = 0.01;
/// The standard error of one part of the counter.
const PART_ERROR: f64 = 0.02;

fn url(nodes: &[Server]) -> String {
    format!("redis://127.0.0.1:{}/", nodes[0].port())
}

/// Begins to move the slot of a key to the next node.
fn begin(nodes: &[Server], key: &str) -> Moving {
    Moving::begin(nodes, nodes[0].client().int(&format!("CLUSTER KEYSLOT {key}")))
}

/// The number of times that the nodes replied with this error.
fn answered(nodes: &[Server], error: &str) -> u64 {
    let counts = nodes.iter().map(|node| {
        let count = node.client().info(&format!("errorstat_{error}"));
        count.strip_prefix("count=").map_or(0, |count| count.parse().unwrap())
    });
    counts.sum()
}

fn items(first: u64, len: u64) -> Vec<String> {
    (first..first + len).map(|number| format!("item:{number}")).collect()
}

#[test]
fn one_filter_and_one_counter_over_a_cluster_whose_slots_move() {
    let nodes = cluster(3);
    let (seen, users) = (Partitioned::new("seen", PARTS).unwrap(), Partitioned::new("users", PARTS).unwrap());
    let mut filter = ClusterFilter::connect(&url(&nodes), seen.clone()).unwrap();
    let mut counter = ClusterCounter::connect(&url(&nodes), users.clone()).unwrap();
    filter.reserve(ERROR_RATE, ITEMS).unwrap();
    counter.reserve(PART_ERROR).unwrap();
    assert!(filter.reserve(ERROR_RATE, ITEMS).unwrap_err().to_string().contains("item exists"));

    let capacity = seen.capacity_of_part(ITEMS).unwrap();
    let params = Params { error_rate: ERROR_RATE, capacity, expansion: 2, seed: 0 };
    let mut filters: Vec<_> =
        (0..PARTS).map(|_| BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap()).collect();
    let params = counting::Params { error_rate: PART_ERROR, exact_limit: 250, exact_bytes: 16 << 10, seed: 0 };
    let mut counters: Vec<_> = (0..PARTS).map(|_| Counter::new(params).unwrap()).collect();

    // In each round a part of the filter and a part of the counter move. The commands of a list meet keys that have
    // not moved yet, keys that cause ASK, and keys that cause MOVED.
    let keys: Vec<String> = seen
        .keys()
        .zip(users.keys())
        .flat_map(|(one, other)| [one, other])
        .map(|key| String::from_utf8(key).unwrap())
        .collect();
    let mut on_the_way: Vec<Moving> = Vec::new();
    let (mut new, mut round) = (0, 0);
    for first in (0..ITEMS).step_by(BATCH as usize) {
        match round % 3 {
            0 => on_the_way = keys.iter().skip(2 * round % keys.len()).take(4).map(|key| begin(&nodes, key)).collect(),
            1 => on_the_way.iter().for_each(|moving| assert_eq!(moving.migrate(&nodes), 1)),
            _ => on_the_way.iter().for_each(|moving| moving.end(&nodes)),
        }
        round += 1;
        // The list also has items of the previous list, so that known and new items are mixed.
        let list = items(first.saturating_sub(BATCH / 5), BATCH + BATCH / 5);
        let answers = filter.add(&list).unwrap();
        counter.add(&list).unwrap();
        for (item, answer) in list.iter().zip(answers) {
            let item = item.as_bytes();
            let expected = filters[seen.part_of(item) as usize].live(Time::Reached).add(item, &Unlimited).unwrap();
            assert_eq!(answer, expected, "{}", item.escape_ascii());
            counters[users.part_of(item) as usize].live(Time::Reached).add(item, &Unlimited).unwrap();
            new += u64::from(answer);
        }
    }
    let added = ITEMS;
    assert!(answered(&nodes, "ASK") > 0 && answered(&nodes, "MOVED") > 0, "no list met a slot that moves");

    // No item is lost, and replies to lists equal those of the library.
    assert!(filter.may_contain(&items(0, added)).unwrap().into_iter().all(|found| found));
    assert_eq!(filter.card().unwrap(), new);
    let strangers = items(1 << 40, ITEMS);
    let found = filter.may_contain(&strangers).unwrap();
    let expected = |item: &String| filters[seen.part_of(item.as_bytes()) as usize].may_contain(item.as_bytes());
    assert_eq!(found, strangers.iter().map(expected).collect::<Vec<_>>());
    // With this many items, differences between filters are far smaller than chance in the trials.
    let rate = filters.iter().map(BloomFilter::false_positive_rate).sum::<f64>() / f64::from(PARTS);
    let measured = found.iter().filter(|&&found| found).count() as f64 / ITEMS as f64;
    assert!((measured - rate).abs() < 4.0 * (rate / ITEMS as f64).sqrt(), "{measured} against {rate}");
    assert!(rate < ERROR_RATE, "{rate}");

    let (count, error) = counter.estimate().unwrap();
    let of_part = |counter: &Counter| (counter.count(), counter.count() as f64 * counter.standard_error());
    let (expected, expected_error) = unite(counters.iter().map(of_part));
    assert_eq!(count, expected);
    assert!((error / expected_error - 1.0).abs() < 1e-9, "{error} against {expected_error}");
    assert!((count as f64 - added as f64).abs() < 4.0 * error, "{count} +- {error}");
    assert!(error / (added as f64) < PART_ERROR / f64::from(PARTS).sqrt(), "{error}");

    // Each part is on one node only.
    let kept: i64 = nodes.iter().map(|node| node.client().int("DBSIZE")).sum();
    assert_eq!(kept, i64::from(2 * PARTS));
}

/// The only node of a cluster does not know its own address, and reports an empty one.
#[test]
fn a_cluster_may_have_one_node() {
    let nodes = cluster(1);
    let mut filter = ClusterFilter::connect(&url(&nodes), Partitioned::new("seen", 4).unwrap()).unwrap();
    filter.reserve(0.001, 1000).unwrap();
    assert_eq!(filter.add(&["ann", "ben", "ann"]).unwrap(), [true, true, false]);
    assert_eq!(filter.may_contain(&["cem", "ben"]).unwrap(), [false, true]);
    assert_eq!(filter.card().unwrap(), 2);
}

/// An error about one part is reported with its own text, and is not treated as a redirection.
#[test]
fn errors_of_one_part_are_reported() {
    let nodes = cluster(3);
    let parts = Partitioned::new("seen", 4).unwrap();
    let mut filter = ClusterFilter::connect(&url(&nodes), parts.clone()).unwrap();
    assert!(filter.add(&[""; 0]).unwrap().is_empty());
    let mut cluster = ClusterClient::new([url(&nodes)]).unwrap().get_connection().unwrap();
    let wrong = parts.split(&["ann"]).shares[0].key.clone();
    redis::cmd("SET").arg(&wrong).arg("text").exec(&mut cluster).unwrap();
    let said = filter.add(&["ann", "ben", "cem"]).unwrap_err().to_string();
    assert!(said.contains("WRONGTYPE") || said.contains("wrong kind of value"), "{said}");
    // The parts are in different slots, so commands with several keys reject them.
    let keys: Vec<String> = parts.keys().map(|key| String::from_utf8(key).unwrap()).collect();
    let reply = nodes[0].client().cmd(&format!("LC.COUNT {}", keys.join(" ")));
    assert!(matches!(&reply, Value::ServerError(error) if error.code() == "CROSSSLOT"), "{reply:?}");
}
