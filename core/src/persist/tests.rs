//! The stored form of counters.

mod windowed;

use crate::bloom::{self, BitLayout, BloomFilter};
use crate::counting::stored::{CounterForm, PartialCounter};
use crate::counting::{Counter, Params};
use crate::error::Error;
use crate::hash::checksum;
use crate::live::Value;
use crate::persist::chunks::{dump, load};
use crate::size_limit::Unlimited;
use crate::stored::Partial;
use crate::stored::codec::{HeaderKind, HeaderReader};
use crate::stored::payload::Payload;
use crate::window::Time;

fn params(error_rate: f64, exact_limit: u32) -> Params {
    Params { error_rate, exact_limit, exact_bytes: Params::MAX_EXACT_BYTES, seed: 7 }
}

fn counter(params: Params, members: u32) -> Counter {
    let mut counter = Counter::new(params).unwrap();
    for member in 0..members {
        counter.add(format!("user{member:048}").as_bytes(), &Unlimited).unwrap();
    }
    counter
}

/// A counter whose payload has two pieces.
fn large() -> Counter {
    let large = counter(params(0.01, Params::MAX_EXACT_LIMIT), 20_000);
    assert!(large.is_exact() && dump(&large).count() == 3);
    large
}

fn begin(counter: &Counter) -> PartialCounter {
    PartialCounter::begin(&header_out_of_line(counter, counter.payload_part().len() as u64), &Unlimited).unwrap()
}

/// A header whose payload is out of line, however small the payload is.
fn header_out_of_line(counter: &Counter, payload_bytes: u64) -> Vec<u8> {
    let mut writer = CounterForm::of(counter).write();
    writer.u8(0);
    writer.number(payload_bytes);
    if counter.is_exact() {
        writer.u64(checksum(&counter.payload_part(), 0));
    }
    writer.finish()
}

fn all_of(payload: Payload<'_>) -> Vec<u8> {
    payload.pieces(usize::MAX).flat_map(|(_, piece)| piece.into_owned()).collect()
}

fn same(a: &Counter, b: &Counter) -> bool {
    dump(a).eq(dump(b))
}

#[test]
fn invalid_segments_keep_the_bytes_before_them() {
    let counter = counter(params(0.0025, 0), 3000);
    let payload = counter.payload_part();
    let mut loading = begin(&counter);
    let (first, rest) = payload.split_at(1000);
    loading.push(first).unwrap();
    // All gaps are as long as can be.
    let error = loading.push(&vec![255; rest.len()]).unwrap_err();
    assert!(matches!(error, Error::Corrupt { field: "coded payload", .. }), "{error}");
    assert_eq!((loading.received_bytes(), loading.received().len()), (1000, 1000));
    loading.push(rest).unwrap();
    assert!(same(&loading.finish().unwrap(), &counter));
}

/// The same for members that were replaced by others of the same length, so that the length of the dump stays the same.
#[test]
fn a_dump_has_no_members_of_two_states() {
    let (mut counter, item) = (large(), |number: u32| format!("user{number:048}"));
    let before: Vec<_> = dump(&counter).map(|(next, chunk)| (next, chunk.into_owned())).collect();
    assert_eq!(counter.live(Time::Reached).remove([&item(5)].into_iter()), Ok(vec![true]));
    counter.add(item(20_000), &Unlimited).unwrap();
    let after: Vec<_> = dump(&counter).map(|(next, chunk)| (next, chunk.into_owned())).collect();
    assert!(before.iter().zip(&after).all(|((next, chunk), (_, other))| *next == 1 || chunk.len() == other.len()));
    for cut in 1..3 {
        let mixed = before[..cut].iter().chain(&after[cut..]).map(|(next, chunk)| (*next, chunk));
        let rejected = load::<Counter, _>(mixed, &Unlimited);
        assert!(matches!(rejected, Err(Error::Corrupt { field: "payload checksum", .. })), "{rejected:?}");
    }
    assert!(same(&load::<Counter, _>(after, &Unlimited).unwrap(), &counter));
}

/// Counters of any number of members are in their header, so that a dump of one cannot be outdated.
#[test]
fn estimates_are_inline() {
    for error_rate in [0.25, 0.01, 0.0025] {
        for members in [300, 30_000, 300_000] {
            let counter = counter(params(error_rate, 250), members);
            assert_eq!(dump(&counter).count(), 1);
            assert!(same(&load::<Counter, _>(dump(&counter), &Unlimited).unwrap(), &counter));
        }
    }
}

#[test]
fn invalid_members_keep_the_bytes_before_them() {
    let mut counter = Counter::new(params(0.01, 250)).unwrap();
    for member in [&b"ann"[..], b"ben"] {
        counter.add(member, &Unlimited).unwrap();
    }
    let mut loading = begin(&counter);
    loading.push(b"\x03ann").unwrap();
    assert!(matches!(loading.push(b"\x03bob"), Err(Error::Corrupt { field: "members checksum", .. })));
    assert_eq!(all_of(loading.received()), b"\x03ann");
    loading.push(b"\x03ben").unwrap();
    assert!(same(&loading.try_clone().unwrap().finish().unwrap(), &counter));
    assert!(same(&loading.finish().unwrap(), &counter));
}

/// A header of another version is rejected, even if its checksum is right.
#[test]
fn newer_versions_are_rejected() {
    let of_counter = counter(params(0.005, 0), 500).header();
    let of_filter = BloomFilter::new(BitLayout::Lines, bloom::Params::default(), &Unlimited).unwrap().header();
    assert_eq!((of_counter[0], of_filter[0]), (0xc1, 0xf1));
    let of_version_2 = |header: &[u8]| {
        let mut newer = header[..header.len() - 4].to_vec();
        newer[0] += 1;
        let sum = checksum(&newer, 0) as u32;
        newer.extend_from_slice(&sum.to_le_bytes());
        newer
    };
    let rejected = Error::corrupt("version", "1 to 1", 2);
    assert_eq!(PartialCounter::begin(&of_version_2(&of_counter), &Unlimited).err(), Some(rejected.clone()));
    assert_eq!(HeaderReader::new(&of_version_2(&of_filter), HeaderKind::Filter).err(), Some(rejected));
    assert!(HeaderReader::new(&of_filter, HeaderKind::Filter).is_ok());
}

/// Checks that `CONTRIBUTING.md` names every file that must change for a new stored field.
#[test]
fn the_recipe_of_a_stored_field_names_every_file() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let page = std::fs::read_to_string(format!("{root}/CONTRIBUTING.md")).unwrap();
    let recipe = page.split("\n### ").find(|section| section.starts_with("A stored field\n")).unwrap();
    for (folder, file) in [
        ("core/src/stored", "core/src/stored/codec.rs"),
        ("core/src/counting", "core/src/counting/stored.rs"),
        ("core/src/bloom/filter/stored", "core/src/bloom/filter/stored/lines.rs"),
        ("core/src/persist", "core/src/persist/tests.rs"),
        ("core/src/persist/tests", "windowed.rs"),
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
