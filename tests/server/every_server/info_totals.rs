//! Tests that the totals in `INFO rollcall` are the sums over all values, after every kind of change.

use std::collections::BTreeMap;

use redis::Value;

use rollcall_testkit::{
    Client, Server, add_many, error_text, field, figures, lines, number, populate, text, wait_until, words,
};

/// The totals computed from the INFO of each key. Totals of figures that single keys do not report are left out.
fn summed(client: &mut Client) -> BTreeMap<String, i64> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for name in words(
        "filters filters_lines filters_classic filters_windowed filters_partially_loaded filters_lines_bytes
         filters_windowed_bytes filters_classic_bytes filters_partially_loaded_bytes filters_items filters_capacity
         filters_sub_filters filters_grown counters counters_exact counters_estimate counters_windowed
         counters_partially_loaded counters_exact_bytes counters_estimate_bytes counters_partially_loaded_bytes",
    ) {
        sums.insert(name.to_owned(), 0);
    }
    let mut add = |name: &str, more: i64| {
        if let Some(sum) = sums.get_mut(name) {
            *sum += more;
        }
    };
    for key in client.list("KEYS *").iter().map(text) {
        let (family, all) = match client.cmd(&format!("TYPE {key}")) {
            Value::SimpleString(name) if name == "RCcounter" => ("LC", "counters"),
            Value::SimpleString(name) if name.starts_with("MBbloom") || name.starts_with("RCfilter") => {
                ("BF", "filters")
            }
            _ => continue,
        };
        add(all, 1);
        let info = client.cmd(&format!("{family}.INFO {key}"));
        if let Some(error) = error_text(&info) {
            let arrived = error.split("still loading: ").nth(1).and_then(|rest| rest.split(' ').next());
            add(&format!("{all}_partially_loaded"), 1);
            add(&format!("{all}_partially_loaded_bytes"), arrived.and_then(|bytes| bytes.parse().ok()).expect("bytes"));
            continue;
        }
        let whole = |label: &str| number(&field(&info, label)) as i64;
        let mut one = |name: &str| match client.cmd(&format!("{family}.INFO {key} {name}")) {
            Value::Array(items) => items[0].clone(),
            other => panic!("{key} {name}: {other:?}"),
        };
        let is_windowed = one("WINDOW") != Value::Nil;
        let kind = match (is_windowed, family) {
            (true, _) => "windowed".to_owned(),
            (false, "BF") => text(&one("LAYOUT")),
            (false, _) => text(&one("MODE")),
        };
        add(&format!("{all}_{kind}"), 1);
        add(&format!("{all}_{kind}_bytes"), whole("Size"));
        if family == "BF" {
            add("filters_items", whole("Number of items inserted"));
            add("filters_capacity", whole("Capacity"));
            add("filters_sub_filters", whole("Number of filters"));
            add("filters_grown", i64::from(!is_windowed && whole("Number of filters") > 1));
        }
    }
    sums
}

/// Compares the totals with the sums, once no value waits to be freed.
fn assert_sums(client: &mut Client, after: &str) {
    let expected = summed(client);
    let reported = wait_until(&format!("the sums after {after}"), || {
        let reported = figures(client);
        let is_done = reported["filters"] == expected["filters"] && reported["counters"] == expected["counters"];
        (is_done && reported["frees_waiting"] == 0).then_some(reported)
    });
    for (name, value) in &expected {
        assert_eq!(reported[name], *value, "{name} after {after}");
    }
}

