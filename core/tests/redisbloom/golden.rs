//! Compares classic filters with the state and the replies of RedisBloom 2.8.2 after the same commands, which are in
//! `core/tests/golden/redisbloom-*.txt`.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::Rules;
use rollcall_core::unstable::persist::{redisbloom, scandump};
use rollcall_core::window::Time;

use rollcall_fuzz::payload::from_hex;
use rollcall_fuzz::redisbloom_values::Field::{self, Double, String as Bytes, Unsigned};
use rollcall_fuzz::redisbloom_values::{
    Dump, Fields, HeaderOf, Link, classic, dump_of, grown, item, params, rules, written,
};

/// State and replies of RedisBloom 2.8.2 after one command and the items `item:0`, `item:1` and so on.
struct Golden {
    /// The command that created the key.
    command: String,
    /// Replies of BF.ADD; `f` means that the filter was full.
    added: String,
    /// Replies of BF.EXISTS for `probe:0`, `probe:1` and so on.
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

/// Every golden file, with the filter that its command creates; `None` if no command of this module creates it.
fn goldens() -> Vec<(Golden, Option<BloomFilter>)> {
    let fixed = BloomFilter::classic(params(0.05, 40, 0), 3, &Unlimited).unwrap();
    [
        (include_str!("../golden/redisbloom-scaling.txt"), Some(classic(params(0.01, 100, 2)))),
        (include_str!("../golden/redisbloom-nonscaling.txt"), Some(classic(params(0.001, 120, 0)))),
        (include_str!("../golden/redisbloom-expansion-1.txt"), Some(classic(params(0.1, 20, 1)))),
        (include_str!("../golden/redisbloom-expansion-3-nonscaling.txt"), Some(fixed)),
        (include_str!("../golden/redisbloom-empty.txt"), Some(classic(params(0.02, 10, 4)))),
        (include_str!("../golden/redisbloom-smallest.txt"), Some(classic(params(0.5, 1, 2)))),
        (include_str!("../golden/redisbloom-rare.txt"), Some(classic(params(1e-30, 5, 2)))),
        (include_str!("../golden/redisbloom-defaults.txt"), Some(classic(params(0.01, 100, 2)))),
        (include_str!("../golden/redisbloom-powers-of-two.txt"), None),
    ]
    .map(|(text, filter)| (golden(text), filter))
    .into()
}

fn load_rdb(fields: &[Field], encoding: u32) -> BloomFilter {
    redisbloom::load_rdb(&mut Fields(fields), encoding, &Unlimited).unwrap()
}

fn probes(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|index| format!("probe:{index}").into_bytes()).collect()
}

/// Formats a rate like `%g` in C, with six significant digits.
fn six_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap();
    if rounded >= 1e-4 { format!("{rounded}") } else { pad_exponent(&format!("{rounded:e}")) }
}

fn pad_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once("e-").unwrap();
    format!("{digits}e-{exponent:0>2}")
}

/// Compares everything that a filter reports with RedisBloom's replies.
fn assert_as_golden(filter: &BloomFilter, golden: &Golden) {
    let name = &golden.command;
    let expansion = if filter.params().expansion == 0 { "null".into() } else { rules(filter).growth.to_string() };
    let info = [
        filter.capacity().to_string(),
        filter.size_bytes().to_string(),
        filter.sub_filters().len().to_string(),
        filter.num_items().to_string(),
        expansion,
    ];
    assert_eq!(info, *golden.info, "{name}");
    let mut debug = vec![format!("size:{}", filter.num_items())];
    debug.extend(filter.chain().iter().map(|sub_filter| {
        let shape = sub_filter.classic().unwrap().shape;
        format!(
            "bytes:{} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{}",
            shape.num_bytes,
            shape.num_bits(),
            shape.hashes,
            shape.capacity,
            sub_filter.info().num_items,
            six_digits(shape.error_rate)
        )
    }));
    assert_eq!(debug, golden.debug, "{name}");
    assert_eq!(dump_of(filter), golden.chunks, "{name}: dump");
    assert_eq!(written(|sink| redisbloom::save_rdb(filter, sink)), golden.rdb, "{name}: RDB value");
    let probes = probes(golden.probes.len());
    let mut found = Vec::new();
    filter.may_contain_all(&probes, |is_there| found.push(is_there));
    for (index, expected) in golden.probes.chars().enumerate() {
        assert_eq!(found[index], expected == '1', "{name}: probe {index}");
        assert_eq!(filter.may_contain(&probes[index]), expected == '1', "{name}: probe {index}");
    }
    for (index, added) in golden.added.chars().enumerate() {
        assert!(added == 'f' || filter.may_contain(item(index)), "{name}: item {index}");
    }
}

