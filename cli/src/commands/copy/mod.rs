//! `copy`: copies filters and counters from one server to another, in an order in which no data is lost.
//!
//! Before the first key is moved, all keys are examined, and the source is watched for writes. A key is loaded under a
//! temporary name, compared with its source, and only then renamed to its final name. At the end the keys of both
//! servers are compared.

mod end;
mod plan;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::lines;
use crate::output::Output;
use crate::progress;
use crate::server::{
    Access, Arrived, COPIED, Class, Fingerprint, Given, Key, Named, Pause, SMALL_BYTES, Server, Small, Tls, Transfer,
    Writes,
};
use crate::server::{
    beside, check_rights, copy_small, expires_at, fingerprint, is_temporary, named, naming, shown, text, transfer,
};
use plan::{Plan, Planned, Step};
use report::{Moved, Outcome, Report};

/// Time between two checks for writes to the source.
const LOOK: Duration = Duration::from_millis(250);

/// The most items of `--sample` that are looked up.
const MAX_SAMPLE: usize = 10_000;

/// Number of sampled items in one command.
const SAMPLE_BATCH: usize = 500;

/// Arguments of `copy`.
#[derive(Debug, Args)]
pub struct Copy {
    /// The server to copy from: an address like --url of other commands
    source: String,
    /// The server to copy to: an address like --url of other commands
    target: String,

    /// Copy only keys whose names match this pattern, in the syntax of KEYS: user:*
    #[arg(long)]
    pattern: Option<String>,
    /// Show what would be copied, and copy nothing
    #[arg(long)]
    dry_run: bool,
    /// Replace existing keys of the target that have another value or time to live
    #[arg(long)]
    replace: bool,
    /// Copy the keys that can be copied, even if others are rejected
    #[arg(long)]
    skip_rejected: bool,
    /// Copy the keys without their times to live
    #[arg(long)]
    no_ttl: bool,
    /// Pause the clients that write to the source while copying (CLIENT PAUSE), and resume them at the end
    #[arg(long, conflicts_with = "while_written")]
    pause: bool,
    /// Copy even while clients write to the source; keys that changed meanwhile are reported
    #[arg(long)]
    while_written: bool,
    /// The number of seconds without a write to the source to wait for before the first key is copied
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    watch: f64,
    /// After the copy, ask both servers whether each key contains the items of this file, one item per line
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,

    /// The source is a node of a cluster: copy from all its nodes
    #[arg(long)]
    source_cluster: bool,
    /// The target is a node of a cluster: copy to all its nodes
    #[arg(long)]
    target_cluster: bool,
    /// The source's password, if its URL has none
    #[arg(long, env = "ROLLCALL_PASSWORD", hide_env_values = true)]
    source_password: Option<String>,
    /// The target's password, if its URL has none
    #[arg(long, env = "ROLLCALL_TARGET_PASSWORD", hide_env_values = true)]
    target_password: Option<String>,
    #[command(flatten)]
    tls: Tls,
}

/// The names of the source's arguments.
const SOURCE: Given =
    Given { url: Some("the argument SOURCE"), password: "ROLLCALL_PASSWORD", cluster: "--source-cluster" };

/// The names of the target's arguments.
const TARGET: Given =
    Given { url: Some("the argument TARGET"), password: "ROLLCALL_TARGET_PASSWORD", cluster: "--target-cluster" };

/// Number of keys in one batch. The small values of a batch are moved together.
const SMALL_BATCH: usize = 100;

/// The reason for rejecting a key that appeared in the target after all keys were examined.
const TAKEN: &str = "the target has such a key by now";

/// The outcome of a key, a note, and the fingerprint of its value if it was moved.
type Copied = (Outcome, String, Option<Fingerprint>);

/// The state that the steps of a copy share.
struct Copying<'a> {
    arguments: &'a Copy,
    source: Server,
    target: Server,
    interrupt: Interrupt,
    pause: Option<Pause>,
    sample: Vec<Vec<u8>>,
    /// The number of calls of each writing command on the source, read before its keys were scanned.
    before: Writes,
    looked: Instant,
    report: Report,
}

