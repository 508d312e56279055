//! Tests that commands printed by the tool work when a user types them.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::pages::Pages;
use crate::{add_grown, tool, tool_with, url};
use rollcall_testkit::{Client, Server, Setup, add_many, lines, pairs, wait_until};

/// The output of redis-cli for one line of input.
fn typed(server: &Server, line: &str) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.port().to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("redis-cli is installed with the server");
    child.stdin.take().expect("its input").write_all(line.as_bytes()).expect("it reads");
    String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("text").trim().to_owned()
}

/// The options of a key, from its INFO.
fn options(client: &mut Client, family: &str, key: &str) -> Vec<String> {
    let mut all: Vec<String> = ["ERROR", "WINDOW", "SLICES", "CLOCK", "REFRESH"]
        .iter()
        .map(|field| format!("{field} {:?}", client.call(&[&format!("{family}.INFO"), key, field])))
        .filter(|answer| !answer.contains("Error"))
        .collect();
    let info = pairs(&client.call(&[&format!("{family}.INFO"), key]));
    all.extend(info.iter().filter(|(label, _)| label == "Expansion rate").map(|(_, value)| format!("{value:?}")));
    all
}

/// Runs every command that `top` suggests, for keys with each finding. No command fails or changes an existing key,
/// and new keys have the options of the old ones.
///
/// A regression test: a command lacked SLICES, so that MERGE into the new key failed.
#[test]
fn commands_of_findings_make_like_keys_and_harm_none() {
    for (family, commands) in [("BF", "commands all"), ("RF", "commands beside")] {
        let server = Setup::default().args(commands).start();
        let (mut client, to) = (server.client(), url(&server));
        for (key, rate, options, items) in [
            ("grown", "0.01", "EXPANSION 1", 4000),
            ("slot:{7}:grown", "0.012345678", "", 4000),
            ("nearly", "0.001", "NONSCALING", 95),
            ("full", "0.01", "NONSCALING", 100),
            ("days", "0.01", "WINDOW 3600 SLICES 6 REFRESH EXPANSION 1", 4000),
        ] {
            client.expect(&format!("{family}.RESERVE {key} {rate} 100 {options}"), "+OK");
            add_many(&mut client, &format!("{family}.MADD {key}"), "item:", 0..items);
        }
        let odd = "two \"words\"";
        client.call(&[&format!("{family}.RESERVE"), odd, "0.01", "100", "EXPANSION", "1"]);
        for item in 0..4000 {
            client.call(&[&format!("{family}.ADD"), odd, &item.to_string()]);
        }
        // Writes create volatile keys, so `top` suggests no command for them.
        let filter = format!("{family}.INSERT seen:9 CAPACITY 10 WINDOW 3600 SLICES 1 VOLATILE ITEMS");
        add_many(&mut client, &filter, "item:", 0..6000);
        let rows = tool(&["--json", "top", "--url", &to]).expect(0).json();
        let rows = rows.as_array().expect("rows").clone();
        let keys: Vec<&str> = rows.iter().map(|row| row["key"].as_str().expect("a key")).collect();
        let mut state = |key: &str| client.call(&["DEBUG", "DIGEST-VALUE", key]);
        let before: Vec<_> = keys.iter().map(|key| state(key)).collect();
        let mut made = 0;
        for (row, key) in rows.iter().zip(&keys) {
            assert!(!row["findings"].as_array().expect("findings").is_empty(), "{row}");
            for finding in row["findings"].as_array().expect("findings") {
                let Some(command) = finding["command"].as_str() else {
                    let advice = finding["advice"].as_str().expect("a text");
                    assert!(row["volatile"] == true && advice.starts_with("give CAPACITY "), "{row}");
                    continue;
                };
                assert_eq!(typed(&server, command), "OK", "{command}");
                made += 1;
                let name = if *key == odd { "{two \"words\"}:new" } else { command.split(' ').nth(1).expect("a name") };
                let mut client = server.client();
                assert_eq!(options(&mut client, family, name), options(&mut client, family, key), "{command}");
                let new = client.call(&[&format!("{family}.INFO"), name]);
                let capacity = pairs(&new).into_iter().find(|(label, _)| label == "Capacity").expect("it").1;
                assert!(
                    matches!(capacity, redis::Value::Int(number) if number as f64 > row["items"].as_f64().unwrap())
                );
                assert_eq!(client.call(&["DEL", name]), redis::Value::Int(1));
            }
        }
        assert!(made >= 6, "{rows:?}");
        assert_eq!(keys.iter().map(|key| state(key)).collect::<Vec<_>>(), before);
    }
}

