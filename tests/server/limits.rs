//! Tests sizes beyond `max-key-bytes` and `maxmemory`: they are rejected before memory is allocated.

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, add_many, error_text, show, sum, text, wait_until, with_items};

/// Panics unless `error` says that `max_bytes` are allowed. Returns the number of bytes that, according to `error`, the
/// value needs.
#[track_caller]
fn needed_bytes(error: &str, max_bytes: u64) -> u64 {
    let rest = error.strip_prefix("ERR the ").unwrap_or_else(|| panic!("{error}"));
    let (_, rest) = rest.split_once(" needs ").unwrap_or_else(|| panic!("{error}"));
    let (needed, rest) = rest.split_once(' ').unwrap_or_else(|| panic!("{error}"));
    let expected =
        format!("bytes, more than max-key-bytes ({max_bytes}); to allow more: CONFIG SET rollcall.max-key-bytes SIZE");
    assert_eq!(rest, expected, "{error}");
    let needed = needed.parse().unwrap_or_else(|_| panic!("{error}"));
    assert!(needed > max_bytes, "{error}");
    needed
}

/// The error in a reply, or in its last element.
fn last_error(reply: &Value) -> Option<String> {
    match reply {
        Value::Array(items) => items.last().and_then(error_text),
        other => error_text(other),
    }
}

/// If neither `max-key-bytes` nor `maxmemory` is set, a key may have no more bytes than the server allows for a string.
#[test]
fn keys_have_a_bound_where_nothing_was_set() {
    let (_server, mut client) = Server::start().with_client();
    let reserve = |name: &str| format!("BF.RESERVE {name} 0.001 400000000");
    needed_bytes(&last_error(&client.cmd(&reserve("k"))).unwrap_or_default(), 512 << 20);
    client.expect("CONFIG SET maxmemory 8gb", "+OK");
    client.expect(&reserve("k"), "+OK");
    needed_bytes(&last_error(&client.cmd("BF.RESERVE k2 0.001 4000000000")).unwrap_or_default(), 4 << 30);
    client.expect("CONFIG SET maxmemory 0", "+OK");
    // The error advises to raise `max-key-bytes`, and that is enough.
    client.expect("CONFIG SET rollcall.max-key-bytes 1gb", "+OK");
    client.expect(&reserve("k3"), "+OK");
}

#[test]
fn filters_beyond_max_key_bytes_are_rejected() {
    let (mut server, mut client) = Server::start().with_client();
    for command in [
        "BF.RESERVE new 0.01 1099511627776",
        "BF.RESERVE new 0.000000001 1099511627776 NONSCALING",
        "BF.RESERVE new 1e-300 1099511627776",
        "BF.INSERT new CAPACITY 1099511627776 ITEMS a",
        "BF.INSERT new CAPACITY 1099511627776 ERROR 0.00001 NONSCALING ITEMS a b",
    ] {
        let error = client.error(command);
        assert!(error.starts_with("ERR the filter needs "), "{command}: {error}");
        needed_bytes(&error, 512 << 20);
        client.expect("EXISTS new", "0");
    }
    // The layout takes 10.163 bits per item, plus a margin of half a per cent and rounding by the allocator.
    let needed = needed_bytes(&client.error("BF.RESERVE new 0.01 1099511627776"), 512 << 20) as f64;
    let expected = (1u64 << 40) as f64 * 10.163 * 1.005 / 8.0;
    assert!((0.998..1.25).contains(&(needed / expected)), "{needed} instead of {expected}");

    server.set_parameter("max-key-bytes", "1048576");
    needed_bytes(&client.error("BF.RESERVE new 0.01 1000000"), 1 << 20);
    client.expect("EXISTS new", "0");
    client.expect("BF.RESERVE new 0.01 500000", "+OK");
    server.set_parameter("bf-initial-size", "1000000");
    needed_bytes(&client.error("BF.ADD other a"), 1 << 20);
    let reply = client.cmd("BF.MADD other a b");
    needed_bytes(&last_error(&reply).unwrap_or_else(|| panic!("{}", show(&reply))), 1 << 20);
    client.expect("EXISTS other", "0");
    server.assert_up();
}

