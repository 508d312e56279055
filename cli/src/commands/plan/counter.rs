//! `plan counter`: computes the memory and the error of counters.

use clap::{Args, ValueEnum};
use rollcall_core::counting::{Counter, Params};
use rollcall_core::error::Error;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::counting::sample;
use rollcall_core::unstable::hash64;
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
    /// Relative standard error of the count; the actual error may be up to 4 % larger, plus half a member
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

/// The largest number of members that are added one by one. Above it, the number may also vary by chance, as it does in
/// a sample: by 1 %.
const MOST_ADDED: u64 = 1 << 14;

/// The number of counters with other members that a plan builds. One more counter is outside their range in one case of
/// 33.
const DRAWS: u64 = 64;

/// A range of sizes that is narrower than this share of the mean is shown as the mean.
const NARROW: f64 = 0.02;

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
    /// Bytes in memory with the planned members, as `LC.INFO key SIZE` reports them: the mean over counters with
    /// different members.
    size_bytes: u64,
    least_bytes: u64,
    most_bytes: u64,
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
    keys: u64,
    bytes_of_keys: Option<u64>,
    command: String,
}

impl Planned {
    /// The size as text, or the range of sizes where the members decide.
    fn size(&self, text: fn(u64) -> String) -> String {
        let (least, most) = (self.least_bytes, self.most_bytes);
        if (most - least) as f64 <= NARROW * self.size_bytes as f64 {
            return text(self.size_bytes);
        }
        format!("{} to {}", text(least), text(most))
    }
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
        let sizes = (0..DRAWS).map(|draw| Ok((self.draw(items, draw)?.size_bytes(), draw)));
        let mut sizes = sizes.collect::<Result<Vec<_>, Error>>()?;
        sizes.sort_unstable();
        let size_bytes = sizes.iter().map(|(size, _)| size).sum::<u64>() / DRAWS;
        let [(least_bytes, _), (_, typical), (most_bytes, _)] =
            [0, sizes.len() / 2, sizes.len() - 1].map(|at| sizes[at]);
        let typical = self.draw(items, typical)?;
        let (length, counted) = self.member_bytes();
        let exact_up_to = u64::from(self.exact).min(u64::from(self.exact_bytes / counted));
        Ok(Planned {
            items,
            error_rate: self.error,
            size_bytes,
            least_bytes,
            most_bytes,
            stored_bytes: persist::dump(&typical).map(|(_, chunk)| chunk.len() as u64).sum(),
            set_bytes: match self.kind {
                Kind::Integer => intset_bytes(items),
                _ => set_bytes(items, u64::from(length)),
            },
            hyperloglog_bytes: hyperloglog_bytes(items),
            standard_error: typical.standard_error(),
            exact_up_to,
            keys: self.asked.keys,
            bytes_of_keys: self.asked.bytes_of_keys(size_bytes),
            command: self.command(),
        })
    }

    /// A counter with `members` members. The draws differ in what may take another number of bytes: hashes, how many
    /// members are added together, whether texts have one length, and whether the counter has been stored and loaded.
    fn draw(&self, members: u64, draw: u64) -> Result<Counter, Error> {
        let Counting { error: error_rate, exact: exact_limit, exact_bytes, .. } = *self;
        let mut counter = Counter::new(Params { error_rate, exact_limit, exact_bytes, seed: draw })?;
        if let Some(seconds) = self.asked.window {
            let default = DEFAULT_SLICES.min(u32::try_from(seconds.max(1)).unwrap_or(DEFAULT_SLICES));
            let slices = self.asked.slices.unwrap_or(default);
            counter =
                counter.with_window(Window::new(seconds, slices, Counter::MAX_SLICES, ClockSource::System)?, 0)?;
        }
        if members > MOST_ADDED.max(self.exact.into()) {
            return sample(&counter, members, draw);
        }
        let all: Vec<_> = (0..members).map(|number| self.member(number, draw)).collect();
        let together = match draw % 4 {
            0 => 1,
            1 => members,
            _ => 1 + hash64(&draw.to_le_bytes(), members) % members.max(1),
        };
        for some in all.chunks(together.max(1) as usize) {
            counter.live(Time::Reached).add_all(some.iter(), &Unlimited, |_| ())?;
        }
        if draw / 8 % 2 == 1 { persist::load(persist::dump(&counter), &Unlimited) } else { Ok(counter) }
    }

    /// The member with this number.
    fn member(&self, number: u64, draw: u64) -> Vec<u8> {
        let six_digits = 100_000 + number;
        match self.kind {
            Kind::Text => {
                // Seven bits of the number in each byte, which is no digit then.
                let own = (0..9).map(|at| 0x80 | (number >> (7 * at)) as u8).chain(std::iter::repeat(0x80));
                let (mean, range) = (u64::from(self.length), u64::from(self.length / 3));
                let random = mean - range + hash64(&number.to_le_bytes(), draw) % (2 * range + 1);
                let length = if draw / 4 % 2 == 1 { random } else { mean };
                // No counter is exact with so many bytes, so the length has no effect.
                let is_beyond = number * mean > 2 * u64::from(Params::MAX_EXACT_BYTES);
                let least = u64::from((u64::BITS - number.leading_zeros()).div_ceil(7));
                own.take(if is_beyond { least } else { least.max(length) } as usize).collect()
            }
            Kind::Uuid => format!("{number:08x}-0000-4000-8000-{number:012x}").into_bytes(),
            Kind::User => format!("user:{six_digits}").into_bytes(),
            Kind::Integer => six_digits.to_string().into_bytes(),
        }
    }

    /// The bytes of a member's text, and those that `BYTES` counts for it.
    fn member_bytes(&self) -> (u32, u32) {
        match self.kind {
            Kind::Text => (self.length, self.length),
            Kind::Uuid => (36, 16),
            Kind::User => (11, 11),
            Kind::Integer => (6, 3),
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
                one.size(bytes),
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
            let of = if self.kind == Kind::Text { format!(" of {} bytes", self.length) } else { String::new() };
            let counted = self.member_bytes().1;
            let bytes = self.exact.saturating_mul(counted).min(Params::MAX_EXACT_BYTES);
            let most = u64::from(bytes / counted);
            let more = match one.exact_up_to < most {
                true => format!(", up to {} with --exact-bytes {bytes}", count(most as i64)),
                false => String::new(),
            };
            text.push(format!("exact         up to {} members{of}{more}", count(one.exact_up_to as i64)));
        }
        text.push(format!(
            "error         at most {} plus half a member up to 10^10 members; a HyperLogLog's is 0.81 %",
            percent(1.04 * self.error)
        ));
        if let [one] = all {
            let size = one.size(|bytes| count(bytes as i64));
            text.push(format!("size          {size} bytes, as LC.INFO key SIZE says"));
        }
        if many {
            text.push(format!("keys          each with {} bytes besides its value: name, entry, objects", KEY_BYTES));
        }
        text.extend(all.first().map(|one| one.command.clone()));
        text.join("\n")
    }
}