impl Copy {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let connect = |url: &str, password: &Option<String>, cluster, given| {
            let access = Access { password: password.clone(), cluster, tls: self.tls.clone(), given };
            Server::connect(url, &access.of(url, &[&self.source, &self.target]))
        };
        let interrupt = Interrupt::listen()?;
        let sample = match &self.sample {
            Some(path) => lines::read(path)?.take(MAX_SAMPLE).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let mut source = connect(&self.source, &self.source_password, self.source_cluster, SOURCE)?;
        let mut target = connect(&self.target, &self.target_password, self.target_cluster, TARGET)?;
        source.check_whole()?;
        target.check_whole()?;
        if run_id(&mut source)? == run_id(&mut target)? {
            return Err(Failure::new("source and target are the same server")
                .advise("COPY key new-key DB n copies a key within a server"));
        }
        // Steps that may fail for lack of permissions run before the pause.
        let before = Writes::new(&mut source)?;
        if !self.dry_run {
            check_rights(&mut target, COPIED.as_bytes())?;
        }
        let pause = if self.pause { Some(Pause::begin(&mut source)?) } else { None };
        let (looked, report) = (Instant::now(), Report::default());
        let mut copying =
            Copying { arguments: &self, source, target, interrupt, pause, sample, before, looked, report };
        let result = copying.run();
        let released = match &copying.pause {
            Some(_) => Pause::release(&mut copying.source)
                .map_err(|failure| failure.advise("its writers go on by themselves within 30 seconds")),
            None => Ok(()),
        };
        // The report is empty if the copy ended before all keys were examined.
        let reported = match copying.report.moves.is_empty() {
            true => Ok(()),
            false => output.answer(&copying.report, Report::text),
        };
        result.map_err(go_on).and(released).and(reported).and(copying.report.verdict(self.while_written))
    }
}

