//! Measures every combination of parameters that influence the time of a call, on Rollcall's filters and on
//! RedisBloom's.

use crate::items::{ABSENT, scramble};
use crate::measure::{Bench, NEVER_BEHIND, Row, Samples, server_time};
use crate::resp::Batch;
use crate::servers::Server;

/// Sizes of items in bytes.
const SIZES: [usize; 4] = [8, 32, 256, 4096];

/// Number of items per call, number of measured calls, and number of calls that are sent at once.
const LISTS: [(usize, usize, usize); 3] = [(1, 1000, 100), (10, 400, 20), (350, 40, 4)];

/// The most bytes of items in the measured calls. If items are long, fewer calls are measured.
const MOST_BYTES: usize = 12 << 20;

/// Capacities, each with the numbers of sub-filters to measure. More sub-filters would mean a million items and more,
/// which take minutes to add. RedisBloom cannot load 1,000 sub-filters from its own dump, because of an assertion.
const FILTERS: [(u64, &[u64]); 4] =
    [(10, &[1, 10, 100, 980]), (1000, &[1, 10, 100]), (100_000, &[1, 10]), (3_000_000, &[1])];
const QUICK_FILTERS: [(u64, &[u64]); 3] = [(10, &[1, 100]), (1000, &[1, 10]), (100_000, &[1])];

const RATES: [&str; 2] = ["0.01", "0.001"];

/// The largest number of sub-filters of a Rollcall filter, minus a reserve.
const MOST_SUB_FILTERS: u64 = 1020;

/// The contenders: Rollcall's filters in both layouts, and RedisBloom's filters.
const CONTENDERS: [&str; 3] = ["lines", "classic", "redisbloom"];

const OPERATIONS: [(&str, [&str; 2]); 3] =
    [("new", ["BF.ADD", "BF.MADD"]), ("present", ["BF.EXISTS", "BF.MEXISTS"]), ("absent", ["BF.EXISTS", "BF.MEXISTS"])];

/// The index of the operation on absent items.
const ABSENT_ITEMS: usize = 2;

/// If Rollcall is not ahead by at least this factor, a cell is measured `MORE_ROUNDS` times as often.
const CLOSE: f64 = 1.1;
const MORE_ROUNDS: usize = 5;

/// The size of a filter in the grid of measurements.
#[derive(Clone, Copy, PartialEq)]
struct Filter {
    capacity: u64,
    chain: u64,
    rate: &'static str,
}

/// Times of one combination, in microseconds per call.
struct Cell {
    filter: Filter,
    size: usize,
    items: usize,
    operation: usize,
    /// The times of the [`CONTENDERS`], in their order.
    times: [f64; 3],
    /// The times of the first measurement, if a layout was behind in it and the cell was measured again.
    first: Option<[f64; 3]>,
    /// The times of the later measurements.
    again: [Samples; 3],
}

impl Cell {
    /// RedisBloom's time divided by Rollcall's.
    fn ratio(&self, layout: usize) -> f64 {
        self.times[2] / self.times[layout]
    }

    /// The ratio of the layout that is further behind, or less ahead.
    fn worst(&self) -> f64 {
        self.ratio(0).min(self.ratio(1))
    }

    fn name(&self) -> String {
        let Filter { capacity, chain, rate } = self.filter;
        let (items, size) = (self.items, self.size);
        format!("{items} of {size} bytes, {chain} × {capacity} at p = {rate}")
    }
}

/// An item of `size` bytes. Its first 8 bytes differ from those of all other items of the same size.
fn item(number: u64, size: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let spread = scramble(number);
    (0..size).map(|at| DIGITS[if at < 8 { (spread >> (6 * at)) as usize & 63 } else { at & 63 }]).collect()
}

/// The first number of the items that fill the filters. Numbers of present items begin at 0 for each size.
const FILLERS: u64 = 1 << 32;
const NEW: u64 = 1 << 44;
/// What is added to the numbers of measured items, for the items that warm the caches.
const WARMING: u64 = 1 << 45;

impl Filter {
    /// The number of items that are added before any measurement, so that the last sub-filter is half full.
    fn filled(self) -> u64 {
        self.capacity * (self.chain - 1) + self.capacity / 2
    }

    /// The number of present items of each size that can be looked up.
    fn pool(self) -> u64 {
        (self.filled() / SIZES.len() as u64).min(500)
    }

