//! Tests headers field by field: their content, and the errors for damaged headers with a correct checksum.
//! docs/persistence.md describes the format.

use std::ops::Range;

use proptest::prelude::*;
use rollcall_core::bloom::{self, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::error::{Error, Parameter};
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::checksum;
use rollcall_core::unstable::persist::{Partial, piece_checksum};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::values::{self, Dump, counter, load_rdb, rdb_of_loading, same_dump, windowed};

fn filter(capacity: u64, expansion: u32, items: u32) -> BloomFilter {
    let params = bloom::Params { error_rate: 0.01, capacity, expansion, seed: 7 };
    values::filter(params, bloom::BitLayout::Lines, items)
}

/// The error of loading a damaged dump.
fn error<T: Value>(chunks: Dump) -> Option<Error> {
    persist::load::<T, _>(chunks, &Unlimited).err()
}

/// A filter with a window of a day in four slices. Its five live generations have 10, 20, no, 70 and 5 items, oldest
/// first; the fourth one has grown.
fn of_a_day(clock_source: ClockSource) -> BloomFilter {
    let params = bloom::Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 7 };
    windowed(params, Windowing::new(86_400, 4, clock_source, false).unwrap(), &[10, 20, 0, 70, 5])
}

/// Replaces `range` in a header and corrects the checksum, so that only the checks of the fields can reject the header.
fn forged(header: &[u8], range: Range<usize>, bytes: &[u8]) -> Vec<u8> {
    let mut body = header[..header.len() - 4].to_vec();
    body.splice(range, bytes.iter().copied());
    let sum = checksum(&body, 0) as u32;
    body.extend_from_slice(&sum.to_le_bytes());
    body
}

/// A rate in the long notation of headers, which can represent any double.
fn long_rate(rate: f64) -> Vec<u8> {
    [&[0][..], &rate.to_bits().to_le_bytes()].concat()
}

/// The largest 64-bit number, in the encoding of headers.
const LARGEST: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";

fn rejected_field<T: Value>(header: Vec<u8>) -> &'static str {
    match error::<T>(vec![(1, header)]) {
        Some(Error::Corrupt { field, .. }) => field,
        other => panic!("expected a named field, got {other:?}"),
    }
}

/// A range of a header, the bytes that replace it, and the field that the error names.
type Case<'a> = (Range<usize>, &'a [u8], &'static str);

fn check_cases<T: Value>(header: &[u8], cases: &[Case]) {
    for (range, bytes, field) in cases {
        assert_eq!(rejected_field::<T>(forged(header, range.clone(), bytes)), *field, "at {range:?}: {bytes:?}");
    }
}

