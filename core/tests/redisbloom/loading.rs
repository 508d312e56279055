//! Filters on their way in, in our format and in RedisBloom's: what reads back, what goes on, what is refused.

use proptest::prelude::*;
use rollcall_core::bloom::{BitLayout, BloomFilter, ClassicFilter};
use rollcall_core::error::Error;
use rollcall_core::persist::{self, ChunkFormat, Loading, Stored, redisbloom};
use rollcall_core::size_limit::{MaxBytes, Unlimited};

use crate::support::Field::{self, Double, String as Bytes, Unsigned};
use crate::support::{Dump, Fields, HeaderOf, classic, grown, item, params};

fn push_all(mut loading: persist::bloom::LoadingBloomFilter, chunks: &[(u64, Vec<u8>)]) -> BloomFilter {
    chunks.iter().for_each(|(next, chunk)| persist::push_chunk(&mut loading, *next, chunk).unwrap());
    loading.finish().unwrap()
}

#[test]
fn loading_goes_on_where_it_was_stored() {
    let filter = BloomFilter::from(grown());
    let BloomFilter::Classic(inner) = &filter else { unreachable!() };
    let (ours, theirs): (Dump, Dump) = (persist::dump(&filter).collect(), redisbloom::dump(inner).collect());
    for (dump, format) in [(ours, ChunkFormat::Checked), (theirs, ChunkFormat::Plain)] {
        for stored_after in 1..=dump.len() {
            let begin = <BloomFilter as Stored>::Loading::begin;
            let mut loading = begin(&dump[0].1, &Unlimited).unwrap();
            assert_eq!(loading.chunk_format(), format);
            assert!(dump[1..stored_after].iter().all(|(next, c)| persist::push_chunk(&mut loading, *next, c).is_ok()));
            // A rewritten AOF.
            let rewritten: Dump = persist::dump_loading(&loading).collect();
            assert_eq!(rewritten, dump[..stored_after]);
            // An RDB file: header and payload, whatever the chunks look like.
            let mut again = begin(loading.header(), &Unlimited).unwrap();
            for (position, piece) in loading.received().pieces(100) {
                let sum = persist::piece_checksum(&piece, position, loading.shape());
                persist::check_piece(&again, &piece, sum).unwrap();
                again.push(&piece).unwrap();
            }
            assert_eq!((again.received_bytes(), again.chunk_format()), (loading.received_bytes(), format));
            assert!(push_all(again.try_clone().unwrap(), &dump[stored_after..]) == filter);
            assert!(push_all(loading, &dump[stored_after..]) == filter);
        }
    }
}

/// Our header is told from RedisBloom's even where the count of items spells our magic.
#[test]
fn headers_are_told_apart() {
    let spelt = u64::from(u32::from_le_bytes(*b"RCBF"));
    for size in [spelt, spelt | 1 << 32, spelt | 0x0000_0100_0000_0000] {
        let mut header = HeaderOf::of(&classic(params(0.01, 10, 2)));
        (header.size, header.links[0].size) = (size, size);
        assert!(redisbloom::is_header(&header.bytes()));
        // So many items take so many bits. The memory is zeroed by the system, page by page, as it is used.
        (header.links[0].bits, header.links[0].bytes) = (size.next_multiple_of(64), size.next_multiple_of(64) / 8);
        match <BloomFilter as Stored>::Loading::begin(&header.bytes(), &MaxBytes(1 << 30)) {
            Ok(loading) => {
                assert_eq!((loading.chunk_format(), loading.total_bytes()), (ChunkFormat::Plain, header.links[0].bytes))
            }
            Err(error) => assert!(size >> 40 > 0 && matches!(error, Error::TooLarge { .. }), "{error}"),
        }
    }
    for (layout, expansion) in [(BitLayout::Lines, 0), (BitLayout::Classic, 0), (BitLayout::Classic, 2)] {
        let header = BloomFilter::new(layout, params(0.01, 10, expansion), &Unlimited).unwrap().header();
        assert!(!redisbloom::is_header(&header));
        assert!(!redisbloom::is_header(&header[..20]));
    }
}

