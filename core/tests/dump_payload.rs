//! Tests values in `DUMP` payloads as servers write them: with compressed strings and with strings that spell numbers.
//! `golden.rs` reads a payload of every kind of value.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::counting::Counter;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::wire::{TYPE_OF_CLASSIC, TYPE_OF_COUNTERS, TYPE_OF_LINES};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::payload::{self, forge, module_value, split};
use rollcall_fuzz::values::{rdb_of, rdb_of_filter, same_dump};

fn counter(members: u32) -> Counter {
    (0..members).map(|member| format!("member:{member}")).collect()
}

fn payload_of(counter: &Counter) -> Vec<u8> {
    payload::encode(TYPE_OF_COUNTERS, 1, &rdb_of(counter))
}

/// The error of a payload that is read as a counter.
fn rejected(payload: &[u8]) -> String {
    persist::from_bytes::<Counter>(payload, &Unlimited).map(|counter| counter.count()).unwrap_err().to_string()
}

#[test]
fn any_rdb_version_is_taken() {
    let counter = counter(20);
    for version in [0, 9, 12, 15, 80, u16::MAX] {
        let payload = payload_of(&counter);
        let forged = forge(split(&payload).0, &version.to_le_bytes());
        assert!(same_dump(&persist::from_bytes::<Counter>(&forged, &Unlimited).unwrap(), &counter));
    }
}

#[test]
fn every_changed_bit_and_every_cut_is_found() {
    for members in [3, 400] {
        let payload = payload_of(&counter(members));
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(!rejected(&changed).is_empty());
            assert!(!rejected(&payload[..at]).is_empty());
        }
        assert!(rejected(&payload[..payload.len() - 1]).starts_with("CRC-64: expected 0x"));
    }
}

