//! Tests BF.*: every command with every option, and the type, shape and order of its replies.

use redis::Value;

use rollcall_testkit::{Client, Server, add_many, field, number, pairs, rows, session, show, text};

/// The capacity and the expansion of a filter, from BF.INFO.
#[track_caller]
fn capacity_and_expansion(client: &mut Client, key: &str) -> String {
    let info = client.cmd(&format!("BF.INFO {key}"));
    format!("{} {}", show(&field(&info, "Capacity")), show(&field(&info, "Expansion rate")))
}

/// The reply to BF.INFO for a single field: an array of one element in RESP2, a map of one pair in RESP3.
#[track_caller]
fn info_field(client: &mut Client, key: &str, name: &str) -> Value {
    match client.cmd(&format!("BF.INFO {key} {name}")) {
        Value::Array(items) if items.len() == 1 => items[0].clone(),
        Value::Map(pairs) if pairs.len() == 1 => pairs[0].1.clone(),
        other => panic!("BF.INFO {name} gave {}", show(&other)),
    }
}

#[test]
fn add_and_madd_answer_new_or_seen() {
    session(&[
        ("BF.ADD k a", "1", "#t"),
        ("BF.ADD k a", "0", "#f"),
        ("BF.MADD k a b c b", "[0, 1, 1, 0]", "[#f, #t, #t, #f]"),
        ("BF.MADD other x", "[1]", "[#t]"),
        ("bf.add k d", "1", "#t"),
    ]);
}

#[test]
fn exists_and_mexists_answer_without_writing() {
    session(&[
        ("BF.EXISTS k a", "0", "#f"),
        ("BF.MEXISTS k a b", "[0, 0]", "[#f, #f]"),
        ("BF.CARD k", "0", "0"),
        ("EXISTS k", "0", "0"),
        ("BF.MADD k a b", "[1, 1]", "[#t, #t]"),
        ("BF.CARD k", "2", "2"),
        ("BF.EXISTS k a", "1", "#t"),
        ("BF.EXISTS k c", "0", "#f"),
        ("BF.MEXISTS k c b a", "[0, 1, 1]", "[#f, #t, #t]"),
        ("BF.MEXISTS k b", "[1]", "[#t]"),
    ]);
}

#[test]
fn reserve_makes_what_was_asked_for() {
    let (_server, mut client) = Server::start().with_client();
    for (reserve, expected) in rows(
        "BF.RESERVE plain 0.001 1000 => 1000 2; BF.RESERVE e 0.01 500 EXPANSION 4 => 500 4
         BF.RESERVE n 0.01 500 nonscaling => 500 nil; BF.RESERVE zero 0.01 500 EXPANSION 0 => 500 nil
         BF.RESERVE seeded 0.5 1 SEED 18446744073709551615 EXPANSION 1 => 1 1
         BF.RESERVE swapped 0.01 500 expansion 3 seed 7 => 500 3
         BF.RESERVE lines 0.9 500 EXPANSION 32768 layout lines => 500 32768",
    ) {
        client.expect(reserve, "+OK");
        let key = reserve.split(' ').nth(1).expect("a key");
        assert_eq!(capacity_and_expansion(&mut client, key), expected, "{reserve}");
    }
}

