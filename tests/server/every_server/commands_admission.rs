//! Tests BF.ADMIT and LC.ADMIT, which add new items up to a limit in one atomic step.

use crate::effects::sent;
use rollcall_testkit::{Server, Setup, session};

#[test]
fn a_limit_is_kept_in_one_step() {
    session(&[
        ("?.ADMIT k LIMIT 3 ITEMS a b a", "[1, 1, 0]", "[1, 1, 0]"),
        ("?.ADMIT k LIMIT 3 ITEMS b c d c d", "[0, 1, -1, 0, -1]", "[0, 1, -1, 0, -1]"),
        ("?.ADMIT k limit 2 ITEMS a z", "[0, -1]", "[0, -1]"),
        ("?.ADMIT k LIMIT 5 ALL ITEMS a d e f", "[0, -1, -1, -1]", "[0, -1, -1, -1]"),
        ("?.ADMIT k LIMIT 5 ITEMS d", "[1]", "[1]"),
        ("?.ADMIT k ALL LIMIT 5 ITEMS a e e", "[0, 1, 0]", "[0, 1, 0]"),
        ("?.ADMIT k LIMIT 9 DRYRUN ITEMS a x x y", "[0, 1, 0, 1]", "[0, 1, 0, 1]"),
        ("?.ADMIT k LIMIT 6 ALL DRYRUN ITEMS a x x y", "[0, -1, -1, -1]", "[0, -1, -1, -1]"),
        ("?.ADMIT k LIMIT 6 DRYRUN ITEMS a x x y", "[0, 1, 0, -1]", "[0, 1, 0, -1]"),
        ("?.ADMIT k LIMIT 6 ITEMS x", "[1]", "[1]"),
        // A call that admits no item creates no key.
        ("?.ADMIT new LIMIT 0 ITEMS a b", "[-1, -1]", "[-1, -1]"),
        ("?.ADMIT new LIMIT 1 ALL ITEMS a b", "[-1, -1]", "[-1, -1]"),
        ("?.ADMIT new LIMIT 9 DRYRUN EX 100 ITEMS a b", "[1, 1]", "[1, 1]"),
        ("EXISTS new", "0", "0"),
        ("?.ADMIT new LIMIT 9 NOCREATE ITEMS a", "-ERR not found", "-ERR not found"),
        ("?.ADMIT new LIMIT 250 ALL ERROR 0.125 ITEMS a b", "[1, 1]", "[1, 1]"),
        ("?.INFO new ERROR", "[\"0.125\"]", "{*"),
        ("TTL new", "-1", "-1"),
    ]);
}

#[test]
fn a_counter_stays_exact_or_says_why_not() {
    let why = "-ERR counter would hold an estimate: 3 members of 6 bytes are above its BYTES limit of 5: create one \
               with a larger BYTES and LC.MERGE into it, or use a filter's ADMIT";
    let bytes = "-ERR counter would hold an estimate: 2 members of 6 bytes are above its BYTES limit of 5: *";
    let estimates = "-ERR counter holds an estimate: *";
    session(&[
        ("LC.INSERT k EXACT 3 BYTES 5 ITEMS a b", "2", "2"),
        ("LC.ADMIT k LIMIT 3 ITEMS a c234", why, why),
        ("LC.ADMIT k LIMIT 3 DRYRUN ITEMS a c234", why, why),
        ("LC.COUNT k", "2", "2"),
        ("LC.ADMIT k LIMIT 3 ITEMS a c d", "[0, 1, -1]", "[0, 1, -1]"),
        ("LC.ADMIT new LIMIT 9 BYTES 5 ITEMS abc def", bytes, bytes),
        ("EXISTS new", "0", "0"),
        ("LC.ADD k d", "1", "1"),
        ("LC.ADMIT k LIMIT 3 ITEMS a", estimates, estimates),
        ("LC.ADMIT new LIMIT 0 EXACT 0 ITEMS a", estimates, estimates),
        ("EXISTS new", "0", "0"),
    ]);
}

