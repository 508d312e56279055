//! Push dedupe: never send a notification to one device twice, without a table of 100 million tokens.
//!
//! A push service sends a campaign to devices, each known by a token of 32 bytes to 4 KB. Tokens come from many
//! lists, with repeats. No device may get a campaign twice, but one in a thousand may miss it. A Bloom filter finds
//! every token that was added, and takes a new token for a repeated one at most at the error rate. It does not store
//! the tokens, so their length does not matter: 100 million tokens take less than 180 MiB.
//!
//! - `BF.RESERVE key 0.001 100000000 NONSCALING`, once a campaign. The number of tokens is known, so the filter need
//!   not grow, which saves 3 % of memory. Tokens beyond the capacity are rejected.
//! - `BF.MADD key token ...` adds tokens, and replies 1 for a new token (send), and 0 for a known one. Several
//!   batches of 350 are in flight at once.
//! - `BF.RESERVE key 0.001 105000 WINDOW 86400 SLICES 24` for notifications that a device may get once in 24 hours.
//!   Tokens expire by themselves. Here the filter has the option `MANUAL`: `BF.ADVANCE` moves its window from hour to
//!   hour, so that days pass in seconds.
//!
//! `TOKENS` is the number of tokens to send, by default 3,000,000. 110000000 tokens fill the filter.

mod demo;

use std::collections::HashMap;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use demo::{Bounds, Failure, Promises, memory_usage, progress, thousands};
use redis::{Connection, InfoDict, Value};
use rollcall_fuzz::random::Random;

const PREFIX: &str = "rollcall-demo:push:";
const CAPACITY: u64 = 100_000_000;
const ERROR_RATE: f64 = 0.001;
const MAX_MIB: f64 = 180.0;

/// Number of tokens per call, and number of calls that are in flight at once.
const BATCH: usize = 350;
const BATCHES_PER_PIPELINE: usize = 20;

/// The capacity of a small filter that is filled completely, to measure its error rate when full.
const SMALL_CAPACITY: u64 = 1_000_000;

/// Number of devices that get at most one notification in 24 hours, and the capacity of their filter, which is the
/// number of items in one window.
const DAILY_DEVICES: u64 = 100_000;
const DAILY_CAPACITY: u64 = 105_000;
/// The most bits per item of capacity that this windowed filter takes, according to docs/windows.md for 24 slices.
const DAILY_BITS: u64 = 24;
/// Number of hours of the simulated clock.
const HOURS: u64 = 4 * 24;
/// Number of unknown tokens that are looked up at the end of each day.
const UNKNOWN_TOKENS: u64 = 100_000;

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
        check_full_filter(server, promises)?;
        check_once_a_day(server, promises)
    })
}

fn reserve(key: &str, capacity: u64, server: &mut Connection) -> Result<(), Failure> {
    Ok(redis::cmd("BF.RESERVE").arg(key).arg(ERROR_RATE).arg(capacity).arg("NONSCALING").exec(server)?)
}

/// The effects of the filter's answers.
#[derive(Default)]
struct Sent {
    new: u64,
    repeats: u64,
    /// Number of repeated tokens that were reported as new: these devices would get the campaign twice.
    sent_twice: u64,
    /// Number of new tokens that were reported as repeated: these devices would miss the campaign.
    left_out: u64,
    bytes: u64,
    /// Time for sending and waiting, without the time for making tokens.
    elapsed: Duration,
}

