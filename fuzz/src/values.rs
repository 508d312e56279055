//! Values of every kind, and functions that save and load them in each format, for tests.

use rollcall_core::bloom::{self, BloomFilter};
use rollcall_core::counting::{self, Counter};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::{SizeLimit, Unlimited};
use rollcall_core::unstable::persist::{Partial, PartialFilter, dump_partial, push_chunk, rdb, redisbloom};
use rollcall_core::window::{ClockSource, Time, Window};

use crate::fields::{Field, Fields, written};

pub type Dump = Vec<(u64, Vec<u8>)>;

/// The chunks of a dump, each as a separate vector.
pub fn dump_of<T: Value>(value: &T) -> Dump {
    persist::dump(value).map(|(next, chunk)| (next, chunk.into_owned())).collect()
}

/// The chunks of a partially loaded value, each as a separate vector.
pub fn dump_of_loading<L: Partial>(loading: &L) -> Dump {
    dump_partial(loading).map(|(next, chunk)| (next, chunk.into_owned())).collect()
}

/// Whether two values are equal in every bit, compared by their dumps.
pub fn same_dump<T: Value>(a: &T, b: &T) -> bool {
    persist::dump(a).eq(persist::dump(b))
}

pub fn reload<T: Value>(value: &T) -> T {
    persist::load(persist::dump(value), &Unlimited).unwrap()
}

/// Loads an RDB value in Rollcall's format, complete or not.
///
/// # Errors
/// If loading fails, or with [`Error::Corrupt`] if fields are left over.
pub fn load_ours<L: Partial>(fields: &[Field], limit: &impl SizeLimit) -> Result<L, Error> {
    let mut source = Fields(fields);
    let loading = rdb::load(&mut source, limit)?;
    all_read(source).map(|()| loading)
}

fn all_read(source: Fields<'_>) -> Result<(), Error> {
    if source.0.is_empty() { Ok(()) } else { Err(Error::corrupt("value", "the end", source.0.len())) }
}

/// Like [`load_ours`], without a limit.
pub fn load_rdb<L: Partial>(fields: &[Field]) -> Result<L, Error> {
    load_ours(fields, &Unlimited)
}

/// The RDB value of a complete value, in Rollcall's format.
pub fn rdb_of<T: Value>(value: &T) -> Vec<Field> {
    written(|sink| rdb::save(value, sink))
}

/// The RDB value of a partially loaded value, in Rollcall's format.
pub fn rdb_of_loading<L: Partial>(loading: &L) -> Vec<Field> {
    written(|sink| rdb::save_partial(loading, sink))
}

/// The RDB value that a server stores for a filter: in RedisBloom's format if its layout is `classic`.
pub fn rdb_of_filter(filter: &BloomFilter) -> Vec<Field> {
    match filter.layout() {
        bloom::BitLayout::Lines => rdb_of(filter),
        bloom::BitLayout::Classic => written(|sink| redisbloom::save_rdb(filter, sink)),
    }
}

/// Loads the filter that [`rdb_of_filter`] saved.
pub fn filter_of_rdb(layout: bloom::BitLayout, fields: &[Field]) -> Result<BloomFilter, Error> {
    load_filter(layout, fields, &Unlimited)
}

/// Like [`filter_of_rdb`], with a limit.
pub fn load_filter(layout: bloom::BitLayout, fields: &[Field], limit: &impl SizeLimit) -> Result<BloomFilter, Error> {
    if layout == bloom::BitLayout::Lines {
        return load_ours::<PartialFilter>(fields, limit)?.finish();
    }
    let mut source = Fields(fields);
    let filter = redisbloom::load_rdb(&mut source, redisbloom::RDB_ENCODING_NEWEST, limit)?;
    all_read(source).map(|()| filter)
}

/// A partially loaded value that has received the first `bytes` bytes of the payload of `value`.
pub fn cut_after<T: Value>(value: &T, bytes: u64) -> T::Partial {
    let mut loading = T::Partial::begin(&value.header(), &Unlimited).unwrap();
    value.payload().up_to(bytes).pieces(usize::MAX).for_each(|(_, piece)| loading.push(&piece).unwrap());
    assert_eq!(loading.received_bytes(), bytes);
    loading
}

/// The partially loaded value after these chunks, of which the first is the header.
pub fn from_chunks<L: Partial>(chunks: &Dump) -> L {
    let mut loading = L::begin(&chunks[0].1, &Unlimited).unwrap();
    chunks[1..].iter().for_each(|(next, chunk)| push_chunk(&mut loading, *next, chunk).unwrap());
    loading
}

/// All bytes of a value's payload.
pub fn payload_of<T: Value>(value: &T) -> Vec<u8> {
    value.payload().pieces(usize::MAX).flat_map(|(_, piece)| piece.into_owned()).collect()
}

/// The strings that a value's digest is made of.
pub fn digest_of<T: Value>(value: &T) -> Vec<Vec<u8>> {
    let mut digest = Vec::new();
    value.digest(&mut |bytes| digest.push(bytes.to_vec()));
    digest
}

/// Completes the partially loaded value with the rest of the payload of `value`.
pub fn completed<T: Value>(mut loading: T::Partial, value: &T) -> T {
    loading.push(&payload_of(value)[loading.received_bytes() as usize..]).unwrap();
    loading.finish().unwrap()
}

pub fn filter(params: bloom::Params, layout: bloom::BitLayout, items: u32) -> BloomFilter {
    let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
    for item in 0..items {
        filter.live(Time::Reached).add(format!("item:{item}").as_bytes(), &Unlimited).unwrap();
    }
    filter
}

/// A windowed filter that gets `items[i]` new items in its slice 1000 + i. No item is added twice.
pub fn windowed(params: bloom::Params, windowing: bloom::Windowing, items: &[u32]) -> BloomFilter {
    let mut filter = BloomFilter::windowed(params, windowing, 1_000, &Unlimited).unwrap();
    let mut next = 0;
    for (slice, count) in (1_000..).zip(items) {
        filter.advance(slice);
        for item in next..next + count {
            filter.live(Time::Reached).add(format!("item:{item}").as_bytes(), &Unlimited).unwrap();
        }
        next += count;
    }
    filter
}

pub fn counter(error_rate: f64, exact_limit: u32, members: u32) -> Counter {
    // Enough bytes for all members up to the limit.
    let params = counting::Params { error_rate, exact_limit, exact_bytes: 16_384.max(16 * exact_limit), seed: 7 };
    let mut counter = Counter::new(params).unwrap();
    for member in 0..members {
        counter.live(Time::Reached).add(format!("member:{member}:").as_bytes(), &Unlimited).unwrap();
    }
    counter
}

/// A windowed counter with slices of one second. In its slice 1000 + i it gets `members[i]` members, of which half are
/// members of the slice before.
pub fn windowed_counter(params: counting::Params, slices: u32, clock_source: ClockSource, members: &[u32]) -> Counter {
    let window = Window::new(slices.into(), slices, Counter::MAX_SLICES, clock_source).unwrap();
    counter_with_window(params, window, members)
}

/// Like [`windowed_counter`], for any window.
pub fn counter_with_window(params: counting::Params, window: Window, members: &[u32]) -> Counter {
    let mut counter = Counter::new(params).unwrap().with_window(window, 1_000).unwrap();
    let mut next = 0u32;
    for (slice, &count) in (1_000..).zip(members) {
        counter.advance(slice);
        let from = next.saturating_sub(count / 2);
        for member in from..from + count {
            counter.live(Time::Reached).add(format!("member:{member}:").as_bytes(), &Unlimited).unwrap();
        }
        next = from + count;
    }
    counter
}
