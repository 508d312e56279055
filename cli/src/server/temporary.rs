//! Partially loaded values, which are kept under temporary names.
//!
//! Temporary keys have a time to live from their first chunk on, so the remains of a killed tool expire by themselves.
//! A complete value gets its own time to live and its final name in one step.

use redis::{Cmd, Value};

use super::value::Chunk;
use super::{Answer, Class, Server, texts};
use crate::failure::Failure;

/// The prefix of the temporary names of values from another server.
pub const COPIED: &str = "rollcall.copy:";

/// The prefix of the temporary names of values from a file.
pub const LOADED: &str = "rollcall.load:";

/// Time to live of a partially loaded value after its last chunk, in seconds. An interrupted load can continue within
/// that time.
const STAYS_SECONDS: u64 = 24 * 3600;

/// The year 10000 in milliseconds since 1970, which is later than any value expires.
const FAR: u64 = 253_402_300_800_000;

/// Number of commands that [`naming`] returns.
pub const STEPS: usize = 3;

/// Whether a key is a partially loaded value.
pub fn is_temporary(key: &[u8]) -> bool {
    [COPIED, LOADED].iter().any(|prefix| key.starts_with(prefix.as_bytes()))
}

/// Fails if the user may not call the commands that [`naming`] returns. Without these commands a renamed value would
/// keep the temporary time to live and expire in a day. If `name` exists, its time to live starts again.
pub fn check_rights(server: &mut Server, name: &[u8]) -> Result<(), Failure> {
    // With `LT`, only an earlier expiry time is set; the temporary key expires earlier, so this command changes
    // nothing.
    let in_the_far_future = redis::cmd("PEXPIREAT").arg(name).arg(FAR).arg("LT").to_owned();
    let commands = [redis::cmd("PERSIST").arg(name).to_owned(), stay(name), in_the_far_future];
    for command in commands {
        server.call(name, &command)?;
    }
    Ok(())
}

/// The command that sets the expiry time of a partially loaded value.
fn stay(name: &[u8]) -> Cmd {
    redis::cmd("EXPIRE").arg(name).arg(STAYS_SECONDS).to_owned()
}

/// The commands that append a chunk to a partially loaded value and extend its time.
pub fn arrival(class: Class, name: &[u8], chunk: &Chunk) -> [Cmd; 2] {
    let load = class.command("LOADCHUNK").arg(name).arg(chunk.0).arg(&chunk.1[..]).to_owned();
    [load, stay(name)]
}

/// Appends a chunk to a partially loaded value. The inner `Err` is the text of the server's error.
pub fn arrive(server: &mut Server, class: Class, name: &[u8], chunk: &Chunk) -> Result<Result<(), String>, Failure> {
    let answers = server.ask_all(&arrival(class, name, chunk).map(|command| (name, command)))?;
    Ok(answers.into_iter().try_for_each(|answer| answer.map(drop)))
}

/// The commands that set a value's time to live and rename it to its final name `key`. They are sent together, so a
/// killed tool has sent none or all of them. [`named`] reads the answers.
pub fn naming(name: &[u8], key: &[u8], expires_at: Option<u64>, replace: bool) -> [Cmd; STEPS] {
    let time = match expires_at {
        Some(at) => redis::cmd("PEXPIREAT").arg(name).arg(at).to_owned(),
        None => redis::cmd("PERSIST").arg(name).to_owned(),
    };
    let rename = redis::cmd(if replace { "RENAME" } else { "RENAMENX" }).arg(name).arg(key).to_owned();
    [time, rename, redis::cmd("UNLINK").arg(name).to_owned()]
}

/// Whether a value got its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Yes,
    /// A key with the final name already exists.
    Taken,
    /// The value expired at once.
    Gone,
}

/// The outcome of the commands of [`naming`]; `Err` with the text of the server's error.
pub fn named(answers: &[Answer]) -> Result<Named, String> {
    match answers {
        [Err(text), ..] => Err(text.clone()),
        [_, Ok(Value::Int(0)), ..] => Ok(Named::Taken),
        [_, Ok(_), ..] => Ok(Named::Yes),
        [_, Err(text), ..] if texts::is_no_such_key(text) => Ok(Named::Gone),
        [_, Err(text), ..] => Err(text.clone()),
        _ => Err("no answer".to_owned()),
    }
}
