//! Compares windows that users build from filters without a window with one windowed filter. One solution has a key per
//! day and looks up items in all seven. Another one has two overlapping filters: items are added to both, and looked up
//! in the older one.

use super::Window;
use crate::batch::fill;
use crate::items::{ABSENT, PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, NEVER_BEHIND, Row, Samples, server_time, throughput};
use crate::resp::Batch;
use crate::servers::Server;

const WEEK: Window = Window { capacity: 50_000, rate: 0.001, slices: 7 };
const KEY: &str = "week";
/// The keys of the days; the last one is today's.
const DAYS: [&str; 7] = ["day:1", "day:2", "day:3", "day:4", "day:5", "day:6", "day:7"];
const PAIR: [&str; 2] = ["pair:older", "pair:newer"];

const SEVEN_KEYS: &str = "RedisBloom, seven keys";
const TWO_KEYS: &str = "RedisBloom, two keys";

/// Number of calls per round. The newest day has room for all items of these calls.
const CALLS: usize = 10;

/// Creates a filter per day and the pair of overlapping filters. Each day has a share of the items and of the error
/// rate, so that all days together have the error rate of one window. Each filter of the pair gets the items of up to
/// two windows.
fn make(peer: &mut Server) {
    let Window { capacity, rate, slices } = WEEK;
    for (day, start) in DAYS.iter().zip((0..).step_by(WEEK.share() as usize)) {
        peer.call(&format!("DEL {day}"));
        peer.call(&format!("BF.RESERVE {day} {} {}", rate / slices as f64, WEEK.share()));
        let items = if *day == DAYS[6] { WEEK.share() / 4 } else { WEEK.share() };
        fill(peer, day, &mut Source::From(start), items);
    }
    // The older one is between one and two windows old, the newer one is younger than one.
    for (key, items) in PAIR.into_iter().zip([capacity * 3 / 2, capacity / 2]) {
        peer.call(&format!("DEL {key}"));
        peer.call(&format!("BF.RESERVE {key} {rate} {}", 2 * capacity));
        fill(peer, key, &mut Source::From(0), items);
    }
}

/// The server's time for a list that is sent to each of these keys.
fn time_of_all(server: &mut Server, command: &str, keys: &[&str], warm: &Source, source: &Source) -> f64 {
    let batches = |command, key, source: &Source| calls(&[command, key], &mut source.clone(), CALLS, PER_CALL, 4);
    let times = keys
        .iter()
        .map(|key| server_time(server, command, &batches("BF.MEXISTS", key, warm), &batches(command, key, source)));
    times.sum()
}

/// The end-to-end time for a list that is sent to each of these keys in one pipeline.
fn time_of_pipeline(server: &mut Server, keys: &[&str], mut source: Source, lists: usize) -> f64 {
    let pipeline = |_| {
        let items: Vec<_> = (0..PER_CALL).map(|_| source.next()).collect();
        let mut batch = Batch::default();
        keys.iter().for_each(|key| batch.push_items(&["BF.MEXISTS", key], items.iter()));
        batch
    };
    let pipelines: Vec<_> = (0..lists).map(pipeline).collect();
    1e6 * keys.len() as f64 / throughput(server, &pipelines)
}

/// Measures filters.
pub fn run(bench: &mut Bench, done: usize, all: usize) {
    let (rounds, lists) = (bench.rounds(), bench.pick(50, 200));
    // Each of ours, seven keys, two keys.
    let mut samples = [(); 4].map(|()| [(); 3].map(|()| Samples::default()));
    let [absent_ones, present_ones, new_ones, end_to_end] = &mut samples;
    for round in 0..rounds {
        bench.step(done + round, all);
        let (ours, peer) = (&mut bench.ours, &mut bench.peer);
        ours.call(&format!("DEL {KEY}"));
        WEEK.make(ours, KEY, WEEK.share(), WEEK.share() / 4);
        make(peer);
        let seed = round as u64 + 1;
        // Items that came on one of the last six full days are in all of them.
        let (known, warm) = (Source::below(WEEK.share() * 6, seed), Source::below(WEEK.share() * 6, !seed));
        for (source, samples) in [(Source::From(ABSENT + (seed << 32)), &mut *absent_ones), (known, present_ones)] {
            samples[0].push(time_of_all(ours, "BF.MEXISTS", &[KEY], &warm, &source));
            samples[1].push(time_of_all(peer, "BF.MEXISTS", &DAYS, &warm, &source));
            samples[2].push(time_of_all(peer, "BF.MEXISTS", &PAIR[..1], &warm, &source));
        }
        let absent = Source::From(ABSENT + (seed << 33));
        end_to_end[0].push(time_of_pipeline(ours, &[KEY], absent.clone(), lists));
        end_to_end[1].push(time_of_pipeline(peer, &DAYS, absent.clone(), lists));
        end_to_end[2].push(time_of_pipeline(peer, &PAIR[..1], absent, lists));
        let new = Source::From(seed << 32);
        new_ones[0].push(time_of_all(ours, "BF.MADD", &[KEY], &warm, &new));
        let asked = time_of_all(peer, "BF.MEXISTS", &DAYS[..6], &warm, &new);
        new_ones[1].push(asked + time_of_all(peer, "BF.MADD", &DAYS[6..], &warm, &new));
        new_ones[2].push(time_of_all(peer, "BF.MADD", &PAIR, &warm, &new));
    }
    let names = ["350 absent", "350 present", "350 new, if not seen", "350 absent, end to end"];
    for (name, samples) in names.into_iter().zip(&samples) {
        let [ours, seven, two] = [0, 1, 2].map(|contender| samples[contender].median());
        push(bench, name, ours, [(NEVER_BEHIND, seven), (Goal::Shown, two)], "µs a list");
    }
    let size = |server: &mut Server, keys: &[&str]| {
        keys.iter().map(|key| server.call(&format!("BF.INFO {key}")).field("Size")).sum::<f64>()
    };
    let [ours, seven, two] =
        [size(&mut bench.ours, &[KEY]), size(&mut bench.peer, &DAYS), size(&mut bench.peer, &PAIR)];
    push(bench, "Size of BF.INFO", ours, [(Goal::Shown, seven), (Goal::Shown, two)], "bytes");
    bench.ours.call(&format!("DEL {KEY}"));
    bench.peer.call(&format!("DEL {} {}", DAYS.join(" "), PAIR.join(" ")));
}

fn push(bench: &mut Bench, name: &str, ours: f64, others: [(Goal, f64); 2], unit: &'static str) {
    for ((goal, other), keys) in others.into_iter().zip([SEVEN_KEYS, TWO_KEYS]) {
        let work = format!("a window of 50,000 in 7 slices, p = 0.001: {name}");
        bench.rows.push(Row { work, goal, ours, other: Some((keys, other)), unit });
    }
}
