//! Tests the keys and findings that `top` lists.

use crate::{add_grown, add_partially_loaded, peer, peer_server, started, tool, url};
use rollcall_testkit::{Client, Server, Setup, add_many, wait_until, with_items};

/// A regression test: filters with high error rates rejected new items while their findings were only `nearly-full`.
#[test]
fn filters_that_reject_new_items_are_reported_as_full() {
    let (_server, mut client, to) = started();
    let rates = ["0.01", "0.05", "0.2", "0.5", "0.9"];
    for rate in rates {
        for items in (2700..4200).step_by(60) {
            client.expect(&format!("BF.RESERVE {rate}:{items} {rate} 3000 NONSCALING"), "+OK");
            client.call(&with_items(&format!("BF.MADD {rate}:{items}"), "item:", 0..items));
        }
    }
    let ended = tool(&["--json", "top", "--fail-on", "critical", "--url", &to]).expect(1);
    let mut numbers = [[0; 2]; 5];
    for row in ended.json().as_array().expect("rows") {
        let key = row["key"].as_str().expect("a key");
        let findings = row["findings"].as_array().expect("findings");
        let is_full = findings.iter().any(|finding| finding["problem"] == "full");
        assert_eq!(is_full, row["fill"].as_f64().expect("a fill") >= 1.0, "{row}");
        // An item that the filter takes for a known one is not rejected.
        let rejects = (0..1000).find_map(|n| match client.call(&["BF.ADD", key, &format!("new:{n}")]) {
            redis::Value::Int(0) => None,
            answer => Some(answer != redis::Value::Int(1)),
        });
        assert_eq!(rejects, Some(is_full), "{row}");
        let at = rates.iter().position(|rate| key.starts_with(&format!("{rate}:"))).expect("a rate");
        numbers[at][usize::from(is_full)] += 1;
    }
    assert!(numbers.as_flattened().iter().all(|&number| number > 0), "{numbers:?}");
}