    /// The item that is added at this position. At equal distances there is one item of each size; all others have the
    /// shortest size.
    fn filling(self, place: u64) -> Vec<u8> {
        let sizes = SIZES.len() as u64;
        let (step, all) = (self.filled() / (sizes * self.pool()), sizes * self.pool());
        match place / step {
            nth if place.is_multiple_of(step) && nth < all => item(nth / sizes, SIZES[(nth % sizes) as usize]),
            _ => item(FILLERS + place, SIZES[0]),
        }
    }

    /// The number of equal filters that are used in turn, so that added items do not turn small filters into large
    /// ones.
    fn copies(self) -> usize {
        match (self.capacity, self.chain) {
            (..=1000, 1) => 32,
            (..=1000, ..=10) => 8,
            _ => 1,
        }
    }

    /// The number of items that a filter can get before it no longer fits its row.
    fn room(self) -> u64 {
        let most = self.capacity * (MOST_SUB_FILTERS - self.chain);
        (self.capacity / 2).max(self.capacity * self.chain / 5).min(most)
    }

    /// The number of calls that are measured in a round; 0 if the filter has no room for a call.
    fn calls(self, operation: usize, (items, calls, _): (usize, usize, usize), size: usize) -> usize {
        let calls = calls.min((MOST_BYTES / (items * size)).max(1));
        if OPERATIONS[operation].0 != "new" {
            return calls;
        }
        if self.chain + items as u64 / self.capacity > MOST_SUB_FILTERS {
            return 0;
        }
        calls.min(self.copies() * (self.room() as usize / items).max(1))
    }

    /// Makes the filter in a server, returns its DUMP and removes it.
    fn make(self, server: &mut Server, contender: &str) -> Vec<u8> {
        const KEY: &str = "grid:made";
        let layout = if contender == "redisbloom" { String::new() } else { format!(" LAYOUT {contender}") };
        server.call(&format!("BF.RESERVE {KEY} {} {} EXPANSION 1{layout}", self.rate, self.capacity));
        let mut add = |places: std::ops::Range<u64>| {
            let mut batch = Batch::default();
            batch.push_items(&["BF.MADD", KEY], places.map(|place| self.filling(place)).collect::<Vec<_>>().iter());
            server.client.run_one(&batch);
            server.call(&format!("BF.INFO {KEY}")).field("Number of filters")
        };
        let mut place = 0;
        while place < self.filled() {
            let end = self.filled().min(place + 1000);
            add(place..end);
            place = end;
        }
        // False positives are not counted, so a few more items are needed to reach this number of sub-filters.
        while add(place..place + 1) < self.chain as f64 {
            place += 1;
        }
        let dump = server.client.dump(KEY);
        server.call(&format!("DEL {KEY}"));
        dump
    }
}

fn copy(contender: &str, index: usize) -> String {
    format!("grid:{contender}:{index}")
}

/// Creates all copies of a filter again from its dump.
fn restore(server: &mut Server, contender: &str, filter: Filter, dump: &[u8]) {
    for index in 0..filter.copies() {
        let mut batch = Batch::default();
        batch.push([b"RESTORE", copy(contender, index).as_bytes(), b"0", dump, b"REPLACE"].into_iter());
        server.client.run_one(&batch);
    }
}

/// Looks up so many absent items that most cache lines of a filter are read. Without this, the filter that was restored
/// last would be in the caches when it is measured, and those before it in memory.
fn reread(server: &mut Server, contender: &str, filter: Filter) {
    let calls = (filter.filled() / 8).div_ceil(350) as usize;
    server.client.run(&requests(filter, contender, ABSENT_ITEMS, (350, calls, 4), SIZES[0], calls, WARMING));
}

