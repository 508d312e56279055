//! A primary whose link breaks in the middle of a value: the replica keeps or drops what it had, as it does with the
//! server's own types, and takes all data when it comes whole.
//!
//! Some places of each value by default; with `ROLLCALL_THOROUGH` every byte of the RDB.

use std::fs;

use crate::fake_primary::{Asking, FakePrimary, Framing};
use crate::kinds::{KINDS, make};
use rollcall_testkit::client::{Client, wait_until};
use rollcall_testkit::fixture::populate_without_ttl;
use rollcall_testkit::server::{Server, Setup, is_thorough};

/// The RDB file of one value.
struct Sample {
    kind: &'static str,
    rdb: Vec<u8>,
    /// Where the value begins in it.
    start: usize,
    /// What a server holds that has loaded it.
    digest: String,
}

const KEY: &str = "the-key-to-cut";

fn saved(source: &Server) -> (Vec<u8>, String) {
    source.save();
    (fs::read(source.dir().join("dump.rdb")).expect("the RDB file"), source.client().text("DEBUG DIGEST"))
}

fn samples(source: &Server) -> Vec<Sample> {
    let mut client = source.client();
    let mut sample = |kind, lines: &[&str]| {
        client.expect("FLUSHALL", "+OK");
        make(&mut client, KEY, lines);
        client.expect("DBSIZE", "1");
        let (rdb, digest) = saved(source);
        let start = rdb.windows(KEY.len()).position(|window| window == KEY.as_bytes()).expect("the key") + KEY.len();
        Sample { kind, rdb, start, digest }
    };
    KINDS.iter().map(|(kind, lines)| sample(kind, lines)).collect()
}

/// The numbers of bytes after which the link breaks: `few` of them within the value, or all there are.
fn cuts(sample: &Sample, few: usize) -> Vec<usize> {
    let end = sample.rdb.len();
    if is_thorough() {
        return (0..end).collect();
    }
    (0..few).map(|place| sample.start + (end - 1 - sample.start) * place / (few - 1)).collect()
}

/// Filters, counters and bytes that the module holds by its own account.
fn held(client: &mut Client) -> [i64; 3] {
    ["rollcall_filters", "rollcall_counters", "rollcall_allocated_bytes"].map(|name| client.info_number(name))
}

/// Bytes that the module may hold more after many cuts than before: lists that values share. It is less than what the
/// values of a sweep would leave behind.
const SHARED_BYTES: i64 = 16 << 10;

/// Cuts every sample in several places, and lets it come whole after that. `old` is what the replica has from before: an
/// RDB and its digest.
fn sweep(setup: Setup, old: Option<&(Vec<u8>, String)>, samples: &[Sample], few: usize) {
    let mut replica = setup.start();
    let mut client = replica.client();
    let empty = client.text("DEBUG DIGEST");
    let mut num_cuts = 0;
    let mut held_at_first = None;
    for (number, sample) in samples.iter().enumerate() {
        client.expect("REPLICAOF NO ONE", "+OK");
        client.expect("FLUSHALL", "+OK");
        let fake = FakePrimary::of(&replica);
        let whole = |asking: Asking, rdb: &[u8], digest: &str, what: &str| {
            let link = asking.send(rdb, rdb.len(), Framing::Mark);
            let mut client = replica.client();
            wait_until("the link to be up", || (client.info("master_link_status") == "up").then_some(()));
            assert_eq!(client.text("DEBUG DIGEST"), digest, "{what}");
            link.hang_up();
        };
        let mut asking = fake.asked();
        if let Some((rdb, digest)) = old {
            whole(asking, rdb, digest, "the old data");
            asking = fake.asked();
        }
        let expected = old.map_or(&empty, |(_, digest)| digest);
        // Nothing that was dropped before is still to be freed when the first value comes.
        let held_before = *held_at_first.get_or_insert_with(|| held(&mut client));
        for (turn, cut) in cuts(sample, few).into_iter().enumerate() {
            let framing = if (turn + number).is_multiple_of(2) { Framing::Length } else { Framing::Mark };
            asking.send(&sample.rdb, cut, framing).hang_up();
            asking = fake.asked();
            let what = format!("{} cut after {cut} of {} bytes ({framing:?})", sample.kind, sample.rdb.len());
            assert_eq!(client.text("DEBUG DIGEST"), *expected, "{what}");
            num_cuts += 1;
        }
        // What a replica drops may be freed a little later.
        wait_until("what was cut to be freed", || {
            let now = held(&mut client);
            (now[..2] == held_before[..2] && now[2] <= held_before[2] + SHARED_BYTES).then_some(())
        });
        whole(asking, &sample.rdb, &sample.digest, sample.kind);
    }
    println!("{num_cuts} cuts of {} values", samples.len());
    replica.assert_up();
}

/// The old data stays until the new is whole, and answers meanwhile.
#[test]
fn a_replica_that_swaps_keeps_what_it_had() {
    let source = Server::start();
    populate_without_ttl(&mut source.client());
    let old = saved(&source);
    let samples = samples(&source);
    sweep(Setup::default().line("repl-diskless-load swapdb"), Some(&old), &samples, 5);
}

/// Half of a value is dropped again.
#[test]
fn an_empty_replica_stays_empty() {
    let source = Server::start();
    sweep(Setup::default().line("repl-diskless-load on-empty-db"), None, &samples(&source), 5);
}

/// A file that did not arrive whole is not loaded at all.
#[test]
fn a_replica_that_loads_from_disk_keeps_what_it_had() {
    let source = Server::start();
    populate_without_ttl(&mut source.client());
    let old = saved(&source);
    // A replica that loads from disk connects again after a second only.
    let samples = samples(&source);
    let few = if is_thorough() { samples.len() } else { 3 };
    sweep(Setup::default(), Some(&old), &samples[..few], 2);
}
