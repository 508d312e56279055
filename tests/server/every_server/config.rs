//! Tests the module's options as load-time arguments, by CONFIG SET, and as lines of the configuration file.

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, error_text, field, number, rows, show};

/// An option: its name, its default, and accepted and rejected values.
type Parameter = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const SETTABLE: [Parameter; 10] = [
    (
        "bf-error-rate",
        "0.01",
        &["1e-300", "0.999999999999", "0.05"],
        &["0", "1", "-0.1", "2", "nan", "inf", "1e400", "0.1x", ""],
    ),
    (
        "bf-initial-size",
        "100",
        &["1", "1099511627776", "500"],
        &["0", "-1", "1099511627777", "18446744073709551616", "abc", "1.5", "1e3", "0x10", " 5", "+5", ""],
    ),
    ("bf-expansion-factor", "2", &["0", "32768", "4"], &["-1", "32769", "4294967298", "abc", ""]),
    ("lc-error-rate", "0.01", &["0.0025", "0.25", "0.02"], &["0.0024", "0.251", "0", "-1", "nan", "inf", "abc", ""]),
    ("lc-exact-limit", "250", &["0", "65536", "10"], &["-1", "65537", "4294967298", "abc", ""]),
    ("lc-exact-bytes", "16384", &["1", "1048576", "65536"], &["0", "-1", "1048577", "4294967298", "abc", ""]),
    ("auto-create", "yes", &["no", "yes"], &["maybe", "1", ""]),
    ("huge-pages", "no", &["yes", "no"], &["always", "1", ""]),
    ("bf-layout", "lines", &["classic", "Lines"], &["squares", "line", ""]),
    // The server parses an empty text as 0.
    ("max-key-bytes", "0", &["1048576", "0", "8388608"], &["1048575", "1", "-1", "abc"]),
];

/// Values other than the defaults: the option, the value as it is written, and as it is shown.
const OTHERS: [(&str, &str, &str); 12] = [
    ("bf-error-rate", "0.05", "0.05"),
    ("bf-initial-size", "500", "500"),
    ("bf-expansion-factor", "4", "4"),
    ("lc-error-rate", "0.02", "0.02"),
    ("lc-exact-limit", "10", "10"),
    ("max-key-bytes", "8mb", "8388608"),
    ("huge-pages", "yes", "yes"),
    ("lc-exact-bytes", "64kb", "65536"),
    ("auto-create", "yes", "yes"),
    ("bf-layout", "lines", "lines"),
    ("hash-seed", "18446744073709551615", "18446744073709551615"),
    ("commands", "all", "all"),
];

/// What [`made_now`] reports under [`OTHERS`].
const MADE_UNDER_OTHERS: &str = "0.05 500 4 / 0.02 10";

/// Whether two values of an option are equal. Numbers are compared as numbers, and words in any case.
fn same(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.eq_ignore_ascii_case(b),
    }
}

#[track_caller]
fn assert_is(server: &Server, name: &str, expected: &str) {
    let value = server.config(&server.parameter(name)).unwrap_or_else(|| panic!("no parameter {name}"));
    assert!(same(&value, expected), "{name} is {value} instead of {expected}");
}

fn set(client: &mut Client, server: &Server, name: &str, value: &str) -> Value {
    client.call(&["CONFIG", "SET", &server.parameter(name), value])
}

/// The parameters of a filter and a counter that are created with the defaults: error rate, capacity and expansion of
/// the filter, then error rate and exact limit of the counter.
fn made_now(client: &mut Client) -> String {
    client.cmd("DEL f c");
    client.cmd("BF.ADD f a");
    client.cmd("LC.ADD c a");
    let rate = match client.cmd("BF.INFO f ERROR") {
        Value::Array(items) => number(&items[0]),
        other => panic!("{}", show(&other)),
    };
    let filter = client.cmd("BF.INFO f");
    let counter = client.cmd("LC.INFO c");
    let counter = ["Error rate", "Exact limit"].map(|label| number(&field(&counter, label)));
    let filter = ["Capacity", "Expansion rate"].map(|label| show(&field(&filter, label)));
    format!("{rate} {} {} / {} {}", filter[0], filter[1], counter[0], counter[1])
}

#[track_caller]
fn assert_others(server: &Server) {
    for (name, _, value) in OTHERS {
        assert_is(server, name, value);
    }
    assert_eq!(server.config("rollcall.hash-seed").as_deref(), Some("18446744073709551615"));
    assert_eq!(made_now(&mut server.client()), MADE_UNDER_OTHERS);
}

#[test]
fn defaults_are_those_documented() {
    let server = Server::start();
    for (name, default, ..) in SETTABLE {
        assert_is(&server, name, default);
    }
    assert_is(&server, "hash-seed", "0");
    assert_is(&server, "commands", "all");
    assert_eq!(made_now(&mut server.client()), "0.01 100 2 / 0.01 250");
}

