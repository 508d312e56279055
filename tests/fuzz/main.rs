//! Sends random commands to a server that has a replica.
//!
//! The server itself reports the module's commands and their arguments. Commands with valid and invalid arguments are
//! mixed with generic commands on the same keys, and with damaged payloads and chunks that have correct checksums. In
//! the end the server must still run, every value must be equal after a reload, and the replica must have the same
//! values.
//!
//! | environment | meaning |
//! |---|---|
//! | `ROLLCALL_FUZZ_COMMANDS` | number of commands; a few thousand by default |
//! | `ROLLCALL_FUZZ_SEED` | the seed of the random sequence |
//! | `ROLLCALL_FUZZ_LONGEST_MS` | fail if a command takes longer (plus 0.25 µs a byte); by default it is shown |

mod grammar;
mod history;
mod pace;
mod sentence;
mod session;
mod values;

use std::time::Duration;

use crate::session::Session;

/// The default number of commands.
const COMMANDS: usize = 6_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}")))
}

#[test]
fn any_commands_leave_a_server_alive_and_its_values_whole() {
    let commands = number("ROLLCALL_FUZZ_COMMANDS").map_or(COMMANDS, |commands| commands as usize);
    let mut session = Session::start(number("ROLLCALL_FUZZ_SEED").unwrap_or(1));
    while session.said() < commands {
        session.round();
    }
    let report = session.finish();
    println!("{report}");
    if let Some(longest) = number("ROLLCALL_FUZZ_LONGEST_MS").map(Duration::from_millis) {
        assert!(session.longest() <= longest, "a command took {:?}", session.longest());
    }
}
