//! Tests the options of INSERT and ADMIT on a key that exists: those that say how a key forgets must be the key's own.

use crate::effects::{appended, appending};
use crate::every_server::commands_windows::FAMILIES;
use rollcall_testkit::{Clock, Server, Setup, error_text, show, words};

/// The commands that have options and a key that may exist. `?` stands for the prefix.
const COMMANDS: [&str; 4] = ["?.INSERT k", "?.ADMIT k LIMIT 5", "?.ADMIT k LIMIT 5 DRYRUN", "?.INSERT k NOCREATE"];

#[test]
fn a_window_that_the_key_lacks_is_an_error() {
    const NAME_IT: &str = "put the window in the key's name, or leave";
    let (server, mut client) = appending(Setup::default()).with_client();
    for family in FAMILIES {
        for (created, given, why) in [
            ("WINDOW 6", "WINDOW 60", format!("the key has WINDOW 6, not 60: {NAME_IT} WINDOW out")),
            ("", "WINDOW 60", format!("the key has no window, not WINDOW 60: {NAME_IT} WINDOW out")),
            ("WINDOW 60 SLICES 4", "WINDOW 60 SLICES 5", format!("the key has SLICES 4, not 5: {NAME_IT} SLICES out")),
            ("WINDOW 60", "WINDOW 60 VOLATILE", "not VOLATILE: leave VOLATILE out, or delete the key".to_owned()),
            ("WINDOW 60 MANUAL", "VOLATILE WINDOW 60", "not VOLATILE: leave VOLATILE out".to_owned()),
            ("WINDOW 60", "WINDOW 60 REFRESH", format!("the key has a window without REFRESH: {NAME_IT} REFRESH out")),
        ] {
            if family == "LC" && given.contains("REFRESH") {
                continue;
            }
            client.call(&["DEL", "k"]);
            client.cmd(&format!("{family}.INSERT k {created} ITEMS a"));
            let before = (client.digest("k"), appended(&server).len());
            for command in COMMANDS {
                for item in ["a", "b"] {
                    client.expect(
                        &format!("{} {given} ITEMS {item}", command.replace('?', family)),
                        &format!("-*{why}*"),
                    );
                }
            }
            assert_eq!((client.digest("k"), appended(&server).len()), before, "{family} {created}, {given}");
        }
    }
}

/// What is not given is not compared, slices are compared as creation rounds them, and MANUAL never is: ADVANCE CLOCK
/// may have ended it. Options that typed clients always send stay ignored.
#[test]
fn equal_or_omitted_window_options_are_accepted() {
    let (_server, mut client) = Server::start().with_client();
    for family in FAMILIES {
        let (rounds, to) = if family == "BF" { (60, 33) } else { (200, 128) };
        let seconds = if family == "BF" { 65 } else { 255 };
        for (created, given) in [
            ("WINDOW 60 SLICES 6", vec!["", "WINDOW 60", "WINDOW 60 SLICES 6", "WINDOW 60 MANUAL"]),
            ("WINDOW 60 MANUAL", vec!["WINDOW 60", "WINDOW 60 MANUAL"]),
            ("WINDOW 60 VOLATILE", vec!["WINDOW 60", "WINDOW 60 VOLATILE"]),
            (&format!("WINDOW {seconds} SLICES {rounds}"), vec![&format!("WINDOW {seconds} SLICES {to}")]),
            (&format!("WINDOW {seconds} SLICES {to}"), vec![&format!("WINDOW {seconds} SLICES {rounds}")]),
            ("", vec!["EX 100 ERROR 0.1", "SEED 9"]),
        ] {
            client.call(&["DEL", "k"]);
            client.cmd(&format!("{family}.INSERT k {created} ITEMS a"));
            for given in given {
                for command in COMMANDS {
                    let reply = client.call(&words(&format!("{} {given} ITEMS a", command.replace('?', family))));
                    assert!(error_text(&reply).is_none(), "{family} {created}, {given}: {}", show(&reply));
                }
            }
        }
    }
    for given in ["CAPACITY 7", "EXPANSION 4", "NONSCALING", "ERROR 0.5 CAPACITY 9"] {
        client.call(&["DEL", "k"]);
        client.expect("BF.ADD k a", "1");
        client.expect(&format!("BF.INSERT k {given} ITEMS a"), "[0]");
    }
    client.cmd("BF.INSERT refreshed WINDOW 60 REFRESH ITEMS a");
    client.expect("BF.INSERT refreshed WINDOW 60 REFRESH ITEMS a", "[0]");
    client.expect("BF.INSERT refreshed WINDOW 60 ITEMS a", "[0]");
}

/// A wrong type is reported first. A key that has expired is created with the options, and not compared.
#[test]
fn a_missing_key_is_created_and_not_compared() {
    let clock = Clock::at(1_700_000_000);
    let (_server, mut client) = clock.setup().start().with_client();
    client.expect("SET string x", "+OK");
    for family in FAMILIES {
        let error = client.error(&format!("{family}.INSERT string WINDOW 60 ITEMS a"));
        assert!(error.starts_with("WRONGTYPE"), "{error}");
        client.cmd(&format!("{family}.INSERT {family} WINDOW 8 VOLATILE ITEMS a"));
        client.error(&format!("{family}.INSERT {family} WINDOW 60 ITEMS a"));
        clock.pass(60);
        client.cmd(&format!("{family}.INSERT {family} WINDOW 60 SLICES 4 ITEMS a"));
        assert_eq!(client.int_of(&format!("{family}.INFO {family} WINDOW")), 60);
    }
}
