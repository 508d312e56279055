//! `plan filter`: computes the memory and the rates of filters.

use clap::Args;
use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing, sizing};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::{Rules, Shape, sub_filter_capacity};
use rollcall_core::window::{ClockSource, Time};
use serde::Serialize;

use super::asked::{Asked, KEY_BYTES, is_rejected_by_default, warning};
use crate::failure::Failure;
use crate::numbers::{self, percent, share};
use crate::output::Output;
use crate::table::{bytes, count, table};

/// Arguments of `plan filter`.
#[derive(Debug, Args)]
pub struct Filter {
    /// The number of items in a key: 1000000, 1e6, 1M or 2^20; several numbers make a table
    #[arg(required = true, value_parser = numbers::whole)]
    items: Vec<u64>,
    #[command(flatten)]
    asked: Asked,
    /// The false positive rate that the filter is sized for
    #[arg(long, default_value = "0.01", value_parser = share)]
    error: f64,
    /// When the filter is full, it grows by a sub-filter that is larger than the last one by this factor
    #[arg(long, default_value_t = 2)]
    expansion: u32,
    /// Plan a filter that never grows and rejects items when it is full
    #[arg(long, conflicts_with = "expansion")]
    nonscaling: bool,
    /// Every add of an item renews it: it expires after its last add instead of its first
    #[arg(long)]
    refresh: bool,
}

/// The memory and the rates of one filter.
#[derive(Debug, Serialize)]
pub struct Planned {
    items: u64,
    error_rate: f64,
    /// Bytes in memory, as `BF.INFO key SIZE` reports them. For a windowed filter, all its slices are full.
    size_bytes: u64,
    /// Whether a server with default options rejects the filter.
    rejected_by_default: bool,
    bits_per_item: f64,
    /// The largest size of the filter's bits in an RDB file or a dump, in bytes, without overhead of some 20 bytes per
    /// MiB.
    stored_bytes: u64,
    lines: u64,
    lines_per_item: u32,
    bits_per_line: u32,
    /// The false-positive rate once the filter holds all items.
    rate_when_full: f64,
    /// The sizes of the filter after each growth; empty if it does not grow.
    growth: Vec<Grown>,
    /// Bytes that RedisBloom takes for the same filter; `None` for windowed filters, which it does not have.
    redisbloom_bytes: Option<u64>,
    keys: u64,
    /// Bytes of all keys, including the memory that each key takes in addition to its value.
    bytes_of_keys: Option<u64>,
    command: String,
}

/// The sizes of a filter after a growth.
#[derive(Debug, Serialize)]
struct Grown {
    items: u64,
    sub_filters: u64,
    size_bytes: u64,
    rejected_by_default: bool,
}

impl Planned {
    /// A warning that names the smallest size that a server with default options rejects.
    fn warning(&self) -> Option<String> {
        let items = count(self.items as i64);
        if self.rejected_by_default {
            return Some(warning(&format!("a filter for {items} items"), self.size_bytes));
        }
        let grown = self.growth.iter().find(|grown| grown.rejected_by_default)?;
        let what = format!("growth of one for {items} to {} items", count(grown.items as i64));
        Some(warning(&what, grown.size_bytes))
    }
}

