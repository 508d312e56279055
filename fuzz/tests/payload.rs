//! Tests of encoding and decoding `DUMP` payloads.

use rollcall_fuzz::fields::Field;
use rollcall_fuzz::payload::{Form, decode, encode, encode_as};

#[test]
fn payloads_are_taken_apart_as_they_were_put_together() {
    let lengths = [0, 63, 64, 16_383, 16_384, 0xffff_ffff, 0x1_0000_0000, u64::MAX].map(Field::Unsigned);
    let numbers = ["0", "-128", "128", "-32768", "32768", "2147483647", "2147483648", "007", "-0", "+1"];
    let strings = numbers.map(|text| Field::String(text.into()));
    let others = [Field::Double(-0.1), Field::String(Vec::new()), Field::String(vec![7; 20_000])];
    let fields: Vec<Field> = lengths.into_iter().chain(strings).chain(others).collect();
    for form in [Form::Usual, Form::Wide, Form::Compressed] {
        let payload = encode_as("RCfilter-", 1, &fields, || form);
        assert_eq!(decode(&payload), Some(("RCfilter-".to_owned(), 1, fields.clone())), "{form:?}");
        assert_eq!(decode(&payload[1..]), None);
    }
    assert_eq!(decode(&encode_as("RCfilter-", 1, &fields, || Form::Claiming(3))), None);
    // Every byte of the empty value of `MBbloom--`, encoding version 4.
    let empty = encode("MBbloom--", 4, &[]);
    assert_eq!(empty[..12], [7, 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 4, 0, 10]);
}

/// The number of bytes in which a server without compression stores a string, after the opcode.
#[test]
fn strings_of_digits_are_stored_as_numbers() {
    let bytes_of = |text: &str| encode("RCfilter-", 1, &[Field::String(text.into())]).len() - 10 - 1 - 1 - 10;
    for (text, bytes) in [("7", 2), ("-129", 3), ("70000", 5), ("2147483648", 11), ("007", 4), ("-0", 3), ("", 1)] {
        assert_eq!(bytes_of(text), bytes, "{text}");
    }
}
