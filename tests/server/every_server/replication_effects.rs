//! Tests which commands a replica receives. They are effects, so that the replica gets equal values even with other
//! defaults.

use redis::Value;

use rollcall_testkit::{
    CHANGES_NOTHING, Client, Pair, Setup, add_many, assert_same, error_text, lines, populate, populate_for_no_change,
    show, snapshot, text,
};

#[test]
fn every_write_leaves_the_replica_equal() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    for line in lines(
        "BF.ADD a x; BF.ADD a y; BF.MADD b x y x; BF.MADD b y z; BF.INSERT c ITEMS x y; BF.INSERT c ITEMS y z
         BF.INSERT d CAPACITY 50 ITEMS x; BF.INSERT e ERROR 0.2 ITEMS x; BF.INSERT f EXPANSION 7 ITEMS x
         BF.INSERT g NONSCALING ITEMS x; BF.INSERT h EXPANSION 0 ITEMS x
         # A classic filter stores an expansion that it does not use.
         BF.INSERT hh NONSCALING EXPANSION 3 LAYOUT classic ITEMS x
         BF.INSERT hhh NONSCALING EXPANSION 3 LAYOUT lines ITEMS x; BF.INSERT i SEED 77 CAPACITY 9 ITEMS x
         BF.RESERVE j 0.05 20; BF.RESERVE k 0.05 20 EXPANSION 3; BF.RESERVE l 0.05 20 NONSCALING
         BF.RESERVE m 0.05 20 SEED 18446744073709551615; BF.RESERVE n 0.1 20 LAYOUT lines
         BF.RESERVE o 0.0123456789012345678 12345; BF.RESERVE p 1e-300 1
         # A key with the name of an option, which RedisBloom mistakes for the option.
         BF.RESERVE NONSCALING 0.05 20; BF.RESERVE nonscaling 0.05 20 EXPANSION 3; BF.RESERVE EXPANSION 0.05 20
         BF.RESERVE ITEMS 0.05 20 LAYOUT classic; BF.INSERT expansion NONSCALING ITEMS ITEMS NOCREATE
         BF.INSERT items CAPACITY 7 LAYOUT classic ITEMS ITEMS x CAPACITY
         BF.INSERT NONSCALING NOCREATE SEED 9 LAYOUT lines ITEMS CAPACITY 7 ITEMS
         BF.INSERT NONSCALING CAPACITY 7 ITEMS y
         BF.MADD k 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; BF.MERGE q b
         BF.MERGE q b c; BF.MERGE b c; BF.MERGE r missing b
         # The merge makes the destination grow by sub-filters.
         BF.RESERVE short 0.05 20 EXPANSION 3; BF.MADD short 1 2 3 new; BF.MERGE short k; BF.MERGE k short; BF.CLEAR k
         BF.ADD k x; LC.ADD A x y; LC.ADD A y z; LC.INSERT B ITEMS x y; LC.INSERT C ITEMS x
         LC.INSERT D ERROR 0.03 ITEMS x; LC.INSERT E EXACT 2 ITEMS x y z; LC.INSERT F SEED 9 EXACT 0 ITEMS x y z
         LC.RESERVE G; LC.RESERVE H ERROR 0.123456789 EXACT 7; LC.RESERVE I ERROR 0.0025 EXACT 0; LC.ADD I x y z
         LC.INSERT I2 EXACT 5 BYTES 3 ITEMS xx yy; LC.RESERVE I3 ERROR 0.25 BYTES 7; LC.MERGE J A; LC.MERGE J A B C
         LC.MERGE E A; LC.MERGE A E; LC.MERGE K missing A; LC.MERGE L missing; BF.MERGE M missing; LC.REM J x new z x
         LC.REM J new; LC.REM E x; LC.CLEAR J; LC.ADD J x; LC.CLEAR E; BF.RESERVE ea 0.05 20 EX 1000
         BF.INSERT eb PX 1000000 CAPACITY 7 ITEMS x y; BF.INSERT eb EX 1 ITEMS x z; LC.RESERVE ec EXAT 99999999999
         LC.INSERT ed PXAT 9999999999999 ITEMS x y; LC.INSERT ed EX 1 ITEMS x z
         BF.ADMIT ee LIMIT 3 CAPACITY 9 EX 1000 ITEMS a b a c d; BF.ADMIT ee LIMIT 5 ITEMS d a e f
         BF.ADMIT ee LIMIT 9 ALL ITEMS f g h i j; BF.ADMIT ee LIMIT 99 ALL DRYRUN ITEMS f g h i j
         BF.ADMIT ef LIMIT 99 LAYOUT classic CAPACITY 2 ITEMS f g h i j
         BF.ADMIT eg LIMIT 99 NONSCALING CAPACITY 2 ITEMS f g h i j; BF.ADMIT en LIMIT 0 ITEMS f g h i j
         LC.ADMIT eh LIMIT 3 EXACT 9 EX 1000 ITEMS a b a c d; LC.ADMIT eh LIMIT 5 ITEMS d a e f
         LC.ADMIT eh LIMIT 9 ALL ITEMS f g h i j; LC.ADMIT eh LIMIT 99 ITEMS f g h i j k l
         LC.ADMIT en LIMIT 0 ITEMS f g h i j; EXPIRE a 1000; RENAME a aa; COPY b bb; DEL c; UNLINK A; SWAPDB 0 1
         SWAPDB 0 1; SET d overwritten",
    ) {
        client.cmd(line);
        pair.assert_equal(line);
    }
    for (line, prefix, count) in [
        ("BF.MADD new", "x", 3000),
        ("BF.MADD j", "x", 300),
        ("LC.ADD new2", "x", 249),
        ("LC.ADD new2", "x", 3000),
        ("LC.ADD G", "x", 2000),
        ("LC.ADD H", "x", 2000),
    ] {
        add_many(&mut client, line, prefix, 0..count);
        pair.assert_equal(line);
    }
    client.expect("FLUSHALL", "+OK");
    pair.assert_equal("FLUSHALL");
    pair.assert_no_errors();
}

