//! Tests for each finding: from which value on it appears, its severity, and the command that it suggests.

use super::*;

const KEY: &[u8] = b"k";

/// The code word and the severity of each finding.
fn codes(findings: &[Finding]) -> Vec<(&'static str, Severity)> {
    findings.iter().map(|finding| (finding.problem.name(), finding.severity)).collect()
}

fn command(findings: &[Finding]) -> &str {
    findings[0].command.as_deref().unwrap_or_default()
}

#[test]
fn code_words_are_distinct_and_can_be_labels() {
    for (at, problem) in Problem::ALL.into_iter().enumerate() {
        let name = problem.name();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
        assert!(Problem::ALL[..at].iter().all(|other| other.name() != name), "{name}");
    }
    let all = [Severity::Notice, Severity::Warning, Severity::Critical];
    assert!(all.is_sorted());
    assert_eq!(all.map(Severity::name), ["notice", "warning", "critical"]);
}

#[test]
fn growth_is_a_finding_from_the_fourth_on() {
    let grown =
        |sub_filters| FilterFacts { items: 81_234, sub_filters, error_rate: Some(0.01), ..FilterFacts::new(KEY) };
    for (sub_filters, found) in [(0, 0), (1, 0), (4, 0), (5, 1), (u64::MAX, 1)] {
        assert_eq!(grown(sub_filters).findings().len(), found, "{sub_filters}");
    }
    let findings = grown(5).findings();
    assert_eq!(codes(&findings), [("grown", Severity::Warning)]);
    assert_eq!(findings[0].wrong, "has grown 4 times: look-ups ask 5 sub-filters");
    assert_eq!(command(&findings), "BF.RESERVE {k}:new 0.01 90000");
    let line = "has grown 4 times: look-ups ask 5 sub-filters; reserve the next one for what it holds: \
                BF.RESERVE {k}:new 0.01 90000";
    assert_eq!(findings[0].to_string(), line);
    // RedisBloom does not report the error rate asked for, and without it no command can be suggested.
    let unknown = FilterFacts { error_rate: None, ..grown(5) };
    assert_eq!(unknown.findings()[0].command, None);
    let beside = FilterFacts { prefix: "RF", ..grown(5) };
    assert_eq!(command(&beside.findings()), "RF.RESERVE {k}:new 0.01 90000");
    let window =
        FilterFacts { window: Some(WindowFacts::Seconds(3600)), options: "WINDOW 3600 SLICES 6 REFRESH", ..grown(5) };
    assert_eq!(command(&window.findings()), "BF.RESERVE {k}:new 0.01 90000 WINDOW 3600 SLICES 6 REFRESH");
}

#[test]
fn a_rate_is_past_beyond_three_standard_deviations() {
    let with = |items, rate| FilterFacts { items, rate: Some(rate), error_rate: Some(0.01), ..FilterFacts::new(KEY) };
    // The bound is three standard deviations of 1.73 / sqrt(items), or 5 % from 10,764 items on.
    for (items, rate, found) in [
        (1_000_000, 0.0104, None),
        (1_000_000, 0.0106, Some(Severity::Warning)),
        (10_000, 0.0105, None),
        (10_000, 0.0106, Some(Severity::Warning)),
        (1000, 0.0115, None),
        (1000, 0.0117, Some(Severity::Warning)),
        (10, 0.026, None),
        (10, 0.027, Some(Severity::Critical)),
        (1_000_000, 0.0199, Some(Severity::Warning)),
        (1_000_000, 0.02, Some(Severity::Critical)),
    ] {
        let findings = with(items, rate).findings();
        assert_eq!(findings.first().map(|found| found.severity), found, "{items} {rate}");
        assert!(findings.iter().all(|found| found.problem == Problem::PastRate));
    }
    let findings = with(1_000_000, 0.012_345).findings();
    assert_eq!(findings[0].wrong, "is past its rate: 0.0123 where 0.01 was asked for");
    assert_eq!(command(&findings), "BF.RESERVE {k}:new 0.01 1100000");
    // Without the error rate asked for, the present rate cannot be judged.
    assert!(FilterFacts { error_rate: None, ..with(1_000_000, 0.5) }.findings().is_empty());
    assert!(FilterFacts { error_rate: Some(0.0), ..with(1_000_000, 0.5) }.findings().is_empty());
    assert!(FilterFacts { error_rate: Some(0.0), ..with(1_000_000, 0.0) }.findings().is_empty());
    assert!(FilterFacts { rate: None, ..with(1_000_000, 0.5) }.findings().is_empty());
}

