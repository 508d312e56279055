//! RedisBloom's filters, here: the same bits, numbers, answers and dumps as RedisBloom 2.8.2 had after the same
//! commands (`golden/redisbloom-*.txt`), and every way a dump or value of it can be wrong.

use proptest::prelude::*;
use rollcall::bloom::classic::rules::{FORCE64, NO_SCALING, NOROUND};
use rollcall::bloom::{BitLayout, BloomFilter, ClassicFilter, Params, ScalableFilter};
use rollcall::error::Error;
use rollcall::limit::{MaxBytes, Unlimited};
use rollcall::persist::redisbloom::{self, RDB_ENCODING_NEWEST, RdbSource};
use rollcall::persist::{self, ChunkFormat, Loading, Stored};

type Dump = Vec<(u64, Vec<u8>)>;

/// One field of an RDB value.
#[derive(Debug, Clone, PartialEq)]
enum Field {
    Unsigned(u64),
    Double(f64),
    String(Vec<u8>),
}
use Field::{Double, String as Bytes, Unsigned};

/// An RDB value, read from its start.
struct Fields<'a>(&'a [Field]);

impl Fields<'_> {
    fn next(&mut self, field: &'static str) -> Result<&Field, Error> {
        let (first, rest) = self.0.split_first().ok_or_else(|| Error::corrupt(field, "more", "the end"))?;
        self.0 = rest;
        Ok(first)
    }
}

impl RdbSource for Fields<'_> {
    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        match self.next(field)? {
            Unsigned(value) => Ok(*value),
            other => Err(Error::corrupt(field, "an unsigned", format_args!("{other:?}"))),
        }
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        match self.next(field)? {
            Double(value) => Ok(*value),
            other => Err(Error::corrupt(field, "a double", format_args!("{other:?}"))),
        }
    }

    fn string(&mut self, field: &'static str, read: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        match self.next(field)? {
            Bytes(bytes) => read(bytes),
            other => Err(Error::corrupt(field, "a string", format_args!("{other:?}"))),
        }
    }
}

/// What RedisBloom 2.8.2 had and said after its command and the items `item:0`, `item:1` and so on.
struct Golden {
    /// The command that made the key.
    command: String,
    /// What each BF.ADD answered; `f`: that the filter is full.
    added: String,
    /// What BF.EXISTS answered for `probe:0`, `probe:1` and so on.
    probes: String,
    /// Values of BF.INFO.
    info: Vec<String>,
    /// Lines of BF.DEBUG.
    debug: Vec<String>,
    /// Replies of BF.SCANDUMP.
    chunks: Dump,
    rdb_encoding: u32,
    rdb: Vec<Field>,
}

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn golden(text: &str) -> Golden {
    let mut golden = Golden {
        command: String::new(),
        added: String::new(),
        probes: String::new(),
        info: Vec::new(),
        debug: Vec::new(),
        chunks: Vec::new(),
        rdb_encoding: 0,
        rdb: Vec::new(),
    };
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "command" => golden.command = rest.to_owned(),
            "added" => golden.added = rest.to_owned(),
            "probes" => golden.probes = rest.to_owned(),
            "info" => golden.info = rest.split(' ').map(str::to_owned).collect(),
            "debug" => golden.debug.push(rest.to_owned()),
            "chunk" => {
                let (next, hex) = rest.split_once(' ').unwrap();
                golden.chunks.push((next.parse().unwrap(), from_hex(hex)));
            }
            "rdb" => golden.rdb_encoding = rest.parse().unwrap(),
            "u" => golden.rdb.push(Unsigned(rest.parse().unwrap())),
            "d" => golden.rdb.push(Double(rest.parse().unwrap())),
            "s" => golden.rdb.push(Bytes(from_hex(rest))),
            other => panic!("{other}"),
        }
    }
    golden
}

fn params(error_rate: f64, capacity: u64, expansion: u32) -> Params {
    Params { error_rate, capacity, expansion, seed: 0 }
}

