//! Random commands against a server and its replica.
//!
//! The server itself reports which commands the module has and which arguments they take. These come right and wrong,
//! among commands of the server for the same keys, among forged payloads and chunks with right checksums. Afterwards
//! the server lives, every value loads again as it was, and the replica has the same.
//!
//! | environment | meaning |
//! |---|---|
//! | `ROLLCALL_FUZZ_COMMANDS` | how many commands: a few thousand unless set |
//! | `ROLLCALL_FUZZ_SEED` | another sequence of them |
//! | `ROLLCALL_FUZZ_LONGEST_MS` | fail if a command takes longer. Else the longest is only shown |

mod grammar;
mod history;
mod pace;
mod sentence;
mod session;
mod values;

use std::time::Duration;

use crate::session::Session;

/// Commands of an ordinary run.
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
