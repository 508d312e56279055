//! Makes allocations of any size fail, one after the other. If Rust code cannot handle a failed allocation, the process
//! ends. So each operation runs in a child process, which is this program again.
//!
//! A server ends when a small allocation of any command fails. So it is acceptable if this module's small allocations
//! end the process too. These allocations may do so, all of them small:
//! - the fixed part of a value: of a counter that estimates or has a window, and of a filter with a window;
//! - parameters that values share, when a value is created, grows or is loaded;
//! - the header of a dump;
//! - lists with an entry for each of the few counters of an intersection.

use std::process::{Command, Output};
use std::sync::LazyLock;

use rollcall_core::admission::Terms;
use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter, View, diff, diff_card, inter_card, union_card};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::persist::{Partial, PartialCounter, PartialFilter, rdb, redisbloom, scandump};
use rollcall_core::window::{ClockSource, Time, Window};

use crate::counters::same_counter;
use crate::failing::with_failure_from;
use rollcall_fuzz::fields::Fields;
use rollcall_fuzz::values::{
    counter, cut_after, dump_of, filter, payload_of, rdb_of, rdb_of_filter, windowed, windowed_counter,
};

/// The environment variable with the task of a child process: the number of an operation, and the number of the first
/// allocation that fails in it.
const ORDER: &str = "ROLLCALL_FAILING_ALLOCATION";

/// The beginning of a line in which a child process reports which allocation fails next.
const FAILS_NOW: &str = "allocation ";

/// The line in which a child process reports that every allocation has failed once.
const ALL_DONE: &str = "no allocation is left";

/// No allocation of at least this number of bytes may end the process. In a value of each kind, the allocations that
/// grow with it exceed this.
const SMALL_BYTES: usize = 2048;

/// Runs an operation with its `n`th allocation failing. Returns whether it had this number of allocations.
type Operation = Box<dyn Fn(u64) -> bool>;

/// An operation on a value from `make`. It must either fail with an error and change nothing, or do its work
/// completely.
fn operation<T: 'static, R>(
    make: impl Fn() -> T + 'static,
    operate: impl Fn(&mut T) -> Result<R, Error> + 'static,
    same: impl Fn(&T, &T) -> bool + 'static,
) -> Operation {
    Box::new(move |n| {
        let mut value = make();
        let (outcome, failed) = with_failure_from(1, n, || operate(&mut value).map(|_| ()));
        let mut expected = make();
        match outcome {
            Ok(()) => drop(operate(&mut expected).expect("without a failure it works")),
            Err(Error::OutOfMemory { .. }) => assert!(failed, "nothing failed"),
            Err(error) => panic!("{error}"),
        }
        assert!(same(&value, &expected), "it is neither as it was nor as it should be");
        failed
    })
}

/// An operation that only reads, or that makes a new value.
fn reading<T: 'static, R>(
    make: impl Fn() -> T + 'static,
    read: impl Fn(&T) -> Result<R, Error> + 'static,
) -> Operation {
    operation(make, move |value| read(value), |_, _| true)
}

