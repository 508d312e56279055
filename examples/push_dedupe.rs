//! Push dedupe: never send a notification to one device twice, without a table of 100 million tokens.
//!
//! A push service sends a campaign to tokens of 32 bytes to 4 KB that come from many lists, with repeats. A device must
//! not get it twice; that one in a thousand does not get it at all is accepted. A Bloom filter fits: it always
//! recognises a token that was sent to, and takes a new one for a repeat at the error rate at most. It holds no tokens,
//! so their length does not matter, and 100 million take less than 180 MiB.
//!
//! - `BF.RESERVE key 0.001 100000000 NONSCALING`, once a campaign. The number of tokens is known, so the filter
//!   need not be able to grow, which saves 3 % of memory; one token too many would be refused.
//! - `BF.MADD key token ...` asks and remembers in one step: 1 is "new: send", 0 is "sent before". Batches of 350,
//!   several on their way at once.
//!
//! `TOKENS` is how many tokens to send (default 3,000,000); 110000000 fill the filter.

mod demo;

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use demo::{Bounds, Failure, Promises, Random, memory_usage, progress, thousands};
use redis::{Connection, InfoDict, Value};

const PREFIX: &str = "rollcall-demo:push:";
const CAPACITY: u64 = 100_000_000;
const ERROR_RATE: f64 = 0.001;
const MAX_MIB: f64 = 180.0;

/// Tokens a call, and calls on their way at once.
const BATCH: usize = 350;
const BATCHES_PER_PIPELINE: usize = 20;

/// The capacity of the small filter that is filled to the last token, to see its error rate there.
const SMALL_CAPACITY: u64 = 1_000_000;

fn main() -> ExitCode {
    demo::run(PREFIX, |server, promises| {
        let tokens = std::env::var("TOKENS").map_or(Ok(3_000_000), |tokens| tokens.parse())?;
        let campaign = format!("{PREFIX}campaign");
        let resident_before = resident_bytes(server)?;
        reserve(&campaign, CAPACITY, server)?;

        println!(
            "A campaign: {} tokens, one of ten a repeat, to a filter for {}\n",
            thousands(tokens),
            thousands(CAPACITY)
        );
        let sent = send_campaign(&campaign, tokens, server)?;
        let rate: f64 = info(&campaign, "FPR", server)?;
        check_sending(&sent, rate, promises);
        check_memory(&campaign, resident_before, server, promises)?;
        check_full_filter(server, promises)
    })
}

fn reserve(key: &str, capacity: u64, server: &mut Connection) -> Result<(), Failure> {
    Ok(redis::cmd("BF.RESERVE").arg(key).arg(ERROR_RATE).arg(capacity).arg("NONSCALING").exec(server)?)
}

/// What the filter's answers would have led to.
#[derive(Default)]
struct Sent {
    new: u64,
    repeats: u64,
    /// Repeats that were called new: devices that would get it twice.
    sent_twice: u64,
    /// New tokens that were called repeats: devices that would not get it.
    left_out: u64,
    bytes: u64,
    /// Time spent sending and waiting, without that for making up tokens.
    elapsed: Duration,
}

fn send_campaign(key: &str, tokens: u64, server: &mut Connection) -> Result<Sent, Failure> {
    let mut random = Random(1);
    let mut sent = Sent::default();
    let bar = progress(tokens, "tokens");
    while sent.new + sent.repeats < tokens {
        let mut pipeline = redis::pipe();
        let mut is_repeat = Vec::with_capacity(BATCH * BATCHES_PER_PIPELINE);
        for _ in 0..BATCHES_PER_PIPELINE {
            let add = pipeline.cmd("BF.MADD").arg(key);
            for _ in 0..BATCH {
                let repeat = sent.new > 0 && random.below(10) == 0;
                let token = token(if repeat { random.below(sent.new) } else { sent.new });
                sent.bytes += token.len() as u64;
                sent.repeats += u64::from(repeat);
                sent.new += u64::from(!repeat);
                is_repeat.push(repeat);
                add.arg(token);
            }
        }
        let start = Instant::now();
        let answers: Vec<Vec<bool>> = pipeline.query(server)?;
        sent.elapsed += start.elapsed();
        for (is_new, is_repeat) in answers.into_iter().flatten().zip(is_repeat) {
            sent.sent_twice += u64::from(is_new && is_repeat);
            sent.left_out += u64::from(!is_new && !is_repeat);
        }
        bar.set_position(sent.new + sent.repeats);
    }
    bar.finish_and_clear();
    Ok(sent)
}

/// The token of a device: most have 64 to 200 bytes, some 32, and one of fifty up to 4 KB. No two are equal.
fn token(device: u64) -> Vec<u8> {
    let mut random = Random(device);
    // The generator's first number is different for every device, so no two tokens are equal.
    let mut token = random.next().to_le_bytes().to_vec();
    let len = match random.below(100) {
        0..10 => 32,
        10..98 => 64 + random.below(137),
        _ => 200 + random.below(4096 - 200 + 1),
    } as usize;
    while token.len() < len {
        token.extend(random.next().to_le_bytes());
    }
    token.truncate(len);
    token
}

