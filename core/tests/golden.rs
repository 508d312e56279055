//! Tests the stored form of values of every kind, byte for byte, against `golden/*.txt`. Each file has one value. `make
//! golden` writes the files again.
//!
//! The lines of a file are, in this order: the data type and its encoding version, the primitives of the RDB value, the
//! `DUMP` payload, and the chunks of the dump, each after its iterator. Bytes are hexadecimal. Long bytes are replaced
//! by their length and their XXH3-64, and so are long lists of lines.

use std::path::{Path, PathBuf};

use rollcall_core::bloom::{self, BitLayout, BloomFilter, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::{Rules, Shape, SubFilter};
use rollcall_core::unstable::checksum;
use rollcall_core::unstable::persist::{Partial, PartialCounter};
use rollcall_core::window::{ClockSource, Time, Window};

use rollcall_fuzz::fields::Field;
use rollcall_fuzz::payload;
use rollcall_fuzz::values::{
    Dump, completed, counter, counter_with_window, cut_after, dump_of, dump_of_loading, filter, filter_of_rdb,
    from_chunks, load_rdb, rdb_of, rdb_of_filter, rdb_of_loading, same_dump, windowed, windowed_counter,
};

#[path = "golden/whole.rs"]
mod whole;

/// From this number of bytes on, a golden file has only the length and the checksum.
const MANY_BYTES: usize = 4096;

/// The largest number of primitives or chunks in a golden file. Of further ones it has only the number and a checksum.
const MANY_LINES: usize = 40;

/// What the tests need of a type of values.
trait Kind: Value + 'static {
    const NAME: &str;

    /// The name of the server's data type, and its encoding version.
    fn data_type(&self) -> (&'static str, u64) {
        (Self::NAME, 1)
    }
    fn rdb(&self) -> Vec<Field>;
    fn of_rdb(&self, fields: &[Field]) -> Self;
    fn is(&self, other: &Self) -> bool;
}

impl Kind for Counter {
    const NAME: &str = "RCcounter";

    fn rdb(&self) -> Vec<Field> {
        rdb_of(self)
    }

    fn of_rdb(&self, fields: &[Field]) -> Self {
        load_rdb::<PartialCounter>(fields).unwrap().finish().unwrap()
    }

    fn is(&self, other: &Self) -> bool {
        same_dump(self, other)
    }
}

impl Kind for BloomFilter {
    const NAME: &str = "RCfilter-";

    fn data_type(&self) -> (&'static str, u64) {
        if self.layout() == BitLayout::Classic { ("MBbloom--", 4) } else { (Self::NAME, 1) }
    }

    fn rdb(&self) -> Vec<Field> {
        rdb_of_filter(self)
    }

    fn of_rdb(&self, fields: &[Field]) -> Self {
        filter_of_rdb(self.layout(), fields).unwrap()
    }

    fn is(&self, other: &Self) -> bool {
        self == other
    }
}

