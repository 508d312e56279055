//! Stored values that were damaged and have correct checksums, for tests that load them into a server.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::unstable::persist::rdb;

use crate::fields::Field;
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
    encoded(name, encoding, &fields?)
}

/// The damaged `DUMP` payload that the target `redisbloom` makes of the input; `None` if it makes none.
pub fn payload_of_redisbloom(data: &[u8]) -> Option<Vec<u8>> {
    let (encoding, fields) = targets::redisbloom::fields(&mut Input::new(data));
    encoded("MBbloom--", encoding.into(), &fields?)
}

/// Encodes a `DUMP` payload. `None` if a string spells a number, because servers would store it as a number.
fn encoded(name: &str, encoding: u64, fields: &[Field]) -> Option<Vec<u8>> {
    let spells_a_number = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok());
    let is_plain = |field: &Field| !matches!(field, Field::String(bytes) if spells_a_number(bytes));
    fields.iter().all(is_plain).then(|| encode(name, encoding, fields))
}

/// The chunks that the target `chunks` makes of the input, and whether they are chunks of a filter.
pub fn chunks(data: &[u8]) -> (bool, Vec<Chunk>) {
    let mut input = Input::new(data);
    match input.choice(2) {
        0 => (true, targets::chunks::sequence::<BloomFilter>(&mut input)),
        _ => (false, targets::chunks::sequence::<Counter>(&mut input)),
    }
}
