//! Measures the time that other clients wait when a slice of the largest values begins.

use super::of_sub_filters;
use crate::batch::fill;
use crate::items::{PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, Row, Samples, time_of};
use crate::servers::Server;
use crate::waits::longest_wait;

const KEY: &str = "giant";
const GIBIBYTE: f64 = (1u64 << 30) as f64;
const RATE: f64 = 0.001;

/// A counter of the largest size, in one of its representations.
struct Held {
    name: &'static str,
    capacity: u64,
    exact: &'static str,
    members: usize,
    representation: &'static str,
}

/// The largest counters: a bitmap has at most 1 MiB, and with tags 8 MiB. Lists of members or positions have at most
/// half of that.
const COUNTERS: [Held; 3] = [
    Held {
        name: "8 MiB of cells of a counter",
        exact: "EXACT 0",
        members: 2_000_000,
        representation: "dense",
        ..LARGEST
    },
    Held { name: "lists of a counter", exact: "EXACT 0", members: 400_000, representation: "sparse", ..LARGEST },
    LARGEST,
];
const LARGEST: Held = Held {
    name: "members of a counter",
    capacity: 10_000_000_000,
    exact: "EXACT 65536 BYTES 1048576",
    members: 20_000,
    representation: "exact",
};

/// The event that begins a slice.
#[derive(Clone, Copy)]
enum Begin {
    /// A client calls ADVANCE.
    Advance,
    /// The clock reaches the next slice, and an item is added. Until then the window has the manual clock, so that the
    /// write that begins the slice is known: the first one after the change to the system clock.
    FirstWrite,
}

const BEGINS: [(&str, Begin); 2] = [("ADVANCE", Begin::Advance), ("the first write of a slice", Begin::FirstWrite)];

/// Length of a slice in seconds: an hour, so that hardly ever another slice begins during a measurement.
const SLICE: u64 = 3600;

/// Measures filters and counters on a server that has no other keys.
pub fn run(bench: &mut Bench) {
    let mut server = bench.ours.another();
    let repeats = bench.pick(1, 7);
    let mut idle = Samples::default();
    // The wait, then what the server says of the command itself, both in milliseconds. Of each value by each way.
    let mut samples = [(); 1 + COUNTERS.len()].map(|()| [(); 2].map(|()| [(); 2].map(|()| Samples::default())));
    for repeat in 0..repeats {
        bench.step(repeat, repeats);
        idle.push(longest_wait(&mut server, f64::MAX, |_| ()));
        for (way, (_, begin)) in BEGINS.into_iter().enumerate() {
            let slice = make_filter(&mut server);
            measure(&mut server, begin, ["BF.ADVANCE", "BF.ADD"], slice, &mut samples[0][way]);
            for (held, samples) in COUNTERS.iter().zip(&mut samples[1..]) {
                let slice = make_counter(&mut server, held);
                measure(&mut server, begin, ["LC.ADVANCE", "LC.ADD"], slice, &mut samples[way]);
            }
        }
    }
    let row =
        |work: String, goal, samples: &Samples| Row { work, goal, ours: samples.median(), other: None, unit: "ms" };
    bench.rows.push(row(format!("{WAIT}: nothing (how quiet the machine is)"), Goal::Shown, &idle));
    let names = ["1 GiB of a filter"].into_iter().chain(COUNTERS.iter().map(|held| held.name));
    for (name, samples) in names.zip(&samples) {
        for ((by, _), [wait, time]) in BEGINS.iter().zip(samples) {
            bench.rows.push(row(format!("{WAIT}: {name}, by {by}"), Goal::AtMost(5.0), wait));
            bench.rows.push(row(format!("server time of that: {name}, by {by}"), Goal::Shown, time));
        }
    }
}

const WAIT: &str = "longest wait of another client while a slice dies";

/// The slice of the present time.
fn now(server: &mut Server) -> u64 {
    let seconds = server.call("TIME").elements()[0].number();
    seconds as u64 / SLICE
}

/// Creates a filter with a gibibyte in one slice, all of it resident. Returns the slice in which this data has expired.
fn make_filter(server: &mut Server) -> u64 {
    server.call("FLUSHALL SYNC");
    let now = now(server);
    let reserve = |server: &mut Server, capacity: u64| {
        server.call(&format!("BF.RESERVE {KEY} {RATE} {capacity} WINDOW {SLICE} MANUAL SLICES 1"));
        server.call(&format!("BF.ADVANCE {KEY} {}", now - 2));
    };
    // The bytes of a million items give the capacity.
    reserve(server, 1_000_000);
    fill(server, KEY, &mut Source::From(0), 1);
    let bytes = of_sub_filters(server, KEY, "bytes")[0] as f64;
    server.call("FLUSHALL SYNC");
    let before = server.resident_bytes();
    reserve(server, (GIBIBYTE * 1e6 / bytes) as u64);
    fill(server, KEY, &mut Source::From(0), 1_400_000);
    assert!(server.resident_bytes() - before > 0.95 * GIBIBYTE, "not all of it is filled");
    now
}

/// Creates a counter. Returns the slice in which half of its members have expired.
fn make_counter(server: &mut Server, held: &Held) -> u64 {
    server.call("FLUSHALL SYNC");
    let (now, window) = (now(server), 24 * SLICE);
    let Held { capacity, exact, members, representation, .. } = held;
    server.call(&format!("LC.RESERVE {KEY} {capacity} ERROR 0.001 {exact} WINDOW {window} MANUAL SLICES 24"));
    for (slice, start) in [(now - 25, 0), (now - 1, 1 << 32)] {
        server.call(&format!("LC.ADVANCE {KEY} {slice}"));
        let count = members / 2 / PER_CALL;
        server.client.run(&calls(&["LC.ADD", KEY], &mut Source::From(start), count, PER_CALL, 4));
    }
    let info = server.call(&format!("LC.INFO {KEY}"));
    assert!(info.text().contains(representation), "not {representation}: {info}");
    now
}

/// Begins a slice, and measures how long other clients wait.
fn measure(server: &mut Server, begin: Begin, [advance, add]: [&str; 2], slice: u64, samples: &mut [Samples; 2]) {
    let (command, work) = match begin {
        Begin::Advance => (advance, format!("{advance} {KEY} {slice}")),
        Begin::FirstWrite => {
            server.call(&format!("{advance} {KEY} CLOCK"));
            (add, format!("{add} {KEY} one"))
        }
    };
    server.call("CONFIG RESETSTAT");
    samples[0].push(longest_wait(server, f64::MAX, |server| drop(server.call(&work))));
    samples[1].push(time_of(&server.call("INFO commandstats"), command) / 1e3);
}