fn classic(params: Params) -> ClassicFilter {
    ClassicFilter::new(params, &Unlimited).unwrap()
}

/// Every golden file, with the filter that its command makes; none for the one that no command makes.
fn goldens() -> Vec<(Golden, Option<ClassicFilter>)> {
    let fixed = ClassicFilter::with_growth(params(0.05, 40, 0), 3, &Unlimited).unwrap();
    [
        (include_str!("golden/redisbloom-scaling.txt"), Some(classic(params(0.01, 100, 2)))),
        (include_str!("golden/redisbloom-nonscaling.txt"), Some(classic(params(0.001, 120, 0)))),
        (include_str!("golden/redisbloom-expansion-1.txt"), Some(classic(params(0.1, 20, 1)))),
        (include_str!("golden/redisbloom-expansion-3-nonscaling.txt"), Some(fixed)),
        (include_str!("golden/redisbloom-empty.txt"), Some(classic(params(0.02, 10, 4)))),
        (include_str!("golden/redisbloom-smallest.txt"), Some(classic(params(0.5, 1, 2)))),
        (include_str!("golden/redisbloom-rare.txt"), Some(classic(params(1e-30, 5, 2)))),
        (include_str!("golden/redisbloom-defaults.txt"), Some(classic(params(0.01, 100, 2)))),
        (include_str!("golden/redisbloom-powers-of-two.txt"), None),
    ]
    .map(|(text, filter)| (golden(text), filter))
    .into()
}

fn item(index: usize) -> Vec<u8> {
    format!("item:{index}").into_bytes()
}

fn probes(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|index| format!("probe:{index}").into_bytes()).collect()
}

/// `{:g}` of C, as far as rates need it: six significant digits.
fn six_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap();
    if rounded >= 1e-4 { format!("{rounded}") } else { pad_exponent(&format!("{rounded:e}")) }
}

fn pad_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once("e-").unwrap();
    format!("{digits}e-{exponent:0>2}")
}

/// Compares all that a filter says with what RedisBloom said.
fn assert_as_golden(filter: &ClassicFilter, golden: &Golden) {
    let name = &golden.command;
    let expansion = if filter.params().expansion == 0 { "null".into() } else { filter.growth().to_string() };
    let info = [
        filter.capacity().to_string(),
        filter.size_bytes().to_string(),
        filter.sub_filters().len().to_string(),
        filter.num_items().to_string(),
        expansion,
    ];
    assert_eq!(info, *golden.info, "{name}");
    let mut debug = vec![format!("size:{}", filter.num_items())];
    debug.extend(filter.sub_filters().iter().map(|sub_filter| {
        let shape = sub_filter.shape();
        format!(
            "bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{}",
            shape.num_bytes,
            shape.num_bits(),
            shape.hashes,
            shape.capacity,
            sub_filter.num_items(),
            six_digits(shape.error_rate)
        )
    }));
    assert_eq!(debug, golden.debug, "{name}");
    assert!(redisbloom::dump(filter).eq(golden.chunks.iter().cloned()), "{name}: dump");
    let probes = probes(golden.probes.len());
    let mut found = Vec::new();
    filter.may_contain_all(probes.iter().map(Vec::as_slice), &mut found);
    for (index, expected) in golden.probes.chars().enumerate() {
        assert_eq!(found[index], expected == '1', "{name}: probe {index}");
        assert_eq!(filter.may_contain(&probes[index]), expected == '1', "{name}: probe {index}");
    }
    for (index, added) in golden.added.chars().enumerate() {
        assert!(added == 'f' || filter.may_contain(&item(index)), "{name}: item {index}");
    }
}

/// Adds what RedisBloom was given. The key of some commands has its first item from them.
fn add_one_by_one(filter: &mut ClassicFilter, golden: &Golden) {
    if golden.command.ends_with("item:0") {
        assert_eq!(filter.add(&item(0), &Unlimited), Ok(true));
    }
    for (index, expected) in golden.added.chars().enumerate() {
        let expected = match expected {
            'f' => Err(Error::Full { capacity: filter.params().capacity }),
            expected => Ok(expected == '1'),
        };
        assert_eq!(filter.add(&item(index), &Unlimited), expected, "{}: item {index}", golden.command);
    }
}

