//! Tests which commands a replica receives. They are effects, so that the replica gets equal values even with other
//! defaults.

use rollcall_testkit::{CHANGES_NOTHING, Client, Pair, Setup, add_many, lines, populate_for_no_change, text};

/// `tests/fuzz` compares a replica after random commands. It does not give these names, and its merges rarely grow.
#[test]
fn odd_names_and_growing_merges_leave_the_replica_equal() {
    let mut pair = Pair::start();
    let mut client = pair.primary.client();
    for line in lines(
        "# A classic filter stores an expansion that it does not use.
         BF.INSERT hh NONSCALING EXPANSION 3 LAYOUT classic ITEMS x
         BF.INSERT hhh NONSCALING EXPANSION 3 LAYOUT lines ITEMS x
         # A key with the name of an option, which RedisBloom mistakes for the option.
         BF.RESERVE NONSCALING 0.05 20; BF.RESERVE nonscaling 0.05 20 EXPANSION 3; BF.RESERVE EXPANSION 0.05 20
         BF.RESERVE ITEMS 0.05 20 LAYOUT classic; BF.INSERT expansion NONSCALING ITEMS ITEMS NOCREATE
         BF.INSERT items CAPACITY 7 LAYOUT classic ITEMS ITEMS x CAPACITY
         BF.INSERT NONSCALING NOCREATE SEED 9 LAYOUT lines ITEMS CAPACITY 7 ITEMS
         BF.INSERT NONSCALING CAPACITY 7 ITEMS y
         # The merge makes the destination grow by sub-filters.
         BF.RESERVE k 0.05 20 EXPANSION 3; BF.MADD k 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25
         BF.RESERVE short 0.05 20 EXPANSION 3; BF.MADD short 1 2 3 new; BF.MERGE short k; BF.MERGE k short; BF.CLEAR k
         BF.ADD k x; LC.ADD A x y z; LC.INSERT E EXACT 2 ITEMS x y z; LC.MERGE E A; LC.MERGE A E
         RENAME k aa; COPY short bb; UNLINK A; SWAPDB 0 1; SWAPDB 0 1; SET hh overwritten; FLUSHALL",
    ) {
        client.cmd(line);
        pair.assert_equal(line);
    }
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
fn a_command_that_changes_nothing_is_not_replicated() {
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
