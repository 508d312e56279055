//! Tests partially loaded values: where the payload is stored, how much memory they take, and their value if the rest
//! never arrives.

use std::borrow::Cow;

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::persist::{ChunkFormat, Partial, PartialFilter, piece_checksum, rdb};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::fields::{Field, Fields, written};
use rollcall_fuzz::values::payload_of as payload;

/// A filter of 20 kB with several sub-filters.
fn filter(make: impl FnOnce(Params) -> BloomFilter) -> BloomFilter {
    let mut filter = make(Params { error_rate: 0.01, capacity: 5_000, expansion: 2, seed: 3 });
    for item in 0..12_000u32 {
        filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).unwrap();
    }
    filter
}

/// A filter of each kind.
fn filters() -> [BloomFilter; 3] {
    [
        filter(|params| BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap()),
        filter(|params| BloomFilter::new(BitLayout::Classic, params, &Unlimited).unwrap()),
        filter(|params| {
            let windowing = Windowing::new(60, 4, ClockSource::Manual, false).unwrap();
            BloomFilter::windowed(params, windowing, 9, &Unlimited).unwrap()
        }),
    ]
}

/// Counters whose payload is out of line: an exact one, and an estimate with a window.
fn counters() -> [Counter; 2] {
    let counter = |error_rate, exact_limit, members: u32| {
        let params = counting::Params { error_rate, exact_limit, exact_bytes: 1 << 20, seed: 3 };
        let mut counter = Counter::new(params).unwrap();
        (0..members).for_each(|member| drop(counter.live(Time::Reached).add(member.to_le_bytes(), &Unlimited)));
        counter
    };
    let mut windowed =
        counter(0.0025, 0, 0).with_window(Window::new(60, 4, 250, ClockSource::Manual).unwrap(), 9).unwrap();
    (0..100_000u32).for_each(|member| drop(windowed.live(Time::Reached).add(member.to_le_bytes(), &Unlimited)));
    [counter(0.01, 20_000, 16_000), windowed]
}

/// Loads a value piece by piece, and checks that each piece is stored at the announced address. Returns the length of
/// the longest piece.
fn check_next_memory<T: Value>(value: &T) -> usize {
    let payload = payload(value);
    let mut loading = T::Partial::begin(&value.header(), &Unlimited).unwrap();
    let (mut rest, mut most) = (&payload[..], 0);
    while !rest.is_empty() {
        let memory = loading.next_memory(5_000);
        if memory.is_empty() {
            return 0;
        }
        let end = memory.as_ptr_range().end;
        assert!(memory.len() <= 5_000.min(rest.len()));
        most = most.max(memory.len());
        let (piece, later) = rest.split_at(memory.len());
        loading.push(piece).unwrap();
        let received = loading.received();
        let Some((_, Cow::Borrowed(last))) = received.pieces(usize::MAX).last() else { panic!("bytes of bitmaps") };
        assert_eq!(last.as_ptr_range().end, end);
        rest = later;
    }
    assert!(loading.next_memory(5_000).is_empty());
    assert!(persist::dump(&loading.finish().unwrap()).eq(persist::dump(value)));
    most
}

#[test]
fn the_next_memory_is_where_the_next_bytes_go() {
    for filter in filters() {
        assert!(check_next_memory(&filter) > 1_000);
    }
    // Counters do not announce an address.
    assert_eq!(counters().each_ref().map(check_next_memory), [0; 2]);
}

/// Checks the memory of a partially loaded value before its payload, and after half of it.
fn check_layouts<T: Value>(value: &T) {
    let (header, payload) = (value.header(), payload(value));
    let mut loading = T::Partial::begin(&header, &Unlimited).unwrap();
    for half in payload.chunks((payload.len() / 2).next_multiple_of(8)).take(2) {
        let mut layouts = Vec::new();
        loading.heap_layouts(&mut |layout| layouts.push(layout.size() as u64));
        assert!(layouts.contains(&(header.len() as u64)), "{layouts:?}");
        let (sum, received) = (layouts.iter().sum::<u64>(), loading.received_bytes());
        // A taken slot has two bytes in memory and four in the payload. Members also need a table.
        assert!((received / 2..4 * loading.total_bytes() + 8_192).contains(&sum), "{sum} bytes of {received}");
        loading.push(half).unwrap();
    }
}

