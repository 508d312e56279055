//! Tests full synchronisation, with and without an RDB file on disk, into an empty replica and into one that has data.

use rollcall_testkit::{
    Client, Server, Setup, add_many, assert_same, populate, show, snapshot, wait_until, with_items,
};

/// Panics unless the server let the module load values directly from the primary's stream, and that succeeded.
#[track_caller]
fn assert_loads_directly(replica: &Server) {
    let log = replica.log();
    assert!(!log.contains("Skipping diskless-load"), "{log}");
    assert!(!log.contains("Failed trying to load"), "{log}");
}

fn big_filter(client: &mut Client) {
    client.expect("BF.RESERVE bf:big 0.01 20000000", "+OK");
    add_many(client, "BF.MADD bf:big", "item:", 0..5000);
}

#[test]
fn a_new_replica_gets_everything() {
    for (diskless, load) in [("no", "disabled"), ("yes", "disabled"), ("yes", "on-empty-db"), ("yes", "swapdb")] {
        let primary = Setup::default().line(&format!("repl-diskless-sync {diskless}")).start();
        populate(&mut primary.client());
        big_filter(&mut primary.client());
        let setup = Setup::default().line(&format!("repl-diskless-load {load}"));
        let mut replica = setup.args("bf-initial-size 7 lc-exact-limit 3 hash-seed 5 max-key-bytes 1048576").start();
        replica.replicate(&primary);
        assert_same(&snapshot(&mut replica.client()), &snapshot(&mut primary.client()));
        assert_loads_directly(&replica);
        // The replication stream continues after the synchronisation.
        let mut client = primary.client();
        for (add, key) in
            [("BF.MADD", "bf:chain"), ("BF.MADD", "bf:big"), ("LC.ADD", "lc:exact"), ("LC.ADD", "lc:fine")]
        {
            add_many(&mut client, &format!("{add} {key}"), "more:", 0..1000);
        }
        replica.wait_synced(&primary);
        assert_same(&snapshot(&mut replica.client()), &snapshot(&mut client));
        replica.assert_up();
    }
}

#[test]
fn a_sync_replaces_the_data_of_a_replica() {
    for load in ["disabled", "swapdb"] {
        let (one, two) = (Server::start(), Server::start());
        populate(&mut one.client());
        two.client().cmd("BF.MADD bf:default other items");
        two.client().cmd("BF.MADD only:here other items");
        two.client().cmd("LC.ADD lc:new a b c");
        let replica = Setup::default().line(&format!("repl-diskless-load {load}")).start();
        for primary in [&one, &two, &one] {
            replica.replicate(primary);
            assert_same(&snapshot(&mut replica.client()), &snapshot(&mut primary.client()));
        }
        assert_loads_directly(&replica);
    }
}

#[test]
fn a_replica_that_lost_the_stream_loads_beside_what_it_has() {
    // The link breaks, and more is written than the backlog holds. So a full synchronisation of the same history
    // follows. The replica answers from the old data while it loads.
    let primary = Setup::default().line("repl-backlog-size 16kb").start();
    let replica = Setup::default().line("repl-diskless-load swapdb").start();
    populate(&mut primary.client());
    replica.replicate(&primary);
    let mut client = primary.client();
    let syncs = client.info_number("sync_full");
    let before = client.info_number("sync_partial_ok");
    client.expect("MULTI", "+OK");
    client.expect("CLIENT KILL TYPE replica", "+QUEUED");
    for i in 0..50 {
        let command = with_items("LC.ADD lc:new", "a-member-of-some-length:", i * 200..i * 200 + 200);
        assert_eq!(show(&client.call(&command)), "+QUEUED");
    }
    client.expect("EXEC", "[*");
    wait_until("another full synchronisation", || {
        let mut client = primary.client();
        (client.info_number("sync_full") > syncs).then_some(())
    });
    wait_until("the link to be up", || (replica.client().info("master_link_status") == "up").then_some(()));
    replica.wait_synced(&primary);
    assert_eq!(client.info_number("sync_partial_ok"), before);
    assert_same(&snapshot(&mut replica.client()), &snapshot(&mut primary.client()));
    assert_loads_directly(&replica);
}
