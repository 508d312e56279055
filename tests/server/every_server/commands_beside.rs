//! Tests `commands beside`: the module offers its filters as RF.*, next to RedisBloom's BF.* in the same server. Most
//! tests need the RedisBloom module (`ROLLCALL_PEER`).

use redis::Value;

use crate::beside::{Mode, fill_counters, fill_lines};
use crate::events::{events, subscriber};
use rollcall_testkit::{Server, Setup, error_text, optional_file, rows, show, wait_until};

fn alone() -> Server {
    Server::with_args("commands beside")
}

#[test]
fn both_modules_load_in_either_order() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    for setup in
        [Setup::default().module_before(&peer), Setup::default().line(&format!("loadmodule {}", peer.display()))]
    {
        let (mut server, mut client) = setup.args("commands beside").start().with_client();
        client.expect_each(
            "BF.ADD theirs a => 1; RF.ADD ours a => 1; LC.ADD counted a b => 2; CF.ADD cuckoo a => 1
             TYPE theirs => +MBbloom--; TYPE ours => +RCfilter-; BF.EXISTS theirs a => 1; RF.EXISTS ours a => 1",
        );
        // RedisBloom lacks BF.CLEAR, and this module does not add it in this mode.
        client.expect("BF.CLEAR theirs", "-ERR unknown command *");
        // Neither module accepts the other's values.
        client.expect_each(
            "RF.ADD theirs a => -WRONGTYPE *; RF.MERGE new theirs => -WRONGTYPE *; BF.ADD ours a => -WRONGTYPE *
             COPY ours ours2 => 1; RF.EXISTS ours2 a => 1; DEBUG RELOAD => +OK; RF.MEXISTS ours a b => [1, 0]
             BF.MEXISTS theirs a b => [1, 0]",
        );
        // The filters from before the reload may still wait to be freed.
        wait_until("the filters of before to go", || (client.info("rollcall_filters") == "2").then_some(()));
        server.assert_up();
    }
}