#[test]
fn config_set_takes_what_is_in_range_and_rejects_the_rest() {
    let (mut server, mut client) = Server::start().with_client();
    let mut wrong = Vec::new();
    for (name, _, good, bad) in SETTABLE {
        for value in good {
            let reply = set(&mut client, &server, name, value);
            if reply == Value::Okay {
                assert_is(&server, name, value);
            } else {
                wrong.push(format!("{name} {value:?}: {}", show(&reply)));
            }
        }
        let kept = server.config(&server.parameter(name)).expect("a value");
        for value in bad {
            let reply = set(&mut client, &server, name, value);
            if error_text(&reply).is_none_or(|error| !error.starts_with("ERR ")) {
                wrong.push(format!("{name} {value:?}: {}", show(&reply)));
            }
            assert_is(&server, name, &kept);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.assert_up();
}

#[test]
fn config_set_decides_over_new_keys_only() {
    let (server, mut client) = Server::start().with_client();
    client.expect("BF.ADD old a", "1");
    client.expect("LC.ADD old2 a", "1");
    let before = (client.cmd("BF.INFO old"), client.cmd("LC.INFO old2"));
    for (name, value, _) in &OTHERS[..5] {
        server.set_parameter(name, value);
    }
    assert_eq!(made_now(&mut client), MADE_UNDER_OTHERS);
    assert_eq!((client.cmd("BF.INFO old"), client.cmd("LC.INFO old2")), before);
    // The options of a command override the configuration.
    client.expect("BF.INSERT own CAPACITY 7 ITEMS a", "[1]");
    assert_eq!(show(&field(&client.cmd("BF.INFO own"), "Capacity")), "7");
    server.set_parameter("bf-expansion-factor", "0");
    assert_eq!(made_now(&mut client), "0.05 500 nil / 0.02 10", "no expansion, no scaling");
}

#[test]
fn every_option_is_a_load_time_argument() {
    assert_others(&Server::with_args(&OTHERS.map(|(name, value, _)| format!("{name} {value}")).join(" ")));
}

#[test]
fn bad_load_time_arguments_are_rejected_by_name() {
    for (name, value) in rows(
        "bf-error-rate => 1; bf-error-rate => nan; bf-initial-size => 0; bf-expansion-factor => 32769
         lc-error-rate => 0.3; lc-exact-limit => 65537; lc-exact-bytes => 1048577; auto-create => maybe
         bf-layout => squares; max-key-bytes => 1048575; huge-pages => always; hash-seed => 18446744073709551616
         hash-seed => -1; commands => bf; lc-exact-limit => ",
    ) {
        let log = Setup::default().args(&format!("{name} {value}")).try_start().err().expect("it does not start");
        assert!(log.contains(name), "{name} {value}: {log}");
        assert!(!log.contains("crashed"), "{name} {value}: {log}");
    }
    // A regression test: the last value was taken without a word.
    let log = Setup::default().args("lc-exact-limit 5 LC-EXACT-LIMIT 6").try_start().err().expect("it does not start");
    assert!(log.contains("argument 'LC-EXACT-LIMIT' is given twice"), "{log}");
}

#[test]
fn every_option_is_a_line_of_the_configuration_file() {
    let bare = Server::start().version().has_unprefixed_configs();
    let line = |setup: Setup, (name, value, _): (&str, &str, &str)| match name {
        "bf-error-rate" | "bf-initial-size" | "bf-expansion-factor" if bare => setup.line(&format!("{name} {value}")),
        _ => setup.line(&format!("rollcall.{name} {value}")),
    };
    let server = OTHERS.into_iter().fold(Setup::default(), line).start();
    assert_others(&server);
    assert_eq!(show(&field(&server.client().cmd("LC.INFO c"), "Exact bytes")), "65536");
}

#[test]
fn rewritten_configurations_survive_a_restart() {
    // Some options are load-time arguments, which the rewritten file repeats. A value set later must override them.
    let mut server = Server::with_args("bf-error-rate 0.07 lc-exact-bytes 1234 hash-seed 77");
    for (name, value, _) in &OTHERS[..7] {
        server.set_parameter(name, value);
    }
    server.set_parameter("auto-create", "no");
    server.client().expect("CONFIG REWRITE", "+OK");
    server.restart();
    assert_is(&server, "auto-create", "no");
    assert!(error_text(&server.client().cmd("BF.ADD f a")).is_some());
    server.set_parameter("auto-create", "yes");
    assert_eq!(made_now(&mut server.client()), MADE_UNDER_OTHERS, "{}", server.config_file());
    assert_is(&server, "max-key-bytes", "8388608");
    assert_is(&server, "huge-pages", "yes");
    assert_is(&server, "lc-exact-bytes", "1234");
    assert_is(&server, "hash-seed", "77");
    assert_is(&server, "bf-layout", "lines");
}

#[test]
fn immutable_options_cannot_be_set() {
    let (server, mut client) = Server::with_args("hash-seed 5").with_client();
    for (name, value) in [("hash-seed", "6"), ("commands", "lc")] {
        let reply = set(&mut client, &server, name, value);
        let error = error_text(&reply).unwrap_or_else(|| panic!("{name}: {}", show(&reply)));
        assert!(error.contains("immutable"), "{error}");
    }
    assert_is(&server, "hash-seed", "5");
    assert_is(&server, "commands", "all");
}

#[test]
fn keys_keep_the_seed_they_were_made_under() {
    let (mut server, mut client) = Server::with_args("hash-seed 5").with_client();
    client.cmd("BF.MADD f a b c");
    client.cmd("LC.INSERT c EXACT 0 ITEMS a b c");
    let made = (client.digest("f"), client.digest("c"));
    // A filter with the same seed, set by the option of the command.
    client.cmd("BF.INSERT f2 SEED 5 ITEMS a b c");
    client.cmd("BF.INSERT f3 SEED 6 ITEMS a b c");
    assert_eq!(client.digest("f2"), made.0);
    assert_ne!(client.digest("f3"), made.0);
    server.save();
    server.restart_with_args("hash-seed 9");
    let mut client = server.client();
    assert_eq!((client.digest("f"), client.digest("c")), made);
    client.expect("BF.MADD f a b c", "[0, 0, 0]");
    client.expect("LC.ADD c a b c", "0");
    client.cmd("BF.MADD new a b c");
    assert_ne!(client.digest("new"), made.0, "made under the new seed");
}
