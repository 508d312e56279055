//! `check`: compares a value from a file with the items that it was made from.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::path::PathBuf;
use std::thread;

use clap::Args;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::unstable::{Hash128, hash128};
use serde::Serialize;

use crate::failure::Failure;
use crate::file::{Reader, Value};
use crate::interrupt::Interrupt;
use crate::items::{Apart, Inputs, Reading};
use crate::output::Output;
use crate::table::count;
use crate::{memory, numbers, progress};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The file with the filter or counter to check
    file: PathBuf,
    /// Files of the items that were added to the value, one item per line; - reads standard input
    #[arg(required_unless_present_any = ["absent", "distinct"])]
    items: Vec<PathBuf>,
    /// A file of items that were not added to the filter, to measure its false positive rate
    #[arg(long, value_name = "ITEMS")]
    absent: Vec<PathBuf>,
    /// The number of distinct items, if it is known; otherwise they are counted
    #[arg(long, value_name = "N", value_parser = numbers::whole, conflicts_with = "items")]
    distinct: Option<u64>,
    /// The check passes if a count or a rate deviates by at most this many standard errors
    #[arg(long, default_value_t = 4.0, value_name = "K")]
    within: f64,
    /// The key of the value to check, if the file has several values
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    reading: Reading,
}

/// The largest number of missing items that are shown.
const SHOWN: usize = 10;

/// The most bytes per item that a set of hashes takes while it grows.
const SET_BYTES_AN_ITEM: u64 = 56;

/// The result of a check.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Checked {
    Filter { present: Option<Present>, absent: Option<Absent> },
    Counter(Counted),
}

/// The result for the items that were added to the value.
#[derive(Debug, Serialize)]
struct Present {
    items: u64,
    missing: u64,
    /// The first of the missing items.
    first_missing: Vec<String>,
}

/// The result for the items that were not added to the value.
#[derive(Debug, Serialize)]
struct Absent {
    items: u64,
    found: u64,
    measured_rate: f64,
    /// The false positive rate that the user asked for when the filter was made.
    stated_rate: f64,
    /// The false-positive rate expected from the set bits.
    expected_rate: f64,
    /// The largest measured rate that passes.
    bound: f64,
}

/// The estimate of a counter, and the true number of members.
#[derive(Debug, Serialize)]
struct Counted {
    count: u64,
    distinct: u64,
    difference: i64,
    standard_error: f64,
    /// The difference between estimate and true number, in standard errors.
    standard_errors: f64,
}

