//! Tests RedisBloom headers and RDB values with one wrong field. Each is rejected, with an error that names a field.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, SizeLimit, Unlimited};
use rollcall_core::unstable::bloom::Rules;
use rollcall_core::unstable::persist::redisbloom::{self, RDB_ENCODING_NEWEST};
use rollcall_core::window::Time;

use rollcall_fuzz::redisbloom_values::Field::{self, String as Bytes, Unsigned};
use rollcall_fuzz::redisbloom_values::{Dump, Fields, HeaderOf, Link, classic, dump_of, grown, params};

fn rejected_field(result: Result<BloomFilter, Error>) -> &'static str {
    match result {
        Err(Error::Corrupt { field, .. }) => field,
        other => panic!("expected a named field, got {other:?}"),
    }
}

fn load_header(header: Vec<u8>) -> Result<BloomFilter, Error> {
    persist::load([(1, header)], &MaxBytes(1 << 20))
}

fn load_rdb(fields: &[Field]) -> Result<BloomFilter, Error> {
    load_rdb_of(RDB_ENCODING_NEWEST, fields, &MaxBytes(1 << 20))
}

fn load_rdb_of(encoding: u32, fields: &[Field], limit: &impl SizeLimit) -> Result<BloomFilter, Error> {
    redisbloom::load_rdb(&mut Fields(fields), encoding, limit)
}

