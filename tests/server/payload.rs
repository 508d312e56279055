//! DUMP payloads taken apart and put together again with a checksum that is right.
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