impl Copying<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        self.report.dry_run = self.arguments.dry_run;
        // Writes before the pause do not matter, so counting starts again after it has begun.
        self.before = Writes::new(&mut self.source)?;
        self.looked = Instant::now();
        let keys = self.source.scan(self.arguments.pattern.as_deref())?;
        let keys: Vec<Key> = keys.into_iter().filter(|key| !is_temporary(&key.name)).collect();
        let plan = self.plan(keys, self.arguments.replace)?;
        let (rejected, bytes) = (plan.rejected(), plan.bytes());
        self.report.moves = plan.steps.iter().map(planned).collect();
        if plan.steps.is_empty() {
            let matching = self.arguments.pattern.as_ref().map(|pattern| format!(" that matches {pattern}"));
            return Err(Failure::nothing(format!(
                "the source has no filter or counter{}",
                matching.unwrap_or_default()
            ))
            .advise("are the URL, its database and the pattern right? rollcall top lists what a server has"));
        }
        if self.arguments.dry_run || rejected > 0 && !self.arguments.skip_rejected {
            if rejected > 0 && !self.arguments.dry_run {
                return Err(Failure::new(format!("{rejected} keys cannot be moved, so none was"))
                    .advise("move the others with --skip-rejected, or leave these out with --pattern"));
            }
            return Ok(());
        }
        self.watch()?;
        let bar = progress::bar(Some(bytes), "bytes");
        for (number, batch) in plan.steps.chunks(SMALL_BATCH).enumerate() {
            let first = number * SMALL_BATCH;
            // Keys that were copied together are reported even if a later key fails.
            for (at, copied) in self.copy_batch(batch)?.into_iter().enumerate() {
                copied.into_iter().for_each(|copied| self.record(first + at, copied));
            }
            for (at, Planned { key, bytes, .. }) in batch.iter().enumerate() {
                self.look()?;
                let done = bar.position();
                if self.report.moves[first + at].outcome == Outcome::Planned {
                    let copied = self.copy(key, |more| bar.inc(more))?;
                    self.record(first + at, copied);
                }
                bar.set_position(done + bytes);
            }
        }
        bar.finish_and_clear();
        self.compare()
    }

    /// Examines keys of the source on both servers.
    fn plan(&mut self, keys: Vec<Key>, replace: bool) -> Result<Plan, Failure> {
        let (interrupt, pause) = (&self.interrupt, &mut self.pause);
        let (both, times) = ((&mut self.source, &mut self.target), replace && !self.arguments.no_ttl);
        Plan::new(both, keys, replace, times, &mut |source| keep(interrupt, pause, source))
    }

    /// Records the outcome of the key at index `at`.
    fn record(&mut self, at: usize, copied: Copied) {
        let row = &mut self.report.moves[at];
        (row.outcome, row.note, row.fingerprint) = copied;
    }

    /// Waits until the source has had no writes for `--watch` seconds, and fails at the first write.
    fn watch(&mut self) -> Result<(), Failure> {
        let seconds = if self.pause.is_some() || self.arguments.while_written { 0.0 } else { self.arguments.watch };
        let wait = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::arguments(format!("--watch takes seconds, 0 or more, got {seconds}")))?;
        while self.looked.elapsed() < wait {
            self.interrupt.check()?;
            self.check_writers()?;
            std::thread::sleep(LOOK.min(wait));
        }
        self.check_writers()
    }

    /// Fails if a signal asks to stop, or if the source was written to. Renews the pause of writes when it is due.
    fn look(&mut self) -> Result<(), Failure> {
        keep(&self.interrupt, &mut self.pause, &mut self.source)?;
        if self.looked.elapsed() > LOOK {
            self.check_writers()?;
            self.looked = Instant::now();
        }
        Ok(())
    }

    /// Fails if clients wrote to the source, unless `--while-written` allows that.
    fn check_writers(&mut self) -> Result<(), Failure> {
        if self.arguments.while_written {
            return Ok(());
        }
        let now = Writes::new(&mut self.source)?;
        if now.nodes != self.before.nodes {
            return Err(Failure::new("the source got or lost a primary since the copy began")
                .advise("run the same again: what is equal by now is skipped"));
        }
        if now.own == self.before.own {
            return Ok(());
        }
        let calls = now.since(&self.before);
        Err(Failure::new(format!("the source is written to: {calls} since the copy began")).advise(
            "stop its writers, or let the source reject them (CONFIG SET min-replicas-to-write 100), then run the same \
             again: what is equal by now is skipped. --pause holds them back; --while-written copies nevertheless, and \
             names the keys that may lack items",
        ))
    }

    /// Moves the small values of a batch together, and returns the outcome of each key. The outcome is `None` for a key
    /// that is not to be moved, or that has to be moved on its own.
    fn copy_batch(&mut self, steps: &[Planned]) -> Result<Vec<Option<Copied>>, Failure> {
        self.look()?;
        let mut outcomes: Vec<Option<Copied>> = vec![None; steps.len()];
        let (mut at, mut smalls) = (Vec::new(), Vec::new());
        for (index, Planned { key, bytes, step, .. }) in steps.iter().enumerate() {
            let is_small = *step == Step::Move && *bytes > 0 && *bytes <= SMALL_BYTES;
            // With `--sample` every key is moved on its own, since the items are looked up key by key.
            if let (true, true, Some(temporary)) = (is_small, self.sample.is_empty(), beside(COPIED, &key.name)) {
                at.push(index);
                smalls.push(Small { key: &key.name, class: key.class, temporary });
            }
        }
        let both = (&mut self.source, &mut self.target);
        let arrived = copy_small(both, &smalls, !self.arguments.no_ttl, self.arguments.replace)?;
        for (at, arrived) in at.into_iter().zip(arrived) {
            outcomes[at] = match arrived {
                Arrived::Named(print) => Some((Outcome::Moved, String::new(), Some(print))),
                Arrived::Taken => Some((Outcome::Rejected, TAKEN.to_owned(), None)),
                Arrived::Alone => None,
            };
        }
        Ok(outcomes)
    }

    /// Moves one key. If the key is not moved, its partially loaded value is deleted.
    fn copy(&mut self, key: &Key, moved: impl FnMut(u64)) -> Result<Copied, Failure> {
        let plain = || [COPIED.as_bytes(), &key.name].concat();
        let temporary = match beside(COPIED, &key.name) {
            Some(name) => name,
            None if self.target.num_nodes() == 1 => plain(),
            None => {
                return Ok((
                    Outcome::Rejected,
                    "no temporary name is possible in its hash slot: move it manually".into(),
                    None,
                ));
            }
        };
        let copied = self.copy_as(key, &temporary, moved);
        if !matches!(copied, Ok((Outcome::Moved, ..))) {
            // If the connection to the target is lost, the time to live of the temporary key deletes it later.
            let removed = self.target.ask(&temporary, redis::cmd("UNLINK").arg(&temporary));
            copied.as_ref().map_or(Ok(()), |_| removed.map(drop))?;
        }
        copied
    }

    /// Moves one key: loads it as `temporary`, compares it with its source, and renames it.
    fn copy_as(&mut self, key: &Key, temporary: &[u8], mut moved: impl FnMut(u64)) -> Result<Copied, Failure> {
        let (source, target) = (&mut self.source, &mut self.target);
        let (interrupt, pause) = (&self.interrupt, &mut self.pause);
        let count = source.ask(&key.name, key.class.count().arg(&key.name))?;
        let sent = transfer((source, target), key.class, &key.name, temporary, |bytes| {
            moved(bytes);
            interrupt.check()
        })?;
        keep(interrupt, pause, source)?;
        let print = match sent {
            Transfer::Done(print) => print,
            Transfer::Gone => return Ok((Outcome::Gone, String::new(), None)),
            Transfer::Unsteady(text) => {
                let text = if text.is_empty() { "changed while it was read".to_owned() } else { text };
                return Ok((Outcome::Rejected, text, None));
            }
        };
        let expires_at = expires_at(source, &key.name)?.filter(|_| !self.arguments.no_ttl);
        if let Some(difference) = self.difference(key, temporary, count, print)? {
            return Ok((Outcome::Differs, difference, None));
        }
        let commands = naming(temporary, &key.name, expires_at, self.arguments.replace);
        let answers = self.target.ask_all(&commands.map(|command| (temporary, command)))?;
        match named(&answers) {
            Ok(Named::Taken) => Ok((Outcome::Rejected, TAKEN.to_owned(), None)),
            Ok(Named::Yes) => Ok((Outcome::Moved, String::new(), Some(print))),
            Ok(Named::Gone) => Ok((Outcome::Gone, String::new(), None)),
            Err(text) => Err(self.target.rejected(&key.name, "RENAME", &text)),
        }
    }

    /// Describes the first difference between the source's value and the loaded one; `None` if they are equal.
    fn difference(
        &mut self,
        key: &Key,
        temporary: &[u8],
        count: Result<redis::Value, String>,
        print: Fingerprint,
    ) -> Result<Option<String>, Failure> {
        let arrived = fingerprint(&mut self.target, key.class, temporary)?;
        if arrived != Some(print) {
            // The window may have moved on between the two dumps, so the source is read once more.
            let again = fingerprint(&mut self.source, key.class, &key.name)?;
            if again != arrived {
                return Ok(Some("what arrived has other bytes".into()));
            }
        }
        let counted = self.target.ask(temporary, key.class.count().arg(temporary))?;
        if let (Ok(one), Ok(other)) = (&count, &counted)
            && one != other
            && self.source.ask(&key.name, key.class.count().arg(&key.name))? != counted
        {
            return Ok(Some(format!("counts differ: {one:?} and {other:?}")));
        }
        for items in self.sample.chunks(SAMPLE_BATCH) {
            let ask = |name: &[u8]| key.class.command("MEXISTS").arg(name).arg(items).to_owned();
            let one = self.source.ask(&key.name, &ask(&key.name))?;
            let other = self.target.ask(temporary, &ask(temporary))?;
            if let (Ok(one), Ok(other)) = (one, other)
                && one != other
            {
                return Ok(Some("sampled items are answered differently".into()));
            }
        }
        Ok(None)
    }
}

