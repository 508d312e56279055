mod windowed;

use super::*;
use crate::bloom::{self, BitLayout, BloomFilter};
use crate::counting::counter::Shaped;
use crate::persist::chunks::{dump, dump_partial, load, piece_checksum, push_chunk};
use crate::size_limit::Unlimited;

/// A sparse counter whose payload has two pieces.
fn sparse() -> Counter {
    let mut counter = Counter::new(Params {
        capacity: 1_000_000_000,
        error_rate: 0.001,
        exact_limit: 0,
        exact_bytes: 16_384,
        seed: 7,
    })
    .unwrap();
    for member in 0..70_000u32 {
        counter.add(member.to_le_bytes(), &Unlimited).unwrap();
    }
    assert_eq!(counter.representation(), Representation::Sparse);
    counter
}

fn begin(counter: &Counter) -> PartialCounter {
    PartialCounter::begin(&header_out_of_line(counter, counter.payload_bytes()), &Unlimited).unwrap()
}

/// A header whose payload is out of line, however small the payload is.
fn header_out_of_line(counter: &Counter, payload_bytes: u64) -> Vec<u8> {
    let mut writer = CounterForm::of(counter).write();
    writer.u8(0);
    writer.number(payload_bytes);
    writer.finish()
}

fn all_of(payload: Payload<'_>) -> Vec<u8> {
    payload.pieces(usize::MAX).flat_map(|(_, piece)| piece.into_owned()).collect()
}

fn same(a: &Counter, b: &Counter) -> bool {
    dump(a).eq(dump(b))
}

/// A digest covers only the fields that `write` writes, so `write` must write all fields.
#[test]
fn fields_are_what_a_header_begins_with() {
    let counter = sparse();
    let (fields, header) = (CounterForm::of(&counter).write().into_bytes(), counter.header());
    assert!(fields.len() > 10 && header.starts_with(&fields), "{fields:?} {header:?}");
}

#[test]
fn positions_that_cannot_be_leave_what_came_before() {
    let counter = sparse();
    let chunks: Vec<_> = dump(&counter).collect();
    let mut loading = begin(&counter);
    let (last, others) = chunks[1..].split_last().unwrap();
    others.iter().for_each(|(next, chunk)| push_chunk(&mut loading, *next, chunk).unwrap());
    let received_bytes = loading.received_bytes();
    // The last position of the piece is replaced by the one before it, with a correct checksum.
    let mut bad = last.1[..last.1.len() - 8].to_vec();
    let end = bad.len();
    bad.copy_within(end - 8..end - 4, end - 4);
    let ChunkFormat::Checked { fingerprint } = loading.chunk_format() else { panic!("a format of ours") };
    bad.extend_from_slice(&piece_checksum(&bad, received_bytes, fingerprint).to_le_bytes());
    let error = push_chunk(&mut loading, last.0, &bad).unwrap_err();
    assert!(matches!(error, Error::Corrupt { field: "position", .. }), "{error}");
    assert_eq!((loading.received_bytes(), loading.received().len()), (received_bytes, received_bytes));
    push_chunk(&mut loading, last.0, &last.1).unwrap();
    assert!(same(&loading.finish().unwrap(), &counter));
}

#[test]
fn what_has_arrived_of_positions_goes_on_from_anywhere() {
    let counter = sparse();
    let payload = all_of(counter.payload());
    let mut loading = begin(&counter);
    for end in [0, 3, 5, 8, 4001, (1 << 18) - 3, 1 << 18, (1 << 18) + 7, payload.len() - 1] {
        loading.push(&payload[loading.received_bytes() as usize..end]).unwrap();
        assert_eq!((loading.received_bytes(), loading.received().len()), (end as u64, end as u64));
        assert!(all_of(loading.received()) == payload[..end]);
        assert!(matches!(loading.finish(), Err(Error::Corrupt { field: "payload length", .. })));
        // The partial load continues in a copy and through a rewritten AOF. `tests/format.rs` covers RDB files.
        let mut rewritten = begin(&counter);
        dump_partial(&loading).skip(1).for_each(|(next, chunk)| push_chunk(&mut rewritten, next, &chunk).unwrap());
        for mut again in [loading.try_clone().unwrap(), rewritten] {
            again.push(&payload[end..]).unwrap();
            assert!(again.push(b"\0").is_err());
            assert!(same(&again.finish().unwrap(), &counter));
        }
    }
}

