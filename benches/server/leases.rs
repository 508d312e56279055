//! Leases: compares `LC.ADMIT` and `LC.REM` with the usual Lua script on a sorted set. `make bench ONLY=leases`
//! measures them; other runs do not.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::Value;
use rollcall_fuzz::random::Random;
use rollcall_testkit::{Server, text};

use crate::contenders::{Pair, medians};
use crate::items::{Call, call};
use crate::report::{Goal, Report};
use crate::small::settled;

/// Removes what has expired, and adds or renews a holder unless the limit is reached. The arguments are the time and
/// the window in milliseconds, the limit, and the holder.
const SCRIPT: &str = "\
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) and not redis.call('ZSCORE', KEYS[1], ARGV[4]) then
    return -1
end
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1";

/// The window in seconds. Its slices last one second, so holders are renewed in a new slice each second.
const WINDOW: u64 = 60;

/// The limit in the test with concurrent clients.
const SEATS: usize = 10;

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970")
}

/// A UUID made from this number.
fn uuid(number: usize) -> String {
    let mut random = Random::new(number as u64);
    let hex = format!("{:016x}{:016x}", random.number(), random.number());
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The call that acquires or renews a lease.
fn acquire(is_ours: bool, sha: &str, key: usize, limit: usize, holder: usize) -> Call {
    let holder = uuid(holder);
    call(&if is_ours {
        format!("LC.ADMIT seats:{key} LIMIT {limit} WINDOW {WINDOW} SLICES {WINDOW} VOLATILE ITEMS {holder}")
    } else {
        format!("EVALSHA {sha} 1 seats:{key} {} {} {limit} {holder}", now().as_millis(), WINDOW * 1000)
    })
}

/// The call that releases a lease.
fn release(is_ours: bool, key: usize, holder: usize) -> Call {
    call(&format!("{} seats:{key} {}", if is_ours { "LC.REM" } else { "ZREM" }, uuid(holder)))
}

pub fn run(report: &mut Report) {
    let mut pair = Pair::start();
    let mut sha = String::new();
    pair.round(|contender| {
        sha = text(&contender.client.call(&["SCRIPT", "LOAD", SCRIPT]));
        []
    });
    times(report, &mut pair, &sha);
    over_socket(report, &pair, &sha);
    bytes(report, &mut pair, &sha);
    race(report.pick(100_000, 1_000_000));
}

/// Measures the server's time of each call, for keys with different numbers of holders.
fn times(report: &mut Report, pair: &mut Pair, sha: &str) {
    for (holders, keys) in [(3, 500), (10, 300), (100, 100)] {
        // The calls of one holder, one for each key.
        let calls =
            |is_ours, holder| (0..keys).map(|key| acquire(is_ours, sha, key, holders, holder)).collect::<Vec<_>>();
        pair.round(|contender| {
            contender.client.expect("FLUSHALL", "+OK");
            (0..holders).for_each(|holder| _ = contender.time(&[], &calls(contender.is_ours, holder)));
            []
        });
        // The first call in a slice also advances the window, so each holder's calls have a median of their own.
        let (mut renewals, mut rounds) = (vec![Vec::new(); holders], Vec::new());
        for _ in 0..report.pick(2, 7) {
            // Waits for a new slice, in which every renewal has to write.
            thread::sleep(Duration::from_nanos(1_000_000_000 - u64::from(now().subsec_nanos())));
            for (holder, renewals) in renewals.iter_mut().enumerate() {
                renewals.push(pair.round(|contender| [contender.time(&[], &calls(contender.is_ours, holder))]));
            }
            rounds.push(pair.round(|contender| {
                let is_ours = contender.is_ours;
                let released: Vec<_> = (0..keys).map(|key| release(is_ours, key, 0)).collect();
                [calls(is_ours, holders), released, calls(is_ours, 0)].map(|calls| contender.time(&[], &calls))
            }));
        }
        let renewals: Vec<[f64; 2]> = renewals.iter().map(|rounds| medians(rounds)[0]).collect();
        let renewed = [0, 1].map(|at| renewals.iter().map(|figures| figures[at]).sum::<f64>() / holders as f64);
        let [rejected, released, admitted] = medians(&rounds);
        for (work, goal, figures) in [
            ("a holder is renewed", Goal::Times(2.0), renewed),
            ("a holder is rejected", Goal::Times(2.0), rejected),
            ("a holder is admitted", Goal::Times(2.0), admitted),
            ("a holder is released, beside ZREM", Goal::Shown, released),
        ] {
            report.row("leases", &format!("{work}, limit {holders}"), goal, figures, "µs");
        }
    }
}

/// Measures the bytes of `used_memory` for each key.
fn bytes(report: &mut Report, pair: &mut Pair, sha: &str) {
    for (holders, goal) in [(1, Goal::Shown), (3, Goal::Shown), (10, Goal::Times(1.0)), (100, Goal::Times(1.0 / 0.6))] {
        let keys = report.pick(4_000, 20_000) / holders;
        let figures = pair.round(|contender| {
            contender.client.expect("CONFIG SET hz 500", "+OK");
            contender.client.expect("FLUSHALL", "+OK");
            let [before, _] = settled(contender);
            for key in 0..keys {
                let one = |holder| acquire(contender.is_ours, sha, key, holders, key * holders + holder);
                let calls: Vec<Call> = (0..holders).map(one).collect();
                contender.client.pipeline(&calls);
            }
            let [after, _] = settled(contender);
            [(after - before) / keys as f64]
        });
        let [memory] = medians(&[figures]);
        report.row("leases", &format!("used_memory of a key with {holders} UUIDs"), goal, memory, "bytes");
    }
}

/// Measures the time that a Python program sees: redis-py renews ten holders.
fn over_socket(report: &mut Report, pair: &Pair, sha: &str) {
    let [ours, theirs] = pair.0.each_ref().map(|contender| contender.server.port().to_string());
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/server/leases.py");
    let rounds = report.pick(100, 1_000).to_string();
    let output = Command::new("python3").args([program, &ours, &theirs, sha, &rounds]).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures: Vec<f64> = printed.split_whitespace().map(|figure| figure.parse().expect("a figure")).collect();
    let figures = figures.try_into().expect("two figures");
    report.row("leases", "a holder is renewed by redis-py, over a socket", Goal::Times(1.0), figures, "µs");
}

/// 16 connections compete for ten seats. Panics if more than ten are ever held, or if a seat stays taken at the end.
fn race(calls: usize) {
    const CONNECTIONS: usize = 16;
    let server = Server::start();
    let (held, made, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let compete = |connection: usize| {
        let mut client = server.client();
        let [even, odd] = [0, 5].map(|first| {
            let own = 10 * connection + first..10 * connection + first + 5;
            let acquiring: Vec<_> = own.clone().map(|holder| acquire(true, "", 0, SEATS, holder)).collect();
            (acquiring, own.map(|holder| release(true, 0, holder)).collect::<Vec<_>>())
        });
        // A lease is released only after the next attempt, so that nearly all seats are taken all the time.
        let mut acquired = Vec::new();
        for (acquiring, releasing) in [&even, &odd].into_iter().cycle() {
            let is_over = made.fetch_add(acquiring.len(), Ordering::Relaxed) >= calls;
            let replies = if is_over { Vec::new() } else { client.pipeline(acquiring) };
            let is_admitted = |reply: &Value| *reply == Value::Array(vec![Value::Int(1)]);
            let admitted = releasing.iter().zip(&replies).filter(|(_, reply)| is_admitted(reply));
            let admitted: Vec<Call> = admitted.map(|(release, _)| release.clone()).collect();
            most.fetch_max(held.fetch_add(admitted.len(), Ordering::SeqCst) + admitted.len(), Ordering::SeqCst);
            // A seat counts as free as soon as its release is sent.
            held.fetch_sub(acquired.len(), Ordering::SeqCst);
            client.pipeline(&std::mem::replace(&mut acquired, admitted));
            if is_over {
                break;
            }
        }
    };
    let compete = &compete;
    thread::scope(|scope| (0..CONNECTIONS).for_each(|connection| _ = scope.spawn(move || compete(connection))));
    let most = most.into_inner();
    println!("leases  {calls} raced calls for {SEATS} seats: at most {most} holders at a time");
    assert!(most <= SEATS, "too many were admitted");
    server.client().expect("LC.COUNT seats:0", "0");
}