/// The stored forms of a value.
struct Stored {
    data_type: (&'static str, u64),
    rdb: Vec<Field>,
    payload: Vec<u8>,
    dump: Dump,
    /// Whether these forms load as the value.
    reads_back: Box<dyn Fn(&Stored) -> bool>,
}

impl Stored {
    fn new(
        data_type: (&'static str, u64),
        rdb: Vec<Field>,
        dump: Dump,
        reads_back: impl Fn(&Stored) -> bool + 'static,
    ) -> Self {
        let payload = payload::encode(data_type.0, data_type.1, &rdb);
        Stored { data_type, rdb, payload, dump, reads_back: Box::new(reads_back) }
    }

    /// The content of the golden file.
    fn text(&self) -> String {
        let (name, encoding) = self.data_type;
        let primitives = self.rdb.iter().map(primitive_text).collect();
        let chunks = self.dump.iter().map(|(next, chunk)| format!("chunk {next} {}\n", bytes_text(chunk))).collect();
        let payload = bytes_text(&self.payload);
        format!("type {name} {encoding}\n{}payload {payload}\n{}", lines_text(primitives), lines_text(chunks))
    }
}

fn whole_of<T: Kind>(value: T) -> Stored {
    Stored::new(value.data_type(), value.rdb(), dump_of(&value), move |stored| {
        value.is(&persist::from_bytes(&stored.payload, &Unlimited).unwrap())
            && value.is(&value.of_rdb(&stored.rdb))
            && value.is(&persist::load(stored.dump.clone(), &Unlimited).unwrap())
    })
}

/// A partially loaded value that has received the first `bytes` bytes of the payload. Its `DUMP` payload is rejected.
fn cut<T: Kind>(value: T, bytes: u64) -> Stored {
    let partial = cut_after(&value, bytes);
    Stored::new((T::NAME, 1), rdb_of_loading(&partial), dump_of_loading(&partial), move |stored| {
        let rejected = persist::from_bytes::<T>(&stored.payload, &Unlimited).err().unwrap().to_string();
        rejected.contains("expected a complete one, got one that is still")
            && [load_rdb(&stored.rdb).unwrap(), from_chunks(&stored.dump)]
                .into_iter()
                .all(|loading| value.is(&completed(loading, &value)))
    })
}

fn primitive_text(field: &Field) -> String {
    match field {
        Field::Unsigned(value) => format!("unsigned {value}\n"),
        Field::Double(value) => format!("double {:016x}\n", value.to_bits()),
        Field::String(bytes) => format!("string {}\n", bytes_text(bytes)),
    }
}

fn lines_text(mut lines: Vec<String>) -> String {
    if lines.len() > MANY_LINES {
        let others = lines.split_off(MANY_LINES);
        lines.push(format!("and {} more, XXH3 {:016x}\n", others.len(), checksum(others.concat().as_bytes(), 0)));
    }
    lines.concat()
}

fn bytes_text(bytes: &[u8]) -> String {
    if bytes.len() < MANY_BYTES {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    } else {
        format!("of {} bytes, XXH3 {:016x}", bytes.len(), checksum(bytes, 0))
    }
}

fn params(capacity: u64, expansion: u32, seed: u64) -> bloom::Params {
    bloom::Params { error_rate: 0.01, capacity, expansion, seed }
}

fn lines(capacity: u64, expansion: u32, items: u32) -> BloomFilter {
    filter(params(capacity, expansion, 7), BitLayout::Lines, items)
}

fn classic(capacity: u64, expansion: u32, items: u32) -> BloomFilter {
    filter(params(capacity, expansion, 0), BitLayout::Classic, items)
}

/// A filter with a power of two as number of bits. Old versions of RedisBloom made such filters; no command of this
/// module does.
fn power_of_two() -> BloomFilter {
    let shape = Shape::new(0.02, 60, Rules::FORCE64).unwrap();
    assert_eq!(shape.n2, 9);
    let rules = Rules { options: Rules::FORCE64, growth: 2 };
    let mut filter =
        BloomFilter::from_sub_filters(vec![SubFilter::from_shape(rules, shape, &Unlimited).unwrap()]).unwrap();
    for item in 0..100u32 {
        filter.live(Time::Reached).add(format!("item:{item}"), &Unlimited).unwrap();
    }
    filter
}

fn window_of(capacity: u64, expansion: u32, clock_source: ClockSource, refresh: bool, items: &[u32]) -> BloomFilter {
    windowed(params(capacity, expansion, 7), Windowing::new(86_400, 4, clock_source, refresh).unwrap(), items)
}

fn window(clock_source: ClockSource, refresh: bool, items: &[u32]) -> BloomFilter {
    window_of(100, 2, clock_source, refresh, items)
}

/// A filter to which some items were added twice.
fn renewed() -> BloomFilter {
    let mut filter = window(ClockSource::System, true, &[30, 10, 0]);
    for item in 0..20u32 {
        assert!(!filter.live(Time::Reached).add(format!("item:{item}").as_bytes(), &Unlimited).unwrap());
    }
    assert_eq!((filter.num_items(), filter.sub_filters().map(|one| one.num_items).sum::<u64>()), (40, 60));
    filter
}

/// A windowed counter. Its tags have 4 bits up to 14 slices, and 8 bits for more slices.
fn windowed_of(error_rate: f64, exact_limit: u32, slices: u32, clock_source: ClockSource, members: &[u32]) -> Counter {
    let params = counting::Params { error_rate, exact_limit, exact_bytes: 16_384.max(16 * exact_limit), seed: 7 };
    windowed_counter(params, slices, clock_source, members)
}

/// The counter after its clock was set back.
fn rebased(mut counter: Counter) -> Counter {
    counter.rebase(777);
    counter
}

/// A counter with the default parameters, which are not stored.
fn standard() -> Counter {
    let mut counter = Counter::new(counting::Params::default()).unwrap();
    counter.live(Time::Reached).add("member of 12", &Unlimited).unwrap();
    counter
}

/// A counter whose members are kept in every form, the first of them in that of `first`.
fn codes(first: &str) -> Counter {
    let uuid = "1f0e3dad-9990-4d3c-b2c9-6a1d2b3c4d5e";
    let (digits, long) = ("0123456789abcdef", "x".repeat(300));
    let mut counter = Counter::new(counting::Params::default()).unwrap();
    let numbers = ["0", "65536", "9223372036854775807", "9223372036854775808", "007", "id:0", "id:65536", "id:007"];
    for member in [first, "", "ann", uuid, digits, &long].into_iter().chain(numbers) {
        counter.live(Time::Reached).add(member, &Unlimited).unwrap();
        counter.live(Time::Reached).add(member.to_uppercase(), &Unlimited).unwrap();
    }
    counter
}

/// A windowed counter of two members, the second in a later slice.
fn seen(one: &str, two: &str) -> Counter {
    let window = Window::new(12, 12, Counter::MAX_SLICES, ClockSource::System).unwrap();
    let mut counter = Counter::new(counting::Params::default()).unwrap().with_window(window, 1_000).unwrap();
    counter.live(Time::At(1_000)).add(one, &Unlimited).unwrap();
    counter.live(Time::At(1_001)).add(two, &Unlimited).unwrap();
    counter
}

/// A counter with the default parameters, whose key expires once it is empty.
fn volatile(members: &[u32]) -> Counter {
    let window = Window::new(12, 12, Counter::MAX_SLICES, ClockSource::System).unwrap().with_volatile(true);
    counter_with_window(counting::Params::default(), window, members)
}

fn volatile_filter(items: &[u32]) -> BloomFilter {
    let windowing = Windowing::new(40, 4, ClockSource::System, false).unwrap().with_volatile(true);
    windowed(params(100, 2, 7), windowing, items)
}

/// A value of every kind, each with the name of its golden file.
fn values() -> Vec<(&'static str, Stored)> {
    let seeded = filter(params(10, 2, 0xfedc_ba98_7654_3210), BitLayout::Lines, 10);
    vec![
        ("counter-exact", whole_of(counter(0.01, 250, 40))),
        ("counter-exact-empty", whole_of(counter(0.01, 250, 0))),
        ("counter-exact-standard", whole_of(standard())),
        ("counter-exact-codes", whole_of(codes("ben"))),
        ("counter-exact-prefix", whole_of(codes("id:17"))),
        ("counter-exact-windowed-prefix", whole_of(seen("id:17", "id:65536"))),
        ("counter-exact-apart", whole_of(counter(0.01, 6000, 5000))),
        ("counter-exact-arriving", cut(counter(0.01, 6000, 5000), 101)),
        ("counter-estimate", whole_of(counter(0.01, 10, 40))),
        ("counter-estimate-empty", whole_of(counter(0.01, 0, 0))),
        ("counter-estimate-many", whole_of(counter(0.01, 0, 100_000))),
        ("counter-estimate-coarse", whole_of(counter(0.25, 10, 3_000))),
        ("counter-estimate-fine", whole_of(counter(0.0025, 10, 50_000))),
        ("counter-exact-windowed", whole_of(windowed_of(0.01, 250, 12, ClockSource::System, &[10, 0, 20, 10]))),
        ("counter-exact-windowed-volatile", whole_of(volatile(&[10, 0, 20, 10]))),
        ("counter-exact-windowed-empty", whole_of(windowed_of(0.01, 250, 24, ClockSource::Manual, &[]))),
        (
            "counter-exact-windowed-rebased",
            whole_of(rebased(windowed_of(0.01, 250, 24, ClockSource::System, &[10, 0, 20, 10]))),
        ),
        ("counter-exact-windowed-apart", whole_of(windowed_of(0.01, 6000, 254, ClockSource::Manual, &[2000, 0, 3900]))),
        ("counter-exact-windowed-arriving", cut(windowed_of(0.01, 6000, 12, ClockSource::System, &[2000, 3900]), 101)),
        ("counter-estimate-windowed", whole_of(windowed_of(0.01, 10, 14, ClockSource::Manual, &[10, 20, 30]))),
        ("counter-estimate-windowed-empty", whole_of(windowed_of(0.01, 0, 1, ClockSource::System, &[]))),
        (
            "counter-estimate-windowed-rebased",
            whole_of(rebased(windowed_of(0.01, 10, 15, ClockSource::System, &[10, 20, 30]))),
        ),
        (
            "counter-estimate-windowed-many",
            whole_of(windowed_of(0.05, 10, 12, ClockSource::System, &[2000, 0, 1000, 3000])),
        ),
        (
            "counter-estimate-windowed-wide",
            whole_of(rebased(windowed_of(0.01, 0, 254, ClockSource::System, &[2000, 0, 9000]))),
        ),
        (
            "counter-estimate-windowed-apart",
            whole_of(windowed_of(0.0025, 10, 60, ClockSource::Manual, &[50_000, 20, 60_000])),
        ),
        (
            "counter-estimate-windowed-arriving",
            cut(windowed_of(0.0025, 10, 24, ClockSource::System, &[50_000, 60_000]), 201),
        ),
        ("lines-one", whole_of(lines(10, 2, 10))),
        ("lines-empty", whole_of(lines(10, 2, 0))),
        ("lines-chain", whole_of(lines(10, 2, 40))),
        ("lines-nonscaling", whole_of(lines(100, 0, 100))),
        ("lines-seeded", whole_of(seeded)),
        ("lines-long-chain", whole_of(lines(1, 1, 300))),
        ("lines-large", whole_of(lines(3_000_000, 2, 1000))),
        ("lines-few-items", whole_of(lines(1000, 2, 100))),
        (
            "lines-odd-rate",
            whole_of(filter(bloom::Params { error_rate: 1.0 / 3.0, ..params(10, 2, 7) }, BitLayout::Lines, 10)),
        ),
        ("lines-arriving", cut(lines(100, 2, 3000), 100)),
        ("lines-begun", cut(lines(100, 2, 3000), 0)),
        ("windowed-clock", whole_of(window(ClockSource::System, false, &[10, 20, 0, 70, 5]))),
        ("windowed-volatile", whole_of(volatile_filter(&[10, 20, 0, 70, 5]))),
        ("windowed-manual", whole_of(window(ClockSource::Manual, false, &[1, 1, 1, 1, 1, 1]))),
        ("windowed-refresh", whole_of(renewed())),
        ("windowed-empty", whole_of(window(ClockSource::System, true, &[]))),
        ("windowed-chain", whole_of(window(ClockSource::System, false, &[0, 200, 0, 400, 0]))),
        ("windowed-large", whole_of(window_of(8_000, 2, ClockSource::System, false, &[1_700, 0, 4_600, 50]))),
        ("windowed-arriving", cut(window_of(8_000, 2, ClockSource::Manual, false, &[1_700, 1_700]), 1_500)),
        ("windowed-begun", cut(window_of(8_000, 2, ClockSource::Manual, true, &[1_700, 1_700]), 0)),
        ("classic-scaling", whole_of(classic(50, 2, 200))),
        ("classic-empty", whole_of(classic(50, 2, 0))),
        ("classic-nonscaling", whole_of(classic(100, 0, 100))),
        ("classic-power-of-two", whole_of(power_of_two())),
        ("classic-long-chain", whole_of(classic(1, 1, 300))),
        ("classic-large", whole_of(classic(3_000_000, 2, 1000))),
        ("classic-arriving", cut(classic(50, 2, 200), 101)),
        ("classic-begun", cut(classic(50, 2, 200), 0)),
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn every_kind_of_value_is_stored_as_ever() {
    let is_writing = std::env::var_os("ROLLCALL_WRITE_GOLDEN").is_some_and(|value| value == "1");
    for (name, value) in values() {
        let (now, file) = (value.text(), folder().join(format!("{name}.txt")));
        let (is_cut, whole) = (now.contains("XXH3"), file.with_extension("whole"));
        if is_writing {
            if is_cut {
                std::fs::write(whole, whole::write(&value.payload, &value.dump)).unwrap();
            }
            std::fs::write(file, now).unwrap();
            continue;
        }
        if is_cut {
            assert!(whole::read(&std::fs::read(whole).unwrap()) == (value.payload, value.dump), "{name}");
        }
        let golden = std::fs::read_to_string(file).unwrap();
        let differing = golden.lines().zip(now.lines()).find(|(golden, now)| golden != now);
        assert!(golden == now, "{name}: the format changed and needs a new version number: {differing:?}");
    }
}

/// Checks that the stored form of every kind of value loads again. The stored form equals the golden file, so that
/// loads too.
#[test]
fn every_kind_of_value_reads_back() {
    for (name, value) in values() {
        let (type_name, encoding, fields) = payload::decode(&value.payload).unwrap();
        assert_eq!((type_name.as_str(), encoding), value.data_type, "{name}");
        assert!(fields == value.rdb && (value.reads_back)(&value), "{name}");
    }
}

#[test]
fn every_file_is_compared() {
    let names: Vec<&str> = values().iter().map(|(name, _)| *name).collect();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let found = entry.unwrap().file_name().into_string().unwrap();
        let name = found.strip_suffix(".txt").or_else(|| found.strip_suffix(".whole"));
        let is_compared = name.is_some_and(|name| names.contains(&name) || name.starts_with("redisbloom-"));
        assert!(is_compared || ["released.txt", "whole.rs"].contains(&&found[..]), "{found}");
    }
}
