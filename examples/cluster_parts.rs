//! Shows one logical filter and one logical counter over all nodes of a cluster.
//!
//! Several threads add lists of tokens, which are sent as one command per part, and look them up again. Slots may move
//! between nodes meanwhile. In the end no token is missing, the filter has the false positive rate of a filter on a
//! single node, and the counter is within its combined standard error.
//!
//! - [`Partitioned`] routes items to parts and splits lists.
//! - [`cluster`] sends each share to its node, and follows moving slots.
//!
//! `ROLLCALL_URL` is any node of the cluster; `cargo with-server --primaries 3 COMMAND` starts one. `TOKENS`, `PARTS`,
//! `THREADS` and `BATCH` set the number of tokens, parts, threads, and tokens per list.

mod cluster;
mod demo;

use std::env;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use cluster::partition::Partitioned;
use cluster::{ClusterCounter, ClusterFilter};
use demo::{Bounds, Failure, Promises, thousands};
use redis::cluster::ClusterClient;
use rollcall_core::bloom::{Params, sizing};

const ERROR_RATE: f64 = 0.001;
/// The bytes of a filter for each token at this rate, rounded up.
const BYTES_A_TOKEN: u64 = 2;
/// The number of nodes for which `PARTS` is chosen.
const NODES: u32 = 3;
/// The standard error of each part of the counter.
const PART_ERROR: f64 = 0.02;
/// Number of standard errors by which a measured number may differ from the expected one.
const SIGMAS: f64 = 4.0;

/// The numbers of tokens, parts and threads, from environment variables such as `TOKENS`.
#[derive(Clone, Copy)]
struct Size {
    tokens: u64,
    parts: u32,
    threads: u64,
    batch: u64,
}

fn main() -> ExitCode {
    let mut promises = Promises::default();
    if let Err(failure) = size().and_then(|size| run(size, &mut promises)) {
        eprintln!("{failure}");
        return ExitCode::FAILURE;
    }
    promises.print()
}

fn size() -> Result<Size, Failure> {
    let number = |name: &str, default: u64| match env::var(name) {
        Ok(text) => {
            text.parse().ok().filter(|&n| n > 0).ok_or(format!("{name} is {text:?}, expected a number above 0"))
        }
        Err(_) => Ok(default),
    };
    let tokens = number("TOKENS", 1_000_000)?;
    let parts = number("PARTS", Partitioned::suggested_parts(tokens * BYTES_A_TOKEN, NODES).into())?;
    Ok(Size {
        tokens,
        parts: parts.try_into().map_err(|_| format!("PARTS is {parts}, too many"))?,
        threads: number("THREADS", 2)?,
        batch: number("BATCH", 1000)?,
    })
}

fn url() -> String {
    env::var("ROLLCALL_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379/".to_owned())
}

fn token(number: u64) -> String {
    format!("token:{number:012}")
}

fn run(size: Size, promises: &mut Promises) -> Result<(), Failure> {
    let name = |kind: &str| format!("rollcall-demo:{kind}:{}", std::process::id());
    let (seen, users) = (Partitioned::new(name("seen"), size.parts)?, Partitioned::new(name("users"), size.parts)?);
    let no_cluster = |error| format!("no cluster at {}: {error}\ncargo with-server --primaries 3 starts one.", url());
    let mut cluster = ClusterClient::new([url()]).and_then(|client| client.get_connection()).map_err(no_cluster)?;
    let filter = || Ok::<_, Failure>(ClusterFilter::connect(&url(), seen.clone())?);
    let counter = || Ok::<_, Failure>(ClusterCounter::connect(&url(), users.clone())?);
    filter()?.reserve(ERROR_RATE, size.tokens)?;
    counter()?.reserve(PART_ERROR)?;
    let measured = measure(size, promises, &filter, &counter);
    for key in seen.keys().chain(users.keys()) {
        redis::cmd("UNLINK").arg(key).exec(&mut cluster)?;
    }
    measured
}