#[test]
fn forged_filter_headers_are_rejected_by_field() {
    let header = filter(100, 2, 1000).header();
    assert_eq!(header[..8], *b"\xf1\x02\x01\x64\x02\x07\x04\x02");
    let cases: &[Case] = &[
        (0..1, b"\xf2", "version"),
        (0..1, b"\xf0", "version"),
        // No kind of filter has this first byte, and RedisBloom's headers have no kind byte.
        (0..1, b"\xc1", "header length"),
        (1..3, &long_rate(f64::NAN), "error rate"),
        (1..3, b"\x01\x0a", "error rate"),
        (1..3, &long_rate(-0.5), "error rate"),
        (1..3, &long_rate(0.01), "error_rate"),
        (1..3, b"\x0a\x01", "error_rate"),
        (3..4, b"\0", "capacity"),
        (3..4, LARGEST, "capacity"),
        (3..4, b"\xe4\0", "capacity"),
        (4..5, b"\xc0\xb8\x02", "expansion"),
        (4..5, LARGEST, "expansion"),
        (4..5, b"\0", "number of sub-filters"),
        (6..7, b"\0", "number of sub-filters"),
        (6..7, b"\x81\x08", "number of sub-filters"),
        (6..7, b"\x80\x08", "header length"),
        (6..7, b"\x05", "num_lines"),
        (7..8, LARGEST, "num_lines"),
        (8..9, LARGEST, "num_items"),
        (8..9, b"\x81\x0c", "num_items"),
        (9..10, b"\x02", "lines_per_item"),
    ];
    check_cases::<BloomFilter>(&header, cases);
    // The form and the length of the payload.
    let (empty, end) = (filter(10, 2, 0).header(), header.len() - 4);
    assert_eq!(empty, forged(&empty, 0..12, b"\xf1\x02\x01\x0a\x02\x07\x01\x01\0\x01\x07\x02"));
    let cases: &[Case] = &[
        (11..12, &b"\x03"[..], "payload form"),
        (11..12, b"\x01", "payload length"),
        (11..13, b"\0\0", "header length"),
        (12..13, b"\x01", "coded payload"),
        (12..13, b"\0\0", "coded payload"),
    ];
    check_cases::<BloomFilter>(&empty, cases);
    assert_eq!(rejected_field::<BloomFilter>(forged(&header, end..end, b"\0")), "payload length");
    assert_eq!(rejected_field::<BloomFilter>(forged(&header, end - 1..end, b"")), "payload length");
    // A header of a few bytes must not cause an allocation of many megabytes.
    let params = bloom::Params { error_rate: 0.01, capacity: 2_000_000, expansion: 0, seed: 0 };
    let large = BloomFilter::new(bloom::BitLayout::Lines, params, &Unlimited).unwrap().header();
    let form = large.len() - 5;
    assert_eq!(rejected_field::<BloomFilter>(forged(&large, form..form + 1, b"\x02\0")), "payload length");
}