/// A regression test: a limit above the EXACT limit was accepted, and calls failed once the counter was full.
#[test]
fn a_limit_above_the_exact_limit_is_rejected_at_once() {
    let (server, mut client) = Server::start().with_client();
    client.expect("LC.INSERT k EXACT 3 ITEMS a", "1");
    for (command, error) in [
        // The advice for a missing key was to create another counter, and merge into it.
        ("new LIMIT 251", "EXACT limit of 250: give EXACT 251 in each call, or use a filter's ADMIT"),
        ("new LIMIT 251 ALL DRYRUN", "LIMIT 251 is above the counter's EXACT limit of 250: "),
        ("new LIMIT 300 EXACT 299", "LIMIT 300 is above the counter's EXACT limit of 299: "),
        ("new LIMIT 65537 EXACT 65536", "EXACT limit of 65536: use a filter's ADMIT, since EXACT is at most 65536"),
        // The options of a call apply only to a key that it creates.
        ("k LIMIT 4 EXACT 10", "LIMIT 4 is above the counter's EXACT limit of 3: create one with EXACT 4 and"),
    ] {
        let found = client.error(&format!("LC.ADMIT {command} ITEMS a"));
        assert!(found.starts_with("ERR bad limit: LIMIT ") && found.contains(error), "{command}: {found}");
    }
    client.expect("EXISTS new", "0");
    client.expect("LC.COUNT k", "1");
    client.expect("LC.ADMIT k LIMIT 3 ITEMS b", "[1]");
    client.expect("LC.ADMIT new LIMIT 300 EXACT 300 ITEMS a", "[1]");
    server.set_parameter("lc-exact-limit", "2");
    client.expect("LC.ADMIT other LIMIT 3 ITEMS a", "-*LIMIT 3 is above the counter's EXACT limit of 2: *");
    // Filters have no EXACT limit.
    client.expect("BF.ADMIT f LIMIT 9223372036854775807 ITEMS a", "[1]");
}

#[test]
fn bad_terms_are_rejected() {
    let (_server, mut client) = Server::start().with_client();
    for family in ["BF", "LC"] {
        for (options, error) in [
            ("ALL DRYRUN ITEMS a", "ERR option LIMIT is missing"),
            ("LIMIT -1 ITEMS a", "ERR bad limit: expected a whole number from 0 to 2^63 - 1, got '-1'"),
            ("LIMIT 1.5 ITEMS a", "ERR bad limit: expected "),
            ("LIMIT 9223372036854775808 ITEMS a", "ERR bad limit: expected "),
            ("LIMIT 05 ITEMS a", "ERR bad limit: expected "),
            ("LIMIT 5 LIMIT 5 ITEMS a", "ERR option LIMIT is given twice"),
            ("LIMIT 5 ALL all ITEMS a", "ERR option ALL is given twice"),
            ("LIMIT 5 SOME ITEMS a", "ERR unknown option 'SOME': expected LIMIT, ALL, DRYRUN, "),
            ("LIMIT 5 EXAT 1 ITEMS a", "ERR invalid expire time: "),
        ] {
            let line = format!("{family}.ADMIT k {options}");
            client.expect(&line, &format!("-{error}*"));
        }
    }
    // On Redis 8 the error text begins differently.
    let found = client.error("BF.ADMIT k LIMIT 5 CAPACITY 0 ITEMS a");
    assert!(found.contains("apacity") && found.ends_with("got 0"), "{found}");
    client.expect("EXISTS k", "0");
}

#[test]
fn effects_are_sent_and_never_the_admission() {
    let (server, mut client) = Setup::default().line("appendonly yes").line("appendfsync always").start().with_client();
    for (family, add_all, insert) in
        [("BF", "RF.MADD", "RF.INSERT BF CAPACITY 100 "), ("LC", "LC.ADD", "LC.INSERT LC ERROR 0.01 EXACT 250 ")]
    {
        let created =
            sent(&mut client, &server, &format!("{family}.ADMIT {family} LIMIT 2 PXAT 9999999999999 ITEMS a b c"));
        assert_eq!(created.len(), 2, "{created:?}");
        assert!(created[0].starts_with(insert), "{created:?}");
        assert!(created[0].ends_with(" ITEMS a b"), "{created:?}");
        assert_eq!(created[1], format!("PEXPIREAT {family} 9999999999999"));
        let added = sent(&mut client, &server, &format!("{family}.ADMIT {family} LIMIT 4 EX 9 ITEMS x a y z b"));
        assert_eq!(added, [format!("{add_all} {family} x y")]);
        for nothing in ["LIMIT 4 ITEMS a z", "LIMIT 9 DRYRUN ITEMS z", "LIMIT 5 ALL ITEMS z zz"] {
            assert!(sent(&mut client, &server, &format!("{family}.ADMIT {family} {nothing}")).is_empty(), "{nothing}");
        }
    }
    // The expiry option is not replicated if the command created no key.
    assert_eq!(sent(&mut client, &server, "BF.INSERT BF EX 9 ITEMS a new"), ["RF.MADD BF a new"]);
    assert_eq!(sent(&mut client, &server, "LC.INSERT LC EXAT 9999999999 ITEMS a new"), ["LC.ADD LC a new"]);
}