fn measure(
    size: Size,
    promises: &mut Promises,
    filter: &(impl Fn() -> Result<ClusterFilter, Failure> + Sync),
    counter: &(impl Fn() -> Result<ClusterCounter, Failure> + Sync),
) -> Result<(), Failure> {
    let known = 0..size.tokens;
    let strangers = 1 << 40..(1 << 40) + size.tokens;
    let tokens = thousands(size.tokens);
    let ask = |range| {
        over_lists(size, range, || {
            let mut filter = filter()?;
            Ok(move |tokens: &[String]| Ok(count(&filter.may_contain(tokens)?)))
        })
    };
    let (new, took) = over_lists(size, known.clone(), || {
        let mut filter = filter()?;
        Ok(move |tokens: &[String]| Ok(count(&filter.add(tokens)?)))
    })?;
    promises.report("filter: tokens added a second", rate(size.tokens, took));
    let (found, took) = ask(known.clone())?;
    promises.report("filter: tokens asked for a second, all known", rate(size.tokens, took));
    promises.same(&format!("filter: missing, of {tokens}"), 0, size.tokens - found);
    promises.same("filter: BF.CARD of all parts, as many as were new", new, filter()?.card()?);
    let (taken, took) = ask(strangers)?;
    promises.report("filter: tokens asked for a second, none known", rate(size.tokens, took));
    rates(size, taken, new, promises)?;

    let (_, took) = over_lists(size, known, || {
        let mut counter = counter()?;
        Ok(move |tokens: &[String]| counter.add(tokens).map(|()| 0))
    })?;
    promises.report("counter: tokens added a second", rate(size.tokens, took));
    let (counted, error) = counter()?.estimate()?;
    let each = format!("{:.2}%", 100.0 * error / size.tokens as f64);
    promises.number("counter: members", &Bounds::around(size.tokens as f64, SIGMAS, error, each), counted as f64, "");
    Ok(())
}

/// Compares false positive rates with theory: of unknown tokens in the full filter, and of new tokens while the filter
/// was filled.
fn rates(size: Size, taken: u64, new: u64, promises: &mut Promises) -> Result<(), Failure> {
    // The capacity of a part, as `reserve` computes it.
    let capacity = Partitioned::new("", size.parts)?.capacity_of_part(size.tokens)?;
    let params = Params { error_rate: ERROR_RATE, capacity, expansion: 2, seed: 0 };
    let geometry = sizing::sub_filter_geometry(&params, 0)?;
    let trials = size.tokens as f64;
    let predicted = sizing::false_positive_rate(&geometry, trials / f64::from(size.parts));
    // The standard error has two parts: chance in the trials, and differences between filters, measured in
    // benches/accuracy.
    let of_filters = predicted * 0.037 * (10.0 / 6.0) * (1000.0 / trials).sqrt();
    let error = (predicted / trials).sqrt().hypot(of_filters);
    let (theory, off) = (100.0 * predicted, 100.0 * SIGMAS * error);
    let bounds = Bounds::between(theory - off, theory + off)
        .printed(4, "%")
        .because(format!("{SIGMAS} standard errors around {theory:.4}%"));
    promises.number("filter: strangers taken for known", &bounds, 100.0 * taken as f64 / trials, "");
    let bounds = Bounds::at_most(theory).printed(4, "%");
    promises.number("filter: new tokens taken for known", &bounds, 100.0 * (1.0 - new as f64 / trials), "");
    Ok(())
}

/// Runs the workers of all threads on lists of the tokens in a range. Returns the sum of the results for all lists, and
/// the time in seconds.
fn over_lists<W>(
    size: Size,
    range: Range<u64>,
    worker: impl Fn() -> Result<W, Failure> + Sync,
) -> Result<(u64, f64), Failure>
where
    W: FnMut(&[String]) -> Result<u64, Failure>,
{
    let work = |thread: u64| {
        let mut work = worker().map_err(|failure| failure.to_string())?;
        let mut sum = 0;
        let starts = (range.start + thread * size.batch..range.end).step_by((size.threads * size.batch) as usize);
        for start in starts {
            let tokens: Vec<String> = (start..range.end.min(start + size.batch)).map(token).collect();
            sum += work(&tokens).map_err(|failure| failure.to_string())?;
        }
        Ok::<u64, String>(sum)
    };
    let begin = Instant::now();
    let sum = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..size.threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())));
        ends.sum::<Result<u64, String>>()
    })?;
    Ok((sum, begin.elapsed().as_secs_f64()))
}

fn count(answers: &[bool]) -> u64 {
    answers.iter().filter(|&&answer| answer).count() as u64
}

fn rate(tokens: u64, seconds: f64) -> String {
    thousands((tokens as f64 / seconds) as u64)
}
