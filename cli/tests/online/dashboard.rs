//! Tests that `dashboard` shows what the server reports, and that it survives failures of the server.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::pages::{Pages, Reply};
use crate::{add_grown, peer_server, server_on, started, tool, url};
use rollcall_testkit::{Client, Server, add_many, cluster, figures, wait_until};

/// An interval between polls, in seconds, that no test reaches.
const NEVER: &str = "3600";

/// The JSON of `/api/state` once `is_so`.
fn state_when(pages: &Pages, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_until(what, || Some(json(&pages.get("/api/state"))["state"].take()).filter(&is_so))
}

/// The JSON of `/api/state` after the first poll.
pub fn state(pages: &Pages) -> Value {
    state_when(pages, "the first look", |state| state["looked"].is_u64())
}

/// Parses the body of an HTTP response.
#[track_caller]
fn json(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
    serde_json::from_str(&reply.body).unwrap_or_else(|error| panic!("{error}: {}", reply.body))
}

/// The row of a key in the state.
#[track_caller]
pub fn row<'a>(state: &'a Value, key: &str) -> &'a Value {
    let rows = state["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no row of {key}: {rows:?}"))
}

/// The history of a key, as a page requests it.
fn series(pages: &Pages, row: &Value) -> Value {
    json(&pages.get(&format!("/api/series?key={}&seconds=3600", row["id"].as_str().expect("an id"))))
}