#[test]
fn forged_headers_of_windowed_filters_are_rejected_by_field() {
    let header = of_a_day(ClockSource::System).header();
    // The fields of the header: rate, capacity, expansion, seed, window, slices, flags, newest slice, number of
    // generations. Each generation has its age, renewed items and number of sub-filters. Each sub-filter has lines,
    // items, lines per item and probes per line. The form of the payload is last.
    assert_eq!(header[..14], *b"\xe1\x02\x01\x64\x02\x07\x80\xa3\x05\x04\0\xec\x07\x04");
    assert_eq!(header[14..21], [4, 0, 1, 1, 10, 2, 5]);
    assert_eq!(header[21..28], [3, 0, 1, 1, 20, 2, 5]);
    assert_eq!(header[28..39], [1, 0, 2, 1, 25, 2, 5, 2, 45, 2, 6]);
    assert_eq!(header[39..47], [0, 0, 1, 1, 5, 2, 5, 1]);
    let cases: &[Case] = &[
        (0..1, b"\xe2", "version"),
        (0..1, b"\xe0", "version"),
        (1..3, &long_rate(f64::NAN), "error rate"),
        (1..3, b"\x01\x0a", "error rate"),
        (1..3, &long_rate(0.01), "error_rate"),
        // The rate is so low that a generation's share of it is not a valid rate.
        (1..3, &long_rate(f64::from_bits(1)), "error rate"),
        (3..4, b"\0", "capacity"),
        (3..4, LARGEST, "capacity"),
        (3..4, b"\xe4\0", "capacity"),
        (4..5, b"\0", "expansion"),
        (4..5, LARGEST, "expansion"),
        (4..5, b"\x04", "num_lines"),
        (5..6, b"\x87\0", "seed"),
        (6..9, b"\0", "window"),
        // A window of 9 seconds cannot be divided into four equal slices of whole seconds.
        (6..9, b"\x09", "slices"),
        (6..9, b"\x03", "slices"),
        (6..9, LARGEST, "window"),
        (6..9, b"\x81\x80\x80\x80\x80\x20", "window"),
        (9..10, b"\0", "slices"),
        (9..10, b"\x41", "slices"),
        (9..10, LARGEST, "slices"),
        (10..11, b"\x05", "flags"),
        (10..11, b"\xff", "flags"),
        (10..11, b"\x02", "num_lines"),
        (11..13, b"\xec\x87\0", "newest slice"),
        (13..14, b"\x03", "header length"),
        (13..14, b"\x06", "number of generations"),
        (13..14, LARGEST, "number of generations"),
        (14..15, b"\x05", "age of a generation"),
        (14..15, b"\x03", "age of a generation"),
        (14..15, LARGEST, "age of a generation"),
        (39..40, b"\x01", "age of a generation"),
        (15..16, b"\x0b", "renewed items"),
        (15..16, LARGEST, "renewed items"),
        // The number of renewed items exceeds the items of both sub-filters.
        (29..30, b"\x47", "renewed items"),
        (16..17, b"\0", "number of sub-filters"),
        (16..17, b"\x81\x08", "number of sub-filters"),
        (16..17, b"\x80\x08", "header length"),
        (17..18, b"\x02", "num_lines"),
        (17..18, LARGEST, "num_lines"),
        (18..19, b"\x81\x04", "num_items"),
        (18..19, LARGEST, "num_items"),
        (19..20, b"\x01", "lines_per_item"),
        (20..21, b"\x06", "probes_per_line"),
        (46..47, b"\x03", "payload form"),
        (46..47, b"\0", "header length"),
        (47..48, b"", "payload length"),
    ];
    check_cases::<BloomFilter>(&header, cases);
    // Valid changes: a manual clock, a volatile window, the largest numbers of renewed items, and a newest generation
    // that is empty.
    for (range, bytes) in
        [(10..11, &b"\x01"[..]), (10..11, b"\x04"), (15..16, b"\x0a"), (29..30, b"\x46"), (39..40, b"\0")]
    {
        let forged = forged(&header, range, bytes);
        let loaded = persist::load::<BloomFilter, _>([(1, &forged)], &Unlimited).unwrap();
        assert_eq!(loaded.header(), forged);
    }
    assert_eq!(forged(&header, 10..11, b"\x01"), of_a_day(ClockSource::Manual).header());
    // Windows that are counted in items and have no seconds. This version does not support them.
    for of_last in [b"\0\x07\0\x04\0", b"\0\x07\0\0\x02"] {
        let rejected = persist::load::<BloomFilter, _>([(1, &forged(&header, 4..11, of_last))], &Unlimited).err();
        let expected = "window: expected from 1 to 1099511627776 seconds, got 0";
        assert_eq!(rejected.map(|error| error.to_string()).as_deref(), Some(expected));
    }
}

/// A window has the least number of slices of its length that cover it. A header with another number is rejected.
#[test]
fn slices_that_a_window_does_not_need_are_rejected() {
    let params = bloom::Params { error_rate: 0.01, capacity: 100, expansion: 2, seed: 7 };
    let of_filter = windowed(params, Windowing::new(65, 64, ClockSource::Manual, false).unwrap(), &[0]).header();
    let of_counter = windowed_counter(counting_params(), 65, 64);
    assert_eq!(of_filter[6..8], [65, 33]);
    assert_eq!(of_counter[8..10], [65, 33]);
    for slices in 1..=64u8 {
        let needed = 65u8.div_ceil(65u8.div_ceil(slices));
        let filter = persist::load::<BloomFilter, _>([(1, &forged(&of_filter, 7..8, &[slices]))], &Unlimited);
        let counter = persist::load::<Counter, _>([(1, &forged(&of_counter, 9..10, &[slices]))], &Unlimited);
        for rejected in [filter.err(), counter.err()] {
            match rejected {
                None => assert_eq!(slices, needed),
                Some(Error::Corrupt { field, .. }) => assert!(field == "slices" && slices != needed, "{slices}"),
                Some(other) => panic!("{other:?}"),
            }
        }
    }
}

fn counting_params() -> counting::Params {
    counting::Params { error_rate: 0.01, exact_limit: 20, exact_bytes: 200, seed: 0 }
}

