//! Small keys of every kind, and the requests that create them.

use crate::resp::{Batch, Connection};

/// A kind of small key, and the number of items in it.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// A filter with this capacity, the error rate [`RATE`], and `items` items.
    Filter { capacity: u64, items: u64 },
    /// A counter with default parameters and this many members.
    Counter(u64),
    /// A set of the server with this many members.
    Set(u64),
    /// A HyperLogLog of the server with this many members.
    Log(u64),
}

const RATE: &str = "0.01";

/// The default capacity of counters, with which empty counters are created.
const COUNTER_CAPACITY: &str = "50000";

/// The name of the key with this number, which has 9 bytes.
pub fn key(number: u64) -> String {
    format!("k{number:08}")
}

/// Member `index` of the key with this number. It has 12 bytes.
pub fn member(number: u64, index: u64) -> String {
    format!("m{:011}", number * 100_000 + index)
}

impl Kind {
    /// The command that creates the key with this number.
    pub fn request(self, number: u64) -> Vec<String> {
        let key = key(number);
        let (head, members) = match self {
            Kind::Filter { capacity, items: 0 } => (vec!["BF.RESERVE", &key, RATE, &capacity.to_string()].owned(), 0),
            Kind::Filter { capacity, items } => {
                let capacity = capacity.to_string();
                (vec!["BF.INSERT", &key, "CAPACITY", &capacity, "ERROR", RATE, "ITEMS"].owned(), items)
            }
            Kind::Counter(0) => (vec!["LC.RESERVE", &key, COUNTER_CAPACITY].owned(), 0),
            Kind::Counter(members) => (vec!["LC.ADD", &key].owned(), members),
            Kind::Set(members) => (vec!["SADD", &key].owned(), members),
            Kind::Log(members) => (vec!["PFADD", &key].owned(), members),
        };
        head.into_iter().chain((0..members).map(|index| member(number, index))).collect()
    }

    /// The name of the command that creates the key.
    pub fn command(self) -> String {
        self.request(0).swap_remove(0)
    }
}

/// Turns borrowed words into owned ones.
trait Owned {
    fn owned(self) -> Vec<String>;
}

impl Owned for Vec<&str> {
    fn owned(self) -> Vec<String> {
        self.into_iter().map(str::to_owned).collect()
    }
}

/// Number of requests in one batch.
pub const PIPELINED: u64 = 100;

/// Batches with one request for each number below `count`.
pub fn requests(count: u64, mut request: impl FnMut(u64) -> Vec<String>) -> Vec<Batch> {
    let batch = |start: u64| {
        let mut batch = Batch::default();
        (start..count.min(start + PIPELINED)).for_each(|number| batch.push(request(number).into_iter()));
        batch
    };
    (0..count).step_by(PIPELINED as usize).map(batch).collect()
}

/// Creates the keys with all numbers below `count` without measuring the time. Requests are made in steps, to bound the
/// memory of this program.
pub fn make(client: &mut Connection, count: u64, kind: impl Fn(u64) -> Kind) {
    const STEP: u64 = 50 * PIPELINED;
    for start in (0..count).step_by(STEP as usize) {
        client.run(&requests(STEP.min(count - start), |number| kind(start + number).request(start + number)));
    }
}