#[test]
fn keys_are_listed_with_what_is_wrong() {
    let (_server, mut client, to) = started();
    add_grown(&mut client);
    client.expect("BF.RESERVE merged 0.01 1000 NONSCALING", "+OK");
    add_many(&mut client, "BF.MADD merged", "item:", 0..900);
    client.expect("BF.RESERVE good 0.01 1000 WINDOW 3600", "+OK");
    add_many(&mut client, "BF.MADD good", "item:", 0..900);
    client.expect("PEXPIRE good 3600000", "1");
    add_many(&mut client, "LC.ADD over", "item:", 0..3000);
    client.expect("LC.ADD few a b", "2");
    client.expect("LC.ADMIT sent LIMIT 3 WINDOW 86400 VOLATILE ITEMS message", "[1]");
    client.expect("SET text 1", "+OK");
    let dump = client.chunks("BF", "merged");
    add_partially_loaded(&mut client);
    assert!(!dump.is_empty());
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &to]).expect(0).json();
    let rows = rows.as_array().expect("rows").clone();
    let names: Vec<&str> = rows.iter().map(|row| row["key"].as_str().expect("a key")).collect();
    assert_eq!(names, ["few", "good", "grown", "half", "large", "merged", "over", "sent"]);
    let row = |name: &str| rows.iter().find(|row| row["key"] == name).expect("the row");
    assert_eq!((row("few")["items"].as_i64(), row("few")["mode"].as_str()), (Some(2), Some("exact")));
    assert_eq!(row("good")["mode"], "3600 s");
    assert!((1..=3_600_000).contains(&row("good")["ttl_ms"].as_i64().expect("a time")));
    assert_eq!(
        (row("sent")["mode"].as_str(), row("sent")["volatile"].as_bool()),
        (Some("exact, 86400 s volatile"), Some(true))
    );
    assert!(row("sent")["ttl_ms"].as_i64().is_some_and(|ttl| ttl > 86_400_000), "{}", row("sent"));
    assert!(row("few")["ttl_ms"].is_null(), "{}", row("few"));
    assert_eq!((row("good")["volatile"].as_bool(), row("few")["volatile"].as_bool()), (Some(false), None));
    assert_eq!(row("grown")["items"].as_i64().expect("items"), client.int("BF.CARD grown"));
    assert_eq!(row("grown")["asked"].as_f64(), Some(0.01));
    for name in ["few", "good", "large", "over", "sent"] {
        assert_eq!(row(name)["findings"].as_array().map(Vec::len), Some(0), "{}", row(name));
    }
    let found = |name: &str| row(name)["findings"][0].clone();
    let word = |name: &str, field: &str| found(name)[field].as_str().expect("a text").to_owned();
    assert_eq!((word("grown", "problem"), word("grown", "severity")), ("grown".into(), "warning".into()));
    assert_eq!(word("grown", "command"), "BF.RESERVE {grown}:new 0.01 4400");
    assert_eq!(word("merged", "problem"), "nearly-full");
    assert_eq!(word("merged", "command"), "BF.RESERVE {merged}:new 0.01 2200 NONSCALING");
    assert_eq!(word("half", "problem"), "partially-loaded");
    assert_eq!(row("half")["partially_loaded"]["received_bytes"], 0);
    assert!(
        row("half")["partially_loaded"]["total_bytes"].as_i64().is_some_and(|bytes| bytes > 10_000),
        "{}",
        row("half")
    );
    // A counter has no capacity that could be exceeded.
    assert_eq!((row("over")["mode"].as_str(), row("over")["asked"].as_f64()), (Some("estimate"), Some(0.01)));
    assert!(row("over")["capacity"].is_null() && row("over")["fill"].is_null(), "{}", row("over"));
    assert_eq!((row("good")["window_seconds"].as_i64(), row("good")["slices"].as_i64()), (Some(3600), Some(4)));
    assert_eq!(row("few")["server"], to.trim_start_matches("redis://"));
    // The output is no terminal, so `top` prints the table once. The table is sorted, limited and filtered.
    let table = tool(&["top", "--sort", "items", "--limit", "2", "--url", &to]).expect(0).out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[0].starts_with("key ") && lines[1].starts_with("grown ") && lines[2].starts_with("over "), "{table}");
    assert!(lines[3].starts_with("8 filters and counters, ") && lines[3].ends_with("3 to look at"), "{table}");
    let some = tool(&["--json", "top", "--pattern", "*o*", "--sort", "items", "--reverse", "--url", &to]).expect(0);
    let some = some.json();
    let names: Vec<&str> = some.as_array().expect("rows").iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(names, ["good", "over", "grown"]);
}

#[test]
fn filters_beside_redisbloom_are_listed_by_their_own_commands() {
    let (server, mut client) = Setup::default().module_before(&peer()).args("commands beside").start().with_client();
    client.expect("RF.RESERVE ours 0.01 100", "+OK");
    add_many(&mut client, "RF.MADD ours", "item:", 0..4000);
    client.expect("BF.RESERVE theirs 0.01 100", "+OK");
    add_many(&mut client, "BF.MADD theirs", "item:", 0..4000);
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &url(&server)]).expect(0).json();
    for (at, (key, kind, prefix)) in [("ours", "filter", "RF"), ("theirs", "classic", "BF")].into_iter().enumerate() {
        assert_eq!((&rows[at]["key"], &rows[at]["kind"]), (&key.into(), &kind.into()));
        assert_eq!(rows[at]["items"].as_i64().expect("items"), client.int(&format!("{prefix}.CARD {key}")));
        let command = format!("{prefix}.RESERVE {{{key}}}:new 0.01 4400");
        assert_eq!(rows[at]["findings"][0]["command"], command, "{rows}");
    }
}

/// The option that keeps filters to RF.* works even if no other module offers BF.*.
#[test]
fn filters_beside_no_other_module_are_listed_too() {
    let (server, mut client) = Setup::default().args("commands beside").start().with_client();
    client.call(&[b"RF.ADD".as_slice(), b"odd\xff{}", b"a"]);
    add_many(&mut client, "RF.MADD ours", "item:", 0..4000);
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &url(&server)]).expect(0).json();
    assert_eq!((&rows[0]["items"], &rows[1]["items"]), (&1.into(), &client.int("RF.CARD ours").into()), "{rows}");
    assert!(rows.as_array().expect("rows").iter().all(|row| row["rejected"].is_null()), "{rows}");
}

