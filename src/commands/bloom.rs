//! The commands BF.* and RF.*, which work on Bloom filters.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, SubFilterInfo};
use rollcall_core::live::Value;
use rollcall_core::unstable::info::{FILTER_FIELDS_SHOWN, FilterAt, OF_FILTERS};

use super::filters::{Creation, from_redisbloom, reported};
use super::keyspace::value;
use super::windows::time_of;
use super::{changes, info};
use crate::args::lenient;
use crate::command_error::{CommandError, Kind};
use crate::limits::ServerLimit;
use crate::number::as_c_prints;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, Mode};
use crate::types::family::{Added, AddedItems, Family};
use crate::types::names::Verb;

/// Creates an empty filter: `BF.RESERVE key error_rate capacity [EXPANSION n] [NONSCALING] [SEED n] [LAYOUT
/// lines|classic] [WINDOW seconds [MANUAL] [SLICES g] [REFRESH]] [EX s | PX ms | EXAT s | PXAT ms]`
pub fn reserve(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let is_obeyed = must_obey(ctx);
    let creation = if is_obeyed { Creation::obeyed } else { BloomFilter::creation };
    let (creation, expiry) = match from_redisbloom(args, lenient::reserve).filter(|_| is_obeyed) {
        Some(options) => (Creation::obeyed(ctx, args, &options)?, None),
        None => Creation::from_reservation(ctx, args, creation)?,
    };
    changes::reserve::<BloomFilter>(ctx, args, &creation, expiry)
}

/// Adds an item to a filter: `BF.ADD key item`
pub fn add(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let addition = changes::to_default::<BloomFilter>(ctx, Verb::Add, args);
    let limit = ServerLimit::new(ctx);
    changes::add::<BloomFilter>(ctx, addition, &limit, |live, _| {
        let (items, is_new, error) = match live.add(args.get(2).bytes(), &limit) {
            Ok(is_new) => (1, is_new, None),
            Err(error) => (0, false, reported(ctx, error)),
        };
        if error.is_none() {
            ctx.reply_bool(is_new);
        }
        Added { items: AddedItems::First(items), new: is_new.into(), error }
    })?;
    Ok(())
}

/// Replies with the number of items in a filter: `BF.CARD key`
pub fn card(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let key = ctx.open(args.get(1), Mode::Read)?;
    let items = value::<BloomFilter>(&key)?.map_or(0, |filter| filter.at(time_of(ctx, [filter])).num_items());
    ctx.reply_integer(i64::try_from(items).unwrap_or(i64::MAX));
    Ok(())
}

/// Replies with all figures about a filter, or with one: `BF.INFO key [field]`
pub fn info(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(CommandError::Arity);
    }
    let key = ctx.open(args.get(1), Mode::Inspect)?;
    let filter = value::<BloomFilter>(&key)?.ok_or(CommandError::NotFound)?;
    let at = FilterAt::new(filter, time_of(ctx, [filter]));
    info::info(ctx, args, Kind::Filter, &OF_FILTERS, FILTER_FIELDS_SHOWN, |of| of(&at))
}

/// Replies with a line of text about each sub-filter: `BF.DEBUG key`
pub fn debug(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let key = ctx.open(args.get(1), Mode::Inspect)?;
    let filter = value::<BloomFilter>(&key)?.ok_or(CommandError::NotFound)?;
    ctx.reply_array(filter.sub_filters().len() + 1);
    ctx.reply_bulk(debug_totals(filter).as_bytes());
    filter.sub_filters().for_each(|sub_filter| ctx.reply_bulk(debug_sub_filter(&sub_filter).as_bytes()));
    Ok(())
}

/// The first line of the `BF.DEBUG` reply. For a RedisBloom-compatible filter it is RedisBloom's.
fn debug_totals(filter: &BloomFilter) -> String {
    let size = filter.num_items();
    if filter.layout() == BitLayout::Classic {
        return format!("size:{size}");
    }
    let Params { error_rate, expansion, seed, .. } = filter.params();
    let window = match (filter.windowing(), filter.newest_slice()) {
        (Some(windowing), Some(slice)) => format!(" window:{} slice:{slice}", windowing.to_string().replace(' ', "_")),
        _ => String::new(),
    };
    format!(
        "size:{size} filters:{} bytes:{} layout:lines ratio:{error_rate:?} expansion:{expansion} seed:{seed}{window}",
        filter.sub_filters().len(),
        filter.size_bytes()
    )
}

/// The `BF.DEBUG` line of a sub-filter. For a RedisBloom-compatible filter it is RedisBloom's.
fn debug_sub_filter(info: &SubFilterInfo) -> String {
    let SubFilterInfo { num_bytes, hashes, capacity, num_items, error_rate, set_bits, .. } = info;
    let num_bits = 8 * num_bytes;
    match info.geometry {
        None => format!(
            "bytes:{num_bytes} bits:{num_bits} hashes:{hashes} hashwidth:64 capacity:{capacity} size:{num_items} \
             ratio:{}",
            as_c_prints(*error_rate)
        ),
        Some(geometry) => format!(
            "bytes:{num_bytes} bits:{num_bits} hashes:{hashes} lines:{} lines_per_item:{} probes_per_line:{} \
             capacity:{capacity} size:{num_items} ratio:{error_rate:?} bits_set:{set_bits}",
            geometry.num_lines, geometry.lines_per_item, geometry.probes_per_line
        ),
    }
}
