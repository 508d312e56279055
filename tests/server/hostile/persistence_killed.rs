//! Kills the child process that saves. The server must keep running with all data, and the next save must succeed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rollcall_testkit::{Client, Server, Setup, add_many, assert_same, populate_without_ttl, snapshot, wait_until};

/// Makes the child wait 30,000 microseconds after each key, so that a save takes more than a second.
const DELAY: &str = "CONFIG SET rdb-key-save-delay 30000";

/// Waits for the child process in which the server saves, and returns its process id.
fn child_of(server: &Server) -> u32 {
    let parent = server.pid().to_string();
    // In /proc, the name of a process is in parentheses, followed by its state and its parent.
    let is_child = |id: &u32| {
        let line = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        line.rsplit(')').next().is_some_and(|rest| rest.split_whitespace().nth(1) == Some(&parent))
    };
    wait_until("a child", || {
        let processes = fs::read_dir("/proc").expect("/proc");
        processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(is_child)
    })
}

fn kill(process: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -9 {process}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -9 {process}");
}

fn wait_no_child(client: &mut Client) {
    wait_until("children to end", || {
        let running = ["rdb_bgsave_in_progress", "aof_rewrite_in_progress"].map(|field| client.info_number(field));
        (running == [0, 0]).then_some(())
    });
}

fn populated(setup: Setup) -> Server {
    let (server, mut client) = setup.start().with_client();
    populate_without_ttl(&mut client);
    client.expect("BF.RESERVE bf:big 0.01 1000000", "+OK");
    add_many(&mut client, "BF.MADD bf:big", "item:", 0..20_000);
    server
}

/// Kills the child at several moments: at the beginning, and between values.
#[test]
fn a_killed_save_costs_nothing_but_the_save() {
    for preamble in ["yes", "no"] {
        let setup = Setup::default().line("appendonly yes").line(&format!("aof-use-rdb-preamble {preamble}"));
        let (mut server, mut client) = populated(setup).with_client();
        server.save();
        let saved = fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
        client.expect(DELAY, "+OK");
        for (command, status) in [("BGSAVE", "rdb_last_bgsave_status"), ("BGREWRITEAOF", "aof_last_bgrewrite_status")] {
            for moment in [0, 50] {
                client.expect(command, "+Background*");
                let child = child_of(&server);
                // Writes during the save are not lost with the child.
                client.expect(&format!("LC.ADD lc:meanwhile {command}{moment}"), "1");
                std::thread::sleep(Duration::from_millis(moment));
                let before = client.text("DEBUG DIGEST");
                kill(child);
                wait_no_child(&mut client);
                assert_eq!(client.info(status), "err", "{command} after {moment} ms");
                assert_eq!(client.text("DEBUG DIGEST"), before, "{command} after {moment} ms");
            }
        }
        assert!(fs::read(server.dir().join("dump.rdb")).expect("the RDB file") == saved, "the RDB file of before");
        client.expect("CONFIG SET rdb-key-save-delay 0", "+OK");
        let before = snapshot(&mut client);
        server.rewrite_aof();
        client.expect("BGSAVE", "+Background*");
        wait_no_child(&mut client);
        assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
        for reload in ["DEBUG RELOAD NOSAVE", "DEBUG LOADAOF"] {
            client.expect(reload, "+OK");
            assert_same(&snapshot(&mut client), &before);
        }
        server.restart();
        assert_same(&snapshot(&mut server.client()), &before);
    }
}

/// The replica loads from disk. A replica that loads from the connection may end for a reason outside this module:
/// before it closes the connection, the primary may send a newline into the middle of a value.
#[test]
fn a_replica_whose_sync_was_killed_gets_everything_with_the_next() {
    for diskless in ["yes", "no"] {
        let mut primary = populated(Setup::default().line(&format!("repl-diskless-sync {diskless}")));
        let replica = Server::start();
        let mut client = primary.client();
        client.expect(DELAY, "+OK");
        replica.client().expect(&format!("REPLICAOF 127.0.0.1 {}", primary.port()), "+OK");
        let child = child_of(&primary);
        client.expect("CONFIG SET rdb-key-save-delay 0", "+OK");
        client.expect("LC.ADD lc:meanwhile a", "1");
        std::thread::sleep(Duration::from_millis(50));
        kill(child);
        wait_until("the replica's link", || (replica.client().info("master_link_status") == "up").then_some(()));
        replica.wait_synced(&primary);
        assert!(client.info_number("sync_full") >= 2, "{}", replica.log());
        assert_same(&snapshot(&mut replica.client()), &snapshot(&mut client));
        primary.assert_up();
    }
}
