//! `DUMP` payloads of module values, encoded and decoded as a server does.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | 7: a value of a module's data type |
//! | 9 | 0x81 and the module id, big-endian: nine characters of six bits (the type's name), ten bits of version |
//! | - | each primitive: its opcode (2 unsigned, 4 double, 5 string), then a length, 8 bytes, or length and bytes |
//! | 1 | 0: the end |
//! | 2 | RDB version |
//! | 8 | CRC-64 of all before |

use crate::fields::Field;

const MODULE_VALUE: u8 = 7;
/// Number of bytes of the RDB version and the checksum at the end of a payload.
const FOOTER_BYTES: usize = 10;
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// RDB version of the encoded payloads: the version of Redis 7.0, which every supported server reads.
const RDB_VERSION: u16 = 10;

/// The characters that the name of a type may have. A character's position is its number in the module id.
const NAME_CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The payload of a value. Strings are not compressed.
pub fn encode(type_name: &str, encoding: u64, fields: &[Field]) -> Vec<u8> {
    let mut bytes = module_value(type_name, encoding);
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

/// Appends a length in the encoding of RDB files, in the fewest possible bytes.
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

/// The first bytes of a module value: the byte of its kind, and the module id.
pub fn module_value(type_name: &str, encoding: u64) -> Vec<u8> {
    let digit = |c| NAME_CHARACTERS.iter().position(|&other| other == c).expect("a character of names") as u64;
    let name = type_name.bytes().fold(0, |number, character| number << 6 | digit(character));
    [&[MODULE_VALUE, 0x81][..], &(name << 10 | encoding).to_be_bytes()].concat()
}

/// Splits a payload into the value and the RDB version.
pub fn split(payload: &[u8]) -> (&[u8], &[u8]) {
    let end = payload.len() - FOOTER_BYTES;
    (&payload[..end], &payload[end..end + 2])
}

/// A payload of this value with a correct checksum, so that a server accepts it.
pub fn forge(value: &[u8], version: &[u8]) -> Vec<u8> {
    let mut payload = [value, version].concat();
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// An RDB file that has this value at the key `k`. The checksum 0 tells servers to skip the check.
pub fn rdb_file(value: &[u8]) -> Vec<u8> {
    // The file's version and database, then type, key and value, then the end.
    [b"REDIS0010\xfe\x00", &value[..1], b"\x01k", &value[1..], b"\xff\0\0\0\0\0\0\0\0"].concat()
}

/// Type name, encoding version and fields of a payload; `None` if the bytes are not the payload of a module value.
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
pub fn crc64(bytes: &[u8]) -> u64 {
    /// The CRC of each possible byte.
    const REMAINDERS: [u64; 256] = {
        let mut remainders = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut crc, mut bit) = (byte as u64, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xad93_d235_94c9_35a9_u64.reverse_bits() } else { crc >> 1 };
                bit += 1;
            }
            remainders[byte] = crc;
            byte += 1;
        }
        remainders
    };
    bytes.iter().fold(0, |crc, byte| REMAINDERS[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}
