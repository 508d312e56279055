//! Tests that the exporter's figures equal those of the servers, also while servers fail and return.

use std::collections::{BTreeSet, HashMap};

use crate::pages::Pages;
use crate::stopped::Narrow;
use crate::{add_grown, add_partially_loaded, peer_server, tool, tool_with, url};
use rollcall_testkit::{Server, Setup, add_many, cluster, figures, pairs, text, wait_until};

/// The samples of a text, by metric name with labels.
fn samples(text: &str) -> HashMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
    });
    let (all, count) = (pairs.clone().collect::<HashMap<String, f64>>(), pairs.count());
    assert_eq!(all.len(), count, "a sample is there twice: {text}");
    all
}

fn name(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

#[test]
fn figures_are_those_of_the_server() {
    let server = Server::start();
    let (mut client, to, at) = (server.client(), url(&server), name(&server));
    add_grown(&mut client);
    client.expect("BF.RESERVE full 0.01 100 NONSCALING", "+OK");
    client.cmd("BF.MADD full a b c");
    client.expect("BF.ADMIT full LIMIT 3 ITEMS d e", "[-1, -1]");
    add_many(&mut client, "LC.ADD visitors", "item:", 0..3000);
    client.expect("PEXPIRE visitors 3600000", "1");
    client.expect("LC.RESERVE window WINDOW 60", "+OK");
    let odd = b"odd \"\\\n\xff";
    client.call(&[&b"LC.ADD"[..], odd, b"a"]);
    add_partially_loaded(&mut client);
    let out = tool(&["exporter", "--once", "--pattern", "*", "--url", &to]).expect(0).out;
    let all = samples(&out);
    let of = |name: &str, labels: &str| all.get(&format!("rollcall_{name}{{server=\"{at}\"{labels}}}")).copied();
    assert_eq!(of("up", ""), Some(1.0));
    // Every field of the module has a sample; a field that the module does not report has none.
    let figures = figures(&mut client);
    let field = |name: &str| figures.get(name).map(|&value| value as f64);
    let assert_same = |metric: &str, labels: &str, name: &str| {
        assert!(field(name).is_some() && of(metric, labels) == field(name), "{name}: {:?}", of(metric, labels));
    };
    for name in ["filters", "counters", "filters_not_served", "filters_items", "filters_capacity", "filters_grown"]
        .into_iter()
        .chain(["filters_sub_filters", "allocated_bytes"])
    {
        assert_same(name, "", name);
    }
    for name in ["filters_growths", "counters_promotions"] {
        assert_same(&format!("{name}_total"), "", name);
    }
    assert_eq!((field("filters"), field("filters_growths")), (Some(4.0), Some(5.0)));
    for reason in ["corrupt", "full", "limit", "memory"] {
        assert_same("rejected_total", &format!(",reason=\"{reason}\""), &format!("rejected_{reason}"));
    }
    for (family, rejected, forms) in [("filter", 2.0, ["lines", "classic"]), ("counter", 0.0, ["exact", "estimate"])] {
        for name in ["items_rejected", "advances"] {
            assert_same(&format!("{name}_total"), &format!(",family=\"{family}\""), &format!("{family}s_{name}"));
        }
        assert_eq!(field(&format!("{family}s_items_rejected")), Some(rejected));
        for form in forms.into_iter().chain(["windowed", "partially_loaded"]) {
            let label = format!(",family=\"{family}\",form=\"{form}\"");
            assert_same("values", &label, &format!("{family}s_{form}"));
            assert_same("values_memory_bytes", &label, &format!("{family}s_{form}_bytes"));
        }
    }
    // Keys.
    let key = |metric: &str, key: &str, kind: &str| of(metric, &format!(",key=\"{key}\",kind=\"{kind}\""));
    assert_eq!(key("key_items", "grown", "filter"), Some(client.int("BF.CARD grown") as f64));
    assert_eq!(key("key_items", "visitors", "counter"), Some(client.int("LC.COUNT visitors") as f64));
    let capacity = pairs(&client.cmd("BF.INFO grown")).into_iter().find(|(label, _)| label == "Capacity");
    assert_eq!(key("key_capacity", "window", "counter"), None);
    assert_eq!(key("key_capacity", "grown", "filter").map(|n| redis::Value::Int(n as i64)), capacity.map(|(_, n)| n));
    let fpr: f64 = text(&client.list("BF.INFO grown FPR")[0]).parse().expect("a rate");
    assert_eq!(key("key_error_ratio", "grown", "filter"), Some(fpr));
    assert_eq!(key("key_error_asked_ratio", "grown", "filter"), Some(0.01));
    let size = client.list("BF.INFO grown SIZE")[0].clone();
    assert_eq!(key("key_memory_bytes", "grown", "filter").map(|n| redis::Value::Int(n as i64)), Some(size));
    let ttl = key("key_ttl_seconds", "visitors", "counter").expect("a time");
    assert!((3000.0..=3600.0).contains(&ttl), "{ttl}");
    assert_eq!(key("key_ttl_seconds", "grown", "filter"), None);
    assert_eq!(key("key_partially_loaded", "half", "filter"), Some(1.0));
    assert_eq!(key("key_partially_loaded", "grown", "filter"), Some(0.0));
    assert_eq!(key("key_items", "half", "filter"), None);
    // Unprintable bytes are escaped twice: for display, and for Prometheus.
    assert_eq!(key("key_items", r#"odd \\\"\\\\\\n\\xff"#, "counter"), Some(1.0), "{out}");
    let found = |key: &str, kind: &str, finding: &str, severity: &str| {
        let labels = format!(",key=\"{key}\",kind=\"{kind}\",finding=\"{finding}\",severity=\"{severity}\"");
        of("key_finding", &labels)
    };
    assert_eq!(found("grown", "filter", "grown", "warning"), Some(1.0));
    assert_eq!(found("half", "filter", "partially-loaded", "warning"), Some(1.0));
    assert_eq!(all.keys().filter(|name| name.starts_with("rollcall_key_finding")).count(), 2, "{out}");
    assert_eq!((of("keys_shown", ""), of("keys_left_out", "")), (Some(7.0), Some(0.0)));
    // `--max-keys` and `--pattern` limit the keys; without a pattern no keys are exported.
    let some = samples(&tool(&["exporter", "--once", "--pattern", "*", "--max-keys", "2", "--url", &to]).expect(0).out);
    let shown: Vec<_> = some.keys().filter(|name| name.contains("rollcall_key_memory")).collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown.iter().all(|name| name.contains("\"full\"") || name.contains("\"grown\"")), "{shown:?}");
    assert_eq!(some[&format!("rollcall_keys_left_out{{server=\"{at}\"}}")], 5.0);
    let none = tool(&["exporter", "--once", "--url", &to]).expect(0).out;
    assert!(!none.contains("rollcall_key"), "{none}");
    // Findings about the whole server.
    let used = client.info_number("used_memory");
    client.expect(&format!("CONFIG SET maxmemory {}", used + 100_000), "+OK");
    let short = tool_with(&["exporter", "--once"], b"", &[("ROLLCALL_URL", &format!("{to} {to}"))]).expect(0).out;
    let labels = format!("{{server=\"{at}\",finding=\"memory\",severity=");
    assert!(short.contains(&format!("rollcall_server_finding{labels}")), "{short}");
    assert_eq!(tool(&["--json", "exporter", "--once", "--url", &to]).code, 2);
}

#[test]
fn the_user_of_the_document_has_all_rights_that_it_takes() {
    let page = include_str!("../../../docs/monitoring.md");
    let line = page.lines().find_map(|line| line.trim().strip_prefix("ACL SETUSER exporter")).expect("the line");
    for nodes in [vec![Server::start()], cluster(3)] {
        for node in &nodes {
            node.client().expect(&format!("ACL SETUSER exporter{line}"), "+OK");
            let mut client = node.client();
            // In a cluster, each key is accepted by one node and rejected by the others.
            let _ = (client.cmd("BF.ADD filter a"), client.cmd("LC.ADD counter a"));
        }
        let at = name(&nodes[0]);
        let url = format!("redis://exporter:password@{at}");
        let mut args = vec!["exporter", "--once", "--pattern", "*", "--url", &url];
        args.extend((nodes.len() > 1).then_some("--cluster"));
        let out = tool(&args).expect(0).out;
        let all = samples(&out);
        for node in &nodes {
            let size = node.client().int("DBSIZE") as f64;
            assert_eq!(all[&format!("rollcall_keys_shown{{server=\"{}\"}}", name(node))], size, "{out}");
        }
        let sizes = all.keys().filter(|sample| sample.starts_with("rollcall_key_memory_bytes"));
        assert_eq!(sizes.count(), 2, "{out}");
        // Without the permission to scan, the server counts as up, and its keys as down.
        nodes[0].client().expect("ACL SETUSER exporter -scan", "+OK");
        let out = tool(&args).expect(3).out;
        assert_eq!(samples(&out)[&format!("rollcall_keys_up{{server=\"{at}\"}}")], 0.0, "{out}");
        // So it is if one kind of question about keys is forbidden, or some of the keys.
        nodes[0].client().expect("ACL SETUSER exporter +scan", "+OK");
        for (before, after) in [
            ("-bf.info -rf.info", "+bf.info +rf.info"),
            ("-lc.info", "+lc.info"),
            ("-pttl", "+pttl"),
            ("resetkeys ~counter", "~*"),
            ("resetkeys ~filter", "~*"),
        ] {
            for node in &nodes {
                node.client().expect(&format!("ACL SETUSER exporter {before}"), "+OK");
            }
            let ended = tool(&args).fails(3, "NOPERM");
            let up = samples(&ended.out).into_iter().filter(|(name, _)| name.starts_with("rollcall_keys_up"));
            assert_eq!(up.map(|(_, up)| up).reduce(f64::min), Some(0.0), "{before}: {}", ended.out);
            for node in &nodes {
                node.client().expect(&format!("ACL SETUSER exporter {after}"), "+OK");
            }
        }
        // Without the permission for INFO, the server is up, and its keys are known.
        nodes[0].client().expect("ACL SETUSER exporter -info", "+OK");
        let out = tool(&args).expect(3).out;
        let figures =
            ["up", "info_up", "keys_up"].map(|name| samples(&out)[&format!("rollcall_{name}{{server=\"{at}\"}}")]);
        assert_eq!(figures, [1.0, 0.0, 1.0], "{out}");
        // Without the permission for CLUSTER SLOTS, the node that the URL names does not stand for all primaries.
        if nodes.len() > 1 {
            nodes[0].client().expect("ACL SETUSER exporter +info -cluster|slots", "+OK");
            let ended = tool(&args).expect(3);
            assert_eq!(samples(&ended.out)[&format!("rollcall_info_up{{server=\"{at}\"}}")], 0.0, "{}", ended.out);
            assert!(ended.err.contains("NOPERM") && ended.err.contains("cluster|slots"), "{}", ended.err);
        }
    }
}

#[test]
fn a_server_that_is_down_hides_no_other_and_comes_back() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), Server::start());
    let socket = folder.path().join("server.sock").display().to_string();
    let start = || Setup::default().line(&format!("unixsocket {socket}")).start();
    let mut failing = start();
    failing.client().cmd("LC.ADD visitors ann");
    let (first, second) = (format!("redis+unix://{socket}"), url(&other));
    let args = ["exporter", "--url", &first, "--url", &second, "--interval", "1", "--keys-interval", "1"];
    // The timeout is long because a busy machine may delay a healthy server's answer.
    let pages = Pages::start(&[&args[..], &["--pattern", "*", "--timeout", "60"]].concat());
    let up = |at: &str| samples(&pages.get("/metrics").body).get(&format!("rollcall_up{{server=\"{at}\"}}")).copied();
    let (at_socket, other) = (socket.as_str(), &*name(&other));
    let both = |wanted: [f64; 2]| {
        wait_until("the servers to be seen", || ([up(at_socket), up(other)] == wanted.map(Some)).then_some(()));
    };
    both([1.0, 1.0]);
    wait_until("keys", || pages.get("/metrics").body.contains("rollcall_key_items{").then_some(()));
    failing.shutdown("SHUTDOWN NOSAVE");
    both([0.0, 1.0]);
    // Keys are polled separately from other figures, so they disappear at another time.
    wait_until("its keys to go", || {
        let is_said = pages.said().contains(&format!("no keys of {at_socket}"));
        (is_said && !pages.get("/metrics").body.contains("rollcall_key_items{")).then_some(())
    });
    let body = pages.get("/metrics").body;
    assert!(!body.contains(&format!("rollcall_filters{{server=\"{at_socket}\"")), "{body}");
    assert!(body.contains(&format!("rollcall_filters{{server=\"{other}\"")), "{body}");
    let _again = start();
    both([1.0, 1.0]);
    // Each change is logged once, however many polls notice it.
    wait_until("it to be said", || pages.said().contains(&format!("keys of {at_socket} again")).then_some(()));
    let said = pages.said();
    for what in ["figures", "keys"] {
        // A starting server creates its socket before it listens, so the log may have two reasons for one failure.
        let down = format!("rollcall: no {what} of {at_socket}: ");
        let reasons: Vec<&str> = said.lines().filter(|line| line.starts_with(&down)).collect();
        let distinct: BTreeSet<&&str> = reasons.iter().collect();
        assert!(!reasons.is_empty() && distinct.len() == reasons.len(), "{said}");
        assert_eq!(said.matches(&format!("rollcall: {what} of {at_socket} again")).count(), 1, "{said}");
    }
    assert!(!said.contains(other), "{said}");
    assert_eq!(pages.end("-TERM"), Some(0));
}