/// All commands of the tool that a JSON value contains.
fn of_tool(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.starts_with("rollcall ") => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(of_tool).collect(),
        Value::Object(fields) => fields.values().flat_map(of_tool).collect(),
        _ => Vec::new(),
    }
}

/// Runs a command as it was printed, followed by the words `more`. It succeeds, and shows the key `grown`.
fn shows_grown(command: &str, more: &[&str]) {
    let words: Vec<&str> = command.split(' ').skip(1).chain(more.iter().copied()).collect();
    let out = tool(&words).expect(0).out;
    assert!(out.contains("\ngrown "), "{command}: {out}");
}

/// A regression test: suggested commands lacked the server's address, so they asked the default server.
#[test]
fn commands_of_the_tool_ask_the_server_that_the_finding_is_about() {
    let (server, mut client) = Server::start().with_client();
    add_grown(&mut client);
    crate::add_partially_loaded(&mut client);
    let used = client.info_number("used_memory");
    client.expect(&format!("CONFIG SET maxmemory {}", used + 100_000), "+OK");
    let pages = Pages::start(&["dashboard", "--url", &url(&server), "--interval", "1"]);
    let commands = wait_until("the findings", || {
        let state: Value = serde_json::from_str(&pages.get("/api/state").body).ok()?;
        Some(of_tool(&state)).filter(|commands| !commands.is_empty())
    });
    assert_eq!(commands.len(), 2, "{commands:?}");
    commands.iter().for_each(|command| shows_grown(command, &[]));
    // The commands of alerts contain no server, because Prometheus adds it as a label.
    let alerts = include_str!("../../../packaging/monitoring/alerts.yml");
    let advice = alerts.lines().filter_map(|line| line.split_once("rollcall top --sort ")).map(|(_, rest)| rest);
    let columns: Vec<&str> = advice.map(|rest| rest.split([',', '.', '"', ' ']).next().expect("a column")).collect();
    assert!(columns.len() >= 5, "{columns:?}");
    for column in columns {
        shows_grown(&format!("rollcall top --sort {column}"), &["--url", &url(&server)]);
    }
}

/// A regression test: when `import --kind counter` found no key, its advice created a filter.
#[test]
fn import_says_how_to_create_the_key_and_how_to_go_on() {
    let server = Server::start();
    let to = url(&server);
    let lines: String = (0..20).map(|number| format!("item:{number}\n")).collect();
    for (asked, kind) in [(&[][..], "filter"), (&["--kind", "filter"], "filter"), (&["--kind", "counter"], "counter")] {
        let import =
            |more: &[&str]| tool_with(&[&["import", "-", "key", "--url", &to], more].concat(), lines.as_bytes(), &[]);
        let said = import(asked).expect(4).err;
        let (_, rest) = said.split_once("create it: --kind ").expect("the options");
        let (created, rest) = rest.split_once(" --create \"").expect("the options");
        assert_eq!(created, kind, "{said}");
        let out = import(&["--kind", kind, "--create", rest.split_once('"').expect("their end").0]).expect(0).out;
        assert!(out.contains(&format!("a {kind}")), "{out}");
        server.client().expect("DEL key", "1");
    }
    server.client().expect("BF.RESERVE key 0.01 10 NONSCALING", "+OK");
    let said = tool_with(&["import", "-", "key", "--url", &to], lines.as_bytes(), &[]).expect(3).err;
    assert!(said.contains("give all lines to a larger one"), "{said}");
    server.client().expect("DEL key", "1");
    server.client().expect("BF.RESERVE key 0.01 20 NONSCALING", "+OK");
    let items = tool_with(&["--json", "import", "-", "key", "--url", &to], lines.as_bytes(), &[]).expect(0).json();
    assert_eq!(items["items"], 20);
}

#[test]
fn commands_of_plans_are_taken() {
    let server = Server::start();
    for options in lines(
        "filter 1M --error 0.1%; filter 1000 2000 --window 1d --slices 7 --refresh; filter 1000 --nonscaling --seed 7
         filter 400M --error 0.001; counter 50k --window 7d
         counter 100 1M --error 1/300 --exact 10 --exact-bytes 2000 --seed 7",
    ) {
        let words: Vec<&str> = ["plan"].into_iter().chain(options.split(' ')).collect();
        let out = tool(&words).expect(0).out;
        let is_command = |line: &&str| ["BF.", "LC.", "CONFIG "].iter().any(|start| line.starts_with(start));
        let commands: Vec<&str> = out.lines().filter(is_command).collect();
        assert!(!commands.is_empty(), "{out}");
        for command in commands {
            assert_eq!(typed(&server, command), "OK", "{command}");
            server.client().cmd("DEL key");
        }
    }
}
