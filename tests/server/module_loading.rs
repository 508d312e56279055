//! Tests loading the module into servers that do not suit it: with RedisBloom, or too old.

use std::path::Path;

use crate::neighbour::neighbour;
use rollcall_testkit::{Server, Setup, module_path, optional_file, show};

/// Loads a module into a running server.
fn load(server: &Server, path: &Path, args: &str) -> String {
    let path = path.display().to_string();
    let command: Vec<_> = ["MODULE", "LOAD", &path].into_iter().chain(args.split_whitespace()).collect();
    show(&server.client().call(&command))
}

#[test]
fn loading_twice_is_rejected() {
    let mut server = Server::start();
    assert!(load(&server, &module_path(), "").starts_with("-ERR "));
    assert!(server.log().contains("rollcall: the module is loaded already"), "{}", server.log());
    server.client().expect("LC.ADD k a", "1");
    server.client().expect("BF.ADD f a", "1");
    server.assert_up();
}

/// Panics unless exactly one line of the module in `log` mentions `commands lc`.
#[track_caller]
fn assert_one_line_names_the_way_out(log: &str) {
    let lines: Vec<_> = log.lines().filter(|line| line.contains("commands lc")).collect();
    assert!(lines.len() == 1 && lines[0].contains("commands beside"), "{log}");
    assert!(!log.contains("crashed"), "{log}");
}

#[test]
fn beside_redisbloom_only_the_counters_load() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let log = Setup::default().module_before(&peer).try_start().err().expect("it does not start");
    assert_one_line_names_the_way_out(&log);

    let (_server, mut client) = Setup::default().module_before(&peer).args("commands lc").start().with_client();
    client.expect("LC.ADD c a", "1");
    client.expect("BF.ADD f a", "1");
    client.expect("BF.CLEAR f", "-ERR unknown command *");
}

#[test]
fn a_running_server_with_redisbloom_loads_counters_alone() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let mut server = Setup::default().module_before(&peer).without_module().start();
    assert!(load(&server, &module_path(), "").starts_with("-ERR "));
    assert_one_line_names_the_way_out(&server.log());
    // The failed load has left nothing behind that prevents another load.
    server.client().expect("LC.ADD c a", "-ERR unknown command *");
    server.client().expect("BF.ADD f a", "1");
    assert_eq!(load(&server, &module_path(), "commands lc"), "+OK");
    server.client().expect("LC.ADD c a", "1");
    server.assert_up();
}

#[test]
fn a_server_that_is_too_old_rejects_with_a_line() {
    let Some(binary) = optional_file("ROLLCALL_OLD_SERVER") else { return };
    let log = Setup::default().binary(&binary).for_old_server().try_start().err().expect("it does not start");
    let lines: Vec<_> = log.lines().filter(|line| line.contains("rollcall") && line.contains("Redis 7.0")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(!log.contains("crashed"), "{log}");
}

/// A server without this module that never unmaps modules, as on systems where `dlclose` does nothing.
fn server_that_unmaps_nothing() -> Server {
    let server = Setup::default().without_module().start();
    assert_eq!(load(&server, neighbour(), &format!("pin {}", module_path().display())), "+OK");
    server
}

#[test]
fn a_failed_load_leaves_no_data_type_where_nothing_is_unmapped() {
    let mut server = server_that_unmaps_nothing();
    // The test module already has the command BF.ADD. So loading fails after the data type MBbloom-- has been
    // registered.
    assert_eq!(load(&server, neighbour(), "hold bf.add"), "+OK");
    assert!(load(&server, &module_path(), "").starts_with("-ERR "));
    assert_one_line_names_the_way_out(&server.log());
    assert_eq!(load(&server, &module_path(), "commands beside"), "+OK");
    let mut client = server.client();
    client.expect("RF.RESERVE k 0.01 100 LAYOUT classic", "-ERR no classic filter with commands beside*");
    client.expect_each("RF.ADD k a => 1; TYPE k => +RCfilter-; DEBUG RELOAD => +OK; RF.EXISTS k a => 1");
    server.assert_up();
}

#[test]
fn a_failed_load_leaves_no_arguments_where_nothing_is_unmapped() {
    let server = server_that_unmaps_nothing();
    for failing in ["hash-seed 42 nonsense 1", "hash-seed 42 bf-initial-size 7 commands beside bf-layout classic"] {
        assert!(load(&server, &module_path(), failing).starts_with("-ERR "), "{failing}");
    }
    assert_eq!(load(&server, &module_path(), ""), "+OK");
    for (name, value) in [("hash-seed", "0"), ("bf-initial-size", "100"), ("commands", "all"), ("bf-layout", "lines")] {
        assert_eq!(server.config(&server.parameter(name)).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn every_function_that_is_called_unasked_is_asked_for_at_loading() {
    let source = include_str!("../../src/server/api.rs");
    let mut names: Vec<_> = source.split([',', '\n']).map(str::trim).collect();
    names.retain(|name| {
        name.starts_with("RedisModule_") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    assert!(names.len() > 60, "{names:?}");
    let mut server = Setup::default().without_module().start();
    for name in names {
        let reported = load(&server, neighbour(), &format!("host {} lacks {name}", module_path().display()));
        assert!(reported.starts_with("-ERR "), "{name}: {reported}");
        // Without the function for logging, the module cannot report the error.
        let line = format!("rollcall was not loaded: this server lacks {name};");
        assert!(server.log().contains(&line) || name == "RedisModule_Log", "{name}");
        server.client().expect("BF.ADD f a", "-ERR unknown command *");
    }
    server.assert_up();
}

#[test]
fn a_panic_while_loading_rejects_the_load() {
    let mut server = Setup::default().without_module().start();
    // The first of these functions registers a data type, and the last one completes loading.
    for name in ["CreateDataType", "CreateCommand", "RegisterInfoFunc", "SubscribeToServerEvent"] {
        let options = format!("host {} loses RedisModule_{name}", module_path().display());
        assert!(load(&server, neighbour(), &options).starts_with("-ERR "), "{name}");
        server.client().expect("BF.ADD f a", "-ERR unknown command *");
    }
    assert!(server.log().contains("internal error in a command"), "{}", server.log());
    assert_eq!(load(&server, neighbour(), &format!("host {}", module_path().display())), "+OK");
    server.client().expect("BF.ADD f a", "1");
    server.assert_up();
}
