//! Tests loading of classic filters: complete, interrupted and damaged dumps.

use rollcall_core::bloom::{BitLayout, BloomFilter};
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, SizeLimit, Unlimited};
use rollcall_core::unstable::persist::{ChunkFormat, Partial, PartialFilter, is_redisbloom_header, push_chunk, rdb};

use rollcall_fuzz::redisbloom_values::Field::{self, Double, String as Bytes, Unsigned};
use rollcall_fuzz::redisbloom_values::{Fields, HeaderOf, classic, dump_of, grown, params, written};

fn load_rdb(fields: &[Field], limit: &impl SizeLimit) -> Result<PartialFilter, Error> {
    rdb::load(&mut Fields(fields), limit)
}

/// Rollcall's headers are distinguished from RedisBloom's, even if RedisBloom's item count looks like the kind byte of
/// Rollcall's.
#[test]
fn headers_are_distinguished() {
    let spelt = 0x4642_43f1;
    for size in [spelt, spelt | 1 << 32, spelt | 0x0000_0100_0000_0000] {
        let mut header = HeaderOf::of(&classic(params(0.01, 10, 2)));
        (header.size, header.links[0].size) = (size, size);
        assert!(is_redisbloom_header(&header.bytes()));
        // RedisBloom's header claims this number of items and of bits. The kernel provides memory only on first use,
        // so the test uses little.
        (header.links[0].bits, header.links[0].bytes) = (size.next_multiple_of(64), size.next_multiple_of(64) / 8);
        match <BloomFilter as Value>::Partial::begin(&header.bytes(), &MaxBytes(1 << 30)) {
            Ok(loading) => {
                assert_eq!((loading.chunk_format(), loading.total_bytes()), (ChunkFormat::Plain, header.links[0].bytes))
            }
            Err(error) => assert!(size >> 40 > 0 && matches!(error, Error::TooLarge { .. }), "{error}"),
        }
    }
    for (layout, expansion) in [(BitLayout::Lines, 0), (BitLayout::Classic, 0), (BitLayout::Classic, 2)] {
        let header = BloomFilter::new(layout, params(0.01, 10, expansion), &Unlimited).unwrap().header();
        let is_classic = layout == BitLayout::Classic;
        assert_eq!(is_redisbloom_header(&header), is_classic);
        assert_eq!(is_redisbloom_header(&header[..10]), is_classic);
    }
}

#[test]
fn chunks_out_of_place_are_rejected_and_change_nothing() {
    let filter = grown();
    let dump = dump_of(&filter);
    let mut loading = <BloomFilter as Value>::Partial::begin(&dump[0].1, &Unlimited).unwrap();
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
            assert!(matches!(push_chunk(&mut loading, next, &chunk), Err(Error::Corrupt { .. })));
            assert_eq!(loading.received_bytes(), received);
        }
        push_chunk(&mut loading, *next, chunk).unwrap();
    }
    assert!(push_chunk(&mut loading, total + 2, &[0]).is_err());
    assert!(loading.finish().unwrap() == filter);
}

/// In the RDB value of a partially loaded filter, every flipped bit is detected. RedisBloom's chunks have no checksum,
/// so in chunks only some flipped bits are detected.
#[test]
fn damage_is_rejected_or_harmless() {
    let filter = grown();
    let dump = dump_of(&filter);
    let mut loading = PartialFilter::begin(&dump[0].1, &Unlimited).unwrap();
    dump[1..3].iter().for_each(|(next, chunk)| push_chunk(&mut loading, *next, chunk).unwrap());
    let fields = written(|sink| rdb::save_partial(&loading, sink));
    assert_eq!(fields.len(), 1 + 2 + 2 * 2);
    for (at, field) in fields.iter().enumerate() {
        let num_bits = if let Bytes(bytes) = field { 8 * bytes.len() } else { 64 };
        for bit in 0..num_bits {
            let mut flipped = fields.clone();
            match &mut flipped[at] {
                Bytes(bytes) => bytes[bit / 8] ^= 1 << (bit % 8),
                Unsigned(number) => *number ^= 1 << bit,
                Double(_) => unreachable!("values of ours have none"),
            }
            let rejected = load_rdb(&flipped, &MaxBytes(1 << 20)).err();
            let is_named = matches!(rejected, Some(Error::Corrupt { .. } | Error::TooLarge { .. }));
            assert!(is_named, "field {at}, bit {bit}: {rejected:?}");
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
