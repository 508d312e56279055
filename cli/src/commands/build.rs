//! `build`: makes a filter or counter from the items of files or of standard input, on all cores, and writes it to a
//! file.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::counting::{self, Counter};
use rollcall_core::error::Error;
use rollcall_core::size_limit::MaxBytes;
use rollcall_core::unstable::Hash128;
use rollcall_core::window::Time;
use serde::Serialize;

use crate::failure::Failure;
use crate::file::{Entry, Kind, Value, Writer};
use crate::interrupt::Interrupt;
use crate::items::{Apart, Inputs, Reading};
use crate::output::Output;
use crate::table::{bytes, count};
use crate::{memory, numbers, progress};

/// Arguments of `build`.
#[derive(Debug, Subcommand)]
pub enum Build {
    /// Build a filter: the same, bit for bit, as BF.ADD of all items in this order makes
    Filter(Filter),
    /// Build a counter: the same as LC.ADD of all items makes
    Counter(Counting),
}

/// The files of items, and the file for the value. A value with a window cannot be built: it depends on when items
/// came.
#[derive(Debug, Args)]
struct Files {
    /// The file to write
    out: PathBuf,
    /// Files of items, one item per line; - reads standard input
    #[arg(required = true)]
    items: Vec<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// The key to which `rollcall load` loads the value
    #[arg(long)]
    key: Option<String>,
    /// The key expires this long after the build: 3600 (seconds), 15m, 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = numbers::expiry)]
    ex: Option<u64>,
    #[command(flatten)]
    reading: Reading,
}

/// Arguments of `build filter`, as those of BF.RESERVE.
#[derive(Debug, Args)]
pub struct Filter {
    #[command(flatten)]
    files: Files,
    /// The number of items that the filter is sized for [default: the number of items in the files]
    #[arg(long, value_parser = numbers::whole)]
    capacity: Option<u64>,
    /// The false positive rate that the filter is sized for
    #[arg(long, default_value = "0.01", value_parser = numbers::share)]
    error: f64,
    /// When the filter is full, it grows by a sub-filter that is larger than the last one by this factor
    #[arg(long, default_value_t = 2)]
    expansion: u32,
    /// Reject items beyond the capacity instead of growing
    #[arg(long, conflicts_with = "expansion")]
    nonscaling: bool,
    /// Seed of the hash function; use the value of the server's option hash-seed, if that is set
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Layout of the bits: in cache lines (a blocked Bloom filter), or as in RedisBloom
    #[arg(long, value_enum, default_value_t = Layout::Lines)]
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    Lines,
    Classic,
}

/// Arguments of `build counter`, as those of LC.RESERVE.
#[derive(Debug, Args)]
pub struct Counting {
    #[command(flatten)]
    files: Files,
    /// Relative standard error of the count
    #[arg(long, default_value = "0.01", value_parser = numbers::share)]
    error: f64,
    /// The largest number of members that the counter stores and counts exactly
    #[arg(long, default_value = "250")]
    exact: u32,
    /// The largest total size, in bytes, of members that the counter counts exactly
    #[arg(long, default_value_t = counting::Params::DEFAULT_EXACT_BYTES)]
    exact_bytes: u32,
    /// Seed of the hash function; use the value of the server's option hash-seed, if that is set
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// The value that was built.
#[derive(Debug, Serialize)]
struct Built {
    kind: &'static str,
    file: String,
    /// The number of items read.
    items: u64,
    /// The number of distinct items: for a filter a lower bound, the number of items that were new to it; for a counter
    /// its count.
    distinct: u64,
    /// The relative standard error of `distinct`; 0 while the counter is exact, and `None` for a filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_error: Option<f64>,
    /// The number of items that a filter is sized for.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    sub_filters: Option<usize>,
    size_bytes: u64,
    seconds: f64,
    threads: usize,
    /// Advice on better arguments for these items.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Build {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        let built = match self {
            Build::Filter(filter) => filter.build(&interrupt)?,
            Build::Counter(counter) => counter.build(&interrupt)?,
        };
        output.answer(&built, text)
    }
}

