//! How writers reach their servers.

use redis::Value;

use crate::key::{Command, Outcome, passes};
use crate::wire::Wire;
use rollcall_testkit::client::{deadline, error_text};
use rollcall_testkit::server::Server;

/// A way to the server, or servers, that hold the keys.
pub trait Line {
    /// Sends commands that change keys, each with the name of its key, and reports what became of each.
    fn write(&mut self, commands: &[(String, Command)]) -> Vec<Outcome>;

    /// Asks about a key. `None` if the server went away.
    fn read(&mut self, key: &str, command: &Command) -> Option<Value>;

    /// Whether it is of use any more.
    fn is_up(&self) -> bool;
}

/// What a reply says of its command.
pub fn outcome(reply: Value) -> Outcome {
    match error_text(&reply) {
        // A list may have been stopped in its middle.
        Some(error) if error.contains("more than max-key-bytes") => Outcome::Unknown,
        Some(error) if passes(&error) => Outcome::Rejected,
        _ => Outcome::Done(reply),
    }
}

/// Asks that one replica have all that was written, and waits for so many milliseconds at most.
pub fn wait_one(milliseconds: u64) -> Command {
    ["WAIT", "1", &milliseconds.to_string()].map(|word| word.as_bytes().to_vec()).into()
}

/// One connection to one server. Once it is lost it stays so.
pub struct Single {
    wire: Wire,
    /// Whether a write counts only when a replica has it too.
    waits: bool,
    is_up: bool,
}

impl Single {
    pub fn new(server: &Server) -> Single {
        let wire = Wire::connect(server.port(), deadline()).expect("the server takes a connection");
        Single { wire, waits: false, is_up: true }
    }

    /// Acknowledged is what `WAIT 1` has acknowledged.
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
        let mut replies = self.wire.ask(&sent);
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
            match self.wire.ask(std::slice::from_ref(command)).pop() {
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