fn windowed_counter(params: counting::Params, seconds: u64, slices: u32) -> Vec<u8> {
    let window = Window::new(seconds, slices, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    Counter::new(params).unwrap().with_window(window, 0).unwrap().header()
}

/// A damaged header may claim a newest slice far in the future. The filter can be used, and moves back when the clock
/// is asked.
#[test]
fn a_slice_beyond_all_time_is_only_a_number() {
    let last = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    let header = forged(&of_a_day(ClockSource::System).header(), 11..13, last);
    for seconds in [0, 1_004 * 21_600, u64::MAX] {
        let now = Time::At(seconds);
        let mut filter: BloomFilter = persist::load([(1, &header)], &Unlimited).unwrap();
        assert_eq!((filter.newest_slice(), filter.present_slice(now)), (Some(u64::MAX), Some(u64::MAX)));
        assert!(filter.at(now).may_contain(b"item:0"));
        assert_eq!((filter.num_items(), filter.at(now).num_items()), (105, 105));
        let other = filter.try_clone().unwrap();
        assert_eq!(filter.live(Time::Reached).merge(&[&other, &of_a_day(ClockSource::System)], &Unlimited), Ok(false));
        assert!(of_a_day(ClockSource::System).merging(&[&filter], now).is_err());
        assert!(filter.live(now).add(b"new", &Unlimited).unwrap() && filter.at(now).may_contain(b"item:0"));
        assert_eq!(filter.newest_slice(), Some(seconds / 21_600));
        let again: BloomFilter = persist::load(persist::dump(&filter), &Unlimited).unwrap();
        assert!(again == filter);
    }
}

/// Sizes that follow from huge parameters are added up without overflow, and rejected before memory is allocated.
#[test]
fn sizes_of_all_generations_are_checked_before_they_are_allocated() {
    for (window, slices, expansion, len) in [(1u64 << 40, 64u64, 1u32, 1u64), (100, 2, 1024, 2)] {
        let capacity = bloom::Params::MAX_CAPACITY;
        let params = bloom::Params { error_rate: 0.01 / (slices + 1) as f64, capacity, expansion, seed: 0 };
        let mut body = b"\xe1\x02\x01".to_vec();
        let fields = [capacity, expansion.into(), 0, window, slices, 2, 0, slices + 1];
        fields.into_iter().for_each(|field| push_number(&mut body, field));
        for age in (0..=slices).rev() {
            [age, u64::MAX, len].into_iter().for_each(|field| push_number(&mut body, field));
            for index in 0..len {
                let geometry = bloom::sizing::sub_filter_geometry(&params, index).unwrap();
                let shape = [geometry.lines_per_item, geometry.probes_per_line].map(u64::from);
                let items = [geometry.num_lines, u64::MAX].into_iter();
                items.chain(shape).for_each(|field| push_number(&mut body, field));
            }
        }
        body.push(0);
        let header = forged(&[body, vec![0; 4]].concat(), 0..0, b"");
        for limit in [1, 1 << 20, 1 << 40] {
            let rejected = persist::load::<BloomFilter, _>([(1, &header)], &MaxBytes(limit));
            assert!(
                matches!(rejected, Err(Error::TooLarge { needed_bytes, .. }) if needed_bytes > 1 << 40),
                "{rejected:?}"
            );
        }
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The limit on the number of sub-filters of a chain applies to all generations together.
#[test]
fn generations_share_the_sub_filters_that_there_may_be() {
    let params = bloom::Params { error_rate: 1e-6, capacity: 4, expansion: 1, seed: 7 };
    let mut filter = windowed(params, Windowing::new(400, 4, ClockSource::Manual, false).unwrap(), &[600]);
    filter.advance(1_001);
    let rejected = (0u32..).find_map(|item| filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).err());
    assert!(matches!(rejected, Some(Error::OutOfRange { parameter: Parameter::SubFilters, .. })), "{rejected:?}");
    assert_eq!(filter.sub_filters().len(), 1024);
    assert!(filter.header().len() < 1 << 16);
    assert!(same_dump(&persist::load(persist::dump(&filter), &Unlimited).unwrap(), &filter));
    // The number of sub-filters follows the age and the renewed items of the second generation. One more sub-filter
    // exceeds the limit.
    let header = filter.header();
    let second = header.windows(5).rposition(|bytes| bytes == [0, 0, 0xa8, 0x03, 0x01]).unwrap();
    assert_eq!(
        rejected_field::<BloomFilter>(forged(&header, second + 2..second + 4, b"\xa9\x03")),
        "number of sub-filters"
    );
    // The oldest generation expires, so that new sub-filters are allowed again.
    filter.advance(1_005);
    assert_eq!(filter.live(Time::Reached).add(b"more", &Unlimited), Ok(true));
}

#[test]
fn forged_counter_headers_are_rejected_by_field() {
    let header = counter(0.01, 250, 40).header();
    assert_eq!(header[..11], *b"\xc1\0\x02\x01\xfa\x01\x80\x80\x01\x07\x01");
    let cases: &[Case] = &[
        (0..1, b"\xc2", "version"),
        (0..1, b"\xf1", "kind"),
        (1..2, b"\x02", "representation"),
        (2..4, &long_rate(f64::INFINITY), "error rate"),
        (2..4, b"\x04\x01", "error rate"),
        (4..6, b"\xf0\xa2\x04", "exact limit"),
        (4..6, LARGEST, "exact_limit"),
        (6..9, b"\0", "exact bytes"),
        (6..9, b"\x81\x80\x40", "exact bytes"),
        (10..11, b"\x02", "payload form"),
        (10..11, b"\x03", "payload form"),
        (10..11, b"\0", "header length"),
        (11..12, b"\xff", "members"),
        (11..11, b"\0\0", "members"),
        (10..10, b"\x01\x80", "members"),
    ];
    check_cases::<Counter>(&header, cases);
    // The header claims a payload longer than any counter with these parameters has.
    let end = header.len() - 4;
    let out_of_line = |sum| rejected_field::<Counter>(forged(&header, 10..end, &[b"\0", LARGEST, sum].concat()));
    assert_eq!([out_of_line(&[0; 7]), out_of_line(&[0; 8])], ["members checksum", "payload length"]);
    // A counter that estimates: lower bound, number of segments, and number of taken slots in each.
    let estimate = counter(0.01, 10, 40);
    let (header, end) = (estimate.header(), estimate.header().len() - 4);
    assert_eq!(header[8..16], *b"\x07\x0b\x06\x14\x0d\x01\x04\x01");
    assert_eq!(header[16..18], *b"\x01\x01");
    let cases: &[Case] = &[
        (9..10, b"\x82\x80\x04", "lower bound"),
        // A counter without taken slots would be exact.
        (10..17, b"\0", "representation"),
        (10..11, b"\x18", "segments"),
        (16..17, b"\0", "marked slots"),
        (11..12, b"\x81\x20", "marked slots"),
        (11..12, LARGEST, "marked slots"),
        (17..18, b"\x02", "payload form"),
        (18..end, b"", "coded payload"),
        // The header claims one slot less than the payload has, and one more.
        (11..12, b"\x13", "coded payload"),
        (16..17, b"\x02", "coded payload"),
        (17..end, &[b"\0", LARGEST].concat(), "payload length"),
    ];
    check_cases::<Counter>(&header, cases);
    assert_eq!(rejected_field::<Counter>(forged(&header, end..end, b"\0")), "segments");
    assert_eq!(rejected_field::<Counter>(forged(&header, 9..end, b"\0\0\x01")), "representation");
}

/// A payload that is usually inline in the header may also be out of line, so that later versions may choose another
/// threshold.
#[test]
fn small_payloads_may_come_out_of_line() {
    let whole = filter(10, 2, 5);
    let header = whole.header();
    let bits: Vec<u8> = whole.chain().iter().flat_map(|one| one.as_bytes()).copied().collect();
    let out_of_line = forged(&header, 11..header.len() - 4, b"\0");
    let as_it_is = forged(&header, 11..header.len() - 4, &[b"\x01", &bits[..]].concat());
    assert!(same_dump(&persist::load::<BloomFilter, _>([(1, as_it_is)], &Unlimited).unwrap(), &whole));
    type Partial = <BloomFilter as Value>::Partial;
    let loading = Partial::begin(&out_of_line, &Unlimited).unwrap();
    assert_eq!((loading.total_bytes(), loading.received_bytes()), (64, 0));
    for end in 0..64 {
        let mut cut = Partial::begin(&out_of_line, &Unlimited).unwrap();
        cut.push(&bits[..end]).unwrap();
        let mut again: Partial = load_rdb(&rdb_of_loading(&cut)).unwrap();
        again.push(&bits[end..]).unwrap();
        assert!(same_dump(&again.finish().unwrap(), &whole));
    }
}

/// Members that are invalid, although their checksum is correct, are rejected.
#[test]
fn invalid_members_are_rejected() {
    let header = counter(0.01, 2, 2).header();
    let end = header.len() - 4;
    assert_eq!(header[..11], *b"\xc1\0\x02\x01\x02\x80\x80\x01\x07\x01\x09");
    for members in [&b"\x01a\x01a"[..], b"\x03ab", b"\x01a\x01b\x01c", b"\x81\0a", b"\x011", b"\xd2\x01u"] {
        assert_eq!(rejected_field::<Counter>(forged(&header, 10..end, members)), "members", "{members:?}");
        // The same invalid members, in a payload outside the header.
        let sum = checksum(members, 0);
        let fields = [&[0, members.len() as u8][..], &sum.to_le_bytes()].concat();
        let out_of_line = forged(&header, 9..end, &fields);
        let fingerprint = checksum(&header[..9], sum);
        let mut chunk = members.to_vec();
        chunk.extend_from_slice(&piece_checksum(members, 0, fingerprint).to_le_bytes());
        let next = 1 + members.len() as u64;
        let rejected = error::<Counter>(vec![(1, out_of_line), (next, chunk)]);
        assert!(matches!(rejected, Some(Error::Corrupt { field: "members", .. })), "{members:?}: {rejected:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever commands do, the stored counter loads: no lower bound that they lead to is rejected.
    #[test]
    fn counters_of_any_commands_load(
        commands in proptest::collection::vec((0u8..5, 0usize..5, 0usize..5, 0u32..400, 0u32..300), 1..30),
    ) {
        // Counters that never list members, with small and large limits, limited by bytes, and with a coarse layout.
        let shapes =
            [(0.02, 0, 1 << 14), (0.02, 250, 1 << 14), (0.01, 3, 1 << 14), (0.02, 65_536, 100), (0.25, 20, 1 << 20)];
        let mut all = shapes.map(|(error_rate, exact_limit, exact_bytes)| {
            Counter::new(counting::Params { error_rate, exact_limit, exact_bytes, seed: 7 }).unwrap()
        });
        for (command, to, from, first, more) in commands {
            match command {
                0 | 1 => {
                    let members: Vec<_> = (first..first + more).map(u32::to_le_bytes).collect();
                    all[to].live(Time::Reached).add_all(&members, &Unlimited, |_| {}).unwrap();
                }
                2 => {
                    let other = all[from].try_clone().unwrap();
                    all[to].live(Time::Reached).merge(&[&other], &Unlimited).unwrap();
                }
                3 => all[to] = Counter::union(&all[from], &[&all[to]], &Unlimited).unwrap(),
                _ => all[to] = all[to].new_like().unwrap(),
            }
            let loaded: Counter = persist::load(persist::dump(&all[to]), &Unlimited).unwrap();
            prop_assert!(same_dump(&loaded, &all[to]) && loaded.count() == all[to].count());
        }
    }
}