#[test]
fn sums_are_those_of_all_values_whatever_became_of_them() {
    let (mut server, mut client) = Server::start().with_client();
    assert_sums(&mut client, "the start");
    populate(&mut client);
    assert_sums(&mut client, "filling");
    client.expect_each(
        "BF.RESERVE bf:slices 0.01 100 WINDOW 40 MANUAL SLICES 4 => +OK
         BF.RESERVE bf:classic 0.01 10 LAYOUT classic EXPANSION 2 => +OK
         LC.RESERVE lc:slices WINDOW 40 MANUAL SLICES 4 => +OK; BF.RESERVE bf:flat2 0.01 10 NONSCALING => +OK",
    );
    for round in 0..6 {
        let range = round * 40..round * 40 + 60;
        for key in ["bf:slices", "bf:classic", "bf:flat2"] {
            let items: Vec<String> = range.clone().map(|at| format!("item:{at}")).collect();
            client.cmd(&format!("BF.MADD {key} {}", items.join(" ")));
            client.cmd(&format!("BF.ADD {key} single:{round}"));
            client.cmd(&format!("BF.ADMIT {key} LIMIT {} ITEMS x{round} y{round}", 100 + round));
        }
        add_many(&mut client, "LC.ADD lc:slices", "item:", range);
        client.cmd(&format!("LC.ADMIT lc:slices LIMIT 200 ITEMS x{round} y{round}"));
        client.expect(&format!("BF.ADVANCE bf:slices {}", round + 1), "+OK");
        client.expect(&format!("LC.ADVANCE lc:slices {}", round + 1), "+OK");
        assert_sums(&mut client, &format!("round {round}"));
    }
    // A list that makes a filter grow before an item is rejected, and a list that is rejected at its first item.
    client.expect("CONFIG SET rollcall.max-key-bytes 1048576", "+OK");
    client.expect("BF.RESERVE bf:rejected 0.000000001 100000 EXPANSION 4", "+OK");
    add_many(&mut client, "BF.MADD bf:rejected", "item:", 0..99_000);
    let items: Vec<String> = (99_000..101_000).map(|at| format!("item:{at}")).collect();
    let Value::Array(replies) = client.cmd(&format!("BF.MADD bf:rejected {}", items.join(" "))) else {
        panic!("no list")
    };
    assert!(replies.len() > 1 && error_text(&replies[replies.len() - 1]).is_some());
    client.expect("BF.RESERVE bf:never 0.01 10000000", "-ERR the filter needs *");
    client.expect("CONFIG SET rollcall.max-key-bytes 0", "+OK");
    assert_sums(&mut client, "errors");
    for line in lines(
        "BF.MERGE bf:chain bf:chain; BF.MERGE bf:left bf:right; LC.MERGE lc:exact lc:many
         LC.MERGE lc:new lc:exact lc:fine; BF.CLEAR bf:chain; LC.CLEAR lc:many; BF.CLEAR bf:slices
         COPY bf:classic bf:copied; COPY lc:slices lc:copied; RENAME bf:left bf:right; DEL lc:big; UNLINK bf:flat
         SET bf:tight text",
    ) {
        client.run(line);
        assert_sums(&mut client, line);
    }
    client.expect_each(
        "PEXPIRE lc:limit 1 => 1; MOVE bf:merged 1 => 1; SELECT 1 => +OK; FLUSHDB ASYNC => +OK; SELECT 0 => +OK",
    );
    wait_until("a key to expire", || (client.int("EXISTS lc:limit") == 0).then_some(()));
    assert_sums(&mut client, "expiry and FLUSHDB");
    client.expect("DEBUG RELOAD", "+OK");
    assert_sums(&mut client, "DEBUG RELOAD");
    server.save();
    server.restart();
    let mut client = server.client();
    assert_sums(&mut client, "a restart");
    client.expect("FLUSHALL", "+OK");
    assert_sums(&mut client, "FLUSHALL");
    let left = figures(&mut client);
    for (name, value) in left.iter().filter(|(name, _)| name.ends_with("_bytes") && *name != "allocated_bytes") {
        assert_eq!(*value, 0, "{name}");
    }
}

#[test]
fn sums_follow_values_that_arrive() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("BF.RESERVE lines 0.01 200000", "+OK");
    client.expect("BF.RESERVE classic 0.01 200000 LAYOUT classic", "+OK");
    client.expect("LC.RESERVE counter EXACT 65536 BYTES 1048576", "+OK");
    // Numbers behind a prefix would take too few bytes for a chunk.
    client.expect("LC.ADD counter first", "1");
    for (line, count) in [("BF.MADD lines", 900), ("BF.MADD classic", 900), ("LC.ADD counter", 20_000)] {
        add_many(&mut client, line, "item:", 0..count);
    }
    let mut moves = 0;
    for (family, key) in [("BF", "lines"), ("BF", "classic"), ("LC", "counter")] {
        for chunk in client.chunks(family, key) {
            assert_eq!(client.load(family, &format!("{key}2"), &chunk), Value::Okay);
            moves += 1;
            assert_sums(&mut client, &format!("chunk {} of {key}", chunk.0));
        }
    }
    assert!(moves >= 6, "each in a header and at least one chunk");
    assert_eq!(figures(&mut client)["filters_partially_loaded"], 0);
}

/// A classic filter with a high error rate has fewer bits than items. Once its count equals the number of its bits, new
/// items are no longer counted, and the totals must not grow either.
#[test]
fn sums_stop_where_a_filter_stops_counting() {
    let (_server, mut client) = Server::start().with_client();
    for (key, prefix) in [("f", "item:"), ("g", "other:")] {
        client.expect(&format!("BF.RESERVE {key} 0.9 1000 NONSCALING LAYOUT classic"), "+OK");
        add_many(&mut client, &format!("BF.MADD {key}"), prefix, 0..900);
    }
    client.cmd("BF.MERGE f g");
    add_many(&mut client, "BF.MADD f", "more:", 0..300);
    (0..50).for_each(|at| drop(client.cmd(&format!("BF.ADD f single:{at}"))));
    assert_sums(&mut client, "adding beyond what is counted");
}