fn text(built: &Built) -> String {
    let rate = built.items as f64 / built.seconds.max(1e-9);
    let (about, error) = match built.standard_error {
        // The number for a filter is a lower bound, since false positives are not counted as distinct items.
        None => ("at least ", String::new()),
        Some(error) if error > 0.0 => ("about ", format!(" (standard error {})", numbers::percent(error))),
        Some(_) => ("", String::new()),
    };
    let advice = built.advice.as_ref().map(|advice| format!("\n{advice}")).unwrap_or_default();
    format!(
        "{}: a {} of {} items, {about}{} of them distinct{error}, in {}\n\
         {:.1} s on {} threads, {} items a second{advice}",
        built.file,
        built.kind,
        count(built.items as i64),
        count(built.distinct as i64),
        bytes(built.size_bytes),
        built.seconds,
        built.threads,
        count(rate as i64),
    )
}

impl Files {
    fn entry(&self, kind: Kind) -> Entry {
        let key = self.key.as_ref().map(|key| key.clone().into_bytes());
        Entry { kind, key, expires_at: self.ex.map(numbers::expires_in) }
    }
}

impl Filter {
    fn build(self, interrupt: &Interrupt) -> Result<Built, Failure> {
        let Files { out, items, force, reading, .. } = &self.files;
        let start = std::time::Instant::now();
        let inputs = Inputs::open(items, interrupt)?;
        let mut writer = Writer::create(out, *force)?;
        let counted = match self.capacity {
            Some(_) => None,
            None => inputs.count(reading)?,
        };
        let limit = memory::available();
        let mut filter = self.empty(counted, &limit)?;
        let (hash, threads) = (filter.hasher(), reading.threads());
        let bar = progress::bar(counted, "building");
        let mut hashes: Vec<Apart<Vec<Hash128>>> = vec![Apart::default(); threads];
        let (mut items, mut distinct) = (0, 0);
        inputs.each(
            reading,
            &mut hashes,
            |hashes, block| hashes.extend(reading.items(block).map(hash)),
            |hashes| {
                for Apart(hashes) in hashes {
                    let added = filter.live(Time::Reached).add_hashes(hashes, &limit);
                    distinct += added.map_err(|error| rejected(&error, counted))?;
                    items += hashes.len() as u64;
                    bar.inc(hashes.len() as u64);
                    hashes.clear();
                }
                Ok(())
            },
        )?;
        bar.finish_and_clear();
        let (capacity, sub_filters, size_bytes) = (filter.capacity(), filter.sub_filters().len(), filter.size_bytes());
        writer.store(&self.files.entry(Kind::Filter), &Value::Filter(filter))?;
        interrupt.check()?;
        writer.finish()?;
        Ok(Built {
            kind: Kind::Filter.name(),
            file: out.display().to_string(),
            items,
            distinct,
            standard_error: None,
            capacity: Some(capacity),
            sub_filters: Some(sub_filters),
            size_bytes,
            seconds: start.elapsed().as_secs_f64(),
            threads,
            advice: (sub_filters > 1).then(|| self.advice(sub_filters, distinct, items)),
        })
    }

    /// The filter without items. `counted` is the number of items in the files, if it is known.
    fn empty(&self, counted: Option<u64>, limit: &MaxBytes) -> Result<BloomFilter, Failure> {
        let Some(capacity) = self.capacity.or(counted.map(|items| items.max(1))) else {
            return Err(Failure::arguments(
                "standard input and pipes are read once: how many items come is not known before",
            )
            .advise("say for how many items the filter is, with --capacity"));
        };
        let expansion = if self.nonscaling { 0 } else { self.expansion };
        let params = Params { error_rate: self.error, capacity, expansion, seed: self.seed };
        let layout = match self.layout {
            Layout::Lines => BitLayout::Lines,
            Layout::Classic if self.seed != 0 => {
                return Err(
                    Failure::arguments("filters of RedisBloom's layout have no seed").advise("leave out --seed")
                );
            }
            Layout::Classic => BitLayout::Classic,
        };
        BloomFilter::new(layout, params, limit).map_err(|error| memory::failure(&error))
    }