/// Turns a change that cannot fail into an operation.
fn always<T>(change: impl Fn(&mut T) + 'static) -> impl Fn(&mut T) -> Result<(), Error> + 'static {
    move |value| {
        change(value);
        Ok(())
    }
}

type Operations = Vec<(String, Operation)>;

/// The name of a kind of value, and a function that makes one.
type Kind<T> = (&'static str, fn() -> T);

/// The terms of admission for new items, of which the limit rejects some.
fn terms(items: u64) -> Terms {
    Terms { limit: (items + 3).max(40), all: false, dry_run: false }
}

/// Items to add. Every value already has some of them.
const ITEMS: [&[u8]; 6] = [b"a", b"item:1", b"member:1", b"b", b"c", b"d"];

fn params(expansion: u32) -> bloom::Params {
    bloom::Params { error_rate: 0.01, capacity: 10, expansion, seed: 0 }
}

fn of_time() -> Windowing {
    Windowing::new(40, 4, ClockSource::Manual, true).unwrap()
}

/// A large filter of each layout, filters of many sub-filters, and a window of large ones.
static LARGE_FILTERS: LazyLock<[BloomFilter; 5]> = LazyLock::new(|| {
    let (large, many) = (large_params(), bloom::Params { capacity: 1, expansion: 1, ..params(1) });
    [
        filter(large, BitLayout::Lines, 8_000),
        filter(large, BitLayout::Classic, 8_000),
        filter(many, BitLayout::Lines, 60),
        filter(many, BitLayout::Classic, 60),
        windowed(large, of_time(), &[2_000, 6_000, 100]),
    ]
});

fn large_params() -> bloom::Params {
    bloom::Params { capacity: 8_000, ..params(2) }
}

/// Filters of every kind. The next items make each one grow or begin a new generation.
const FILTERS: [Kind<BloomFilter>; 10] = [
    ("large filter of lines", || LARGE_FILTERS[0].clone()),
    ("large classic filter", || LARGE_FILTERS[1].clone()),
    ("long chain of lines", || LARGE_FILTERS[2].clone()),
    ("long classic chain", || LARGE_FILTERS[3].clone()),
    ("large filter with a window", || LARGE_FILTERS[4].clone()),
    ("filter of lines", || filter(params(2), BitLayout::Lines, 10)),
    ("chain of lines", || filter(params(2), BitLayout::Lines, 30)),
    ("classic filter", || filter(params(2), BitLayout::Classic, 10)),
    ("classic chain", || filter(params(2), BitLayout::Classic, 30)),
    ("filter with a window", || windowed(params(2), of_time(), &[10, 20, 5])),
];

fn same_filter(a: &BloomFilter, b: &BloomFilter) -> bool {
    a == b
}

fn of_filters() -> Operations {
    let mut all: Operations = Vec::new();
    for (kind, layout) in [("filter of lines", BitLayout::Lines), ("classic filter", BitLayout::Classic)] {
        let make = move |(): &()| BloomFilter::new(layout, large_params(), &Unlimited);
        all.push((format!("make a {kind}"), reading(|| (), make)));
    }
    let make = |(): &()| BloomFilter::windowed(large_params(), of_time(), 7, &Unlimited);
    all.push(("make a filter with a window".to_owned(), reading(|| (), make)));
    for (kind, make) in FILTERS {
        let mut push = |what: &str, operation| all.push((format!("{what} a {kind}"), operation));
        push("copy", reading(make, BloomFilter::try_clone));
        push("make one like", reading(make, |filter| filter.new_like(&Unlimited)));
        push("ask", reading(make, |filter| Ok(filter.may_contain(b"item:3"))));
        let more = |filter: &mut BloomFilter| filter.live(Time::Reached).add(b"one that makes it grow", &Unlimited);
        push("add to", operation(make, more, same_filter));
        push(
            "admit to",
            operation(
                make,
                |filter| {
                    let terms = terms(filter.num_items());
                    filter.live(Time::Reached).admit(ITEMS.into_iter(), terms, &Unlimited)
                },
                same_filter,
            ),
        );
        let both = move || (make().new_like(&Unlimited).unwrap(), make());
        let merge =
            |(ours, other): &mut (BloomFilter, BloomFilter)| ours.live(Time::Reached).merge(&[other], &Unlimited);
        push("merge", operation(both, merge, |a, b| a.0 == b.0));
        if make().windowing().is_some() {
            push(
                "advance",
                operation(make, always(|filter: &mut BloomFilter| drop(filter.advance(1_009))), same_filter),
            );
            push("rebase", operation(make, always(|filter: &mut BloomFilter| filter.rebase(7)), same_filter));
        }
        all.extend(stored(kind, make, same_filter));
        let fields = move || rdb_of_filter(&make());
        let load: Operation = match make().layout() {
            BitLayout::Lines => reading(fields, |fields| rdb::load::<PartialFilter>(&mut Fields(fields), &Unlimited)),
            BitLayout::Classic => reading(fields, |fields| {
                redisbloom::load_rdb(&mut Fields(fields), redisbloom::RDB_ENCODING_NEWEST, &Unlimited)
            }),
        };
        all.push((format!("load from RDB a {kind}"), load));
    }
    all
}

/// Parameters of counters, with this many exact members.
fn counted(error_rate: f64, exact_limit: u32) -> counting::Params {
    counting::Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 }
}

/// Counters of many members and of many slots, without a window and with one.
/// The headers of their dumps, with the slots, are still small.
static LARGE_COUNTERS: LazyLock<[Counter; 4]> = LazyLock::new(|| {
    let of_time = |params, members: &[u32]| windowed_counter(params, 12, ClockSource::Manual, members);
    [
        counter(0.01, 1_000, 400),
        counter(0.005, 10, 2_400),
        of_time(counted(0.01, 1_000), &[300, 200]),
        of_time(counted(0.005, 10), &[1_000, 600]),
    ]
});

/// Counters of every kind. The next members make each one grow.
const COUNTERS: [Kind<Counter>; 12] = [
    ("large exact counter", || LARGE_COUNTERS[0].clone()),
    ("large counter of slots", || LARGE_COUNTERS[1].clone()),
    ("large exact counter with a window", || LARGE_COUNTERS[2].clone()),
    ("large counter of slots with a window", || LARGE_COUNTERS[3].clone()),
    ("empty counter", || counter(0.01, 250, 0)),
    ("exact counter", || counter(0.01, 250, 7)),
    ("exact counter at its limit", || counter(0.01, 40, 40)),
    ("counter of few slots", || counter(0.005, 10, 40)),
    ("counter of many slots", || counter(0.05, 10, 300)),
    ("exact counter with a window", || windowed_counter(counted(0.01, 250), 12, ClockSource::Manual, &[10, 0, 20])),
    ("counter of few slots with a window", || {
        windowed_counter(counted(0.005, 10), 12, ClockSource::Manual, &[10, 20, 30])
    }),
    ("counter of many slots with a window", || {
        windowed_counter(counted(0.05, 10), 12, ClockSource::Manual, &[200, 100])
    }),
];

fn of_counters() -> Operations {
    let mut all: Operations = Vec::new();
    let make = |(): &()| Counter::new(counted(0.012_345, 250));
    all.push(("make a counter".into(), reading(|| (), make)));
    let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let make = move |(): &()| Counter::new(counted(0.012_345, 250))?.with_window(window, 7);
    all.push(("make a counter with a window".into(), reading(|| (), make)));
    let traits = COUNTERS.map(|(_, make)| {
        let counter = make();
        (counter.window().is_some(), counter.is_exact())
    });
    for ((kind, make), (has_window, is_exact)) in COUNTERS.into_iter().zip(traits) {
        let mut push = |what: &str, operation| all.push((format!("{what} a {kind}"), operation));
        push("copy", reading(make, Counter::try_clone));
        push("make one like", reading(make, Counter::new_like));
        push("count", reading(make, |counter| Ok(counter.count())));
        // The first item that is new to the counter.
        let more = |counter: &mut Counter| {
            (0..)
                .map(|n: u32| n.to_be_bytes())
                .find_map(|n| counter.live(Time::Reached).add(n, &Unlimited).map(|new| new.then_some(())).transpose())
                .unwrap()
        };
        push("add to", operation(make, more, same_counter));
        if is_exact {
            push("ask", reading(make, |counter| counter.contains(b"member:3")));
            push("list", reading(make, |counter| Ok(counter.members()?.count())));
            push(
                "admit to",
                operation(
                    make,
                    |counter| {
                        let terms = terms(counter.count().min(37));
                        counter.live(Time::Reached).admit(ITEMS.into_iter(), terms, &Unlimited)
                    },
                    same_counter,
                ),
            );
        }
        if has_window {
            push("advance", operation(make, always(|counter: &mut Counter| counter.advance(1_009)), same_counter));
            push(
                "forget all of",
                operation(make, always(|counter: &mut Counter| counter.advance(9_009)), same_counter),
            );
            push("rebase", operation(make, always(|counter: &mut Counter| counter.rebase(7)), same_counter));
            push(
                "count a span of",
                reading(make, |counter| counter.since(5, Time::At(1_003)).map(|view| view.count())),
            );
            push("list the history of", reading(make, |counter| counter.history(Time::At(1_003))));
        }
        for ((other_kind, other), (other_has_window, other_is_exact)) in COUNTERS.into_iter().zip(traits) {
            if has_window != other_has_window {
                continue;
            }
            let mut push = |what: &str, operation| all.push((format!("{what} a {kind} and a {other_kind}"), operation));
            let both = move || [make(), other()];
            push("unite", reading(both, |[a, b]| union_card(&views_of([a, b]))));
            push("report the difference of", reading(both, |[a, b]| diff_card(&views_of([a, b]))));
            push("intersect", reading(both, |[a, b]| inter_card(&views_of([a, b]))));
            let merge = |[a, b]: &mut [Counter; 2]| a.live(Time::Reached).merge(&[b], &Unlimited);
            push("merge", operation(both, merge, |a, b| same_counter(&a[0], &b[0])));
            if is_exact && other_is_exact {
                push(
                    "list the difference of",
                    reading(both, |[a, b]| diff(&views_of([a, b])).map(|members| members.len())),
                );
            }
        }
        all.extend(stored(kind, make, same_counter));
        let load = |fields: &Vec<_>| rdb::load::<PartialCounter>(&mut Fields(fields), &Unlimited);
        all.push((format!("load from RDB a {kind}"), reading(move || rdb_of(&make()), load)));
    }
    all
}

/// The operations that store a value of this kind and load it again.
fn stored<T: Value + 'static>(kind: &'static str, make: fn() -> T, same: fn(&T, &T) -> bool) -> Operations {
    let name = |what: &str| format!("{what} a {kind}");
    let half = move || cut_after(&make(), make().payload().len() / 2);
    let rest = move || (half(), payload_of(&make()));
    let push = |(loading, payload): &mut (T::Partial, Vec<u8>)| {
        let from = loading.received_bytes() as usize;
        if from < payload.len() { loading.push(&payload[from..]) } else { Ok(()) }
    };
    vec![
        (name("dump"), reading(make, |value| scandump(value, scandump(value, 0)?.0).map(drop))),
        (name("begin to load"), reading(move || make().header(), |header| T::Partial::begin(header, &Unlimited))),
        (name("take a chunk of"), operation(rest, push, |a, b| a.0.received_bytes() == b.0.received_bytes())),
        (name("copy half of"), reading(half, |loading| loading.try_clone())),
        (
            name("complete"),
            operation(
                move || {
                    let mut rest = rest();
                    push(&mut rest).unwrap();
                    (Some(rest.0), None)
                },
                move |(loading, done): &mut (Option<T::Partial>, Option<T>)| {
                    *done = Some(loading.take().unwrap().finish()?);
                    Ok(())
                },
                move |a, b| match (&a.1, &b.1) {
                    (Some(a), Some(b)) => same(a, b),
                    (None, None) => true,
                    _ => false,
                },
            ),
        ),
        (
            name("load"),
            reading(
                move || dump_of(&make()),
                |dump| persist::load::<T, _>(dump.iter().map(|(next, chunk)| (*next, chunk)), &Unlimited),
            ),
        ),
    ]
}