#[test]
fn chunks_out_of_place_are_refused_and_change_nothing() {
    let filter = grown();
    let dump: Dump = redisbloom::dump(&filter).collect();
    let mut loading = <BloomFilter as Stored>::Loading::begin(&dump[0].1, &Unlimited).unwrap();
    let total = loading.total_bytes();
    assert_eq!(total, dump[1..].iter().map(|(_, chunk)| chunk.len() as u64).sum::<u64>());
    for (index, (next, chunk)) in dump[1..].iter().enumerate() {
        let received = loading.received_bytes();
        let longer = [chunk.as_slice(), &vec![0; total as usize]].concat();
        let later = dump.get(index + 2).map(|(next, chunk)| (*next, chunk.clone()));
        let wrong = [
            Some((*next, Vec::new())),
            Some((received + 1, Vec::new())),
            Some((next + 1, chunk.clone())),
            Some((0, chunk.clone())),
            Some((1, chunk.clone())),
            Some((u64::MAX, chunk.clone())),
            Some((received + 1 + longer.len() as u64, longer)),
            later,
        ];
        for (next, chunk) in wrong.into_iter().flatten() {
            assert!(matches!(persist::push_chunk(&mut loading, next, &chunk), Err(Error::Corrupt { .. })));
            assert_eq!(loading.received_bytes(), received);
        }
        persist::push_chunk(&mut loading, *next, chunk).unwrap();
    }
    assert!(persist::push_chunk(&mut loading, total + 2, &[0]).is_err());
    assert!(loading.finish().unwrap() == BloomFilter::from(filter));
}

