//! Partially loaded values, under temporary names alongside their final ones.
//!
//! They have a time to live from their first chunk on: what a tool leaves behind that was killed goes by itself. A value
//! gets its own time to live and its name in one step.

use redis::{Cmd, Value};

use super::value::Chunk;
use super::{Answer, Class, Server, texts};
use crate::failure::Failure;

/// The prefix of the temporary names of values from another server.
pub const COPIED: &str = "rollcall.copy:";

/// The prefix of the temporary names of values from a file.
pub const LOADED: &str = "rollcall.load:";

/// How long a partially loaded value stays after its last chunk, in seconds: an interrupted load can continue within
/// that.
const STAYS_SECONDS: u64 = 24 * 3600;

/// An expiry time that no value has, in milliseconds since 1970.
const FAR: u64 = 253_402_300_800_000;

/// The commands of the last step.
pub const STEPS: usize = 3;

/// Whether a key is a partially loaded value.
pub fn is_temporary(key: &[u8]) -> bool {
    [COPIED, LOADED].iter().any(|prefix| key.starts_with(prefix.as_bytes()))
}

/// Fails if the server rejects what the last step needs: a value that is renamed without it would expire in a day. A
/// value under this name has as much time again.
pub fn check_rights(server: &mut Server, name: &[u8]) -> Result<(), Failure> {
    // Every time of a partially loaded value is earlier, so this one is not set.
    let in_the_far_future = redis::cmd("PEXPIREAT").arg(name).arg(FAR).arg("LT").to_owned();
    let commands = [redis::cmd("PERSIST").arg(name).to_owned(), stay(name), in_the_far_future];
    let answers = server.ask_all(&commands.map(|command| (name, command)))?;
    match answers.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(_) => Ok(()),
        Err(text) => Err(server.rejected(name, "what a value is named by", &text)),
    }
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

/// Appends a chunk. The text of an error, if the server rejects it.
pub fn arrive(server: &mut Server, class: Class, name: &[u8], chunk: &Chunk) -> Result<Result<(), String>, Failure> {
    let answers = server.ask_all(&arrival(class, name, chunk).map(|command| (name, command)))?;
    Ok(answers.into_iter().try_for_each(|answer| answer.map(drop)))
}

/// The commands that give a whole value its final name `key` and its time to live. They are sent together: a tool that
/// is killed has done none or all of them. [`named`] reads their answers.
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

/// The outcome of the commands of [`naming`]; the text of an error.
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