#[test]
fn filters_made_here_are_those_of_redisbloom() {
    for (golden, filter) in goldens() {
        let Some(mut one_by_one) = filter else { continue };
        let mut at_once = one_by_one.try_clone().unwrap();
        add_one_by_one(&mut one_by_one, &golden);
        assert_as_golden(&one_by_one, &golden);
        let items: Vec<Vec<u8>> = (0..golden.added.len()).map(item).collect();
        let mut added = Vec::new();
        let stopped = at_once.add_all(items.iter().map(Vec::as_slice), &Unlimited, &mut added).is_err();
        assert_eq!(stopped, golden.added.contains('f'));
        assert!(at_once == one_by_one, "{}", golden.command);
    }
}

#[test]
fn filters_grown_from_a_dump_are_those_of_redisbloom() {
    let (golden, _) = goldens().pop().unwrap();
    let rate: f64 = 0.02;
    // As RedisBloom computes it, from a header that none of its commands gives.
    let bits_per_item = -rate.ln() / 0.480453013918201;
    let link = Link { bytes: 64, bits: 512, size: 0, error_rate: rate, bits_per_item, hashes: 6, capacity: 62, n2: 9 };
    let header = HeaderOf { size: 0, count: 1, options: 4, growth: 2, links: vec![link] }.bytes();
    let mut filter = persist::load::<ClassicFilter, _>([(1, header), (65, vec![0; 64])], &Unlimited).unwrap();
    add_one_by_one(&mut filter, &golden);
    assert_as_golden(&filter, &golden);
}

#[test]
fn dumps_and_rdb_values_load_and_go_on_alike() {
    for (golden, filter) in goldens() {
        let from_dump = persist::load::<ClassicFilter, _>(golden.chunks.clone(), &Unlimited).unwrap();
        assert_as_golden(&from_dump, &golden);
        let from_rdb = redisbloom::decode_rdb(&mut Fields(&golden.rdb), golden.rdb_encoding, &Unlimited).unwrap();
        assert!(from_rdb == from_dump, "{}", golden.command);
        let BloomFilter::Classic(any) = persist::load(golden.chunks.clone(), &Unlimited).unwrap() else {
            panic!("a dump of RedisBloom is a classic filter")
        };
        assert!(any == from_dump);
        // It goes on as one would that was here all the time.
        let Some(mut original) = filter else { continue };
        add_one_by_one(&mut original, &golden);
        let mut loaded = from_dump;
        assert!(original == loaded, "{}", golden.command);
        for index in 1000..1300 {
            assert_eq!(loaded.add(&item(index), &Unlimited), original.add(&item(index), &Unlimited));
        }
        assert!(original == loaded);
    }
}

/// RedisBloom gave these iterators and lengths for `BF.RESERVE key 0.01 15000000 EXPANSION 2`.
#[test]
fn chunks_are_cut_where_redisbloom_cuts_them() {
    let large = classic(params(0.01, 15_000_000, 2));
    let chunks: Vec<(u64, usize)> = redisbloom::dump(&large).map(|(next, chunk)| (next, chunk.len())).collect();
    assert_eq!(chunks, [(1, 73), (16_777_217, 16_777_216), (20_677_041, 3_899_824)]);
    assert_eq!(redisbloom::scandump(&large, 20_677_041), (0, Vec::new()));
    assert_eq!(redisbloom::scandump(&large, u64::MAX), (0, Vec::new()));
    assert_eq!(large.scandump(0), redisbloom::scandump(&large, 0));
}

