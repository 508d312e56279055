//! `plan counter`: computes the memory and the error of counters.

use clap::{Args, ValueEnum};
use rollcall_core::counting::{Counter, Params};
use rollcall_core::error::Error;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time, Window};
use serde::Serialize;

use super::asked::{Asked, KEY_BYTES};
use crate::failure::Failure;
use crate::numbers::{self, percent, share};
use crate::output::Output;
use crate::table::{bytes, count, table};

/// Arguments of `plan counter`.
#[derive(Debug, Args)]
pub struct Counting {
    /// The numbers of members to show: 1000000, 1e6, 1M or 2^20
    #[arg(default_values_t = [30, 250, 1_000, 50_000, 1_000_000], value_parser = numbers::whole)]
    members: Vec<u64>,
    #[command(flatten)]
    asked: Asked,
    /// Relative standard error of the count; the actual error may be up to 4 % larger
    #[arg(long, default_value = "0.01", value_parser = share)]
    error: f64,
    /// The largest number of members that the counter stores and counts exactly
    #[arg(long, default_value_t = 250)]
    exact: u32,
    /// The largest total size, in bytes, of members that the counter counts exactly
    #[arg(long, default_value_t = Params::DEFAULT_EXACT_BYTES)]
    exact_bytes: u32,
    /// What the members are: a counter keeps UUIDs, numbers, and numbers behind a shared prefix in fewer bytes
    #[arg(long, value_enum, default_value_t = Kind::Text)]
    kind: Kind,
    /// The mean length of a text in bytes
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    length: u32,
}

/// What the members are.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Kind {
    /// Texts of the mean length
    Text,
    /// UUIDs such as 1f0e3dad-9990-4d3c-b2c9-6a1d2b3c4d5e
    Uuid,
    /// `user:` and six digits
    User,
    /// Integers of six digits
    Integer,
}

/// The default number of slices of a counter.
const DEFAULT_SLICES: u32 = 12;

/// The largest number of members that are added to measure the memory, which hardly changes beyond.
const MOST_ADDED: u64 = 1 << 20;

/// Bytes of a HyperLogLog (`STRLEN`) by its number of members: the median of nine, measured with `PFADD` on Redis 8.2.3
/// and Valkey 9.1.2, which agree. Numbers between are interpolated.
const HYPERLOGLOG: [(u64, u64); 8] =
    [(0, 18), (30, 105), (100, 281), (250, 598), (500, 1050), (1_000, 1890), (1_600, 2890), (1_650, 2975)];

/// Bytes of a HyperLogLog with more members than the table has: 16,384 registers of 6 bits and a header.
const DENSE_HYPERLOGLOG: u64 = 12_304;

/// The memory and the error of one counter.
#[derive(Debug, Serialize)]
pub struct Planned {
    items: u64,
    error_rate: f64,
    /// Bytes in memory with the planned members, as `LC.INFO key SIZE` reports them.
    size_bytes: u64,
    /// Bytes of the counter in a dump or an RDB file.
    stored_bytes: u64,
    /// Bytes of a set of the same members on Redis 8.2.
    set_bytes: u64,
    /// Bytes of a HyperLogLog of the same members, whose standard error is 0.81 %.
    hyperloglog_bytes: u64,
    /// The relative standard error with the planned members; 0 while the counter is exact.
    standard_error: f64,
    /// The largest number of members for which the counter stays exact, if all have the mean length.
    exact_up_to: u64,
    /// Bytes in memory with `exact_up_to` members.
    exact_bytes: u64,
    keys: u64,
    bytes_of_keys: Option<u64>,
    command: String,
}

/// Bytes of a set on Redis 8.2: a listpack, or from 129 members on, or with members above 64 bytes, a hash table.
fn set_bytes(members: u64, length: u64) -> u64 {
    if members <= 128 && length <= 64 {
        return members * (length + 2) + 7;
    }
    // An entry has 24 bytes. A string has a header and a closing byte, and takes a multiple of 8 bytes.
    let header = match length {
        0..32 => 1,
        32..256 => 3,
        _ => 5,
    };
    let entry = 24 + (length + header + 1).next_multiple_of(8);
    let table = members.checked_next_power_of_two().unwrap_or(u64::MAX);
    members.saturating_mul(entry).saturating_add(table.saturating_mul(8))
}

/// Bytes of a set of integers of four bytes on Redis 8.2: an array, or from 513 members on a hash table.
fn intset_bytes(members: u64) -> u64 {
    if members <= 512 { 8 + 4 * members } else { set_bytes(members, 6) }
}

/// Bytes of a HyperLogLog, by [`HYPERLOGLOG`].
fn hyperloglog_bytes(members: u64) -> u64 {
    let between = HYPERLOGLOG.windows(2).find(|pair| members <= pair[1].0);
    between.map_or(DENSE_HYPERLOGLOG, |pair| {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        low + (high - low) * (members - from) / (to - from)
    })
}

