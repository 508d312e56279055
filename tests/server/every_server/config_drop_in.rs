//! Tests options of the modules that this one replaces: RedisBloom's load-time arguments, and the `bf-*` and `cf-*`
//! lines of Redis 8. Options of valkey-bloom are rejected, with an error that names them.

use std::path::Path;

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, error_text, lines, module_path, optional_file, show};

/// Load-time arguments that RedisBloom 2.8 accepts, each with the resulting default error rate, capacity and expansion.
const LINES: [(&str, &str); 10] = [
    ("", "0.01 100 2"),
    ("ERROR_RATE 0.02", "0.02 100 2"),
    ("error_rate 0.02", "0.02 100 2"),
    ("Error_Rate 1e-3 Initial_Size 55", "0.001 55 2"),
    ("INITIAL_SIZE 1099511627776", "0.01 1099511627776 2"),
    ("CF_MAX_EXPANSIONS 8", "0.01 100 2"),
    ("cf_max_expansions 99999999999", "0.01 100 2"),
    ("ERROR_RATE 0.02 INITIAL_SIZE 200 CF_MAX_EXPANSIONS 8", "0.02 200 2"),
    // If an argument is repeated, the last one counts.
    ("ERROR_RATE 0.02 ERROR_RATE 0.03", "0.03 100 2"),
    // Tools that inspect a module load it with an empty argument.
    ("\"\"", "0.01 100 2"),
];

/// Load-time arguments that RedisBloom 2.8 rejects.
const REJECTED: &str =
    "ERROR_RATE; ERROR_RATE 0; ERROR_RATE 1; ERROR_RATE -0.1; ERROR_RATE nan; ERROR_RATE abc; INITIAL_SIZE
     INITIAL_SIZE 0; INITIAL_SIZE -1; INITIAL_SIZE abc; INITIAL_SIZE 1.5; INITIAL_SIZE 1e3; INITIAL_SIZE +5
     INITIAL_SIZE 9223372036854775808; CF_MAX_EXPANSIONS; EXPANSION 4; FOO bar; ERROR_RATE 0.02 FOO bar";

/// The defaults of new filters (error rate, capacity and expansion), from `CONFIG GET`.
fn defaults(server: &Server) -> String {
    let value = |name: &str| server.config(&server.parameter(name)).expect("an option");
    format!("{} {} {}", value("bf-error-rate"), value("bf-initial-size"), value("bf-expansion-factor"))
}

fn module_command(client: &mut Client, command: &str, path: &Path, rest: &str) -> String {
    let path = path.display().to_string();
    let words: Vec<_> = ["MODULE", command, &path].into_iter().chain(rest.split_whitespace()).collect();
    show(&client.call(&words))
}

#[test]
fn every_line_that_redisbloom_takes_is_taken() {
    for (line, expected) in LINES {
        let server = Setup::default().args(line).start();
        assert_eq!(defaults(&server), expected, "loadmodule with {line}");
    }
    for (line, expected) in LINES {
        let line = line.trim_matches('"');
        let (server, mut client) = Setup::default().without_module().start().with_client();
        assert_eq!(module_command(&mut client, "LOAD", &module_path(), line), "+OK", "{line}");
        assert_eq!(defaults(&server), expected, "MODULE LOAD with {line}");
        let (server, mut client) = Setup::default().without_module().start().with_client();
        let line = if line.is_empty() { String::new() } else { format!("ARGS {line}") };
        assert_eq!(module_command(&mut client, "LOADEX", &module_path(), &line), "+OK", "{line}");
        assert_eq!(defaults(&server), expected, "MODULE LOADEX with {line}");
    }
}

#[test]
fn filters_are_made_by_redisblooms_arguments_as_there() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    for (line, _) in LINES {
        // RedisBloom creates a filter for 2^40 items without checking the memory.
        if line.contains("1099511627776") {
            continue;
        }
        let theirs = Setup::default().without_module().line(&format!("loadmodule {} {line}", peer.display())).start();
        let ours = Setup::default().args(&format!("{line} bf-layout classic").replace("\"\"", "")).start();
        let (mut one, mut other) = (ours.client(), theirs.client());
        for client in [&mut one, &mut other] {
            client.expect("BF.ADD made a", "1");
        }
        assert_eq!(one.cmd("BF.DEBUG made"), other.cmd("BF.DEBUG made"), "{line}");
        assert_eq!(one.cmd("BF.INFO made"), other.cmd("BF.INFO made"), "{line}");
    }
}

