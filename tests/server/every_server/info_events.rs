//! Tests the counts of events in `INFO rollcall`, and in which sections of INFO they are shown.

use redis::Value;

use rollcall_fuzz::payload::{forge, split};
use rollcall_testkit::{Client, Server, add_many, error_text, figures, wait_until};

/// The growth of each figure while `act` runs.
fn grown<const N: usize>(client: &mut Client, names: [&str; N], act: impl FnOnce(&mut Client)) -> [i64; N] {
    let before = figures(client);
    act(client);
    let after = figures(client);
    names.map(|name| after[name] - before[name])
}

#[test]
fn sections_are_shown_where_they_are_asked_for() {
    let (_server, mut client) = Server::start().with_client();
    let heads = |text: String| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("# rollcall")).map(|line| line.trim().to_owned()).collect()
    };
    let all = ["# rollcall", "# rollcall_filters", "# rollcall_counters"];
    for line in ["INFO rollcall", "INFO modules", "INFO everything"] {
        assert_eq!(heads(client.text(line)), all, "{line}");
    }
    assert_eq!(heads(client.text("INFO rollcall_filters")), ["# rollcall_filters"]);
    assert_eq!(heads(client.text("INFO rollcall_counters")), ["# rollcall_counters"]);
    for line in ["INFO", "INFO all", "INFO default"] {
        assert!(heads(client.text(line)).is_empty(), "{line}");
    }
}

#[test]
fn growths_promotions_and_advances_are_counted() {
    let (_server, mut client) = Server::start().with_client();
    let names = ["filters_growths", "filters_grown", "counters_promotions", "filters_advances", "counters_advances"];
    let of_growing = grown(&mut client, names, |client| {
        client.expect("BF.RESERVE f 0.01 10", "+OK");
        add_many(client, "BF.MADD f", "item:", 0..100);
        client.expect("BF.RESERVE single 0.01 1 LAYOUT classic", "+OK");
        for at in 0..4 {
            client.cmd(&format!("BF.ADD single {at}"));
        }
    });
    let sub_filters = client.int_of("BF.INFO f FILTERS") + client.int_of("BF.INFO single FILTERS");
    assert_eq!(of_growing, [sub_filters - 2, 2, 0, 0, 0]);
    assert!(sub_filters > 4);
    let of_promoting = grown(&mut client, names, |client| {
        client.expect("LC.RESERVE c EXACT 10", "+OK");
        add_many(client, "LC.ADD c", "item:", 0..11);
    });
    assert_eq!(of_promoting, [0, 0, 1, 0, 0]);
    let of_growing = grown(&mut client, names, |client| {
        add_many(client, "LC.ADD c", "item:", 0..80_000);
    });
    assert_eq!(of_growing, [0; 5], "an estimate stays one");
    // An event also counts in the command that creates the key.
    let of_creating = grown(&mut client, names, |client| {
        add_many(client, "LC.INSERT c2 EXACT 10 ITEMS", "item:", 0..11);
        client.cmd("BF.ADMIT f2 LIMIT 9 CAPACITY 2 ITEMS a b c");
    });
    assert_eq!(of_creating, [1, 1, 1, 0, 0]);
    let of_moving = grown(&mut client, names, |client| {
        client.expect("BF.RESERVE w 0.01 10 WINDOW 10 MANUAL", "+OK");
        client.expect("LC.RESERVE lw WINDOW 10 MANUAL", "+OK");
        for line in ["BF.ADD w a", "BF.ADVANCE w 3", "BF.ADVANCE w 3", "LC.ADVANCE lw 1", "LC.ADVANCE lw 2"] {
            client.run(line);
        }
    });
    assert_eq!(of_moving, [0, 0, 0, 1, 2]);
}

