//! Contact limit: how many different people has a customer written to in this billing cycle, and would this list
//! exceed the limit?
//!
//! An e-mail service's plans limit the unique contacts of a billing cycle. Customers upload lists that overlap, and
//! ask before each upload whether it fits. One Bloom filter per customer does both, in two bytes per contact. It errs
//! only in the customer's favour: a new contact may be taken for a known one, at most at the error rate.
//!
//! - `BF.ADMIT key LIMIT limit ALL CAPACITY limit ERROR 0.001 EXAT end ITEMS contact ...` admits a list completely or
//!   not at all. The command is atomic, so uploads in parallel need no lock. The reply has 1 for a new contact, 0 for
//!   a known one, and -1 for a rejected one. The first list of a cycle creates the key, which expires at the end of
//!   the cycle.
//! - With `DRYRUN`, the command answers whether the list would be admitted, and changes nothing.
//! - `BF.SCANDUMP` downloads the filter, and the core library (`rollcall-core`) answers the same question in the
//!   application's own process. So no list is sent to the server.
//!
//! The contacts are e-mail addresses made of words from Debian's word lists in /usr/share/dict.

mod demo;

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use demo::{Bounds, Failure, Promises, memory_usage, print_table, progress, thousands};
use redis::Connection;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::persist;
use rollcall_core::size_limit::MaxBytes;
use rollcall_fuzz::random::Random;

const PREFIX: &str = "rollcall-demo:contacts:";
const ERROR_RATE: f64 = 0.001;
const CYCLE_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Number of lists that each customer uploads.
const LISTS: u64 = 24;

/// The customers: a name, the number of contacts that the plan allows, and the approximate number of contacts per list.
const CUSTOMERS: [(&str, u64, u64); 3] = [("club", 500, 90), ("shop", 10_000, 1_500), ("newsletter", 100_000, 12_000)];

fn main() -> ExitCode {
    demo::run(PREFIX, |server, promises| {
        let addresses = addresses()?;
        println!(
            "Lists from {} addresses, each asked about before it is handed in\n",
            thousands(addresses.len() as u64)
        );
        let bar = progress(CUSTOMERS.len() as u64 * LISTS, "lists");
        let mut customers = Vec::new();
        for (name, limit, list_len) in CUSTOMERS {
            let mut customer = Customer::begin_cycle(name, limit)?;
            let mut random = Random::new(limit);
            for _ in 0..LISTS {
                customer.upload(&list(&addresses, list_len, &mut random), server)?;
                bar.inc(1);
            }
            customers.push(customer);
        }
        bar.finish_and_clear();
        print_customers(&customers, server)?;
        check(&customers, server, promises)
    })
}

/// A customer in a billing cycle, and the measurements.
#[derive(Default)]
struct Customer<'a> {
    name: &'static str,
    key: String,
    limit: u64,
    /// The contacts that the customer has really written to.
    truth: HashSet<&'a str>,
    taken: u64,
    declined: u64,
    /// Number of lists for which the result differed from the answer to the preceding DRYRUN.
    surprises: u64,
    /// Number of lists for which the in-process copy answered differently from the server.
    differences: u64,
    /// Number of lists with a wrong decision that the error rate does not explain.
    mistakes: u64,
    /// Number of contacts in all lists.
    asked: u64,
    /// The end of the cycle in Unix seconds.
    end: u64,
    dry_run_time: Duration,
    admit_time: Duration,
    download_time: Duration,
    copy_time: Duration,
}

impl<'a> Customer<'a> {
    fn begin_cycle(name: &'static str, limit: u64) -> Result<Self, Failure> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        Ok(Customer { name, key: format!("{PREFIX}{name}"), limit, end: now + CYCLE_SECONDS, ..Customer::default() })
    }