#[test]
fn every_command_of_filters_works_under_its_other_name() {
    for (args, _more) in [("commands beside", ""), ("bf-layout classic", "")] {
        let (_server, mut client) = Server::with_args(args).with_client();
        client.expect_each(
            "RF.RESERVE f 0.01 100 => +OK; RF.INFO f LAYOUT => [\"lines\"]; RF.ADD f a => 1; rf.add f a => 0
             RF.MADD f a b c => [0, 1, 1]; RF.INSERT f NOCREATE ITEMS c d => [0, 1]
             RF.INSERT g CAPACITY 9 SEED 5 LAYOUT lines ITEMS x => [1]; RF.ADMIT f LIMIT 5 ITEMS d e f => [0, 1, -1]
             RF.EXISTS f a => 1; RF.MEXISTS f a z => [1, 0]; RF.CARD f => 5; RF.INFO f ITEMS => [5]
             RF.RESERVE w 0.01 100 WINDOW 40 MANUAL => +OK; RF.ADVANCE w 3 => +OK; RF.INFO w SLICE => [3]
             RF.MERGE m f => +OK; RF.MERGE m missing => +OK; RF.MERGE made missing => +OK
             RF.INFO made LAYOUT => [\"lines\"]; RF.ADD new a => 1; RF.INFO new LAYOUT => [\"lines\"]; RF.CARD m => 5
             RF.CLEAR f => +OK; RF.CARD f => 0; RF.DEBUG g => [\"size:1 *",
        );
        let all = client.chunks("RF", "m");
        client.load_all("RF", "copy", &all);
        assert_eq!(client.digest("copy"), client.digest("m"));
    }
}

#[test]
fn there_are_no_classic_filters_beside_another_module() {
    let (_source, mut other) = Server::start().with_client();
    other.expect("BF.RESERVE classic 0.01 100000 LAYOUT classic", "+OK");
    let classic = other.chunks("BF", "classic");
    let (_server, mut client) = alone().with_client();
    for line in [
        "RF.RESERVE k 0.01 100 LAYOUT classic",
        "RF.INSERT k LAYOUT classic ITEMS a",
        "RF.ADMIT k LIMIT 9 LAYOUT classic ITEMS a",
    ] {
        let error = client.error(line);
        assert!(error.contains("commands beside") && error.contains("layout lines"), "{line}: {error}");
    }
    let error = error_text(&client.load("RF", "k", &classic[0])).expect("an error");
    assert!(error.contains("commands beside"), "{error}");
    client.expect("EXISTS k", "0");
    // RESTORE rejects a payload of a classic filter.
    let payload = other.dump("classic");
    assert!(error_text(&client.restore("k", &payload)).is_some());
    other.expect("BF.RESERVE lines 0.01 100000 LAYOUT lines", "+OK");
    let reply = client.call(&[&b"RF.MERGEDUMP"[..], b"k", &other.dump("lines"), &payload]);
    let error = error_text(&reply).expect("an error");
    assert!(error.starts_with("ERR payload 2: no classic filter with commands beside"), "{error}");
    client.expect("EXISTS k", "0");
}

#[test]
fn the_layout_of_new_filters_is_lines() {
    let line = "bf-layout classic does not go with commands beside";
    for setup in [
        Setup::default().args("commands beside bf-layout classic"),
        Setup::default().args("commands beside").line("rollcall.bf-layout classic"),
        Setup::default().line("rollcall.commands beside").line("rollcall.bf-layout classic"),
    ] {
        let log = setup.try_start().err().expect("rejected");
        assert!(log.contains(line), "{log}");
    }
    let (server, mut client) = alone().with_client();
    client.expect("CONFIG SET rollcall.bf-layout classic", &format!("-*{line}*"));
    client.expect("CONFIG SET rollcall.bf-layout lines", "+OK");
    assert_eq!(server.config("rollcall.bf-layout").as_deref(), Some("lines"));
    // The configuration file overrides the argument, so the mode is `all`.
    let setup = Setup::default().args("commands beside").line("rollcall.commands all");
    let server = setup.line("rollcall.bf-layout classic").start();
    server.client().expect("BF.ADD f a", "1");
    server.client().expect("TYPE f", "+MBbloom--");
}

#[test]
fn the_option_commands_is_immutable_and_rewritten() {
    let (mut server, mut client) = Setup::default().line("rollcall.commands beside").start().with_client();
    assert!(error_text(&client.cmd("CONFIG SET rollcall.commands all")).is_some());
    client.expect("CONFIG REWRITE", "+OK");
    server.restart();
    assert_eq!(server.config("rollcall.commands").as_deref(), Some("beside"));
    server.client().expect("RF.ADD f a", "1");
    server.client().expect("BF.ADD f a", "-ERR unknown command *");
    let log = Setup::default().args("commands besides").try_start().err().expect("rejected");
    assert!(log.contains("expected all, beside or lc, got 'besides'"), "{log}");
}

#[test]
fn events_are_named_after_the_commands_that_are_served() {
    for (args, event) in [("commands beside", "rf."), ("commands all", "bf.")] {
        let server = Setup::default().args(args).line("notify-keyspace-events KEA").start();
        let (mut client, mut subscriber) = (server.client(), subscriber(&server));
        for (command, reported) in rows(
            "RF.RESERVE f 0.01 100 => reserve f; RF.ADD f a => add f; RF.MERGE g f => merge g
             RF.ADMIT f LIMIT 0 ITEMS y => reject f; RF.ADMIT h LIMIT 9 ITEMS x => reserve h
             RF.RESERVE w 0.01 100 WINDOW 40 MANUAL => reserve w; RF.ADVANCE w 3 => advance w",
        ) {
            let events = events(&mut client, &mut subscriber, command);
            assert!(events.contains(&format!("{event}{reported}")), "{args}, {command}: {events:?}");
        }
        let chunk = &client.chunks("RF", "g")[0];
        client.load("RF", "loaded", chunk);
        let reported = events(&mut client, &mut subscriber, "PING");
        assert!(reported.contains(&format!("{event}loadchunk loaded")), "{reported:?}");
    }
}

#[test]
fn counters_alone_reject_filters_of_clients_in_a_line() {
    let (_server, mut client) = Server::with_args("commands lc").with_client();
    for line in ["RF.ADD f a", "RF.EXISTS f a", "RF.RESERVE f 0.01 100", "RF.INFO f", "RF.SCANDUMP f 0"] {
        let error = client.error(line);
        assert!(error.contains("commands lc") && error.contains("commands beside"), "{line}: {error}");
    }
    let error = show(&client.call(&["EVAL", "return redis.call('RF.ADD', KEYS[1], 'a')", "1", "f"]));
    assert!(error.contains("commands lc"), "{error}");
    client.expect("BF.ADD f a", "-ERR unknown command *");
    client.expect("EXISTS f", "0");
    client.expect("LC.ADD c a", "1");
}

#[test]
fn values_that_a_mode_does_not_serve_are_reported() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let reported = |server: &Server| {
        server.module_log().into_iter().filter(|line| line.contains("kept and saved")).collect::<Vec<_>>()
    };
    let (mut server, mut client) = Server::start().with_client();
    fill_lines(&mut client, "BF");
    fill_counters(&mut client);
    client.expect("BF.RESERVE classic 0.01 100000 LAYOUT classic", "+OK");
    let classic = client.chunks("BF", "classic");
    assert_eq!(client.load("BF", "arriving", &classic[0]), Value::Okay);
    let filters = client.list("KEYS *").len() - 4;
    assert_eq!(client.info("rollcall_filters_not_served"), "0");
    server.save();
    server.restart_as(|setup| Mode::Lc.of(setup, &peer));
    assert!(reported(&server).last().is_some_and(|line| line.contains(&format!("{filters} filters are kept"))));
    assert_eq!(server.client().info("rollcall_filters_not_served"), filters.to_string());
    server.restart_as(|setup| Mode::Beside.of(setup, &peer));
    let mut client = server.client();
    assert!(reported(&server).last().is_some_and(|line| line.contains("1 partially loaded classic filter is kept")));
    assert_eq!(client.info("rollcall_filters_not_served"), "1");
    // The partially loaded filter is kept unchanged. Loading can continue on a server that serves classic filters.
    client.expect("TYPE arriving", "+RCfilter-");
    client.expect("RF.INFO arriving", "-ERR filter is still loading: *");
    client.expect("COPY arriving other", "1");
    assert_eq!(client.info("rollcall_filters_not_served"), "2");
    client.expect("DEL other", "1");
    let error = error_text(&client.load("RF", "arriving", &classic[1])).expect("an error");
    assert!(error.contains("commands beside"), "{error}");
    let lines = reported(&server).len();
    server.save();
    server.restart_as(|setup| Mode::All.of(setup, &peer));
    assert_eq!(reported(&server).len(), lines, "nothing is left unserved");
    let mut client = server.client();
    client.load_all("BF", "arriving", &classic[1..]);
    client.expect("TYPE arriving", "+MBbloom--");
    assert_eq!(client.digest("arriving"), client.digest("classic"));
}
