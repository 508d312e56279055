//! Makes filters and counters from an input.

use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::error::Error;
use rollcall_core::live::{Live, Value};
use rollcall_core::unstable::bloom::{Rules, Shape, SubFilter};
use rollcall_core::window::{ClockSource, Time, Window};

use crate::input::{Input, items_of};
use crate::limit::Limit;

/// The largest number of times that a value gets a list of items.
const ROUNDS: u8 = 4;

/// The largest size of a value that is made to be stored, in bytes. It has room for a chain of about a hundred of the
/// smallest sub-filters.
pub const MADE_BYTES: u64 = 16 << 10;

fn clock_source(input: &mut Input<'_>) -> ClockSource {
    if input.flag() { ClockSource::Manual } else { ClockSource::System }
}

/// The first slice of a window: mostly one of the present time, else one soon after 1970, else any.
fn first_slice(input: &mut Input<'_>) -> u64 {
    match input.byte() {
        near @ 0..200 => 500_000 + u64::from(near),
        200..240 => u64::from(input.byte()),
        _ => input.u64(),
    }
}

/// An empty filter of any kind.
///
/// # Errors
/// If the input chooses invalid parameters, or if the filter would exceed `limit`.
pub fn empty_filter(input: &mut Input<'_>, limit: &Limit) -> Result<BloomFilter, Error> {
    let kind = input.choice(4);
    let (error_rate, capacity, growth) = (input.rate(), input.number(), input.number() as u32);
    let params = bloom::Params { error_rate, capacity, expansion: growth, seed: input.byte().into() };
    match kind {
        0 => BloomFilter::new(BitLayout::Lines, params, limit),
        1 => BloomFilter::new(BitLayout::Classic, params, limit),
        2 => {
            let (slices, seconds) = (input.up_to(66) as u32, input.number());
            let windowing = Windowing::new(seconds, slices, clock_source(input), input.flag())?;
            BloomFilter::windowed(params, windowing.with_volatile(seconds % 2 == 1), first_slice(input), limit)
        }
        // Sets options that no command of Rollcall sets, such as RedisBloom's bitmaps with a power of two as size.
        _ => {
            let rules = Rules { options: Rules::FORCE64 | u32::from(input.byte() & 15), growth };
            let shape = Shape::new(error_rate, capacity, rules.options)?;
            BloomFilter::from_sub_filters(vec![SubFilter::from_shape(rules, shape, limit)?])
        }
    }
}

/// An empty counter, with or without a window.
///
/// # Errors
/// If the input chooses invalid parameters.
pub fn empty_counter(input: &mut Input<'_>) -> Result<Counter, Error> {
    let (is_windowed, error_rate) = (input.flag(), input.rate().max(counting::Params::MIN_ERROR_RATE));
    let (exact_limit, exact_bytes) = (input.number() as u32, input.number() as u32);
    // Mostly the default for `exact_bytes`.
    let exact_bytes = if exact_bytes < 64 { counting::Params::DEFAULT_EXACT_BYTES } else { exact_bytes };
    let params = counting::Params { error_rate, exact_limit, exact_bytes, seed: input.choice(2).into() };
    let counter = Counter::new(params)?;
    if !is_windowed {
        return Ok(counter);
    }
    let (seconds, slices) = (input.number(), input.byte().into());
    let window = Window::new(seconds, slices, Counter::MAX_SLICES, clock_source(input))?;
    counter.with_window(window.with_volatile(seconds % 2 == 1), first_slice(input))
}

/// Adds the items that the input chooses, and moves the window. Items that the value rejects are left out.
pub fn fill<T: Value>(value: &mut T, input: &mut Input<'_>, limit: &Limit) {
    for _ in 0..input.choice(ROUNDS) {
        let _ = Live::new(value, Time::Reached).add_all(items_of(&input.items()), limit, |_| {});
        if let Some(newest) = value.newest_slice() {
            value.advance(newest.saturating_add(input.byte().into()));
        }
    }
}
