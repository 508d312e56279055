//! A key, with everything that was sent to it and acknowledged.
//!
//! A writer has at most one unacknowledged command for a key. So the acknowledged items are the first `acked` items of
//! the writer, and the key may also have the items of that one command. The writer repeats the command until it is
//! acknowledged, so a command may run twice.

use std::collections::{HashSet, VecDeque};
use std::io::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use redis::Value;

use crate::shapes::{Kind, Remembers, Shadow, Shape};
use rollcall_fuzz::random::Random;
use rollcall_testkit::{error_text, show, words};

pub type Command = Vec<Vec<u8>>;

/// The next change of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Create,
    /// Adds new items.
    Add {
        first: u64,
        count: u64,
    },
    /// Adds known items again, which the replies must confirm.
    Repeat {
        first: u64,
        count: u64,
    },
    /// Removes this number of the oldest items.
    Remove(u64),
    /// Moves the window to a slice.
    Advance(u64),
    /// Copies or merges the key into its shadow.
    Shadow,
    /// Merges what `DUMP` replied of the key into its shadow.
    MergeDump,
    Delete,
}

/// The outcome of a command.
#[derive(Debug)]
pub enum Outcome {
    Done(Value),
    /// The command was rejected for a temporary reason, and changed nothing.
    Rejected,
    /// The command may have run.
    Unknown,
}

impl Outcome {
    fn brief(&self) -> String {
        match self {
            Outcome::Done(Value::Array(answers)) => {
                let ones = answers.iter().filter(|answer| **answer == Value::Int(1)).count();
                format!("{} answers, {ones} of them 1", answers.len())
            }
            Outcome::Done(reply) => show(reply),
            Outcome::Rejected => "rejected".into(),
            Outcome::Unknown => "perhaps done".into(),
        }
    }
}

