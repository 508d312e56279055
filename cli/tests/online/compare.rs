//! Tests `compare`, which compares keys with sets.

use crate::{started, tool};
use rollcall_testkit::{Client, add_many};

/// Adds counters, each with a set of the same members. The sizes are between 300 and 6,000.
fn counters(client: &mut Client, number: u64) {
    for key in 0..number {
        let size = 300 + key * 5700 / number;
        for line in [format!("LC.ADD count:{key}"), format!("SADD set:{key}"), format!("PFADD log:{key}")] {
            add_many(client, &line, &format!("{key}:"), 0..size);
        }
    }
}

#[test]
fn counters_agree_with_their_sets_within_their_errors() {
    let (_server, mut client, to) = started();
    counters(&mut client, 60);
    for map in ["set:{}", "log:{}"] {
        let all = ["--json", "compare", "--pattern", "count:*", "--map", map, "--url", &to];
        let report = tool(&all).expect(0).json();
        assert_eq!(report["compared"].as_array().map(Vec::len), Some(60));
        assert_eq!(report["counters"]["number"], 60);
        assert_eq!(report["counters"]["judged"]["judged"], "as_chance");
    }
    let text = tool(&["compare", "--pattern", "count:*", "--map", "set:{}", "--url", &to]).expect(0).out;
    for part in [
        "60 keys compared; 60 estimates: off by no more than chance",
        "60 estimates; differences in standard errors: mean ",
        "no more than chance",
        "3 standard errors",
        "95.45 %",
        "quantile",
        " ##",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // `compare` detects that each set lacks one member in twenty, although each difference alone could be due to
    // chance.
    for key in 0..60 {
        let size = 300 + key * 5700 / 60;
        let words = rollcall_testkit::with_items(&format!("SREM set:{key}"), &format!("{key}:"), 0..size / 20);
        client.call(&words);
    }
    tool(&["compare", "--pattern", "count:*", "--map", "set:{}", "--url", &to])
        .fails(1, "the counters count more than their sets");
}

#[test]
fn every_member_of_a_set_is_looked_for_in_its_filter() {
    let (_server, mut client, to) = started();
    client.expect("BF.RESERVE seen 0.0001 10000", "+OK");
    add_many(&mut client, "BF.MADD seen", "item:", 0..5000);
    add_many(&mut client, "SADD members", "item:", 0..5000);
    for item in 0..500 {
        client.cmd(&format!("ZADD scores {item} item:{item}"));
        client.cmd(&format!("HSET fields item:{item} value:{item}"));
    }
    for set in ["members", "scores", "fields"] {
        let report = tool(&["--json", "compare", "seen", set, "--url", &to]).expect(0).json();
        assert_eq!(report["compared"][0]["missing"], 0, "{report}");
        assert_eq!(report["compared"][0]["members"], if set == "members" { 5000 } else { 500 });
    }
    client.expect("SADD members forgotten", "1");
    let missing = tool(&["compare", "seen", "members", "--url", &to]).shows(1, "forgotten");
    assert!(missing.err.contains("1 members are not in their filters"), "{}", missing.err);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    std::fs::write(path("lines"), "item:1\nitem:2\nitem:2\nforgotten\n").expect("the file");
    let report = tool(&["--json", "compare", "seen", "--file", &path("lines"), "--url", &to]).expect(1).json();
    assert_eq!(
        (report["compared"][0]["members"].as_i64(), report["compared"][0]["missing"].as_i64()),
        (Some(3), Some(1))
    );
    // An exact counter with one other member differs.
    client.expect("LC.ADD exact a b c", "3");
    client.expect("SADD three a b c", "3");
    std::fs::write(path("pairs"), "exact\tthree\nseen\tscores\nseen\tabsent\n").expect("the file");
    let both = tool(&["compare", "--pairs", &path("pairs"), "--url", &to]).expect(1).out;
    assert!(both.contains("without a set: seen"), "{both}");
    // A regression test: the last line said "0 counters differ though nothing may be off".
    let last = "\n2 keys compared; 1 filter: all members are found; 1 counter: the same members as the set\n";
    assert!(both.ends_with(last), "{both}");
    // A regression test: an equal number of different members counted as equal.
    client.expect("SADD others b c d", "3");
    tool(&["compare", "exact", "others", "--url", &to]).shows(1, "1 counter: 1 with other members than the set");
    let report = tool(&["--json", "compare", "exact", "others", "--url", &to]).expect(1).json();
    let row = &report["compared"][0];
    assert_eq!((&row["wrong"], &row["missing"], &row["misses"][0]), (&true.into(), &1.into(), &"d".into()), "{report}");
    std::fs::write(path("lines"), "a\nb\nd\n").expect("the file");
    tool(&["compare", "exact", "--file", &path("lines"), "--url", &to]).expect(1);
    tool(&["compare", "exact", "three", "--url", &to]).expect(0);
    client.expect("SADD three d", "1");
    tool(&["compare", "exact", "three", "--url", &to]).fails(1, "1 counters differ from their sets, and not by chance");
    // A regression test: an exact counter was called one that estimates, where the HyperLogLog is the estimate.
    client.expect("PFADD log a b c", "1");
    let log = tool(&["compare", "exact", "log", "--url", &to]).expect(0).out;
    assert!(log.contains("\n1 estimate; differences in standard errors: mean ") && !log.contains("counter"), "{log}");
    tool(&["compare", "seen", "log", "--url", &to]).fails(3, "it is a HyperLogLog");
}