#[test]
fn only_filters_that_cannot_grow_are_full() {
    let with = |items, grows| FilterFacts { items, capacity: 1000, grows, ..FilterFacts::new(KEY) };
    for (items, found) in [
        (899, vec![]),
        (900, vec![("nearly-full", Severity::Warning)]),
        (999, vec![("nearly-full", Severity::Warning)]),
        (1000, vec![("full", Severity::Critical)]),
        (u64::MAX, vec![("full", Severity::Critical)]),
    ] {
        assert_eq!(codes(&with(items, false).findings()), found, "{items}");
        assert!(with(items, true).findings().is_empty(), "{items}");
        assert!(FilterFacts { window: Some(WindowFacts::Manual(60)), ..with(items, false) }.findings().is_empty());
        assert!(FilterFacts { capacity: 0, ..with(items, false) }.findings().is_empty());
    }
    let known = FilterFacts { error_rate: Some(0.012345), options: "NONSCALING", ..with(1000, false) };
    assert_eq!(command(&known.findings()), "BF.RESERVE {k}:new 0.012345 2200 NONSCALING");
    // At high error rates the set bits decide, because the filter counts fewer items than it holds. The rate, which is
    // estimated from the same bits, may still be below the one asked for.
    let loose = |by_bits| FilterFacts {
        fill_by_bits: Some(by_bits),
        rate: Some(0.499),
        error_rate: Some(0.5),
        ..with(720, false)
    };
    assert_eq!(codes(&loose(0.89).findings()), []);
    assert_eq!(codes(&loose(0.9).findings()), [("nearly-full", Severity::Warning)]);
    assert_eq!(codes(&loose(0.9999).findings()), [("nearly-full", Severity::Warning)]);
    let full = loose(1.0).findings();
    assert_eq!(codes(&full), [("full", Severity::Critical)]);
    assert_eq!(full[0].wrong, "is 100 % full by its set bits and cannot grow: it rejects new ones");
    // A rate that is reached fills no filter.
    let tight = FilterFacts { rate: Some(0.5), error_rate: Some(0.5), ..with(800, false) };
    assert!(tight.findings().is_empty());
    // The finding names the fuller of both measures, and the count if they are equal.
    for by_bits in [0.1, 1.0] {
        let full = FilterFacts { items: 1000, ..loose(by_bits) }.findings();
        assert_eq!(full[0].wrong, "holds 100 % of 1000 items and cannot grow: it rejects new ones");
    }
}

#[test]
fn a_window_with_everything_expired_is_idle() {
    let filter =
        FilterFacts { window: Some(WindowFacts::Seconds(3600)), keeps_expired: true, ..FilterFacts::new(b"my key") };
    assert_eq!(codes(&filter.findings()), [("idle", Severity::Notice)]);
    // No command is suggested: `EXPIRE` would also delete a key that is still in use.
    assert_eq!(filter.findings()[0].command, None);
    assert!(FilterFacts { expires: true, ..filter }.findings().is_empty());
    // Nothing has expired in a key that was not written to yet.
    assert!(FilterFacts { keeps_expired: false, ..filter }.findings().is_empty());
    assert!(FilterFacts { items: 1, capacity: 9, ..filter }.findings().is_empty());
    // Windows that the user advances do not become idle by the passing of time.
    assert!(FilterFacts { window: Some(WindowFacts::Manual(3600)), ..filter }.findings().is_empty());
    assert!(FilterFacts { window: None, ..filter }.findings().is_empty());
    let window = Some(WindowFacts::Seconds(u64::MAX));
    let counter = CounterFacts { window, keeps_expired: true, ..CounterFacts::default() };
    assert_eq!(codes(&counter.findings()), [("idle", Severity::Notice)]);
    assert!(CounterFacts { expires: true, ..counter }.findings().is_empty());
    assert!(CounterFacts { keeps_expired: false, ..counter }.findings().is_empty());
    assert!(CounterFacts { members: 1, ..counter }.findings().is_empty());
}

/// A regression test: a volatile key that had lost its time to live, as after PERSIST, stayed for ever without a
/// finding.
#[test]
fn an_empty_volatile_key_that_does_not_expire_is_idle() {
    let window = Some(WindowFacts::Volatile(3600));
    let of = |items, expires| {
        let filter = FilterFacts { window, items, expires, ..FilterFacts::new(KEY) };
        let counter = CounterFacts { window, members: items, expires, ..CounterFacts::default() };
        [filter.findings(), counter.findings()].concat()
    };
    assert_eq!(codes(&of(0, false)), [("idle", Severity::Notice); 2]);
    assert!(of(0, false).iter().all(|found| found.command.is_none() && found.wrong.contains("time to live")));
    assert!(of(0, true).is_empty());
    // The next write to a key with items sets a time to live again.
    assert!(of(1, false).is_empty());
}

