//! Tests the option `auto-create`: whether `ADD` and `MADD` create a missing key.

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, show};

/// Commands that add to a missing key without giving its options.
const PLAIN: [&str; 5] = ["BF.ADD k a", "BF.MADD k a b", "RF.ADD k a", "RF.MADD k a b", "LC.ADD k a b"];

/// Panics unless the plain additions reply that the key is missing, and create nothing.
#[track_caller]
fn assert_rejects(client: &mut Client) {
    for line in PLAIN {
        client.expect(line, "-ERR not found");
        client.expect("EXISTS k", "0");
    }
}

#[test]
fn only_commands_that_can_give_options_create_keys() {
    let (_server, mut client) = Server::with_args("auto-create no").with_client();
    assert_rejects(&mut client);
    // Commands in scripts and transactions come from clients, so they are rejected too.
    client.expect_each(
        "EVAL return{redis.pcall('BF.ADD',KEYS[1],'a')} 1 k => [-ERR not found*; MULTI => +OK; LC.ADD k a => +QUEUED
         EXEC => [-ERR not found*; EXISTS k => 0; SET text x => +OK; BF.ADD text a => -WRONGTYPE *",
    );
    for family in ["BF", "RF", "LC"] {
        let reserve =
            if family == "LC" { "LC.RESERVE reserved".into() } else { format!("{family}.RESERVE reserved 0.01 100") };
        client.expect(&reserve, "+OK");
        for line in ["INSERT inserted ITEMS a", "ADMIT admitted LIMIT 5 ITEMS a", "MERGE merged inserted"] {
            let reply = client.cmd(&format!("{family}.{line}"));
            assert!(!matches!(reply, Value::ServerError(_)), "{family}.{line}: {}", show(&reply));
        }
        let chunks = client.chunks(family, "inserted");
        client.load_all(family, "loaded", &chunks);
        let dump = client.dump("inserted");
        let reply = client.restore("restored", &dump);
        assert_eq!(reply, Value::Okay, "{family}");
        for key in ["reserved", "inserted", "admitted", "merged", "loaded", "restored"] {
            client.expect(&format!("EXISTS {key}"), "1");
            // Plain additions to an existing key succeed.
            client.expect(&format!("{family}.ADD {key} new"), "1");
            client.expect(&format!("DEL {key}"), "1");
        }
    }
}

/// A primary that creates keys replicates bare additions, which its replica and its AOF must not reject.
#[test]
fn replicas_and_the_aof_create_always() {
    let mut primary = Setup::default().line("appendonly yes").start();
    let replica = Setup::default().args("auto-create no").line("appendonly yes").start();
    replica.replicate(&primary);
    let mut client = primary.client();
    let keys = ["f", "fm", "r", "rm", "c"];
    for (key, command) in
        keys.iter().zip(["BF.ADD ? a", "BF.MADD ? a b", "RF.ADD ? a", "RF.MADD ? a b", "LC.ADD ? a b"])
    {
        client.cmd(&command.replace('?', key));
    }
    let digests = |server: &Server| keys.map(|key| server.client().digest(key));
    let made = digests(&primary);
    assert!(made.iter().all(|digest| digest.bytes().any(|digit| digit != b'0')), "{made:?}");
    replica.wait_synced(&primary);
    assert_eq!(digests(&replica), made);
    assert_rejects(&mut primary_of(&replica));
    primary.restart_with_args("auto-create no");
    assert_eq!(digests(&primary), made);
    assert_rejects(&mut primary.client());
}

/// Promotes a replica, and returns a connection to it.
fn primary_of(replica: &Server) -> Client {
    let mut client = replica.client();
    client.expect("REPLICAOF NO ONE", "+OK");
    client
}
