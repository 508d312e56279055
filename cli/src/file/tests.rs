use std::path::Path;

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::counting::{self, Counter};
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};

use super::{Entry, Kind, Reader, Value, Writer};

const PARAMS: Params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };

fn filter(layout: BitLayout, items: u32) -> BloomFilter {
    let mut filter = BloomFilter::new(layout, PARAMS, &Unlimited).unwrap();
    for item in 0..items {
        filter.add(&item.to_le_bytes(), &Unlimited).unwrap();
    }
    filter
}

fn counter(members: u32) -> Counter {
    let params =
        counting::Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 7 };
    let mut counter = Counter::new(params).unwrap();
    for member in 0..members {
        counter.add(&member.to_le_bytes(), &Unlimited).unwrap();
    }
    counter
}

/// A file of values with and without keys, large and small, and what is in it.
fn sample() -> (Vec<(Entry, Value)>, Vec<u8>) {
    let values = vec![
        (Entry::of(Kind::Filter), Value::Filter(filter(BitLayout::Lines, 5000))),
        (
            Entry { kind: Kind::Filter, key: Some(Vec::new()), expires_at: Some(1) },
            Value::Filter(filter(BitLayout::Classic, 10)),
        ),
        (
            Entry { kind: Kind::Counter, key: Some(b"a\0key".into()), expires_at: Some(u64::MAX) },
            Value::Counter(counter(3)),
        ),
        (Entry::of(Kind::Counter), Value::Counter(counter(40_000))),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values");
    let mut writer = Writer::create(&path, false).unwrap();
    for (entry, value) in &values {
        writer.store(entry, value).unwrap();
    }
    writer.finish().unwrap();
    (values, std::fs::read(path).unwrap())
}

/// All values of a file.
fn read(bytes: &[u8]) -> Result<Vec<(Entry, Value)>, String> {
    let shown = |failure: crate::failure::Failure| failure.to_string();
    let mut reader = Reader::new(Path::new("sample"), bytes).map_err(shown)?;
    let mut values = Vec::new();
    while let Some(entry) = reader.next_value().map_err(shown)? {
        let value = reader.load(&entry, &MaxBytes(1 << 20)).map_err(shown)?;
        values.push((entry, value));
    }
    Ok(values)
}

fn dump(value: &Value) -> Vec<(u64, Vec<u8>)> {
    match value {
        Value::Filter(filter) => persist::dump(filter).map(|(next, chunk)| (next, chunk.into_owned())).collect(),
        Value::Counter(counter) => persist::dump(counter).map(|(next, chunk)| (next, chunk.into_owned())).collect(),
    }
}

#[test]
fn values_come_back_with_their_entries() {
    let (values, bytes) = sample();
    let read = read(&bytes).unwrap();
    assert_eq!(read.len(), values.len());
    for ((entry, value), (read_entry, read_value)) in values.iter().zip(&read) {
        assert_eq!((entry, dump(value)), (read_entry, dump(read_value)));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = sample().1;
    for len in (0..bytes.len()).filter(|len| len % 97 == 0 || *len < 300 || bytes.len() - len < 300) {
        let error = read(&bytes[..len]).unwrap_err();
        let told = error.contains(&format!("sample: ends at byte {len}, within ")) || len < 8;
        assert!(told, "{len}: {error}");
    }
    let error = read(&[&bytes[..], b"\n"].concat()).unwrap_err();
    assert!(error.contains(&format!("damaged at byte {}: bytes after the end", bytes.len())), "{error}");
}

#[test]
fn every_changed_bit_is_found() {
    let mut bytes = sample().1;
    for at in (0..bytes.len()).filter(|at| at % 61 == 0 || *at < 200) {
        let bit = 1 << (at % 8);
        bytes[at] ^= bit;
        assert!(read(&bytes).is_err(), "bit {bit} of byte {at}");
        bytes[at] ^= bit;
    }
    assert!(read(&bytes).is_ok());
}

#[test]
fn a_chunk_in_another_place_is_refused() {
    let chunk_at = |bytes: &[u8], chunk: &[u8]| bytes.windows(chunk.len()).position(|window| window == chunk).unwrap();
    let (values, bytes) = sample();
    let dump = dump(&values[0].1);
    // A chunk record: tag, iterator, length, bytes, checksum.
    let start = chunk_at(&bytes, &dump[1].1) - 13;
    let end = start + 13 + dump[1].1.len() + 8;
    let doubled = [&bytes[..end], &bytes[start..]].concat();
    let error = read(&doubled).unwrap_err();
    assert!(error.contains(&format!("damaged at byte {end}: a checksum that does not fit")), "{error}");
}

#[test]
fn nothing_is_left_of_a_file_that_was_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let mut writer = Writer::create(&path, false).unwrap();
    writer.begin(&Entry::of(Kind::Filter)).unwrap();
    assert_eq!((files(), path.exists()), (1, false));
    drop(writer);
    assert_eq!(files(), 0);
    Writer::create(&path, false).unwrap().finish().unwrap();
    assert!(Writer::create(&path, false).err().unwrap().to_string().contains("exists"));
    let mut writer = Writer::create(&path, true).unwrap();
    writer.store(&Entry::of(Kind::Counter), &Value::Counter(counter(1))).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&std::fs::read(&path).unwrap()).unwrap().len(), 1);
    assert_eq!(files(), 1);
}