#[test]
fn filters_stop_growing_at_max_key_bytes() {
    let (mut server, mut client) = Server::with_args("max-key-bytes 1048576").with_client();
    // The filter takes 130 KB, and its second sub-filter would take more than a megabyte.
    client.expect("BF.RESERVE k 0.01 100000 EXPANSION 8", "+OK");
    let mut next = 0;
    let error = loop {
        let reply = client.call(&with_items("BF.MADD k", "in", next..next + 1000));
        if let Some(error) = last_error(&reply) {
            break error;
        }
        next += 1000;
        assert!(next < 110_000, "the filter grew over its limit");
    };
    needed_bytes(&error, 1 << 20);
    let (card, digest) = (client.int("BF.CARD k"), client.digest("k"));
    assert_eq!(card, 100_000, "it holds what it was made for");
    // New items are rejected unless they are false positives. Items in the filter are still found.
    let strangers = client.pipeline(&(0..20).map(|i| with_items("BF.ADD k", "out", i..i + 1)).collect::<Vec<_>>());
    for reply in strangers {
        match error_text(&reply) {
            Some(error) => drop(needed_bytes(&error, 1 << 20)),
            None => assert_eq!(show(&reply), "0"),
        }
    }
    assert_eq!(sum(&add_many(&mut client, "BF.MEXISTS k", "in", 0..next)), next as i64);
    assert_eq!((client.int("BF.CARD k"), client.digest("k")), (card, digest));
    // With a higher limit the filter grows.
    server.set_parameter("max-key-bytes", "16777216");
    let added: i64 = (0..20).map(|i| client.int(&format!("BF.ADD k late{i}"))).sum();
    assert!(added > 10 && client.int("BF.CARD k") == card + added, "{added}");
    server.assert_up();
}

/// Sets `maxmemory` to 16 MB more than the server uses now.
fn leave_sixteen_megabytes(client: &mut Client) {
    let maxmemory = client.info_number("used_memory") + (16 << 20);
    client.expect(&format!("CONFIG SET maxmemory {maxmemory}"), "+OK");
}

/// Limits apply to values that a client restores. They do not apply to values from a file, a primary or the AOF,
/// because those have been accepted before.
#[test]
fn clients_restore_no_more_than_limits_let_them() {
    let (mut server, mut client) = Setup::default().line("maxmemory-policy noeviction").start().with_client();
    client.expect("BF.RESERVE large 0.01 2000000", "+OK");
    client.expect("BF.ADD large a", "1");
    let payload = client.dump("large");
    let restore = |client: &mut Client, key: &str| client.restore(key, &payload);
    let rejected = |client: &mut Client| {
        let error = error_text(&restore(client, "copy")).unwrap_or_default();
        assert!(error.contains("Bad data format"), "{error}");
        client.expect("EXISTS copy", "0");
    };

    server.set_parameter("max-key-bytes", "1048576");
    rejected(&mut client);
    assert_eq!(client.info_number("rollcall_rejected_limit"), 1);
    server.set_parameter("max-key-bytes", "4194304");
    // The server itself checks `maxmemory`, before the command.
    let maxmemory = client.info_number("used_memory") + (1 << 20);
    client.expect(&format!("CONFIG SET maxmemory {maxmemory}"), "+OK");
    assert_eq!(text(&restore(&mut client, "copy")), "OK");
    assert!(error_text(&restore(&mut client, "other")).is_some_and(|error| error.starts_with("OOM ")));
    assert_eq!(client.info_number("rollcall_rejected_memory"), 0);
    client.expect("DEL copy", "1");
    client.expect("CONFIG SET maxmemory 0", "+OK");

    // A replica whose own clients could not create a value of this size.
    let replica = Server::with_args("max-key-bytes 1048576");
    replica.replicate(&server);
    assert_eq!(text(&restore(&mut client, "copy")), "OK");
    replica.wait_synced(&server);
    let digest = client.digest("large");
    for key in ["large", "copy"] {
        assert_eq!(replica.client().digest(key), digest);
    }
    server.set_parameter("max-key-bytes", "1048576");
    client.expect("DEBUG RELOAD", "+OK");
    assert_eq!((client.digest("large"), client.digest("copy")), (digest.clone(), digest));
    assert_eq!(client.info_number("rollcall_rejected_limit"), 1);
    server.assert_up();
}

