//! Restarts one data set with one value of the option `commands` after the other. Every value must stay equal. Needs
//! the RedisBloom module (`ROLLCALL_PEER`).

use crate::beside::{Mode, assert_same_values, fill_classic, fill_counters, fill_lines, values};
use rollcall_testkit::{Server, Setup, add_many, error_text, optional_file, pack};

/// The values of the option, in the order of the restarts.
const WAY: [Mode; 5] = [Mode::Beside, Mode::Lc, Mode::Beside, Mode::All, Mode::Lc];

fn filled(setup: Setup) -> Server {
    let (server, mut client) = setup.start().with_client();
    fill_lines(&mut client, "BF");
    fill_counters(&mut client);
    fill_classic(&mut client, true);
    server
}

#[test]
fn a_data_set_moves_by_rdb_file() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let mut server = filled(Setup::default());
    let before = values(&mut server.client());
    for mode in WAY {
        server.save();
        server.restart_as(|setup| mode.of(setup, &peer));
        assert_same_values(&before, &values(&mut server.client()), &format!("{mode:?}"));
    }
    // After all restarts, every value can still be changed.
    server.save();
    server.restart_as(|setup| Mode::All.of(setup, &peer));
    let mut client = server.client();
    for key in ["default", "chain", "window", "last", "classic", "classics"] {
        add_many(&mut client, &format!("BF.MADD {key}"), "more:", 0..50);
    }
    client.expect("BF.MEXISTS classic item:0 item:89", "[1, 1]");
}

#[test]
fn a_data_set_moves_by_aof() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    for (preamble, rewritten) in [("yes", false), ("yes", true), ("no", true)] {
        let setup = Setup::default().line("appendonly yes").line(&format!("aof-use-rdb-preamble {preamble}"));
        let mut server = filled(setup);
        let mut changes = 0;
        for mode in WAY.into_iter().chain([Mode::All]) {
            if rewritten {
                server.rewrite_aof();
            }
            // The next server also reads commands that are appended now.
            let mut client = server.client();
            changes += 1;
            add_many(&mut client, "BF.MADD classic", &format!("{changes}:"), 0..20);
            add_many(&mut client, "LC.ADD exact", &format!("{changes}:"), 0..5);
            client.cmd(&format!("RF.MADD default {changes}:a {changes}:b"));
            client.cmd(&format!("RF.INSERT made{changes} CAPACITY 7 ITEMS a b"));
            client.cmd(&format!("RF.MERGE left made{changes} right"));
            let before = values(&mut client);
            server.restart_as(|setup| mode.of(setup, &peer));
            let what = format!("{mode:?} {preamble} {rewritten}");
            assert_same_values(&before, &values(&mut server.client()), &what);
        }
        server.client().expect("BF.MEXISTS default item:0 1:a 6:b nothing", "[1, 1, 0, 0]");
    }
}

#[test]
fn a_classic_filter_that_had_not_fully_arrived_is_kept_whole() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let (_source, mut other) = Server::start().with_client();
    other.expect("BF.RESERVE classic 0.01 20000000 LAYOUT classic", "+OK");
    add_many(&mut other, "BF.MADD classic", "item:", 0..3000);
    let all = other.chunks("BF", "classic");
    assert!(all.len() > 2, "{} chunks", all.len());
    for mode in [Mode::Beside, Mode::Lc] {
        let setup = Setup::default().line("appendonly yes").line("aof-use-rdb-preamble yes");
        let (mut server, mut client) = setup.start().with_client();
        client.load_all("BF", "arriving", &all[..2]);
        server.rewrite_aof();
        let before = values(&mut client);
        for preamble in ["yes", "no"] {
            server.restart_as(|setup| mode.of(setup, &peer));
            let mut client = server.client();
            assert_same_values(&before, &values(&mut client), &format!("{mode:?}"));
            client.expect(&format!("CONFIG SET aof-use-rdb-preamble {preamble}"), "+OK");
            server.rewrite_aof();
            server.restart();
            assert_same_values(&before, &values(&mut server.client()), &format!("{mode:?} {preamble}"));
        }
        // The last AOF has the values as commands that every value of the option accepts.
        server.restart_as(|setup| Mode::All.of(setup, &peer));
        let mut client = server.client();
        client.load_all("BF", "arriving", &all[2..]);
        assert_eq!(client.digest("arriving"), other.digest("classic"));
        client.expect("TYPE arriving", "+MBbloom--");
    }
}

#[test]
fn a_whole_classic_filter_under_our_name_is_rejected_and_logged() {
    let (_source, mut other) = Server::start().with_client();
    other.expect("BF.RESERVE classic 0.01 100 LAYOUT classic", "+OK");
    let all = other.chunks("BF", "classic");
    // An AOF with chunks of a classic filter by RF.LOADCHUNK. This module never writes that, but another program
    // could.
    let mut lines: Vec<Vec<&[u8]>> = vec![vec![b"RF.ADD", b"lines", b"a"]];
    lines.extend(
        all.iter()
            .map(|(iterator, chunk)| -> Vec<&[u8]> { vec![b"RF.LOADCHUNK", b"classic", iterator.as_bytes(), chunk] }),
    );
    lines.push(vec![b"RF.RESERVE", b"reserved", b"0.01", b"100", b"LAYOUT", b"classic"]);
    lines.push(vec![b"RF.ADD", b"classic", b"item"]);
    lines.push(vec![b"RF.ADD", b"lines", b"b"]);
    let aof: Vec<u8> = lines.iter().flat_map(|words| pack(words)).collect();
    for args in ["commands beside", "commands lc"] {
        let setup = Setup::default().args(args).line("appendonly yes").line("aof-use-rdb-preamble no");
        let (mut server, mut client) = setup.file("appendonly.aof", &aof).start().with_client();
        let log = server.module_log();
        assert!(
            log.iter().any(|line| line.contains("rejected a chunk for 'classic'") && line.contains(args)),
            "{log:?}"
        );
        client.expect("TYPE classic", "+RCfilter-");
        client.expect("EXISTS reserved", "0");
        if args == "commands beside" {
            client.expect("RF.MEXISTS lines a b c", "[1, 1, 0]");
            assert!(error_text(&client.cmd("RF.ADD classic item")).is_some());
        }
        // The value can be saved and loaded again.
        let before = values(&mut client);
        server.rewrite_aof();
        server.restart();
        assert_same_values(&before, &values(&mut server.client()), args);
        server.assert_up();
    }
}

#[test]
fn a_rewritten_aof_names_each_filter_by_its_layout() {
    let setup = Setup::default().line("appendonly yes").line("aof-use-rdb-preamble no");
    let (server, mut client) = setup.start().with_client();
    client.expect("BF.ADD lines a", "1");
    client.expect("BF.INSERT classic LAYOUT classic ITEMS a", "[1]");
    client.expect("LC.ADD counter a", "1");
    server.rewrite_aof();
    let text = String::from_utf8_lossy(&server.aof(".base.aof")).into_owned();
    for (command, key) in [("RF.LOADCHUNK", "lines"), ("BF.LOADCHUNK", "classic"), ("LC.LOADCHUNK", "counter")] {
        let written = format!("{command}\r\n${}\r\n{key}\r\n", key.len());
        assert!(text.contains(&written), "{command} {key}");
    }
    assert_eq!(text.matches("RF.").count(), 1);
}
