use std::error::Error as _;
use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

use super::format::{MAX_CHUNK_BYTES, MAX_KEY_BYTES};
use super::{Entry, FileError, Kind, Reader, Writer, read_one};
use crate::bloom::{BitLayout, BloomFilter, Params};
use crate::counting::{self, Counter};
use crate::persist;
use crate::size_limit::{MaxBytes, Unlimited};

type Dump = Vec<(u64, Vec<u8>)>;

const PARAMS: Params = Params { error_rate: 0.01, capacity: 1000, expansion: 2, seed: 0 };

fn filter(layout: BitLayout, items: u32) -> BloomFilter {
    let mut filter = BloomFilter::new(layout, PARAMS, &Unlimited).unwrap();
    for item in 0..items {
        filter.add(item.to_le_bytes(), &Unlimited).unwrap();
    }
    filter
}

fn counter(members: u32) -> Counter {
    let params = counting::Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16 << 10, seed: 7 };
    let mut counter = Counter::new(params).unwrap();
    for member in 0..members {
        counter.add(member.to_le_bytes(), &Unlimited).unwrap();
    }
    counter
}

/// Dumps of values with and without keys, large and small, and a file with all of them.
fn sample() -> (Vec<(Entry, Dump)>, Vec<u8>) {
    type Sink = Writer<Vec<u8>>;
    fn add<T: crate::live::Value>(
        to: &mut Sink,
        key: Option<&[u8]>,
        expires_at: Option<u64>,
        value: &T,
    ) -> (Entry, Dump) {
        let entry = Entry { kind: T::KIND, key: key.map(<[u8]>::to_vec), expires_at };
        to.store(&entry, value).unwrap();
        (entry, dump(value))
    }
    let mut writer = Writer::new(Vec::new()).unwrap();
    let values = vec![
        add(&mut writer, None, None, &filter(BitLayout::Lines, 5000)),
        add(&mut writer, Some(b""), Some(1), &filter(BitLayout::Classic, 10)),
        add(&mut writer, Some(b"a\0key"), Some(u64::MAX), &counter(3)),
        add(&mut writer, None, None, &counter(40_000)),
    ];
    (values, writer.finish().unwrap())
}

fn file_of<T: crate::live::Value>(value: &T) -> Result<Vec<u8>, FileError> {
    let mut writer = Writer::new(Vec::new())?;
    writer.store(&Entry::new(T::KIND), value)?;
    writer.finish()
}

fn read(bytes: &[u8]) -> Result<Vec<(Entry, Dump)>, FileError> {
    let limit = MaxBytes(1 << 20);
    let mut reader = Reader::new(bytes)?;
    let mut values = Vec::new();
    while let Some(entry) = reader.next_value()? {
        let value = match entry.kind {
            Kind::Filter => dump(&reader.load::<BloomFilter>(&limit)?),
            Kind::Counter => dump(&reader.load::<Counter>(&limit)?),
        };
        values.push((entry, value));
    }
    Ok(values)
}

fn dump<T: crate::live::Value>(value: &T) -> Dump {
    persist::dump(value).map(|(next, chunk)| (next, chunk.into_owned())).collect()
}

#[test]
fn values_come_back_with_their_entries() {
    let (values, bytes) = sample();
    assert_eq!(read(&bytes).unwrap(), values);
}

#[test]
fn a_file_cut_anywhere_is_rejected() {
    let bytes = sample().1;
    for len in (0..bytes.len()).filter(|len| len % 97 == 0 || *len < 300 || bytes.len() - len < 300) {
        match read(&bytes[..len]).unwrap_err() {
            FileError::Ends { at, .. } => assert_eq!(at, len as u64),
            FileError::NotAFile => assert!(len < 8),
            other => panic!("{len}: {other}"),
        }
    }
    let error = read(&[&bytes[..], b"\n"].concat()).unwrap_err();
    assert_eq!(error.to_string(), format!("damaged at byte {}: bytes after the end", bytes.len()));
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
fn a_chunk_in_another_place_is_rejected() {
    let chunk_at = |bytes: &[u8], chunk: &[u8]| bytes.windows(chunk.len()).position(|window| window == chunk).unwrap();
    let (values, bytes) = sample();
    let dump = &values[0].1;
    // The fields of a chunk record are: tag, iterator, length, bytes, checksum.
    let start = chunk_at(&bytes, &dump[1].1) - 13;
    let end = start + 13 + dump[1].1.len() + 8;
    let doubled = [&bytes[..end], &bytes[start..]].concat();
    let error = read(&doubled).unwrap_err();
    assert_eq!(error.to_string(), format!("damaged at byte {end}: a checksum that does not fit"));
}

#[test]
fn a_file_of_one_value_reads_back() {
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let filter = filter(layout, 5000);
        let bytes = file_of(&filter).unwrap();
        let copy: BloomFilter = read_one(&bytes[..], &MaxBytes(1 << 20)).unwrap();
        assert!(copy == filter);
        let other = read_one::<Counter>(&bytes[..], &Unlimited).unwrap_err();
        assert!(matches!(other, FileError::OtherKind { expected: Kind::Counter, got: Some(Kind::Filter) }));
        assert_eq!(other.to_string(), "expected a counter, got a filter");
        assert!(matches!(
            read_one::<BloomFilter>(&bytes[..], &MaxBytes(100)),
            Err(FileError::Value(crate::error::Error::TooLarge { .. }))
        ));
    }
    // The key and the expiry are ignored.
    let counter = counter(3);
    let mut writer = Writer::new(Vec::new()).unwrap();
    let entry = Entry { key: Some(b"key".into()), expires_at: Some(1), ..Entry::new(Kind::Counter) };
    writer.store(&entry, &counter).unwrap();
    let one = writer.finish().unwrap();
    assert_eq!(read_one::<Counter>(&one[..], &Unlimited).unwrap().count(), 3);
}

