//! Tests the questions that slices answer: what was added in the last seconds, how many more items a limit admits and
//! when, and how long ago each member was last used.

use redis::Value;

use crate::every_server::commands_volatile::START;
use crate::every_server::commands_windows::FAMILIES;
use rollcall_testkit::{Clock, Server, session, show, text};

#[test]
fn a_query_covers_a_span() {
    let clock = Clock::at(START);
    let (server, mut client) = clock.setup().start().with_client();
    for family in FAMILIES {
        clock.set(START);
        client.cmd(&format!("{family}.INSERT {family} WINDOW 40 SLICES 4 ITEMS a"));
        clock.pass(25);
        client.cmd(&format!("{family}.ADD {family} b"));
        // A counter renews a member. A filter without REFRESH knows the add that was answered 1.
        client.cmd(&format!("{family}.ADD {family} a"));
        clock.pass(10);
        let renewed = if family == "LC" { 1 } else { 0 };
        for (since, expected) in [
            ("", "[1, 1, 0]".to_owned()),
            ("SINCE 40", "[1, 1, 0]".to_owned()),
            ("since 15", format!("[{renewed}, 1, 0]")),
            ("SINCE 6", format!("[{renewed}, 1, 0]")),
            ("SINCE 5", "[0, 0, 0]".to_owned()),
            ("SINCE 1", "[0, 0, 0]".to_owned()),
        ] {
            client.expect(&format!("{family}.QUERY {family} {since} ITEMS a b c"), &expected);
        }
        client.expect(&format!("{family}.QUERY missing SINCE 40 ITEMS a b"), "[0, 0]");
        client.cmd(&format!("{family}.INSERT plain{family} ITEMS a"));
        client.expect(&format!("{family}.QUERY plain{family} ITEMS a b"), "[1, 0]");
        let of_window = |got: &str| format!("a whole number from 1 to those of the key's window, got '{got}'");
        let kind = if family == "BF" { "filter" } else { "counter" };
        for (rest, why) in [
            (format!("plain{family} SINCE 5 ITEMS a"), format!("the {kind} 'plain{family}' has no window of time")),
            (format!("{family} SINCE 0 ITEMS a"), of_window("0")),
            // A mistake is found before the first key is made.
            ("missing SINCE 0 ITEMS a".to_owned(), of_window("0")),
            ("missing SINCE -5 ITEMS a".to_owned(), of_window("-5")),
            (format!("{family} SINCE 41 ITEMS a"), "expected from 1 to 40, its window, got 41".to_owned()),
            (format!("{family} SINCE x ITEMS a"), "bad seconds: expected a whole number".to_owned()),
            (format!("{family} SINCE 5 SINCE 5 ITEMS a"), "SINCE is given twice".to_owned()),
            (format!("{family} a b"), "unknown option 'a': expected SINCE".to_owned()),
            (format!("{family} SINCE 5 ITEMS"), "wrong number of arguments".to_owned()),
        ] {
            client.expect(&format!("{family}.QUERY {rest}"), &format!("-*{why}*"));
        }
    }
    client.expect("LC.INSERT estimate EXACT 0 ITEMS a", "1");
    client.expect("LC.QUERY estimate ITEMS a", "-*counter holds an estimate*");
    client.expect("SET string x", "+OK");
    client.expect("BF.QUERY string ITEMS a", "-WRONGTYPE*");
    let mut resp3 = server.client().resp3();
    resp3.expect("BF.QUERY plainBF ITEMS a b", "[#t, #f]");
    resp3.expect("LC.QUERY plainLC ITEMS a b", "[#t, #f]");
}