impl Check {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        if self.within.is_nan() || self.within < 0.0 {
            return Err(Failure::arguments(format!("--within {} is not at least 0", self.within)));
        }
        let (checked, wrong) = match self.value()? {
            Value::Filter(filter) => self.filter(&filter, &interrupt)?,
            Value::Counter(counter) => self.counter(&counter, &interrupt)?,
        };
        output.answer(&checked, text)?;
        match wrong {
            Some(wrong) => Err(Failure::does_not_hold(wrong)),
            None => Ok(()),
        }
    }

    /// The value to check: the one with the key of `--key`, or the only value of the file.
    fn value(&self) -> Result<Value, Failure> {
        let mut reader = Reader::open(&self.file)?;
        let wanted = self.key.as_ref().map(String::as_bytes);
        let (mut found, mut others) = (None, 0);
        while let Some(entry) = reader.next_value()? {
            if wanted.is_none() && found.is_some() {
                others += 1;
            } else if wanted.is_none() || entry.key.as_deref() == wanted {
                found = Some(reader.load(&entry, &memory::available())?);
            }
        }
        match (found, &self.key) {
            (Some(_), _) if others > 0 => {
                Err(Failure::new(format!("{} has {} values", self.file.display(), 1 + others))
                    .advise("say which, with --key (rollcall info lists them)"))
            }
            (Some(value), _) => Ok(value),
            (None, Some(key)) => Err(Failure::nothing(format!("{} has no key '{key}'", self.file.display()))),
            (None, None) => Err(Failure::nothing(format!("{} has no values", self.file.display()))),
        }
    }

    fn filter(&self, filter: &BloomFilter, interrupt: &Interrupt) -> Result<(Checked, Option<String>), Failure> {
        if self.distinct.is_some() {
            return Err(Failure::arguments("--distinct is for counters"));
        }
        let present = if self.items.is_empty() { None } else { Some(self.present(filter, interrupt)?) };
        let absent = if self.absent.is_empty() { None } else { Some(self.absent(filter, interrupt)?) };
        let missing = present.as_ref().filter(|present| present.missing > 0);
        let often = absent.as_ref().filter(|absent| absent.measured_rate > absent.bound);
        let wrong =
            missing.map(|present| format!("{} items are missing", count(present.missing as i64))).or_else(|| {
                often.map(|absent| {
                    let (measured, bound) = (numbers::percent(absent.measured_rate), numbers::percent(absent.bound));
                    format!("the filter errs for {measured} of the absent items, more than {bound}")
                })
            });
        Ok((Checked::Filter { present, absent }, wrong))
    }

    fn present(&self, filter: &BloomFilter, interrupt: &Interrupt) -> Result<Present, Failure> {
        #[derive(Default)]
        struct Part {
            items: u64,
            missing: u64,
            first: Vec<String>,
        }
        let mut parts: Vec<Apart<Part>> = (0..self.reading.threads()).map(|_| Apart::default()).collect();
        let mut all = Part::default();
        let bar = progress::bar(None, "checking");
        Inputs::open(&self.items, interrupt)?.each(
            &self.reading,
            &mut parts,
            |part, block| {
                let mut items = self.reading.items(block);
                filter.may_contain_all(self.reading.items(block), |found| {
                    let item = items.next().unwrap_or_default();
                    part.items += 1;
                    part.missing += u64::from(!found);
                    if !found && part.first.len() < SHOWN {
                        part.first.push(String::from_utf8_lossy(item).into_owned());
                    }
                });
            },
            |parts| {
                for Apart(part) in parts {
                    let part = std::mem::take(part);
                    bar.inc(part.items);
                    all.items += part.items;
                    all.missing += part.missing;
                    all.first.extend(part.first);
                    all.first.truncate(SHOWN);
                }
                Ok(())
            },
        )?;
        bar.finish_and_clear();
        if all.items == 0 {
            return Err(Failure::nothing("there are no items to look for"));
        }
        Ok(Present { items: all.items, missing: all.missing, first_missing: all.first })
    }

    fn absent(&self, filter: &BloomFilter, interrupt: &Interrupt) -> Result<Absent, Failure> {
        let mut parts = vec![Apart((0, 0)); self.reading.threads()];
        let bar = progress::bar(None, "asking for absent items");
        let mut asked = 0;
        Inputs::open(&self.absent, interrupt)?.each(
            &self.reading,
            &mut parts,
            |(items, found), block| {
                filter.may_contain_all(self.reading.items(block), |is_found| {
                    *items += 1;
                    *found += u64::from(is_found);
                });
            },
            |parts| {
                let items = parts.iter().map(|Apart((items, _))| items).sum::<u64>();
                bar.inc(items - asked);
                asked = items;
                Ok(())
            },
        )?;
        bar.finish_and_clear();
        let (items, found) = parts.iter().fold((0, 0), |sum, Apart(part)| (sum.0 + part.0, sum.1 + part.1));
        if items == 0 {
            return Err(Failure::nothing("there are no absent items to measure with"));
        }
        let (stated_rate, number) = (filter.params().error_rate, items as f64);
        Ok(Absent {
            items,
            found,
            measured_rate: found as f64 / number,
            stated_rate,
            expected_rate: filter.false_positive_rate(),
            bound: stated_rate + self.within * (stated_rate * (1.0 - stated_rate) / number).sqrt(),
        })
    }

    fn counter(&self, counter: &Counter, interrupt: &Interrupt) -> Result<(Checked, Option<String>), Failure> {
        if !self.absent.is_empty() {
            return Err(Failure::arguments("--absent is for filters"));
        }
        let distinct = match self.distinct {
            Some(distinct) => distinct,
            None => self.distinct_items(interrupt)?,
        };
        let estimate = counter.count();
        let difference = i128::from(estimate) - i128::from(distinct);
        let standard_error = counter.standard_error();
        // The standard error is relative to the true number of members.
        let one = standard_error * distinct as f64;
        let off = if difference == 0 { 0.0 } else { difference.unsigned_abs() as f64 / one };
        let holds = off <= self.within;
        let counted = Counted {
            count: estimate,
            distinct,
            difference: i64::try_from(difference).unwrap_or(i64::MAX),
            standard_error,
            standard_errors: off,
        };
        let wrong = (!holds).then(|| match counter.is_exact() {
            true => format!("the counter is exact, and off by {difference}"),
            false => format!("the counter is off by {off:.1} standard errors, more than {}", self.within),
        });
        Ok((Checked::Counter(counted), wrong))
    }

    /// The number of distinct items. Each thread gets the items whose hashes belong to its part, and keeps their
    /// 128-bit hashes.
    fn distinct_items(&self, interrupt: &Interrupt) -> Result<u64, Failure> {
        let inputs = Inputs::open(&self.items, interrupt)?;
        let threads = self.reading.threads();
        if let Some(most) = inputs.count(&self.reading)? {
            let needed = most.saturating_mul(SET_BYTES_AN_ITEM);
            memory::check(needed, &format!("counting up to {} distinct items", count(most as i64))).map_err(
                |failure| failure.advise("count them by other means, and give their number with --distinct"),
            )?;
        }
        // With a random seed, items cannot have been chosen so that their hashes are equal.
        let seed = RandomState::new().hash_one(());
        let mut hashes: Vec<Apart<Vec<Hash128>>> = vec![Apart::default(); threads];
        let mut sets: Vec<Apart<Hashes>> = vec![Apart::default(); threads];
        let bar = progress::bar(None, "counting distinct items");
        inputs.each(
            &self.reading,
            &mut hashes,
            |hashes, block| hashes.extend(self.reading.items(block).map(|item| hash128(item, seed))),
            |hashes| {
                thread::scope(|scope| {
                    for (share, Apart(set)) in sets.iter_mut().enumerate() {
                        let all = hashes.iter().flat_map(|Apart(hashes)| hashes);
                        let own = all.filter(move |hash| hash.hi % threads as u64 == share as u64);
                        scope.spawn(move || set.extend(own.map(|hash| (hash.lo, hash.hi))));
                    }
                });
                bar.inc(hashes.iter().map(|Apart(hashes)| hashes.len() as u64).sum());
                hashes.iter_mut().for_each(|Apart(hashes)| hashes.clear());
                Ok(())
            },
        )?;
        bar.finish_and_clear();
        Ok(sets.iter().map(|Apart(set)| set.len() as u64).sum())
    }
}