/// A description of the damage, a function that makes it, and the fields that the errors name: for the dump, then for
/// the RDB value.
type Forgery = (&'static str, fn(&mut HeaderOf), &'static str, &'static str);

/// Damages that RedisBloom accepted, some with harmful results. RDB values have no field `bytes`; the length of the
/// bitmap's string takes its place.
const FORGERIES: [Forgery; 28] = [
    ("no sub-filter", |h| h.links.clear(), "header length", "capacity"),
    (
        "no sub-filter, and said so",
        |h| (h.count, h.links) = (0, Vec::new()),
        "number of sub-filters",
        "number of sub-filters",
    ),
    ("more than there are", |h| h.count = 4, "header length", "capacity"),
    ("as many as can be", |h| h.count = u32::MAX, "header length", "number of sub-filters"),
    (
        "one more than any chain has",
        |h| (h.count, h.links) = (1201, vec![h.links[0].clone(); 1201]),
        "number of sub-filters",
        "number of sub-filters",
    ),
    ("an option that is none", |h| h.options |= 16, "options", "options"),
    ("32-bit hashes", |h| h.options = Rules::NOROUND, "options", "options"),
    (
        "several although it does not scale",
        |h| h.options |= Rules::NO_SCALING,
        "number of sub-filters",
        "number of sub-filters",
    ),
    ("a rate that is no number", |h| h.links[0].error_rate = f64::NAN, "error_rate", "error_rate"),
    ("an infinite rate", |h| h.links[1].error_rate = f64::INFINITY, "error_rate", "error_rate"),
    ("a rate of 0", |h| h.links[1].error_rate = 0.0, "error_rate", "error_rate"),
    ("a rate of 1", |h| h.links[1].error_rate = 1.0, "error_rate", "error_rate"),
    ("a negative rate", |h| h.links[2].error_rate = -0.1, "error_rate", "error_rate"),
    ("bits an item that are no number", |h| h.links[0].bits_per_item = f64::NAN, "bits_per_item", "bits_per_item"),
    ("infinite bits an item", |h| h.links[0].bits_per_item = f64::INFINITY, "bits_per_item", "bits_per_item"),
    ("negative bits an item", |h| h.links[0].bits_per_item = -1.0, "bits_per_item", "bits_per_item"),
    (
        "hashes without end",
        |h| (h.links[0].bits_per_item, h.links[0].hashes) = (6e9, u32::MAX),
        "bits_per_item",
        "bits_per_item",
    ),
    ("hashes that do not follow", |h| h.links[1].hashes += 1, "hashes", "hashes"),
    ("no hashes", |h| h.links[1].hashes = 0, "hashes", "hashes"),
    ("no capacity", |h| h.links[0].capacity = 0, "capacity", "capacity"),
    // CVE-2026-25589 and the out-of-bounds writes: positions beyond the bitmap.
    ("more bits than bytes", |h| h.links[0].bits += 64, "bits", "data length"),
    ("more bytes than bits", |h| h.links[0].bytes += 8, "bits", "data length"),
    ("no bytes", |h| (h.links[0].bytes, h.links[0].bits) = (0, 0), "num_bytes", "num_bytes"),
    ("a power of two beyond the bytes", |h| h.links[0].n2 = 20, "num_bytes", "num_bytes"),
    ("a power of two that no shift can be", |h| h.links[0].n2 = 64, "n2", "n2"),
    ("another sum of items", |h| h.size += 1, "size", "size"),
    ("more items than bits", |h| h.links[0].size = 8 * h.links[0].bytes + 1, "num_items", "num_items"),
    ("items that overflow", |h| (h.links[0].size, h.links[1].size) = (u64::MAX, 1), "num_items", "num_items"),
];

#[test]
fn forged_headers_and_values_are_rejected_by_field() {
    let header = HeaderOf::of(&grown());
    assert!(load_rdb(&header.rdb()).is_ok());
    let complete = load_header(header.bytes());
    assert_eq!(rejected_field(complete), "payload length", "an honest header lacks only its payload");
    for (what, forge, dump_field, rdb_field) in FORGERIES {
        let mut forged = header.clone();
        forge(&mut forged);
        assert_eq!(rejected_field(load_header(forged.bytes())), dump_field, "{what}, dump");
        assert_eq!(rejected_field(load_rdb(&forged.rdb())), rdb_field, "{what}, RDB");
    }
    let long = [header.bytes(), vec![0]].concat();
    assert_eq!(rejected_field(load_header(long)), "header length");
    for len in 0..header.bytes().len() {
        assert!(matches!(load_header(header.bytes()[..len].to_vec()), Err(Error::Corrupt { .. })), "{len}");
    }
}

#[test]
fn rdb_values_are_rejected_by_field_where_they_end_or_differ() {
    let fields = HeaderOf::of(&grown()).rdb();
    for len in 0..fields.len() {
        assert!(matches!(load_rdb(&fields[..len]), Err(Error::Corrupt { .. })), "{len}");
    }
    let with = |at: usize, field: Field| {
        let mut fields = fields.clone();
        fields[at] = field;
        rejected_field(load_rdb(&fields))
    };
    assert_eq!(with(1, Unsigned(u64::MAX)), "number of sub-filters");
    assert_eq!(with(1, Unsigned(1200)), "capacity", "as many sub-filters as can be, of which three come");
    assert_eq!(with(2, Unsigned(1 << 32 | 5)), "options");
    assert_eq!(with(3, Unsigned(1 << 32)), "growth");
    assert_eq!(with(6, Unsigned(1 << 32 | 8)), "hashes");
    assert_eq!(with(8, Unsigned(1001)), "bits");
    assert_eq!(with(9, Unsigned(1 << 8)), "n2");
    assert_eq!(with(10, Bytes(Vec::new())), "data length");
    assert_eq!(with(10, Bytes(vec![0; 1 << 16])), "data length");
    for encoding in [5, 100, u32::MAX] {
        let rejected = load_rdb_of(encoding, &fields, &Unlimited);
        assert_eq!(rejected_field(rejected), "encoding version");
    }
}

/// RedisBloom stores `EXPANSION 4294967296` as a growth factor of 0. When such a filter is full, it gets a sub-filter
/// without bits, which reports every item as present.
#[test]
fn a_growth_of_0_is_read_as_2_and_a_sub_filter_of_no_bits_is_left_out() {
    let grown = grown();
    let without_bits =
        Link { bytes: 0, bits: 0, size: 0, error_rate: 0.0, bits_per_item: 0.0, hashes: 0, capacity: 0, n2: 0 };
    let mut header = HeaderOf { growth: 0, ..HeaderOf::of(&grown) };
    let bits = &dump_of(&grown)[1..];
    for _ in 0..2 {
        let dump = [(1, header.bytes())].into_iter().chain(bits.iter().cloned());
        let loaded: BloomFilter = persist::load(dump, &Unlimited).unwrap();
        assert!(loaded == grown, "{loaded:?}");
        let mut fields = header.rdb();
        for (link, (_, chunk)) in bits.iter().enumerate() {
            fields[4 + 8 * link + 6] = Bytes(chunk.clone());
        }
        assert!(load_rdb(&fields).unwrap() == grown);
        header.links.push(without_bits.clone());
        header.count += 1;
    }
    // A sub-filter without bits is accepted only at the end.
    header.links.swap(1, 3);
    assert_eq!(rejected_field(load_header(header.bytes())), "capacity");
    assert_eq!(rejected_field(load_rdb(&header.rdb())), "sub-filter without bits");
}

/// Positions are taken modulo a power of two, which may be less than the bits of a word. A regression test, found by
/// fuzzing: such a filter reported nine times as many set bits as it has bits.
#[test]
fn bits_beyond_all_positions_fill_nothing() {
    let mut header = HeaderOf::of(&classic(params(0.01, 1, 1)));
    header.options = Rules::FORCE64;
    let link = Link { bytes: 8, bits: 64, error_rate: 0.9, bits_per_item: 0.2, hashes: 1, capacity: 9, n2: 1, size: 0 };
    header.links = vec![link];
    let mut fields = header.rdb();
    fields[10] = Bytes(vec![0x55; 8]);
    let filter = load_rdb(&fields).unwrap();
    assert_eq!((filter.fill_ratio(), filter.false_positive_rate()), (1.0, 1.0));
    fields[10] = Bytes(vec![0; 8]);
    assert_eq!(load_rdb(&fields).unwrap().fill_ratio(), 0.0);
}

/// The longest chain that RedisBloom can make has 1,075 sub-filters, which is above Rollcall's own limit.
#[test]
fn chains_longer_than_ours_are_read_whole() {
    let mut header = HeaderOf::of(&classic(params(0.01, 1, 1)));
    (header.count, header.links) = (1200, vec![header.links[0].clone(); 1200]);
    let bits: Dump = (0..1200).map(|link| (8 * (link + 1) + 1, vec![1; 8])).collect();
    let dump = [(1, header.bytes())].into_iter().chain(bits);
    let mut loaded = persist::load::<BloomFilter, _>(dump, &Unlimited).unwrap();
    assert_eq!((loaded.sub_filters().len(), loaded.num_items()), (1200, 0));
    assert_eq!(load_rdb(&header.rdb()).unwrap().sub_filters().len(), 1200);
    let mut live = loaded.live(Time::Reached);
    live.add(b"a", &Unlimited).unwrap();
    assert!(live.add(b"b", &Unlimited).is_err(), "it grows no further");
    assert!(loaded.may_contain(b"a"));
}

#[test]
fn errors_name_redisbloom_1_and_its_32_bit_hashes() {
    let header = HeaderOf::of(&grown());
    let without_options: Vec<Field> = [&header.rdb()[..2], &header.rdb()[4..]].concat();
    let old = HeaderOf { options: Rules::NOROUND, ..header };
    let errors = [
        load_header(old.bytes()),
        load_rdb(&old.rdb()),
        load_rdb_of(0, &without_options, &Unlimited),
        load_rdb_of(1, &without_options, &Unlimited),
    ];
    for rejected in errors {
        let text = rejected.unwrap_err().to_string();
        assert!(text.contains("RedisBloom 1.x") && text.contains("32-bit hashes"), "{text}");
    }
}

#[test]
fn sizes_are_checked_before_they_are_allocated() {
    let mut huge = HeaderOf::of(&grown());
    (huge.links[1].bytes, huge.links[1].bits) = (1 << 50, 1 << 53);
    assert!(matches!(load_header(huge.bytes()), Err(Error::TooLarge { .. })));
    assert!(matches!(load_rdb(&huge.rdb()), Err(Error::TooLarge { .. })));
    // Without a limit, memory is allocated only once the bytes that an RDB value claims have been read.
    let rejected = load_rdb_of(4, &huge.rdb(), &Unlimited);
    assert_eq!(rejected_field(rejected), "data length");
    (huge.links[1].bytes, huge.links[1].bits) = (1 << 61, 1 << 63);
    assert_eq!(rejected_field(load_header(huge.bytes())), "bits");
    let filter = grown();
    let dump = dump_of(&filter);
    let rejected = persist::load::<BloomFilter, _>(dump, &MaxBytes(100));
    assert!(matches!(rejected, Err(Error::TooLarge { .. })));
}