#[test]
fn insert_creates_by_its_options_and_only_then() {
    session(&[
        ("BF.INSERT k ITEMS a b a", "[1, 1, 0]", "[#t, #t, #f]"),
        ("BF.INSERT k CAPACITY 5000 ERROR 0.2 EXPANSION 7 ITEMS b c", "[0, 1]", "[#f, #t]"),
        ("BF.INSERT k NOCREATE ITEMS c d", "[0, 1]", "[#f, #t]"),
        ("BF.INSERT missing NOCREATE ITEMS c d", "-ERR *", "-ERR *"),
        ("EXISTS missing", "0", "0"),
        ("BF.INSERT all error 0.001 expansion 4 seed 3 capacity 50 items items", "[1]", "[#t]"),
    ]);
    let (_server, mut client) = Server::start().with_client();
    for (insert, expected, rate) in [
        ("BF.INSERT k ITEMS a", "100 2", 0.01),
        ("BF.INSERT c CAPACITY 5000 ITEMS x", "5000 2", 0.01),
        ("BF.INSERT all ERROR 0.001 EXPANSION 4 CAPACITY 50 ITEMS x", "50 4", 0.001),
        ("BF.INSERT n NONSCALING CAPACITY 9 ITEMS x", "9 nil", 0.01),
        ("BF.INSERT zero EXPANSION 0 CAPACITY 9 ITEMS x", "9 nil", 0.01),
        // Clients send both options if both are given. Like RedisBloom, BF.INSERT accepts both, and BF.RESERVE does
        // not.
        ("BF.INSERT both EXPANSION 3 NONSCALING CAPACITY 9 ITEMS x", "9 nil", 0.01),
        ("BF.INSERT both-turned NONSCALING EXPANSION 3 CAPACITY 9 ITEMS x", "9 nil", 0.01),
    ] {
        client.expect(insert, "[1]");
        let key = insert.split(' ').nth(1).expect("a key");
        assert_eq!(capacity_and_expansion(&mut client, key), expected, "{insert}");
        assert_eq!(number(&info_field(&mut client, key, "ERROR")), rate, "{insert}");
    }
    // If the key exists, the options have no effect.
    client.expect("BF.INSERT k CAPACITY 5000 ERROR 0.2 EXPANSION 7 ITEMS b", "[1]");
    assert_eq!(capacity_and_expansion(&mut client, "k"), "100 2");
}

#[test]
fn info_has_exactly_five_pairs() {
    let server = Server::start();
    for mut client in [server.client(), server.client3()] {
        client.expect("FLUSHALL", "+OK");
        client.expect("BF.INFO k", "-ERR not found");
        client.expect("BF.INFO k CAPACITY", "-ERR not found");
        client.expect("BF.RESERVE k 0.01 1000 EXPANSION 3", "+OK");
        client.cmd("BF.MADD k a b c");
        let info = client.cmd("BF.INFO k");
        let rows: Vec<_> = pairs(&info).iter().map(|(label, value)| format!("{label}: {}", show(value))).collect();
        let size = show(&field(&info, "Size"));
        let expected = [
            "Capacity: 1000",
            &format!("Size: {size}"),
            "Number of filters: 1",
            "Number of items inserted: 3",
            "Expansion rate: 3",
        ];
        assert_eq!(rows, expected);
        assert!(number(&field(&info, "Size")) > 1000.0, "{}", show(&info));
        client.expect("BF.RESERVE n 0.01 1000 NONSCALING", "+OK");
        assert_eq!(field(&client.cmd("BF.INFO n"), "Expansion rate"), Value::Nil);
    }
    assert!(matches!(server.client().cmd("BF.INFO k"), Value::Array(_)));
    assert!(matches!(server.client3().cmd("BF.INFO k"), Value::Map(_)));
}

#[test]
fn info_gives_one_field_by_name() {
    let server = Server::start();
    server.client().cmd("BF.RESERVE k 0.001 1000 EXPANSION 3");
    server.client().cmd("BF.MADD k a b c");
    server.client().cmd("BF.RESERVE n 0.001 1000 NONSCALING");
    let all = server.client().cmd("BF.INFO k");
    for mut client in [server.client(), server.client3()] {
        for (name, label) in rows(
            "CAPACITY => Capacity; SIZE => Size; FILTERS => Number of filters; ITEMS => Number of items inserted
             expansion => Expansion rate",
        ) {
            assert_eq!(info_field(&mut client, "k", name), field(&all, label), "{name}");
        }
        assert_eq!(info_field(&mut client, "n", "EXPANSION"), Value::Nil);
        assert_eq!(number(&info_field(&mut client, "k", "ERROR")), 0.001);
        assert_eq!(text(&info_field(&mut client, "k", "layout")), "lines");
        let fpr = number(&info_field(&mut client, "k", "FPR"));
        let fill = number(&info_field(&mut client, "k", "FILL"));
        assert!((0.0..0.001).contains(&fpr) && fill > 0.0 && fill < 0.01, "{fpr} {fill}");
    }
    assert!(matches!(server.client3().cmd("BF.INFO k CAPACITY"), Value::Map(_)));
}

