//! Tests the rollback to RedisBloom: classic filters move there by file, by payload, by AOF and by a live replica,
//! while clients write. Needs the RedisBloom module (`ROLLCALL_PEER`).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::every_server::replication_redisbloom::{
    SHAPES, assert_alike, items, load, peer, peer_server, populate, said, with,
};
use rollcall_testkit::{Client, Server, Setup, show, text, wait_until};

fn ours() -> Setup {
    Setup::default().args("bf-layout classic").line("appendonly no")
}

fn type_of(client: &mut Client, key: &str) -> String {
    client.text(&format!("TYPE {key}"))
}

#[test]
fn redisbloom_loads_our_rdb_file() {
    let Some(peer) = peer() else { return };
    let (server, mut client) = ours().start().with_client();
    populate(&mut client);
    server.save();
    let file = std::fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
    let theirs =
        Setup::default().without_module().module_before(&peer).file("dump.rdb", &file).line("appendonly no").start();
    assert_alike(&mut client, &mut theirs.client());
}

#[test]
fn redisbloom_loads_our_aof() {
    let Some(peer) = peer() else { return };
    let (server, mut client) = ours().line("aof-use-rdb-preamble no").start().with_client();
    populate(&mut client);
    client.expect("CONFIG SET appendonly yes", "+OK");
    server.wait_for_aof();
    client.expect("BF.RESERVE after 0.01 50 EXPANSION 4", "+OK");
    client.cmd("BF.INSERT later CAPACITY 10 ERROR 0.1 NONSCALING EXPANSION 3 ITEMS a b c");
    client.cmd("BF.ADD made a");
    // The base file comes first, then the appended commands.
    let all = server.aof(".aof");
    let (_theirs, mut other) = Setup::default()
        .without_module()
        .module_before(&peer)
        .file("appendonly.aof", &all)
        .line("appendonly yes")
        .line("aof-use-rdb-preamble no")
        .start()
        .with_client();
    assert_alike(&mut client, &mut other);
    for key in ["after", "later", "made"] {
        assert!(said(&mut client, key) == said(&mut other, key), "{key}");
    }
}

#[test]
fn redisbloom_follows_us_while_clients_write() {
    let Some(peer) = peer() else { return };
    let (server, theirs) = (ours().start(), peer_server(&peer));
    populate(&mut server.client());
    let (done, written) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = server.client();
            for round in 0.. {
                for (key, _) in SHAPES {
                    writer.call(&with(&["BF.MADD", key], &items(&format!("round:{round}"), 40)));
                }
                writer.cmd(&format!("BF.ADD made:{} {round}", round % 7));
                writer.cmd(&format!("BF.INSERT inserted:{} CAPACITY 20 ERROR 0.02 ITEMS {round} x y", round % 5));
                writer.cmd(&format!("BF.RESERVE reserved:{} 0.01 30 NONSCALING", round % 3));
                written.store(true, Ordering::Relaxed);
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        wait_until("writes", || written.load(Ordering::Relaxed).then_some(()));
        theirs.replicate(&server);
        // After the full synchronisation, the replica receives commands.
        let mut client = server.client();
        let before = client.info_number("total_commands_processed");
        wait_until("more writes", || (client.info_number("total_commands_processed") > before + 200).then_some(()));
        done.store(true, Ordering::Relaxed);
    });
    theirs.wait_synced(&server);
    let (mut one, mut other) = (server.client(), theirs.client());
    assert_alike(&mut one, &mut other);
    let made = (0..7).map(|n| format!("made:{n}")).chain((0..5).map(|n| format!("inserted:{n}")));
    for key in made.chain((0..3).map(|n| format!("reserved:{n}"))) {
        assert!(
            said(&mut one, &key) == said(&mut other, &key),
            "{key}: {}",
            show(&one.cmd(&format!("BF.DEBUG {key}")))
        );
    }
    assert_eq!(other.info_number("total_error_replies"), 0, "{}", other.text("INFO errorstats"));
}

/// A partially loaded classic filter has the type of this module, a complete one RedisBloom's type. The change keeps
/// the time to live and is visible to WATCH. A reload of the partially loaded filter changes nothing.
#[test]
fn a_filter_changes_its_type_when_it_is_complete() {
    let (source, mut client) = ours().start().with_client();
    client.expect("BF.RESERVE src 0.01 1000", "+OK");
    client.call(&with(&["BF.MADD", "src"], &items("item", 900)));
    let dump = crate::every_server::replication_redisbloom::chunks(&mut client, "src");
    // The filter is loaded in pieces, as in a rewritten AOF.
    let bits = &dump[1].1;
    let half = bits.len() / 2;
    let pieces =
        [dump[0].clone(), ((half + 1).to_string(), bits[..half].to_vec()), (dump[1].0.clone(), bits[half..].to_vec())];
    for layout in ["lines", "classic"] {
        let server = Setup::default().args(&format!("bf-layout {layout}")).line("appendonly yes").start();
        let replica = Server::start();
        replica.replicate(&server);
        let (mut client, mut watcher) = (server.client(), server.client());
        load(&mut client, "k", &pieces[..2]);
        assert_eq!(type_of(&mut client, "k"), "RCfilter-");
        client.expect("PEXPIREAT k 99999999999999", "1");
        client.expect("DEBUG RELOAD", "+OK");
        assert_eq!(type_of(&mut client, "k"), "RCfilter-");
        client.expect("BF.EXISTS k a", "-*still loading*");
        watcher.expect("WATCH k", "+OK");
        load(&mut client, "k", &pieces[2..]);
        watcher.expect("MULTI", "+OK");
        watcher.expect("GET k", "+QUEUED");
        watcher.expect("EXEC", "nil");
        assert_eq!(type_of(&mut client, "k"), "MBbloom--");
        client.expect("PEXPIRETIME k", "99999999999999");
        client.expect("BF.CARD k", &source.client().int("BF.CARD src").to_string());
        client.expect("DEBUG RELOAD", "+OK");
        // Compares chunks, because digests include the time to live.
        assert!(crate::every_server::replication_redisbloom::chunks(&mut client, "k") == dump);
        replica.wait_synced(&server);
        assert_eq!(replica.client().digest("k"), client.digest("k"));
        assert_eq!(type_of(&mut replica.client(), "k"), "MBbloom--");
        assert_eq!(replica.client().int("PEXPIRETIME k"), 99999999999999);
        server.rewrite_aof();
        client.expect("DEBUG LOADAOF", "+OK");
        assert_eq!((type_of(&mut client, "k"), client.int("PEXPIRETIME k")), ("MBbloom--".into(), 99999999999999));
        assert_eq!(text(&client.list("BF.INFO k LAYOUT")[0]), "classic");
        // A filter in the layout `lines` never has RedisBloom's type.
        client.expect("BF.RESERVE l 0.01 10 LAYOUT lines", "+OK");
        assert_eq!(type_of(&mut client, "l"), "RCfilter-");
    }
}