/// Measures every combination of the grid, filter by filter. Cells in which a layout is behind are measured again
/// several times, after all others and on filters that are made anew: chance does not repeat itself. The medians of
/// these measurements count.
pub fn run(bench: &mut Bench) {
    let filters: &[(u64, &[u64])] = if bench.quick { &QUICK_FILTERS } else { &FILTERS };
    let rates = &RATES[..bench.pick(1, 2)];
    let chains = filters.iter().flat_map(|&(capacity, chains)| chains.iter().map(move |&chain| (capacity, chain)));
    let filters: Vec<Filter> =
        chains.flat_map(|(capacity, chain)| rates.iter().map(move |&rate| Filter { capacity, chain, rate })).collect();
    let mut cells = Vec::new();
    for (done, &filter) in filters.iter().enumerate() {
        bench.step(done, filters.len());
        cells.extend(measure(bench, filter, |_, _| true));
    }
    for _ in 0..bench.pick(3, 5) {
        for &filter in &filters {
            let behind = |cell: &&mut Cell| cell.filter == filter && cell.worst() < 1.0;
            let mut behind: Vec<&mut Cell> = cells.iter_mut().filter(behind).collect();
            if behind.is_empty() {
                continue;
            }
            let wanted: Vec<_> = behind.iter().map(|cell| (cell.size, cell.items)).collect();
            for again in measure(bench, filter, |size, items| wanted.contains(&(size, items))) {
                let is_it = |cell: &&mut &mut Cell| {
                    (cell.size, cell.items, cell.operation) == (again.size, again.items, again.operation)
                };
                if let Some(cell) = behind.iter_mut().find(is_it) {
                    cell.again.iter_mut().zip(again.times).for_each(|(samples, time)| samples.push(time));
                }
            }
        }
    }
    for cell in cells.iter_mut().filter(|cell| cell.worst() < 1.0) {
        cell.first = Some(cell.times);
        cell.times = [0, 1, 2].map(|contender| cell.again[contender].median());
    }
    report(bench, &filters, &cells);
}

fn server<'a>(bench: &'a mut Bench, contender: &str) -> &'a mut Server {
    if contender == "redisbloom" { &mut bench.peer } else { &mut bench.ours }
}

/// Measures the cells of one filter whose size of items and items a call are `wanted`.
fn measure(bench: &mut Bench, filter: Filter, wanted: impl Fn(usize, usize) -> bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    let dumps = CONTENDERS.map(|contender| filter.make(server(bench, contender), contender));
    let mut added = u64::MAX;
    let mut new = NEW;
    for size in SIZES {
        for list in LISTS.into_iter().filter(|list| wanted(size, list.0)) {
            let mut samples = [(); 3].map(|()| [(); 3].map(|()| Samples::default()));
            let (rounds, more) = (bench.pick(1, 5), bench.pick(1, MORE_ROUNDS));
            for round in 0..rounds * more {
                let close = samples.iter().any(|samples| {
                    let [lines, classic, peer] = [0, 1, 2].map(|contender| samples[contender].median());
                    peer / lines.max(classic) < CLOSE
                });
                if round >= rounds && !close {
                    break;
                }
                for operation in (0..OPERATIONS.len()).rev() {
                    let calls = filter.calls(operation, list, size);
                    if calls == 0 {
                        continue;
                    }
                    let a_copy = (calls * list.0).div_ceil(filter.copies()) as u64;
                    let adds = OPERATIONS[operation].0 == "new";
                    if added == u64::MAX || (adds && added + a_copy > filter.room().max(a_copy)) {
                        for (contender, dump) in CONTENDERS.into_iter().zip(&dumps) {
                            restore(server(bench, contender), contender, filter, dump);
                        }
                        CONTENDERS.into_iter().for_each(|one| reread(server(bench, one), one, filter));
                        added = 0;
                    }
                    let first = if adds { new } else { ABSENT + (round * calls * list.0) as u64 };
                    if adds {
                        added += a_copy;
                        new += (calls * list.0) as u64;
                    }
                    // Look-ups of other absent items change nothing, and warm a server after the other one has run.
                    let warming = calls.div_ceil(list.0.min(4));
                    // Each contender is the first in turn.
                    for at in (0..CONTENDERS.len()).map(|turn| (round + turn) % CONTENDERS.len()) {
                        let contender = CONTENDERS[at];
                        let batches = requests(filter, contender, operation, list, size, calls, first);
                        let warm = requests(filter, contender, ABSENT_ITEMS, list, size, warming, WARMING + first);
                        let command = OPERATIONS[operation].1[usize::from(list.0 > 1)];
                        samples[operation][at].push(server_time(server(bench, contender), command, &warm, &batches));
                    }
                }
            }
            for (operation, samples) in samples.iter().enumerate() {
                let times = [0, 1, 2].map(|contender| samples[contender].median());
                if times[2].is_finite() {
                    cells.push(Cell {
                        filter,
                        size,
                        items: list.0,
                        operation,
                        times,
                        first: None,
                        again: Default::default(),
                    });
                }
            }
        }
    }
    for contender in CONTENDERS {
        (0..filter.copies())
            .for_each(|index| drop(server(bench, contender).call(&format!("DEL {}", copy(contender, index)))));
    }
    cells
}