#[test]
fn a_server_of_redisbloom_says_what_it_has() {
    let (theirs, mut client) = peer_server().with_client();
    add_grown(&mut client);
    let rows = tool(&["--json", "top", "--url", &url(&theirs)]).expect(0).json();
    assert_eq!(rows[0]["items"].as_i64().expect("items"), client.int("BF.CARD grown"));
    // RedisBloom reports the requested error rate in its description of sub-filters.
    assert_eq!(rows[0]["findings"][0]["command"], "BF.RESERVE {grown}:new 0.01 4400");
    let empty = Server::start();
    assert_eq!(tool(&["top", "--url", &url(&empty)]).expect(0).out, "0 filters and counters, 0 B; 0 to look at\n");
}

/// A regression test: `top` reported no findings of servers. This finding was missing for counters under `allkeys-*`,
/// and under `volatile-*` for all keys with a time to live but those made with `VOLATILE`.
#[test]
fn top_and_the_exporter_say_what_may_be_evicted() {
    let (_server, mut client, to) = started();
    client.expect("LC.ADD stays a", "1");
    client.expect("LC.ADD expires a", "1");
    client.expect("EXPIRE expires 3600", "1");
    client.expect("LC.ADMIT sent LIMIT 3 WINDOW 86400 VOLATILE ITEMS message", "[1]");
    let found = |client: &mut Client, policy: &str| {
        client.expect(&format!("CONFIG SET maxmemory 1gb maxmemory-policy {policy}"), "+OK");
        let rows = tool(&["--json", "top", "--sort", "key", "--limit", "3", "--url", &to]).expect(0).json();
        let text = tool(&["exporter", "--once", "--pattern", "*", "--url", &to]).expect(0).out;
        let table = tool(&["top", "--url", &to]).expect(0).out;
        let rows = rows.as_array().expect("rows").clone();
        let may_go = rows.iter().filter(|row| row["findings"][0]["problem"] == "may-evict");
        let names: Vec<_> = may_go.map(|row| row["key"].as_str().expect("a key").to_owned()).collect();
        assert_eq!(text.matches("finding=\"may-evict\"").count(), names.len(), "{policy}: {text}");
        assert_eq!(table.matches("maxmemory-policy noeviction").count(), names.len(), "{policy}: {table}");
        assert!(table.ends_with("0 to look at\n") && table.contains("\n3 filters and counters, "), "{table}");
        names
    };
    let address = to.trim_start_matches("redis://");
    assert_eq!(found(&mut client, "allkeys-lru"), [address]);
    assert_eq!(found(&mut client, "volatile-ttl"), ["expires", "sent"]);
    assert!(found(&mut client, "noeviction").is_empty());
    // A server whose memory is used up is critical, whatever keys are looked at.
    client.expect("CONFIG SET maxmemory 100kb", "+OK");
    let ended = tool(&["top", "--fail-on", "critical", "--pattern", "stays", "--url", &to]).expect(1);
    assert!(ended.out.contains(" of maxmemory, ") && ended.err.contains("1 of 2 rows"), "{ended:?}");
    tool(&["top", "--fail-on", "critical", "--pattern", "none", "--url", &to]).expect(4);
    // A replica does not evict by itself.
    client.expect("REPLICAOF 127.0.0.1 1", "+OK");
    for policy in ["allkeys-lru", "volatile-ttl"] {
        assert!(found(&mut client, policy).is_empty(), "{policy}");
    }
}