/// A regression test: the finding suggested reserving a key in place of a volatile one. The reserved key never expired,
/// and its window began empty.
#[test]
fn advice_replaces_no_windowed_key_at_once() {
    let filter = FilterFacts {
        items: 81_234,
        sub_filters: 5,
        rate: Some(0.02),
        error_rate: Some(0.01),
        window: Some(WindowFacts::Volatile(3600)),
        expires: true,
        ..FilterFacts::new(KEY)
    };
    let advice = "give CAPACITY 90000 in the calls that write to it: it applies when they next create the key, or \
                  write to another name too for a window and rename that";
    let volatile = filter.findings();
    assert_eq!(volatile.len(), 2);
    for found in volatile {
        assert_eq!((found.advice.as_str(), &found.command), (advice, &None), "{found:?}");
    }
    for window in [WindowFacts::Seconds(3600), WindowFacts::Manual(3600)] {
        for found in (FilterFacts { window: Some(window), ..filter }).findings() {
            let advice = "write to it and to a larger one under another name for a window, then rename that";
            assert_eq!(found.advice, advice);
            assert!(found.command.is_some_and(|command| command.contains(".RESERVE {k}:new ")));
        }
    }
}

/// A regression test: only keys with `VOLATILE` got the finding, although any key with a time to live may go.
#[test]
fn keys_that_expire_may_be_evicted_by_a_policy_that_spares_others() {
    for window in
        [None, Some(WindowFacts::Volatile(3600)), Some(WindowFacts::Seconds(60)), Some(WindowFacts::Manual(60))]
    {
        let of = |expires, evicts_expiring| {
            let filter = FilterFacts { window, items: 1, expires, evicts_expiring, ..FilterFacts::new(KEY) };
            let counter = CounterFacts { window, members: 1, expires, evicts_expiring, ..CounterFacts::default() };
            [filter.findings(), counter.findings()].concat()
        };
        assert_eq!(codes(&of(true, true)), [("may-evict", Severity::Notice); 2], "{window:?}");
        assert!(of(true, true).iter().all(|found| found.command.is_none()));
        assert!(of(true, false).is_empty() && of(false, true).is_empty(), "{window:?}");
    }
}

#[test]
fn the_most_urgent_comes_first() {
    let facts = FilterFacts {
        items: 1_000_000,
        capacity: 1000,
        sub_filters: 9,
        rate: Some(0.03),
        error_rate: Some(0.01),
        window: Some(WindowFacts::Seconds(60)),
        ..FilterFacts::new(KEY)
    };
    assert_eq!(codes(&facts.findings()), [("past-rate", Severity::Critical), ("grown", Severity::Warning)]);
    let forgotten = FilterFacts { items: 0, keeps_expired: true, ..facts };
    assert_eq!(codes(&forgotten.findings()).last(), Some(&("idle", Severity::Notice)));
}

#[test]
fn servers_are_judged_by_memory_and_by_what_they_keep() {
    let server = ServerFacts { used_bytes: 899, max_bytes: 1000, own_bytes: 300, ..ServerFacts::default() };
    assert!(server.findings().is_empty());
    for (used_bytes, severity) in [(900, Severity::Warning), (979, Severity::Warning), (980, Severity::Critical)] {
        let findings = ServerFacts { used_bytes, ..server }.findings();
        assert_eq!(codes(&findings), [("memory", severity)]);
    }
    let short = ServerFacts { used_bytes: 900, url: "redis://host:6380", ..server }.findings();
    assert_eq!(command(&short), "rollcall top --url redis://host:6380 --sort bytes");
    assert_eq!(short[0].wrong, "uses 90 % of maxmemory, 33.3 % of that for filters and counters");
    assert!(ServerFacts { max_bytes: 0, used_bytes: u64::MAX, ..server }.findings().is_empty());
    let evicting = ServerFacts { evicts_any: true, keys: 1, used_bytes: 1000, ..server };
    assert_eq!(codes(&evicting.findings()), [("may-evict", Severity::Notice)]);
    // No command is suggested, because every policy except `noeviction` evicts some of the keys; findings of keys say
    // which.
    assert_eq!(evicting.findings()[0].command, None);
    assert!(ServerFacts { keys: 0, ..evicting }.findings().is_empty());
    assert!(ServerFacts { max_bytes: 0, ..evicting }.findings().is_empty());
    let keeps = ServerFacts { filters_not_served: 1, partially_loaded: 2, ..server }.findings();
    assert_eq!(codes(&keeps), [("partially-loaded", Severity::Warning), ("not-served", Severity::Notice)]);
    assert_eq!(keeps[0].wrong, "has 2 partially loaded keys, which answer nobody");
    assert_eq!(keeps[1].wrong, "keeps 1 filter that it serves to nobody");
    let half = PartiallyLoadedFacts { received_bytes: 0, total_bytes: 12 }.finding();
    assert_eq!((half.problem, half.severity), (Problem::PartiallyLoaded, Severity::Warning));
}
