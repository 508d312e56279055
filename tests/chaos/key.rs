//! A key, and all that is known of what was sent to it and what was acknowledged.
//!
//! A writer has at most one command on its way to a key. So what was acknowledged is the first so many items, and what
//! may be there besides is those of that one command. It is sent again until it is acknowledged: all commands may be
//! done twice.

use std::collections::{HashSet, VecDeque};
use std::io::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use redis::Value;

use crate::random::Random;
use crate::shapes::{Kind, Remembers, Shadow, Shape};
use rollcall_testkit::client::{error_text, show, words};

pub type Command = Vec<Vec<u8>>;

/// The next change of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Create,
    /// Items that are new.
    Add {
        first: u64,
        count: u64,
    },
    /// Items that are known, so that the replies have to say so.
    Repeat {
        first: u64,
        count: u64,
    },
    /// Moves the window to a slice.
    Advance(u64),
    /// Gives the shadow what the key has.
    Shadow,
    Delete,
}

/// What became of a command.
#[derive(Debug)]
pub enum Outcome {
    Done(Value),
    /// Not done, for a reason that passes.
    Rejected,
    /// Perhaps done.
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

/// Errors that pass. None of the commands was done.
pub fn passes(error: &str) -> bool {
    let start = error.split(' ').next().unwrap_or_default();
    ["LOADING", "MISCONF", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOREPLICAS"]
        .contains(&start)
        || error.contains("more than max-key-bytes")
}

pub struct Key {
    pub shape: &'static Shape,
    /// In a hash tag, so that its shadow is in the same slot.
    pub name: String,
    /// What all items of this writer begin with.
    prefix: String,
    /// Items it takes before it is full.
    capacity: u64,
    pub exists: bool,
    /// The first so many items were acknowledged.
    pub acked: u64,
    /// The first so many items were sent.
    pub sent: u64,
    pub pending: Option<Step>,
    /// Whether the pending step may have been done.
    tried: bool,
    /// Items that a filter took for known, and so need not have written.
    excused: HashSet<u64>,
    /// Of a window on a manual clock: from this item on, they were added when it had reached this slice.
    slices: Vec<(u64, u64)>,
    /// The furthest slice that the window may have reached.
    slice_sent: u64,
    /// Of a window on the system clock: when the batches up to this item were first sent.
    times: Vec<(Instant, u64)>,
    /// Items that were answered to be new.
    pub news: u64,
    /// Items that may have been new without an answer that says so.
    pub doubt: u64,
    /// The shadow has the first so many items; `None` while there is none.
    pub shadow: Option<u64>,
    /// The latest steps, when they were sent and what became of them.
    history: VecDeque<String>,
}

/// Steps of a key that a message about it reports.
const HISTORY: usize = 12;

impl Key {
    /// A key that is full with one of `share` of the items that keys of this shape take.
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
            // Enough to pass the limits of what is exact or admitted.
            capacity: (shape.items / share).max(shape.items.min(400)),
            exists: false,
            acked: 0,
            sent: 0,
            pending: None,
            tried: false,
            excused: HashSet::new(),
            slices: vec![(0, 0)],
            slice_sent: 0,
            times: Vec::new(),
            news: 0,
            doubt: 0,
            shadow: None,
            history: VecDeque::new(),
        }
    }

    pub fn shadow_name(&self) -> String {
        format!("{}:shadow", self.name)
    }

    /// An item, of one of several lengths.
    pub fn item(&self, number: u64) -> Vec<u8> {
        let mut item = Vec::with_capacity(40);
        item.extend_from_slice(self.prefix.as_bytes());
        let _ = write!(item, "{number}");
        item.extend_from_slice(&b"xxxxxxxxxxxxx"[..(number % 13) as usize]);
        item
    }

    pub fn items(&self, range: Range<u64>) -> impl Iterator<Item = Vec<u8>> {
        range.map(|number| self.item(number))
    }

    /// The items that have to be there, as far as they are [`Self::promised`].
    pub fn must(&self) -> Range<u64> {
        if self.pending == Some(Step::Delete) {
            return 0..0;
        }
        match self.shape.remembers {
            Remembers::All => 0..self.acked,
            Remembers::First(limit) => 0..self.acked.min(limit),
            Remembers::Last(len) => self.sent.saturating_sub(len).min(self.acked)..self.acked,
            Remembers::Slices(slices) => self.since(slices),
            Remembers::Seconds(seconds) => {
                let gone = self.times.iter().rev().find(|(sent, _)| sent.elapsed() >= Duration::from_secs(seconds));
                gone.map_or(0, |(_, end)| *end).min(self.acked)..self.acked
            }
        }
    }

