//! Tests that members are returned byte for byte, although UUIDs, numbers and others are stored in compact forms.

use redis::Value;

use rollcall_testkit::client::{Client, show};
use rollcall_testkit::server::Server;

fn list(client: &mut Client, line: &str) -> Vec<String> {
    client.list(line).iter().map(|value| show(value).trim_matches('"').to_owned()).collect()
}

/// Members of every kind, and members that are nearly of these kinds.
fn members() -> Vec<String> {
    let uuid = "1f0e3dad-9990-4d3c-b2c9-6a1d2b3c4d5e";
    let (digits, long) = ("0123456789abcdef".repeat(2), "x".repeat(300));
    let near = [&uuid[1..], &digits[1..], "007", "-1", "user:", "user:007", "users:1", "user:9223372036854775808"];
    let kinds = ["user:17", "user:0", "user:65536", "ann", "0", "65536", "9223372036854775807", uuid, &digits, &long];
    let both = |text: &&str| [text.to_string(), text.to_uppercase()];
    let mut members: Vec<String> = kinds.iter().chain(&near).flat_map(both).collect();
    members.dedup();
    members
}

#[test]
fn members_of_every_kind_come_back() {
    let server = Server::start();
    let mut client = server.client();
    let members = members();
    let words: Vec<&str> = members.iter().map(String::as_str).collect();
    // In the second counter the members are added in reverse order, because the first member decides about a shared
    // prefix.
    for (key, options) in [("one", ""), ("two", " WINDOW 3600")] {
        client.expect(&format!("LC.RESERVE {key}{options}"), "+OK");
    }
    let reversed: Vec<&str> = words.iter().rev().copied().collect();
    for (key, words) in [("one", &words), ("two", &reversed)] {
        for word in words {
            client.expect(&format!("LC.ADD {key} {word}"), "1");
            client.expect(&format!("LC.ADD {key} {word}"), "0");
        }
        assert_eq!(list(&mut client, &format!("LC.MEMBERS {key}")), **words);
        let dump = client.call(&[b"DUMP", key.as_bytes()]);
        let Value::BulkString(dump) = dump else { panic!("{}", show(&dump)) };
        client.call(&[&b"RESTORE"[..], b"copy", b"0", &dump, b"REPLACE"]);
        assert_eq!(list(&mut client, "LC.MEMBERS copy"), **words);
        let known = list(&mut client, &format!("LC.MEXISTS copy {} absent user:1", words.join(" ")));
        assert_eq!(known, [vec!["1"; words.len()], vec!["0", "0"]].concat());
    }
    let sorted = |mut list: Vec<String>| {
        list.sort_unstable();
        list
    };
    for set in ["LC.UNION", "LC.INTER"] {
        assert_eq!(sorted(list(&mut client, &format!("{set} 2 one two"))), sorted(members.clone()), "{set}");
    }
    assert!(client.list("LC.DIFF 2 one two").is_empty());
    client.expect(&format!("LC.REM one {}", words[0]), "1");
    assert_eq!(list(&mut client, "LC.DIFF 2 two one"), [words[0]]);
}
