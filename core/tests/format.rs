//! Tests the stored format: sizes, damage, and transfers that are cut. golden.rs tests the exact bytes. The fuzz
//! targets store and load values after any operations.

use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, SizeLimit, Unlimited};
use rollcall_core::unstable::persist::{Partial, PartialCounter, push_chunk};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::values::{
    self, Dump, completed, counter, cut_after, dump_of, dump_of_loading, load_rdb, rdb_of, rdb_of_filter,
    rdb_of_loading, same_dump, windowed, windowed_counter,
};

fn filter(capacity: u64, expansion: u32, items: u32) -> BloomFilter {
    let params = bloom::Params { error_rate: 0.01, capacity, expansion, seed: 7 };
    values::filter(params, BitLayout::Lines, items)
}

/// An exact counter, an estimate with few taken slots, and an estimate with many.
fn counters() -> [Counter; 3] {
    [counter(0.01, 250, 40), counter(0.005, 10, 40), counter(0.05, 10, 3_000)]
}

/// The error of loading a damaged dump.
fn error<T: Value>(chunks: Dump) -> Option<Error> {
    persist::load::<T, _>(chunks, &Unlimited).err()
}

fn assert_every_truncation_is_rejected<T: Value>(value: &T) {
    let dump = dump_of(value);
    for chunk in 0..dump.len() {
        let (_, bytes) = &dump[chunk];
        for len in (0..bytes.len()).step_by(1 + bytes.len() / 200) {
            let mut cut = dump.clone();
            cut[chunk].1.truncate(len);
            assert!(matches!(error::<T>(cut), Some(Error::Corrupt { .. })), "chunk {chunk} cut to {len}");
        }
        let mut missing = dump.clone();
        missing.remove(chunk);
        assert!(matches!(error::<T>(missing), Some(Error::Corrupt { .. })), "chunk {chunk} missing");
        let mut twice = dump.clone();
        twice.insert(chunk, dump[chunk].clone());
        assert!(matches!(error::<T>(twice), Some(Error::Corrupt { .. })), "chunk {chunk} twice");
    }
}

fn assert_every_flipped_bit_is_rejected<T: Value>(value: &T) {
    let dump = dump_of(value);
    for chunk in 0..dump.len() {
        for bit in (0..dump[chunk].1.len() * 8).step_by(1 + dump[chunk].1.len() / 100) {
            let mut flipped = dump.clone();
            flipped[chunk].1[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(error::<T>(flipped), Some(Error::Corrupt { .. })), "chunk {chunk}, bit {bit}");
        }
    }
}

#[test]
fn damage_is_rejected() {
    for filter in [filter(100, 2, 100), filter(100, 2, 1000), filter(100, 2, 3000)] {
        assert_every_truncation_is_rejected(&filter);
        assert_every_flipped_bit_is_rejected(&filter);
    }
    let of_time = Windowing::new(86_400, 4, ClockSource::System, false).unwrap();
    let params = bloom::Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 7 };
    for filter in [windowed(params, of_time, &[10, 20, 0, 70, 5]), windowed(params, of_time, &[500, 2000, 3000])] {
        assert_every_truncation_is_rejected(&filter);
        assert_every_flipped_bit_is_rejected(&filter);
    }
    let more = [counter(0.01, 1000, 500), counter(0.0025, 0, 2000), counter(0.01, 10, 5000)];
    let params = |error_rate, exact_limit| counting::Params { error_rate, exact_limit, exact_bytes: 16_384, seed: 7 };
    let with_windows = [
        windowed_counter(params(0.01, 2000), 12, ClockSource::System, &[500, 400]),
        windowed_counter(params(0.05, 0), 24, ClockSource::Manual, &[3000, 1000, 500]),
        windowed_counter(params(0.0025, 10), 24, ClockSource::Manual, &[60_000, 50_000]),
    ];
    for counter in counters().into_iter().chain(more).chain(with_windows) {
        assert_every_truncation_is_rejected(&counter);
        assert_every_flipped_bit_is_rejected(&counter);
    }
}

#[test]
fn pieces_of_another_value_do_not_fit() {
    let ours = dump_of(&filter(10_000, 2, 1000));
    let theirs = dump_of(&filter(20_000, 2, 1000));
    let mixed = vec![ours[0].clone(), theirs[1].clone()];
    assert!(matches!(error::<BloomFilter>(mixed), Some(Error::Corrupt { .. })));
}

/// A size limit that allows everything, and records the largest number of bytes that was asked for.
#[derive(Default)]
struct Recording(std::cell::Cell<u64>);