    /// Admits a list if all its new contacts fit. With `dry_run`, only returns whether the list would be admitted.
    fn admit(&self, list: &[&str], dry_run: bool, server: &mut Connection) -> Result<Answer, Failure> {
        let mut admit = redis::cmd("BF.ADMIT");
        admit.arg(&self.key).arg("LIMIT").arg(self.limit).arg("ALL");
        if dry_run {
            admit.arg("DRYRUN");
        }
        admit.arg("CAPACITY").arg(self.limit).arg("ERROR").arg(ERROR_RATE).arg("EXAT").arg(self.end);
        let reported: Vec<i64> = admit.arg("ITEMS").arg(list).query(server)?;
        let known = reported.iter().map(|&reported| reported == KNOWN).collect();
        Ok(Answer { is_taken: !reported.contains(&REJECTED), known })
    }

    /// Asks the server and a downloaded copy whether the list would be admitted, and then uploads it.
    fn upload(&mut self, list: &[&'a str], server: &mut Connection) -> Result<(), Failure> {
        let (answer, took) = timed(|| self.admit(list, true, server));
        let answer = answer?;
        self.dry_run_time += took;
        // There is nothing to download before the first list.
        if self.taken > 0 {
            let (copy, took) = timed(|| download(&self.key, server));
            let copy = copy?;
            self.download_time += took;
            let (copy_answer, took) = timed(|| ask_copy(&copy, self.limit, list));
            self.copy_time += took;
            self.differences += u64::from(answer != copy_answer);
        }
        let (done, took) = timed(|| self.admit(list, false, server));
        let done = done?;
        self.admit_time += took;
        self.surprises += u64::from(done.is_taken != answer.is_taken);
        self.asked += list.len() as u64;

        let truth = self.truth.union(&list.iter().copied().collect()).count() as u64;
        let mistaken = if done.is_taken { truth > self.limit + uncertain(truth) } else { truth <= self.limit };
        self.mistakes += u64::from(mistaken);
        if done.is_taken {
            self.taken += 1;
            self.truth.extend(list);
        } else {
            self.declined += 1;
        }
        Ok(())
    }
}

/// Replies of `BF.ADMIT` for a contact that is already in the filter, and for one that is rejected.
const KNOWN: i64 = 0;
const REJECTED: i64 = -1;

/// The answer about a list.
#[derive(PartialEq)]
struct Answer {
    is_taken: bool,
    /// For each contact on the list, whether it is known.
    known: Vec<bool>,
}

/// Looks up a list in the downloaded copy.
fn ask_copy(filter: &BloomFilter, limit: u64, list: &[&str]) -> Answer {
    let mut known = Vec::with_capacity(list.len());
    filter.may_contain_all(list.iter().map(|contact| contact.as_bytes()), |is_there| known.push(is_there));
    let new = known.iter().filter(|&&known| !known).count() as u64;
    Answer { is_taken: filter.num_items() + new <= limit, known }
}

/// Downloads the server's filter. All chunks must come from one state of the filter. Otherwise a checksum is wrong, and
/// the filter has to be downloaded again.
fn download(key: &str, server: &mut Connection) -> Result<BloomFilter, Failure> {
    let mut chunks: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut iterator = 0;
    loop {
        let (next, chunk): (u64, Vec<u8>) = redis::cmd("BF.SCANDUMP").arg(key).arg(iterator).query(server)?;
        if next == 0 {
            return Ok(persist::load::<BloomFilter, _>(chunks, &MaxBytes(1 << 30))?);
        }
        chunks.push((next, chunk));
        iterator = next;
    }
}

/// A list to upload, without repeated contacts.
fn list<'a>(addresses: &'a [String], about: u64, random: &mut Random) -> Vec<&'a str> {
    // The list comes from a range of addresses, so that a customer's lists overlap.
    let stretch = (12 * about).min(addresses.len() as u64);
    let len = about / 2 + random.below(about);
    let mut contacts: Vec<&str> = (0..len).map(|_| addresses[random.below(stretch) as usize].as_str()).collect();
    contacts.sort_unstable();
    contacts.dedup();
    contacts
}