/// A regression test: a windowed key without any writes was reported as full of expired items.
#[test]
fn a_window_is_idle_once_its_items_have_expired_and_not_before_the_first() {
    let (_server, mut client, to) = started();
    for key in ["new", "used"] {
        client.expect(&format!("BF.RESERVE filter:{key} 0.01 1000 WINDOW 1 SLICES 1"), "+OK");
        for (name, options) in [("exact", ""), ("estimate", "EXACT 0")] {
            client.expect(&format!("LC.RESERVE {name}:{key} {options} WINDOW 1 SLICES 1"), "+OK");
        }
    }
    client.expect("LC.RESERVE full:used EXACT 0 WINDOW 1 SLICES 1", "+OK");
    add_many(&mut client, "LC.ADD full:used", "member:", 0..2000);
    client.expect("BF.ADD filter:used a", "1");
    client.expect("LC.ADD exact:used a", "1");
    client.expect("LC.ADD estimate:used a", "1");
    let idle = || {
        let rows = tool(&["--json", "top", "--sort", "key", "--url", &to]).expect(0).json();
        let is_idle = |row: &&serde_json::Value| row["findings"][0]["problem"] == "idle";
        let rows = rows.as_array().expect("rows").clone();
        rows.iter().filter(is_idle).map(|row| row["key"].as_str().expect("a key").to_owned()).collect::<Vec<_>>()
    };
    let used = ["estimate:used", "exact:used", "filter:used", "full:used"];
    wait_until("all to expire", || (idle().len() >= used.len()).then_some(()));
    assert_eq!(idle(), used);
    let text = tool(&["exporter", "--once", "--pattern", "*", "--url", &to]).expect(0).out;
    assert_eq!(text.matches("finding=\"idle\"").count(), used.len(), "{text}");
}

/// `MEMORY USAGE` of a module's key that has a time to live crashes some servers, and is wrong on others.
#[test]
fn sizes_are_those_of_info_and_nothing_asks_for_memory_usage() {
    let (server, other) = (Server::start(), Server::start());
    let (mut client, to) = (server.client(), url(&server));
    client.expect_each("LC.ADD c a b => 2; BF.ADD f a => 1; PEXPIRE c 3600000 => 1; PEXPIRE f 3600000 => 1");
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &to]).expect(0).json();
    for (at, info) in ["LC.INFO c SIZE", "BF.INFO f SIZE"].into_iter().enumerate() {
        assert_eq!(redis::Value::Int(rows[at]["bytes"].as_i64().expect("bytes")), client.list(info)[0], "{rows}");
    }
    tool(&["exporter", "--once", "--pattern", "*", "--url", &to]).expect(0);
    tool(&["copy", &to, &url(&other), "--watch", "0"]).expect(0);
    tool(&["copy", &to, &url(&other), "--watch", "0"]).expect(0);
    for server in [&server, &other] {
        let stats = server.client().text("INFO commandstats");
        assert!(stats.contains("cmdstat_lc.") && !stats.contains("cmdstat_memory"), "{stats}");
    }
}

#[test]
fn scripts_get_an_exit_code_for_a_severity() {
    let (_server, mut client, to) = started();
    let top = |fail_on: &str, more: &[&str]| tool(&[&["top", "--fail-on", fail_on, "--url", &to], more].concat()).code;
    add_many(&mut client, "LC.ADD notice", "member:", 0..320);
    assert_eq!([top("warning", &[]), top("critical", &[])], [0, 0]);
    add_grown(&mut client);
    let ended = tool(&["--json", "top", "--fail-on", "warning", "--limit", "1", "--url", &to]).expect(1);
    assert_eq!(ended.json().as_array().map(Vec::len), Some(1));
    assert!(ended.err.contains("1 of 2 rows need a look"), "{}", ended.err);
    assert_eq!([top("critical", &[]), top("warning", &["--pattern", "notice"])], [0, 0]);
    client.expect("BF.RESERVE full 0.01 10 NONSCALING", "+OK");
    add_many(&mut client, "BF.MADD full", "item:", 0..10);
    assert_eq!([top("warning", &[]), top("critical", &[])], [1, 1]);
    // A stopped server, an unknown host and an invalid word have different exit codes.
    assert_eq!(tool(&["top", "--fail-on", "critical", "--url", "127.0.0.1:1"]).code, 3);
    assert_eq!([top("critical", &["--pattern", "none"]), top("notice", &[])], [4, 2]);
}