fn operations() -> Operations {
    let mut all = of_filters();
    all.extend(of_counters());
    all
}

/// The work of a child process, if the environment asks for it. It is not a test by itself.
#[test]
fn the_rest_of_the_operations() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let (from, mut first) =
        order.split_once(' ').map(|(from, first)| (from.parse().unwrap(), first.parse().unwrap())).unwrap();
    for (number, (_, operation)) in operations().iter().enumerate().skip(from) {
        for n in std::mem::replace(&mut first, 1).. {
            eprintln!("{FAILS_NOW}{number} {n}");
            if !operation(n) {
                break;
            }
        }
    }
    eprintln!("{ALL_DONE}");
}

/// The results of a child process.
#[derive(Default)]
struct Reported {
    /// The operation and the allocation that failed last.
    last: (usize, u64),
    /// The number of failed allocations.
    failed: usize,
    /// The size in bytes of the allocation that ended the process; `None` if all operations were completed.
    ended_at: Option<usize>,
}

/// Runs all operations in a child process, beginning with an allocation of an operation, until the process ends.
fn run(from: usize, first: u64) -> Reported {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "every::the_rest_of_the_operations", "--nocapture"]);
    let Output { stderr, .. } =
        command.env(ORDER, format!("{from} {first}")).env("RUST_BACKTRACE", "0").output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    let mut reported = Reported::default();
    for (number, n) in said.lines().filter_map(|line| line.strip_prefix(FAILS_NOW)?.split_once(' ')) {
        reported.last = (number.parse().unwrap(), n.parse().unwrap());
        reported.failed += 1;
    }
    let bytes = |line: &str| line.strip_prefix("memory allocation of ")?.split(' ').next()?.parse().ok();
    reported.ended_at = said.lines().find_map(bytes);
    if reported.ended_at.is_none() && !said.contains(ALL_DONE) {
        let end: Vec<&str> = said.lines().rev().take(5).collect();
        panic!("to {}, allocation {}: {end:#?}", operations()[reported.last.0].0, reported.last.1);
    }
    reported
}

