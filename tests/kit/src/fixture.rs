//! Filters and counters of every kind, for tests that treat all keys alike.

use std::collections::BTreeMap;

use redis::Value;

use crate::client::{Client, add_many, lines, pairs, show, text};

/// Windows with the manual clock: the key, its options, and the number of items that are added in a slice.
const WINDOWS: [(&str, &str, u64); 9] = [
    ("bf:hours", "0.01 1000 WINDOW 40 MANUAL SLICES 4", 150),
    ("bf:renewed", "0.01 100 WINDOW 40 MANUAL REFRESH EXPANSION 3", 60),
    ("bf:fine", "0.001 10000 WINDOW 6400 MANUAL SLICES 64 SEED 18446744073709551615", 60),
    ("bf:passed", "0.01 100 WINDOW 40 MANUAL", 20),
    ("lc:hours", "EXACT 65536 BYTES 100000 WINDOW 40 MANUAL SLICES 4", 400),
    ("lc:halves", "WINDOW 40 MANUAL SLICES 14 ERROR 0.02", 1000),
    ("lc:bytes", "WINDOW 86400 MANUAL SLICES 254 ERROR 0.0025 EXACT 0", 300),
    ("lc:one", "WINDOW 1 MANUAL SLICES 1 EXACT 5", 100),
    ("lc:passed", "WINDOW 40 MANUAL EXACT 5", 20),
];

/// Makes a filter and a counter in every possible state; all keys start with `bf:` or `lc:`.
pub fn populate(client: &mut Client) {
    for line in lines(
        "BF.RESERVE bf:empty 0.01 100; BF.RESERVE bf:wide 0.9 100; BF.RESERVE bf:tight 0.000000001 100 EXPANSION 32768
         BF.RESERVE bf:full 0.0001 2 NONSCALING; BF.RESERVE bf:chain 0.01 10 EXPANSION 3
         BF.RESERVE bf:flat 0.02 10 EXPANSION 1; BF.RESERVE bf:seeded 0.01 100 SEED 18446744073709551615
         BF.RESERVE bf:left 0.001 100; BF.RESERVE bf:right 0.001 100; BF.RESERVE bf:cleared 0.01 10
         LC.RESERVE lc:empty; LC.RESERVE lc:tiny ERROR 0.25 EXACT 0; LC.RESERVE lc:fine ERROR 0.0025
         LC.RESERVE lc:seeded SEED 18446744073709551615 EXACT 0; LC.RESERVE lc:limit EXACT 65536 ERROR 0.1",
    ) {
        client.expect(line, "+OK");
    }
    for (line, count) in [
        ("BF.MADD bf:default", 60),
        ("BF.MADD bf:full", 2),
        ("BF.MADD bf:chain", 300),
        ("BF.MADD bf:flat", 45),
        ("BF.MADD bf:seeded", 40),
        ("BF.MADD bf:left", 30),
        ("BF.MADD bf:cleared", 25),
        ("BF.MADD bf:wide", 10),
        ("BF.MADD bf:tight", 90),
        ("LC.ADD lc:exact", 10),
        ("LC.ADD lc:brim", 250),
        ("LC.ADD lc:over", 251),
        ("LC.ADD lc:many", 30_000),
        ("LC.ADD lc:tiny", 3_000),
        ("LC.ADD lc:fine", 1_000),
        ("LC.ADD lc:seeded", 500),
        ("LC.ADD lc:limit", 900),
    ] {
        add_many(client, line, "item:", 0..count);
    }
    add_many(client, "BF.MADD bf:right", "other:", 0..30);
    add_many(client, "LC.ADD lc:big", "other:", 0..700);
    for (key, options, count) in WINDOWS {
        let (family, add) = commands_of(key);
        client.expect(&format!("{family}.RESERVE {key} {options}"), "+OK");
        // In each slice two thirds of the items are new. One slice is left out.
        for slice in [0, 1, 2, 4, 5] {
            client.expect(&format!("{family}.ADVANCE {key} {slice}"), "+OK");
            add_many(client, &format!("{add} {key}"), "item:", count * slice * 2 / 3..count * slice * 2 / 3 + count);
        }
    }
    let binary: [&[u8]; 6] = [b"LC.ADD", b"lc:binary", b"", b"\0\xff", b"\r\n", &[200; 3000]];
    assert_eq!(client.call(&binary), Value::Int(4));
    for line in lines(
        "BF.MERGE bf:merged bf:left bf:right; LC.MERGE lc:merged lc:exact lc:binary
         LC.MERGE lc:folded lc:fine lc:limit; BF.CLEAR bf:cleared; BF.MERGE bf:joined bf:hours
         LC.MERGE lc:joined lc:hours; BF.ADVANCE bf:passed 1000; LC.ADVANCE lc:passed 1099511627776",
    ) {
        client.expect(line, "+OK");
    }
    client.expect("EXPIRE bf:chain 100000", "1");
    client.expect("EXPIRE lc:many 100000", "1");
}

