//! A client that writes to keys of every shape, and remembers what was acknowledged.

use crate::check::{Tally, check};
use crate::key::{Command, Key, Outcome, Step};
use crate::line::Line;
use crate::run::Run;
use crate::shapes::{EXPIRING, SHAPES};
use rollcall_fuzz::random::Random;

/// The amount that a writer sends at once.
#[derive(Clone, Copy)]
pub struct Load {
    /// The largest number of commands in a pipeline.
    pub commands: u64,
    /// The largest number of items in a command.
    pub items: u64,
    /// Divisor of the number of items per key. Keys with fewer items are checked and replaced sooner.
    pub share: u64,
    /// Whether some keys expire.
    pub expires: bool,
}

pub struct Writer {
    name: String,
    random: Random,
    load: Load,
    generation: u64,
    pub keys: Vec<Key>,
}

impl Writer {
    pub fn new(run: &Run, number: u64, load: Load) -> Writer {
        let name = format!("w{number}");
        let random = Random::new(run.seed.wrapping_mul(1_000_003).wrapping_add(number));
        let shapes = SHAPES.iter().chain(EXPIRING.iter().filter(|_| load.expires));
        let keys = shapes.map(|shape| Key::new(shape, &name, 0, load.share)).collect();
        Writer { name, random, load, generation: 0, keys }
    }

    /// Sends one pipeline of commands to different keys.
    pub fn round(&mut self, line: &mut dyn Line, run: &Run, tally: &Tally) {
        // If the lock is poisoned, the run has already failed.
        let Ok(_in_flight) = run.gate.read() else { return };
        let most = 1 + self.random.below(self.load.commands);
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..most {
            let at = self.random.below(self.keys.len());
            if !chosen.contains(&at) {
                chosen.push(at);
            }
        }
        for at in &chosen {
            let key = &mut self.keys[*at];
            if key.pending.is_none() && key.is_full() && !key.shape.is_shared {
                // A full key is checked once more before it is deleted.
                check(line, run, &[key], Some(tally));
                if !line.is_up() {
                    return;
                }
                key.pending = Some(Step::Delete);
            }
            key.plan(&mut self.random, self.load.items);
        }
        self.send(line, run, &chosen);
    }

    /// Repeats pending commands until all of them are acknowledged.
    pub fn settle(&mut self, line: &mut dyn Line, run: &Run) {
        let all: Vec<usize> = (0..self.keys.len()).collect();
        while self.keys.iter().any(|key| key.pending.is_some()) && line.is_up() {
            self.send(line, run, &all);
        }
    }

    fn send(&mut self, line: &mut dyn Line, run: &Run, chosen: &[usize]) {
        let mut commands: Vec<(String, Command)> = Vec::new();
        let mut senders: Vec<usize> = Vec::new();
        for at in chosen {
            let key = &mut self.keys[*at];
            if let Some(asked) = key.asks() {
                let Some(reply) = line.read(&key.name, &asked) else { continue };
                if let Err(came) = key.take(reply) {
                    run.violation(&key.name, &key.describe(), &came);
                }
            }
            if let Some(command) = key.command() {
                commands.push((key.name.clone(), command));
                senders.push(*at);
            }
        }
        let sent = run.elapsed().as_secs_f64();
        let outcomes = line.write(&commands);
        let sent = format!("{sent:.3} to {:.3} s", run.elapsed().as_secs_f64());
        let (mut done, mut items) = (0, 0);
        for (at, outcome) in senders.into_iter().zip(outcomes) {
            let key = &mut self.keys[at];
            let was = key.pending;
            match key.settle(&outcome, &sent) {
                Ok(added) => items += added,
                Err(came) => run.violation(&key.name, &key.describe(), &came),
            }
            done += u64::from(matches!(outcome, Outcome::Done(_)));
            if was == Some(Step::Delete) && key.pending.is_none() {
                self.generation += 1;
                *key = Key::new(key.shape, &self.name, self.generation, self.load.share);
            }
        }
        run.acknowledged(done, items);
    }

    /// Writes until the run is over or the server has gone away.
    pub fn work(&mut self, line: &mut dyn Line, run: &Run, tally: &Tally) {
        let _others_end_too = EndOnPanic(run);
        while line.is_up() && !run.is_over() {
            self.round(line, run, tally);
        }
    }
}

/// Ends the run if a writer panics.
struct EndOnPanic<'a>(&'a Run);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

/// Checks all keys of all writers. No writer may write meanwhile.
pub fn check_all(line: &mut dyn Line, run: &Run, writers: &[Writer], tally: Option<&Tally>) -> u64 {
    let mut names: Vec<&str> = writers.iter().flat_map(|writer| &writer.keys).map(|key| key.name.as_str()).collect();
    names.sort();
    names.dedup();
    let mut items = 0;
    for name in names {
        let group: Vec<&Key> = writers.iter().flat_map(|writer| &writer.keys).filter(|key| key.name == name).collect();
        check(line, run, &group, tally);
        items += group.iter().map(|key| key.must().count() as u64).sum::<u64>();
    }
    items
}

/// Settles what all writers have sent, and checks all their keys and the run's tally.
pub fn finish(line: &mut dyn Line, run: &Run, writers: &mut [Writer], tally: &Tally) -> u64 {
    for writer in &mut *writers {
        writer.settle(line, run);
    }
    let items = check_all(line, run, writers, Some(tally));
    tally.judge(run);
    items
}