#[test]
fn every_primary_of_a_cluster_has_its_figures() {
    let mut nodes = cluster(3);
    for key in 0..30 {
        let args = ["import", "-", &format!("count:{key}"), "--kind", "counter", "--create", "ERROR 0.02"];
        let target = ["--cluster", "--url", &url(&nodes[0])];
        tool_with(&[&args[..], &target[..]].concat(), b"ann\nben\n", &[]).expect(0);
    }
    let once = ["exporter", "--once", "--cluster", "--pattern", "*", "--url", &url(&nodes[1])];
    let all = samples(&tool(&once).expect(0).out);
    for node in &nodes {
        let (at, size) = (name(node), node.client().int("DBSIZE") as f64);
        assert_eq!(all[&format!("rollcall_up{{server=\"{at}\"}}")], 1.0);
        assert_eq!(all[&format!("rollcall_counters{{server=\"{at}\"}}")], size);
        assert_eq!(all[&format!("rollcall_keys_shown{{server=\"{at}\"}}")], size);
        let prefix = format!("rollcall_key_items{{server=\"{at}\"");
        assert_eq!(all.iter().filter(|(name, items)| name.starts_with(&prefix) && **items == 2.0).count() as f64, size);
    }
    // One node stops. The other nodes keep their figures under every name by which they were given.
    let (lost, down) = (nodes.remove(2), name(&nodes[1]));
    let gone = name(&lost);
    drop(lost);
    let args = ["exporter", "--once", "--cluster", "--url", &url(&nodes[0])];
    let ended = tool(&args).fails(3, "1 readings of servers failed");
    let all = samples(&ended.out);
    for name in ["up", "info_up"] {
        assert_eq!(all[&format!("rollcall_{name}{{server=\"{gone}\"}}")], 0.0);
        assert_eq!(all[&format!("rollcall_{name}{{server=\"{down}\"}}")], 1.0);
    }
}