/// Our header of a classic filter with fields changed and its checksum made right again.
fn forged(header: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut header = header[..header.len() - 8].to_vec();
    header[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = rollcall_core::hash::checksum(&header, 0);
    header.extend_from_slice(&sum.to_le_bytes());
    header
}

#[test]
fn our_headers_are_laid_out_as_documented_and_refused_by_field() {
    let filter = grown();
    let header = filter.header();
    assert_eq!(header.len(), 40 + 48 * 3 + 8);
    assert_eq!(&header[..8], b"RCBF\x01\x01\x05\0");
    let f64_bytes = |value: f64| value.to_bits().to_le_bytes().to_vec();
    assert_eq!(header[8..16], [0; 8]);
    assert_eq!(header[16..24], f64_bytes(0.01));
    assert_eq!(header[24..32], 50u64.to_le_bytes());
    assert_eq!(header[32..40], [2, 0, 0, 0, 3, 0, 0, 0]);
    let first = &filter.sub_filters()[0];
    assert_eq!(header[40..48], first.shape().num_bytes.to_le_bytes());
    assert_eq!(header[48..56], 50u64.to_le_bytes());
    assert_eq!(header[56..64], 50u64.to_le_bytes());
    assert_eq!(header[64..72], f64_bytes(0.005));
    assert_eq!(header[72..80], f64_bytes(first.shape().bits_per_item));
    assert_eq!(header[80..88], [8, 0, 0, 0, 0, 0, 0, 0]);
    let cases: [(usize, Vec<u8>, &str); 20] = [
        (4, vec![2], "version"),
        (5, vec![2], "layout"),
        (6, vec![1], "options"),
        (6, vec![0xff], "options"),
        (6, vec![13], "number of sub-filters"),
        (8, vec![1], "seed"),
        (16, f64_bytes(f64::NAN), "error_rate"),
        (16, f64_bytes(0.02), "error_rate"),
        (24, vec![51], "capacity"),
        (32, vec![0], "growth"),
        (36, vec![0], "header length"),
        (36, vec![0xff; 4], "header length"),
        (40, vec![0; 8], "num_bytes"),
        (48, vec![0xff; 8], "num_items"),
        (56, vec![0; 8], "capacity"),
        (64, f64_bytes(f64::INFINITY), "error_rate"),
        (72, f64_bytes(-1.0), "bits_per_item"),
        (80, vec![9], "hashes"),
        (84, vec![7], "num_bytes"),
        (85, vec![1], "reserved bytes"),
    ];
    for (at, bytes, field) in cases {
        let header = forged(&header, at, &bytes);
        let refused = persist::load::<BloomFilter, _>([(1, header)], &MaxBytes(1 << 20)).err();
        assert!(matches!(&refused, Some(Error::Corrupt { field: got, .. }) if *got == field), "at {at}: {refused:?}");
    }
}

/// What a flipped bit does: a checksum tells in our format; in RedisBloom's, which has none, a field may.
#[test]
fn damage_is_refused_or_harmless() {
    let filter = BloomFilter::from(grown());
    let dump: Dump = persist::dump(&filter).collect();
    for chunk in 0..dump.len() {
        for bit in 0..dump[chunk].1.len() * 8 {
            let mut flipped = dump.clone();
            flipped[chunk].1[bit / 8] ^= 1 << (bit % 8);
            let refused = persist::load::<BloomFilter, _>(flipped, &MaxBytes(1 << 20)).err();
            assert!(matches!(refused, Some(Error::Corrupt { .. })), "chunk {chunk}, bit {bit}");
        }
    }
    let header = HeaderOf::of(&grown()).bytes();
    for bit in 0..header.len() * 8 {
        let mut flipped = header.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let payload = vec![0xff; 4096];
        let _ = persist::load::<BloomFilter, _>([(1, flipped), (4097, payload)], &MaxBytes(1 << 20));
    }
}

fn any_field() -> impl Strategy<Value = Field> {
    prop_oneof![
        prop_oneof![any::<u64>(), 0u64..2000, (0u32..64).prop_map(|bit| 1 << bit)].prop_map(Unsigned),
        prop_oneof![any::<f64>(), 0.0..1.0f64].prop_map(Double),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_classic_filter_reads_back_every_way(
        capacity in 1u64..300, exponent in 0.05f64..9.0, expansion in 0u32..5, items in prop::collection::vec(".{0,20}", 0..400),
    ) {
        let mut filter = classic(params(10f64.powf(-exponent), capacity, expansion));
        // One that does not scale may be full.
        let _ = filter.add_all(items.iter().map(String::as_bytes), &Unlimited, |_| ());
        let ours: ClassicFilter = persist::load(persist::dump(&filter), &Unlimited).unwrap();
        prop_assert!(ours == filter);
        let theirs: ClassicFilter = persist::load(redisbloom::dump(&filter), &Unlimited).unwrap();
        prop_assert!(theirs == filter);
        let mut fields = HeaderOf::of(&filter).rdb();
        for (index, sub_filter) in filter.sub_filters().iter().enumerate() {
            fields[4 + 8 * index + 6] = Bytes(sub_filter.as_bytes().to_vec());
        }
        let rdb = redisbloom::decode_rdb(&mut Fields(&fields), 4, &Unlimited).unwrap();
        prop_assert!(rdb == filter);
    }

    #[test]
    fn any_bytes_are_a_clean_refusal(chunks in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..200)), 0..4)) {
        prop_assert!(persist::load::<BloomFilter, _>(chunks.clone(), &MaxBytes(1 << 20)).is_err());
        prop_assert!(persist::load::<ClassicFilter, _>(chunks, &MaxBytes(1 << 20)).is_err());
    }

    #[test]
    fn any_forged_header_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0usize..180, ours: bool) {
        let filter = grown();
        let mut header = if ours { filter.header() } else { redisbloom::header(&filter) };
        let at = at.min(header.len() - 8);
        let len = bytes.len().min(header.len() - 8 - at);
        header = if ours { forged(&header, at, &bytes[..len]) } else { header[at..at + len].copy_from_slice(&bytes[..len]); header };
        let payload = (1 + 1024, vec![0xff; 1024]);
        let _ = persist::load::<BloomFilter, _>([(1, header), payload], &MaxBytes(1 << 20));
    }

    #[test]
    fn any_rdb_fields_are_read_or_refused(at in 0usize..28, fields in prop::collection::vec(any_field(), 1..5), encoding in 0u32..6) {
        let mut value = HeaderOf::of(&grown()).rdb();
        let _ = redisbloom::decode_rdb(&mut Fields(&fields), encoding, &MaxBytes(1 << 20));
        for (index, field) in fields.into_iter().enumerate() {
            if let Some(old) = value.get_mut(at + index) {
                *old = field;
            }
        }
        if let Ok(mut filter) = redisbloom::decode_rdb(&mut Fields(&value), encoding, &MaxBytes(1 << 20)) {
            // What was believed can be used.
            for index in 0..200 {
                let _ = filter.add(&item(index), &MaxBytes(1 << 20));
                prop_assert!(filter.add(&item(index), &MaxBytes(1 << 20)) != Ok(true));
            }
        }
    }
}