    /// Of a window on a manual clock, the items that were added since it was so many slices back.
    pub fn since(&self, slices: u64) -> Range<u64> {
        let oldest = self.slice_sent.saturating_sub(slices);
        let first = self.slices.iter().find(|(slice, _)| *slice >= oldest).map_or(self.acked, |(_, item)| *item);
        first.min(self.acked)..self.acked
    }

    /// The items that the shadow has not yet, of one that gets them.
    fn new_to_shadow(&self) -> Range<u64> {
        self.shadow.unwrap_or(0)..self.acked
    }

    /// The items that may be there.
    pub fn may(&self) -> Range<u64> {
        match self.shape.remembers {
            Remembers::First(limit) => 0..self.sent.min(limit),
            _ => 0..self.sent,
        }
    }

    /// Those of a range that a windowed key has to find: what it took for known it need not have written.
    pub fn promised(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let forgets = self.shape.remembers != Remembers::All;
        range.filter(move |number| !(forgets && self.excused.contains(number)))
    }

    /// The items that are on their way, all of which or none are there.
    pub fn in_flight(&self) -> Range<u64> {
        self.acked..self.sent
    }

    /// Whether it has taken all that it is to take.
    pub fn is_full(&self) -> bool {
        self.acked >= self.capacity
    }

    /// Decides what comes next. A key that is full repeats what it has, unless it is to be deleted.
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
            2 if self.exists && self.can_shadow() => Step::Shadow,
            3 if self.exists && matches!(self.shape.remembers, Remembers::Slices(_)) => {
                let far = if random.one_in(8) { 20 } else { 2 };
                Step::Advance(self.slice_sent + 1 + random.below(far))
            }
            _ if self.is_full() && can_repeat => repeat,
            _ => Step::Add { first: self.sent, count: count.min(self.capacity.max(self.sent + 1) - self.sent) },
        }
    }

    /// The command of the pending step.
    pub fn command(&mut self) -> Option<Command> {
        let step = self.pending?;
        let named = |line: &str, name: &str| -> Command {
            let name_of = |word: &str| if word == "?" { name.as_bytes().to_vec() } else { word.as_bytes().to_vec() };
            words(line).into_iter().map(name_of).collect()
        };
        let family = if self.shape.is_filter() { "BF" } else { "LC" };
        Some(match step {
            Step::Create => named(self.shape.create, &self.name),
            Step::Add { first, count } => {
                if matches!(self.shape.remembers, Remembers::Seconds(_)) && !self.tried {
                    self.times.push((Instant::now(), first + count));
                }
                let line = self.shape.adds_one().filter(|_| count == 1).unwrap_or(self.shape.add);
                named(line, &self.name).into_iter().chain(self.items(first..first + count)).collect()
            }
            Step::Repeat { first, count } => {
                let known = self.promised(first..first + count).map(|number| self.item(number));
                named(self.shape.add, &self.name).into_iter().chain(known).collect()
            }
            Step::Advance(slice) => named(&format!("{family}.ADVANCE ? {slice}"), &self.name),
            Step::Shadow if self.shape.shadow == Shadow::Merge => {
                named(&format!("{family}.MERGE {} ?", self.shadow_name()), &self.name)
            }
            Step::Shadow if self.shape.shadow == Shadow::Items => {
                let line = "LC.INSERT ? EXACT 65536 BYTES 1048576 ITEMS";
                named(line, &self.shadow_name()).into_iter().chain(self.items(self.new_to_shadow())).collect()
            }
            Step::Shadow => named(&format!("COPY ? {} REPLACE", self.shadow_name()), &self.name),
            Step::Delete => named(&format!("DEL ? {}", self.shadow_name()), &self.name),
        })
    }

    /// Records what became of the pending step: how many items were acknowledged, or what reply breaks a promise.
    /// `sent` is when the step was sent and when this became known.
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
        // A list ends with the error that stopped it. What is before that is in.
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
                // The one number that LC.ADD answers is how many were new.
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

    /// What is known of it, for a message about a broken promise.
    pub fn describe(&self) -> String {
        format!(
            "shape {}, items '{}0' to {} acknowledged, {} sent, {:?} has to be there, pending {:?} (tried: {}), {} \
             answered new and {} in doubt, slices {:?} up to {}, shadow {:?}; the latest steps:\n                {}",
            self.shape.name,
            self.prefix,
            self.acked,
            self.sent,
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

/// The answers of an adding command: one an item, or one for all.
fn replies(reply: &Value) -> Option<&[Value]> {
    match reply {
        Value::Array(answers) => Some(answers),
        Value::Int(_) => Some(std::slice::from_ref(reply)),
        _ => None,
    }
}
