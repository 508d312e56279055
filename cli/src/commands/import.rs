//! `import`: adds the lines of a file to a key, by pipelined commands.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use redis::Value;
use serde::Serialize;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::lines;
use crate::output::Output;
use crate::progress;
use crate::server::{Class, Server, Url, shown, texts};
use crate::table;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The file of items, one item per line; - reads standard input
    file: PathBuf,
    /// The filter or counter to which the items are added
    key: String,
    /// Create the key if it is missing, with these options of BF.INSERT or LC.INSERT: "CAPACITY 1000000 ERROR 0.001"
    #[arg(long, value_name = "OPTIONS", requires = "kind", allow_hyphen_values = true)]
    create: Option<String>,
    /// The kind of key to create if it is missing
    #[arg(long)]
    kind: Option<Created>,
    /// The number of items in one command
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// The number of commands to send before waiting for their replies
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pipeline: u32,
    /// The number of lines to skip at the start of the file, without empty ones, to resume an interrupted import
    #[arg(long, default_value_t = 0)]
    skip: u64,
    #[command(flatten)]
    url: Url,
}

/// The kinds of keys that an import can create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Created {
    Filter,
    Counter,
}

/// The result of an import.
#[derive(Debug, Serialize)]
struct Imported {
    key: String,
    kind: &'static str,
    items: u64,
    /// Number of new items. For a counter that estimates: number of items that changed the counter.
    new: u64,
    seconds: f64,
}

