//! Tests the option WIDTH: runs of items of equal length in few arguments do what single items do.

use std::fs;
use std::iter::once;
use std::ops::Range;

use redis::Value;

use crate::effects::{appended, appending, sent};
use rollcall_testkit::{Clock, Pair, Server, Setup, error_text, show};

/// A command as a list of words.
type Command = Vec<Vec<u8>>;

/// Item number `number`, of `width` bytes. Items of one byte repeat after 256.
fn item(width: usize, number: usize) -> Vec<u8> {
    (0..width).map(|at| (number >> (8 * (at % 4))) as u8).collect()
}

/// Like `words` of the test kit, but an argument between two spaces is empty.
fn line(words: &str) -> Command {
    words.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn with_items(start: &str, items: impl Iterator<Item = Vec<u8>>) -> Command {
    line(start).into_iter().chain(once(b"ITEMS".to_vec())).chain(items).collect()
}

fn singles(start: &str, width: usize, numbers: Range<usize>) -> Command {
    with_items(start, numbers.map(|number| item(width, number)))
}

/// The same items in arguments of one, two, and so on items.
fn packed(start: &str, width: usize, numbers: Range<usize>) -> Command {
    let (mut runs, mut next) = (Vec::new(), numbers.start);
    while next < numbers.end {
        let end = numbers.end.min(next + runs.len() + 1);
        runs.push((next..end).flat_map(|number| item(width, number)).collect());
        next = end;
    }
    with_items(&format!("{start} WIDTH {width}"), runs.into_iter())
}

/// The reply to single items as it is with WIDTH. An array that ends early is filled up to `len` items.
fn as_text(reply: &Value, len: usize) -> String {
    let answer = |reply: &Value| match reply {
        Value::Int(1) | Value::Boolean(true) => '1',
        Value::Int(0) | Value::Boolean(false) => '0',
        Value::Int(-1) => '-',
        other => panic!("{}", show(other)),
    };
    match reply {
        Value::Array(parts) if matches!(parts[..], [Value::Array(_), ..]) => {
            format!("{} {} {}", as_text(&parts[0], len), show(&parts[1]), show(&parts[2]))
        }
        Value::Array(parts) => {
            let ends_early = parts.last().and_then(error_text);
            assert!(ends_early.is_none_or(|error| error == "ERR non scaling filter is full"));
            let answers = parts.iter().filter(|part| error_text(part).is_none()).map(answer);
            answers.chain(std::iter::repeat('!')).take(len).collect()
        }
        other => show(other),
    }
}

/// A reply to a command with WIDTH.
fn shown(reply: &Value) -> String {
    match reply {
        Value::Array(parts) => parts.iter().map(shown).collect::<Vec<_>>().join(" "),
        Value::BulkString(text) => String::from_utf8(text.clone()).expect("ASCII"),
        other => show(other),
    }
}

/// The options of new keys. `LC` alone becomes an estimate, which ADMIT and QUERY refuse.
const CREATED: [(&str, &str); 9] = [
    ("BF", "CAPACITY 50"),
    ("BF", "LAYOUT classic CAPACITY 50 SEED 0"),
    ("BF", "NONSCALING CAPACITY 60 ERROR 0.001"),
    ("BF", "NONSCALING CAPACITY 60 ERROR 0.001 LAYOUT classic"),
    ("BF", "WINDOW 1000 SLICES 4 REFRESH"),
    ("RF", "EXAT 4102444800"),
    ("LC", ""),
    ("LC", "EXACT 65536 BYTES 1048576"),
    ("LC", "EXACT 1000 BYTES 1048576 WINDOW 1000 SLICES 4"),
];

#[test]
fn packed_items_equal_single_items() {
    let clock = Clock::at(1_700_000_000);
    let pair = Pair::of(clock.setup().line("appendonly yes").line("appendfsync always"), Setup::default());
    let (mut client, mut client3) = (pair.primary.client(), pair.primary.client3());
    let mut compared = 0;
    for (family, options) in CREATED {
        for width in [1, 4, 16, 32, 100, 4_096] {
            client.cmd("FLUSHALL");
            for (command, numbers) in [
                (&*format!("INSERT ? {options}"), 0..40),
                ("INSERT ?", 0..40),
                ("INSERT ? NOCREATE", 30..75),
                ("ADMIT ? LIMIT 80 DRYRUN WITHROOM", 20..90),
                ("ADMIT ? LIMIT 80", 20..90),
                ("ADMIT ? LIMIT 85 ALL WITHROOM", 90..96),
                ("ADMIT ? LIMIT 100 WITHROOM", 78..90),
                ("QUERY ?", 0..100),
                ("QUERY ? SINCE 100", 0..100),
                ("INSERT ?", 60..140),
                ("QUERY missing", 0..3),
                ("INSERT missing NOCREATE", 0..3),
                (&format!("ADMIT ?new LIMIT 3 {options}"), 0..5),
            ] {
                clock.pass(100);
                let of = |key| format!("{family}.{}", command.replace('?', key).trim_end());
                let expected = as_text(&client.call(&singles(&of("single"), width, numbers.clone())), numbers.len());
                let client = if width == 16 { &mut client3 } else { &mut client };
                let reply = shown(&client.call(&packed(&of("packed"), width, numbers.clone())));
                // The errors name the key.
                assert_eq!(reply.replace("packed", "single"), expected, "{} WIDTH {width}", of(options));
                for suffix in ["", "new"] {
                    let [one, other] = ["single", "packed"].map(|key| client.digest(&format!("{key}{suffix}")));
                    assert_eq!(one, other, "{} WIDTH {width}", of(options));
                }
                compared += usize::from(!expected.starts_with('-'));
            }
            pair.assert_equal(options);
        }
    }
    assert!(compared > 500, "{compared}");
    let digest = client.text("DEBUG DIGEST");
    let mut primary = pair.primary;
    primary.restart();
    assert_eq!(primary.client().text("DEBUG DIGEST"), digest);
}

/// Counts of items in INFO are those of single items.
#[test]
fn packed_items_are_counted_as_single_ones() {
    let mut counts = Vec::new();
    for packs in [true, false] {
        let (_server, mut client) = Server::start().with_client();
        let make = if packs { packed } else { singles };
        for (command, numbers) in [
            ("BF.INSERT f NONSCALING CAPACITY 60 ERROR 0.001", 0..100),
            ("BF.ADMIT g LIMIT 9", 0..20),
            ("LC.INSERT c EXACT 30", 0..50),
            ("LC.ADMIT d LIMIT 9", 0..20),
        ] {
            client.call(&make(command, 16, numbers));
        }
        let info = client.text("INFO rollcall_totals") + &client.text("INFO rollcall");
        counts.push(
            info.lines()
                .filter(|line| line.contains("items") || line.contains("rejected"))
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        );
    }
    for name in ["rejected_full:1", "filters_items:69", "filters_items_rejected:11", "counters_items_rejected:11"] {
        assert!(counts[0].contains(&format!("rollcall_{name}")), "{:?}", counts[0]);
    }
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn an_error_changes_nothing() {
    let (server, mut client) = appending(Setup::default()).with_client();
    for family in ["BF", "RF", "LC"] {
        for command in ["INSERT ?", "ADMIT ? LIMIT 9", "ADMIT ? LIMIT 9 DRYRUN WITHROOM", "QUERY ?"] {
            for key in ["missing", "present"] {
                if key == "present" {
                    client.cmd(&format!("{family}.INSERT present ITEMS abcd"));
                }
                let before = (client.text("DEBUG DIGEST"), appended(&server).len());
                let start = format!("{family}.{}", command.replace('?', key));
                for (rest, why) in [
                    (
                        "WIDTH 4 ITEMS abcdefg",
                        "bad argument 1 after ITEMS: expected items of 4 bytes (WIDTH) on end, got 7 bytes",
                    ),
                    (
                        "WIDTH 4 ITEMS abcd abc",
                        "bad argument 2 after ITEMS: expected items of 4 bytes (WIDTH) on end, got 3 bytes",
                    ),
                    (
                        "WIDTH 4 ITEMS abcd  efgh",
                        "bad argument 2 after ITEMS: expected items of 4 bytes (WIDTH) on end, got 0 bytes",
                    ),
                    ("WIDTH 0 ITEMS abcd", "bad WIDTH: expected a whole number of bytes from 1 to 65536, got '0'"),
                    (
                        "WIDTH 65537 ITEMS abcd",
                        "bad WIDTH: expected a whole number of bytes from 1 to 65536, got '65537'",
                    ),
                    ("WIDTH 99999999999999999999 ITEMS abcd", "bad WIDTH: expected a whole number"),
                    ("WIDTH -4 ITEMS abcd", "bad WIDTH: expected a whole number"),
                    ("WIDTH 4x ITEMS abcd", "bad WIDTH: expected a whole number"),
                    ("WIDTH 4 WIDTH 4 ITEMS abcd", "option WIDTH is given twice"),
                    ("WIDTH 4 ITEMS", "wrong number of arguments"),
                    ("WIDTH 4", "wrong number of arguments"),
                ] {
                    let reply = client.call(&line(&format!("{start} {rest}")));
                    let error = error_text(&reply).unwrap_or_else(|| panic!("{start} {rest}: {}", show(&reply)));
                    assert!(error.contains(why), "{start} {rest}: {error}");
                }
                let items = vec![7; (1 << 20) + 1];
                for runs in [vec![items.clone()], vec![items[1..].to_vec(), vec![8]]] {
                    let reply = client.call(&with_items(&format!("{start} WIDTH 1"), runs.into_iter()));
                    let why = "ERR too many items: expected at most 1048576 with WIDTH, got 1048577";
                    assert_eq!(error_text(&reply).as_deref(), Some(why));
                }
                assert_eq!((client.text("DEBUG DIGEST"), appended(&server).len()), before, "{start}");
            }
            client.cmd("DEL present");
        }
    }
    for command in ["BF.MADD k WIDTH 4 ITEMS abcdefgh", "LC.ADD c WIDTH 4 ITEMS abcdefgh"] {
        let reply = show(&client.cmd(command));
        assert!(reply == "[1, 1, 1, 1]" || reply == "4", "{command}: {reply}");
    }
}

/// A replica receives few arguments, and only what changed. RedisBloom, which may be the replica of a classic filter,
/// receives single items.
#[test]
fn replicas_receive_packed_items() {
    let (server, mut client) = appending(Setup::default()).with_client();
    let all = "CAPACITY 100 ERROR 0.01 EXPANSION 2 SEED 0 LAYOUT lines";
    let fixed = "CAPACITY 2 ERROR 0.01 NONSCALING SEED 0 LAYOUT lines";
    for (line, effects) in [
        ("BF.INSERT f WIDTH 2 ITEMS aabb cc", vec!["RF.INSERT f WIDTH 2 ITEMS aabb cc".to_owned()]),
        ("BF.INSERT f WIDTH 2 ITEMS aabb cc", vec![]),
        ("BF.INSERT f WIDTH 2 ITEMS aadd cc", vec!["RF.INSERT f WIDTH 2 ITEMS aadd cc".to_owned()]),
        ("BF.ADMIT f WIDTH 2 LIMIT 6 ITEMS aaeeff gghh", vec!["RF.INSERT f WIDTH 2 ITEMS eeff".to_owned()]),
        ("BF.ADMIT f WIDTH 2 LIMIT 9 ITEMS iijj kk", vec!["RF.INSERT f WIDTH 2 ITEMS iijj kk".to_owned()]),
        ("BF.ADMIT f WIDTH 2 LIMIT 9 DRYRUN ITEMS iijj kkll", vec![]),
        ("BF.ADMIT g WIDTH 2 LIMIT 2 ITEMS aabb cc", vec![format!("RF.INSERT g WIDTH 2 {all} ITEMS aabb")]),
        (
            "BF.INSERT h NONSCALING CAPACITY 2 WIDTH 2 LAYOUT lines ITEMS aabb ccdd",
            vec![format!("RF.INSERT h WIDTH 2 {fixed} ITEMS aabb")],
        ),
        (
            "BF.INSERT i LAYOUT classic WIDTH 2 ITEMS aabb",
            vec!["BF.INSERT i CAPACITY 100 ERROR 0.01 EXPANSION 2 ITEMS aa bb".to_owned()],
        ),
        ("BF.INSERT i WIDTH 2 ITEMS aacc dd", vec!["BF.MADD i aa cc dd".to_owned()]),
        ("BF.ADMIT i WIDTH 2 LIMIT 5 ITEMS aaee ffgg", vec!["BF.MADD i ee".to_owned()]),
        ("LC.INSERT c WIDTH 2 ITEMS aabb cc", vec!["LC.INSERT c WIDTH 2 ITEMS aabb cc".to_owned()]),
        ("LC.ADMIT c WIDTH 2 LIMIT 4 ITEMS aadd ee", vec!["LC.INSERT c WIDTH 2 ITEMS dd".to_owned()]),
    ] {
        assert_eq!(sent(&mut client, &server, line), effects, "{line}");
    }
    // Long effects are cut into several arguments.
    let kept: Vec<u8> = (0..40_000).step_by(2).flat_map(|number| item(16, number)).collect();
    let all: Vec<u8> = (0..40_000).flat_map(|number| item(16, number)).collect();
    client.call(&with_items("BF.INSERT long CAPACITY 100000 WIDTH 16", once(kept)));
    client.call(&with_items("BF.ADMIT long LIMIT 100000 WIDTH 16", once(all)));
    let digest = client.text("DEBUG DIGEST");
    let mut server = server;
    server.restart();
    assert_eq!(server.client().text("DEBUG DIGEST"), digest);
}

/// An error other than that of a full filter is the whole reply. The items before it are added.
#[test]
fn a_filter_that_may_not_grow_replies_with_an_error() {
    let pair = Pair::with_args("max-key-bytes 1048576");
    let mut client = pair.primary.client();
    let reply = client.call(&packed("BF.INSERT f CAPACITY 400000 ERROR 0.001", 4, 0..600_000));
    let error = error_text(&reply).expect("an error");
    assert!(error.contains("more than max-key-bytes"), "{error}");
    assert!(client.int("BF.CARD f") >= 400_000);
    pair.assert_equal("an error");
    let reply = client.call(&packed("BF.ADMIT f LIMIT 9", 4, 0..20_000));
    let error = error_text(&reply).expect("an error");
    assert!(error.contains("needs 1920000 bytes, more than max-key-bytes"), "{error}");
}

/// The largest number of bytes that the server has had in memory since [`forget_peak`].
fn peak_bytes(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the status of the server");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    kib.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn forget_peak(server: &Server) {
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").expect("the peak to be reset");
}

/// 2^20 items in one argument: beyond the argument, a call needs its reply twice and a MiB, and ADMIT its table.
#[test]
fn memory_is_bounded() {
    const ITEMS: usize = 1 << 20;
    let (server, mut client) = Server::start().with_client();
    client.cmd("BF.RESERVE f 0.01 3000000");
    client.cmd("LC.RESERVE c EXACT 0");
    let run: Vec<u8> = (0..ITEMS).flat_map(|number| item(4, number)).collect();
    let mut call = |start: &str, table: usize, reply: usize| {
        let command = with_items(&format!("{start} WIDTH 4"), once(run.clone()));
        // The first call makes the filter's pages resident.
        for is_measured in [false, true] {
            client.cmd("MEMORY PURGE");
            forget_peak(&server);
            let before = peak_bytes(&server);
            let got = client.call(&command);
            assert!(error_text(&got).is_none(), "{start}: {}", show(&got));
            let used = peak_bytes(&server).saturating_sub(before);
            let most = (4 * ITEMS + 2 * reply + table * ITEMS + (1 << 20)) as u64;
            assert!(!is_measured || used <= most, "{start}: {used} bytes, more than {most}");
        }
    };
    call("BF.INSERT f", 0, ITEMS);
    call("BF.QUERY f", 0, ITEMS);
    call("LC.INSERT c", 0, 0);
    call("BF.ADMIT f LIMIT 9", 96, ITEMS);
    call("BF.ADMIT refreshed LIMIT 9 WITHROOM WINDOW 100 REFRESH", 96, ITEMS);
    call("LC.ADMIT exact LIMIT 9 WINDOW 100", 96, ITEMS);
}
