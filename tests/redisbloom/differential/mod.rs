//! Sends the same commands to this module and to a running RedisBloom. The replies must be equal byte for byte, except
//! for the differences that [`differences`] lists.
//!
//! Needs RedisBloom's module (`ROLLCALL_PEER`). `ROLLCALL_SEED` sets another seed, and `ROLLCALL_SEQUENCES` another
//! number of sequences.

mod differences;
mod metadata;
mod runner;
mod sequences;

use std::collections::BTreeSet;
use std::path::Path;

use differences::DIFFERENCES;
use metadata::METADATA;
use rollcall_testkit::optional_file;
use runner::{Hits, Pair, servers};
use sequences::{Generator, Layout, Step, fixed};

const SEED: u64 = 20_261_121;
/// The default number of sequences for each layout.
const SEQUENCES: u64 = 500;

fn from_environment(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn run_layout(peer: &Path, layout: Layout) -> Hits {
    let seed = from_environment("ROLLCALL_SEED", SEED);
    let servers = servers(peer, layout);
    let mut pairs = [false, true].map(|resp3| Pair::connect(&servers, layout, resp3));
    let mut check = |index: u64, name: &str, sequence: Vec<Step>| {
        let pair = &mut pairs[(index % 2) as usize];
        if let Err(found) = pair.run(&sequence) {
            let text = pair.minimise(sequence, *found);
            panic!("{layout:?}, RESP{}, {name}:\n{text}", index % 2 + 2);
        }
    };
    for (index, sequence) in fixed(layout).into_iter().enumerate() {
        check(0, &format!("fixed sequence {index}"), sequence.clone());
        check(1, &format!("fixed sequence {index}"), sequence);
    }
    for index in 0..from_environment("ROLLCALL_SEQUENCES", SEQUENCES) {
        // Each sequence has its own seed, so that it can be repeated without the earlier ones.
        let sequence = Generator::new(seed.wrapping_add(index), layout).sequence();
        check(index, &format!("sequence {index} of seed {seed}"), sequence);
    }
    let [mut all, other] = pairs.map(|pair| (pair.hits, pair.calls));
    for (name, count) in other.0 {
        *all.0.entry(name).or_default() += count;
    }
    println!("{layout:?}: {} calls compared; differences that are meant: {:?}", all.1 + other.1, all.0);
    all.0
}

#[test]
fn replies_are_those_of_redisbloom() {
    let Some(peer) = optional_file("ROLLCALL_PEER") else { return };
    let hits = std::thread::scope(|scope| {
        let runs = [Layout::Classic, Layout::Lines].map(|layout| {
            let peer = &peer;
            scope.spawn(move || run_layout(peer, layout))
        });
        runs.map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let unseen: Vec<_> =
        DIFFERENCES.iter().map(|d| d.name).filter(|name| hits.iter().all(|hits| !hits.contains_key(name))).collect();
    assert!(unseen.is_empty(), "allowed, but not there any more: {unseen:?}");
}

/// The names in the tables of docs/compatibility.md.
fn documented() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    let text = std::fs::read_to_string(path).expect("docs/compatibility.md");
    let (_, list) = text.split_once("## Differences").expect("the list of differences");
    let row = |line: &str| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned());
    list.split("\n## ").next().unwrap_or_default().lines().filter_map(row).collect()
}

#[test]
fn the_document_lists_every_difference_and_no_other() {
    let allowed: Vec<_> = DIFFERENCES.iter().map(|d| d.name).chain(METADATA.iter().map(|m| m.0)).collect();
    let (documented, unique) = (documented(), allowed.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
    assert_eq!(unique.len(), allowed.len(), "a name stands for one difference");
    assert_eq!(documented.len(), allowed.len(), "{documented:?}");
    assert_eq!(documented.into_iter().collect::<BTreeSet<_>>(), unique);
}
