//! Tests the sizes of counters that docs/counting.md and docs/formulas.md state.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::persist::to_bytes;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;

const PAGE: &str = include_str!("../../../docs/counting.md");

/// The least bytes that [`to_bytes`] puts around a value beyond those of a dump.
const FILE_BYTES: usize = 60;

/// The rows of the table of errors: ERROR, the bytes in memory, and those in a dump.
fn rows() -> Vec<(f64, u64, usize)> {
    let cells = PAGE.lines().filter(|line| line.starts_with("| 0.")).map(|line| line.split('|').map(str::trim));
    let number = |cell: &str| cell.replace(',', "");
    cells
        .map(|cells| {
            let cells: Vec<_> = cells.map(number).collect();
            (cells[1].parse().unwrap(), cells[5].parse().unwrap(), cells[6].parse().unwrap())
        })
        .collect()
}

/// A counter takes the most memory shortly before a segment of its bitmap becomes full: then nine segments are bitmaps
/// of `C` bits. All later ones are lists of 16-bit numbers, with at most `C / 24` marked slots in the first, and half
/// as many in each that follows. Six standard deviations are added, and up to a quarter for the unused room of lists. A
/// regression test: the page stated measured sizes, which other members exceeded.
#[test]
fn no_estimate_takes_more_than_the_page_says() {
    let rows = rows();
    assert_eq!(rows.len(), 9, "{rows:?}");
    for (row, &(error_rate, most_bytes, most_dumped)) in rows.iter().enumerate() {
        let slots = 256u64 << row;
        let listed = slots as f64 / 12.0;
        let structs = Counter::new(Params { error_rate, exact_limit: 0, ..Params::default() }).unwrap().size_bytes();
        let bitmaps = structs as f64 + 9.0 / 8.0 * slots as f64;
        let [least, most] = [1.0, 1.25].map(|room| bitmaps + room * 2.0 * (listed + 6.0 * listed.sqrt()));
        assert!((least..=most).contains(&(most_bytes as f64)), "{error_rate}: {most_bytes}, not {least} to {most}");
        let (mut peak, mut dumped) = (0, 0);
        for seed in 0..32 >> row.min(5) {
            let mut counter = Counter::new(Params { error_rate, exact_limit: 0, seed, ..Params::default() }).unwrap();
            // The first segment becomes full at 2 ln(C) members a slot; two doublings show it twice.
            for member in 0..64 * slots {
                if counter.live(Time::Reached).add(member.to_le_bytes(), &Unlimited).unwrap() {
                    peak = peak.max(counter.size_bytes());
                }
                if member % (slots / 4) == 0 {
                    dumped = dumped.max(to_bytes(&counter).unwrap().len() - FILE_BYTES);
                }
            }
        }
        println!("{error_rate}: {peak} bytes, {dumped} dumped");
        assert!(peak <= most_bytes && 5 * peak >= 4 * most_bytes, "{error_rate}: {peak} of {most_bytes} bytes");
        assert!(dumped <= most_dumped && 10 * dumped >= 9 * most_dumped, "{error_rate}: {dumped} of {most_dumped}");
    }
}

/// Makes a member from a number and a length. Returns it with its bytes in the counter.
type Kind = fn(u64, usize) -> (String, u64);

/// The buffer of an exact counter is rounded up by at most a quarter, and a member has at most 16 bytes beside its own:
/// three of its header, and its part of the index.
#[test]
fn no_exact_counter_takes_more_than_the_page_says() {
    let sentence = "`1.25 * (bytes + 16 * members) + 200` bytes; by default at most 20,528, and 17,000 in a dump";
    assert!(PAGE.contains(sentence));
    let kinds: [Kind; 4] = [
        |number, len| (format!("{number:x>len$}"), len as u64),
        |number, _| (number.to_string(), 1 + number.ilog2() as u64 / 8),
        |number, _| (format!("user:{}", 100_000 + number), 11),
        |number, _| (format!("{number:08x}-0000-4000-8000-000000000000"), 16),
    ];
    let (mut peak, mut dumped) = (0, 0);
    for (kind, len) in kinds.iter().zip(0..).flat_map(|(kind, at)| {
        let lens = if at == 0 { vec![5, 15, 36, 65, 127, 200, 700, 4_000] } else { vec![0] };
        lens.into_iter().map(move |len| (kind, len))
    }) {
        for (exact_limit, exact_bytes) in [(250, 16_384), (65_536, 1 << 20)] {
            let mut counter = Counter::new(Params { exact_limit, exact_bytes, ..Params::default() }).unwrap();
            let mut bytes = 0;
            for number in 1..20_000 {
                let (member, own) = kind(number, len);
                counter.live(Time::Reached).add(&member, &Unlimited).unwrap();
                bytes += own;
                if !counter.is_exact() {
                    break;
                }
                let most = 5 * (bytes + 16 * number) / 4 + 200;
                assert!(counter.size_bytes() <= most, "{number} of {member}: {} of {most}", counter.size_bytes());
                if exact_limit == 250 {
                    peak = peak.max(counter.size_bytes());
                    dumped = dumped.max(to_bytes(&counter).unwrap().len() - FILE_BYTES);
                }
            }
        }
    }
    assert!(peak == 20_528 && (16_000..=17_000).contains(&dumped), "{peak} bytes, {dumped} dumped");
}