#[test]
fn members_that_cannot_be_leave_what_came_before() {
    let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 7 };
    let mut counter = Counter::new(params).unwrap();
    for member in [&b"ann"[..], b"ben"] {
        counter.add(member, &Unlimited).unwrap();
    }
    let mut loading = begin(&counter);
    loading.push(b"\x03ann").unwrap();
    assert!(matches!(loading.push(b"\x03ann"), Err(Error::Corrupt { field: "members", .. })));
    assert_eq!(all_of(loading.received()), b"\x03ann");
    loading.push(b"\x03ben").unwrap();
    assert!(same(&loading.try_clone().unwrap().finish().unwrap(), &counter));
    assert!(same(&loading.finish().unwrap(), &counter));
    assert!(loading.finish().is_err());
}

#[test]
fn a_sparse_counter_has_at_most_as_many_bytes_of_positions_as_of_words() {
    let sparse = sparse();
    let most = sparse.layout().num_bytes();
    let header = header_out_of_line(&sparse, most);
    assert!(PartialCounter::begin(&header, &crate::size_limit::MaxBytes(most / 4)).is_err());
    assert!(PartialCounter::begin(&header_out_of_line(&sparse, most + 4), &Unlimited).is_err());
    let mut loading = PartialCounter::begin(&header, &Unlimited).unwrap();
    (0..most as u32 / 4).for_each(|position| loading.push(&position.to_le_bytes()).unwrap());
    let largest = loading.finish().unwrap();
    assert_eq!((largest.representation(), largest.set_bits()), (Representation::Sparse, most / 4));
    assert!(same(&load::<Counter, _>(dump(&largest), &Unlimited).unwrap(), &largest));
}

/// Tests a hypothetical version 2 of counters, which has a number before all other fields.
#[test]
fn a_second_version_of_counters_is_theirs_alone() {
    let of_counter = sparse().header();
    let of_filter = BloomFilter::new(BitLayout::Lines, bloom::Params::default(), &Unlimited).unwrap().header();
    let of_version_2 = |header: &[u8]| {
        let mut newer = header[..header.len() - 4].to_vec();
        newer[0] += 1;
        newer.insert(1, 42);
        let sum = checksum(&newer, 0) as u32;
        newer.extend_from_slice(&sum.to_le_bytes());
        newer
    };
    // Reads the number, and the byte after it.
    let read = |header: &[u8]| {
        let mut reader = HeaderReader::up_to(header, HeaderKind::Counter, 2)?;
        let number = if reader.version() < 2 { 7 } else { reader.number("a number")? };
        Ok::<_, Error>((number, reader.u8("representation")?))
    };
    assert_eq!((read(&of_counter), read(&of_version_2(&of_counter))), (Ok((7, 1)), Ok((42, 1))));
    // A reader that does not know version 2 rejects it, and so does the reader of a filter.
    let rejected = Error::corrupt("version", "1 to 1", 2);
    assert_eq!(PartialCounter::begin(&of_version_2(&of_counter), &Unlimited).err(), Some(rejected.clone()));
    assert_eq!(HeaderReader::new(&of_version_2(&of_filter), HeaderKind::Filter).err(), Some(rejected));
    assert_eq!(of_filter[0], 0xf1);
    assert!(HeaderReader::new(&of_filter, HeaderKind::Filter).is_ok());
}

/// Checks that `CONTRIBUTING.md` names every file that must change for a new stored field.
#[test]
fn the_recipe_of_a_stored_field_names_every_file() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let page = std::fs::read_to_string(format!("{root}/CONTRIBUTING.md")).unwrap();
    let recipe = page.split("\n### ").find(|section| section.starts_with("A stored field\n")).unwrap();
    for (folder, file) in [
        ("core/src/persist", "core/src/persist/codec.rs"),
        ("core/src/persist", "counting.rs"),
        ("core/src/counting", "core/src/counting/form.rs"),
        ("core/src/persist/counting", "core/src/persist/counting/tests.rs"),
        ("core/src/persist/counting/tests", "windowed.rs"),
        ("core/tests", "core/tests/windowed_counters.rs"),
        ("core/tests", "core/tests/headers.rs"),
        ("core/tests", "core/tests/digests.rs"),
        ("core/tests", "core/tests/golden.rs"),
        ("docs", "docs/persistence.md"),
    ] {
        let name = file.rsplit('/').next().unwrap();
        assert!(recipe.contains(&format!("`{file}`")), "{file}");
        assert!(std::fs::exists(format!("{root}/{folder}/{name}")).unwrap(), "{folder}/{name}");
    }
}
