//! DUMP payloads taken apart and put together again with a checksum that is right, and RDB files of one key.
//!
//! A payload is the value as in an RDB file, two bytes of RDB version, and eight bytes of CRC-64
//! over all before them, little-endian.

/// Bytes of version and checksum at the end.
const FOOTER_BYTES: usize = 10;

/// The value and the version of a payload.
pub fn split(payload: &[u8]) -> (&[u8], &[u8]) {
    let end = payload.len() - FOOTER_BYTES;
    (&payload[..end], &payload[end..end + 2])
}

/// A payload of this value that a server believes to be its own.
pub fn forge(value: &[u8], version: &[u8]) -> Vec<u8> {
    let mut payload = [value, version].concat();
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// An RDB file with this value under the key `k`. Its checksum of 0 says that there is none.
pub fn rdb_file(value: &[u8]) -> Vec<u8> {
    // Version, database; type, key, value; end.
    [b"REDIS0010\xfe\x00", &value[..1], b"\x01k", &value[1..], b"\xff\0\0\0\0\0\0\0\0"].concat()
}

/// The beginning of a value of a module's data type: a byte for the kind of value, and a number of 64 bits. The number
/// has the type's name, nine characters of six bits, and ten bits of encoding version.
pub fn module_value(type_name: &str, encoding: u64) -> Vec<u8> {
    const SET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |character| SET.find(character).expect("a character of type names") as u64;
    let name = type_name.chars().fold(0, |number, character| number << 6 | digit(character));
    [&[7, 0x81][..], &(name << 10 | encoding).to_be_bytes()].concat()
}

/// CRC-64 as Redis computes it: Jones' polynomial, bits reflected, nothing inverted.
pub fn crc64(bytes: &[u8]) -> u64 {
    const REFLECTED: u64 = 0xad93_d235_94c9_35a9_u64.reverse_bits();
    let mut crc = 0;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ REFLECTED } else { crc >> 1 };
        }
    }
    crc
}

#[test]
fn crc64_is_the_servers() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    let server = crate::harness::Server::start();
    let mut client = server.client();
    client.expect("SET k v", "+OK");
    let redis::Value::BulkString(payload) = client.cmd("DUMP k") else { panic!("a payload") };
    let (value, version) = split(&payload);
    assert_eq!(forge(value, version), payload);
}
