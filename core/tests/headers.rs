//! Headers, field by field: what they hold, and what is refused of forged ones whose checksum is right. The format is in
//! docs/persistence.md.

use std::ops::Range;

use proptest::prelude::*;
use rollcall_core::bloom;
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::unstable::bloom::{LineFilter, SubFilter};
use rollcall_core::unstable::counting::Shaped;
use rollcall_core::unstable::hash::checksum;
use rollcall_core::unstable::persist::{Loading, Stored, piece_checksum};

mod support;

use support::values::{Dump, counter, load_rdb, rdb_of_loading, same_dump};

fn filter(capacity: u64, expansion: u32, items: u32) -> LineFilter {
    let params = bloom::Params { error_rate: 0.01, capacity, expansion, seed: 7 };
    let mut filter = LineFilter::new(params, &Unlimited).unwrap();
    for item in 0..items {
        filter.add(format!("item:{item}").as_bytes(), &Unlimited).unwrap();
    }
    filter
}

/// Loads a dump that something is wrong with.
fn refusal<T: Stored>(chunks: Dump) -> Option<Error> {
    persist::load::<T, _>(chunks, &Unlimited).err()
}

/// A header of which `range` is replaced and the checksum made right again: what only the validator can refuse.
fn forged(header: &[u8], range: Range<usize>, bytes: &[u8]) -> Vec<u8> {
    let mut body = header[..header.len() - 4].to_vec();
    body.splice(range, bytes.iter().copied());
    let sum = checksum(&body, 0) as u32;
    body.extend_from_slice(&sum.to_le_bytes());
    body
}

/// A rate as headers have any.
fn long_rate(rate: f64) -> Vec<u8> {
    [&[0][..], &rate.to_bits().to_le_bytes()].concat()
}

/// The largest number.
const LARGEST: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";

fn refused_field<T: Stored>(header: Vec<u8>) -> &'static str {
    match refusal::<T>(vec![(1, header)]) {
        Some(Error::Corrupt { field, .. }) => field,
        other => panic!("expected a named field, got {other:?}"),
    }
}

#[test]
fn forged_filter_headers_are_refused_by_field() {
    let header = filter(100, 2, 1000).header();
    assert_eq!(header[..8], *b"\xf1\x02\x01\x64\x02\x07\x04\x03");
    let cases: [(Range<usize>, &[u8], &str); 22] = [
        (0..1, b"\xf2", "version"),
        (0..1, b"\xf0", "version"),
        (0..1, b"\xc1", "kind"),
        (1..3, &long_rate(f64::NAN), "error rate"),
        (1..3, b"\x01\x0a", "error rate"),
        (1..3, &long_rate(-0.5), "error rate"),
        (1..3, &long_rate(0.01), "error_rate"),
        (1..3, b"\x0a\x01", "error_rate"),
        (3..4, b"\0", "capacity"),
        (3..4, LARGEST, "capacity"),
        (3..4, b"\xe4\0", "capacity"),
        (4..5, b"\xc0\xb8\x02", "expansion"),
        (4..5, LARGEST, "expansion"),
        (4..5, b"\0", "number of sub-filters"),
        (6..7, b"\0", "number of sub-filters"),
        (6..7, b"\x81\x08", "number of sub-filters"),
        (6..7, b"\x80\x08", "header length"),
        (6..7, b"\x05", "num_lines"),
        (7..8, LARGEST, "num_lines"),
        (8..9, LARGEST, "num_items"),
        (8..9, b"\x81\x0c", "num_items"),
        (9..10, b"\x02", "lines_per_item"),
    ];
    for (range, bytes, field) in cases {
        let refused = refused_field::<LineFilter>(forged(&header, range.clone(), bytes));
        assert_eq!(refused, field, "at {range:?}: {bytes:?}");
    }
    // Where the payload is, and what is left of it.
    let (empty, end) = (filter(10, 2, 0).header(), header.len() - 4);
    assert_eq!(empty, forged(&empty, 0..12, b"\xf1\x02\x01\x0a\x02\x07\x01\x01\0\x01\x07\x02"));
    for (range, bytes, field) in [
        (11..12, &b"\x03"[..], "payload form"),
        (11..12, b"\x01", "payload length"),
        (11..13, b"\0\0", "header length"),
        (12..13, b"\x01", "coded payload"),
        (12..13, b"\0\0", "coded payload"),
    ] {
        let refused = refused_field::<LineFilter>(forged(&empty, range.clone(), bytes));
        assert_eq!(refused, field, "at {range:?}: {bytes:?}");
    }
    assert_eq!(refused_field::<LineFilter>(forged(&header, end..end, b"\0")), "payload length");
    assert_eq!(refused_field::<LineFilter>(forged(&header, end - 1..end, b"")), "payload length");
    // A few bytes do not stand for many megabytes.
    let params = bloom::Params { error_rate: 0.01, capacity: 2_000_000, expansion: 0, seed: 0 };
    let large = LineFilter::new(params, &Unlimited).unwrap().header();
    let form = large.len() - 5;
    assert_eq!(refused_field::<LineFilter>(forged(&large, form..form + 1, b"\x02\0")), "payload length");
}