#[test]
fn a_server_of_redisbloom_has_figures_of_its_keys() {
    let (theirs, mut client) = peer_server().with_client();
    add_grown(&mut client);
    let out = tool(&["exporter", "--once", "--pattern", "*", "--url", &url(&theirs)]).expect(0).out;
    let (all, at) = (samples(&out), name(&theirs));
    let key = format!("{{server=\"{at}\",key=\"grown\",kind=\"classic\"}}");
    assert_eq!(all[&format!("rollcall_key_items{key}")], client.int("BF.CARD grown") as f64);
    assert!(!all.contains_key(&format!("rollcall_key_error_ratio{key}")), "{out}");
    assert!(!all.contains_key(&format!("rollcall_filters{{server=\"{at}\"}}")), "{out}");
    assert!(out.contains("finding=\"grown\""), "{out}");
    client.expect("ACL SETUSER default -bf.debug", "+OK");
    tool(&["exporter", "--once", "--pattern", "*", "--url", &url(&theirs)]).fails(3, "no keys of");
}

/// A regression test: a server that closed its connections, or fell silent on one, was shown as up.
#[test]
fn a_server_that_closes_or_falls_silent_is_down() {
    let closing = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let at_closing = closing.local_addr().expect("its address").to_string();
    std::thread::spawn(move || closing.incoming().for_each(drop));
    // The answer to the first command passes, the next one does not.
    let server = Server::start();
    let silent = Narrow::to(&server, 5).url();
    let at_silent = silent.trim_start_matches("redis://");
    let once = tool(&["exporter", "--once", "--url", &at_closing, "--url", at_silent, "--timeout", "1"]).expect(3);
    let all = samples(&once.out);
    for at in [&at_closing, at_silent] {
        assert_eq!(all[&format!("rollcall_up{{server=\"{at}\"}}")], 0.0, "{}{}", once.out, once.err);
    }
}

#[test]
fn a_wrong_password_is_reported() {
    let server = Server::start();
    server.client().expect("CONFIG SET requirepass right", "+OK");
    let at = name(&server);
    let wrong = format!("redis://:wrong@{at}");
    // `--once` reports the server in its figures and by its exit code. The server is up, since it answers.
    let once = tool(&["exporter", "--once", "--pattern", "*", "--url", &wrong]).expect(3);
    let figures =
        ["up", "info_up", "keys_up"].map(|name| samples(&once.out)[&format!("rollcall_{name}{{server=\"{at}\"}}")]);
    assert_eq!(figures, [1.0, 0.0, 0.0], "{}", once.out);
    for what in ["figures", "keys"] {
        let line = once.err.lines().find(|line| line.starts_with(&format!("rollcall: no {what} of {at}: ")));
        assert!(line.is_some_and(|line| line.contains("password") && !line.contains("wrong@")), "{}", once.err);
    }
    let pages = Pages::start(&["exporter", "--url", &wrong, "--interval", "1"]);
    wait_until("it to be said", || pages.said().contains(&format!("rollcall: no figures of {at}: ")).then_some(()));
}