/// A new key is sent with all its parameters if the primary's defaults differ from the library's, or if an option
/// depends on the server.
#[test]
fn a_new_key_is_sent_as_it_came_where_that_implies_its_parameters() {
    for (args, implies) in [("", true), ("lc-error-rate 0.2 bf-initial-size 7", false), ("hash-seed 5", false)] {
        let mut pair = Pair::with_args(args);
        let mut client = pair.primary.client();
        let mut monitor = pair.replica.client();
        monitor.expect("MONITOR", "+OK");
        for (line, implies) in [
            ("LC.ADD k1 x y", implies),
            ("LC.INSERT k2 EXACT 250 ITEMS x", implies),
            ("LC.INSERT k9 ERROR 0.02 ITEMS x", false),
            ("LC.INSERT k3 ERROR 0.02 WINDOW 40 MANUAL ITEMS x", false),
            ("BF.ADD k4 x", implies),
            ("BF.MADD k5 x y", implies),
            ("BF.INSERT k6 CAPACITY 7 NONSCALING ITEMS x", implies),
            ("BF.INSERT k7 CAPACITY 7 LAYOUT lines ITEMS x", false),
            ("BF.ADMIT k8 LIMIT 1 ITEMS x y", false),
        ] {
            client.cmd(line);
            let key = format!("\"{}\"", line.split(' ').nth(1).expect("a key"));
            let shown = loop {
                let shown = text(&monitor.receive());
                if shown.contains(&key) {
                    break shown;
                }
            };
            assert_eq!(!shown.contains("\"SEED\""), implies, "{line} with {args}: {shown}");
        }
        pair.assert_equal(args);
        pair.assert_no_errors();
    }
}

#[test]
fn every_kind_of_key_is_equal_on_the_replica() {
    let mut pair = Pair::start();
    populate(&mut pair.primary.client());
    pair.assert_equal("making them");
    assert_same(&snapshot(&mut pair.replica.client()), &snapshot(&mut pair.primary.client()));
    pair.assert_no_errors();
}

#[test]
fn what_changes_nothing_is_not_sent_nor_counted() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    populate_for_no_change(&mut client);
    pair.replica.wait_synced(&pair.primary);
    let before = pair.marks();
    for line in lines(CHANGES_NOTHING) {
        client.cmd(line);
        assert_eq!(pair.marks(), before, "{line}");
    }
    // In transactions and scripts, commands without effect are not replicated.
    for line in ["MULTI", "BF.ADD f a", "LC.ADD c a", "EXEC"] {
        client.cmd(line);
    }
    client.call(&["EVAL", "redis.call('BF.ADD', 'f', 'a') return redis.call('LC.ADD', 'c', 'a')", "2", "f", "c"]);
    assert_eq!(pair.marks(), before);
    pair.assert_equal("nothing");
    pair.assert_no_errors();
}

