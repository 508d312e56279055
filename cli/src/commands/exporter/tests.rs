//! Compares the metrics with the files that use them: the documentation, the alert rules and the dashboard.

use std::collections::BTreeSet;

use crate::health::Problem;

use super::families::{Families, Form, Metric};
use super::metrics::{ALL, UP};

const DOCUMENT: &str = include_str!("../../../../docs/monitoring.md");
const ALERTS: &str = include_str!("../../../../packaging/monitoring/alerts.yml");
const DASHBOARD: &str = include_str!("../../../../packaging/monitoring/grafana.json");

/// All words of a text that are names of this tool's metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("rollcall_") && *word != "rollcall_core").map(str::to_owned).collect()
}

/// The anchors of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let heads = text.lines().filter_map(|line| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()));
    heads.map(|head| head.to_lowercase().replace(' ', "-")).collect()
}

#[test]
fn metrics_are_documented_and_alerts_use_no_others() {
    let names: BTreeSet<String> = ALL.iter().map(Metric::sample).collect();
    assert_eq!(names.len(), ALL.len(), "two metrics have one name");
    assert_eq!(named(DOCUMENT), names);
    for (file, text) in [("alerts.yml", ALERTS), ("grafana.json", DASHBOARD)] {
        let used = named(text);
        assert!(used.len() > 5 && used.is_subset(&names), "{file}: {:?}", &used - &names);
    }
}

#[test]
fn every_finding_has_its_section_and_the_urgent_ones_an_alert() {
    let anchors = anchors(DOCUMENT);
    for problem in Problem::ALL {
        assert!(anchors.contains(problem.name()), "{}", problem.name());
        let is_notice = matches!(problem, Problem::Idle | Problem::MayEvict | Problem::NotServed);
        assert!(is_notice || ALERTS.contains(&format!("finding=\"{}\"", problem.name())), "{}", problem.name());
    }
    let mut alerts = 0;
    for line in ALERTS.lines() {
        if let Some(section) = line.trim().strip_prefix("document: docs/monitoring.md#") {
            assert!(anchors.contains(section), "{section}");
        }
        if let Some(alert) = line.trim().strip_prefix("- alert: ") {
            assert!(DOCUMENT.contains(&format!("`{alert}`")), "{alert}");
            alerts += 1;
        }
    }
    assert_eq!(ALERTS.matches("document: docs/monitoring.md#").count(), alerts);
    assert_eq!(ALERTS.matches("todo: ").count(), alerts);
}

#[test]
fn every_panel_of_the_dashboard_has_what_grafana_needs() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let (mut ids, mut places, mut shown) = (BTreeSet::new(), Vec::new(), 0);
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{panel}");
        let place = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a side"));
        let [x, y, w, h] = place;
        assert!(x + w <= 24 && w > 0 && h > 0, "{panel}");
        let apart = |&[a, b, c, d]: &[u64; 4]| x + w <= a || a + c <= x || y + h <= b || b + d <= y;
        assert!(places.iter().all(apart), "{panel} lies on another");
        places.push(place);
        if panel["type"] == "row" {
            continue;
        }
        shown += 1;
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        let targets = panel["targets"].as_array().expect("targets");
        let letters: BTreeSet<_> = targets.iter().filter_map(|target| target["refId"].as_str()).collect();
        assert!(!targets.is_empty() && letters.len() == targets.len(), "{panel}");
    }
    assert!(shown > 20, "{shown}");
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let variables: Vec<_> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
    assert_eq!(variables, ["datasource", "server", "key"]);
}

#[test]
fn samples_of_a_metric_stand_together_and_labels_are_escaped() {
    let mut families = Families::new(&ALL);
    families.add(&UP, [("server", "a")], 1.0);
    families.add(&super::metrics::KEY_TTL, [("server", "a"), ("key", "\"\\\n")], 0.5);
    families.add(&UP, [("server", "b")], 0.0);
    families.add(&super::metrics::REJECTED, [("server", "a"), ("reason", "full")], 3.0);
    let open = "# HELP rollcall_up Whether the server answers.\n# TYPE rollcall_up gauge\n\
        rollcall_up{server=\"a\"} 1.0\nrollcall_up{server=\"b\"} 0.0\n\
        # HELP rollcall_rejected Commands and values rejected, by reason.\n# TYPE rollcall_rejected counter\n\
        rollcall_rejected_total{server=\"a\",reason=\"full\"} 3.0\n\
        # HELP rollcall_key_ttl_seconds Time until it expires; absent if it does not.\n\
        # TYPE rollcall_key_ttl_seconds gauge\n# UNIT rollcall_key_ttl_seconds seconds\n\
        rollcall_key_ttl_seconds{server=\"a\",key=\"\\\"\\\\\\n\"} 0.5\n# EOF\n";
    assert_eq!(families.text(Form::OpenMetrics), open);
    // The older format has no units and no end mark, and its description lines carry the sample names of counters.
    let plain = open.replace("# UNIT rollcall_key_ttl_seconds seconds\n", "").replace("# EOF\n", "");
    let plain = plain.replace("P rollcall_rejected ", "P rollcall_rejected_total ");
    assert_eq!(families.text(Form::Plain), plain.replace("E rollcall_rejected ", "E rollcall_rejected_total "));
}

#[test]
fn help_texts_need_no_escaping() {
    for metric in ALL {
        assert!(!metric.help.is_empty() && !metric.help.contains(['\\', '"', '\n']), "{}", metric.name);
    }
}

#[test]
fn the_form_is_the_one_that_is_asked_for() {
    let (plain, open) = (Form::Plain, Form::OpenMetrics);
    for (accept, form) in [
        ("", plain),
        ("*/*", plain),
        ("text/html, */*", plain),
        ("application/openmetrics-text", open),
        ("Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", open),
        // The headers are from Prometheus 2.42, from 3.5, and from 3.5 configured to prefer the older format.
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            open,
        ),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            open,
        ),
        ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2", plain),
        ("application/openmetrics-text;q=0, text/plain", plain),
        ("application/openmetrics-text;q=0", plain),
        ("application/openmetrics-text;version=0.0.1", plain),
        ("application/openmetrics-text;q=no", plain),
        (";;=,", plain),
    ] {
        assert_eq!(Form::accepted([accept]), form, "{accept}");
    }
    assert_eq!(Form::accepted(["text/plain;q=0.5", "application/openmetrics-text"]), open);
    assert_eq!(Form::accepted([]), plain);
}
