//! The target `payloads`: reads `DUMP` payloads without a server.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::live::Live;
use rollcall_core::persist::file::{FileError, Kind};
use rollcall_core::persist::{from_bytes, to_bytes};
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::persist::{Partial, Payload, parse, rdb as ours};
use rollcall_core::unstable::wire::{TYPE_OF_CLASSIC, TYPE_OF_COUNTERS, TYPE_OF_LINES};
use rollcall_core::window::Time;

use super::{rdb, redisbloom};
use crate::family::Family;
use crate::fields::Fields;
use crate::forge;
use crate::input::Input;
use crate::limit::Limit;
use crate::payload::{FOOTER_BYTES, Form, decode, encode_as, forge as with_checksum, module_value, split};
use crate::values::load_ours;

/// The data types of payloads; the last two are not ours.
const TYPES: [&str; 5] = [TYPE_OF_LINES, TYPE_OF_COUNTERS, TYPE_OF_CLASSIC, "MBbloomCF", "RCfilter_"];

/// Reads a payload as a filter and as a counter: any bytes, or those of a value after changes. What is read equals what
/// the server's own functions read of the same fields.
pub fn payloads(data: &[u8]) {
    let mut input = Input::new(data);
    let (limit, payload) = limit_and_payload(&mut input);
    let kinds = [read::<BloomFilter>(&payload, &limit), read::<Counter>(&payload, &limit)];
    assert!(kinds != [true; 2], "a filter that is a counter");
}

/// The size limit that the input chooses, and the payload that it makes.
pub(crate) fn limit_and_payload(input: &mut Input<'_>) -> (Limit, Vec<u8>) {
    (Limit::chosen(input), payload(input))
}

/// Mostly the checksum of a payload is correct.
fn payload(input: &mut Input<'_>) -> Vec<u8> {
    let [way, name, encoding, form, changes] = [(); 5].map(|()| input.byte());
    let ours = u64::from(ours::ENCODING);
    let (type_name, newest, fields) = match way % 8 {
        0 => return input.bytes(usize::MAX).to_vec(),
        1 | 2 => {
            let (encoding, fields) = redisbloom::fields(input);
            (TYPE_OF_CLASSIC, encoding.into(), fields)
        }
        3..6 => (TYPE_OF_LINES, ours, rdb::fields::<BloomFilter>(input)),
        _ => (TYPE_OF_COUNTERS, ours, rdb::fields::<Counter>(input)),
    };
    let type_name = if name < 240 { type_name } else { TYPES[usize::from(name) % TYPES.len()] };
    let encoding = if encoding < 240 { newest } else { u64::from(encoding - 240) };
    let payload = match fields {
        None => [&module_value(type_name, encoding), input.bytes(usize::MAX), &[0; FOOTER_BYTES]].concat(),
        Some(fields) => encode_as(type_name, encoding, &fields, || match form % 8 {
            0..4 => Form::Usual,
            4 => Form::Wide,
            5 | 6 => Form::Compressed,
            _ if input.flag() => Form::Claiming(input.number()),
            _ => Form::Usual,
        }),
    };
    let (value, version) = split(&payload);
    let (mut value, mut version) = (value.to_vec(), version.to_vec());
    for _ in 0..(changes % 8).saturating_sub(4) {
        forge::change(input, &mut value);
    }
    if changes & 8 != 0 {
        version = input.u16().to_le_bytes().to_vec();
    }
    let mut payload = with_checksum(&value, &version);
    match changes {
        240.. if input.flag() => forge::change(input, &mut payload),
        // Only the checksum.
        240.. => payload[value.len() + version.len()] ^= 1,
        _ => {}
    }
    payload
}

/// Reads a payload, and whether it is a value of this kind.
fn read<T: Family>(payload: &[u8], limit: &Limit) -> bool {
    limit.forget();
    let value = match from_bytes::<T>(payload, limit) {
        Ok(value) => value,
        // The limit applies to compressed strings too.
        Err(FileError::Value(Error::TooLarge { .. })) => return false,
        Err(error) => {
            assert!(expected::<T>(payload, limit).is_none(), "{error}");
            return false;
        }
    };
    limit.check_taken(0, limit.taken_by(&value));
    // Bits that stay in the payload are merged as those of a whole value.
    let mut apart = Payload::default();
    let without_bits = parse::<T>(payload, Some(&mut apart), limit).expect("it was read before");
    let [mut of_whole, mut of_parts] = [value.emptied(), value.emptied()];
    let merged = Live::new(&mut of_whole, Time::Reached).merge(&[&value], &Unlimited);
    assert_eq!(Live::new(&mut of_parts, Time::Reached).merge_apart(&[(without_bits, apart)], &Unlimited), merged);
    assert!(of_parts.is_same(&of_whole));
    let bytes = to_bytes(&value).expect("memory");
    if payload != bytes {
        assert!(expected::<T>(payload, limit).is_some_and(|other| other.is_same(&value)));
    }
    assert!(from_bytes::<T>(&bytes, &MaxBytes(64 << 20)).is_ok_and(|again| again.is_same(&value)));
    true
}

/// The value that a server loads from the payload.
fn expected<T: Family>(payload: &[u8], limit: &Limit) -> Option<T> {
    let (name, encoding, fields) = decode(payload)?;
    let encoding = u32::try_from(encoding).ok()?;
    match (&name[..], T::KIND) {
        (TYPE_OF_LINES, Kind::Filter) | (TYPE_OF_COUNTERS, Kind::Counter) if encoding == ours::ENCODING => {
            load_ours::<T::Partial>(&fields, limit).and_then(Partial::finish).ok()
        }
        (TYPE_OF_CLASSIC, _) => {
            let mut source = Fields(&fields);
            T::load_classic(&mut source, encoding, limit)?.ok().filter(|_| source.0.is_empty())
        }
        _ => None,
    }
}