#[test]
fn a_rejection_says_when_there_is_room() {
    let clock = Clock::at(START);
    let (_server, mut client) = clock.setup().start().with_client();
    for family in FAMILIES {
        clock.set(START + 3);
        let admit = |rest: &str| format!("{family}.ADMIT {family} LIMIT 3 WITHROOM {rest}");
        // Ann's and Ben's slice expires five slices after it began, Cy's two slices later.
        client.expect(&admit("WINDOW 40 SLICES 4 ITEMS ann ben"), "[[1, 1], 1, 0]");
        clock.pass(20);
        client.expect(&admit("DRYRUN ITEMS cy"), "[[1], 0, 27]");
        client.expect(&admit("ITEMS cy"), "[[1], 0, 27]");
        client.expect(&admit("ITEMS dan"), "[[-1], 0, 27]");
        client.expect(&admit("ALL ITEMS dan eve"), "[[-1, -1], 0, 27]");
        client.expect(&admit("ALL ITEMS dan eve fay"), "[[-1, -1, -1], 0, 47]");
        client.expect(&admit("ALL ITEMS dan eve fay gil"), "[[-1, -1, -1, -1], 0, -1]");
        client.expect(&format!("{family}.ADMIT {family} LIMIT 0 WITHROOM ITEMS ann dan"), "[[0, -1], 0, -1]");
        clock.pass(26);
        // A counter has just renewed Ann, a filter has not.
        let (one, two) =
            if family == "LC" { ("[[-1], 0, 1]", "[[1], 0, 20]") } else { ("[[-1], 0, 1]", "[[1], 1, 0]") };
        client.expect(&admit("ITEMS dan"), one);
        clock.pass(1);
        client.expect(&admit("ITEMS dan"), two);
    }
}

#[test]
fn without_a_window_room_is_now_or_never() {
    session(&[
        ("?.ADMIT k LIMIT 3 WITHROOM DRYRUN ITEMS a", "[[1], 2, 0]", "[[1], 2, 0]"),
        ("EXISTS k", "0", "0"),
        ("?.ADMIT k LIMIT 0 WITHROOM ITEMS a", "[[-1], 0, -1]", "[[-1], 0, -1]"),
        ("EXISTS k", "0", "0"),
        ("?.ADMIT k LIMIT 3 WITHROOM NOCREATE ITEMS a", "-ERR not found", "-ERR not found"),
        ("?.ADMIT k LIMIT 3 WITHROOM ITEMS a b a", "[[1, 1, 0], 1, 0]", "[[1, 1, 0], 1, 0]"),
        ("?.ADMIT k LIMIT 3 WITHROOM ALL ITEMS c d", "[[-1, -1], 1, -1]", "[[-1, -1], 1, -1]"),
        ("?.ADMIT k LIMIT 3 WITHROOM ITEMS c d", "[[1, -1], 0, -1]", "[[1, -1], 0, -1]"),
        ("?.ADMIT k LIMIT 2 WITHROOM ITEMS c", "[[0], 0, -1]", "[[0], 0, -1]"),
        ("?.ADMIT manual LIMIT 1 WITHROOM WINDOW 40 MANUAL ITEMS a b", "[[1, -1], 0, -1]", "[[1, -1], 0, -1]"),
        ("?.ADMIT new LIMIT 2 WITHROOM WINDOW 8 SLICES 1 VOLATILE ITEMS a", "[[1], 1, 0]", "[[1], 1, 0]"),
    ]);
    let (_server, mut client) = Server::start().with_client();
    client.expect("BF.ADMIT f LIMIT 100 WITHROOM CAPACITY 2 NONSCALING ITEMS a", "[[1], 1, 0]");
    client.expect("BF.ADMIT f LIMIT 100 WITHROOM DRYRUN ITEMS b", "[[1], 0, -1]");
    client.expect("BF.ADMIT f LIMIT 100 WITHROOM ITEMS b c", "[[1, -1], 0, -1]");
}

