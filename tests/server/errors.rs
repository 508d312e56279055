//! Tests invalid input: the error is clear, nothing is changed, no key is created, and the server keeps running.

use crate::metadata::{COMMANDS, call_at};
use crate::neighbour::hosted;
use rollcall_testkit::{Client, Server, error_text, lines, shorten, show, words};

/// Everything that a failed command must not change: keys, values, and what was replicated.
fn state(client: &mut Client) -> [String; 4] {
    [
        client.text("DEBUG DIGEST"),
        show(&client.cmd("DBSIZE")),
        client.info("rdb_changes_since_last_save"),
        client.info("master_repl_offset"),
    ]
}

/// Creates filters, counters and a string on which the commands fail.
fn furnish(client: &mut Client) {
    client.expect("SET string text", "+OK");
    client.expect_each("BF.MADD bf a b => [1, 1]; BF.MADD bf2 b c => [1, 1]; LC.ADD lc a b => 2; LC.ADD lc2 b c => 2");
}

/// Runs every command, each of which must fail and change nothing. Its error must begin with `prefix`, and contain one
/// of the words that follow the command. The words are separated by `|`, in any case.
#[track_caller]
fn all_fail(server: &mut Server, prefix: &str, cases: &[(Vec<&str>, &str)]) {
    // The replication offset of an attached replica shows every replicated command.
    let replica = Server::start();
    replica.replicate(server);
    let mut client = server.client();
    furnish(&mut client);
    let before = state(&mut client);
    // On Redis 8, some error texts about filters have no error code, and the module uses the same texts.
    let has_bare_texts = server.version().has_unprefixed_configs();
    let begins = |error: &str| error.starts_with(prefix) || has_bare_texts && error.starts_with("Bad ");
    let mut wrong = Vec::new();
    for (command, mentions) in cases {
        let line = shorten(command);
        match client.try_call(command) {
            None => {
                server.assert_up();
                panic!("no reply to {line}");
            }
            Some(reply) => match error_text(&reply) {
                None => wrong.push(format!("{line}: gave {} instead of an error", show(&reply))),
                Some(error) => {
                    let lower = error.to_lowercase();
                    let known = !lower.contains("unknown command");
                    let named = known && mentions.split('|').any(|word| lower.contains(&word.to_lowercase()));
                    if !begins(&error) || !named {
                        wrong.push(format!("{line}: {error:?} should start with {prefix} and name {mentions}"));
                    }
                }
            },
        }
        let after = state(&mut client);
        if after != before {
            wrong.push(format!("{line}: changed {before:?} to {after:?}"));
            break;
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    server.assert_up();
}

#[track_caller]
fn lines_fail(prefix: &str, cases: &[(&str, &str)]) {
    let cases: Vec<_> = cases.iter().map(|(line, mentions)| (words(line), *mentions)).collect();
    all_fail(&mut Server::start(), prefix, &cases);
}

/// The command once for each value, which replaces `?`.
fn with_values<'a>(line: &'a str, values: &[&'a str], mentions: &'a str) -> Vec<(Vec<&'a str>, &'a str)> {
    let place = |value: &'a str| words(line).into_iter().map(|word| if word == "?" { value } else { word }).collect();
    values.iter().map(|value| (place(value), mentions)).collect()
}

/// Calls with the fewest words that a command takes, if it takes more too.
const FEWEST_WORDS: &str =
    "BF.RESERVE new 0.01 100; BF.MADD new a; BF.MEXISTS bf a; BF.INSERT new ITEMS a; BF.ADMIT new LIMIT 5 ITEMS a
     BF.INFO bf; BF.MERGE bf bf2; LC.RESERVE new; LC.ADD new a; LC.INSERT new ITEMS a; LC.ADMIT new LIMIT 5 ITEMS a
     LC.MEXISTS lc a; LC.UNION 1 lc; LC.INTER 1 lc; LC.DIFF 1 lc; LC.UNIONCARD 1 lc; LC.INTERCARD 1 lc
     LC.DIFFCARD 1 lc; LC.REM lc a; LC.COUNT lc; LC.MERGE lc lc2; LC.MEMBERS lc";

/// Calls with as many words as a command takes.
const ALL_WORDS: &str =
    "BF.ADD new a; BF.EXISTS bf a; BF.CARD bf; BF.CLEAR bf; BF.SCANDUMP bf 0; BF.LOADCHUNK new 1 data; BF.DEBUG bf
     LC.EXISTS lc a; LC.COUNTSINCE lc 5; LC.HISTORY lc; LC.CLEAR lc; LC.SCANDUMP lc 0; LC.LOADCHUNK new 1 data";

#[test]
fn wrong_arity() {
    let too_many = lines(
        "BF.ADMIT new LIMIT 5 ALL DRYRUN; LC.ADMIT new LIMIT 5 ALL DRYRUN; BF.INFO bf CAPACITY SIZE; LC.INFO
         LC.INFO lc CAPACITY COUNT",
    );
    let mut cases: Vec<_> = too_many.into_iter().map(words).collect();
    for call in lines(FEWEST_WORDS).into_iter().chain(lines(ALL_WORDS)).map(words) {
        cases.extend((1..call.len()).map(|len| call[..len].to_vec()));
    }
    cases.extend(lines(ALL_WORDS).into_iter().map(|call| [&words(call)[..], &["more"]].concat()));
    let cases: Vec<_> = cases.into_iter().map(|call| (call, "wrong number of arguments")).collect();
    all_fail(&mut Server::start(), "ERR ", &cases);
}

/// Every command rejects keys of another type at each place of a key, whether its other keys exist or not.
#[test]
fn wrong_type() {
    let more = lines(
        "BF.INSERT k NOCREATE ITEMS a; BF.ADMIT k LIMIT 5 DRYRUN NOCREATE ITEMS a; BF.INFO k; BF.LOADCHUNK k 77 data
         LC.INSERT k NOCREATE ITEMS a; LC.ADMIT k LIMIT 5 DRYRUN NOCREATE ITEMS a; LC.LOADCHUNK k 77 data",
    );
    let examples = COMMANDS.iter().filter(|(name, ..)| !name.ends_with(".reserve"));
    let mut cases = Vec::new();
    for (call, keys) in examples.map(|&(_, _, call, keys)| (call, keys)).chain(more.into_iter().map(|call| (call, "k")))
    {
        let (own, foreign) = if call.starts_with("BF") { ("bf", "lc") } else { ("lc", "bf") };
        for (wrong, other) in [("string", own), ("string", "new"), (foreign, own), (foreign, "new")] {
            // A counter without a window has no spans.
            for at in words(keys).iter().filter(|_| other == "new" || !call.contains(" SINCE ")) {
                cases.push((call_at(call, keys, at, wrong, other), ""));
            }
        }
    }
    all_fail(&mut Server::start(), "WRONGTYPE ", &cases);
}

/// The commands that create a key, each with the words at its end, its options, and words that are none of them.
const CREATING: [(&str, &str, &[&str], &[&str]); 4] = [
    (
        "BF.RESERVE new 0.01 100",
        "",
        &["EXPANSION 2", "NONSCALING", "SEED 1", "LAYOUT lines"],
        &["FOO", "EXP 2", "EXPANSIONS 2", "NOCREATE", "CAPACITY 5"],
    ),
    (
        "BF.INSERT new",
        "ITEMS a",
        &["CAPACITY 100", "ERROR 0.1", "EXPANSION 1", "NONSCALING", "SEED 1", "LAYOUT lines", "NOCREATE"],
        &["FOO", "cxyz 100", "CAP 100", "EXACT 5"],
    ),
    (
        "LC.RESERVE new",
        "",
        &["ERROR 0.1", "EXACT 5", "BYTES 9", "SEED 5"],
        &["FOO", "TAIL 9", "ERRORS 0.1", "EXACTLY 5", "EXPANSION 2", "NONSCALING", "LAYOUT lines", "NOCREATE"],
    ),
    (
        "LC.INSERT new",
        "ITEMS a",
        &["ERROR 0.1", "EXACT 1", "BYTES 9", "SEED 5", "NOCREATE"],
        &["FOO", "CAP 100", "EXPANSION 2", "NONSCALING"],
    ),
];

#[test]
fn options_unknown_repeated_or_incomplete() {
    let mut lines = Vec::new();
    for (command, end, options, others) in CREATING {
        for option in options {
            let name = option.split(' ').next().expect("a name");
            lines.push((format!("{command} {option} {} {end}", option.to_lowercase()), name));
            // A missing value is that of the next word, if there is one.
            lines.extend((name != *option).then(|| (format!("{command} {name} {end}"), name)));
        }
        lines.extend(others.iter().map(|other| (format!("{command} {other} {end}"), *other)));
    }
    let lines = lines.iter().map(|(line, mentions)| (line.as_str(), mentions.split(' ').next().expect("a name")));
    let more = [
        ("BF.RESERVE new 0.01 100 LAYOUT squares", "squares|LAYOUT"),
        ("BF.RESERVE new 0.01 100 ''", ""),
        ("BF.INSERT new CAPACITY 100 a b", "'a'|\"a\"| a|ITEMS"),
        ("BF.INSERT new CAPACITY 100", "ITEMS|wrong number"),
        ("BF.INSERT new CAPACITY 100 ITEMS", "ITEMS|wrong number"),
        (
            "BF.INSERT new a b c",
            "'a': expected CAPACITY, ERROR, EXPANSION, NOCREATE, NONSCALING, SEED, LAYOUT, WINDOW, MANUAL, \
             SLICES, REFRESH, VOLATILE, EX, PX, EXAT, PXAT, WIDTH, or ITEMS",
        ),
        ("BF.INSERT bf FOO ITEMS z", "FOO"),
        ("BF.INSERT bf CAPACITY 0 ITEMS z", "CAPACITY"),
        ("BF.INFO bf CAP", "CAP"),
        ("BF.INFO bf ''", ""),
        ("LC.RESERVE new EXACT 99999999999", "between 0 and 65536, got 99999999999"),
        ("LC.RESERVE new EXACT 5 BYTES 4294967297", "got 4294967297"),
        ("LC.INSERT new ITEMS", "ITEMS|wrong number"),
        (
            "LC.INSERT new a b c",
            "'a': expected NOCREATE, ERROR, EXACT, BYTES, SEED, WINDOW, MANUAL, SLICES, VOLATILE, \
             EX, PX, EXAT, PXAT, WIDTH, or ITEMS",
        ),
        ("LC.INSERT lc FOO ITEMS z", "FOO"),
        ("LC.INFO lc FOO", "FOO"),
    ];
    lines_fail("ERR ", &lines.chain(more).collect::<Vec<_>>());
}

/// Words that are not valid numbers.
const NOT_NUMBERS: [&str; 8] = ["abc", "", "nan", "NaN", "inf", "-inf", "1e999", "0.1x"];

#[test]
fn numbers_of_filters() {
    let rate = ["0", "1", "-0.1", "1.5", "2", "-0", "1e-400", "100", "18446744073709551616"];
    // Integers out of range, integers that overflow, and words that are no integers.
    let capacity = ["0", "-1", "1099511627777", "9223372036854775808", "18446744073709551616", "1.5", "1e3", "5 "];
    let expansion = ["-1", "32769", "4294967298", "18446744073709551618", "1.5", "1e1"];
    let seed = ["-1", "18446744073709551616", "1.5"];
    let mut cases = Vec::new();
    for values in [&rate[..], &NOT_NUMBERS] {
        cases.extend(with_values("BF.RESERVE new ? 100", values, "rate"));
        cases.extend(with_values("BF.INSERT new ERROR ? ITEMS a", values, "rate|ERROR "));
        cases.extend(with_values("BF.INSERT bf ERROR ? ITEMS z", values, "rate|ERROR "));
    }
    for values in [&capacity[..], &NOT_NUMBERS] {
        cases.extend(with_values("BF.RESERVE new 0.01 ?", values, "capacity"));
        cases.extend(with_values("BF.INSERT new CAPACITY ? ITEMS a", values, "capacity"));
    }
    for values in [&expansion[..], &NOT_NUMBERS] {
        cases.extend(with_values("BF.RESERVE new 0.01 100 EXPANSION ?", values, "expansion"));
        cases.extend(with_values("BF.INSERT new EXPANSION ? ITEMS a", values, "expansion"));
    }
    for values in [&seed[..], &NOT_NUMBERS] {
        cases.extend(with_values("BF.RESERVE new 0.01 100 SEED ?", values, "seed"));
        cases.extend(with_values("BF.INSERT new SEED ? ITEMS a", values, "seed"));
    }
    all_fail(&mut Server::start(), "ERR ", &cases);
}

#[test]
fn numbers_of_counters() {
    let rate = ["0", "0.0024", "0.2501", "1", "-0.1", "1e-400", "18446744073709551616"];
    let exact = ["-1", "65537", "4294967298", "18446744073709551618", "1.5", "1e1"];
    let bytes = ["0", "-1", "1048577", "4294967298", "18446744073709551618", "1.5", "1kb"];
    let seed = ["-1", "18446744073709551616", "1.5"];
    let mut cases = Vec::new();
    for (name, values, mentions) in [
        ("ERROR", &rate[..], "rate|ERROR "),
        ("EXACT", &exact, "exact"),
        ("BYTES", &bytes, "exact bytes"),
        ("SEED", &seed, "seed"),
    ] {
        for value in values.iter().chain(&NOT_NUMBERS) {
            cases.push((vec!["LC.INSERT", "new", name, value, "ITEMS", "a"], mentions));
            cases.push((vec!["LC.INSERT", "lc", name, value, "ITEMS", "z"], mentions));
            cases.push((vec!["LC.RESERVE", "new", name, value], mentions));
        }
    }
    all_fail(&mut Server::start(), "ERR ", &cases);
}

#[test]
fn iterators_and_chunks() {
    // The last iterators are of chunks, which a complete key does not take.
    let iterators = ["-1", "1.5", "18446744073709551616", "abc", "", "nan", "inf", "0", "1", "17"];
    let chunks = ["", "x", "not a chunk of any kind"];
    let mut cases = Vec::new();
    let names = "iterator|integer|number|numeric|bad data|not found";
    for family in ["BF", "LC"] {
        let key = family.to_lowercase();
        for iterator in iterators {
            // A negative iterator is past the end, as in RedisBloom.
            if !["-1", "0", "1", "17"].contains(&iterator) {
                cases.push((format!("{family}.SCANDUMP {key} ?"), iterator));
            }
            cases.push((format!("{family}.LOADCHUNK new ? data"), iterator));
            cases.push((format!("{family}.LOADCHUNK {key} ? data"), iterator));
        }
        for chunk in chunks {
            for place in ["new 1", "new 0", "new 17", "new 9223372036854775807"] {
                cases.push((format!("{family}.LOADCHUNK {place} ?"), chunk));
            }
        }
    }
    let cases: Vec<_> = cases.iter().flat_map(|(line, value)| with_values(line, &[value], names)).collect();
    all_fail(&mut Server::start(), "ERR ", &cases);
}

#[test]
fn keys_that_are_missing() {
    for (prefix, calls) in [
        ("ERR not found", "BF.INFO new; BF.INFO new CAPACITY; BF.INFO new FPR; BF.CLEAR new; LC.CLEAR new"),
        ("ERR ", "BF.DEBUG new; BF.SCANDUMP new 0; LC.INFO new; LC.INFO new CAPACITY; LC.SCANDUMP new 0"),
        ("ERR ", "BF.INSERT new NOCREATE ITEMS a; BF.ADMIT new LIMIT 5 NOCREATE ITEMS a"),
        ("ERR ", "LC.INSERT new NOCREATE ITEMS a; LC.ADMIT new LIMIT 5 NOCREATE ITEMS a"),
    ] {
        lines_fail(prefix, &lines(calls).into_iter().map(|call| (call, "")).collect::<Vec<_>>());
    }
}

/// The beginnings of error texts that clients of RedisBloom may depend on, as in RedisBloom 2.8.2. If RedisBloom's text
/// has no error code, the module's begins with `ERR`.
#[test]
fn texts_begin_as_redisblooms() {
    let server = Server::start();
    // Redis 8 has other texts, which `commands_bloom` tests.
    if server.version().has_unprefixed_configs() {
        return;
    }
    let mut client = server.client();
    furnish(&mut client);
    client.expect_each(
        "BF.RESERVE bf 0.01 100 => -ERR item exists*; BF.RESERVE new x 100 => -ERR bad error rate*
         BF.RESERVE new 1e-400 100 => -ERR bad error rate*; BF.RESERVE new 1 100 => -ERR (0 < error rate range < 1) *
         BF.RESERVE new 0 0 => -ERR (0 < error rate range < 1) *; BF.RESERVE new 0.01 x => -ERR bad capacity*
         BF.RESERVE new 0.01 05 => -ERR bad capacity*; BF.RESERVE new 0.01 9223372036854775808 => -ERR bad capacity*
         BF.RESERVE new 0.01 0 => -ERR (capacity should be larger than 0)*
         BF.RESERVE new 0.01 -1 EXPANSION x => -ERR (capacity should be larger than 0)*
         BF.RESERVE new 0.01 100 EXPANSION x => -ERR bad expansion*
         BF.RESERVE new 0.01 100 EXPANSION 9223372036854775808 => -ERR bad expansion*
         BF.RESERVE new 0.01 100 EXPANSION -1 => -ERR expansion should be greater or equal to 1*
         BF.RESERVE new 0.01 100 EXPANSION => -ERR no expansion*
         BF.RESERVE new 0.01 100 NONSCALING EXPANSION 2 => -ERR Nonscaling filters cannot expand*
         BF.RESERVE new 0.01 100 EXPANSION 0 NONSCALING => -ERR Nonscaling filters cannot expand*
         BF.INSERT new NOCREATE ITEMS a => -ERR not found*
         BF.INSERT new CAPACITY -1 ERROR x ITEMS a => -ERR bad error rate*
         BF.INSERT new CAPACITY -1 => -ERR wrong number of arguments for 'bf.insert' command*
         BF.INFO bf FOO => -ERR Invalid information value*; BF.INFO new FOO => -ERR not found*
         BF.DEBUG new => -ERR not found*; BF.SCANDUMP bf x => -ERR Second argument must be numeric*
         BF.SCANDUMP bf 00 => -ERR Second argument must be numeric*
         BF.SCANDUMP bf 9223372036854775808 => -ERR Second argument must be numeric: expected a whole number below 2^63*
         BF.RESERVE new 0.01 100 SEED 18446744073709551616 => -ERR bad seed: expected a whole number below 2^64*
         BF.RESERVE new 0.01 1e21 => -ERR bad capacity: expected a whole number from 1 to 1099511627776, got '1e21'*
         BF.INSERT new CAPACITY 9223372036854775808 ITEMS a => \
         -ERR bad capacity: expected a whole number from 1 to 1099511627776*
         BF.RESERVE new 0.01 9 EXPANSION 1e21 => \
         -ERR bad expansion: expected a whole number from 0 to 32768, got '1e21'*
         BF.RESERVE new 0.01 9 WINDOW 1e21 => \
         -ERR bad window: expected a whole number from 1 to 1099511627776, got '1e21'*
         LC.RESERVE new WINDOW 1e21 => -ERR bad window: expected a whole number from 1 to 1099511627776, got '1e21'*
         LC.RESERVE new EXACT 1e21 => -ERR bad exact limit: expected a whole number from 0 to 65536, got '1e21'*
         LC.RESERVE new BYTES 1e21 => -ERR bad exact bytes: expected a whole number from 1 to 1048576, got '1e21'*
         BF.SCANDUMP new x => -ERR not found*; BF.LOADCHUNK new x data => -ERR Second argument must be numeric*
         BF.LOADCHUNK new 2 data => -ERR not found*; BF.LOADCHUNK new 1 data => -ERR received bad data*
         BF.LOADCHUNK bf -5 data => -ERR received bad data*
         BF.ADD bf => -ERR wrong number of arguments for 'bf.add' command*",
    );
    // The error shows a number as it was given, however large it is.
    client.expect(
        "BF.RESERVE new 0.01 100 EXPANSION 4294967298",
        "-ERR bad expansion: expected from 0 to 32768, got 4294967298",
    );
    // The filter stores the expansion but does not use it.
    client.expect("BF.INSERT new NONSCALING EXPANSION 3 CAPACITY 1 ITEMS a b", "[1, -ERR non scaling filter is full]");
    client.expect("BF.INFO new EXPANSION", "[nil]");
}

#[test]
fn a_panic_is_an_error_and_ends_a_connection_only_amid_a_reply() {
    let (mut server, mut client) = hosted("").start().with_client();
    client.expect("BF.MADD f a b", "[1, 1]");
    client.expect("LC.ADD c a b", "2");
    client.expect("HOST.BREAK RedisModule_ReplyWithBool", "1");
    for command in ["BF.EXISTS f a", "LC.EXISTS c a"] {
        client.expect(command, "-ERR internal error, see the server's log");
        client.expect("ECHO here", "\"here\"");
    }
    // The array has fewer elements than announced, so the connection must be closed. Otherwise the reply to the next
    // command would complete the array.
    for command in ["BF.MEXISTS f a b", "LC.MEXISTS c a b"] {
        let mut other = server.client();
        assert_eq!(other.try_call(&words(command)), None, "{command}");
    }
    client.int("HOST.MEND");
    client.expect("BF.MEXISTS f a b", "[1, 1]");
    server.assert_up();
}