/// The number of times that the server executed a command.
fn calls(client: &mut Client, command: &str) -> u64 {
    let stats = client.text("INFO commandstats");
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn answers_are_for_this_page_alone() {
    let pages = Pages::start(&["dashboard", "--url", "redis://127.0.0.1:1", "--interval", NEVER]);
    let (page, address) = (pages.get("/"), pages.address());
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-type: text/html; charset=utf-8"), "{}", page.head);
    let policy = page.head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).expect("a policy");
    for part in ["default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for path in ["/", "/findings", "/api/state", "/api/series?seconds=60", "/none"] {
        let reply = pages.get(path);
        for header in ["x-content-type-options: nosniff", "cache-control: no-store", "referrer-policy: no-referrer"] {
            assert!(reply.head.contains(header), "{path}: {}", reply.head);
        }
        let head = pages.send(&format!("HEAD {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!((head.status, head.body.as_str()), (reply.status, ""), "{path}");
        let post = pages.send(&format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(post.status, 405, "{path}");
        let rebound =
            pages.send(&format!("GET {path} HTTP/1.1\r\nHost: rebound.example.org:{}\r\n\r\n", address.port()));
        assert_eq!(rebound.status, 421, "{path}");
    }
    for wrong in ["", "?seconds=x", "?key=1", "?seconds=60&key=0123456789abcde%", "?seconds=60&more=1"] {
        assert_eq!(pages.get(&format!("/api/series{wrong}")).status, if wrong.ends_with("e%") { 200 } else { 400 });
    }
    assert_eq!(pages.get("/none").status, 404);
    // A server that was not reachable when the dashboard started.
    let state = state_when(&pages, "the look to fail", |state| state["is_unread"] == true);
    assert!(state["looked"].is_null() && state["rows"].as_array().is_some_and(Vec::is_empty), "{state}");
    assert!(state["troubles"][0]["text"].as_str().is_some_and(|text| text.contains("cannot connect")), "{state}");
    assert_eq!(state["troubles"][0]["is_down"], true);
    assert_eq!(pages.end("-HUP"), Some(0));
    tool(&["--json", "dashboard"]).expect(2);
    tool(&["dashboard", "--bind", "nowhere"]).expect(2);
}

#[test]
fn the_state_has_the_rows_and_findings_of_top() {
    let (_server, mut client, to) = started();
    add_grown(&mut client);
    client.expect("BF.RESERVE fixed 0.01 100 NONSCALING", "+OK");
    client.expect("LC.RESERVE day WINDOW 86400 SLICES 24", "+OK");
    add_many(&mut client, "LC.ADD day", "member:", 0..300);
    client.expect("PEXPIRE day 3600000", "1");
    let hostile =
        ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "a\"b\\c'd`${e}", "\u{202e}rtl", "ключ"];
    for name in hostile {
        client.call(&["LC.ADD", name, "ann"]);
    }
    let binary = b"\xff\x00\n<b>";
    client.call(&[&b"LC.ADD"[..], binary, b"ann"]);
    let pages = Pages::start(&["dashboard", "--url", &to, "--interval", NEVER]);
    let state = state(&pages);
    // The rows and findings equal those of `top`.
    let top = tool(&["--json", "top", "--sort", "key", "--url", &to]).expect(0).json();
    let shown = state["rows"].as_array().expect("rows");
    assert_eq!(shown.len(), 3 + hostile.len() + 1);
    assert_eq!(top.as_array().map(Vec::len), Some(shown.len()));
    for top in top.as_array().expect("rows") {
        let row = row(&state, top["key"].as_str().expect("a key"));
        for (field, value) in top.as_object().expect("a row").iter().filter(|(field, _)| *field != "ttl_ms") {
            assert_eq!(&row[field], value, "{field} of {}", row["key"]);
        }
    }
    assert_eq!(row(&state, "grown")["findings"][0]["problem"], "grown");
    // `top` and `dashboard` escape quotes and unprintable bytes alike.
    for name in hostile.iter().filter(|name| !name.contains('"')).chain(&["\\xff\\x00\\n<b>", r#"a\"b\\c\'d`${e}"#]) {
        assert_eq!(row(&state, name)["items"], 1, "{name}");
    }
    let figures = figures(&mut client);
    let totals = &state["totals"];
    assert_eq!(totals["is_whole"], true);
    assert_eq!(totals["filters"], figures["filters"]);
    assert_eq!(totals["counters"], figures["counters"]);
    assert_eq!(totals["bytes"], figures["allocated_bytes"]);
    assert_eq!(totals["items"].as_f64(), Some((client.int("BF.CARD grown") + client.int("BF.CARD fixed")) as f64));
    let members: i64 =
        shown.iter().filter(|row| row["kind"] == "counter").filter_map(|row| row["items"].as_i64()).sum();
    assert_eq!(totals["members"].as_f64(), Some(members as f64));
    // The dashboard has the slices of a window as the server has them, and repeated requests do not ask the server
    // again.
    let day = series(&pages, row(&state, "day"));
    let history: Vec<Vec<i64>> = client.list("LC.HISTORY day").iter().map(integers).collect();
    assert_eq!(day["window"], serde_json::json!(history));
    let before = calls(&mut client, "lc.history");
    let looks = calls(&mut client, "scan");
    for _ in 0..50 {
        assert_eq!(series(&pages, row(&state, "day"))["window"], day["window"]);
        assert_eq!(pages.get("/api/state").status, 200);
    }
    assert_eq!((calls(&mut client, "lc.history"), calls(&mut client, "scan")), (before, looks), "one look is for all");
    let grown = series(&pages, row(&state, "grown"));
    assert_eq!(grown["items"], serde_json::json!([client.int("BF.CARD grown") as f64]));
    assert!(grown.get("window").is_none(), "{grown}");
    let all = json(&pages.get("/api/series?seconds=3600"));
    assert_eq!(all["members"], serde_json::json!([members as f64]));
    // The dashboard sends only reading commands. Commands of this test itself are excluded.
    let own = ["bf.reserve", "lc.reserve", "bf.madd", "lc.add", "pexpire", "bf.card", "ping", "config|get"];
    let reads =
        ["bf.info", "lc.info", "lc.history", "info", "scan", "client|no-touch", "pttl", "command|info", "rf.info"];
    let stats = client.text("INFO commandstats").to_lowercase();
    let sent: BTreeSet<&str> =
        stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(':').next()).collect();
    let others: Vec<_> = sent.iter().filter(|name| !own.contains(*name) && !reads.contains(*name)).collect();
    assert!(others.is_empty(), "{others:?}");
    // `--max-keys` and `--pattern` limit the rows.
    let some = Pages::start(&["dashboard", "--url", &to, "--max-keys", "2", "--pattern", "*d*", "--interval", NEVER]);
    let some = self::state(&some);
    assert_eq!(some["rows"].as_array().map(Vec::len), Some(2), "{some}");
    assert_eq!((&some["pattern"], &some["totals"]["is_whole"]), (&Value::from("*d*"), &Value::from(false)));
    assert_eq!(some["left_out"], 1, "{some}");
}

fn integers(reply: &redis::Value) -> Vec<i64> {
    let redis::Value::Array(items) = reply else { panic!("{reply:?}") };
    // The third number is the standard error, which is left out.
    items
        .iter()
        .take(2)
        .map(|item| if let redis::Value::Int(number) = item { *number } else { panic!("{item:?}") })
        .collect()
}

/// Keys beyond `--max-keys` are judged too: each poll judges a few of them in turn.
#[test]
fn keys_that_are_left_out_are_judged_in_turn() {
    let (server, mut client) = Server::start().with_client();
    let keys: Vec<_> =
        (0..30).map(|key| ["LC.ADD", &format!("count:{key:02}"), "ann"].map(str::to_owned).to_vec()).collect();
    client.pipeline(&keys);
    for key in ["a:full", "count:07:full", "z:full"] {
        client.expect(&format!("BF.RESERVE {key} 0.01 10 NONSCALING"), "+OK");
        add_many(&mut client, &format!("BF.MADD {key}"), "item:", 0..10);
    }
    let pages = Pages::start(&["dashboard", "--url", &url(&server), "--interval", "1", "--max-keys", "5"]);
    let first = state(&pages);
    // The rows and the keys left out always add up to all keys.
    let (rows, left_out) = (first["rows"].as_array().map(Vec::len), first["left_out"].as_u64());
    assert_eq!(rows.and_then(|rows| Some(rows as u64 + left_out?)), Some(33), "{first}");
    assert!(first["unjudged"].as_u64().is_some_and(|unjudged| unjudged > 0), "{first}");
    let found = |state: &Value| -> Vec<String> {
        let rows = state["rows"].as_array().expect("rows").iter();
        let full = rows.filter(|row| row["findings"][0]["problem"] == "full");
        full.filter_map(|row| row["key"].as_str()).map(str::to_owned).collect()
    };
    let until = |what: &str, wanted: &[&str]| {
        state_when(&pages, what, |state| found(state) == wanted && state["unjudged"] == 0)
    };
    let all = until("all to be judged", &["a:full", "count:07:full", "z:full"]);
    assert_eq!((all["rows"].as_array().map(Vec::len), &all["left_out"]), (Some(7), &Value::from(26)), "{all}");
    assert_eq!(series(&pages, row(&all, "z:full"))["items"][0], 10.0);
    // The finding of a deleted key disappears, and a new problem is found.
    client.expect("DEL count:07:full", "1");
    client.expect("BF.RESERVE count:20:full 0.01 10 NONSCALING", "+OK");
    add_many(&mut client, "BF.MADD count:20:full", "item:", 0..10);
    until("the next round", &["a:full", "count:20:full", "z:full"]);
}

#[test]
fn a_server_that_goes_is_missed_and_taken_up_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("server.sock").display().to_string();
    let start = || server_on(&socket);
    let mut failing = start();
    let pages = Pages::start(&["dashboard", "--url", &format!("redis+unix://{socket}"), "--interval", "1"]);
    let before = state(&pages);
    assert_eq!((&before["is_unread"], before["troubles"].as_array().map(Vec::len)), (&Value::from(false), Some(0)));
    failing.shutdown("SHUTDOWN NOSAVE");
    let until =
        |wanted: bool| state_when(&pages, "the server to be seen as it is", |state| state["is_unread"] == wanted);
    let down = until(true);
    let since = down["troubles"][0]["since"].as_u64().expect("since when");
    assert!(since >= before["looked"].as_u64().expect("a time"), "{down}");
    assert_eq!(row(&down, "visitors")["items"], 1, "what was seen last stays");
    let looked = down["looked"].clone();
    // The time since which the server is down stays the same over many attempts.
    let took = || json(&pages.get("/api/state"))["state"]["troubles"][0]["since"].as_u64();
    std::iter::repeat_with(took).take(20).for_each(|again| assert_eq!(again, Some(since)));
    assert_eq!(until(true)["looked"], looked);
    let _again = start();
    // A poll may come after the server has started and before the key exists.
    let back = state_when(&pages, "the key to be seen again", |state| {
        state["is_unread"] == false && state["rows"].as_array().is_some_and(|rows| !rows.is_empty())
    });
    assert!(back["looked"].as_u64() > looked.as_u64() && back["troubles"].as_array().is_some_and(Vec::is_empty));
    // The curve has a gap for the time when the server was down.
    let items = wait_until("a sample after the gap", || {
        let items = series(&pages, row(&back, "visitors"))["items"].take();
        let known = items.as_array()?.iter().rposition(Value::is_null)?;
        (known + 1 < items.as_array()?.len()).then_some(items)
    });
    let items = items.as_array().expect("a list");
    // A poll during the downtime may add a second null.
    assert!((1..=2).contains(&items.iter().filter(|item| item.is_null()).count()), "{items:?}");
    assert_eq!(items[0], 1.0);
}

#[test]
fn a_cluster_is_one_page_and_redisbloom_has_one_too() {
    let mut nodes = cluster(3);
    for key in 0..30 {
        let create = format!("count:{key}");
        let args = ["import", "-", &create, "--kind", "counter", "--create", "WINDOW 86400"];
        crate::tool_with(&[&args[..], &["--cluster", "--url", &url(&nodes[0])]].concat(), b"ann\nben\n", &[]).expect(0);
    }
    let pages = Pages::start(&["dashboard", "--cluster", "--url", &url(&nodes[1]), "--interval", "1"]);
    let first = state(&pages);
    assert_eq!((first["nodes"].as_array().map(Vec::len), &first["is_part"]), (Some(3), &Value::from(false)));
    assert_eq!((first["rows"].as_array().map(Vec::len), &first["totals"]["counters"]), (Some(30), &Value::from(30)));
    for row in first["rows"].as_array().expect("rows") {
        let window = wait_until("the slices", || Some(series(&pages, row)["window"].take()).filter(Value::is_array));
        assert_eq!(window[window.as_array().map_or(0, |rows| rows.len() - 1)][1], 2, "{} {window}", row["key"]);
    }
    // A regression test: without `--cluster`, the page did not say that it shows the keys of one node only.
    let of_one = Pages::start(&["dashboard", "--url", &url(&nodes[1]), "--interval", NEVER]);
    assert_eq!(state(&of_one)["is_part"], true);
    // One node stops. It is named, its keys keep their last figures, and the other nodes are polled.
    let gone = format!("127.0.0.1:{}", nodes.remove(0).port());
    let without = state_when(&pages, "the node to be missed", |state| {
        state["troubles"].as_array().is_some_and(|troubles| !troubles.is_empty())
    });
    assert_eq!((&without["troubles"][0]["server"], &without["is_unread"]), (&Value::from(gone), &Value::from(false)));
    assert_eq!(without["rows"].as_array().map(Vec::len), Some(30));
    // The error of that node is no answer about the keys of the others.
    let mut rows = without["rows"].as_array().expect("rows").iter();
    let other = rows.find(|row| row["server"] != without["troubles"][0]["server"]).expect("a row");
    let series = series(&pages, other);
    assert!(series["window"].is_array(), "{series}");
    let theirs = peer_server();
    add_many(&mut theirs.client(), "BF.MADD seen", "item:", 0..50);
    let pages = Pages::start(&["dashboard", "--url", &url(&theirs), "--interval", NEVER]);
    let state = state(&pages);
    assert_eq!(row(&state, "seen")["items"], theirs.client().int("BF.CARD seen"));
    assert_eq!((&state["totals"]["is_whole"], &state["totals"]["filters"]), (&Value::from(false), &Value::from(1)));
}

#[test]
fn the_rights_that_the_documents_name_are_enough() {
    let (server, mut client) = Server::start().with_client();
    client.expect("LC.RESERVE day WINDOW 86400", "+OK");
    add_many(&mut client, "BF.MADD seen", "item:", 0..50);
    let document = include_str!("../../../docs/monitoring.md");
    let rights = document.lines().find_map(|line| line.strip_prefix("    ACL SETUSER watcher")).expect("the rights");
    client.expect(&format!("ACL SETUSER watcher{rights}"), "+OK");
    assert!(document.contains("`+client|no-touch`"));
    // Redis 7.0 lacks this command.
    let _ = client.cmd("ACL SETUSER watcher +client|no-touch");
    let to = format!("redis://watcher:password@127.0.0.1:{}", server.port());
    let pages = Pages::start(&["dashboard", "--url", &to, "--interval", NEVER]);
    let state = state(&pages);
    assert_eq!(state["nodes"][0]["role"], "master");
    for key in ["day", "seen"] {
        let row = row(&state, key);
        assert!(
            row["rejected"].is_null() && row["bytes"].is_u64() && row["capacity"].is_u64() == (key == "seen"),
            "{row}"
        );
    }
    assert!(series(&pages, row(&state, "day"))["window"].is_array());
    assert_eq!(client.list("ACL LOG"), [], "something was denied");
    // A server that answers with an error is in trouble, but not down.
    client.expect("ACL SETUSER watcher -scan", "+OK");
    let pages = Pages::start(&["dashboard", "--url", &to, "--interval", NEVER]);
    let state = state_when(&pages, "the look to fail", |state| state["is_unread"] == true);
    let trouble = &state["troubles"][0];
    assert_eq!(trouble["is_down"], false, "{state}");
    assert!(trouble["text"].as_str().is_some_and(|text| text.contains("answered SCAN with: NOPERM")), "{state}");
}