fn send_campaign(key: &str, tokens: u64, server: &mut Connection) -> Result<Sent, Failure> {
    let mut random = Random::new(1);
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

/// The token of a device. Most tokens have 64 to 200 bytes, some have 32, and one in fifty has up to 4 KB. All are
/// different.
fn token(device: u64) -> Vec<u8> {
    let mut random = Random::new(device);
    // The generator's first number is different for every device, so no two tokens are equal.
    let mut token = random.number().to_le_bytes().to_vec();
    let len = match random.below(100) {
        0..10 => 32,
        10..98 => 64 + random.below(137),
        _ => 200 + random.below(4096 - 200 + 1),
    } as usize;
    while token.len() < len {
        token.extend(random.number().to_le_bytes());
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
    promises.report(
        "sending",
        format!(
            "{} tokens/s, {:.0} MB/s, in batches of {BATCH}",
            thousands((tokens / seconds) as u64),
            sent.bytes as f64 / seconds / 1e6
        ),
    );
}

/// The number of `new` tokens that may be reported as repeated: somewhat more than by the error rate, because of
/// chance.
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
    promises
        .report("MEMORY USAGE, with what the allocator rounds up", format!("{:.1} MiB{}", mib(usage), in_mb(usage)));
    Ok(())
}

/// Checks a full filter, which has the highest rate. This filter is a hundredth of the size, so that the check takes
/// seconds.
fn check_full_filter(server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let key = format!("{PREFIX}full");
    reserve(&key, SMALL_CAPACITY, server)?;
    let devices: Vec<u64> = (0..2 * SMALL_CAPACITY).collect();
    let (added, others) = devices.split_at(SMALL_CAPACITY as usize);
    let bar = progress(2 * SMALL_CAPACITY, "tokens");
    let mut answer_yes = |command: &str, devices: &[u64]| -> Result<u64, Failure> {
        let mut yes = 0;
        for devices in devices.chunks(BATCH * BATCHES_PER_PIPELINE) {
            yes += ask(command, &key, devices, server)?.into_iter().filter(|&answer| answer).count() as u64;
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

/// The notifications of devices that get at most one in 24 hours.
#[derive(Default)]
struct Daily {
    devices: HashMap<u64, Device>,
    asked: u64,
    sent: u64,
    again: u64,
    too_early: u64,
    /// Number of times that a device whose 24 hours had passed opened the app, and number of these times without a
    /// notification.
    due: u64,
    left_out: u64,
}

#[derive(Default)]
struct Device {
    /// The hour of the last notification.
    notified: Option<u64>,
    /// Whether the device has been left out since it became due. Several hours in a row count once.
    left_out: bool,
}

impl Daily {
    /// Number of hours after which a device is certainly due: the window, plus the hour of the notification.
    const DUE: u64 = 25;

    fn note(&mut self, device: u64, hour: u64, send: bool) {
        let device = self.devices.entry(device).or_default();
        let is_due = device.notified.is_none_or(|before| hour >= before + Self::DUE);
        self.asked += 1;
        if is_due && !device.left_out {
            self.due += 1;
            self.left_out += u64::from(!send);
        }
        if send {
            self.sent += 1;
            self.again += u64::from(device.notified.is_some());
            self.too_early += u64::from(!is_due);
            device.notified = Some(hour);
        }
        device.left_out = is_due && !send;
    }
}

/// Simulates some days, hour by hour. Each device comes about three times a day, whenever its app is opened.
fn check_once_a_day(server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    let key = format!("{PREFIX}daily");
    let window = ("WINDOW", 86_400, "SLICES", 24, "MANUAL");
    redis::cmd("BF.RESERVE").arg(&key).arg(ERROR_RATE).arg(DAILY_CAPACITY).arg(window).exec(server)?;
    let (mut random, mut daily, mut taken) = (Random::new(7), Daily::default(), 0);
    let bar = progress(HOURS, "hours");
    for hour in 0..HOURS {
        redis::cmd("BF.ADVANCE").arg(&key).arg(hour).exec(server)?;
        let coming = devices_of_hour(hour, &mut random);
        let answers = ask("BF.MADD", &key, &coming, server)?;
        for (device, is_new) in coming.into_iter().zip(answers) {
            daily.note(device, hour, is_new);
        }
        if hour % 24 == 23 {
            let unknown: Vec<u64> = (0..UNKNOWN_TOKENS).map(|number| (hour << 32) + number).collect();
            let found = ask("BF.MEXISTS", &key, &unknown, server)?.into_iter().filter(|&found| found).count();
            taken = taken.max(found);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    check_days(&key, &daily, taken as u64, server, promises)
}

/// The devices that come in an hour: those whose first hour it is, and some that have come before.
fn devices_of_hour(hour: u64, random: &mut Random) -> Vec<u64> {
    let known_groups = (hour + 1).min(24);
    let mut coming: Vec<u64> = (hour % 24..DAILY_DEVICES).step_by(24).collect();
    for _ in 0..2 * coming.len() {
        let device = 24 * random.below(DAILY_DEVICES / 24) + random.below(known_groups);
        coming.push(device);
    }
    coming
}

fn check_days(
    key: &str,
    daily: &Daily,
    taken: u64,
    server: &mut Connection,
    promises: &mut Promises,
) -> Result<(), Failure> {
    let days = HOURS / 24;
    promises.same(
        &format!("once in 24 hours, {days} days: notified sooner, of {} asked", thousands(daily.asked)),
        0,
        daily.too_early,
    );
    promises.number(
        &format!("once in 24 hours: left out when due, of {}", thousands(daily.due)),
        &mistaken(daily.due),
        daily.left_out as f64,
        format!("; {} notified, {} of them again", thousands(daily.sent), thousands(daily.again)),
    );
    promises.number(
        "once in 24 hours: unknown tokens taken for known, the worst day",
        &Bounds::at_most(100.0 * ERROR_RATE).printed(3, "%"),
        100.0 * taken as f64 / UNKNOWN_TOKENS as f64,
        format!(" of {}; the rate by now: {:.1e}", thousands(UNKNOWN_TOKENS), info(key, "FPR", server)?),
    );
    let size: f64 = info(key, "SIZE", server)?;
    let most = Bounds::at_most((DAILY_BITS * DAILY_CAPACITY / 8) as f64)
        .because(format!("{DAILY_BITS} bits for each of {}", thousands(DAILY_CAPACITY)));
    promises.number("once in 24 hours: bytes of the filter", &most, size, "");
    Ok(())
}

/// The answers about the tokens of devices, in order.
fn ask(command: &str, key: &str, devices: &[u64], server: &mut Connection) -> Result<Vec<bool>, Failure> {
    let mut all = Vec::with_capacity(devices.len());
    for devices in devices.chunks(BATCH * BATCHES_PER_PIPELINE) {
        let mut pipeline = redis::pipe();
        for batch in devices.chunks(BATCH) {
            pipeline.cmd(command).arg(key).arg(batch.iter().map(|&device| token(device)).collect::<Vec<_>>());
        }
        let answers: Vec<Vec<bool>> = pipeline.query(server)?;
        all.extend(answers.into_iter().flatten());
    }
    Ok(all)
}

/// The reply to `BF.INFO` for a single field: an array of one element in RESP2, a map of one pair in RESP3.
fn info(key: &str, field: &str, server: &mut Connection) -> Result<f64, Failure> {
    let value = match redis::cmd("BF.INFO").arg(key).arg(field).query(server)? {
        Value::Map(fields) => fields.into_iter().map(|(_, value)| value).next(),
        Value::Array(values) => values.into_iter().next(),
        _ => None,
    };
    Ok(redis::from_redis_value(value.ok_or("BF.INFO has no such field")?)?)
}

/// The resident memory of the server's process in bytes.
fn resident_bytes(server: &mut Connection) -> Result<f64, Failure> {
    // The server updates this figure ten times a second.
    sleep(Duration::from_millis(300));
    let memory: InfoDict = redis::cmd("INFO").arg("memory").query(server)?;
    memory.get("used_memory_rss").ok_or_else(|| "INFO memory has no used_memory_rss".into())
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
