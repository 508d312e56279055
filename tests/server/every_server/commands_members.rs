//! Tests LC.* commands about single members, intersections and standard errors, and LC.CLEAR.

use crate::every_server::commands_sets::card;
use rollcall_testkit::{Server, add_many, field, lines, number, session};

const ESTIMATES: &str =
    "-ERR counter holds an estimate: members are kept only up to its EXACT limit of 2 members and 16384 bytes";

#[test]
fn exact_counters_answer_for_members() {
    session(&[
        ("LC.EXISTS missing a", "0", "#f"),
        ("LC.MEXISTS missing a b", "[0, 0]", "[#f, #f]"),
        ("LC.INSERT k EXACT 2 ITEMS a b", "2", "2"),
        ("LC.EXISTS k a", "1", "#t"),
        ("LC.EXISTS k ''", "0", "#f"),
        ("LC.MEXISTS k b z b", "[1, 0, 1]", "[#t, #f, #t]"),
        ("LC.ADD k c", "1", "1"),
        ("LC.EXISTS k a", ESTIMATES, ESTIMATES),
        ("LC.MEXISTS k a z", ESTIMATES, ESTIMATES),
        ("EXISTS missing", "0", "0"),
    ]);
}

#[test]
fn estimates_and_other_seeds_are_rejected() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.ADD a 1", "1");
    client.expect("LC.INSERT estimate EXACT 2 ITEMS 1 2 3", "3");
    client.expect("LC.DIFF 2 a estimate", ESTIMATES);
    client.expect("LC.DIFF 2 estimate a", ESTIMATES);
    client.expect("LC.INSERT seeded SEED 7 ITEMS 1", "1");
    let digest = client.digest("a");
    for command in ["LC.DIFF 2", "LC.INTERCARD 2", "LC.DIFFCARD 2", "LC.COUNT", "LC.MERGE", "LC.MERGE new"] {
        client.expect(&format!("{command} a seeded"), "-ERR counters differ in seed: 0 and 7");
    }
    client.expect("EXISTS new", "0");
    assert_eq!(client.digest("a"), digest);
}

#[test]
fn intersections_are_exact_or_report_their_error() {
    let (_server, mut client) = Server::start().with_client();
    add_many(&mut client, "LC.ADD a", "x", 0..10_000);
    add_many(&mut client, "LC.ADD b", "x", 6_000..16_000);
    client.expect("LC.INTERCARD 2 a missing", "[0, \"0\"]");
    let (count, error) = card(&mut client, "LC.INTERCARD 2 a b");
    assert!(error > 1.0 && ((count - 4000) as f64).abs() < 4.0 * error, "{count} with an error of {error}");
    for i in 0..9 {
        add_many(&mut client, &format!("LC.ADD many:{i}"), "x", 0..300);
    }
    let keys: Vec<_> = (0..9).map(|i| format!("many:{i}")).collect();
    let error = client.error(&format!("LC.INTERCARD 9 {}", keys.join(" ")));
    assert_eq!(error, "ERR bad number of counters: expected at most 8 that hold estimates, got 9");
    assert!(card(&mut client, &format!("LC.INTERCARD 8 {}", keys[1..].join(" "))).0 > 200);
    // The error once counted the exact counters as one that holds an estimate.
    add_many(&mut client, "LC.ADD few", "x", 0..100);
    client.expect("COPY few fewer", "1");
    let error = client.error(&format!("LC.INTERCARD 10 few fewer {}", keys[1..].join(" ")));
    let expected = "ERR bad number of counters: expected at most 7 that hold estimates beside exact ones, got 8";
    assert_eq!(error, expected);
    assert!(card(&mut client, &format!("LC.INTERCARD 9 few fewer {}", keys[2..].join(" "))).0 > 50);
}

#[test]
fn estimates_are_counts_with_their_errors() {
    let (_server, mut client) = Server::start().with_client();
    // With few members, the error is that of rounding: half a member. This also holds for its share of the count, and
    // for time spans.
    client.expect("LC.RESERVE few ERROR 0.0025 EXACT 10", "+OK");
    client.expect("LC.RESERVE seen ERROR 0.0025 EXACT 10 WINDOW 3600", "+OK");
    for key in ["few", "seen"] {
        add_many(&mut client, &format!("LC.ADD {key}"), "x", 0..100);
        let (count, error) = card(&mut client, &format!("LC.UNIONCARD 1 {key}"));
        let relative = number(&field(&client.cmd(&format!("LC.INFO {key}")), "Standard error"));
        assert_eq!((error, relative), (0.5, 0.5 / count as f64), "{key}");
    }
    client.expect("LC.RESERVE none EXACT 0", "+OK");
    client.expect("LC.UNIONCARD 1 none", "[0, \"0\"]");
    client.expect("LC.INFO none STDERR", "[\"0\"]");
}

#[test]
fn clear_empties_and_makes_exact_again() {
    let (_server, mut client) = Server::start().with_client();
    client.expect("LC.CLEAR missing", "-ERR not found");
    for (options, members) in [("ERROR 0.1 EXACT 5", 3), ("ERROR 0.1 EXACT 5", 900)] {
        client.expect("DEL k", if members == 3 { "0" } else { "1" });
        client.expect(&format!("LC.INSERT k {options} ITEMS x0"), "1");
        add_many(&mut client, "LC.ADD k", "x", 1..members);
        client.expect_each("EXPIRE k 1000 => 1; LC.CLEAR k => +OK; LC.COUNT k => 0; LC.MEMBERS k => []");
        assert!(client.int("TTL k") > 900);
        client.expect("LC.INFO k EXACT", "[5]");
        client.expect_each("LC.INFO k MODE => [\"exact\"]; LC.ADD k a b => 2; LC.CLEAR k => +OK; LC.CLEAR k => +OK");
    }
    client.expect("LC.INSERT never EXACT 0 ITEMS a", "1");
    client.expect("LC.CLEAR never", "+OK");
    client.expect("LC.UNIONCARD 1 never", "[0, \"0\"]");
    client.expect("LC.INFO never MODE", "[\"estimate\"]");
}

/// With a window, an empty counter with EXACT 0 once listed and admitted like an exact one.
#[test]
fn exact_zero_never_is_exact() {
    let (_server, mut client) = Server::start().with_client();
    let estimates =
        "-ERR counter holds an estimate: members are kept only up to its EXACT limit of 0 members and 16384 bytes";
    client.expect("LC.ADD exact x", "1");
    for window in ["", " WINDOW 40"] {
        client.cmd("DEL k");
        client.expect(&format!("LC.ADMIT k LIMIT 0 EXACT 0{window} ITEMS a"), estimates);
        client.expect("EXISTS k", "0");
        client.expect(&format!("LC.RESERVE k EXACT 0{window}"), "+OK");
        for question in lines(
            "LC.MEMBERS k; LC.MEXISTS k a b; LC.REM k a; LC.ADMIT k LIMIT 0 ITEMS a; LC.ADMIT k LIMIT 0 DRYRUN ITEMS a
             LC.UNION 2 exact k; LC.DIFF 2 exact k; LC.INTER 2 k exact",
        ) {
            client.expect(question, estimates);
        }
        client.expect("LC.INFO k MODE", "[\"estimate\"]");
        client.expect("LC.UNIONCARD 2 k exact", "[1, \"0\"]");
    }
}