/// A client's COPY once had no limit: a filter of 37 MB was copied where `maxmemory` left 23.
#[test]
fn clients_copy_no_more_than_limits_let_them() {
    // Without `appendfsync no`, writes that wait for fsync take memory that maxmemory does not count.
    let setup = Setup::default().line("maxmemory-policy noeviction").line("appendonly yes").line("appendfsync no");
    let (mut server, mut client) = setup.start().with_client();
    client.expect("BF.RESERVE large 0.01 2000000", "+OK");
    client.expect("BF.ADD large a", "1");
    client.expect("LC.RESERVE counter EXACT 65536 BYTES 1048576", "+OK");
    // Another client adds, because the server frees the buffers of a closed connection at once.
    add_many(&mut server.client(), "LC.ADD counter", "member-of-some-bytes:", 0..40_000);
    wait_until("the other client is gone", || (client.info_number("connected_clients") == 1).then_some(()));
    let rejected = |client: &mut Client, key: &str| {
        let error = client.error(&format!("COPY {key} other REPLACE"));
        assert_eq!(error.to_lowercase(), "err module key failed to copy");
    };
    client.expect("SET other text", "+OK");
    // A small value, and the growth within the slack, are accepted at any size of the others.
    client.expect("LC.ADD small a", "1");
    for (name, value) in
        [("rollcall.max-key-bytes", 1 << 20), ("maxmemory", client.info_number("used_memory") + 100_000)]
    {
        client.expect(&format!("CONFIG SET {name} {value}"), "+OK");
        rejected(&mut client, "large");
        client.expect("COPY small smaller REPLACE", "1");
        client.expect("CONFIG SET rollcall.max-key-bytes 0", "+OK");
    }
    rejected(&mut client, "counter");
    client.expect("GET other", "\"text\"");
    assert_eq!(client.info_number("rollcall_rejected_limit"), 1);
    assert_eq!(client.info_number("rollcall_rejected_memory"), 2);
    assert!(server.log().contains("could not copy a filter: "), "{}", server.log());

    // Replicas and the AOF copy what the primary's client copied, whatever their own limits.
    client.expect("CONFIG SET maxmemory 0", "+OK");
    let replica = Server::with_args("max-key-bytes 1048576");
    replica.replicate(&server);
    replica.wait_synced(&server);
    client.expect("COPY large other REPLACE", "1");
    client.expect("COPY counter second", "1");
    replica.wait_synced(&server);
    server.set_parameter("max-key-bytes", "1048576");
    rejected(&mut client, "large");
    let digests = |client: &mut Client| ["large", "other", "counter", "second"].map(|key| client.digest(key));
    let before = digests(&mut client);
    assert_eq!(digests(&mut replica.client()), before);
    client.expect("DEBUG LOADAOF", "+OK");
    assert_eq!(digests(&mut client), before);
    server.assert_up();
}

#[test]
fn memory_that_was_given_back_may_be_used_at_once() {
    // The server's own background freeing (Valkey's default) is switched off, because its time is not predictable.
    let setup = Setup::default().line("lazyfree-lazy-user-del no").line("maxmemory-policy noeviction");
    let (mut server, mut client) = setup.start().with_client();
    // The filter takes 126 MB. The memory is enough for one such filter.
    client.expect("BF.RESERVE k 0.01 100000000", "+OK");
    leave_sixteen_megabytes(&mut client);
    for _ in 0..20 {
        client.expect("DEL k", "1");
        client.expect("BF.RESERVE k 0.01 100000000", "+OK");
    }
    server.assert_up();
}

