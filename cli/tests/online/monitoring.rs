//! Tests the files of packaging/monitoring with real programs. Prometheus loads the alert rules, scrapes the
//! exporter, and answers the queries of the Grafana dashboard. promtool runs the test cases of the rules.
//!
//! `ROLLCALL_PROMETHEUS` names Prometheus; promtool must be in the same folder. Without the variable, these tests do
//! nothing. `make test-watch` sets it.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::pages::{Pages, ask};
use crate::{add_grown, add_partially_loaded, tool, url};
use rollcall_testkit::{Client, Server, Setup, add_many, rows, wait_until, with_items};

/// The folder packaging/monitoring.
fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/monitoring")
}

fn file(name: &str) -> String {
    fs::read_to_string(files().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A program that serves HTTP on its own port; dropping it ends the program.
struct Program {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Program {
    /// Starts the program, and waits until the path `ready` answers 200. `arguments` gets the address and the folder.
    /// If another program takes the port first, another port is tried.
    fn start(program: &Path, ready: &str, arguments: impl Fn(SocketAddr, &Path) -> Vec<String>) -> Program {
        for _ in 0..5 {
            let folder = tempfile::tempdir().expect("a folder");
            let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
            let log = fs::File::create(folder.path().join("log")).expect("a log");
            let mut command = Command::new(program);
            command.args(arguments(address, folder.path())).current_dir(folder.path());
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
            let mut program = Program { child, address, _folder: folder };
            let is_up = wait_until("the program to answer", || match program.child.try_wait().expect("its status") {
                Some(_) => Some(false),
                None => ask(program.address, ready).is_some_and(|reply| reply.status == 200).then_some(true),
            });
            if is_up {
                return program;
            }
        }
        panic!("{} does not stay up", program.display());
    }

    fn get(&self, path: &str) -> String {
        ask(self.address, path).expect("it answers").body
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prometheus with the alert rules, which scrapes these addresses every second.
fn prometheus(program: &Path, exporter: SocketAddr) -> Program {
    Program::start(program, "/-/ready", |address, folder| {
        let config = file("prometheus.yml").replace("15s", "1s").replace("127.0.0.1:9727", &exporter.to_string());
        fs::write(folder.join("prometheus.yml"), config).expect("the configuration");
        fs::write(folder.join("alerts.yml"), file("alerts.yml")).expect("the rules");
        let arguments = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn"];
        let own = [format!("--web.listen-address={address}")];
        arguments.iter().map(|argument| (*argument).to_owned()).chain(own).collect()
    })
}

/// The samples that a query returns, each with its labels and value.
fn query(prometheus: &Program, promql: &str) -> Vec<(serde_json::Value, f64)> {
    let escaped: String = promql.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let body = prometheus.get(&format!("/api/v1/query?query={escaped}"));
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    assert_eq!(answer["status"], "success", "{promql}: {body}");
    let samples = answer["data"]["result"].as_array().expect("samples").clone();
    let value = |sample: &serde_json::Value| sample["value"][1].as_str().and_then(|value| value.parse().ok());
    samples.into_iter().map(|sample| (sample["metric"].clone(), value(&sample).expect("a value"))).collect()
}

/// Waits until a query returns one sample with this value.
#[track_caller]
fn becomes(prometheus: &Program, promql: &str, wanted: f64) {
    wait_until(&format!("{promql} to be {wanted}"), || {
        matches!(&query(prometheus, promql)[..], [(_, value)] if *value == wanted).then_some(())
    });
}

/// Adds filters and counters of every kind, keys with each finding, and a partially loaded value.
fn fill(client: &mut Client) {
    add_grown(client);
    client.expect("BF.RESERVE full 0.01 100 NONSCALING", "+OK");
    add_many(client, "BF.MADD full", "item:", 0..95);
    client.expect("BF.RESERVE window 0.01 1000 WINDOW 3600", "+OK");
    client.expect("BF.RESERVE classic 0.01 1000 LAYOUT classic", "+OK");
    client.cmd("BF.MADD classic a b c");
    client.expect("LC.RESERVE visitors WINDOW 3600", "+OK");
    client.expect("PEXPIRE visitors 3600000", "1");
    add_many(client, "LC.ADD many", "item:", 0..3000);
    add_partially_loaded(client);
}

#[test]
fn prometheus_has_what_the_servers_say_and_its_alerts_fire() {
    let Some(program) = std::env::var_os("ROLLCALL_PROMETHEUS").map(PathBuf::from) else { return };
    let (first, second) = (Setup::default().line("maxmemory 1gb").start(), Server::start());
    let mut client = first.client();
    fill(&mut client);
    second.client().cmd("LC.ADD visitors ann");
    let [one, two] = [&first, &second].map(|server| format!("127.0.0.1:{}", server.port()));
    let (first_url, second_url) = (url(&first), url(&second));
    let servers = ["exporter", "--url", &first_url, "--url", &second_url, "--pattern", "*"];
    let exporter = Pages::start(&[&servers[..], &["--interval", "1", "--keys-interval", "1"]].concat());
    let prometheus = prometheus(&program, exporter.address());
    becomes(&prometheus, "up{job=\"rollcall\"}", 1.0);
    becomes(&prometheus, "count(rollcall_up == 1)", 2.0);
    becomes(&prometheus, &format!("rollcall_rejected_total{{server=\"{one}\",reason=\"full\"}}"), 0.0);
    becomes(&prometheus, "count(rollcall_key_memory_bytes)", 9.0);
    // Rejections from here on show as an increase.
    reject(&mut client);
    add_many(&mut client, "BF.MADD grown", "more:", 0..9000);
    add_many(&mut client, "LC.ADD visitors", "item:", 0..3000);
    for alert in ["RollcallRejectedFull", "RollcallFiltersGrow"] {
        becomes(&prometheus, &format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\",server=\"{one}\"}}"), 1.0);
    }
    for (alert, key) in [("RollcallFilterGrown", "grown"), ("RollcallFilterFull", "full")] {
        becomes(&prometheus, &format!("ALERTS{{alertname=\"{alert}\",alertstate=\"pending\",key=\"{key}\"}}"), 1.0);
    }
    becomes(&prometheus, "ALERTS{alertname=\"RollcallPartiallyLoaded\"}", 1.0);
    // The numbers of INFO arrive in Prometheus unchanged.
    for (promql, field) in rows(
        "rollcall_filters => filters; rollcall_filters_growths_total => filters_growths
         rollcall_rejected_total{reason=\"full\"} => rejected_full
         rollcall_values_memory_bytes{family=\"counter\",form=\"windowed\"} => counters_windowed_bytes
         rollcall_server_memory_max_bytes => ",
    ) {
        let field = if field.is_empty() { "maxmemory".to_owned() } else { format!("rollcall_{field}") };
        let said = client.info_number(&field) as f64;
        becomes(&prometheus, &format!("sum({promql} and on(server) rollcall_up{{server=\"{one}\"}})"), said);
    }
    let counted = client.int("BF.CARD grown") as f64;
    becomes(&prometheus, "rollcall_key_items{key=\"grown\"}", counted);
    becomes(&prometheus, "rollcall_key_partially_loaded{key=\"half\"}", 1.0);
    let filters = client.info_number("rollcall_filters") + second.client().info_number("rollcall_filters");
    becomes(&prometheus, "sum(rollcall_filters)", filters as f64);
    // Every query of the dashboard returns samples, and every rule can be evaluated.
    for promql in expressions() {
        wait_until(&promql, || (!query(&prometheus, &promql).is_empty()).then_some(()));
    }
    let rules: serde_json::Value = serde_json::from_str(&prometheus.get("/api/v1/rules")).expect("JSON");
    let rules = rules["data"]["groups"][0]["rules"].as_array().expect("rules").clone();
    assert_eq!(rules.len(), file("alerts.yml").matches("- alert: ").count());
    assert!(rules.iter().all(|rule| rule["health"] == "ok"), "{rules:?}");
    // One server stops; the figures of the other server stay.
    drop(second);
    becomes(&prometheus, &format!("ALERTS{{alertname=\"RollcallServerDown\",server=\"{two}\"}}"), 1.0);
    becomes(&prometheus, &format!("rollcall_up{{server=\"{one}\"}}"), 1.0);
    assert!(query(&prometheus, &format!("rollcall_filters{{server=\"{two}\"}}")).is_empty());
}

/// Adds items to the full filter `full`, which rejects them.
fn reject(client: &mut Client) {
    let _ = client.call(&with_items("BF.MADD full", "late:", 0..100));
    assert!(client.info_number("rollcall_rejected_full") > 0);
}

/// The queries of the dashboard, with Grafana's variables filled in.
fn expressions() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(&file("grafana.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let expressions = targets.map(|target| {
        let text = target["expr"].as_str().expect("an expression");
        let text = text.replace("$server", ".*").replace("$key", ".*").replace("$__rate_interval", "1m");
        assert!(!text.contains('$'), "{text}");
        text
    });
    expressions.collect()
}

#[test]
fn promtool_takes_the_files_and_the_cases_of_the_rules_hold() {
    let Some(program) = std::env::var_os("ROLLCALL_PROMETHEUS").map(PathBuf::from) else { return };
    let promtool = program.with_file_name("promtool");
    for arguments in
        [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"], ["check", "config", "prometheus.yml"]]
    {
        let output = Command::new(&promtool).args(arguments).current_dir(files()).output().expect("promtool runs");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && said.contains("SUCCESS"), "{arguments:?}: {said}");
    }
}

#[test]
fn promtool_and_prometheus_take_the_figures_and_know_what_each_is() {
    let Some(program) = std::env::var_os("ROLLCALL_PROMETHEUS").map(PathBuf::from) else { return };
    let server = Server::start();
    fill(&mut server.client());
    let to = url(&server);
    let exporter =
        Pages::start(&["exporter", "--url", &to, "--pattern", "*", "--interval", "1", "--keys-interval", "1"]);
    wait_until("keys", || exporter.get("/metrics").body.contains("rollcall_key_finding{").then_some(()));
    // The older text format, over HTTP and in a file.
    let once = tool(&["exporter", "--once", "--pattern", "*", "--url", &to]).expect(0).out;
    let plain = exporter.get("/metrics").body;
    for text in [&plain, &once] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("figures");
        fs::write(&path, text).expect("the figures");
        let input = fs::File::open(&path).expect("the figures");
        let mut promtool = Command::new(program.with_file_name("promtool"));
        let output = promtool.args(["check", "metrics"]).stdin(input).output().expect("promtool runs");
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
    // Prometheus asks for OpenMetrics, which has the help and the type of every metric.
    let prometheus = prometheus(&program, exporter.address());
    becomes(&prometheus, "up{job=\"rollcall\"}", 1.0);
    let metadata: serde_json::Value = serde_json::from_str(&prometheus.get("/api/v1/metadata")).expect("JSON");
    let types = plain.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut families = 0;
    for (name, kind) in types {
        let family = if kind == "counter" { name.strip_suffix("_total").expect("its ending") } else { name };
        let known = &metadata["data"][family][0];
        assert_eq!(known["type"], kind, "{name}: {metadata}");
        assert!(
            known["help"].as_str().is_some_and(|help| plain.contains(&format!("# HELP {name} {help}\n"))),
            "{known}"
        );
        families += 1;
    }
    assert!(families > 30, "{plain}");
}