    /// Advice on the capacity of a filter that grew.
    fn advice(&self, sub_filters: usize, distinct: u64, items: u64) -> String {
        // Items that were false positives in this filter could be new to a larger one, so the capacity has room for
        // them.
        let enough = ((distinct as f64 / (1.0 - self.error)).ceil() as u64).clamp(distinct, items);
        format!("It grew to {sub_filters} sub-filters: with --capacity {enough} it is smaller and faster.")
    }
}

/// The failure of a filter that rejected an item.
fn rejected(error: &Error, counted: Option<u64>) -> Failure {
    match error {
        Error::Full { capacity } => {
            let advice = match counted {
                Some(_) => "leave out --nonscaling".to_owned(),
                None => "give a larger --capacity, or leave out --nonscaling".to_owned(),
            };
            Failure::new(format!(
                "there are more than the {} distinct items that the filter is for",
                count(*capacity as i64)
            ))
            .advise(advice)
        }
        other => memory::failure(other),
    }
}

impl Counting {
    fn build(self, interrupt: &Interrupt) -> Result<Built, Failure> {
        let Files { out, items, force, reading, .. } = &self.files;
        let start = std::time::Instant::now();
        let inputs = Inputs::open(items, interrupt)?;
        let mut writer = Writer::create(out, *force)?;
        let params = counting::Params {
            error_rate: self.error,
            exact_limit: self.exact,
            exact_bytes: self.exact_bytes,
            seed: self.seed,
        };
        let (counter, items) = count_all(&inputs, reading, params)?;
        let (distinct, size_bytes, error) = (counter.count(), counter.size_bytes(), counter.standard_error());
        writer.store(&self.files.entry(Kind::Counter), &Value::Counter(counter))?;
        interrupt.check()?;
        writer.finish()?;
        Ok(Built {
            kind: Kind::Counter.name(),
            file: out.display().to_string(),
            items,
            distinct,
            standard_error: Some(error),
            capacity: None,
            sub_filters: None,
            size_bytes,
            seconds: start.elapsed().as_secs_f64(),
            threads: reading.threads(),
            advice: None,
        })
    }
}

/// A counter of all items, and their number. Each thread has a counter of its own, and these are merged.
fn count_all(inputs: &Inputs, reading: &Reading, params: counting::Params) -> Result<(Counter, u64), Failure> {
    let threads = reading.threads();
    let MaxBytes(available) = memory::available();
    let limit = MaxBytes(available / threads as u64);
    let new = || Counter::new(params).map_err(|error| memory::failure(&error));
    let mut parts = (0..threads).map(|_| Ok(Apart((new()?, 0u64, Ok(()))))).collect::<Result<Vec<_>, Failure>>()?;
    let bar = progress::bar(None, "building");
    let mut items = 0u64;
    inputs.each(
        reading,
        &mut parts,
        |(counter, read, outcome), block| {
            let all = reading.items(block).inspect(|_| *read += 1);
            // A block is passed in several pieces. The first error in it is the one to report.
            if outcome.is_ok() {
                *outcome = counter.live(Time::Reached).add_all(all, &limit, |_| {});
            }
        },
        |parts| {
            for Apart((_, read, outcome)) in parts {
                std::mem::replace(outcome, Ok(())).map_err(|error| memory::failure(&error))?;
                let round = std::mem::take(read);
                items += round;
                bar.inc(round);
            }
            Ok(())
        },
    )?;
    bar.finish_and_clear();
    let mut counters: Vec<Counter> = parts.into_iter().map(|Apart((counter, ..))| counter).collect();
    let mut counter = counters.swap_remove(0);
    let others: Vec<&Counter> = counters.iter().collect();
    counter.live(Time::Reached).merge(&others, &limit).map_err(|error| memory::failure(&error))?;
    Ok((counter, items))
}