/// A filter with several sub-filters.
fn grown() -> ClassicFilter {
    let mut filter = classic(params(0.01, 50, 2));
    for index in 0..200 {
        filter.add(&item(index), &Unlimited).unwrap();
    }
    assert_eq!(filter.sub_filters().len(), 3);
    filter
}

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
                let sum = persist::piece_checksum(piece, position, loading.shape());
                persist::check_piece(&again, piece, sum).unwrap();
                again.push(piece).unwrap();
            }
            assert_eq!((again.received_bytes(), again.chunk_format()), (loading.received_bytes(), format));
            assert!(push_all(again.try_clone().unwrap(), &dump[stored_after..]) == filter);
            assert!(push_all(loading, &dump[stored_after..]) == filter);
        }
    }
}

#[test]
fn our_own_format_reads_back() {
    let mut filters: Vec<BloomFilter> =
        goldens().into_iter().map(|(golden, _)| persist::load(golden.chunks, &Unlimited).unwrap()).collect();
    filters.push(BloomFilter::new(BitLayout::Lines, params(0.01, 100, 2), &Unlimited).unwrap());
    for filter in filters {
        let again: BloomFilter = persist::load(persist::dump(&filter), &Unlimited).unwrap();
        assert!(again == filter);
        assert_eq!(again.layout(), filter.layout());
        match filter {
            BloomFilter::Lines(lines) => {
                let alone: ScalableFilter = persist::load(persist::dump(&again), &Unlimited).unwrap();
                assert!(alone == lines);
                assert!(persist::load::<ClassicFilter, _>(persist::dump(&lines), &Unlimited).is_err());
            }
            BloomFilter::Classic(classic) => {
                assert!(persist::load::<ClassicFilter, _>(persist::dump(&classic), &Unlimited).unwrap() == classic);
                assert!(persist::load::<ScalableFilter, _>(persist::dump(&classic), &Unlimited).is_err());
            }
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
        let bytes = header.bytes();
        assert!(redisbloom::is_header(&bytes));
        let loaded: BloomFilter = persist::load([(1, bytes), (17, vec![0; 16])], &Unlimited).unwrap();
        assert_eq!((loaded.layout(), loaded.num_items()), (BitLayout::Classic, size));
    }
    for (layout, expansion) in [(BitLayout::Lines, 0), (BitLayout::Classic, 0), (BitLayout::Classic, 2)] {
        let header = BloomFilter::new(layout, params(0.01, 10, expansion), &Unlimited).unwrap().header();
        assert!(!redisbloom::is_header(&header));
        assert!(!redisbloom::is_header(&header[..20]));
    }
}

/// A header of RedisBloom, field by field.
#[derive(Debug, Clone)]
struct HeaderOf {
    size: u64,
    count: u32,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

#[derive(Debug, Clone)]
struct Link {
    bytes: u64,
    bits: u64,
    size: u64,
    error_rate: f64,
    bits_per_item: f64,
    hashes: u32,
    capacity: u64,
    n2: u8,
}

impl HeaderOf {
    fn of(filter: &ClassicFilter) -> Self {
        let links = filter.sub_filters().iter().map(|sub_filter| {
            let shape = sub_filter.shape();
            Link {
                bytes: shape.num_bytes,
                bits: shape.num_bits(),
                size: sub_filter.num_items(),
                error_rate: shape.error_rate,
                bits_per_item: shape.bits_per_item,
                hashes: shape.hashes,
                capacity: shape.capacity,
                n2: shape.n2,
            }
        });
        HeaderOf {
            size: filter.num_items(),
            count: filter.sub_filters().len() as u32,
            options: filter.options(),
            growth: filter.growth(),
            links: links.collect(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.options.to_le_bytes());
        bytes.extend(self.growth.to_le_bytes());
        for link in &self.links {
            bytes.extend(link.bytes.to_le_bytes());
            bytes.extend(link.bits.to_le_bytes());
            bytes.extend(link.size.to_le_bytes());
            bytes.extend(link.error_rate.to_bits().to_le_bytes());
            bytes.extend(link.bits_per_item.to_bits().to_le_bytes());
            bytes.extend(link.hashes.to_le_bytes());
            bytes.extend(link.capacity.to_le_bytes());
            bytes.push(link.n2);
        }
        bytes
    }

    /// The same as an RDB value, every bitmap empty.
    fn rdb(&self) -> Vec<Field> {
        let mut fields = vec![
            Unsigned(self.size),
            Unsigned(u64::from(self.count)),
            Unsigned(u64::from(self.options)),
            Unsigned(u64::from(self.growth)),
        ];
        for link in &self.links {
            fields.extend([
                Unsigned(link.capacity),
                Double(link.error_rate),
                Unsigned(u64::from(link.hashes)),
                Double(link.bits_per_item),
                Unsigned(link.bits),
                Unsigned(u64::from(link.n2)),
                Bytes(vec![0; link.bytes.min(1 << 20) as usize]),
                Unsigned(link.size),
            ]);
        }
        fields
    }
}

fn refused_field(result: Result<ClassicFilter, Error>) -> &'static str {
    match result {
        Err(Error::Corrupt { field, .. }) => field,
        other => panic!("expected a named field, got {other:?}"),
    }
}

fn load_header(header: Vec<u8>) -> Result<ClassicFilter, Error> {
    persist::load::<ClassicFilter, _>([(1, header)], &MaxBytes(1 << 20))
}

fn load_rdb(fields: &[Field]) -> Result<ClassicFilter, Error> {
    redisbloom::decode_rdb(&mut Fields(fields), RDB_ENCODING_NEWEST, &MaxBytes(1 << 20))
}

/// A field that is wrong, how it is made so, and the field that dump and RDB value are refused by.
type Forgery = (&'static str, fn(&mut HeaderOf), &'static str, &'static str);

/// What RedisBloom believed, and was hurt by or not. In the RDB value the bytes are those of the string.
const FORGERIES: [Forgery; 27] = [
    ("no sub-filter", |h| h.links.clear(), "header length", "capacity"),
    (
        "no sub-filter, and said so",
        |h| (h.count, h.links) = (0, Vec::new()),
        "number of sub-filters",
        "number of sub-filters",
    ),
    ("more than there are", |h| h.count = 4, "header length", "capacity"),
    ("as many as can be", |h| h.count = u32::MAX, "header length", "capacity"),
    ("an option that is none", |h| h.options |= 16, "options", "options"),
    ("32-bit hashes", |h| h.options = NOROUND, "options", "options"),
    (
        "several although it does not scale",
        |h| h.options |= NO_SCALING,
        "number of sub-filters",
        "number of sub-filters",
    ),
    ("no growth", |h| h.growth = 0, "growth", "growth"),
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
    // CVE-2026-25589 and the out-of-bounds writes: positions beyond the bytes that there are.
    ("more bits than bytes", |h| h.links[0].bits += 64, "bits", "data length"),
    ("more bytes than bits", |h| h.links[0].bytes += 8, "bits", "data length"),
    ("no bytes", |h| (h.links[0].bytes, h.links[0].bits) = (0, 0), "num_bytes", "num_bytes"),
    ("a power of two beyond the bytes", |h| h.links[0].n2 = 20, "num_bytes", "num_bytes"),
    ("a power of two that no shift can be", |h| h.links[0].n2 = 64, "n2", "n2"),
    ("another sum of items", |h| h.size += 1, "size", "size"),
    ("items that overflow", |h| (h.links[0].size, h.links[1].size) = (u64::MAX, 1), "num_items", "num_items"),
];

#[test]
fn forged_headers_and_values_are_refused_by_field() {
    let header = HeaderOf::of(&grown());
    assert!(load_rdb(&header.rdb()).is_ok());
    let complete = load_header(header.bytes());
    assert_eq!(refused_field(complete), "payload length", "an honest header lacks only its payload");
    for (what, forge, dump_field, rdb_field) in FORGERIES {
        let mut forged = header.clone();
        forge(&mut forged);
        assert_eq!(refused_field(load_header(forged.bytes())), dump_field, "{what}, dump");
        assert_eq!(refused_field(load_rdb(&forged.rdb())), rdb_field, "{what}, RDB");
    }
    let long = [header.bytes(), vec![0]].concat();
    assert_eq!(refused_field(load_header(long)), "header length");
    for len in 0..header.bytes().len() {
        assert!(matches!(load_header(header.bytes()[..len].to_vec()), Err(Error::Corrupt { .. })), "{len}");
    }
}

#[test]
fn rdb_values_are_refused_by_field_where_they_end_or_differ() {
    let fields = HeaderOf::of(&grown()).rdb();
    for len in 0..fields.len() {
        assert!(matches!(load_rdb(&fields[..len]), Err(Error::Corrupt { .. })), "{len}");
    }
    let with = |at: usize, field: Field| {
        let mut fields = fields.clone();
        fields[at] = field;
        refused_field(load_rdb(&fields))
    };
    assert_eq!(with(1, Unsigned(u64::MAX)), "capacity", "as many sub-filters as can be, of which three come");
    assert_eq!(with(2, Unsigned(1 << 32 | 5)), "options");
    assert_eq!(with(3, Unsigned(1 << 32)), "growth");
    assert_eq!(with(6, Unsigned(1 << 32 | 8)), "hashes");
    assert_eq!(with(8, Unsigned(1001)), "bits");
    assert_eq!(with(9, Unsigned(1 << 8)), "n2");
    assert_eq!(with(10, Bytes(Vec::new())), "data length");
    assert_eq!(with(10, Bytes(vec![0; 1 << 16])), "data length");
    for encoding in [5, 100, u32::MAX] {
        let refused = redisbloom::decode_rdb(&mut Fields(&fields), encoding, &Unlimited);
        assert_eq!(refused_field(refused), "encoding version");
    }
}

#[test]
fn filters_with_32_bit_hashes_are_called_what_they_are() {
    let header = HeaderOf::of(&grown());
    let without_options: Vec<Field> = [&header.rdb()[..2], &header.rdb()[4..]].concat();
    let old = HeaderOf { options: NOROUND, ..header };
    let refusals = [
        load_header(old.bytes()),
        load_rdb(&old.rdb()),
        redisbloom::decode_rdb(&mut Fields(&without_options), 0, &Unlimited),
        redisbloom::decode_rdb(&mut Fields(&without_options), 1, &Unlimited),
    ];
    for refused in refusals {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("RedisBloom 1.x") && text.contains("32-bit hashes"), "{text}");
    }
}

#[test]
fn values_of_encodings_before_growth_grow_twofold() {
    let filter = grown();
    let mut fields = goldens().remove(0).0.rdb;
    assert_eq!(fields.remove(3), Unsigned(2));
    for encoding in [2, 3] {
        let loaded = redisbloom::decode_rdb(&mut Fields(&fields), encoding, &Unlimited).unwrap();
        assert_eq!((loaded.growth(), loaded.options()), (2, NOROUND | FORCE64));
        assert_eq!(loaded.sub_filters().len(), filter.sub_filters().len());
    }
}

#[test]
fn sizes_are_checked_before_they_are_allocated() {
    let mut huge = HeaderOf::of(&grown());
    (huge.links[1].bytes, huge.links[1].bits) = (1 << 50, 1 << 53);
    assert!(matches!(load_header(huge.bytes()), Err(Error::TooLarge { .. })));
    assert!(matches!(load_rdb(&huge.rdb()), Err(Error::TooLarge { .. })));
    // Without a limit, the bytes that an RDB value claims have to be there before as many are set aside.
    let refused = redisbloom::decode_rdb(&mut Fields(&huge.rdb()), 4, &Unlimited);
    assert_eq!(refused_field(refused), "data length");
    (huge.links[1].bytes, huge.links[1].bits) = (1 << 61, 1 << 63);
    assert_eq!(refused_field(load_header(huge.bytes())), "bits");
    let filter = grown();
    let dump: Dump = persist::dump(&filter).collect();
    let refused = persist::load::<ClassicFilter, _>(dump, &MaxBytes(100));
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
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
    let sum = rollcall::hash::checksum(&header, 0);
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
        let _ = filter.add_all(items.iter().map(String::as_bytes), &Unlimited, &mut Vec::new());
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