#[test]
fn scalable_filters_grow_by_their_expansion() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("BF.RESERVE k 0.01 1000 EXPANSION 3", "+OK");
    let lines = client.list("BF.DEBUG k").len();
    add_many(&mut client, "BF.MADD k", "in", 0..12_500);
    let info = client.cmd("BF.INFO k");
    assert_eq!(show(&field(&info, "Number of filters")), "3");
    assert_eq!(show(&field(&info, "Capacity")), "13000", "1000 + 3000 + 9000");
    assert_eq!(field(&info, "Number of items inserted"), client.cmd("BF.CARD k"));
    assert_eq!(client.list("BF.DEBUG k").len(), lines + 2, "one more line a sub-filter");
}

#[test]
fn full_nonscaling_filters_say_so_and_keep_what_fitted() {
    let full = "-ERR non scaling filter is full";
    session(&[
        ("BF.RESERVE k 0.00001 3 NONSCALING", "+OK", "+OK"),
        ("BF.MADD k a b", "[1, 1]", "[#t, #t]"),
        ("BF.MADD k b c d e", &format!("[0, 1, {full}]"), &format!("[#f, #t, {full}]")),
        ("BF.CARD k", "3", "3"),
        ("BF.MEXISTS k a b c d e", "[1, 1, 1, 0, 0]", "[#t, #t, #t, #f, #f]"),
        ("BF.ADD k d", full, full),
        ("BF.MADD k d", &format!("[{full}]"), &format!("[{full}]")),
        ("BF.INSERT k ITEMS a d b", &format!("[0, {full}]"), &format!("[#f, {full}]")),
        ("BF.ADD k a", "0", "#f"),
        ("BF.MADD k a b c", "[0, 0, 0]", "[#f, #f, #f]"),
        (
            "BF.INSERT fresh CAPACITY 2 ERROR 0.00001 NONSCALING ITEMS a b c",
            &format!("[1, 1, {full}]"),
            &format!("[#t, #t, {full}]"),
        ),
        ("BF.CARD fresh", "2", "2"),
    ]);
}

#[test]
fn clear_empties_and_keeps_the_parameters() {
    session(&[
        ("BF.CLEAR k", "-ERR not found", "-ERR not found"),
        ("EXISTS k", "0", "0"),
        ("BF.RESERVE k 0.001 10 EXPANSION 4", "+OK", "+OK"),
        ("BF.RESERVE k 0.01 100", "-ERR item exists", "-ERR item exists"),
        ("BF.MADD k a b c d e f g h i j k l", "[*", "[*"),
        ("PEXPIREAT k 99999999999999", "1", "1"),
        ("BF.CLEAR k", "+OK", "+OK"),
        ("PEXPIRETIME k", "99999999999999", "99999999999999"),
        ("BF.CARD k", "0", "0"),
        ("BF.MEXISTS k a l", "[0, 0]", "[#f, #f]"),
        ("BF.INFO k FILTERS", "[1]", "{*"),
        ("BF.INFO k CAPACITY", "[10]", "{*"),
        ("BF.INFO k EXPANSION", "[4]", "{*"),
        ("BF.INFO k ERROR", "[\"0.001\"]", "{*"),
        ("BF.ADD k a", "1", "#t"),
    ]);
}

#[test]
fn merge_gives_the_union() {
    let server = Server::start();
    for mut client in [server.client(), server.client3()] {
        client.expect("FLUSHALL", "+OK");
        client.expect("BF.RESERVE a 0.001 1000", "+OK");
        client.expect("BF.RESERVE b 0.001 1000", "+OK");
        add_many(&mut client, "BF.MADD a", "a", 0..300);
        add_many(&mut client, "BF.MADD b", "b", 0..300);
        client.expect("BF.MERGE new a b", "+OK");
        client.expect("BF.MERGE a b", "+OK");
        assert_eq!(client.digest("new"), client.digest("a"));
        assert_eq!(capacity_and_expansion(&mut client, "new"), "1000 2");
        for prefix in ["a", "b"] {
            let found = add_many(&mut client, "BF.MEXISTS new", prefix, 0..300);
            assert!(found.iter().all(|reply| *reply == Value::Int(1) || *reply == Value::Boolean(true)));
        }
        // The number is estimated from 15,000 bits for 600 items. Its error is far below 5 %.
        let card = client.int("BF.CARD new");
        assert!((570..=630).contains(&card), "{card}");
        // Known items and missing sources change nothing.
        let digest = client.digest("new");
        client.expect("BF.MERGE new a b new", "+OK");
        client.expect("BF.MERGE new missing", "+OK");
        assert_eq!(client.digest("new"), digest);
        assert_eq!(client.int("BF.CARD new"), card);
        client.expect("BF.MERGE late missing a", "+OK");
        assert_eq!(client.int("BF.CARD late"), client.int("BF.CARD a"));
    }
}

