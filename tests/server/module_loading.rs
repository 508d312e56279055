//! Loading the module where it does not fit: beside RedisBloom, on a server that is too old.

use std::path::Path;

use crate::client::show;
use crate::harness::{Server, Setup, module_path, optional_file};

#[test]
fn counters_alone_leave_bloom_commands_out() {
    let server = Server::with_args("commands lc");
    let mut client = server.client();
    client.expect("LC.ADD k a b", "2");
    client.expect("BF.ADD k a", "-ERR unknown command *");
    client.expect("COMMAND INFO bf.add", "[nil]");
    assert_eq!(show(&client.cmd("CONFIG GET rollcall.commands")), "[\"rollcall.commands\", \"lc\"]");
}

#[test]
fn loading_twice_is_refused() {
    let mut server = Server::start();
    let reply = server.client().call(&["MODULE", "LOAD", &module_path().display().to_string()]);
    assert!(show(&reply).starts_with("-ERR "), "{}", show(&reply));
    server.client().expect("LC.ADD k a", "1");
    server.client().expect("BF.ADD f a", "1");
    server.assert_up();
}

/// Panics unless exactly one line of ours in `log` mentions `commands lc`.
#[track_caller]
fn assert_one_line_names_the_way_out(log: &str) {
    let lines: Vec<_> = log.lines().filter(|line| line.contains("commands lc")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(!log.contains("crashed"), "{log}");
}

#[test]
fn beside_redisbloom_only_the_counters_load() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let log = match Setup::default().module_before(&peer).try_start() {
        Ok(_) => panic!("both modules loaded"),
        Err(log) => log,
    };
    assert_one_line_names_the_way_out(&log);

    let server = Setup::default().module_before(&peer).args("commands lc").start();
    let mut client = server.client();
    client.expect("LC.ADD c a", "1");
    client.expect("BF.ADD f a", "1");
    client.expect("BF.CLEAR f", "-ERR unknown command *");
}

#[test]
fn into_a_running_server_beside_redisbloom() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let mut server = Setup::default().module_before(&peer).without_module().start();
    let load = |path: &Path, args: &[&str]| {
        let path = path.display().to_string();
        let command: Vec<_> = ["MODULE", "LOAD", &path].into_iter().chain(args.iter().copied()).collect();
        show(&server.client().call(&command))
    };
    assert!(load(&module_path(), &[]).starts_with("-ERR "));
    assert_one_line_names_the_way_out(&server.log());
    // The failed load left nothing behind that is in the way now.
    server.client().expect("LC.ADD c a", "-ERR unknown command *");
    server.client().expect("BF.ADD f a", "1");
    assert_eq!(load(&module_path(), &["commands", "lc"]), "+OK");
    server.client().expect("LC.ADD c a", "1");
    server.assert_up();
}

#[test]
fn a_server_that_is_too_old_refuses_with_a_line() {
    let Some(binary) = optional_file("ROLLCALL_OLD_SERVER") else { return };
    let log = match Setup::default().binary(&binary).for_old_server().try_start() {
        Ok(_) => panic!("the module loaded"),
        Err(log) => log,
    };
    let lines: Vec<_> = log.lines().filter(|line| line.contains("rollcall") && line.contains("Redis 7.0")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(!log.contains("crashed"), "{log}");
}