/// Adds the items that RedisBloom got. Some commands have already added the first item.
fn add_one_by_one(filter: &BloomFilter, golden: &Golden) -> BloomFilter {
    let mut filter = filter.try_clone().unwrap();
    if golden.command.ends_with("item:0") {
        assert_eq!(filter.live(Time::Reached).add(item(0), &Unlimited), Ok(true));
    }
    for (index, expected) in golden.added.chars().enumerate() {
        let expected = match expected {
            'f' => Err(Error::Full { capacity: filter.params().capacity }),
            expected => Ok(expected == '1'),
        };
        let added = filter.live(Time::Reached).add(item(index), &Unlimited);
        assert_eq!(added, expected, "{}: item {index}", golden.command);
    }
    filter
}

#[test]
fn filters_made_here_are_those_of_redisbloom() {
    for (golden, filter) in goldens() {
        let Some(filter) = filter else { continue };
        let one_by_one = add_one_by_one(&filter, &golden);
        assert_as_golden(&one_by_one, &golden);
        let items: Vec<Vec<u8>> = (0..golden.added.len()).map(item).collect();
        let mut added = Vec::new();
        let mut at_once = filter;
        let stopped = at_once.live(Time::Reached).add_all(&items, &Unlimited, |new| added.push(new)).is_err();
        assert_eq!(stopped, golden.added.contains('f'));
        assert!(at_once == one_by_one, "{}", golden.command);
    }
}

#[test]
fn filters_grown_from_a_dump_are_those_of_redisbloom() {
    let (golden, _) = goldens().pop().unwrap();
    let rate: f64 = 0.02;
    // Applies RedisBloom's formula for the bits per item. No command of RedisBloom makes the header of this test.
    let bits_per_item = -rate.ln() / 0.480453013918201;
    let link = Link { bytes: 64, bits: 512, size: 0, error_rate: rate, bits_per_item, hashes: 6, capacity: 62, n2: 9 };
    let header = HeaderOf { size: 0, count: 1, options: 4, growth: 2, links: vec![link] }.bytes();
    let filter = persist::load([(1, header), (65, vec![0; 64])], &Unlimited).unwrap();
    assert_as_golden(&add_one_by_one(&filter, &golden), &golden);
}

#[test]
fn dumps_and_rdb_values_load_and_go_on_alike() {
    for (golden, filter) in goldens() {
        let from_dump = persist::load(golden.chunks.clone(), &Unlimited).unwrap();
        assert_as_golden(&from_dump, &golden);
        let from_rdb = load_rdb(&golden.rdb, golden.rdb_encoding);
        assert!(from_rdb == from_dump, "{}", golden.command);
        // A loaded filter grows like one that was created here.
        let Some(original) = filter else { continue };
        let mut both = [add_one_by_one(&original, &golden), from_dump];
        assert!(both[0] == both[1], "{}", golden.command);
        for index in 1000..1300 {
            let [original, loaded] =
                both.each_mut().map(|filter| filter.live(Time::Reached).add(item(index), &Unlimited));
            assert_eq!(loaded, original);
        }
        assert!(both[0] == both[1]);
    }
}

/// RedisBloom gives the header and the last iterator for `BF.RESERVE key 0.01 15000000 EXPANSION 2`. It cuts between
/// them only once, after 16 MiB.
#[test]
fn a_large_filter_is_cut_into_small_chunks() {
    let large = classic(params(0.01, 15_000_000, 2));
    let scanned = |iterator| scandump(&large, iterator).unwrap();
    let mut chunks = Vec::new();
    let (mut next, mut chunk) = scanned(0);
    while next != 0 {
        chunks.push((next, chunk.len()));
        (next, chunk) = scanned(next);
    }
    let whole = (1..=19u64).map(|number| (1 + (number << 20), 1 << 20));
    let expected: Vec<_> = [(1, 73)].into_iter().chain(whole).chain([(20_677_041, 754_096)]).collect();
    assert_eq!(chunks, expected);
    for end in [20_677_041, u64::MAX] {
        assert_eq!(scanned(end), (0, Default::default()));
    }
    assert!(persist::dump(&large).map(|(next, chunk)| (next, chunk.len())).eq(chunks));
}

#[test]
fn values_of_encodings_before_growth_grow_twofold() {
    let filter = grown();
    let mut fields = goldens().remove(0).0.rdb;
    assert_eq!(fields.remove(3), Unsigned(2));
    for encoding in [2, 3] {
        let loaded = load_rdb(&fields, encoding);
        assert_eq!(rules(&loaded), Rules { options: Rules::NOROUND | Rules::FORCE64, growth: 2 });
        assert_eq!(loaded.sub_filters().len(), filter.sub_filters().len());
    }
}