fn check_sending(sent: &Sent, rate_now: f64, promises: &mut Promises) {
    let seconds = sent.elapsed.as_secs_f64();
    promises.same(&format!("devices notified twice, of {} repeats", thousands(sent.repeats)), 0, sent.sent_twice);
    promises.number(
        &format!("devices left out, of {} new", thousands(sent.new)),
        &mistaken(sent.new),
        sent.left_out as f64,
        format!("; the rate by now: {rate_now:.1e}"),
    );
    let tokens = (sent.new + sent.repeats) as f64;
    promises.tell(
        "sending",
        format!(
            "{} tokens/s, {:.0} MB/s, in batches of {BATCH}",
            thousands((tokens / seconds) as u64),
            sent.bytes as f64 / seconds / 1e6
        ),
    );
}

/// How many of `new` tokens may be taken for repeats: some more than by the error rate, because one run may be unlucky.
fn mistaken(new: u64) -> Bounds {
    let expected = ERROR_RATE * new as f64;
    Bounds::at_most((expected + 3.0 * expected.sqrt()).floor())
        .because(format!("{}% and 3 standard deviations", 100.0 * ERROR_RATE))
}

fn check_memory(
    key: &str,
    resident_before: f64,
    server: &mut Connection,
    promises: &mut Promises,
) -> Result<(), Failure> {
    let size: f64 = info(key, "SIZE", server)?;
    let resident = resident_bytes(server)? - resident_before;
    let usage = memory_usage(key, server)? as f64;
    let in_mb = |bytes: f64| format!(" ({:.1} MB)", bytes / 1e6);
    let bounds = Bounds::at_most(MAX_MIB).printed(1, " MiB");
    promises.number("filter (BF.INFO SIZE)", &bounds, mib(size), in_mb(size));
    promises.number("growth of the server in RAM", &bounds, mib(resident), in_mb(resident));
    promises.tell("MEMORY USAGE, with what the allocator rounds up", format!("{:.1} MiB{}", mib(usage), in_mb(usage)));
    Ok(())
}

/// A filter is at its worst when it is full; a hundredth of the size shows that in seconds.
fn check_full_filter(server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let key = format!("{PREFIX}full");
    reserve(&key, SMALL_CAPACITY, server)?;
    let devices: Vec<u64> = (0..2 * SMALL_CAPACITY).collect();
    let (added, others) = devices.split_at(SMALL_CAPACITY as usize);
    let bar = progress(2 * SMALL_CAPACITY, "tokens");
    let mut answer_yes = |command: &str, devices: &[u64]| -> Result<u64, Failure> {
        let mut yes = 0;
        for devices in devices.chunks(BATCH * BATCHES_PER_PIPELINE) {
            let mut pipeline = redis::pipe();
            for batch in devices.chunks(BATCH) {
                pipeline.cmd(command).arg(&key).arg(batch.iter().map(|&device| token(device)).collect::<Vec<_>>());
            }
            let answers: Vec<Vec<bool>> = pipeline.query(server)?;
            yes += answers.iter().flatten().filter(|&&answer| answer).count() as u64;
            bar.inc(devices.len() as u64);
        }
        Ok(yes)
    };
    answer_yes("BF.MADD", added)?;
    let recognised = answer_yes("BF.MEXISTS", &added[..100_000])?;
    let taken = answer_yes("BF.MEXISTS", others)?;
    bar.finish_and_clear();
    promises.same("full filter: recognised, of 100,000 sent", "100,000", thousands(recognised));
    promises.number(
        &format!("full filter: taken for repeats, of {} new", thousands(SMALL_CAPACITY)),
        &mistaken(SMALL_CAPACITY),
        taken as f64,
        format!("; {:.0} expected", info(&key, "FPR", server)? * SMALL_CAPACITY as f64),
    );
    Ok(())
}

/// One field of `BF.INFO`: an array of one in RESP2, a map of one in RESP3.
fn info(key: &str, field: &str, server: &mut Connection) -> Result<f64, Failure> {
    let value = match redis::cmd("BF.INFO").arg(key).arg(field).query(server)? {
        Value::Map(fields) => fields.into_iter().map(|(_, value)| value).next(),
        Value::Array(values) => values.into_iter().next(),
        _ => None,
    };
    Ok(redis::from_redis_value(value.ok_or("BF.INFO has no such field")?)?)
}

/// Resident memory of the server's process, bytes.
fn resident_bytes(server: &mut Connection) -> Result<f64, Failure> {
    // The server updates this figure ten times a second.
    sleep(Duration::from_millis(300));
    let memory: InfoDict = redis::cmd("INFO").arg("memory").query(server)?;
    memory.get("used_memory_rss").ok_or_else(|| "INFO memory has no used_memory_rss".into())
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