impl Import {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        let options: Vec<&str> = self.create.iter().flat_map(|options| options.split_whitespace()).collect();
        if let Some(option) = options.iter().find(|option| option.eq_ignore_ascii_case("items")) {
            return Err(Failure::arguments(format!("--create with {option}: what comes after it would be added"))
                .advise(
                    "give options alone: --create \"CAPACITY 1000000 ERROR 0.001\"; items are the lines of the file",
                ));
        }
        let mut server = Server::connect(&self.url.url, &self.url.access)?;
        let class = self.class(&mut server)?;
        let started = Instant::now();
        let bar = progress::bar(None, "items");
        let mut imported =
            Imported { key: shown(self.key.as_bytes()), kind: class.noun(), items: 0, new: 0, seconds: 0.0 };
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let mut input = lines::read(&self.file)?.skip(skip).peekable();
        while input.peek().is_some() {
            interrupt.check().map_err(|failure| self.go_on(&imported, failure))?;
            let mut lists = Vec::new();
            for _ in 0..self.pipeline {
                let items = input.by_ref().take(self.batch as usize).collect::<Result<Vec<_>, _>>();
                let items = items.map_err(|failure| self.go_on(&imported, failure))?;
                if items.is_empty() {
                    break;
                }
                lists.push((items.len() as u64, self.command(class, &items)));
            }
            self.add(&mut server, class, lists, &mut imported, &bar)?;
        }
        bar.finish_and_clear();
        if imported.items == 0 {
            let after = if self.skip > 0 { format!(" after the first {}", self.skip) } else { String::new() };
            return Err(Failure::nothing(format!("nothing was added: {} has no items{after}", self.file.display())));
        }
        imported.seconds = started.elapsed().as_secs_f64();
        output.answer(&imported, Imported::text)
    }

    /// The class of the key, which may be missing only if the arguments say what to create.
    fn class(&self, server: &mut Server) -> Result<Class, Failure> {
        let key = self.key.as_bytes();
        let asked = self.kind.map(|kind| match kind {
            // A new filter is created by `BF.*`, whichever module owns these commands.
            Created::Filter => Class::Classic,
            Created::Counter => Class::Counter,
        });
        match (server.class_of(key)?, asked) {
            (Some(class), Some(asked)) if class.noun() != asked.noun() => {
                Err(Failure::new(format!("{} is a {}", shown(key), class.noun())))
            }
            (Some(class), _) => Ok(class),
            (None, Some(asked)) if self.create.is_some() => Ok(asked),
            (None, _) => {
                let (kind, options) = match asked {
                    Some(Class::Counter) => ("counter", "ERROR 0.01"),
                    _ => ("filter", "CAPACITY 1000000 ERROR 0.01"),
                };
                Err(Failure::nothing(format!("there is no key {}", shown(key))).advise(format!(
                    "create it: --kind {kind} --create \"{options}\"; rollcall plan finds the options"
                )))
            }
        }
    }

    /// Sends commands that each add a number of items.
    fn add(
        &self,
        server: &mut Server,
        class: Class,
        lists: Vec<(u64, redis::Cmd)>,
        imported: &mut Imported,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let key = self.key.as_bytes();
        let (sizes, commands): (Vec<u64>, Vec<_>) =
            lists.into_iter().map(|(size, command)| (size, (key, command))).unzip();
        let answers = server.ask_all(&commands).map_err(|failure| self.go_on(imported, failure))?;
        for (size, answer) in sizes.into_iter().zip(answers) {
            let rejected = |text: &str| server.rejected(key, &format!("{}.{}", class.family(), self.verb(class)), text);
            let reply = answer.map_err(|text| match &self.create {
                Some(options) if imported.items == 0 && texts::is_wrong_option(&text) => {
                    Failure::arguments(format!("--create \"{options}\": {text}"))
                        .advise("give options of BF.INSERT or LC.INSERT; rollcall plan finds them")
                }
                _ => self.rejected(imported, rejected(&text), &text),
            })?;
            let Added { items, new, error } = added(&reply, size);
            imported.new += new;
            imported.items += items;
            if let Some(text) = error {
                return Err(self.rejected(imported, rejected(&text), &text));
            }
            bar.inc(size);
        }
        Ok(())
    }

    /// The command that adds items, without its prefix.
    fn verb(&self, class: Class) -> &'static str {
        match (&self.create, class) {
            (None, Class::Counter) => "ADD",
            (None, _) => "MADD",
            _ => "INSERT",
        }
    }

    fn command(&self, class: Class, items: &[Vec<u8>]) -> redis::Cmd {
        let mut command = class.command(self.verb(class));
        command.arg(self.key.as_bytes());
        if let Some(options) = &self.create {
            command.arg(options.split_whitespace().collect::<Vec<_>>()).arg("ITEMS");
        }
        command.arg(items);
        command
    }

    /// Adds the number of lines imported so far to the failure of a server that rejected items. Repeating alone does
    /// not help, and a full filter has to be replaced by one with all lines.
    fn rejected(&self, imported: &Imported, failure: Failure, text: &str) -> Failure {
        let done = imported.items + self.skip;
        if texts::is_full_filter(text) {
            return failure.advise(format!(
                "the first {done} lines are in, and it takes no more: give all lines to a larger one"
            ));
        }
        if done == 0 { failure } else { self.go_on(imported, failure) }
    }

    /// Adds the number of lines imported so far to a failure. Commands of the same pipeline may have added later lines.
    fn go_on(&self, imported: &Imported, failure: Failure) -> Failure {
        let done = imported.items + self.skip;
        let what = match done {
            0 => "run the same again".to_owned(),
            _ => format!("the first {done} lines are in: to go on after them, add --skip {done}"),
        };
        failure.note(format!("{what}. Adding twice does no harm"))
    }
}

impl Imported {
    fn text(&self) -> String {
        let rate = self.items as f64 / self.seconds.max(1e-9);
        format!(
            "{}: a {}, {} items of which {} {}, {} items a second",
            self.key,
            self.kind,
            table::count(i64::try_from(self.items).unwrap_or(i64::MAX)),
            table::count(i64::try_from(self.new).unwrap_or(i64::MAX)),
            if self.kind == Class::Counter.noun() { "changed it" } else { "were new to it" },
            table::count(rate as i64),
        )
    }
}

/// What a command with several items did.
struct Added {
    /// Number of items of the command that were added or already present: all items before the error, if there is
    /// one.
    items: u64,
    new: u64,
    error: Option<String>,
}

/// Reads the reply to a command with `size` items. If a filter rejects an item, the last element is the error.
fn added(reply: &Value, size: u64) -> Added {
    match reply {
        Value::Array(items) => {
            let new = items.iter().filter(|item| matches!(item, Value::Int(1) | Value::Boolean(true))).count();
            let error = items.last().and_then(crate::server::error_text);
            let items = if error.is_some() { items.len() as u64 - 1 } else { size };
            Added { items, new: new as u64, error }
        }
        other => {
            let new = crate::server::integer(other).and_then(|new| u64::try_from(new).ok()).unwrap_or(0);
            Added { items: size, new, error: None }
        }
    }
}