#[test]
fn eviction_of_a_large_filter_takes_no_other_key_along() {
    // A server that evicts in the background (Valkey's default) evicts further keys of any type, so this is switched
    // off.
    let setup = Setup::default().line("lazyfree-lazy-eviction no").line("maxmemory-policy volatile-ttl");
    let (mut server, mut client) = setup.line("maxmemory-samples 64").start().with_client();
    for key in 0..30 {
        let value = "v".repeat(100_000);
        client.call(&["SET".to_owned(), format!("small:{key}"), value, "EX".to_owned(), "100000".to_owned()]);
    }
    client.expect("BF.RESERVE large 0.01 200000000", "+OK");
    add_many(&mut client, "BF.MADD large", "item:", 0..100_000);
    client.expect("EXPIRE large 1000", "1");
    let maxmemory = client.info_number("used_memory") - 1_000_000;
    client.expect(&format!("CONFIG SET maxmemory {maxmemory}"), "+OK");
    client.expect("SET one more", "+OK");
    client.expect("EXISTS large", "0");
    assert_eq!(client.info_number("evicted_keys"), 1);
    server.assert_up();
}

/// A server with 60 MB of small keys, of which it evicts 16 at a time, and its used memory.
fn evicting() -> (Server, u64) {
    let setup = Setup::default().line("maxmemory-policy allkeys-lru").line("maxmemory-eviction-tenacity 0");
    let (server, mut client) = setup.start().with_client();
    let value = "v".repeat(500);
    let filler = |key| vec!["SET".to_owned(), format!("small:{key}"), value.clone()];
    client.pipeline(&(0..100_000).map(filler).collect::<Vec<_>>());
    let used = client.info_number("used_memory");
    (server, used as u64)
}

fn words(line: impl AsRef<str>) -> Vec<String> {
    line.as_ref().split(' ').map(str::to_owned).collect()
}

/// Sets `maxmemory` to 10 MB less than the last `step` did. Commands behind it in a pipeline run before the server has
/// evicted more than a few keys.
fn lowered(used: u64, step: u64) -> Vec<String> {
    words(format!("CONFIG SET maxmemory {}", used - step * (10 << 20)))
}

/// While the server still evicted, creations of 114 KB were rejected, but never a SET of 96 KB.
#[test]
fn a_server_that_is_evicting_rejects_no_small_growth() {
    let (mut server, used) = evicting();
    let mut client = server.client();
    let small = |number| {
        [
            format!("BF.RESERVE filter:{number} 0.01 80000"),
            format!("LC.INSERT counter:{number} EXACT 0 ERROR 0.0025 ITEMS a"),
            format!("SETRANGE string:{number} 95999 v"),
        ]
    };
    // A filter of just below a mebibyte is created, a larger one is not.
    let last = ["BF.RESERVE largest 0.01 800000", "COPY largest copy", "BF.RESERVE larger 0.01 900000"];
    let commands = (0..20).flat_map(small).chain(last.map(str::to_owned)).map(words);
    let replies = client.pipeline(&[lowered(used, 4)].into_iter().chain(commands).collect::<Vec<_>>());
    let [replies @ .., larger] = &replies[..] else { panic!("no replies") };
    for reply in replies {
        assert!(error_text(reply).is_none(), "{}", show(reply));
    }
    let error = error_text(larger).unwrap_or_default();
    assert!(error.contains("more than maxmemory leaves (1048"), "{error}");
    assert_eq!(client.info_number("rollcall_rejected_memory"), 1);
    server.assert_up();
}

#[test]
fn a_key_named_many_times_is_read_once() {
    let (mut server, mut client) = Server::start().with_client();
    client.expect("LC.RESERVE exact EXACT 65536", "+OK");
    add_many(&mut client, "LC.ADD exact", "", 0..3000);
    client.expect("LC.RESERVE large ERROR 0.0025 EXACT 0", "+OK");
    add_many(&mut client, "LC.ADD large", "", 0..100_000);
    client.expect("BF.RESERVE filter 0.01 1000000", "+OK");
    client.expect("BF.ADD filter a", "1");
    let count = client.int("LC.COUNT large");
    for (command, name, reply) in [
        ("LC.COUNT", "exact", "3000".to_owned()),
        ("LC.COUNT", "large", count.to_string()),
        ("LC.MERGE union", "large", "+OK".to_owned()),
        ("BF.MERGE union-of-filters", "filter", "+OK".to_owned()),
    ] {
        // The key is named 500,000 times but read once. Reading it each time would exceed this client's time limit.
        let words = command.split(' ').chain(std::iter::repeat_n(name, 500_000));
        assert_eq!(show(&client.call(&words.collect::<Vec<_>>())), reply, "{command}");
    }
    server.assert_up();
}