/// E-mail addresses, one for each word of the largest installed word list.
fn addresses() -> Result<Vec<String>, Failure> {
    let files = std::fs::read_dir("/usr/share/dict").into_iter().flatten().flatten().map(|entry| entry.path());
    let size = |path: &std::path::PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let largest = files.filter(|path| !path.to_string_lossy().contains("README")).max_by_key(size);
    let words = largest.map(std::fs::read).transpose()?.unwrap_or_default();
    let words = String::from_utf8_lossy(&words).to_lowercase();
    let plain = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let words: HashSet<&str> = words.lines().filter(plain).collect();
    if words.len() < 50_000 {
        return Err(
            "no word list in /usr/share/dict with 50,000 words; on Debian: apt-get install wamerican-huge".into()
        );
    }
    let mut addresses: Vec<String> = words.into_iter().map(|word| format!("{word}@example.org")).collect();
    // The order is the same in every run, and is not alphabetical.
    let order = BuildHasherDefault::<DefaultHasher>::default();
    addresses.sort_by_cached_key(|address| order.hash_one(address));
    Ok(addresses)
}

fn print_customers(customers: &[Customer], server: &mut Connection) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for customer in customers {
        let (card, days) = (card(customer, server)?, ttl(customer, server)? as f64 / 86_400.0);
        let bytes = memory_usage(&customer.key, server)?;
        let truth = customer.truth.len() as u64;
        let numbers = [customer.limit, customer.taken, customer.declined, truth, card, bytes].map(thousands);
        let name = customer.name.to_owned();
        rows.push([name].into_iter().chain(numbers).chain([format!("{days:.1}d")]).collect());
    }
    print_table(&["", "limit", "taken", "declined", "contacts", "BF.CARD", "bytes", "expires in"], &rows);
    Ok(())
}

fn check(customers: &[Customer], server: &mut Connection, promises: &mut Promises) -> Result<(), Failure> {
    for customer in customers {
        let truth = customer.truth.len() as u64;
        let card = card(customer, server)?;
        let bounds = Bounds::between((truth - uncertain(truth)) as f64, truth.min(customer.limit) as f64)
            .because(format!("{}% may be missed", 100.0 * ERROR_RATE));
        promises.number(&format!("{}: contacts counted", customer.name), &bounds, card as f64, "");
    }
    let all = |count: fn(&Customer) -> u64| customers.iter().map(count).sum::<u64>();
    let lists = all(|customer| customer.taken + customer.declined);
    let differences = all(|customer| customer.differences);
    let of_all = |same: u64| format!("{same} of {lists} lists");
    let surprises = all(|customer| customer.surprises);
    promises.same("DRYRUN says what the call then does", of_all(lists), of_all(lists - surprises));
    promises.same("server and copy give the same answers", of_all(lists), of_all(lists - differences));
    let mistakes = all(|customer| customer.mistakes);
    promises.same(&format!("lists decided wrongly by over {}%", 100.0 * ERROR_RATE), 0, mistakes);
    let expire = customers.iter().map(|customer| ttl(customer, server)).collect::<Result<Vec<_>, _>>()?;
    let in_cycle = expire.iter().filter(|seconds| (1..=CYCLE_SECONDS as i64).contains(*seconds)).count();
    promises.same("filters that end with the cycle", customers.len(), in_cycle);
    for customer in customers {
        let each = |time: Duration| time.as_secs_f64() * 1e6 / LISTS as f64;
        promises.report(
            &format!("{}: a list of {}", customer.name, thousands(customer.asked / LISTS)),
            format!(
                "DRYRUN {:.0} us, BF.ADMIT {:.0} us; copy {:.0} us, after {:.0} us to download it",
                each(customer.dry_run_time),
                each(customer.admit_time),
                each(customer.copy_time),
                each(customer.download_time)
            ),
        );
    }
    Ok(())
}

/// The number of new contacts among `contacts` that the filter may take for known ones.
fn uncertain(contacts: u64) -> u64 {
    (ERROR_RATE * contacts as f64).ceil() as u64
}

fn timed<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    (action(), start.elapsed())
}

fn card(customer: &Customer, server: &mut Connection) -> Result<u64, Failure> {
    Ok(redis::cmd("BF.CARD").arg(&customer.key).query(server)?)
}

fn ttl(customer: &Customer, server: &mut Connection) -> Result<i64, Failure> {
    Ok(redis::cmd("TTL").arg(&customer.key).query(server)?)
}
