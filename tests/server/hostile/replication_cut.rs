//! Tests a link to the primary that breaks in the middle of a value. The replica keeps or drops its old data as with
//! the server's own types, and accepts the data when it comes completely.
//!
//! By default the link breaks at some positions in each value, with `ROLLCALL_THOROUGH` at every byte of the RDB.

use std::fs;

use crate::fake_primary::{Asking, FakePrimary, Framing};
use crate::kinds::{KINDS, make};
use rollcall_testkit::{Client, Server, Setup, is_thorough, populate_without_ttl, wait_until};

/// The RDB file of one value.
struct Sample {
    kind: &'static str,
    rdb: Vec<u8>,
    /// The offset of the value in the RDB file.
    start: usize,
    /// The digest of the data set on a server that has loaded the file.
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

/// The numbers of bytes after which the link breaks: `few` positions within the value, or all positions.
fn cuts(sample: &Sample, few: Option<usize>) -> Vec<usize> {
    let end = sample.rdb.len();
    let Some(few) = few else { return (0..end).collect() };
    (0..few).map(|place| sample.start + (end - 1 - sample.start) * place / (few - 1)).collect()
}

/// The number of positions for a replica that connects again at once; `None` for all.
fn few_or_all() -> Option<usize> {
    if is_thorough() { None } else { Some(5) }
}

/// The numbers of filters, counters and bytes that the module reports.
fn held(client: &mut Client) -> [i64; 3] {
    ["rollcall_filters", "rollcall_counters", "rollcall_allocated_bytes"].map(|name| client.info_number(name))
}

/// Bytes by which the module's memory may grow over all cuts, for lists that values share. This is less than the leak
/// of one value per cut would be.
const SHARED_BYTES: i64 = 16 << 10;

/// Cuts every sample at several positions, then sends it completely. `old` is the data set that the replica has before:
/// an RDB and its digest.
fn sweep(setup: Setup, old: Option<&(Vec<u8>, String)>, samples: &[Sample], few: Option<usize>) {
    let (mut replica, mut client) = setup.start().with_client();
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
        // At the first value, no earlier data waits to be freed.
        let held_before = *held_at_first.get_or_insert_with(|| held(&mut client));
        for (turn, cut) in cuts(sample, few).into_iter().enumerate() {
            let framing = if (turn + number).is_multiple_of(2) { Framing::Length } else { Framing::Mark };
            asking.send(&sample.rdb, cut, framing).hang_up();
            asking = fake.asked();
            let what = format!("{} cut after {cut} of {} bytes ({framing:?})", sample.kind, sample.rdb.len());
            assert_eq!(client.text("DEBUG DIGEST"), *expected, "{what}");
            num_cuts += 1;
        }
        // Data that a replica drops may be freed a little later.
        wait_until("what was cut to be freed", || {
            let now = held(&mut client);
            (now[..2] == held_before[..2] && now[2] <= held_before[2] + SHARED_BYTES).then_some(())
        });
        whole(asking, &sample.rdb, &sample.digest, sample.kind);
    }
    println!("{num_cuts} cuts of {} values", samples.len());
    replica.assert_up();
}

/// The replica keeps the old data until the new data is complete, and answers queries from it meanwhile.
#[test]
fn a_replica_that_swaps_keeps_what_it_had() {
    let source = Server::start();
    populate_without_ttl(&mut source.client());
    let old = saved(&source);
    let samples = samples(&source);
    sweep(Setup::default().line("repl-diskless-load swapdb"), Some(&old), &samples, few_or_all());
}

/// The replica drops the partial value.
#[test]
fn an_empty_replica_stays_empty() {
    let source = Server::start();
    sweep(Setup::default().line("repl-diskless-load on-empty-db"), None, &samples(&source), few_or_all());
}

/// The replica does not load a file that was not received completely, wherever the link breaks.
#[test]
fn a_replica_that_loads_from_disk_keeps_what_it_had() {
    let source = Server::start();
    populate_without_ttl(&mut source.client());
    let old = saved(&source);
    let samples = samples(&source);
    let some = if is_thorough() { samples.len() } else { 3 };
    // Valkey connects such a replica again after a second only.
    sweep(Setup::default(), Some(&old), &samples[..some], Some(2));
}