/// A set of 128-bit hashes. The chance that any two of 300 million items have the same hash is 10^-22.
type Hashes = HashSet<(u64, u64), BuildHasherDefault<Half>>;

/// A hasher that uses one half of a 128-bit hash unchanged.
#[derive(Debug, Default, Clone, Copy)]
struct Half(u64);

impl Hasher for Half {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(32) ^ number;
    }
}

fn text(checked: &Checked) -> String {
    match checked {
        Checked::Filter { present, absent } => {
            let mut lines = Vec::new();
            if let Some(Present { items, missing, first_missing }) = present {
                let items = count(*items as i64);
                lines.push(match missing {
                    0 => format!("all {items} items are found"),
                    _ => format!("{} of {items} items are missing, the first of them:", count(*missing as i64)),
                });
                lines.extend(first_missing.iter().map(|item| format!("  {item}")));
            }
            if let Some(absent) = absent {
                let percent = numbers::percent;
                lines.push(format!(
                    "{} of {} absent items are found: {}. Stated: {}; with this number of items, at most {} \
                     passes; expected from the set bits: {}",
                    count(absent.found as i64),
                    count(absent.items as i64),
                    percent(absent.measured_rate),
                    percent(absent.stated_rate),
                    percent(absent.bound),
                    percent(absent.expected_rate),
                ));
            }
            lines.join("\n")
        }
        Checked::Counter(counted) => {
            let off = match counted.standard_errors {
                errors if errors.is_finite() && counted.standard_error > 0.0 => {
                    format!(
                        ", {} standard errors of {}",
                        numbers::decimal(errors),
                        numbers::percent(counted.standard_error)
                    )
                }
                _ => String::new(),
            };
            format!(
                "{} counted, {} distinct items: off by {}{off}",
                count(counted.count as i64),
                count(counted.distinct as i64),
                count(counted.difference),
            )
        }
    }
}