impl Counting {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let planned: Result<Vec<_>, _> = self.members.iter().map(|&members| self.plan(members)).collect();
        let planned = planned.map_err(|error| Failure::arguments(error.to_string()))?;
        output.answer(&planned, |planned| self.text(planned))
    }

    fn plan(&self, items: u64) -> Result<Planned, Error> {
        let params = Params { error_rate: self.error, exact_limit: self.exact, exact_bytes: self.exact_bytes, seed: 0 };
        let counter = self.counter(params, items)?;
        let (length, counted) = match self.kind {
            Kind::Text => (self.length, self.length),
            Kind::Uuid => (36, 16),
            Kind::User => (11, 11),
            Kind::Integer => (6, 3),
        };
        let exact_up_to = u64::from(self.exact).min(u64::from(self.exact_bytes / counted));
        let exact = self.counter(params, exact_up_to)?;
        let size_bytes = counter.size_bytes();
        Ok(Planned {
            items,
            error_rate: self.error,
            size_bytes,
            stored_bytes: persist::dump(&counter).map(|(_, chunk)| chunk.len() as u64).sum(),
            set_bytes: match self.kind {
                Kind::Integer => intset_bytes(items),
                _ => set_bytes(items, u64::from(length)),
            },
            hyperloglog_bytes: hyperloglog_bytes(items),
            standard_error: counter.standard_error(),
            exact_up_to,
            exact_bytes: exact.size_bytes(),
            keys: self.asked.keys,
            bytes_of_keys: self.asked.bytes_of_keys(size_bytes),
            command: self.command(),
        })
    }

    /// A counter with `members` members of the mean length.
    fn counter(&self, params: Params, members: u64) -> Result<Counter, Error> {
        let mut counter = Counter::new(params)?;
        if let Some(seconds) = self.asked.window {
            let default = DEFAULT_SLICES.min(u32::try_from(seconds.max(1)).unwrap_or(DEFAULT_SLICES));
            let slices = self.asked.slices.unwrap_or(default);
            counter =
                counter.with_window(Window::new(seconds, slices, Counter::MAX_SLICES, ClockSource::System)?, 0)?;
        }
        for number in 0..members.min(MOST_ADDED) {
            // Short members allow only few distinct values. A counter that estimates stores no members, so it gets
            // members of 8 bytes.
            if counter.is_exact() {
                counter.live(Time::Reached).add(self.member(number), &Unlimited)?
            } else {
                counter.live(Time::Reached).add((number + 1).to_le_bytes(), &Unlimited)?
            };
        }
        Ok(counter)
    }

    /// The member with this number.
    fn member(&self, number: u64) -> Vec<u8> {
        let six_digits = 100_000 + number;
        match self.kind {
            Kind::Text => {
                let own = (number + 1).to_le_bytes().into_iter();
                own.chain(std::iter::repeat(0)).take(self.length as usize).collect()
            }
            Kind::Uuid => format!("{number:08x}-0000-4000-8000-{number:012x}").into_bytes(),
            Kind::User => format!("user:{six_digits}").into_bytes(),
            Kind::Integer => six_digits.to_string().into_bytes(),
        }
    }

    fn command(&self) -> String {
        let error = if self.error == 0.01 { String::new() } else { format!(" ERROR {}", self.error) };
        let exact = if self.exact == 250 { String::new() } else { format!(" EXACT {}", self.exact) };
        let default = Params::DEFAULT_EXACT_BYTES;
        let bytes = if self.exact_bytes == default { String::new() } else { format!(" BYTES {}", self.exact_bytes) };
        format!("LC.RESERVE key{error}{exact}{bytes}{}", self.asked.options())
    }

    fn text(&self, all: &[Planned]) -> String {
        let heads = [">members", ">standard error", ">size", ">in a file", ">as a set", ">as a HyperLogLog"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        let many = self.asked.keys > 1;
        if many {
            rows[0].push(format!(">{} keys", count(self.asked.keys as i64)));
        }
        for one in all {
            let mut row = vec![
                count(one.items as i64),
                if one.standard_error == 0.0 { "exact".to_owned() } else { percent(one.standard_error) },
                bytes(one.size_bytes),
                bytes(one.stored_bytes),
                bytes(one.set_bytes),
                bytes(one.hyperloglog_bytes),
            ];
            if many {
                row.push(one.bytes_of_keys.map_or("too large".to_owned(), bytes));
            }
            rows.push(row);
        }
        let mut text = vec![table(&rows), String::new()];
        if let Some(one) = all.first() {
            let (members, size) = (count(one.exact_up_to as i64), bytes(one.exact_bytes));
            let of = if self.kind == Kind::Text { format!(" of {} bytes", self.length) } else { String::new() };
            text.push(format!("exact         up to {members} members{of}, {size} then"));
        }
        text.push(format!(
            "error         at most {} up to 10^10 members; a HyperLogLog's is 0.81 %",
            percent(1.04 * self.error)
        ));
        if let [one] = all {
            text.push(format!("size          {} bytes, as LC.INFO key SIZE says", count(one.size_bytes as i64)));
        }
        if many {
            text.push(format!("keys          each with {} bytes besides its value: name, entry, objects", KEY_BYTES));
        }
        text.extend(all.first().map(|one| one.command.clone()));
        text.join("\n")
    }
}