/// Commands, each with the beginnings of two errors. The first is used on Redis 8, which has its own Bloom filters.
/// The second is used on other servers, as by RedisBloom 2.8.2.
const RANGES: [(&str, &str, &str); 12] = [
    ("BF.RESERVE k 0 100", RATE, "ERR (0 < error rate range < 1) "),
    ("BF.RESERVE k 1 100", RATE, "ERR (0 < error rate range < 1) "),
    ("BF.RESERVE k 0.01 0", CAPACITY, "ERR (capacity should be larger than 0)"),
    ("BF.RESERVE k 0.01 -3", CAPACITY, "ERR (capacity should be larger than 0)"),
    ("BF.RESERVE k 0.01 1099511627777", CAPACITY, "ERR bad capacity"),
    ("BF.RESERVE k 0.01 9 EXPANSION -1", EXPANSION, "ERR expansion should be greater or equal to 1"),
    ("BF.RESERVE k 0.01 9 EXPANSION 32769", EXPANSION, "ERR bad expansion"),
    ("BF.INSERT k CAPACITY 0 ITEMS a", CAPACITY, "ERR (capacity should be larger than 0)"),
    ("BF.INSERT k CAPACITY -1 ITEMS a", CAPACITY, "ERR (capacity should be larger than 0)"),
    ("BF.INSERT k ERROR 0 ITEMS a", RATE, "ERR (0 < error rate range < 1) "),
    ("BF.INSERT k EXPANSION 32769 ITEMS a", EXPANSION, "ERR bad expansion"),
    ("BF.INSERT k CAPACITY x ITEMS a", "ERR bad capacity", "ERR bad capacity"),
];

const RATE: &str = "ERR error rate must be in the range (0.000000, 1.000000)";
const CAPACITY: &str = "ERR capacity must be in the range [1, 1099511627776], got ";
const EXPANSION: &str = "ERR expansion must be in the range [0, 32768]";

#[test]
fn errors_of_range_begin_with_the_servers_texts() {
    let server = Server::start();
    let is_redis_8 = server.version().has_unprefixed_configs();
    let mut client = server.client();
    for (command, on_redis_8, elsewhere) in RANGES {
        let error = client.error(command);
        assert!(error.starts_with(if is_redis_8 { on_redis_8 } else { elsewhere }), "{command}: {error}");
        // The error continues with the given value.
        assert!(error.contains("got "), "{command}: {error}");
    }
    client.expect("DBSIZE", "0");
}

/// Redis 8 lowers error rates above 0.25 to 0.25. On Redis 8 this module does the same for classic filters.
#[test]
fn a_large_rate_is_made_as_the_server_makes_it() {
    let server = Server::start();
    let (rate, hashes) = if server.version().has_unprefixed_configs() { ("0.25", 4) } else { ("0.5", 3) };
    let mut client = server.client();
    client.expect("BF.RESERVE classic 0.5 1000 LAYOUT classic", "+OK");
    assert_eq!(text(&client.list("BF.INFO classic ERROR")[0]), rate);
    let debug = text(&client.list("BF.DEBUG classic")[1]);
    assert!(debug.contains(&format!(" hashes:{hashes} ")), "{debug}");
    client.expect("BF.RESERVE lines 0.5 1000 LAYOUT lines", "+OK");
    assert_eq!(text(&client.list("BF.INFO lines ERROR")[0]), "0.5");
}