#[test]
fn files_of_no_or_many_values_are_no_single_value() {
    let none = Writer::new(Vec::new()).unwrap().finish().unwrap();
    assert!(matches!(read_one::<BloomFilter>(&none[..], &Unlimited), Err(FileError::NotOneValue { is_empty: true })));
    let many = sample().1;
    assert!(matches!(read_one::<BloomFilter>(&many[..], &Unlimited), Err(FileError::NotOneValue { is_empty: false })));
}

#[test]
fn records_out_of_order_are_rejected() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    assert!(matches!(writer.end(), Err(FileError::OutOfOrder)));
    assert!(matches!(writer.chunk(1, b""), Err(FileError::OutOfOrder)));
    writer.begin(&Entry::new(Kind::Filter)).unwrap();
    assert!(matches!(writer.begin(&Entry::new(Kind::Filter)), Err(FileError::OutOfOrder)));
    assert!(matches!(
        writer.store(&Entry::new(Kind::Counter), &filter(BitLayout::Lines, 1)),
        Err(FileError::OtherKind { .. })
    ));
    assert!(matches!(writer.finish(), Err(FileError::OutOfOrder)));
}

/// A reader that returns a few bytes at a time, and is interrupted before each read.
struct Halting<'a> {
    bytes: &'a [u8],
    calls: usize,
    /// The error that is returned at the end, if any.
    fails: Option<io::ErrorKind>,
}

impl Read for Halting<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls % 2 == 1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.fails {
            Some(kind) if self.bytes.is_empty() => Err(kind.into()),
            _ => {
                let len = into.len().min(1 + self.calls % 7);
                self.bytes.read(&mut into[..len])
            }
        }
    }
}

#[test]
fn short_reads_continue_and_io_errors_are_reported() {
    let bytes = file_of(&counter(100)).unwrap();
    let all = |fails, len| {
        let mut reader = Reader::new(Halting { bytes: &bytes[..len], calls: 0, fails })?;
        reader.next_value()?;
        let counter: Counter = reader.load(&Unlimited)?;
        reader.next_value().map(|entry| (entry, counter.count()))
    };
    assert_eq!(all(None, bytes.len()).unwrap(), (None, 100));
    for len in 0..bytes.len() {
        let error = all(Some(io::ErrorKind::TimedOut), len).unwrap_err();
        assert!(matches!(&error, FileError::Io(error) if error.kind() == io::ErrorKind::TimedOut), "{len}: {error}");
        assert!(error.source().is_some_and(|source| source.is::<io::Error>()));
    }
    let error = read_one::<Counter>(&bytes[..], &MaxBytes(1)).unwrap_err();
    assert!(error.source().is_some_and(|source| source.is::<crate::error::Error>()));
    assert!(FileError::OutOfOrder.source().is_none());
}

/// The bytes `before`, then `numbers`, then a matching checksum.
fn forged(before: &[u8], numbers: &[u64]) -> Vec<u8> {
    let mut bytes = before.to_vec();
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    let sum = xxh3_64(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn numbers_that_do_not_fit_are_rejected_although_the_sum_does() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.value(&Entry::new(Kind::Counter), [(1, b"one".as_slice()), (2, b"three")]).unwrap();
    let bytes = writer.finish().unwrap();
    let reported = |bytes: Vec<u8>| {
        let mut reader = Reader::new(&bytes[..])?;
        reader.next_value()?;
        reader.skip()?;
        reader.next_value()
    };
    assert_eq!(reported(bytes.clone()).unwrap(), None);
    // The last record is a tag, a number and a checksum. The record before is a tag, two numbers and a checksum.
    let values = bytes.len() - 16;
    let chunks = bytes.len() - 17 - 24;
    assert_eq!(forged(&bytes[..values], &[1]), bytes);
    for (numbers, at, what) in [
        (&[0][..], values, "0 values where 1 came"),
        (&[2], values, "2 values where 1 came"),
        (&[1, 8], chunks, "1 chunks where 2 came"),
        (&[2, 7], chunks, "7 bytes of chunks where 8 came"),
    ] {
        let error = reported(forged(&bytes[..at], numbers)).unwrap_err();
        assert_eq!(error.to_string(), format!("damaged at byte {}: {what}", at - 1));
    }
}

#[test]
fn lengths_are_bounded_before_anything_is_read() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let entry = Entry { key: Some(b"key".to_vec()), expires_at: Some(7), ..Entry::new(Kind::Counter) };
    writer.value(&entry, [(1, b"chunk")]).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes[..30], *b"RollCall\x01\0\0\0\x01C\x07\0\0\0\0\0\0\0\x01\x03\0\0\0key");
    for (content, most, what) in [(&b"key"[..], MAX_KEY_BYTES, "key"), (b"chunk", MAX_CHUNK_BYTES, "chunk")] {
        let at = bytes.windows(content.len()).position(|window| window == content).unwrap();
        let with = |len: u32| {
            let bytes = [&bytes[..at - 4], &len.to_le_bytes(), content].concat();
            let mut reader = Reader::new(&bytes[..]).unwrap();
            reader.next_value().and_then(|_| reader.skip()).unwrap_err()
        };
        let most = u32::try_from(most).unwrap();
        for len in [most + 1, u32::MAX] {
            let reported = with(len).to_string();
            assert!(reported.ends_with(&format!("a {what} of {len} bytes, more than {most}")), "{reported}");
        }
        for len in [most, content.len() as u32 + 1] {
            let error = with(len);
            assert!(matches!(error, FileError::Ends { within, .. } if within == what), "{error}");
        }
    }
}
