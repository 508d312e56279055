//! `DUMP` payloads of module values, encoded and decoded as a server does.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | 7: a value of a module's data type |
//! | 9 | 0x81 and the module id, big-endian: nine characters of six bits, the type's name; ten bits of encoding version |
//! | - | each primitive: its opcode (2 unsigned, 4 double, 5 string), then a length, 8 bytes, or a length and as many bytes |
//! | 1 | 0: the end |
//! | 2 | RDB version |
//! | 8 | CRC-64 of all before |

use super::fields::Field;

const MODULE_VALUE: u8 = 7;
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// RDB version of the payloads that are made here: that of Redis 7.0, which every supported server reads.
const RDB_VERSION: u16 = 10;

/// The characters of a type's name, in the order of their numbers.
const NAME_CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The payload of a value, strings uncompressed.
pub fn encode(type_name: &str, encoding: u64, fields: &[Field]) -> Vec<u8> {
    let digit = |c| NAME_CHARACTERS.iter().position(|&other| other == c).expect("a character of names") as u64;
    let name = type_name.bytes().fold(0, |number, character| number << 6 | digit(character));
    let mut bytes = vec![MODULE_VALUE, 0x81];
    bytes.extend((name << 10 | encoding).to_be_bytes());
    for field in fields {
        match field {
            Field::Unsigned(value) => {
                push_length(&mut bytes, UNSIGNED);
                push_length(&mut bytes, *value);
            }
            Field::Double(value) => {
                push_length(&mut bytes, DOUBLE);
                bytes.extend(value.to_le_bytes());
            }
            Field::String(string) => {
                // A server writes a string of digits as a number, which this encoder does not do.
                let spells_a_number = std::str::from_utf8(string).is_ok_and(|text| text.parse::<i64>().is_ok());
                assert!(!spells_a_number);
                push_length(&mut bytes, STRING);
                push_length(&mut bytes, string.len() as u64);
                bytes.extend(string);
            }
        }
    }
    push_length(&mut bytes, END);
    bytes.extend(RDB_VERSION.to_le_bytes());
    bytes.extend(crc64(&bytes).to_le_bytes());
    bytes
}

/// A length as RDB files have it, in as few bytes as possible.
fn push_length(bytes: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => bytes.push(length as u8),
        0x40..0x4000 => bytes.extend((0x4000 | length as u16).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            bytes.push(0x80);
            bytes.extend((length as u32).to_be_bytes());
        }
        _ => {
            bytes.push(0x81);
            bytes.extend(length.to_be_bytes());
        }
    }
}

/// Type name, encoding version and fields of a payload; `None` when the bytes are no such payload.
pub fn decode(payload: &[u8]) -> Option<(String, u64, Vec<Field>)> {
    let (value, sum) = payload.split_last_chunk::<8>()?;
    let (value, version) = value.split_last_chunk::<2>()?;
    let is_whole = crc64(&payload[..payload.len() - 8]) == u64::from_le_bytes(*sum);
    if !is_whole || u16::from_le_bytes(*version) != RDB_VERSION {
        return None;
    }
    let mut rest = value.strip_prefix(&[MODULE_VALUE])?;
    let id = take_length(&mut rest)?;
    let name = (0..9).rev().map(|at| char::from(NAME_CHARACTERS[(id >> (10 + 6 * at) & 63) as usize]));
    let mut fields = Vec::new();
    loop {
        fields.push(match take_length(&mut rest)? {
            UNSIGNED => Field::Unsigned(take_length(&mut rest)?),
            DOUBLE => Field::Double(f64::from_le_bytes(take(&mut rest)?)),
            STRING => {
                let length = usize::try_from(take_length(&mut rest)?).ok()?;
                Field::String(rest.split_off(..length)?.to_vec())
            }
            END => return rest.is_empty().then(|| (name.collect(), id & 1023, fields)),
            _ => return None,
        });
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(*first)
}

fn take_length(rest: &mut &[u8]) -> Option<u64> {
    let [first] = take(rest)?;
    match first >> 6 {
        0 => Some(u64::from(first)),
        1 => take(rest).map(|[second]| u64::from(first & 63) << 8 | u64::from(second)),
        _ if first == 0x80 => take(rest).map(|bytes| u64::from(u32::from_be_bytes(bytes))),
        _ if first == 0x81 => take(rest).map(u64::from_be_bytes),
        _ => None,
    }
}

/// CRC-64 as Redis computes it: Jones' polynomial, bits reflected, nothing inverted.
fn crc64(bytes: &[u8]) -> u64 {
    const REFLECTED: u64 = 0xad93_d235_94c9_35a9_u64.reverse_bits();
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ REFLECTED } else { crc >> 1 })
    })
}

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
    // The empty value of `MBbloom--`, encoding version 4, byte for byte.
    let empty = encode("MBbloom--", 4, &[]);
    assert_eq!(empty[..12], [7, 0x81, 0x30, 0x16, 0xe5, 0xa2, 0x89, 0xbe, 0xf8, 4, 0, 10]);
}