#[test]
fn forged_counter_headers_are_refused_by_field() {
    let header = counter(50_000, 250, 40).header();
    assert_eq!(header[..16], *b"\xc1\0\x0e\x0a\x02\x01\xd0\x86\x03\xfa\x01\x80\x80\x01\x07\x01");
    let cases: [(Range<usize>, &[u8], &str); 22] = [
        (0..1, b"\xc2", "version"),
        (0..1, b"\xf1", "kind"),
        (1..2, b"\x03", "representation"),
        (2..3, b"\x08", "precision"),
        (2..3, b"\x20", "precision"),
        (2..3, b"\x0a", "tail bits"),
        (3..4, b"\x07", "tail bits"),
        (3..4, b"\x0e", "tail bits"),
        (3..4, b"\x15", "tail bits"),
        (4..6, &long_rate(f64::INFINITY), "error rate"),
        (4..6, b"\x04\x01", "error rate"),
        (6..9, b"\0", "capacity"),
        (6..9, LARGEST, "capacity"),
        (9..11, b"\xf0\xa2\x04", "exact limit"),
        (9..11, LARGEST, "exact_limit"),
        (11..14, b"\0", "exact bytes"),
        (11..14, b"\x81\x80\x40", "exact bytes"),
        (15..16, b"\x02", "payload form"),
        (15..16, b"\x03", "payload form"),
        (15..16, b"\0", "header length"),
        (16..17, b"\x7f", "members"),
        (16..16, b"\0\0", "members"),
    ];
    for (range, bytes, field) in cases {
        let refused = refused_field::<Counter>(forged(&header, range.clone(), bytes));
        assert_eq!(refused, field, "at {range:?}: {bytes:?}");
    }
    // A payload apart, longer than any counter of these parameters has.
    let end = header.len() - 4;
    assert_eq!(refused_field::<Counter>(forged(&header, 15..end, &[b"\0", LARGEST].concat())), "payload length");
    // Positions: a floor before them, and more of them than for half the bytes of the bitmap, which a counter would hold.
    let sparse = counter(10_000_000, 10, 40);
    let (header, end) = (sparse.header(), sparse.header().len() - 4);
    assert_eq!(header[14..18], *b"\x07\x0b\x02\x28");
    assert_eq!(refused_field::<Counter>(forged(&header, 15..16, b"\x82\x80\x04")), "floor");
    assert_eq!(refused_field::<Counter>(forged(&header, 16..17, b"\x03")), "payload form");
    assert_eq!(refused_field::<Counter>(forged(&header, 16..end, b"\x01\0\0\0")), "payload length");
    assert_eq!(refused_field::<Counter>(forged(&header, 16..end, b"\x01\xff\xff\xff\xff")), "position");
    let as_it_is = forged(&header, 16..end, b"\x01\x05\0\0\0\x06\0\0\0");
    let loaded = persist::load::<Counter, _>([(1, as_it_is)], &Unlimited).unwrap();
    assert_eq!((loaded.representation(), loaded.set_bits()), (sparse.representation(), 2));
    assert_eq!(refused_field::<Counter>(forged(&header, 17..18, b"\x27")), "coded payload");
    assert_eq!(refused_field::<Counter>(forged(&header, 17..18, LARGEST)), "payload length");
    let mut too_many = vec![0];
    let mut rest = sparse.layout().num_bytes() / 2 + 4;
    while rest >= 0x80 {
        too_many.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    too_many.push(rest as u8);
    assert_eq!(refused_field::<Counter>(forged(&header, 16..end, &too_many)), "payload length");
}

/// What a header encloses may come apart as well: where the one ends and the other begins is free to change.
#[test]
fn small_payloads_may_come_apart() {
    let whole = filter(10, 2, 5);
    let (header, bits) = (whole.header(), whole.sub_filters()[0].as_bytes());
    let apart = forged(&header, 11..header.len() - 4, b"\0");
    let as_it_is = forged(&header, 11..header.len() - 4, &[b"\x01", bits].concat());
    assert!(same_dump(&persist::load::<LineFilter, _>([(1, as_it_is)], &Unlimited).unwrap(), &whole));
    type Arriving = <LineFilter as Stored>::Loading;
    let loading = Arriving::begin(&apart, &Unlimited).unwrap();
    assert_eq!((loading.total_bytes(), loading.received_bytes()), (64, 0));
    for end in 0..64 {
        let mut cut = Arriving::begin(&apart, &Unlimited).unwrap();
        cut.push(&bits[..end]).unwrap();
        let mut again: Arriving = load_rdb(&rdb_of_loading(&cut)).unwrap();
        again.push(&bits[end..]).unwrap();
        assert!(same_dump(&again.finish().unwrap(), &whole));
    }
}

/// Forged members: their checksum is right, their contents are not.
#[test]
fn members_that_cannot_be_are_refused() {
    let header = counter(50_000, 2, 2).header();
    let end = header.len() - 4;
    assert_eq!(header[..16], *b"\xc1\0\x0e\x0a\x02\x01\xd0\x86\x03\x02\x80\x80\x01\x07\x01\x08");
    for members in [&b"\x01a\x01a"[..], b"\x03ab", b"\x01a\x01b\x01c", b"\x81\0a"] {
        assert_eq!(refused_field::<Counter>(forged(&header, 15..end, members)), "members", "{members:?}");
        // The same apart.
        let apart = forged(&header, 14..end, &[0, members.len() as u8]);
        let fingerprint = checksum(&[0, 14, 10], members.len() as u64);
        let mut chunk = members.to_vec();
        chunk.extend_from_slice(&piece_checksum(members, 0, fingerprint).to_le_bytes());
        let next = 1 + members.len() as u64;
        let refused = refusal::<Counter>(vec![(1, apart), (next, chunk)]);
        assert!(matches!(refused, Some(Error::Corrupt { field: "members", .. })), "{members:?}: {refused:?}");
    }
}

/// The table in the documentation of the format is what is written.
#[test]
fn headers_are_laid_out_as_documented() {
    // Kind and version, rate, capacity, expansion, seed, sub-filters; lines, items, lines an item, probes a line; form.
    let mut expected = b"\xf1\x02\x01\x64\x02\x07\x04".to_vec();
    let filter = filter(100, 2, 1000);
    let number = |number: u64| [number as u8 & 0x7f | if number < 128 { 0 } else { 128 }, (number >> 7) as u8];
    for sub_filter in filter.sub_filters() {
        let geometry = sub_filter.geometry();
        let numbers = [geometry.num_lines, sub_filter.num_items(), geometry.lines_per_item.into()];
        for value in numbers.into_iter().chain([geometry.probes_per_line.into()]) {
            expected.extend_from_slice(&number(value)[..if value < 128 { 1 } else { 2 }]);
        }
    }
    expected.push(1);
    filter.sub_filters().iter().for_each(|sub_filter| expected.extend_from_slice(sub_filter.as_bytes()));
    expected.extend_from_slice(&(checksum(&expected, 0) as u32).to_le_bytes());
    assert_eq!(filter.header(), expected);
    assert!(Stored::payload(&filter).is_empty());
    let large = self::filter(10_000, 2, 0);
    assert_eq!(large.header().len(), 7 + 6 + 1 + 4);
    assert_eq!(Stored::payload(&large).len(), 64 * large.sub_filters()[0].geometry().num_lines);
    // Kind and version, representation, precision, tail bits, rate, capacity, exact limit, exact bytes, seed.
    let fields = b"\x0e\x0a\x02\x01\xd0\x86\x03\xfa\x01\x80\x80\x01\x07";
    let exact = counter(50_000, 250, 40).header();
    assert_eq!(exact[..16], [&b"\xc1\0"[..], fields, b"\x01"].concat());
    assert_eq!(exact[16..25], *b"\x08member:0");
    let sparse = counter(50_000, 250, 300);
    let floor_form_and_set_bits = [0xfb, 0x01, 0x02, 0xa9, 0x02];
    assert_eq!(sparse.set_bits(), 0x129);
    assert_eq!(sparse.header()[..20], [&b"\xc1\x01"[..], fields, &floor_form_and_set_bits].concat());
    let dense = counter(50_000, 250, 3000).header();
    assert_eq!(dense[..dense.len() - 4], [&b"\xc1\x02"[..], fields, b"\xfb\x01\0\x80\x24"].concat());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any header fields under a right checksum: accepted or refused, never a panic nor a huge allocation.
    #[test]
    fn any_forged_header_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100), at in 1usize..100, replaced in 0usize..20) {
        for header in [filter(10, 2, 40).header(), counter(50_000, 250, 40).header()] {
            let end = header.len() - 4;
            let at = at.min(end);
            let header = forged(&header, at..end.min(at + replaced), &bytes);
            let _ = persist::load::<LineFilter, _>([(1, header.clone())], &MaxBytes(1 << 20));
            let _ = persist::load::<Counter, _>([(1, header)], &MaxBytes(1 << 20));
        }
    }
}
