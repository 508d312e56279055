//! Measures the longest time that another client waits while a command works on the largest values.
//!
//! Every command of the module is called on every kind of value that supports it. A command that the server reports and
//! that no work here uses is an error.

use std::collections::BTreeSet;

use crate::items::{PER_CALL, Source, calls};
use crate::measure::{Bench, Goal, Row, Samples};
use crate::resp::{Batch, Reply};
use crate::servers::Server;
use crate::waits::longest_wait;

/// The keys: the value, one like it with other items, the result of a merge, and the result of a copy.
const KEYS: [&str; 4] = ["giant", "like", "new", "copy"];

/// Number of items in a long list.
const LIST: usize = 10_000;

/// The longest wait in milliseconds that needs no explanation.
const SHORT: f64 = 5.0;

/// A value of the largest allowed size.
struct Value {
    name: &'static str,
    /// The command that creates an empty value. `KEY` stands for the key.
    make: &'static str,
    add: &'static str,
    items: u64,
    work: &'static [&'static [Work]],
}

/// One kind of work on the value.
struct Work {
    /// The command; `ITEMS` stands for a long list of new items.
    call: &'static str,
    /// Whether the time of the command grows with the value, as documented in docs/operations.md. The wait of such a
    /// command is shown without a goal.
    is_whole: bool,
}

const fn part(call: &'static str) -> Work {
    Work { call, is_whole: false }
}

const fn whole(call: &'static str) -> Work {
    Work { call, is_whole: true }
}

/// Work on filters. `RESTORE` and `LOADCHUNK` stand for commands whose payload is read from the server first.
const FILTER: &[Work] = &[
    part("BF.ADD giant one"),
    part("BF.MADD giant ITEMS"),
    part("BF.INSERT giant NOCREATE ITEMS ITEMS"),
    part("BF.ADMIT giant LIMIT 1000000000 ITEMS ITEMS"),
    part("BF.EXISTS giant one"),
    part("BF.MEXISTS giant ITEMS"),
    part("BF.CARD giant"),
    part("BF.INFO giant"),
    part("BF.DEBUG giant"),
    part("MEMORY USAGE giant"),
    part("BF.SCANDUMP giant MIDDLE"),
    part("LOADCHUNK"),
    whole("COPY giant copy"),
    whole("BF.MERGE new giant"),
    whole("BF.MERGE giant like"),
    whole("DUMP giant"),
    whole("RESTORE"),
    part("BF.CLEAR like"),
];

const COUNTER: &[Work] = &[
    part("LC.ADD giant one"),
    part("LC.ADD giant ITEMS"),
    part("LC.INSERT giant NOCREATE ITEMS ITEMS"),
    part("LC.COUNT giant"),
    part("LC.COUNT giant like"),
    part("LC.UNIONCARD 2 giant like"),
    part("LC.DIFFCARD 2 giant like"),
    part("LC.INTERCARD 2 giant like"),
    part("LC.INFO giant"),
    part("MEMORY USAGE giant"),
    part("LC.SCANDUMP giant MIDDLE"),
    part("LOADCHUNK"),
    part("COPY giant copy"),
    part("LC.MERGE new giant"),
    part("LC.MERGE giant like"),
    whole("DUMP giant"),
    whole("RESTORE"),
    part("LC.CLEAR like"),
];

/// Commands that only exact counters support, whose members take at most 1 MiB.
const EXACT: &[Work] = &[
    part("LC.MEMBERS giant"),
    part("LC.EXISTS giant one"),
    part("LC.MEXISTS giant ITEMS"),
    part("LC.DIFF 2 giant like"),
    part("LC.UNION 2 giant like"),
    part("LC.INTER 2 giant like"),
    part("LC.ADMIT giant LIMIT 65536 ITEMS ITEMS"),
];

const WINDOWED_COUNTER: &[Work] =
    &[part("LC.COUNTSINCE giant 1"), part("LC.HISTORY giant"), part("LC.ADVANCE giant 100")];
const WINDOWED: &[Work] = &[part("BF.ADVANCE giant 100")];