/// The requests of one round. New and absent items have numbers from `first` on.
fn requests(
    filter: Filter,
    contender: &str,
    operation: usize,
    (items, _, pipelined): (usize, usize, usize),
    size: usize,
    calls: usize,
    first: u64,
) -> Vec<Batch> {
    let (kind, commands) = OPERATIONS[operation];
    let mut number = first;
    let mut next = || {
        number += 1;
        item(if kind == "present" { scramble(number) % filter.pool() } else { number - 1 }, size)
    };
    let mut batches = Vec::new();
    for start in (0..calls).step_by(pipelined) {
        let mut batch = Batch::default();
        for call in start..calls.min(start + pipelined) {
            let key = copy(contender, call % filter.copies());
            let items: Vec<_> = (0..items).map(|_| next()).collect();
            batch.push_items(&[commands[usize::from(items.len() > 1)], &key], items.iter());
        }
        batches.push(batch);
    }
    batches
}

/// A ratio in a short notation.
fn short(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

/// Rows for the worst cells, and tables of all ratios.
fn report(bench: &mut Bench, filters: &[Filter], cells: &[Cell]) {
    let mut listed = Vec::new();
    for (operation, (name, _)) in OPERATIONS.iter().enumerate() {
        for (layout, contender) in CONTENDERS[..2].iter().enumerate() {
            let here = || cells.iter().filter(|cell| cell.operation == operation);
            let worst = here().min_by(|a, b| a.ratio(layout).total_cmp(&b.ratio(layout)));
            let Some(worst) = worst else { continue };
            bench.rows.push(Row {
                work: format!("grid, {name}, {contender}: worst of {} cells", here().count()),
                goal: NEVER_BEHIND,
                ours: worst.times[layout],
                other: Some(("RedisBloom", worst.times[2])),
                unit: "µs a call",
            });
            let was_behind = |cell: &&Cell| cell.first.is_some_and(|first| first[2] < first[layout]);
            listed.extend(
                here().filter(|cell| was_behind(cell) || std::ptr::eq(*cell, worst)).map(|cell| (layout, cell)),
            );
        }
    }
    let columns = LISTS.iter().flat_map(|&(items, ..)| SIZES.map(|size| (items, size))).collect::<Vec<_>>();
    for (operation, (name, _)) in OPERATIONS.iter().enumerate() {
        let mut lines = Vec::new();
        for (&filter, layout) in filters.iter().flat_map(|filter| [(filter, 0), (filter, 1)]) {
            let Filter { capacity, chain, rate } = filter;
            let ratio = |&(items, size): &(usize, usize)| {
                let is_it = |cell: &&Cell| {
                    let of = cell.filter;
                    (of.capacity, of.chain, of.rate) == (capacity, chain, rate)
                        && (cell.items, cell.size, cell.operation) == (items, size, operation)
                };
                cells.iter().find(is_it).map_or_else(|| "-".to_owned(), |cell| short(cell.ratio(layout)))
            };
            let head = vec![format!("{chain} × {capacity}"), rate.to_owned(), CONTENDERS[layout].to_owned()];
            lines.push([head, columns.iter().map(ratio).collect()].concat());
        }
        let heads: Vec<String> = ["sub-filters", "p", "layout"]
            .map(str::to_owned)
            .into_iter()
            .chain(columns.iter().map(|(items, size)| format!("{items} of {size}")))
            .collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        bench.extra(
            &format!("The grid, {name} items: RedisBloom / ours, by items a call and their bytes"),
            &heads,
            &lines,
        );
    }
    listed.sort_by(|(a, left), (b, right)| left.ratio(*a).total_cmp(&right.ratio(*b)));
    let lines: Vec<Vec<String>> = listed
        .iter()
        .map(|(layout, cell)| {
            let [ours, theirs] = [*layout, 2].map(|contender| format!("{:.2}", cell.times[contender]));
            let name = format!("{}: {}", OPERATIONS[cell.operation].0, cell.name());
            let first = cell.first.map_or(String::new(), |first| format!("{:.3}", first[2] / first[*layout]));
            vec![name, CONTENDERS[*layout].to_owned(), ours, theirs, format!("{:.3}", cell.ratio(*layout)), first]
        })
        .collect();
    let behind =
        [0, 1].map(|layout| cells.iter().filter(|cell| cell.ratio(layout) < 1.0).count()).iter().sum::<usize>();
    let title = format!("The grid: {behind} of {} cells in which ours is behind; the worst", 2 * cells.len());
    let heads = ["cell", "layout", "ours, µs a call", "RedisBloom", "RedisBloom / ours", "measured first"];
    bench.extra(&title, &heads, &lines);
}
