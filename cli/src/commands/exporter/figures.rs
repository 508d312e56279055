//! The samples of all servers and keys.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use super::collect::Target;
use super::families::{Families, Form, Metric};
use super::metrics::{self as m, ALL, FORMS, PLAIN, REASONS};
use crate::failure::Failure;
use crate::watch::{Info, Row};

/// The samples of all `targets` as text in the format `form`.
pub fn text(targets: &[Target], form: Form) -> String {
    let mut families = Families::new(&ALL);
    // A node that two URLs lead to is written once, because Prometheus rejects duplicate samples.
    let (mut shown, mut shown_keys) = (HashSet::new(), HashSet::new());
    for target in targets {
        let infos = target.infos();
        let mut up = HashSet::new();
        for (look, node) in infos.iter().flat_map(|look| look.nodes.iter().map(move |node| (look, node))) {
            if !shown.insert(node.server.clone()) {
                continue;
            }
            let server = node.server.as_str();
            let answer = Some(&node.answer).filter(|_| !target.is_stale(look));
            let is_up = answer.is_some_and(|answer| !answer.as_ref().is_err_and(Failure::is_down));
            let info = answer.and_then(|answer| answer.as_ref().ok());
            families.add(&m::UP, [("server", server)], truth(is_up));
            families.add(&m::INFO_UP, [("server", server)], truth(info.is_some()));
            families.add(&m::COLLECTED, [("server", server)], seconds(look.at));
            families.add(&m::COLLECT_DURATION, [("server", server)], node.took.as_secs_f64());
            if is_up {
                up.insert(server);
            }
            if let Some(info) = info {
                add_info(&mut families, server, info);
            }
        }
        let rows = target.rows();
        for (look, node) in rows.iter().flat_map(|look| look.nodes.iter().map(move |node| (look, node))) {
            let server = node.server.as_str();
            if !up.contains(server) || !shown_keys.insert(server.to_owned()) {
                continue;
            }
            let rows = node.answer.as_ref().ok().filter(|_| !target.are_keys_stale(look));
            families.add(&m::KEYS_UP, [("server", server)], truth(rows.is_some()));
            families.add(&m::KEYS_COLLECTED, [("server", server)], seconds(look.at));
            families.add(&m::KEYS_DURATION, [("server", server)], node.took.as_secs_f64());
            let Some(rows) = rows else { continue };
            families.add(&m::KEYS_SHOWN, [("server", server)], rows.rows.len() as f64);
            families.add(&m::KEYS_LEFT_OUT, [("server", server)], rows.left_out as f64);
            rows.rows.iter().for_each(|row| add_row(&mut families, server, row));
        }
    }
    families.text(form)
}

fn add_info(families: &mut Families, server: &str, info: &Info) {
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    let (version, software, role) = (word(&info.version), word(&info.server), word(&info.role));
    let labels = [("server", server), ("rollcall", &version), ("software", &software), ("role", &role)];
    families.add(&m::SERVER, labels, 1.0);
    for (metric, value) in
        [(&m::UPTIME, info.uptime_seconds), (&m::MEMORY_USED, info.used_memory), (&m::MEMORY_MAX, info.maxmemory)]
    {
        add(families, metric, [("server", server)], value);
    }
    for finding in &info.findings {
        let labels = [("server", server), ("finding", finding.problem.name()), ("severity", finding.severity.name())];
        families.add(&m::SERVER_FINDING, labels, 1.0);
    }
    for (field, metric) in &PLAIN {
        add(families, metric, [("server", server)], info.field(field));
    }
    for reason in REASONS {
        let labels = [("server", server), ("reason", reason)];
        add(families, &m::REJECTED, labels, info.field(&format!("rollcall_rejected_{reason}")));
    }
    for (fields, family, forms) in FORMS {
        let advances = info.field(&format!("rollcall_{fields}_advances"));
        add(families, &m::ADVANCES, [("server", server), ("family", family)], advances);
        let items_rejected = info.field(&format!("rollcall_{fields}_items_rejected"));
        add(families, &m::ITEMS_REJECTED, [("server", server), ("family", family)], items_rejected);
        for form in forms {
            let labels = [("server", server), ("family", family), ("form", form)];
            add(families, &m::VALUES, labels, info.field(&format!("rollcall_{fields}_{form}")));
            add(families, &m::VALUE_BYTES, labels, info.field(&format!("rollcall_{fields}_{form}_bytes")));
        }
    }
}

fn add_row(families: &mut Families, server: &str, row: &Row) {
    let key = [("server", server), ("key", &*row.key), ("kind", row.kind)];
    let number = |number: Option<i64>| number.map(|number| number as f64);
    for (metric, value) in [
        (&m::KEY_ITEMS, number(row.items)),
        (&m::KEY_CAPACITY, number(row.capacity)),
        (&m::KEY_FILL, row.fill),
        (&m::KEY_ERROR, row.rate),
        (&m::KEY_ERROR_ASKED, row.asked),
        (&m::KEY_SUB_FILTERS, number(row.filters)),
        (&m::KEY_MEMORY, number(row.bytes)),
        (&m::KEY_TTL, row.ttl_ms.map(|millis| millis as f64 / 1000.0)),
        (&m::KEY_PARTIALLY_LOADED, Some(truth(row.partially_loaded.is_some()))),
    ] {
        if let Some(value) = value {
            families.add(metric, key, value);
        }
    }
    for finding in &row.findings {
        let labels = [
            ("server", server),
            ("key", &*row.key),
            ("kind", row.kind),
            ("finding", finding.problem.name()),
            ("severity", finding.severity.name()),
        ];
        families.add(&m::KEY_FINDING, labels, 1.0);
    }
}

/// Adds the figures that a server reports. A figure that the server does not report gets no sample, rather than 0.
fn add<const N: usize>(
    families: &mut Families,
    metric: &Metric,
    labels: [(&'static str, &str); N],
    value: Option<u64>,
) {
    if let Some(value) = value {
        families.add(metric, labels, value as f64);
    }
}

fn truth(truth: bool) -> f64 {
    f64::from(u8::from(truth))
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