#[test]
fn a_partial_load_takes_little_more_than_its_bytes() {
    filters().iter().for_each(check_layouts);
    counters().iter().for_each(check_layouts);
    for filter in filters() {
        let loading = PartialFilter::begin(&filter.header(), &Unlimited).unwrap();
        let mut sum = 0;
        loading.heap_layouts(&mut |layout| sum += layout.size() as u64);
        assert!((loading.total_bytes()..loading.total_bytes() + 4_096).contains(&sum), "{sum}");
    }
}

#[test]
fn only_classic_filters_can_be_filled_with_zeros() {
    for filter in filters() {
        let payload = payload(&filter);
        let half = &payload[..payload.len() / 2];
        let mut loading = PartialFilter::begin(&filter.header(), &Unlimited).unwrap();
        loading.push(half).unwrap();
        loading.fill_with_zeros();
        match loading.finish() {
            Err(_) => assert_eq!(filter.layout(), BitLayout::Lines),
            Ok(begun) => {
                assert_eq!(filter.layout(), BitLayout::Classic);
                let zeros = vec![0; payload.len() - half.len()];
                assert!(crate::payload(&begun) == [half, &zeros].concat());
            }
        }
    }
}

/// RDB values with pieces of correct checksums and wrong lengths are rejected.
#[test]
fn pieces_are_neither_empty_nor_longer_than_what_was_stored() {
    let [filter, ..] = filters();
    let (payload, ChunkFormat::Checked { fingerprint }) = (payload(&filter), filter.chunk_format()) else {
        panic!("chunks of lines are checked")
    };
    let mut loading = PartialFilter::begin(&filter.header(), &Unlimited).unwrap();
    loading.push(&payload[..1_000]).unwrap();
    let fields = written(|sink| rdb::save_partial(&loading, sink));
    let pieces = |lens: &[usize]| {
        let mut fields = fields[..3].to_vec();
        let mut position = 0;
        for &len in lens {
            let piece = &payload[position..position + len];
            fields.push(Field::Unsigned(piece_checksum(piece, position as u64, fingerprint)));
            fields.push(Field::String(piece.to_vec()));
            position += len;
        }
        rdb::load::<PartialFilter>(&mut Fields(&fields), &Unlimited).map(|one| one.received_bytes())
    };
    for lens in [&[1_000][..], &[1, 999], &[999, 1]] {
        assert_eq!(pieces(lens), Ok(1_000), "{lens:?}");
    }
    for lens in [&[1_001][..], &[0, 1_000], &[600, 0, 400], &[600, 401]] {
        let error = pieces(lens).unwrap_err().to_string();
        assert!(error.contains("payload piece"), "{lens:?}: {error}");
    }
}

/// Calls the function that handles `LOADCHUNK` for a complete filter.
#[test]
fn chunks_overwrite_complete_classic_filters_alone() {
    for mut filter in filters() {
        let (before, classic) = (payload(&filter), filter.layout() == BitLayout::Classic);
        let mut expected = before.clone();
        // All chunks but the header, with changed bytes, in reverse order.
        let mut chunks: Vec<_> =
            persist::dump(&filter).skip(1).map(|(next, chunk)| (next, chunk.into_owned())).collect();
        for (next, chunk) in chunks.iter_mut().rev() {
            chunk.iter_mut().for_each(|byte| *byte = !*byte);
            assert_eq!(filter.overwrite(*next, chunk).is_ok(), classic);
            let last = (*next - 1) as usize;
            if classic {
                expected[last - chunk.len()..last].copy_from_slice(chunk);
            }
        }
        assert_eq!(payload(&filter), expected);
        assert_eq!(expected != before, classic);
        let ones: u64 = expected.iter().map(|byte| u64::from(byte.count_ones())).sum();
        assert_eq!(filter.sub_filters().map(|one| one.set_bits).sum::<u64>(), ones);
        for (next, chunk) in [(0, &b"a"[..]), (1, b"a"), (before.len() as u64 + 2, b"a"), (u64::MAX, b"a")] {
            assert!(filter.overwrite(next, chunk).is_err(), "{next}");
        }
        assert_eq!(payload(&filter), expected);
    }
    let [mut counter, ..] = counters();
    assert!(counter.overwrite(2, b"a").is_err());
}