impl Filter {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let planned: Result<Vec<_>, _> = self.items.iter().map(|&items| self.plan(items)).collect();
        let planned = planned.map_err(|error| Failure::arguments(error.to_string()))?;
        output.answer(&planned, |planned| self.text(planned))
    }

    fn windowing(&self) -> Result<Option<Windowing>, Error> {
        let Some(seconds) = self.asked.window else { return Ok(None) };
        let default = Windowing::default_slices(self.refresh);
        let slices = self.asked.slices.unwrap_or(default.min(u32::try_from(seconds.max(1)).unwrap_or(default)));
        Windowing::new(seconds, slices, ClockSource::System, self.refresh).map(Some)
    }

    fn plan(&self, items: u64) -> Result<Planned, Error> {
        let expansion = if self.nonscaling { 0 } else { self.expansion };
        let params = Params { error_rate: self.error, capacity: items, expansion, seed: 0 };
        params.validate()?;
        let windowing = self.windowing()?;
        // Each generation of a windowed filter is a filter with its own number of items and error rate.
        let (of_each, generations) = match &windowing {
            None => (params, 1),
            Some(windowing) => (windowing.of_generation(&params)?, u64::from(windowing.generations())),
        };
        let geometry = sizing::sub_filter_geometry(&of_each, 0)?;
        let overhead = |sub_filters| match &windowing {
            None => overhead(BitLayout::Lines, expansion, sub_filters),
            Some(_) => overhead_of_windowed(generations as u32),
        };
        let stored_bytes = geometry.num_bytes().saturating_mul(generations);
        let size_bytes = stored_bytes.saturating_add(overhead(1)?);
        let of_one = sizing::false_positive_rate(&geometry, of_each.capacity as f64);
        let growth = if windowing.is_some() || expansion == 0 { Vec::new() } else { growth(&params)? };
        let redisbloom_bytes = match windowing {
            Some(_) => None,
            None => Some(redisbloom(&params)?),
        };
        Ok(Planned {
            items,
            error_rate: self.error,
            size_bytes,
            rejected_by_default: is_rejected_by_default(size_bytes),
            bits_per_item: size_bytes as f64 * 8.0 / items as f64,
            stored_bytes,
            lines: geometry.num_lines.saturating_mul(generations),
            lines_per_item: geometry.lines_per_item,
            bits_per_line: geometry.probes_per_line,
            rate_when_full: -(generations as f64 * (-of_one).ln_1p()).exp_m1(),
            growth,
            redisbloom_bytes,
            keys: self.asked.keys,
            bytes_of_keys: self.asked.bytes_of_keys(size_bytes),
            command: self.command(items),
        })
    }

    fn command(&self, items: u64) -> String {
        let growth = match self.expansion {
            _ if self.nonscaling => " NONSCALING".to_owned(),
            2 => String::new(),
            other => format!(" EXPANSION {other}"),
        };
        let refresh = if self.refresh { " REFRESH" } else { "" };
        format!("BF.RESERVE key {} {items}{growth}{}{refresh}", self.error, self.asked.options())
    }

    fn text(&self, all: &[Planned]) -> String {
        let heads = [">items", ">error", ">size", ">bits an item", ">RedisBloom", ">lines an item", ">error when full"];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        let many = self.asked.keys > 1;
        if many {
            rows[0].push(format!(">{} keys", count(self.asked.keys as i64)));
        }
        for one in all {
            let mut row = vec![
                count(one.items as i64),
                percent(one.error_rate),
                bytes(one.size_bytes),
                format!("{:.1}", one.bits_per_item),
                one.redisbloom_bytes.map_or("-".to_owned(), bytes),
                one.lines_per_item.to_string(),
                percent(one.rate_when_full),
            ];
            if many {
                row.push(one.bytes_of_keys.map_or("too large".to_owned(), bytes));
            }
            rows.push(row);
        }
        let mut text = vec![table(&rows), String::new()];
        if let [one] = all {
            text.push(format!("size          {} bytes, as BF.INFO key SIZE says", count(one.size_bytes as i64)));
            text.push(format!(
                "in a file     {} bytes at most, in RDB files and dumps",
                count(one.stored_bytes as i64)
            ));
            let (each, of_line) = (one.lines_per_item, one.bits_per_line);
            text.push(format!(
                "bits          {} lines of 64 bytes; an item has {of_line} bits in each of {each}",
                count(one.lines as i64)
            ));
            for grown in &one.growth {
                let (items, size) = (count(grown.items as i64), bytes(grown.size_bytes));
                let rejected = if grown.rejected_by_default { ", rejected by default" } else { "" };
                text.push(format!(
                    "up to         {items} items: {size} in {} sub-filters{rejected}",
                    grown.sub_filters
                ));
            }
        }
        if many {
            text.push(format!("keys          each with {} bytes besides its value: name, entry, objects", KEY_BYTES));
        }
        text.extend(all.iter().filter_map(Planned::warning));
        text.extend(all.iter().map(|one| one.command.clone()));
        text.join("\n")
    }
}

/// The sizes of a filter with these parameters after its first, second and third growth.
fn growth(params: &Params) -> Result<Vec<Grown>, Error> {
    let mut grown = Vec::new();
    let (mut items, mut bits) = (0u64, 0u64);
    for index in 0..4 {
        let (Some(capacity), Ok(geometry)) =
            (sub_filter_capacity(params, index), sizing::sub_filter_geometry(params, index))
        else {
            break;
        };
        items = items.saturating_add(capacity);
        bits = bits.saturating_add(geometry.num_bytes());
        if index > 0 {
            let overhead = overhead(BitLayout::Lines, params.expansion, index + 1)?;
            let size_bytes = bits.saturating_add(overhead);
            let rejected_by_default = is_rejected_by_default(size_bytes);
            grown.push(Grown { items, sub_filters: index + 1, size_bytes, rejected_by_default });
        }
    }
    Ok(grown)
}

/// Bytes that RedisBloom takes for a filter with these parameters.
fn redisbloom(params: &Params) -> Result<u64, Error> {
    let (scaling, first_rate) = match params.expansion {
        0 => (Rules::NO_SCALING, params.error_rate),
        _ => (0, params.error_rate / 2.0),
    };
    let shape = Shape::new(first_rate, params.capacity, Rules::NOROUND | Rules::FORCE64 | scaling)?;
    Ok(shape.num_bytes.saturating_add(overhead(BitLayout::Classic, params.expansion, 1)?))
}

/// Bytes of a filter in addition to the bits of its `sub_filters` sub-filters.
fn overhead(layout: BitLayout, expansion: u32, sub_filters: u64) -> Result<u64, Error> {
    let params = Params { error_rate: 0.01, capacity: 1, expansion: expansion.min(1), seed: 0 };
    let mut filter = BloomFilter::new(layout, params, &Unlimited)?;
    let mut item = 0u64;
    while (filter.sub_filters().len() as u64) < sub_filters {
        filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited)?;
        item += 1;
    }
    Ok(filter.size_bytes() - filter.sub_filters().map(|sub_filter| sub_filter.num_bytes).sum::<u64>())
}

/// Bytes of a windowed filter in addition to its bits, if each of `generations` generations has an item.
fn overhead_of_windowed(generations: u32) -> Result<u64, Error> {
    let slices = generations.saturating_sub(1).max(1);
    let windowing = Windowing::new(slices.into(), slices, ClockSource::Manual, false)?;
    let params = Params { error_rate: 0.01, capacity: slices.into(), expansion: 1, seed: 0 };
    let mut filter = BloomFilter::windowed(params, windowing, 0, &Unlimited)?;
    for slice in 0..u64::from(generations) {
        filter.advance(slice);
        filter.live(Time::Reached).add(slice.to_le_bytes(), &Unlimited)?;
    }
    Ok(filter.size_bytes() - filter.sub_filters().map(|sub_filter| sub_filter.num_bytes).sum::<u64>())
}