#[test]
fn every_line_that_redisbloom_rejects_is_rejected_by_name() {
    for line in lines(REJECTED) {
        let log = Setup::default().args(line).try_start().err().expect("it does not start");
        let reported: Vec<_> = log.lines().filter(|line| line.contains("rollcall was not loaded")).collect();
        let name = line.split_whitespace().rev().find(|word| word.contains(char::is_uppercase)).expect("a name");
        assert!(reported.len() == 1 && reported[0].contains(&format!("argument '{name}'")), "{line}: {log}");
    }
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let (server, mut client) = Setup::default().without_module().start().with_client();
    for line in lines(REJECTED) {
        assert!(module_command(&mut client, "LOAD", &peer, line).starts_with("-ERR "), "{line}");
        assert!(module_command(&mut client, "LOAD", &module_path(), line).starts_with("-ERR "), "{line}");
    }
    // The rejected load has left nothing behind.
    assert_eq!(module_command(&mut client, "LOAD", &module_path(), ""), "+OK");
    assert_eq!(defaults(&server), "0.01 100 2");
}

#[test]
fn a_line_of_the_configuration_goes_over_an_argument() {
    let name = |server: &Server| server.parameter("bf-error-rate");
    let server = Setup::default().without_module().start();
    let option = name(&server);
    let load = format!("CONFIG {option} 0.02 ARGS ERROR_RATE 0.03 INITIAL_SIZE 55");
    assert_eq!(module_command(&mut server.client(), "LOADEX", &module_path(), &load), "+OK");
    assert_eq!(defaults(&server), "0.02 55 2");
    // RedisBloom's arguments in the configuration file. A value that CONFIG SET and CONFIG REWRITE stored overrides
    // them.
    let mut server = Setup::default().args("ERROR_RATE 0.03 INITIAL_SIZE 55").line(&format!("{option} 0.02")).start();
    assert_eq!(defaults(&server), "0.02 55 2");
    server.set_parameter("bf-initial-size", "66");
    assert_eq!(defaults(&server), "0.02 66 2");
    server.client().expect("CONFIG REWRITE", "+OK");
    server.restart();
    assert_eq!(defaults(&server), "0.02 66 2", "{}", server.config_file());
    server.set_parameter("bf-initial-size", "77");
    server.restart();
    assert_eq!(defaults(&server), "0.02 66 2", "not written down");
}