impl SizeLimit for Recording {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        self.0.set(self.0.get().max(held_bytes + more_bytes));
        Ok(())
    }
}

/// A regression test: a header of one megabyte created a key of 274 MB, because only the bits were counted against the
/// limit.
#[test]
fn limits_are_checked_against_all_memory_of_a_filter() {
    // The memory of the bitmaps, plus the most that each sub-filter takes in addition.
    let taken = |filter: &BloomFilter| {
        let mut bitmaps = 0;
        filter.heap_layouts(&mut |layout| bitmaps += if layout.align() == 64 { layout.size() as u64 } else { 0 });
        (bitmaps, filter.sub_filters().len() as u64 * 64)
    };
    let params = bloom::Params { error_rate: 0.01, capacity: 10, expansion: 1, seed: 0 };
    let of_time = Windowing::new(300, 3, ClockSource::Manual, true).unwrap();
    let plain = |layout| move |limit: &Recording| BloomFilter::new(layout, params, limit).unwrap();
    let windowed = move |limit: &Recording| BloomFilter::windowed(params, of_time, 0, limit).unwrap();
    let makers: [&dyn Fn(&Recording) -> BloomFilter; 3] =
        [&plain(BitLayout::Lines), &plain(BitLayout::Classic), &windowed];
    for make in makers {
        let limit = Recording::default();
        let mut filter = make(&limit);
        // A new windowed filter is checked as if all its slices were full.
        if filter.windowing().is_some() {
            limit.0.set(0);
        }
        for item in 0..300u32 {
            filter.advance(u64::from(item / 100));
            filter.live(Time::Reached).add(item.to_le_bytes(), &limit).unwrap();
            let ((bytes, lists), checked) = (taken(&filter), limit.0.get());
            assert!((bytes..bytes + lists + 300).contains(&checked), "{checked} checked, {bytes} taken");
        }
        let loaded = Recording::default();
        let copy = persist::load::<BloomFilter, _>(persist::dump(&filter), &loaded).unwrap();
        assert!(filter.sub_filters().len() > 25 && copy == filter);
        let ((bytes, lists), header) = (taken(&filter), filter.header().len() as u64);
        assert!((bytes..bytes + lists + header + 500).contains(&loaded.0.get()), "{} checked", loaded.0.get());
        let mut rest = loaded.0.get();
        while rest > 0 {
            rest /= 2;
            let rejected = persist::load::<BloomFilter, _>(persist::dump(&filter), &MaxBytes(rest / 2));
            assert!(matches!(rejected, Err(Error::TooLarge { .. })));
        }
    }
}

/// A regression test: many short members took ten times the memory that was checked against the limit.
#[test]
fn limit_checks_of_members_include_their_index() {
    let params = |exact_limit| counting::Params { error_rate: 0.01, exact_limit, exact_bytes: 1 << 20, seed: 0 };
    for window in [None, Some(Window::new(600, 6, Counter::MAX_SLICES, ClockSource::Manual).unwrap())] {
        for members in [0u32, 1, 4, 5, 200, 255, 256, 5000, 65_536] {
            let plain = Counter::new(params(members.max(1))).unwrap();
            let mut counter =
                window.map_or(Ok(plain.try_clone().unwrap()), |window| plain.with_window(window, 0)).unwrap();
            for member in 0..members {
                let bytes = member.to_le_bytes();
                let short = &bytes[..4 - member.leading_zeros() as usize / 8];
                assert!(counter.live(Time::Reached).add(short, &Unlimited).unwrap());
            }
            let limit = Recording::default();
            let copy = persist::load::<Counter, _>(persist::dump(&counter), &limit).unwrap();
            assert!(copy.is_exact() && same_dump(&copy, &counter));
            // Lists allocate up to twice the needed memory.
            let (taken, checked) = (copy.size_bytes(), limit.0.get());
            assert!(taken <= 2 * checked + 200 && checked <= 3 * taken + 1000, "{checked} checked, {taken} taken");
        }
    }
}

