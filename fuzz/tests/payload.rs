//! Tests of encoding and decoding `DUMP` payloads.

use rollcall_fuzz::fields::Field;
use rollcall_fuzz::payload::{crc64, decode, encode};

#[test]
fn crc64_is_the_servers() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}

#[test]
fn payloads_are_taken_apart_as_they_were_put_together() {
    let lengths = [0, 63, 64, 16_383, 16_384, 0xffff_ffff, 0x1_0000_0000, u64::MAX].map(Field::Unsigned);
    let others = [Field::Double(-0.1), Field::String(Vec::new()), Field::String(vec![7; 20_000])];
    let fields: Vec<Field> = lengths.into_iter().chain(others).collect();
    let payload = encode("RCfilter-", 1, &fields);
    assert_eq!(decode(&payload), Some(("RCfilter-".to_owned(), 1, fields)));
    assert_eq!(decode(&payload[1..]), None);
    // Every byte of the empty value of `MBbloom--`, encoding version 4.
    let empty = encode("MBbloom--", 4, &[]);
    assert_eq!(empty[..12], [7, 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 4, 0, 10]);
}
