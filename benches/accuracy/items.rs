//! Measures families of items as applications make them: the hash should spread them like random items.

use rollcall_core::bloom::sizing::{self, Geometry};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::bloom::SubFilter;
use rollcall_core::unstable::{hash64, hash128};
use rollcall_core::window::Time;

use crate::claims::{Cell, Claim, Findings, Table, Unit};
use crate::random::Random;
use crate::segments::Kind;
use crate::trials::{Measured, Run, error_of_rms, mean, rms};

/// A function that makes an item from its number.
type Family = fn(u64) -> Vec<u8>;

const FAMILIES: [(&str, Family); 8] = [
    ("`1234567`", |number| number.to_string().into_bytes()),
    ("`user:1234567`", |number| format!("user:{number}").into_bytes()),
    ("`000001234567`", |number| format!("{number:012}").into_bytes()),
    ("8 bytes, little-endian", |number| number.to_le_bytes().to_vec()),
    ("8 bytes, big-endian", |number| number.to_be_bytes().to_vec()),
    ("UUIDs, random", |number| uuid(Random::of("uuid", number).bits(), Random::of("rest of uuid", number).bits())),
    ("UUIDs, by time", |number| {
        uuid(0x0190_0000_0000_7000 + ((number / 8) << 16) + number % 8, Random::of("uuid", number).bits())
    }),
    ("`anna.berg1234@example.com`", email),
];

fn uuid(high: u64, low: u64) -> Vec<u8> {
    let fields = [high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff];
    let [a, b, c, d, e] = fields;
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}").into_bytes()
}

fn email(number: u64) -> Vec<u8> {
    const FIRST: [&str; 8] = ["anna", "ben", "cem", "dora", "eva", "finn", "greta", "hans"];
    const LAST: [&str; 8] = ["berg", "klein", "meyer", "novak", "olsen", "rossi", "silva", "weiss"];
    let of = |names: [&'static str; 8], number: u64| names[(number % 8) as usize];
    format!("{}.{}{}@example.com", of(FIRST, number), of(LAST, number / 8), number / 64).into_bytes()
}

/// Number of cells in the chi-square test.
const CELLS: usize = 1 << 12;

/// Pearson's chi-square divided by its degrees of freedom. It is near 1 for random items.
fn chi_square(hashes: impl Iterator<Item = u64>) -> Measured {
    let mut counts = vec![0u64; CELLS];
    let mut all = 0;
    for hash in hashes {
        // Slots and lines depend on the leading bits of the hash.
        counts[(hash >> (u64::BITS - CELLS.ilog2())) as usize] += 1;
        all += 1;
    }
    let expected = all as f64 / CELLS as f64;
    let sum: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    let freedom = (CELLS - 1) as f64;
    Measured { value: sum / freedom, error: (2.0 / freedom).sqrt() }
}

/// Compares counters and filters of each family with theory.
pub fn families(run: &mut Run) -> Findings {
    let (number, kind) = (50_000, Kind::new(0.01));
    let (error_rate, capacity, asked) = (0.01, 20_000, run.questions(200_000));
    let geometry: Geometry = sizing::geometry(error_rate, capacity).expect("a rate and a capacity in their ranges");
    let rate = sizing::false_positive_rate(&geometry, capacity as f64);
    let mut table = Table::new(
        "",
        &[
            "items",
            "counters: error / stated",
            "slots: chi-square",
            "lines: chi-square",
            "steps: chi-square",
            "filters: rate / predicted",
        ],
    );
    for (name, item) in FAMILIES {
        // Each trial uses its own range of numbers. The seed of the hash stays the default, as on servers.
        let errors = run.map(run.trials(500), |trial| {
            let mut counter = kind.counter();
            let members: Vec<_> = (trial * number..(trial + 1) * number).map(item).collect();
            counter
                .live(Time::Reached)
                .add_all(members.iter().map(|member| &member[..]), &Unlimited, |_| ())
                .expect("no limit");
            counter.count() as f64 / number as f64 - 1.0
        });
        let hashed = run.questions(2_000_000);
        let chi_squares = run.each(3, |which| {
            chi_square((0..hashed).map(item).map(|item| match which {
                0 => hash64(&item, 0),
                1 => hash128(&item, 0).lo,
                _ => hash128(&item, 0).hi,
            }))
        });
        let rates = run.map(run.trials(60), |trial| {
            let hashes = |range: std::ops::Range<u64>| range.map(item).map(|item| hash128(&item, 0));
            let mut filter = SubFilter::new(error_rate, capacity, &Unlimited).expect("memory");
            let (start, end) = (trial * (capacity + asked), (trial + 1) * (capacity + asked));
            hashes(start..start + capacity).for_each(|hash| _ = filter.insert(hash));
            hashes(start + capacity..end).filter(|&hash| filter.may_contain(hash)).count() as f64 / asked as f64
        });
        let near = |measured| Cell::brief(Claim::Near(1.0, 0.0), measured, Unit::Plain(3));
        let mut row = vec![name.into()];
        row.push(Cell::full(
            Claim::Near(1.0, 0.02),
            rms(&errors).over(kind.stated(number as f64)).or(error_of_rms(errors.len(), 1.0, f64::INFINITY)),
            Unit::Plain(3),
        ));
        row.extend(chi_squares.into_iter().map(near));
        row.push(Cell::brief(Claim::Near(1.0, 0.02), mean(&rates).over(rate), Unit::Plain(3)));
        table.push(row);
    }
    Findings { tables: vec![table], ..Findings::default() }
}
