//! Compares commands on two counters with the same work on sets and HyperLogLogs. Calls are made as in an application:
//! by redis-rs over a socket, one after another.

use std::time::Instant;

use redis::{Cmd, Connection, Value, cmd};

use crate::items::{Source, calls};
use crate::measure::{Bench, Goal, NEVER_BEHIND, Row, Samples};

/// Number of slices of a windowed counter; each has one second. Commands with SINCE ask for the newest `ASKED` slices.
const SLICES: usize = 12;
const ASKED: usize = 6;

/// The kinds of keys, each with the command that adds members: counters without a window, windowed counters, sets,
/// HyperLogLogs.
const KINDS: [(&str, &str); 4] = [("plain", "LC.ADD"), ("window", "LC.ADD"), ("set", "SADD"), ("log", "PFADD")];

/// Representations of the counters, as in LC.INFO, each with the number of members and the calls per round of a quick
/// and a full run.
const HELD: [(&str, usize, [usize; 2]); 2] = [("exact", 240, [300, 1000]), ("dense", 48_000, [10, 30])];

/// Commands on counters, each with the command that does the same with two sets. HyperLogLogs can only do the union.
const QUESTIONS: [(&str, &str); 3] =
    [("LC.INTERCARD", "SINTERCARD"), ("LC.DIFFCARD", "SDIFFSTORE"), ("LC.UNIONCARD", "SUNIONSTORE")];

/// Measures each command, on whole counters and on the last half of a window.
pub fn run(bench: &mut Bench) {
    let rounds = bench.rounds();
    for (at, (representation, members, count)) in HELD.into_iter().enumerate() {
        fill(bench, representation, members);
        let mut client = bench.ours.library();
        let count = bench.pick(count[0], count[1]);
        let (of_sets, of_logs) = (
            QUESTIONS.map(|(_, sets)| of_sets(sets)),
            [&["log:0".to_owned(), "log:1".to_owned()][..], &newest()].map(|logs| cmd("PFCOUNT").arg(logs).to_owned()),
        );
        let (plain, since) = (QUESTIONS.map(|(ours, _)| asked(ours, "plain")), QUESTIONS.map(|(ours, _)| since(ours)));
        let commands = [&plain[..], &since, &of_sets, &of_logs, &[cmd("PING")]].concat();
        let mut samples = vec![Samples::default(); commands.len()];
        for round in 0..rounds {
            bench.step(at * rounds + round, HELD.len() * rounds);
            for (command, samples) in commands.iter().zip(&mut samples) {
                samples.push(time(&mut client, command, count));
            }
        }
        let time_of = |at: usize| samples[at].median();
        let mut push = |name: &str, goal, ours, other: (&'static str, f64)| {
            let work = format!("by redis-rs over a socket: {name}, {members} members each, {representation}");
            bench.rows.push(Row { work, goal, ours, other: Some(other), unit: "µs a call" });
        };
        for (at, (ours, sets)) in QUESTIONS.into_iter().enumerate() {
            push(&format!("{ours} of 2"), NEVER_BEHIND, time_of(at), (sets, time_of(6 + at)));
            push(&format!("{ours} of 2 with SINCE"), Goal::Shown, time_of(3 + at), ("without", time_of(at)));
        }
        // A HyperLogLog of few members is a short list.
        let beside_logs = if representation == "dense" { NEVER_BEHIND } else { Goal::Shown };
        push("LC.UNIONCARD of 2", beside_logs, time_of(2), ("PFCOUNT of 2", time_of(9)));
        push("LC.UNIONCARD of 2 with SINCE", beside_logs, time_of(5), ("PFCOUNT of 12, one a slice", time_of(10)));
        push("LC.UNIONCARD of 2", Goal::Shown, time_of(2), ("PING", time_of(11)));
    }
    bench.ours.call("FLUSHALL");
}

/// Creates two keys of each kind, of which half of the members are common. Members of windowed counters are added slice
/// by slice.
fn fill(bench: &mut Bench, representation: &str, members: usize) {
    let server = &mut bench.ours;
    server.call("FLUSHALL");
    for key in 0..2 {
        server.call(&format!("LC.RESERVE plain:{key} 50000"));
        server.call(&format!("LC.RESERVE window:{key} 50000 WINDOW {SLICES} SLICES {SLICES} MANUAL"));
        let each = members / SLICES;
        for slice in 0..SLICES {
            server.call(&format!("LC.ADVANCE window:{key} {slice}"));
            // The other key's members begin with the middle of each slice.
            let begin = (slice * each * 2 + key * each / 2) as u64;
            let mut add = |command, name: &str| {
                server.client.run(&calls(&[command, name], &mut Source::From(begin), each / 20, 20, 4));
            };
            for (kind, command) in KINDS {
                add(command, &format!("{kind}:{key}"));
            }
            add("PFADD", &format!("log:{key}:{slice}"));
        }
        for kind in ["plain", "window"] {
            let info = server.call(&format!("LC.INFO {kind}:{key} REPRESENTATION")).text();
            assert_eq!(info.trim(), representation, "{kind}");
        }
    }
}

/// The microseconds per call that the caller waits.
fn time(client: &mut Connection, command: &Cmd, count: usize) -> f64 {
    let mut call = || drop(command.query::<Value>(client).expect("an answer"));
    (0..count / 10).for_each(|_| call());
    let start = Instant::now();
    (0..count).for_each(|_| call());
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}

/// A command on the two counters of a kind.
fn asked(question: &str, kind: &str) -> Cmd {
    cmd(question).arg(2).arg([0, 1].map(|key| format!("{kind}:{key}")).as_slice()).to_owned()
}

/// The command `question` on the newest slices of two windowed counters. The present is the last second of a slice.
fn since(question: &str) -> Cmd {
    asked(question, "window").arg("SINCE").arg(ASKED - 1).to_owned()
}

fn of_sets(command: &str) -> Cmd {
    let head = if command == "SINTERCARD" { "2" } else { "set:result" };
    cmd(command).arg(head).arg(&["set:0", "set:1"]).to_owned()
}

/// The names of the HyperLogLogs of the newest slices.
fn newest() -> Vec<String> {
    (SLICES - ASKED..SLICES).flat_map(|slice| [0, 1].map(|key| format!("log:{key}:{slice}"))).collect()
}
