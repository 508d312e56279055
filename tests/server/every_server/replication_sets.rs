//! Tests commands on several windowed counters on a replica whose clock differs from the primary's: each server uses
//! its own clock.

use std::collections::BTreeSet;

use crate::every_server::commands_sets::{card, members};
use crate::every_server::commands_volatile::START;
use rollcall_testkit::{Clock, Pair};

fn set(names: &str) -> BTreeSet<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

/// Ann was added in the slice that begins at second 0, and Ben in the next one. A time span includes the slice in which
/// it begins. If the clock is two slices behind, the present is the last second of the newest slice, second 19.
#[test]
fn spans_run_on_the_clock_of_the_server_that_is_asked() {
    let (here, there) = (Clock::at(START), Clock::at(START));
    let mut pair = Pair::of(here.setup(), there.setup());
    let mut client = pair.primary.client();
    // Members, and slots.
    let keys = [("w", "EXACT 100"), ("slots", "EXACT 0")];
    for (key, exact) in keys {
        client.expect(&format!("LC.INSERT {key} {exact} WINDOW 40 SLICES 4 ITEMS ann"), "1");
    }
    here.pass(10);
    for (key, _) in keys {
        client.expect(&format!("LC.ADD {key} ben"), "1");
    }
    client.expect("LC.ADD plain ann cem", "2");
    let plain = set("ann cem");
    pair.assert_equal("who was seen");
    let mut other = pair.replica.client();
    for (moment, spans) in [
        (-3600_i64, [(1, "ben"), (9, "ben"), (10, "ann ben"), (40, "ann ben")]),
        (11, [(1, "ben"), (2, "ann ben"), (11, "ann ben"), (40, "ann ben")]),
        (21, [(1, ""), (2, "ben"), (11, "ben"), (12, "ann ben")]),
        (50, [(30, ""), (31, "ben"), (39, "ben"), (40, "ben")]),
        (60, [(1, ""), (20, ""), (39, ""), (40, "")]),
    ] {
        there.set(START.saturating_add_signed(moment));
        let whole = match moment {
            ..50 => "ann ben",
            50..60 => "ben",
            _ => "",
        };
        let spans = spans.map(|(seconds, names)| (seconds.to_string(), names));
        for (span, names) in spans.into_iter().chain([("-".to_owned(), whole)]) {
            let (span, seen, all) = (&span, set(names), set(whole));
            for (question, expected) in [
                (format!("UNION 1 w SINCE {span}"), seen.clone()),
                (format!("UNION 2 w plain SINCE {span} -"), &seen | &plain),
                (format!("INTER 2 plain w SINCE - {span}"), &seen & &plain),
                (format!("DIFF 2 plain w SINCE - {span}"), &plain - &seen),
                (format!("DIFF 2 w plain SINCE {span} -"), &seen - &plain),
                (format!("DIFF 2 w w SINCE - {span}"), &all - &seen),
            ] {
                let question = format!("LC.{question}");
                assert_eq!(members(&mut other, &question), expected, "{question} at {moment}");
                let (command, rest) = question.split_at(question.find(' ').expect("a space"));
                let question = format!("{command}CARD{rest}");
                let expected = expected.len() as i64;
                assert_eq!(card(&mut other, &question), (expected, 0.0), "{question} at {moment}");
                let (count, _) = card(&mut other, &question.replace('w', "slots"));
                assert_eq!(count, expected, "{question} of slots at {moment}");
            }
        }
    }
    // The replica's clock is at second 10. Reading has changed nothing.
    client.expect("LC.DIFF 2 w plain SINCE 1 -", "[\"ben\"]");
    client.expect("LC.INTER 2 w plain SINCE 1 -", "[\"ann\"]");
    pair.assert_equal("questions");
    pair.assert_no_errors();
}
