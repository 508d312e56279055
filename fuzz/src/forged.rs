//! Stored values that were damaged and have correct checksums, for tests that load them into a server.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::unstable::persist::rdb;

use crate::input::Input;
use crate::payload::encode;
use crate::targets;

/// A chunk, after its `SCANDUMP` iterator.
pub type Chunk = (u64, Vec<u8>);

/// The damaged `DUMP` payload that the target `rdb` makes of the input; `None` if it makes none.
pub fn payload(data: &[u8]) -> Option<Vec<u8>> {
    let mut input = Input::new(data);
    let encoding = u64::from(rdb::ENCODING);
    let (name, fields) = match input.choice(2) {
        0 => ("RCfilter-", targets::rdb::fields::<BloomFilter>(&mut input)),
        _ => ("RCcounter", targets::rdb::fields::<Counter>(&mut input)),
    };
    Some(encode(name, encoding, &fields?))
}

/// The damaged `DUMP` payload that the target `redisbloom` makes of the input; `None` if it makes none.
pub fn payload_of_redisbloom(data: &[u8]) -> Option<Vec<u8>> {
    let (encoding, fields) = targets::redisbloom::fields(&mut Input::new(data));
    Some(encode("MBbloom--", encoding.into(), &fields?))
}

/// The chunks that the target `chunks` makes of the input, and whether they are chunks of a filter.
pub fn chunks(data: &[u8]) -> (bool, Vec<Chunk>) {
    let mut input = Input::new(data);
    match input.choice(2) {
        0 => (true, targets::chunks::sequence::<BloomFilter>(&mut input)),
        _ => (false, targets::chunks::sequence::<Counter>(&mut input)),
    }
}

/// The payload, damaged or not, that the target `payloads` makes of the input.
pub fn any_payload(data: &[u8]) -> Vec<u8> {
    targets::payloads::limit_and_payload(&mut Input::new(data)).1
}
