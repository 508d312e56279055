//! Tests rejected commands: an error of any kind leaves windows unchanged, and nothing is replicated or announced.

use std::collections::BTreeSet;

use crate::effects::{appended, appending};
use crate::events::{events_so_far, subscriber};
use crate::every_server::commands_volatile::START;
use crate::every_server::commands_windows::{FAMILIES, reserve};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{Client, Clock, Server, error_text, show, with_items, words};

/// Keys and the options that create them. The first three have windows that can be merged; the others cannot be merged
/// with any of them.
const KEYS: [(&str, &str); 8] = [
    ("a", "WINDOW 40 SLICES 4"),
    ("b", "WINDOW 40 SLICES 4"),
    ("c", "WINDOW 40 SLICES 4"),
    ("seed", "WINDOW 40 SLICES 4 SEED 7"),
    ("other", "WINDOW 60 SLICES 4"),
    ("manual", "WINDOW 40 SLICES 4 MANUAL"),
    ("plain", ""),
    ("large", "EXPANSION 2000 WINDOW 40 SLICES 1"),
];

/// Everything that a failed command must not change.
#[derive(Debug, PartialEq)]
struct State {
    values: Vec<String>,
    sent: usize,
    changes: String,
}

impl State {
    fn of(client: &mut Client, server: &Server) -> State {
        let values = KEYS.iter().map(|(key, _)| show(&client.cmd(&format!("DUMP {key}")))).collect();
        let changes = client.info("rdb_changes_since_last_save");
        State { values, sent: appended(server).len(), changes }
    }
}

/// A command that may be rejected.
fn line(family: &str, random: &mut Random) -> Vec<String> {
    let mut key = || match random.below(KEYS.len() as u64 + 5) {
        at @ 0..8 => KEYS[at as usize].0,
        8 => "missing",
        9 => "string",
        at => KEYS[at as usize % 3].0,
    };
    let (target, one, two) = (key(), key(), key());
    let line = match random.below(14) {
        0..=2 => format!("{family}.MERGE {target} {one}"),
        3 => format!("{family}.MERGE {target} {one} {two}"),
        4 | 5 => {
            let options = ["", "ALL", "DRYRUN", "ALL DRYRUN"][random.below(4) as usize];
            let items = ["x y", "x y z u v", "x1 x2 x3 x4 x5 x6 x7"][random.below(3) as usize];
            format!("{family}.ADMIT {target} LIMIT {} {options} ITEMS {items}", 2 + random.below(6))
        }
        6 => return with_items(&format!("{family}.ADMIT large LIMIT 100000 ITEMS"), "y", 0..2000),
        7 => format!("{family}.ADVANCE {target} {}", START / 10 + random.below(20) - 10),
        8 => format!("{family}.ADVANCE {target} {} REBASE", START / 10 - 3),
        9 => reserve(family, target, "WINDOW 40 SLICES 4"),
        10 => format!("{family}.INSERT {target} WINDOW 40 SLICES 41 ITEMS x"),
        11 => format!("{family}.INSERT {target} NOCREATE ITEMS i{}", random.below(9)),
        12 => format!("{family}.LOADCHUNK {target} 1 x"),
        _ => format!("{family}.ADD {target} i{}", random.below(9)),
    };
    words(&line).into_iter().map(str::to_owned).collect()
}

#[test]
fn an_error_changes_sends_and_announces_nothing() {
    for family in FAMILIES {
        let clock = Clock::at(START);
        let server = appending(clock.setup().args("max-key-bytes 1048576").line("notify-keyspace-events KEA"));
        let (mut client, mut subscriber) = (server.client(), subscriber(&server));
        let mut random = Random::new(5);
        let mut rejected = BTreeSet::new();
        for _ in 0..10 {
            client.expect("FLUSHALL", "+OK");
            client.expect("SET string x", "+OK");
            for (key, options) in KEYS {
                clock.set(START + 10 * random.below(8));
                let options = match family {
                    "BF" => options.to_owned(),
                    // Counters have no EXPANSION, and a small EXACT limit makes them estimate.
                    _ => format!("EXACT 4 {}", options.trim_start_matches("EXPANSION 2000 ")),
                };
                let capacity = if key == "large" { 1000 } else { 100 };
                let parameters = if family == "BF" { format!("0.01 {capacity}") } else { String::new() };
                client.expect(&format!("{family}.RESERVE {key} {parameters} {options}"), "+OK");
                client.cmd(&format!("{family}.ADD {key} x"));
                if key == "manual" {
                    client.expect(&format!("{family}.ADVANCE manual {}", START / 10 + random.below(3)), "+OK");
                    client.cmd(&format!("{family}.ADD manual y"));
                }
            }
            for _ in 0..30 {
                clock.set(START + 100 + 5 * random.below(24) - 100 * random.below(2));
                let line = line(family, &mut random);
                events_so_far(&mut client, &mut subscriber);
                let before = State::of(&mut client, &server);
                let reply = client.call(&line);
                let Some(error) = error_text(&reply) else { continue };
                let line = line.iter().take(8).cloned().collect::<Vec<_>>().join(" ");
                assert_eq!(State::of(&mut client, &server), before, "{line}: {error}");
                assert_eq!(events_so_far(&mut client, &mut subscriber), [""; 0], "{line}: {error}");
                rejected.insert(error);
            }
        }
        let kinds = ["slice", "seed", "window", "exists", "not found", "WRONGTYPE", "REBASE", "bad data"];
        let own: &[&str] = if family == "BF" { &["max-key-bytes"] } else { &["EXACT"] };
        for kind in kinds.iter().chain(own) {
            assert!(rejected.iter().any(|error| error.contains(kind)), "{family}: none of {kind} in {rejected:?}");
        }
    }
}