/// Fails if a signal asks to stop. Renews the pause of writes when it is due.
fn keep(interrupt: &Interrupt, pause: &mut Option<Pause>, source: &mut Server) -> Result<(), Failure> {
    interrupt.check()?;
    match pause {
        Some(pause) => pause.keep(source),
        None => Ok(()),
    }
}

/// The report's row for a key before it is moved.
fn planned(Planned { key, bytes, expires_at, step }: &Planned) -> Moved {
    let (outcome, note) = match step {
        Step::Move => (Outcome::Planned, String::new()),
        Step::Equal => (Outcome::Equal, String::new()),
        Step::Reject(reason) => (Outcome::Rejected, reason.clone()),
    };
    Moved {
        key: shown(&key.name),
        kind: noun(key.class),
        bytes: *bytes,
        outcome,
        note,
        name: key.name.clone(),
        class: key.class,
        expires_at: *expires_at,
        fingerprint: None,
    }
}

/// The failure of a copy that stopped early, with advice on how to continue.
fn go_on(failure: Failure) -> Failure {
    match failure.is_interruption() {
        true => failure.advise("what was moved stays: run the same again, and what is equal by now is skipped"),
        false => failure,
    }
}

fn noun(class: Class) -> &'static str {
    match class {
        Class::Classic => "filter (classic)",
        Class::Filter => "filter",
        Class::Counter => "counter",
    }
}

fn run_id(server: &mut Server) -> Result<String, Failure> {
    let info = text(&server.call_node(0, redis::cmd("INFO").arg("server"))?).unwrap_or_default();
    Ok(info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or_default().trim().to_owned())
}
