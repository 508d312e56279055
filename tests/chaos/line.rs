//! Sends the commands of writers to their servers.

use redis::Value;

use crate::key::{Command, Outcome, passes};
use rollcall_testkit::{Client, Server, error_text};

/// A connection of a writer to the server or the cluster that has the keys.
pub trait Line {
    /// Sends commands that change keys, each with the name of its key, and returns the outcome of each command.
    fn write(&mut self, commands: &[(String, Command)]) -> Vec<Outcome>;

    /// Sends a command that reads a key, and returns its reply; `None` if the server went away.
    fn read(&mut self, key: &str, command: &Command) -> Option<Value>;

    /// Whether the connection can still be used.
    fn is_up(&self) -> bool;
}

/// The outcome of a command, from its reply. Of an ADMIT with WITHROOM it is the array of the items' replies.
pub fn outcome(reply: Value) -> Outcome {
    match error_text(&reply) {
        // This error may have stopped a command between two items of its list.
        Some(error) if error.contains("more than max-key-bytes") => Outcome::Unknown,
        Some(error) if passes(&error) => Outcome::Rejected,
        _ => match reply {
            Value::Array(mut parts)
                if matches!(parts[..], [Value::Array(_) | Value::BulkString(_), Value::Int(0..), Value::Int(-1..)]) =>
            {
                Outcome::Done(answers(parts.swap_remove(0)))
            }
            reply => Outcome::Done(answers(reply)),
        },
    }
}

/// A reply to a command with WIDTH as that to single items.
fn answers(reply: Value) -> Value {
    let answer = |byte: &u8| Value::Int(if *byte == b'-' { -1 } else { i64::from(*byte) - i64::from(b'0') });
    match reply {
        Value::BulkString(text) => Value::Array(text.iter().map(answer).collect()),
        reply => reply,
    }
}

/// A command that waits until one replica has all writes, for at most this number of milliseconds.
pub fn wait_one(milliseconds: u64) -> Command {
    ["WAIT", "1", &milliseconds.to_string()].map(|word| word.as_bytes().to_vec()).into()
}

/// One connection to one server. A lost connection is not opened again.
pub struct Single {
    client: Client,
    /// Whether a write counts as acknowledged only once a replica has it.
    waits: bool,
    is_up: bool,
}

impl Single {
    pub fn new(server: &Server) -> Single {
        Single { client: server.client(), waits: false, is_up: true }
    }

    /// A connection on which a write counts as acknowledged only after `WAIT 1` has succeeded.
    pub fn waiting(server: &Server) -> Single {
        Single { waits: true, ..Single::new(server) }
    }
}

impl Line for Single {
    fn write(&mut self, commands: &[(String, Command)]) -> Vec<Outcome> {
        let mut sent: Vec<Command> = commands.iter().map(|(_, command)| command.clone()).collect();
        if self.waits {
            sent.push(wait_one(1000));
        }
        let mut replies = self.client.try_pipeline(&sent);
        self.is_up = replies.len() == sent.len();
        let is_kept = !self.waits || (self.is_up && matches!(replies.pop(), Some(Value::Int(1..))));
        replies.truncate(commands.len());
        let mut outcomes: Vec<Outcome> = replies.into_iter().map(outcome).collect();
        outcomes.resize_with(commands.len(), || Outcome::Unknown);
        if !is_kept {
            outcomes
                .iter_mut()
                .filter(|done| matches!(done, Outcome::Done(_)))
                .for_each(|done| *done = Outcome::Unknown);
        }
        outcomes
    }

    fn read(&mut self, _: &str, command: &Command) -> Option<Value> {
        while self.is_up {
            match self.client.try_call(command) {
                Some(reply) if error_text(&reply).is_some_and(|error| passes(&error)) => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                Some(reply) => return Some(reply),
                None => self.is_up = false,
            }
        }
        None
    }

    fn is_up(&self) -> bool {
        self.is_up
    }
}
