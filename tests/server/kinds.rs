//! A small value of every kind, with the commands that create it.

use redis::Value;

use rollcall_testkit::{Client, add_many};

/// The name of each kind, and the commands that create a value of that kind at the key `?`. The first kind is one of
/// the server's own.
pub const KINDS: [(&str, &[&str]); 18] = [
    ("list", &["RPUSH ? a b c d e f"]),
    ("filter of lines", &["BF.INSERT ? CAPACITY 20 ITEMS a b c d e f"]),
    ("chain of lines", &["BF.INSERT ? CAPACITY 2 ITEMS a b c d e f g h i j k l"]),
    ("filter of few items", &["BF.INSERT ? CAPACITY 2000 ITEMS a b c"]),
    ("classic filter", &["BF.INSERT ? CAPACITY 20 LAYOUT classic ITEMS a b c d e f"]),
    ("classic chain", &["BF.INSERT ? CAPACITY 2 LAYOUT classic ITEMS a b c d e f g h i"]),
    (
        "filter with a window",
        &[
            "BF.INSERT ? CAPACITY 4 WINDOW 40 MANUAL SLICES 4 REFRESH ITEMS a b c d e f g",
            "BF.ADVANCE ? 3",
            "BF.MADD ? c d e f x",
        ],
    ),
    (
        "filter with a window without refresh",
        &[
            "BF.INSERT ? CAPACITY 4 WINDOW 40 MANUAL SLICES 3 ITEMS a b c d",
            "BF.ADVANCE ? 1",
            "BF.MADD ? c d e f g h i j",
        ],
    ),
    ("exact counter", &["LC.ADD ? a b c d e f"]),
    ("estimating counter", &["LC.INSERT ? EXACT 0 ITEMS a b c d e f g h"]),
    ("coarse counter", &["LC.INSERT ? ERROR 0.25 EXACT 0 ITEMS a b c d e f g h i j k l m n o p q"]),
    (
        "exact counter with a window",
        &["LC.INSERT ? WINDOW 40 MANUAL SLICES 4 ITEMS a b c", "LC.ADVANCE ? 3", "LC.ADD ? c d e"],
    ),
    (
        "estimating counter with a window",
        &["LC.INSERT ? EXACT 0 WINDOW 40 MANUAL SLICES 4 ITEMS a b c", "LC.ADVANCE ? 3", "LC.ADD ? c d e"],
    ),
    (
        "coarse counter with a window",
        &[
            "LC.INSERT ? ERROR 0.25 EXACT 0 WINDOW 40 MANUAL SLICES 4 ITEMS a b c d e f g h i j k l",
            "LC.ADVANCE ? 3",
            "LC.ADD ? c d e m n o",
        ],
    ),
    ("partially loaded filter", &["BF.RESERVE from 0.01 4000", "fill from 1000", "begin BF from ?"]),
    ("partially loaded classic filter", &["BF.RESERVE from 0.01 100 LAYOUT classic", "begin BF from ?"]),
    ("partially loaded counter", &["LC.RESERVE from EXACT 65536 BYTES 1048576", "long from 60", "begin LC from ?"]),
    ("chain of many", &["BF.RESERVE ? 0.01 1 EXPANSION 1", "fill ? 30"]),
];

/// Creates a value of [`KINDS`]. A line is a command, `fill KEY COUNT`, `long KEY COUNT` (members of a kilobyte), or
/// `begin FAMILY FROM TO`.
pub fn make(client: &mut Client, key: &str, lines: &[&str]) {
    for line in lines {
        let line = line.replace('?', key);
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["fill", key, count] => {
                let add = if client.text(&format!("TYPE {key}")) == "RCcounter" { "LC.ADD" } else { "BF.MADD" };
                add_many(client, &format!("{add} {key}"), "item:", 0..count.parse().expect("a number"));
            }
            ["long", key, count] => {
                let members = (0..count.parse().expect("a number")).map(|number: u32| format!("{number}{:.>1000}", ""));
                let words: Vec<String> = ["LC.ADD", key].map(String::from).into_iter().chain(members).collect();
                assert_eq!(client.call(&words), Value::Int(words.len() as i64 - 2));
            }
            ["begin", family, from, to] => {
                let chunk = client.list(&format!("{family}.SCANDUMP {from} 0"));
                let [Value::Int(iterator), Value::BulkString(header)] = &chunk[..] else { panic!("{chunk:?}") };
                let (command, iterator) = (format!("{family}.LOADCHUNK"), iterator.to_string());
                let load: [&[u8]; 4] = [command.as_bytes(), to.as_bytes(), iterator.as_bytes(), header];
                assert_eq!(client.call(&load), Value::Okay, "{line}");
                assert!(client.error(&format!("{family}.INFO {to}")).contains("still loading"), "{line}");
                client.expect(&format!("DEL {from}"), "1");
            }
            _ => {
                client.run(&line);
            }
        }
    }
}