#[test]
fn members_come_with_their_ages() {
    let clock = Clock::at(START + 4);
    let (server, mut client) = clock.setup().start().with_client();
    client.cmd("LC.INSERT k WINDOW 40 SLICES 4 ITEMS ann ben");
    clock.pass(11);
    client.cmd("LC.ADD k cy ann");
    clock.pass(10);
    client.cmd("LC.ADD k dan");
    let members = |reply: &Value| -> Vec<(String, i64)> {
        let Value::Array(flat) = reply else { panic!("{}", show(reply)) };
        let pair = |pair: &[Value]| match pair {
            [member, Value::Int(age)] => (text(member), *age),
            other => panic!("{other:?}"),
        };
        flat.chunks(2).map(pair).collect()
    };
    let mut all = members(&client.cmd("LC.MEMBERS k WITHAGES"));
    assert!(all.is_sorted_by(|(_, one), (_, next)| one >= next), "{all:?}");
    all.sort();
    let expected = [("ann", 15), ("ben", 25), ("cy", 15), ("dan", 5)].map(|(name, age)| (name.to_owned(), age));
    assert_eq!(all, expected);
    let mut recent = members(&client.cmd("LC.MEMBERS k WITHAGES SINCE 10"));
    recent.sort();
    assert_eq!(recent, [("ann".to_owned(), 15), ("cy".to_owned(), 15), ("dan".to_owned(), 5)]);
    assert_eq!(members(&client.cmd("LC.MEMBERS k SINCE 5 WITHAGES")), [("dan".to_owned(), 5)]);
    server.client().resp3().expect("LC.MEMBERS k SINCE 5 WITHAGES", "[[\"dan\", 5]]");
    client.expect("LC.MEMBERS missing WITHAGES", "[]");
    client.expect("LC.ADD plain a", "1");
    let error = client.error("LC.MEMBERS plain WITHAGES");
    assert!(error.contains("the counter 'plain' has no window of time: leave WITHAGES out"), "{error}");
    client.expect("LC.MEMBERS k AGES", "-*unknown option 'AGES': expected SINCE, WITHAGES*");
    client.cmd("LC.INSERT estimate EXACT 0 WINDOW 40 ITEMS a");
    client.expect("LC.MEMBERS estimate WITHAGES", "-*counter holds an estimate*");
    // The clock of one server may be behind. No age is below 0.
    clock.set(START + 18);
    assert!(members(&client.cmd("LC.MEMBERS k WITHAGES")).iter().any(|(name, age)| name == "dan" && *age == 0));
}

/// Reads and dry runs in scripts, transactions and on replicas.
#[test]
fn queries_run_in_scripts_transactions_and_replicas() {
    let (server, mut client) = Server::start().with_client();
    client.cmd("LC.INSERT c WINDOW 1099511627776 ITEMS a b");
    client.cmd("BF.INSERT f WINDOW 1099511627776 ITEMS a b");
    let mut script = |body: &str, reply: &str| {
        assert_eq!(show(&client.call(&["EVAL", body, "0"])), reply, "{body}");
    };
    script("return redis.call('BF.QUERY', 'f', 'SINCE', '9', 'ITEMS', 'a', 'c')", "[1, 0]");
    script("return redis.call('LC.QUERY', 'c', 'ITEMS', 'a', 'c')", "[1, 0]");
    script("return #redis.call('LC.MEMBERS', 'c', 'WITHAGES')", "4");
    script("return redis.call('LC.ADMIT', 'c', 'LIMIT', '4', 'WITHROOM', 'ITEMS', 'a', 'd')", "[[0, 1], 1, 0]");
    client.cmd("MULTI");
    for line in ["LC.QUERY c SINCE 9 ITEMS a", "BF.QUERY f ITEMS z"] {
        client.expect(line, "+QUEUED");
    }
    client.expect("EXEC", "[[1], [0]]");
    let replica = Server::start();
    replica.replicate(&server);
    let mut reader = replica.client();
    for line in ["LC.QUERY c SINCE 9 ITEMS a d z", "BF.QUERY f SINCE 9 ITEMS a z", "LC.QUERY c ITEMS a d"] {
        assert_eq!(show(&reader.cmd(line)), show(&client.cmd(line)), "{line}");
    }
    assert_eq!(reader.list("LC.MEMBERS c WITHAGES").len(), 6);
    reader.expect("LC.ADMIT c LIMIT 3 DRYRUN WITHROOM ITEMS a", "-READONLY*");
}