/// Reads the payload with each of its bits changed, and cut at each byte, under a right checksum.
fn is_read_right_or_not_at_all<T: Value>(type_name: &str, original: &T) {
    let payload = payload::encode(type_name, 1, &rdb_of(original));
    let (value, version) = split(&payload);
    let is_other = |value: &[u8]| {
        let read = persist::from_bytes::<T>(&forge(value, version), &Unlimited);
        read.is_ok_and(|read| !same_dump(&read, original))
    };
    assert!(!is_other(value));
    for at in 0..value.len() {
        assert!(!is_other(&value[..at]), "{at}");
        let mut changed = value.to_vec();
        for bit in 0..8 {
            changed[at] = value[at] ^ 1 << bit;
            assert!(!is_other(&changed), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn damage_under_a_right_checksum_is_found() {
    let window = Window::new(100, 5, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let windowed = |members| {
        let mut windowed = Counter::new(Default::default()).unwrap().with_window(window, 7).unwrap();
        windowed.live(Time::Reached).extend((0..members).map(|member: u32| member.to_string()));
        windowed
    };
    for counter in [counter(3), counter(400), windowed(30), windowed(400)] {
        is_read_right_or_not_at_all(TYPE_OF_COUNTERS, &counter);
    }
    for capacity in [10, 1000] {
        let params = Params { error_rate: 0.01, capacity, expansion: 2, seed: 0 };
        let mut filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
        filter.live(Time::Reached).extend((0..30u32).map(u32::to_le_bytes));
        is_read_right_or_not_at_all(TYPE_OF_LINES, &filter);
    }
}

/// A string: its opcode, the form, the lengths, the bytes.
fn compressed(len: u32, bytes: &[u8]) -> Vec<u8> {
    let lengths = [bytes.len() as u32, len].map(u32::to_be_bytes);
    [&[5, 0xc3, 0x80][..], &lengths[0], &[0x80], &lengths[1], bytes].concat()
}

#[test]
fn compressed_strings_are_read_and_their_length_is_bounded() {
    let value = |string: &[u8]| forge(&[&module_value(TYPE_OF_COUNTERS, 1), string, &[0]].concat(), &[12, 0]);
    let counter = counter(20);
    let [rollcall_fuzz::fields::Field::String(header)] = &rdb_of(&counter)[..] else { panic!("not inline") };
    // A run of literals: its length less 1, and the bytes.
    let literals: Vec<u8> = header.chunks(32).flat_map(|run| [&[run.len() as u8 - 1], run].concat()).collect();
    let read = persist::from_bytes::<Counter>(&value(&compressed(header.len() as u32, &literals)), &Unlimited).unwrap();
    assert!(same_dump(&read, &counter));
    for len in [header.len() as u32 - 1, header.len() as u32 + 1] {
        assert!(rejected(&value(&compressed(len, &literals))).starts_with("header: expected"), "{len}");
    }
    // A length that so few bytes cannot have is rejected before its memory is allocated. So is what the limit forbids.
    let error = rejected(&value(&compressed(u32::MAX, &literals)));
    let most = literals.len() * 88;
    assert_eq!(error, format!("header: expected at most {most} bytes, got {}", u32::MAX));
    let len = header.len() as u64;
    let limited = persist::from_bytes::<Counter>(&value(&compressed(len as u32, &literals)), &MaxBytes(len - 1));
    assert_eq!(limited.unwrap_err().to_string(), format!("{len} bytes needed, more than the limit of {}", len - 1));
}

#[test]
fn strings_that_spell_numbers_are_read() {
    let cases = [
        (&[0xc0, 0x85][..], "header length: expected at least 5 bytes, got 4"),
        (&[0xc1, 0x39, 0x30], "kind: expected 0xc1, got 0x31"),
        (&[0xc2, 0x15, 0xcd, 0x5b, 7], "kind: expected 0xc1, got 0x31"),
        (&[0xc4, 0], "header: expected a string, got 0xc4"),
    ];
    // No header is such a string, so the error is about the text: -123, 12345 and 123456789.
    for (form, expected) in cases {
        let string = [&module_value(TYPE_OF_COUNTERS, 1), &[5][..], form, &[0]].concat();
        assert_eq!(rejected(&forge(&string, &[12, 0])), expected);
    }
}

#[test]
fn each_error_names_what_is_wrong() {
    let fields = rdb_of(&counter(20));
    let of = |name, encoding| payload::encode(name, encoding, &fields);
    let whole = of(TYPE_OF_COUNTERS, 1);
    let (value, version) = split(&whole);
    let without_end = forge(&value[..value.len() - 1], version);
    let longer = forge(&[value, b"0"].concat(), version);
    let number = forge(&[&module_value(TYPE_OF_COUNTERS, 1)[..], &[2, 7, 0]].concat(), version);
    let cases = [
        (of(TYPE_OF_COUNTERS, 2), "encoding version: expected 1, got 2"),
        (of(TYPE_OF_LINES, 1), "expected a counter, got a filter"),
        (of(TYPE_OF_CLASSIC, 4), "expected a counter, got a filter"),
        (of("MBbloomCF", 4), "expected a counter, got a value of another type"),
        // A string of a server, with the same checksum.
        (forge(b"\0\x05hello", version), "expected a counter, got a value of another type"),
        (without_end, "end: expected 1 bytes, got 0 left"),
        (longer, "length after the end: expected 0, got 1"),
        (number, "header: expected opcode 5, got 2"),
        (b"something else".to_vec(), "no file of filters and counters"),
        (Vec::new(), "no file of filters and counters"),
    ];
    for (payload, expected) in cases {
        assert_eq!(rejected(&payload), expected);
    }
}

#[test]
fn filters_of_both_layouts_are_read_within_their_limit() {
    for (layout, name, encoding) in [(BitLayout::Lines, TYPE_OF_LINES, 1), (BitLayout::Classic, TYPE_OF_CLASSIC, 4)] {
        let mut filter = BloomFilter::new(layout, Params::default(), &Unlimited).unwrap();
        filter.live(Time::Reached).extend((0..500u32).map(u32::to_le_bytes));
        let payload = payload::encode(name, encoding, &rdb_of_filter(&filter));
        assert!(persist::from_bytes::<BloomFilter>(&payload, &Unlimited).unwrap() == filter);
        let error = persist::from_bytes::<BloomFilter>(&payload, &MaxBytes(200)).unwrap_err().to_string();
        assert!(error.contains("more than the limit of 200"), "{error}");
        let error = persist::from_bytes::<Counter>(&payload, &Unlimited).unwrap_err().to_string();
        assert_eq!(error, "expected a counter, got a filter");
    }
}
