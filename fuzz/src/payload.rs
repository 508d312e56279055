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

use crc_fast::CrcAlgorithm::Crc64Redis;

use crate::fields::Field;

const MODULE_VALUE: u8 = 7;
/// Number of bytes of the RDB version and the checksum at the end of a payload.
pub(crate) const FOOTER_BYTES: usize = 10;
const END: u64 = 0;
const UNSIGNED: u64 = 2;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

/// The first bytes of strings in other forms: the number that they spell, or compressed.
const INT_8: u8 = 0xc0;
const INT_16: u8 = 0xc1;
const INT_32: u8 = 0xc2;
const LZF: u8 = 0xc3;

/// RDB version of the encoded payloads: the version of Redis 7.0, which every supported server reads.
const RDB_VERSION: u16 = 10;

/// The characters that the name of a type may have. A character's position is its number in the module id.
const NAME_CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How a payload stores a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// As a server that does not compress.
    Usual,
    /// Numbers and lengths in nine bytes, and strings of digits as they are.
    Wide,
    /// Strings compressed.
    Compressed,
    /// Strings compressed, with a length that need not be theirs.
    Claiming(u64),
}

/// The payload that a server without compression stores for a value.
pub fn encode(type_name: &str, encoding: u64, fields: &[Field]) -> Vec<u8> {
    encode_as(type_name, encoding, fields, || Form::Usual)
}

/// The payload of a value whose fields are stored as `form` says, which is asked before each.
pub fn encode_as(type_name: &str, encoding: u64, fields: &[Field], mut form: impl FnMut() -> Form) -> Vec<u8> {
    let mut bytes = module_value(type_name, encoding);
    for field in fields {
        let form = form();
        let push = if form == Form::Wide { push_wide } else { push_length };
        match field {
            Field::Unsigned(value) => {
                push(&mut bytes, UNSIGNED);
                push(&mut bytes, *value);
            }
            Field::Double(value) => {
                push(&mut bytes, DOUBLE);
                bytes.extend(value.to_le_bytes());
            }
            Field::String(string) => {
                push(&mut bytes, STRING);
                match (form, spelled(string)) {
                    (Form::Compressed, _) => push_compressed(&mut bytes, string, string.len() as u64),
                    (Form::Claiming(len), _) => push_compressed(&mut bytes, string, len),
                    (Form::Usual, Some(number)) => push_spelled(&mut bytes, number),
                    _ => {
                        push(&mut bytes, string.len() as u64);
                        bytes.extend(string);
                    }
                }
            }
        }
    }
    push_length(&mut bytes, END);
    forge(&bytes, &RDB_VERSION.to_le_bytes())
}

/// The number that a server stores instead of this string.
fn spelled(string: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(string).ok()?;
    text.parse::<i32>().ok().filter(|number| number.to_string() == text)
}

fn push_spelled(bytes: &mut Vec<u8>, number: i32) {
    match (i8::try_from(number), i16::try_from(number)) {
        (Ok(number), _) => bytes.extend([INT_8, number as u8]),
        (_, Ok(number)) => bytes.extend([&[INT_16][..], &number.to_le_bytes()].concat()),
        _ => bytes.extend([&[INT_32][..], &number.to_le_bytes()].concat()),
    }
}

/// Appends a compressed string that says that it has `len` bytes.
fn push_compressed(bytes: &mut Vec<u8>, string: &[u8], len: u64) {
    let mut compressed = vec![0; lzf_rust::max_compressed_size(string.len())];
    let compressed_bytes = lzf_rust::compress(string, &mut compressed).expect("room for it");
    bytes.push(LZF);
    push_length(bytes, compressed_bytes as u64);
    push_length(bytes, len);
    bytes.extend(&compressed[..compressed_bytes]);
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
        _ => push_wide(bytes, length),
    }
}

fn push_wide(bytes: &mut Vec<u8>, length: u64) {
    bytes.push(0x81);
    bytes.extend(length.to_be_bytes());
}

/// The first bytes of a module value: the byte of its kind, and the module id.
pub fn module_value(type_name: &str, encoding: u64) -> Vec<u8> {
    let digit = |c| NAME_CHARACTERS.iter().position(|&other| other == c).expect("a character of names") as u64;
    let name = type_name.bytes().fold(0, |number, character| number << 6 | digit(character));
    [&[MODULE_VALUE, 0x81][..], &(name << 10 | encoding).to_be_bytes()].concat()
}

/// The bytes that these hexadecimal digits spell.
pub fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits")).collect()
}

/// Splits a payload into the value and the RDB version.
pub fn split(payload: &[u8]) -> (&[u8], &[u8]) {
    let end = payload.len() - FOOTER_BYTES;
    (&payload[..end], &payload[end..end + 2])
}

/// A payload of this value with a correct checksum, so that a server accepts it.
pub fn forge(value: &[u8], version: &[u8]) -> Vec<u8> {
    let mut payload = [value, version].concat();
    payload.extend(crc_fast::checksum(Crc64Redis, &payload).to_le_bytes());
    payload
}

/// An RDB file that has this value at the key `k`. The checksum 0 tells servers to skip the check.
pub fn rdb_file(value: &[u8]) -> Vec<u8> {
    // The file's version and database, then type, key and value, then the end.
    [b"REDIS0010\xfe\x00", &value[..1], b"\x01k", &value[1..], b"\xff\0\0\0\0\0\0\0\0"].concat()
}

/// Type name, encoding version and fields of a payload; `None` if the bytes are not the payload of a module value.
pub fn decode(payload: &[u8]) -> Option<(String, u64, Vec<Field>)> {
    let (value, version) = (payload.len() >= FOOTER_BYTES).then(|| split(payload))?;
    if forge(value, version) != payload {
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
            STRING => Field::String(take_string(&mut rest)?),
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

fn take_string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let number = match *rest.first()? {
        INT_8 => take(rest).map(|[_, byte]| i32::from(byte as i8))?,
        INT_16 => take(rest).map(|[_, low, high]| i32::from(i16::from_le_bytes([low, high])))?,
        INT_32 => take(rest).map(|[_, a, b, c, d]| i32::from_le_bytes([a, b, c, d]))?,
        LZF => {
            take::<1>(rest)?;
            let (compressed_bytes, len) = (take_length(rest)?, usize::try_from(take_length(rest)?).ok()?);
            let compressed = rest.split_off(..usize::try_from(compressed_bytes).ok()?)?;
            // No more bytes than a compressed string can stand for.
            let string = (len <= compressed.len() * 264).then(|| lzf_rust::decompress_into_vec(compressed, len));
            return string?.ok().filter(|string| string.len() == len);
        }
        _ => {
            let len = usize::try_from(take_length(rest)?).ok()?;
            return rest.split_off(..len).map(<[u8]>::to_vec);
        }
    };
    Some(number.to_string().into_bytes())
}