const END: &[Work] = &[part("UNLINK giant")];

/// Number of items to add. The filters, for 100 million items at 0.001, have 190 MB and 180 MB; this number of items
/// touches every page.
const TOUCHED: u64 = 500_000;

/// The largest values. The bitmap of a counter has at most 1 MiB, and with tags 8 MiB.
const VALUES: [Value; 7] = [
    Value {
        name: "filter of 190 MB",
        make: "BF.RESERVE KEY 0.001 100000000",
        add: "BF.MADD",
        items: TOUCHED,
        work: &[FILTER, END],
    },
    Value {
        name: "classic filter of 180 MB",
        make: "BF.RESERVE KEY 0.001 100000000 LAYOUT classic",
        add: "BF.MADD",
        items: TOUCHED,
        work: &[FILTER, END],
    },
    Value {
        name: "windowed filter of 190 MB",
        make: "BF.RESERVE KEY 0.001 100000000 WINDOW 100 MANUAL SLICES 1",
        add: "BF.MADD",
        items: TOUCHED,
        work: &[FILTER, WINDOWED, END],
    },
    Value {
        name: "exact counter of 1 MiB",
        make: "LC.RESERVE KEY 1000000 EXACT 65536 BYTES 1048576",
        add: "LC.ADD",
        items: 20_000,
        work: &[EXACT, COUNTER, END],
    },
    Value {
        name: "counter of 1 MiB",
        make: "LC.RESERVE KEY 10000000000 ERROR 0.001 EXACT 0",
        add: "LC.ADD",
        items: 3_000_000,
        work: &[COUNTER, END],
    },
    Value {
        name: "windowed counter of 8 MiB",
        make: "LC.RESERVE KEY 10000000000 ERROR 0.001 EXACT 0 WINDOW 100 MANUAL SLICES 100",
        add: "LC.ADD",
        items: 3_000_000,
        work: &[COUNTER, WINDOWED_COUNTER, END],
    },
    Value {
        name: "windowed exact counter of 1 MiB",
        make: "LC.RESERVE KEY 1000000 EXACT 65536 BYTES 1048576 WINDOW 100 MANUAL SLICES 10",
        add: "LC.ADD",
        items: 20_000,
        work: &[EXACT, COUNTER, WINDOWED_COUNTER, END],
    },
];

impl Value {
    fn family(&self) -> &'static str {
        &self.make[..2]
    }

    fn work(&self) -> impl Iterator<Item = &'static Work> {
        self.work.iter().copied().flatten()
    }

    /// Creates the value again at the first two keys.
    fn make(&self, server: &mut Server, quick: bool) {
        server.call("FLUSHALL SYNC");
        for (key, start) in [("giant", 0), ("like", 1 << 32)] {
            server.call(&self.make.replace("KEY", key));
            let mut source = Source::From(start);
            let mut left = if quick { self.items.min(TOUCHED) } else { self.items } as usize / PER_CALL;
            while left > 0 {
                let some = left.min(400);
                server.client.run(&calls(&[self.add, key], &mut source, some, PER_CALL, 4));
                left -= some;
            }
        }
    }
}

/// A batch of one request.
fn request(words: &[&[u8]]) -> Batch {
    let mut batch = Batch::default();
    batch.push(words.iter());
    batch
}

