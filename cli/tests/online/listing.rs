//! `top`: what it lists, and what it finds wrong.

use crate::{add_grown, add_half_loaded, chunks, peer, peer_server, tool, url};
use rollcall_testkit::client::add_many;
use rollcall_testkit::server::{Server, Setup};

#[test]
fn keys_are_listed_with_what_is_wrong() {
    let server = Server::start();
    let (mut client, to) = (server.client(), url(&server));
    add_grown(&mut client);
    client.expect("BF.RESERVE merged 0.01 1000 NONSCALING", "+OK");
    add_many(&mut client, "BF.MADD merged", "item:", 0..900);
    client.expect("BF.RESERVE good 0.01 1000 WINDOW 3600", "+OK");
    add_many(&mut client, "BF.MADD good", "item:", 0..900);
    client.expect("PEXPIRE good 3600000", "1");
    client.expect("LC.RESERVE over 1000", "+OK");
    add_many(&mut client, "LC.ADD over", "item:", 0..3000);
    client.expect("LC.ADD few a b", "2");
    client.expect("LC.ADMIT sent LIMIT 3 WINDOW 86400 VOLATILE ITEMS message", "[1]");
    client.expect("SET text 1", "+OK");
    let dump = chunks(&mut client, "BF", "merged");
    add_half_loaded(&mut client);
    assert!(!dump.is_empty());
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &to]).expect(0).json();
    let rows = rows.as_array().expect("rows").clone();
    let names: Vec<&str> = rows.iter().map(|row| row["key"].as_str().expect("a key")).collect();
    assert_eq!(names, ["few", "good", "grown", "half", "large", "merged", "over", "sent"]);
    let row = |name: &str| rows.iter().find(|row| row["key"] == name).expect("the row");
    assert_eq!((row("few")["items"].as_i64(), row("few")["mode"].as_str()), (Some(2), Some("exact")));
    assert_eq!(row("good")["mode"], "3600 s");
    assert!((1..=3_600_000).contains(&row("good")["ttl"].as_i64().expect("a time")));
    assert_eq!(
        (row("sent")["mode"].as_str(), row("sent")["volatile"].as_bool()),
        (Some("exact, 86400 s volatile"), Some(true))
    );
    assert!(row("sent")["ttl"].as_i64().is_some_and(|ttl| ttl > 86_400_000), "{}", row("sent"));
    assert_eq!((row("good")["volatile"].as_bool(), row("few")["volatile"].as_bool()), (Some(false), None));
    assert_eq!(row("grown")["items"].as_i64().expect("items"), client.int("BF.CARD grown"));
    assert_eq!(row("grown")["asked"].as_f64(), Some(0.01));
    for name in ["few", "good", "large", "sent"] {
        assert_eq!(row(name)["findings"].as_array().map(Vec::len), Some(0), "{}", row(name));
    }
    let found = |name: &str| row(name)["findings"][0].clone();
    let word = |name: &str, field: &str| found(name)[field].as_str().expect("a text").to_owned();
    assert_eq!((word("grown", "problem"), word("grown", "severity")), ("grown".into(), "warning".into()));
    assert_eq!(word("grown", "command"), "BF.RESERVE {grown}:new 0.01 4400");
    assert_eq!(word("merged", "problem"), "nearly-full");
    assert_eq!(word("merged", "command"), "BF.RESERVE {merged}:new 0.01 2200 NONSCALING");
    assert_eq!(word("half", "problem"), "half-loaded");
    assert_eq!(row("half")["loading"]["received_bytes"], 0);
    assert!(row("half")["loading"]["total_bytes"].as_i64().is_some_and(|bytes| bytes > 10_000), "{}", row("half"));
    assert_eq!(word("over", "problem"), "past-capacity");
    assert!(word("over", "command").starts_with("LC.RESERVE {over}:new "), "{}", found("over"));
    assert_eq!((row("good")["window"].as_i64(), row("good")["slices"].as_i64()), (Some(3600), Some(4)));
    assert_eq!(row("few")["server"], to.trim_start_matches("redis://"));
    // A policy that evicts keys with a time to live takes volatile ones too.
    client.expect("CONFIG SET maxmemory 1gb maxmemory-policy volatile-ttl", "+OK");
    let sent = tool(&["--json", "top", "--pattern", "sent", "--url", &to]).expect(0).json();
    assert_eq!(sent[0]["findings"][0]["problem"], "may-evict", "{sent}");
    assert!(sent[0]["findings"][0]["command"].is_null(), "{sent}");
    client.expect("CONFIG SET maxmemory 0", "+OK");
    // A table, since the output is no terminal; sorted, cut and filtered.
    let table = tool(&["top", "--sort", "items", "--limit", "2", "--url", &to]).expect(0).out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[0].starts_with("key ") && lines[1].starts_with("grown ") && lines[2].starts_with("over "), "{table}");
    assert!(lines[3].starts_with("8 filters and counters, ") && lines[3].ends_with("3 to look at"), "{table}");
    let some = tool(&["--json", "top", "--pattern", "*o*", "--sort", "items", "--reverse", "--url", &to]).expect(0);
    let some = some.json();
    let names: Vec<&str> = some.as_array().expect("rows").iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(names, ["good", "over", "grown"]);
}