/// The family of a key of [`populate`], and the command that adds items to it.
fn commands_of(key: &str) -> (&'static str, &'static str) {
    if key.starts_with("bf:") { ("BF", "BF.MADD") } else { ("LC", "LC.ADD") }
}

/// Changes every key of [`populate`] further. A value that was just loaded and one that was never stored must be equal
/// afterwards too.
pub fn go_on(client: &mut Client) {
    let mut keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.sort();
    for key in keys {
        let (family, add) = commands_of(&key);
        add_many(client, &format!("{add} {key}"), "more:", 0..700);
        add_many(client, &format!("{add} {key}"), "item:", 0..100);
        if let Value::Int(slice) = client.list(&format!("{family}.INFO {key} SLICE"))[0] {
            client.expect(&format!("{family}.ADVANCE {key} {}", slice + 2), "+OK");
            add_many(client, &format!("{add} {key}"), "still more:", 0..300);
        }
    }
}

/// Populates like [`populate`], without times to live. Two keys would have one, and digests depend on it.
pub fn populate_without_ttl(client: &mut Client) {
    populate(client);
    client.expect("PERSIST bf:chain", "1");
    client.expect("PERSIST lc:many", "1");
}

/// Every key of the current database with its type, its digest, whether it expires, and its INFO. Sizes in bytes are
/// left out of INFO, because they may differ between servers.
pub fn snapshot(client: &mut Client) -> BTreeMap<String, String> {
    let mut keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.sort();
    let mut state = BTreeMap::new();
    for key in keys {
        let expires = client.int(&format!("TTL {key}")) >= 0;
        let info = match key.split(':').next() {
            Some("bf") => client.cmd(&format!("BF.INFO {key}")),
            Some("lc") => client.cmd(&format!("LC.INFO {key}")),
            _ => Value::Array(Vec::new()),
        };
        let fields = match &info {
            Value::ServerError(_) => show(&info),
            _ => pairs(&info)
                .iter()
                .filter(|(label, _)| label != "Size")
                .map(|(label, value)| format!("{label} {}", show(value)))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let line = format!("{} {} {expires} {fields}", client.text(&format!("TYPE {key}")), client.digest(&key));
        state.insert(key, line);
    }
    state
}

/// The module's fields of INFO, by their names without the prefix `rollcall_`.
pub fn figures(client: &mut Client) -> BTreeMap<String, i64> {
    let info = client.text("INFO rollcall");
    let of_ours = info.lines().filter_map(|line| line.trim().strip_prefix("rollcall_")?.split_once(':'));
    of_ours.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Compares two snapshots key by key.
#[track_caller]
pub fn assert_same(after: &BTreeMap<String, String>, before: &BTreeMap<String, String>) {
    let keys = |state: &BTreeMap<String, String>| state.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(after), keys(before));
    let differ: Vec<_> = before
        .iter()
        .filter(|(key, value)| after[*key] != **value)
        .map(|(key, value)| format!("{key}\n  was {value}\n  is  {}", after[key]))
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Makes the values that the commands of [`CHANGES_NOTHING`] use.
pub fn populate_for_no_change(client: &mut Client) {
    client.expect_each(
        "SET string text => +OK; BF.MADD f a b => [1, 1]; BF.MADD g a => [1]; LC.ADD c a b => 2; LC.ADD d a => 1
         BF.RESERVE full 0.00001 1 NONSCALING => +OK; BF.ADD full a => 1; BF.INSERT fw WINDOW 40 MANUAL ITEMS a => [1]
         BF.INSERT fc WINDOW 1099511627776 ITEMS a => [1]; LC.INSERT cw WINDOW 40 MANUAL ITEMS a => 1
         LC.INSERT cc WINDOW 1099511627776 ITEMS a => 1",
    );
    add_many(client, "LC.ADD e", "x", 0..1000);
    add_many(client, "LC.ADD e2", "x", 0..500);
}

/// Commands that change no value of [`populate_for_no_change`]. Some of them fail.
pub const CHANGES_NOTHING: &str =
    "BF.ADD f a; BF.MADD f a b a; BF.INSERT f CAPACITY 7 ERROR 0.3 ITEMS a b; BF.INSERT f NOCREATE ITEMS b
     BF.INSERT new NOCREATE ITEMS b; BF.ADD full b; BF.MADD full a b c; BF.INSERT full ITEMS b; BF.MERGE f g
     BF.MERGE f g f; BF.MERGE f missing; BF.INSERT f EX 100 CAPACITY 7 ITEMS a b; BF.ADMIT f LIMIT 9 ITEMS a b
     BF.ADMIT f LIMIT 2 ITEMS a z; BF.ADMIT f LIMIT 3 ALL ITEMS a y z; BF.ADMIT f LIMIT 9 DRYRUN ITEMS y z
     BF.ADMIT full LIMIT 9 ITEMS a b c; BF.ADMIT new LIMIT 0 EX 100 ITEMS a; BF.ADMIT new LIMIT 9 DRYRUN ITEMS a
     BF.EXISTS f a; BF.MEXISTS f a z; BF.RESERVE f 0.01 100; BF.RESERVE new 7 100; BF.CARD f; BF.INFO f; BF.DEBUG f
     BF.SCANDUMP f 0; BF.LOADCHUNK f 1 data; BF.LOADCHUNK new 1 data; BF.ADD string a; BF.MERGE f full; BF.MADD f a b
     BF.INSERT f CAPACITY 7 ITEMS a b; BF.MADD full a b; BF.INSERT new CAPACITY 1099511627776 ITEMS a; LC.ADD c a b
     LC.ADD e x1 x2 x3; LC.INSERT c EXACT 7 ITEMS a b; LC.INSERT new NOCREATE ITEMS b
     LC.INSERT c EX 100 EXACT 7 ITEMS a b; LC.ADMIT c LIMIT 9 ITEMS a b; LC.ADMIT c LIMIT 2 ITEMS a z
     LC.ADMIT c LIMIT 3 ALL ITEMS a y z; LC.ADMIT c LIMIT 9 DRYRUN ITEMS y z; LC.ADMIT e LIMIT 9 ITEMS y
     LC.ADMIT new LIMIT 0 EX 100 ITEMS a; LC.ADMIT new LIMIT 9 DRYRUN ITEMS a; LC.CLEAR missing; LC.REM missing a
     LC.REM c x y; LC.REM e x1; LC.REM cc y; LC.INTERCARD 2 c d; LC.DIFF 2 c d; LC.MERGE c d; LC.MERGE c d c
     LC.MERGE c missing; LC.MERGE e e2; LC.COUNT c d e; LC.DIFFCARD 2 c d; LC.MEMBERS c; LC.INFO c; LC.RESERVE c
     LC.SCANDUMP c 0; LC.LOADCHUNK c 1 data; LC.ADD string a; LC.ADD e x1 x2; LC.COUNT c d; LC.ADD f a
     LC.INSERT new NOCREATE ITEMS a; BF.ADD fw a; BF.ADD fc a; BF.ADVANCE fw 0; BF.ADVANCE fw 0 REBASE
     BF.ADVANCE fc 0; BF.ADVANCE fc CLOCK; BF.ADVANCE f 1; BF.MERGE fw missing; BF.MERGE fw f; LC.ADD cw a
     LC.ADD cc a; LC.ADVANCE cw 0; LC.ADVANCE cc CLOCK; LC.HISTORY cw; LC.COUNTSINCE cw 5; LC.MEMBERS cw SINCE 5";