#[test]
fn items_that_admit_rejects_are_counted_by_family() {
    let (_server, mut client) = Server::start().with_client();
    let names = ["filters_items_rejected", "counters_items_rejected"];
    for (family, expected) in [("BF", [5, 0]), ("LC", [0, 5])] {
        let rejected = grown(&mut client, names, |client| {
            client.expect(&format!("{family}.ADMIT {family} LIMIT 2 ITEMS a b c d c"), "[1, 1, -1, -1, -1]");
            client.expect(&format!("{family}.ADMIT {family} LIMIT 3 ALL ITEMS a c d"), "[0, -1, -1]");
            client.expect(&format!("{family}.ADMIT {family} LIMIT 2 DRYRUN ITEMS c"), "[-1]");
            client.expect(&format!("{family}.ADMIT {family} LIMIT 2 ITEMS a b"), "[0, 0]");
        });
        assert_eq!(rejected, expected, "{family}");
    }
}

#[test]
fn errors_are_counted_by_their_reason() {
    let (_server, mut client) = Server::start().with_client();
    let names = ["rejected_full", "rejected_limit", "rejected_memory", "rejected_corrupt"];
    let full = grown(&mut client, names, |client| {
        client.expect("BF.RESERVE f 0.01 2 NONSCALING", "+OK");
        client.expect("BF.MADD f a b c", "[1, 1, -ERR non scaling filter is full]");
        client.expect("BF.ADD f d", "-ERR non scaling filter is full");
    });
    assert_eq!(full, [2, 0, 0, 0]);
    let limit = grown(&mut client, names, |client| {
        client.expect("CONFIG SET rollcall.max-key-bytes 1048576", "+OK");
        client.expect("BF.RESERVE g 0.01 10000000", "-ERR the filter needs *");
        client.expect("CONFIG SET rollcall.max-key-bytes 0", "+OK");
    });
    assert_eq!(limit, [0, 1, 0, 0]);
    let memory = grown(&mut client, names, |client| {
        client.expect("CONFIG SET maxmemory 30mb", "+OK");
        client.expect("BF.RESERVE g 0.01 100000000", "-ERR the filter needs *");
        client.expect("CONFIG SET maxmemory 0", "+OK");
    });
    assert_eq!(memory, [0, 0, 1, 0]);
    let corrupt = grown(&mut client, names, |client| {
        assert_eq!(client.cmd("LC.ADD c a"), Value::Int(1));
        let payload = client.dump("c");
        let (value, version) = split(&payload);
        let mut damaged = value.to_vec();
        damaged[value.len() / 2] ^= 1;
        let value = forge(&damaged, version);
        let reply = client.restore("d", &value);
        assert!(error_text(&reply).is_some(), "{reply:?}");
        client.expect("BF.LOADCHUNK h 1 nonsense", "-ERR received bad data");
        // A mix-up of keys is no damage.
        client.expect("SET text x", "+OK");
        let text = client.dump("text");
        for payload in [&text[..], b"nonsense"] {
            let reply = client.call(&[&b"LC.MERGEDUMP"[..], b"c", payload]);
            assert!(error_text(&reply).is_some(), "{reply:?}");
        }
    });
    assert_eq!(corrupt, [0, 0, 0, 2]);
}

#[test]
fn memory_waiting_to_be_freed_is_reported() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("BF.RESERVE large 0.01 100000000", "+OK");
    assert!(figures(&mut client)["filters_lines_bytes"] > 100_000_000);
    // DEL and INFO are in one pipeline, so that INFO runs before the memory is freed.
    let replies = client.pipeline(&[vec!["DEL", "large"], vec!["INFO", "rollcall"]]);
    assert_eq!(replies[0], Value::Int(1));
    let reported = rollcall_testkit::text(&replies[1]);
    let waiting = |name: &str| {
        let line = reported.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<i64>().ok()).expect("a number")
    };
    let (values, bytes) = (waiting("rollcall_frees_waiting:"), waiting("rollcall_frees_waiting_bytes:"));
    // The memory may already be freed. Then both figures are 0.
    assert_eq!(values > 0, bytes > 100_000_000, "{values} of {bytes} bytes");
    wait_until("the filter to be freed", || {
        let reported = figures(&mut client);
        (reported["frees_waiting"] == 0 && reported["frees_waiting_bytes"] == 0 && reported["filters"] == 0)
            .then_some(())
    });
}