/// Sends what the work needs beforehand, and returns the request to measure.
fn prepare(server: &mut Server, value: &Value, work: &Work, list: &mut u64) -> Batch {
    match work.call {
        "RESTORE" => {
            let payload = server.client.dump("giant");
            request(&[b"RESTORE", b"copy", b"0", &payload])
        }
        "LOADCHUNK" => {
            let family = value.family();
            let loadchunk = format!("{family}.LOADCHUNK");
            let (next, header) = server.client.chunk(&format!("{family}.SCANDUMP"), "giant", "0");
            server.client.run_one(&request(&[loadchunk.as_bytes(), b"copy", next.as_bytes(), &header]));
            let (next, chunk) = server.client.chunk(&format!("{family}.SCANDUMP"), "giant", &next);
            // A small value is in its header whole: it takes no other chunk, and the header again is rejected.
            if chunk.is_empty() {
                server.call("DEL copy");
                return request(&[loadchunk.as_bytes(), b"copy", b"1", &header]);
            }
            request(&[loadchunk.as_bytes(), b"copy", next.as_bytes(), &chunk])
        }
        call => {
            let middle = if value.family() == "BF" { 100_000_000u64 } else { 1 };
            let mut words: Vec<Vec<u8>> = Vec::new();
            for word in call.split(' ') {
                match word {
                    // The keyword comes before the list that has the same name.
                    "ITEMS" if call.contains("ITEMS ITEMS") && words.last().is_none_or(|last| last != b"ITEMS") => {
                        words.push(b"ITEMS".to_vec());
                    }
                    "ITEMS" => {
                        let mut source = Source::From((2 << 32) + *list);
                        *list += LIST as u64;
                        words.extend((0..LIST).map(|_| source.next().to_vec()));
                    }
                    "MIDDLE" => words.push(middle.to_string().into_bytes()),
                    word => words.push(word.as_bytes().to_vec()),
                }
            }
            let mut batch = Batch::default();
            batch.push(words.iter());
            batch
        }
    }
}

/// Measures every command on a server that has no other keys.
pub fn run(bench: &mut Bench) {
    let mut server = bench.ours.another();
    let repeats = bench.pick(1, 3);
    let mut asked = BTreeSet::from(["BF.RESERVE".to_owned(), "LC.RESERVE".to_owned()]);
    let mut list = 0;
    let mut idle = Samples::default();
    (0..3).for_each(|_| idle.push(longest_wait(&mut server, f64::MAX, |_| ())));
    let mut rows = vec![(format!("{WAIT}: nothing (how quiet the machine is)"), Goal::Shown, idle.median())];
    // A quick run leaves out the first two filters: the third, which is as large, takes their commands too.
    let values = &VALUES[bench.pick(2, 0)..];
    for (step, value) in values.iter().enumerate() {
        bench.step(step, values.len());
        let work: Vec<_> = value.work().collect();
        let mut waits = vec![Samples::default(); work.len()];
        for _ in 0..repeats {
            value.make(&mut server, bench.quick);
            for (work, waits) in work.iter().zip(&mut waits) {
                let call = prepare(&mut server, value, work, &mut list);
                waits.push(longest_wait(&mut server, f64::MAX, |server| server.client.run_one(&call)));
                server.call(&format!("UNLINK {} {}", KEYS[2], KEYS[3]));
            }
        }
        for (work, waits) in work.iter().zip(&waits) {
            let name = work.call.split(' ').next().unwrap_or_default();
            let name = if name == "LOADCHUNK" { format!("{}.{name}", value.family()) } else { name.to_owned() };
            asked.insert(name);
            let what = work.call.replace("ITEMS ITEMS", "ITEMS").replace("ITEMS", "10,000 items");
            let goal = if work.is_whole { Goal::Shown } else { Goal::AtMost(SHORT) };
            rows.push((format!("{WAIT}: {}: {what}", value.name), goal, waits.median()));
        }
    }
    check_all_asked(&mut server, &asked);
    bench.rows.extend(rows.into_iter().map(|(work, goal, ours)| Row { work, goal, ours, other: None, unit: "ms" }));
}

const WAIT: &str = "longest wait of another client";

/// Panics if the server has a command that no work used. RF.* commands do the same as BF.*, so they are left
/// out.
fn check_all_asked(server: &mut Server, asked: &BTreeSet<String>) {
    let commands = server.call("COMMAND LIST FILTERBY MODULE rollcall");
    let names = commands.elements().iter().map(Reply::text).map(|name| name.to_uppercase());
    let is_new = |name: &String| !name.starts_with("RF.") && !asked.contains(name);
    let unmeasured: Vec<_> = names.filter(is_new).collect();
    assert!(unmeasured.is_empty(), "commands without a measurement: {unmeasured:?}");
}