#[test]
fn errors_begin_as_those_of_redis_8() {
    let (server, mut client) = Server::start().with_client();
    for (name, value, why) in [
        ("bf-error-rate", "0", "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
        ("bf-error-rate", "1.0", "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
        ("bf-error-rate", "x", "Invalid value for `bf-error-rate`: expected a number, got 'x'"),
        ("bf-initial-size", "0", "Value for `bf-initial-size` must be in the range [1, 1099511627776]"),
        ("bf-initial-size", "1.5", "Invalid value for `bf-initial-size`: expected a whole number, got '1.5'"),
        ("bf-expansion-factor", "-1", "Value for `bf-expansion-factor` must be in the range [0, 32768]"),
        ("bf-expansion-factor", "32769", "Value for `bf-expansion-factor` must be in the range [0, 32768]"),
        ("bf-expansion-factor", "", "Invalid value for `bf-expansion-factor`: expected a whole number, got ''"),
    ] {
        let option = server.parameter(name);
        let reply = client.call(&["CONFIG", "SET", &option, value]);
        let expected = format!("ERR CONFIG SET failed (possibly related to argument '{option}') - {why}");
        assert_eq!(error_text(&reply), Some(expected), "{name} {value}");
    }
    assert_eq!(defaults(&server), "0.01 100 2");
}

/// Lines from the redis.conf of Redis 8.
const REDIS_8: &str =
    "bf-error-rate 0.02; bf-initial-size 200; bf-expansion-factor 4; cf-initial-size 2048; cf-bucket-size 2
     cf-max-iterations 30; cf-expansion-factor 2; cf-max-expansions 64";

#[test]
fn a_configuration_of_redis_8_serves_as_it_is() {
    if !Server::start().version().has_unprefixed_configs() {
        // A server ends at such a line before it loads modules, because it does not know the option.
        for line in ["bf-error-rate 0.02", "cf-max-expansions 64"] {
            assert!(Setup::default().line(line).try_start().is_err(), "{line}");
        }
        // The module does not register names that the server rejects.
        let server = Server::start();
        assert!(!server.log().contains("Invalid character"), "{}", server.log());
        return;
    }
    let mut server = lines(REDIS_8).iter().fold(Setup::default(), |setup, line| setup.line(line)).start();
    assert_eq!(defaults(&server), "0.02 200 4");
    for line in lines(REDIS_8) {
        let (name, value) = line.split_once(' ').expect("a value");
        assert_eq!(server.config(name).as_deref(), Some(value), "{name}");
        // An option without effect is logged once, unless it has its default value.
        let noted = server.module_log().iter().filter(|line| line.contains(&format!("{name} {value} is for"))).count();
        assert_eq!(noted, usize::from(name.starts_with("cf-") && name != "cf-bucket-size"), "{name}");
    }
    let mut client = server.client();
    client.expect("CONFIG SET cf-max-expansions 7 bf-initial-size 300", "+OK");
    client.expect("CONFIG GET cf-max-expansions", "[\"cf-max-expansions\", \"7\"]");
    assert!(server.module_log().last().is_some_and(|line| line.contains("cf-max-expansions 7 is for cuckoo filters")));
    for (name, value) in [("cf-max-expansions", "0"), ("cf-bucket-size", "256"), ("cf-max-iterations", "x")] {
        client.expect(&format!("CONFIG SET {name} {value}"), &format!("-*alue for `{name}`*"));
    }
    client.expect("CONFIG REWRITE", "+OK");
    server.restart();
    assert_eq!(defaults(&server), "0.02 300 4");
    assert_eq!(server.config("cf-max-expansions").as_deref(), Some("7"));
    // Redis 8's option names as load-time arguments, also if the module is loaded later.
    let server = Setup::default().args("bf-error-rate 0.02 bf-initial-size 200 cf-max-expansions 3").start();
    assert_eq!(defaults(&server), "0.02 200 2");
    let server = Setup::default().without_module().start();
    let load = "CONFIG bf-error-rate 0.02 CONFIG cf-max-expansions 3 CONFIG rollcall.bf-initial-size 9";
    assert_eq!(module_command(&mut server.client(), "LOADEX", &module_path(), load), "+OK");
    assert_eq!(defaults(&server), "0.02 9 2");
    assert_eq!(server.config("cf-max-expansions").as_deref(), Some("3"));
}

#[test]
fn the_names_of_redis_8_are_left_to_a_module_with_bf() {
    for args in ["commands lc", "commands beside"] {
        let (_server, mut client) = Server::with_args(args).with_client();
        for name in ["bf-error-rate", "bf-initial-size", "bf-expansion-factor", "cf-max-expansions"] {
            assert_eq!(client.call(&["CONFIG", "GET", name]), Value::Array(Vec::new()), "{name}");
        }
        client.expect("CONFIG GET rollcall.bf-error-rate", "[\"rollcall.bf-error-rate\", \"0.01\"]");
    }
}

/// Options of valkey-bloom, each with the option that the log recommends instead.
const VALKEY_BLOOM: [(&str, &str); 9] = [
    ("bloom-capacity 1000", "use bf-initial-size"),
    ("bloom-fp-rate 0.001", "use bf-error-rate"),
    ("bloom-expansion 4", "use bf-expansion-factor"),
    ("bloom-memory-usage-limit 1024", "use max-key-bytes"),
    ("bloom-use-random-seed no", "use hash-seed"),
    ("bloom-defrag-enabled no", "activedefrag"),
    ("BLOOM-TIGHTENING-RATIO 0.5", "no such option here"),
    ("BF.BLOOM-CAPACITY 1000", "use bf-initial-size"),
    ("ERROR_RATE 0.02 --bf.bloom-capacity 1000", "use bf-initial-size"),
];

#[test]
fn valkey_blooms_arguments_are_rejected_with_what_to_write_instead() {
    for (line, instead) in VALKEY_BLOOM {
        let log = Setup::default().args(line).try_start().err().expect("it does not start");
        let reported: Vec<_> = log.lines().filter(|line| line.contains("rollcall was not loaded")).collect();
        assert_eq!(reported.len(), 1, "{line}: {log}");
        for part in [instead, "valkey-bloom's", "\"Coming from valkey-bloom\" in docs/migrating.md"] {
            assert!(reported[0].contains(part), "{line}: {}", reported[0]);
        }
    }
}

#[test]
fn a_configuration_that_nobody_takes_is_an_error_and_not_the_end() {
    let mut server = Setup::default().without_module().start();
    let version = server.version();
    if version.is_valkey || (version.major, version.minor) == (7, 4) {
        // Valkey 9.1.2 and Redis 7.4.1 end here with any module that has a data type.
        return;
    }
    let redis_7 = version.major == 7;
    let mut client = server.client();
    let load =
        module_command(&mut client, "LOADEX", &module_path(), "CONFIG bf.bloom-capacity 1000 ARGS ERROR_RATE 0.3");
    assert!(load.starts_with("-ERR "), "{load}");
    server.assert_up();
    if redis_7 {
        // Redis 7 cannot unload a module with a data type, so the module stays loaded.
        assert_eq!(defaults(&server), "0.3 100 2");
    } else {
        client.expect("BF.ADD f a", "-ERR unknown command *");
        assert_eq!(module_command(&mut client, "LOADEX", &module_path(), "CONFIG bf-initial-size 7"), "+OK");
        assert_eq!(defaults(&server), "0.01 7 2");
    }
    client.expect("BF.ADD f a", "1");
    client.expect("LC.ADD c a", "1");
}