/// Servers add up the sizes that values report at once. These equal the memory used.
#[test]
fn reported_bytes_of_a_counter_equal_its_memory() {
    for window in [None, Some(Window::new(600, 6, Counter::MAX_SLICES, ClockSource::Manual).unwrap())] {
        for members in [0u32, 3, 10, 11, 500, 5000, 100_000] {
            let params = counting::Params { error_rate: 0.01, exact_limit: 10, exact_bytes: 1 << 10, seed: 0 };
            let mut counter = match window {
                Some(window) => Counter::new(params).unwrap().with_window(window, 0).unwrap(),
                None => Counter::new(params).unwrap(),
            };
            (0..members).for_each(|member| {
                counter.live(Time::Reached).add(member.to_le_bytes(), &Unlimited).unwrap();
            });
            let (known, held) = (counter.num_bytes(), counter.size_bytes());
            // Bytes of the parameters, which other counters may share.
            let shared = 200;
            assert!(
                (held.saturating_sub(shared)..=held).contains(&known),
                "{known} known, {held} held of {members}, {window:?}"
            );
        }
    }
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let params = bloom::Params { error_rate: 0.01, capacity: 10, expansion: 2, seed: 0 };
        let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
        (0..1000u32).for_each(|item| {
            filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).unwrap();
        });
        assert_eq!(filter.num_bytes(), filter.size_bytes());
    }
}

/// Checks that a partially loaded value can be stored and completed afterwards, in every format.
fn assert_goes_on<T: Value>(value: &T, received_bytes: u64) {
    if value.payload().is_empty() {
        // The header already contains the whole payload.
        return;
    }
    let loading = cut_after(value, received_bytes);
    let stored: T::Partial = load_rdb(&rdb_of_loading(&loading)).unwrap();
    assert_eq!((stored.header(), stored.received_bytes()), (loading.header(), received_bytes));
    let mut rewritten = T::Partial::begin(loading.header(), &Unlimited).unwrap();
    for (next, chunk) in &dump_of_loading(&loading)[1..] {
        push_chunk(&mut rewritten, *next, chunk).unwrap();
    }
    for copy in [stored, rewritten, loading.try_clone().unwrap(), loading] {
        assert!(same_dump(&completed(copy, value), value), "cut after {received_bytes}");
    }
}

/// A transfer may be cut at any byte: within a position, within a part, or between parts and pieces of the payload.
/// Loading continues from there.
#[test]
fn loading_continues_from_any_byte() {
    // Values whose payloads have parts: segments with tags, a chain of sub-filters, and members.
    let params = counting::Params { error_rate: 0.0025, exact_limit: 0, exact_bytes: 16_384, seed: 7 };
    let estimate = windowed_counter(params, 60, ClockSource::Manual, &[50_000, 60_000]);
    assert!(estimate.payload().len() > 50_000);
    for end in [0, 1, 5, 4001, 40_003, estimate.payload().len() - 1] {
        assert_goes_on(&estimate, end);
    }
    let exact = counter(0.01, 6000, 5000);
    assert!(exact.is_exact() && exact.payload().len() > 48 << 10);
    (0..exact.payload().len()).step_by(997).for_each(|end| assert_goes_on(&exact, end));
    let chain = filter(100, 2, 3000);
    (0..chain.payload().len()).step_by(113).for_each(|end| assert_goes_on(&chain, end));
}

/// If the number of payload bytes is reduced, a complete value would become a partially loaded one.
#[test]
fn a_length_changed_in_an_rdb_value_is_rejected() {
    use rollcall_fuzz::fields::Field::Unsigned;
    for counter in [counter(0.01, 6000, 5000), counter(0.01, 7000, 6000)] {
        let mut fields = rdb_of(&counter);
        let Unsigned(length) = fields[1] else { panic!("{:?}", fields[1]) };
        for wrong in [0, length - 1, length + 1, u64::MAX] {
            fields[1] = Unsigned(wrong);
            let rejected = load_rdb::<PartialCounter>(&fields).err();
            assert!(matches!(rejected, Some(Error::Corrupt { field: "payload length checksum", .. })), "{rejected:?}");
        }
    }
}

/// For a key with a name of 9 bytes, an RDB file has 23 or 24 bytes that the server writes. With them, RedisBloom's
/// full filter of 100 items takes 208 bytes, and a set of one member of 12 bytes takes 25.
#[test]
fn small_values_take_few_bytes() {
    let bytes = |fields: &[rollcall_fuzz::fields::Field]| match fields {
        [rollcall_fuzz::fields::Field::String(bytes)] => bytes.len(),
        _ => panic!("more than one field"),
    };
    let params = bloom::Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 0 };
    let mut full = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
    for item in 0..100u32 {
        full.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).unwrap();
    }
    assert_eq!((full.sub_filters().len(), bytes(&rdb_of_filter(&full))), (1, 144));
    let mut one = Counter::new(counting::Params::default()).unwrap();
    one.live(Time::Reached).add("twelve bytes", &Unlimited).unwrap();
    assert_eq!(bytes(&rdb_of(&one)), 20);
}