/// Whether an error is temporary. A command with this error changed nothing, except that `max-key-bytes` may stop a
/// command between two items.
pub fn passes(error: &str) -> bool {
    let start = error.split(' ').next().unwrap_or_default();
    ["LOADING", "MISCONF", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOREPLICAS"]
        .contains(&start)
        || error.contains("more than max-key-bytes")
}

pub struct Key {
    pub shape: &'static Shape,
    /// The name of the key. It is a hash tag, so that the shadow is in the same slot.
    pub name: String,
    /// The prefix of all items of this writer.
    prefix: String,
    /// Number of items after which the key is full.
    capacity: u64,
    pub exists: bool,
    /// Number of acknowledged items, which are the first ones.
    pub acked: u64,
    /// Number of items that were sent, which are the first ones.
    pub sent: u64,
    /// Number of items that were removed, which are the first ones.
    pub removed: u64,
    pub pending: Option<Step>,
    /// Whether the pending step may have run.
    tried: bool,
    /// Items that a filter reported as present before they were added. The filter need not have stored them.
    excused: HashSet<u64>,
    /// For a window with the manual clock: each slice that the window reached, and the first item added after that.
    slices: Vec<(u64, u64)>,
    /// The newest slice that the window may have reached.
    slice_sent: u64,
    /// For a window with the system clock: the time at which each batch was first sent, and the number of items up to
    /// the end of the batch.
    times: Vec<(Instant, u64)>,
    /// Number of items that a reply reported as new.
    pub news: u64,
    /// Number of items that may have been new, but have no reply that says so.
    pub doubt: u64,
    /// Number of items that the shadow has, which are the first ones; `None` without a shadow.
    pub shadow: Option<u64>,
    /// The value of the key when a pending [`Step::MergeDump`] was first sent.
    payload: Option<Vec<u8>>,
    /// The latest steps, with the time at which each was sent and its outcome.
    history: VecDeque<String>,
}

/// The length in bytes of items that are sent on end.
const WIDTH: usize = 32;

/// Number of steps that the message about a broken promise shows.
const HISTORY: usize = 12;

impl Key {
    /// A key that is full after 1 / `share` of the usual number of items of its shape.
    pub fn new(shape: &'static Shape, writer: &str, generation: u64, share: u64) -> Key {
        let name = if shape.is_shared {
            format!("{{{}}}", shape.name)
        } else {
            format!("{{{}:{writer}:{generation}}}", shape.name)
        };
        Key {
            shape,
            name,
            prefix: format!("{writer}.{generation}:"),
            // Keys have enough items to exceed the limits of exact counters and of admission.
            capacity: (shape.items / share).max(shape.items.min(400)),
            exists: false,
            acked: 0,
            sent: 0,
            removed: 0,
            pending: None,
            tried: false,
            excused: HashSet::new(),
            slices: vec![(0, 0)],
            slice_sent: 0,
            times: Vec::new(),
            news: 0,
            doubt: 0,
            shadow: None,
            payload: None,
            history: VecDeque::new(),
        }
    }

    pub fn shadow_name(&self) -> String {
        format!("{}:shadow", self.name)
    }

    /// The item with this number. Items have 13 different lengths, unless the shape sends them on end.
    pub fn item(&self, number: u64) -> Vec<u8> {
        let mut item = Vec::with_capacity(40);
        item.extend_from_slice(self.prefix.as_bytes());
        let _ = write!(item, "{number}");
        item.extend_from_slice(&b"xxxxxxxxxxxxx"[..(number % 13) as usize]);
        if self.shape.packs() {
            assert!(item.len() <= WIDTH, "{}", item.escape_ascii());
            item.resize(WIDTH, b'.');
        }
        item
    }

    pub fn items(&self, range: Range<u64>) -> impl Iterator<Item = Vec<u8>> {
        range.map(|number| self.item(number))
    }

    /// The items that the key must have, except those that [`Self::promised`] excludes.
    pub fn must(&self) -> Range<u64> {
        if self.pending == Some(Step::Delete) {
            return 0..0;
        }
        match self.shape.remembers {
            Remembers::All => match self.pending {
                Some(Step::Remove(count)) => self.removed + count..self.acked,
                _ => self.removed..self.acked,
            },
            Remembers::First(limit) => 0..self.acked.min(limit),
            Remembers::Slices(slices) => self.since(slices),
            Remembers::Seconds(seconds) => {
                let gone = self.times.iter().rev().find(|(sent, _)| sent.elapsed() >= Duration::from_secs(seconds));
                gone.map_or(0, |(_, end)| *end).min(self.acked)..self.acked
            }
        }
    }

    /// The items that were added since the window, which has the manual clock, was `slices` slices back.
    pub fn since(&self, slices: u64) -> Range<u64> {
        let oldest = self.slice_sent.saturating_sub(slices);
        let first = self.slices.iter().find(|(slice, _)| *slice >= oldest).map_or(self.acked, |(_, item)| *item);
        first.min(self.acked)..self.acked
    }

    /// The items that the shadow does not have yet.
    fn new_to_shadow(&self) -> Range<u64> {
        self.shadow.unwrap_or(0)..self.acked
    }

    /// The items that the key may have.
    pub fn may(&self) -> Range<u64> {
        match self.shape.remembers {
            Remembers::First(limit) => 0..self.sent.min(limit),
            _ => self.removed..self.sent,
        }
    }

    /// The items in a range that the key must find. A windowed key need not find items that it reported as present
    /// before they were added.
    pub fn promised(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let expires = self.shape.remembers != Remembers::All;
        range.filter(move |number| !(expires && self.excused.contains(number)))
    }

    /// The items of the unacknowledged command. The key has all of them or none.
    pub fn in_flight(&self) -> Range<u64> {
        self.acked..self.sent
    }

    /// Whether the key has reached its capacity.
    pub fn is_full(&self) -> bool {
        self.acked >= self.capacity
    }

    /// Decides the next step. A full key repeats known items until it is deleted.
    pub fn plan(&mut self, random: &mut Random, most: u64) {
        if self.pending.is_some() {
            return;
        }
        self.tried = false;
        let step = self.choose(random, most);
        if let Step::Add { first, count } = step {
            self.sent = self.sent.max(first + count);
        }
        if let Step::Advance(slice) = step {
            self.slice_sent = slice;
        }
        self.pending = Some(step);
    }

    fn can_shadow(&self) -> bool {
        match self.shape.shadow {
            Shadow::None => false,
            Shadow::Merge | Shadow::Copy => true,
            Shadow::Items => !self.new_to_shadow().is_empty(),
        }
    }

    fn choose(&self, random: &mut Random, most: u64) -> Step {
        if !self.exists && !self.shape.create.is_empty() {
            return Step::Create;
        }
        let must = self.must();
        let count = if random.one_in(4) { 1 } else { 1 + random.below(most) };
        let can_repeat = !must.is_empty() && !matches!(self.shape.remembers, Remembers::Seconds(_));
        let first = must.start + random.below((must.end - must.start).max(1));
        let end = must.end.min(first + count);
        let repeat = Step::Repeat { first, count: end - first };
        let can_repeat = can_repeat && self.promised(first..end).next().is_some();
        match random.below(12) {
            0 | 1 if can_repeat => repeat,
            2 if self.shape.removes() && self.exists && must.end - must.start > 2 * most => Step::Remove(count),
            2 if self.exists && self.can_shadow() => {
                if self.shape.shadow != Shadow::Items && random.one_in(2) {
                    Step::MergeDump
                } else {
                    Step::Shadow
                }
            }
            3 if self.exists && matches!(self.shape.remembers, Remembers::Slices(_)) => {
                let far = if random.one_in(8) { 20 } else { 2 };
                Step::Advance(self.slice_sent + 1 + random.below(far))
            }
            _ if self.is_full() && can_repeat => repeat,
            _ => Step::Add { first: self.sent, count: count.min(self.capacity.max(self.sent + 1) - self.sent) },
        }
    }

    /// The command whose reply [`Self::take`] needs before the pending step can be sent.
    pub fn asks(&self) -> Option<Command> {
        let is_missing = self.pending == Some(Step::MergeDump) && self.payload.is_none();
        is_missing.then(|| vec![b"DUMP".to_vec(), self.name.clone().into_bytes()])
    }

    /// Takes the reply to [`Self::asks`], or describes one that breaks a promise.
    pub fn take(&mut self, reply: Value) -> Result<(), String> {
        let Value::BulkString(payload) = reply else { return Err(format!("{} to DUMP", show(&reply))) };
        self.payload = Some(payload);
        Ok(())
    }

    /// The command of the pending step.
    pub fn command(&mut self) -> Option<Command> {
        let step = self.pending?;
        let named = |line: &str, name: &str| -> Command {
            let name_of = |word: &str| if word == "?" { name.as_bytes().to_vec() } else { word.as_bytes().to_vec() };
            words(line).into_iter().map(name_of).collect()
        };
        let adding = |line: &str, number: u64, items: Vec<Vec<u8>>| -> Command {
            if !self.shape.packs() || number.is_multiple_of(2) || items.is_empty() {
                return named(line, &self.name).into_iter().chain(items).collect();
            }
            let line = line.replace(" ITEMS", &format!(" WIDTH {WIDTH} ITEMS"));
            named(&line, &self.name).into_iter().chain([items.concat()]).collect()
        };
        let family = if self.shape.is_filter() { "BF" } else { "LC" };
        Some(match step {
            Step::Create => named(self.shape.create, &self.name),
            Step::Add { first, count } => {
                if matches!(self.shape.remembers, Remembers::Seconds(_)) && !self.tried {
                    self.times.push((Instant::now(), first + count));
                }
                let line = self.shape.adds_one().filter(|_| count == 1).unwrap_or(self.shape.add);
                adding(line, first + count, self.items(first..first + count).collect())
            }
            Step::Repeat { first, count } => {
                let known = self.promised(first..first + count).map(|number| self.item(number));
                adding(self.shape.add, first + count, known.collect())
            }
            Step::Remove(count) => named("LC.REM ?", &self.name)
                .into_iter()
                .chain(self.items(self.removed..self.removed + count))
                .collect(),
            Step::Advance(slice) => named(&format!("{family}.ADVANCE ? {slice}"), &self.name),
            Step::Shadow if self.shape.shadow == Shadow::Merge => {
                named(&format!("{family}.MERGE {} ?", self.shadow_name()), &self.name)
            }
            Step::Shadow if self.shape.shadow == Shadow::Items => {
                let line = "LC.INSERT ? EXACT 65536 BYTES 1048576 ITEMS";
                named(line, &self.shadow_name()).into_iter().chain(self.items(self.new_to_shadow())).collect()
            }
            Step::Shadow => named(&format!("COPY ? {} REPLACE", self.shadow_name()), &self.name),
            Step::MergeDump => named(&format!("{family}.MERGEDUMP ?"), &self.shadow_name())
                .into_iter()
                .chain(self.payload.clone())
                .collect(),
            Step::Delete => named(&format!("DEL ? {}", self.shadow_name()), &self.name),
        })
    }

    /// Records the outcome of the pending step. Returns the number of items that were acknowledged, or a description of
    /// a reply that breaks a promise. `sent` is the time span between sending the step and its outcome.
    pub fn settle(&mut self, outcome: &Outcome, sent: &str) -> Result<u64, String> {
        let Some(step) = self.pending else { return Ok(0) };
        self.history.push_back(format!("{sent}: {step:?}, {}", outcome.brief()));
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        let reply = match outcome {
            Outcome::Rejected => return Ok(0),
            Outcome::Unknown => {
                self.tried = true;
                return Ok(0);
            }
            Outcome::Done(reply) => reply,
        };
        let unexpected = || Err(format!("{} to {step:?}", show(reply)));
        let error = error_text(reply);
        match step {
            Step::Create => match (error.as_deref(), self.tried) {
                (None, _) | (Some("ERR item exists"), true) => self.exists = true,
                _ => return unexpected(),
            },
            Step::Add { first, count } => return self.settle_add(first, count, reply),
            Step::Repeat { .. } => match replies(reply) {
                Some(answers) if answers.iter().all(|answer| *answer == Value::Int(0)) => {}
                _ => return Err(format!("{} to {step:?}: what was acknowledged is new", show(reply))),
            },
            Step::Remove(count) => match reply {
                Value::Int(gone) if *gone == count as i64 || self.tried && *gone == 0 => self.removed += count,
                _ => return unexpected(),
            },
            Step::Advance(slice) => match reply {
                Value::Okay => self.slices.push((slice, self.sent)),
                _ => return unexpected(),
            },
            Step::Shadow => match (self.shape.shadow, reply) {
                (Shadow::Items, Value::Int(new)) if self.tried || *new == self.new_to_shadow().count() as i64 => {
                    self.shadow = Some(self.acked)
                }
                (Shadow::Merge | Shadow::Copy, Value::Okay | Value::Int(1)) => self.shadow = Some(self.acked),
                _ => return unexpected(),
            },
            Step::MergeDump => match reply {
                Value::Okay => (self.shadow, self.payload) = (Some(self.acked), None),
                _ => return unexpected(),
            },
            Step::Delete => match reply {
                Value::Int(_) => self.exists = false,
                _ => return unexpected(),
            },
        }
        self.pending = None;
        Ok(0)
    }

    fn settle_add(&mut self, first: u64, count: u64, reply: &Value) -> Result<u64, String> {
        let unexpected = || Err(format!("{} to {count} items from {first}", show(reply)));
        let Some(mut answers) = replies(reply) else { return unexpected() };
        // If the list was stopped by an error, the reply ends with it. The items before the error were added.
        let stopped = answers.last().and_then(error_text);
        if let Some(error) = &stopped {
            if !passes(error) {
                return unexpected();
            }
            answers = &answers[..answers.len() - 1];
        }
        let is_list = matches!(reply, Value::Array(_));
        let done = if is_list { answers.len() as u64 } else { count };
        if done > count || (is_list && stopped.is_none() && done < count) {
            return unexpected();
        }
        let mut new = 0;
        for (number, answer) in (first..).zip(answers) {
            match answer {
                // The reply of LC.ADD is the number of new items.
                Value::Int(sum) if !is_list && (0..=count as i64).contains(sum) => new = *sum as u64,
                Value::Int(1) => new += 1,
                Value::Int(0) => drop(self.excused.insert(number)),
                Value::Int(-1) if matches!(self.shape.remembers, Remembers::First(limit) if number >= limit) => {}
                _ => return unexpected(),
            }
        }
        if !is_list && self.shape.is_filter() && new == 0 {
            self.excused.insert(first);
        }
        let admits = |limit: u64| limit.min(first + done) - limit.min(first);
        let expected = match self.shape.remembers {
            Remembers::First(limit) => admits(limit),
            _ => done,
        };
        if self.shape.kind == Kind::Exact && !self.tried && new != expected {
            return Err(format!("{} to {count} items from {first}, all of them new", show(reply)));
        }
        self.news += new;
        if self.tried {
            self.doubt += done - new.min(done);
        }
        self.acked = first + done;
        self.exists = true;
        if stopped.is_some() {
            self.pending = Some(Step::Add { first: first + done, count: count - done });
        } else {
            self.pending = None;
        }
        Ok(done)
    }

    /// Describes the state of the key, for a message about a broken promise.
    pub fn describe(&self) -> String {
        format!(
            "shape {}, items '{}0' to {} acknowledged, {} sent, {} removed, {:?} has to be there, pending {:?} (tried: \
             {}), {} answered new and {} in doubt, slices {:?} up to {}, shadow {:?}; the latest steps:\n        {}",
            self.shape.name,
            self.prefix,
            self.acked,
            self.sent,
            self.removed,
            self.must(),
            self.pending,
            self.tried,
            self.news,
            self.doubt,
            &self.slices[self.slices.len().saturating_sub(4)..],
            self.slice_sent,
            self.shadow,
            self.history.iter().cloned().collect::<Vec<_>>().join("\n                "),
        )
    }
}

/// The elements of a reply to an adding command: one per item, or one for all items.
fn replies(reply: &Value) -> Option<&[Value]> {
    match reply {
        Value::Array(answers) => Some(answers),
        Value::Int(_) => Some(std::slice::from_ref(reply)),
        _ => None,
    }
}