#[test]
fn full_filters_send_only_what_went_in() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    let full = "-ERR non scaling filter is full";
    client.expect("BF.RESERVE k 0.00001 3 NONSCALING", "+OK");
    for (line, reply, moves) in [
        ("BF.MADD k a b", "[1, 1]", true),
        ("BF.MADD k b c d e", &format!("[0, 1, {full}]"), true),
        ("BF.MADD k b d c", &format!("[0, {full}]"), false),
        ("BF.ADD k d", full, false),
        ("BF.INSERT k ITEMS a b d", &format!("[0, 0, {full}]"), false),
        ("BF.INSERT l CAPACITY 2 ERROR 0.00001 NONSCALING ITEMS a b c", &format!("[1, 1, {full}]"), true),
        ("BF.INSERT m CAPACITY 1 ERROR 0.00001 EXPANSION 0 ITEMS a b", &format!("[1, {full}]"), true),
    ] {
        let before = pair.marks();
        client.expect(line, reply);
        assert_eq!(pair.marks()[0] > before[0], moves, "{line}");
        assert_eq!(pair.marks()[1] > before[1], moves, "{line}");
        pair.assert_equal(line);
    }
    pair.replica.client().expect("BF.MEXISTS k a b c d", "[1, 1, 1, 0]");
    pair.assert_no_errors();
}

#[test]
fn transactions_and_scripts_are_sent_as_effects() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    for line in ["MULTI", "BF.MADD f a b", "BF.ADD f a", "LC.ADD c a b", "BF.ADD c x", "LC.INSERT d ITEMS a", "EXEC"] {
        client.cmd(line);
    }
    pair.assert_equal("a transaction");
    let script = "for i = 1, 500 do redis.call('BF.ADD', KEYS[1], i % 300) redis.call('LC.ADD', KEYS[2], i) end \
                  redis.pcall('BF.RESERVE', KEYS[1], '0.1', '5') return redis.call('LC.COUNT', KEYS[2])";
    let reply = client.call(&["EVAL", script, "2", "g", "h"]);
    assert!(matches!(reply, Value::Int(400..=600)), "{}", show(&reply));
    pair.assert_equal("a script");
    client.cmd("BF.RESERVE full 0.00001 2 NONSCALING");
    client.call(&["EVAL", "return redis.pcall('BF.MADD', KEYS[1], 'a', 'b', 'c')", "1", "full"]);
    pair.assert_equal("a script that met a full filter");
    pair.assert_no_errors();
}

#[test]
fn chunks_are_sent_one_by_one() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    client.expect("BF.RESERVE src 0.01 4000000", "+OK");
    add_many(&mut client, "BF.MADD src", "item:", 0..5000);
    add_many(&mut client, "LC.ADD src2", "item:", 0..5000);
    for (family, key) in [("BF", "src"), ("LC", "src2")] {
        for chunk in client.chunks(family, key) {
            assert_eq!(client.load(family, "copy", &chunk), Value::Okay);
            pair.assert_equal("a chunk");
            let before = pair.marks();
            assert!(error_text(&client.load(family, "copy", &chunk)).is_some(), "the same chunk again");
            assert_eq!(pair.marks(), before);
        }
        assert_eq!(pair.replica.client().digest("copy"), client.digest(key));
        client.expect("DEL copy", "1");
    }
    pair.assert_no_errors();
}

#[test]
fn replicas_of_replicas_and_promoted_ones_agree() {
    let mut pair = Pair::start();
    let third = Setup::default().args("lc-exact-limit 0 bf-initial-size 3").start();
    third.replicate(&pair.replica);
    let work = |client: &mut Client, prefix: &str| {
        add_many(client, "BF.MADD f", prefix, 0..400);
        add_many(client, "LC.ADD c", prefix, 0..400);
    };
    work(&mut pair.primary.client(), "x");
    pair.primary.client().expect("WAIT 1 20000", "1");
    pair.assert_equal("writing");
    third.wait_synced(&pair.replica);
    assert_eq!(third.client().text("DEBUG DIGEST"), pair.primary.client().text("DEBUG DIGEST"));
    pair.assert_no_errors();
    // A promoted replica keeps the parameters with which the keys were created.
    pair.replica.client().expect("REPLICAOF NO ONE", "+OK");
    for server in [&pair.primary, &pair.replica] {
        work(&mut server.client(), "y");
    }
    assert_eq!(pair.replica.client().text("DEBUG DIGEST"), pair.primary.client().text("DEBUG DIGEST"));
}