#[test]
fn filters_beside_redisbloom_are_listed_by_their_own_commands() {
    let server = Setup::default().module_before(&peer()).args("commands beside").start();
    let mut client = server.client();
    client.expect("RF.RESERVE ours 0.01 100", "+OK");
    add_many(&mut client, "RF.MADD ours", "item:", 0..4000);
    client.expect("BF.RESERVE theirs 0.01 100", "+OK");
    add_many(&mut client, "BF.MADD theirs", "item:", 0..4000);
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &url(&server)]).expect(0).json();
    for (at, (key, kind, prefix)) in [("ours", "filter", "RF"), ("theirs", "classic", "BF")].into_iter().enumerate() {
        assert_eq!((&rows[at]["key"], &rows[at]["kind"]), (&key.into(), &kind.into()));
        assert_eq!(rows[at]["items"].as_i64().expect("items"), client.int(&format!("{prefix}.CARD {key}")));
        let command = format!("{prefix}.RESERVE {{{key}}}:new 0.01 4400");
        assert_eq!(rows[at]["findings"][0]["command"], command, "{rows}");
    }
}

/// BF.* need not be there for ours to be RF.* alone.
#[test]
fn filters_beside_no_other_module_are_listed_too() {
    let server = Setup::default().args("commands beside").start();
    let mut client = server.client();
    client.call(&[b"RF.ADD".as_slice(), b"odd\xff{}", b"a"]);
    add_many(&mut client, "RF.MADD ours", "item:", 0..4000);
    let rows = tool(&["--json", "top", "--sort", "key", "--url", &url(&server)]).expect(0).json();
    assert_eq!((&rows[0]["items"], &rows[1]["items"]), (&1.into(), &client.int("RF.CARD ours").into()), "{rows}");
    assert!(rows.as_array().expect("rows").iter().all(|row| row["rejected"].is_null()), "{rows}");
}

#[test]
fn a_server_of_redisbloom_says_what_it_has() {
    let theirs = peer_server();
    let mut client = theirs.client();
    add_grown(&mut client);
    let rows = tool(&["--json", "top", "--url", &url(&theirs)]).expect(0).json();
    assert_eq!(rows[0]["items"].as_i64().expect("items"), client.int("BF.CARD grown"));
    // Its description of sub-filters reports the rate.
    assert_eq!(rows[0]["findings"][0]["command"], "BF.RESERVE {grown}:new 0.01 4400");
    let empty = Server::start();
    assert_eq!(tool(&["top", "--url", &url(&empty)]).expect(0).out, "0 filters and counters, 0 B; 0 to look at\n");
}

/// Types every command that `top` prints, for keys with each finding. None fails, none changes a key that is there, and
/// what is made is like what it is to replace.
#[test]
fn what_is_said_to_type_works_and_harms_no_key() {
    for (family, commands) in [("BF", "commands all"), ("RF", "commands beside")] {
        let server = Setup::default().args(commands).start();
        let (mut client, to) = (server.client(), url(&server));
        for (key, rate, options, items) in [
            ("grown", "0.01", "", 4000),
            ("slot:{7}:grown", "0.02", "", 4000),
            ("nearly", "0.001", "NONSCALING", 95),
            ("full", "0.01", "NONSCALING", 100),
            ("window", "0.01", "WINDOW 3600", 0),
        ] {
            client.expect(&format!("{family}.RESERVE {key} {rate} 100 {options}"), "+OK");
            add_many(&mut client, &format!("{family}.MADD {key}"), "item:", 0..items);
        }
        for (key, options) in [("over", "ERROR 0.05"), ("day", "ERROR 0.02 WINDOW 3600"), ("{7}", "WINDOW 60 MANUAL")] {
            client.expect(&format!("LC.RESERVE {key} 100 EXACT 0 {options}"), "+OK");
            add_many(&mut client, &format!("LC.ADD {key}"), "item:", 0..3000);
        }
        // What writes to these makes them too, so there is nothing to type.
        let filter = format!("{family}.INSERT seen:9 CAPACITY 10 WINDOW 3600 SLICES 1 VOLATILE ITEMS");
        add_many(&mut client, &filter, "item:", 0..6000);
        add_many(&mut client, "LC.INSERT sent:9 CAPACITY 100 EXACT 0 WINDOW 3600 VOLATILE ITEMS", "item:", 0..3000);
        let rows = tool(&["--json", "top", "--url", &to]).expect(0).json();
        let rows = rows.as_array().expect("rows").clone();
        let mut state = |key: &str| (client.digest(key), client.int(&format!("PEXPIRETIME {key}")));
        let before: Vec<_> = rows.iter().map(|row| state(row["key"].as_str().expect("a key"))).collect();
        let mut typed = Vec::new();
        for row in &rows {
            assert!(!row["findings"].as_array().expect("findings").is_empty(), "{row}");
            for finding in row["findings"].as_array().expect("findings") {
                let Some(command) = finding["command"].as_str() else {
                    let advice = finding["advice"].as_str().expect("a text");
                    let is_volatile = row["volatile"] == true && advice.starts_with("give CAPACITY ");
                    assert!(is_volatile || finding["problem"] == "idle", "{row}");
                    continue;
                };
                let mut client = server.client();
                client.expect(command, "+OK");
                let name = command.split(' ').nth(1).expect("a name");
                typed.push(row["key"].as_str().expect("a key").to_owned());
                let made = tool(&["--json", "top", "--pattern", name, "--url", &to]).expect(0).json();
                for same in ["kind", "asked", "window"] {
                    assert_eq!(made[0][same], row[same], "{same}: {command}");
                }
                assert!(made[0]["capacity"].as_f64() > row["items"].as_f64(), "{command}: {made}");
                client.expect(&format!("DEL {name}"), "1");
            }
        }
        typed.sort();
        assert_eq!(typed, ["day", "full", "grown", "nearly", "over", "slot:{7}:grown", "{7}"], "{rows:?}");
        let after: Vec<_> = rows.iter().map(|row| state(row["key"].as_str().expect("a key"))).collect();
        assert_eq!(after, before);
    }
}