/// By default, an operation is tested up to its first allocation that ends the process. With `ROLLCALL_THOROUGH`, later
/// allocations are tested too.
#[test]
fn an_allocation_that_fails_is_an_error_or_small() {
    let names: Vec<String> = operations().into_iter().map(|(name, _)| name).collect();
    let is_thorough = std::env::var_os("ROLLCALL_THOROUGH").is_some();
    let (mut from, mut first, mut failed, mut ended, mut most) = (0, 1, 0, 0, 0);
    loop {
        let reported = run(from, first);
        failed += reported.failed;
        let Some(bytes) = reported.ended_at else { break };
        let (number, n) = reported.last;
        assert!(bytes < SMALL_BYTES, "to {}: allocation {n} of {bytes} bytes ended the process", names[number]);
        (ended, most) = (ended + 1, bytes.max(most));
        (from, first) = if is_thorough { (number, n + 1) } else { (number + 1, 1) };
    }
    println!(
        "{failed} allocations of {} operations failed; {ended} ended the process, of {most} bytes at most",
        names.len()
    );
    assert!(failed > 1000 && ended < failed / 4, "{ended} of {failed} ended the process");
}

fn views_of<'a>(counters: [&'a Counter; 2]) -> [View<'a>; 2] {
    counters.map(|counter| counter.at(Time::Reached))
}
