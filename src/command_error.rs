//! Errors of commands, and the texts of all error replies.
//!
//! Clients match on the first words of an error. So each text begins with RedisBloom's text for the same error, or on
//! Redis 8 with the text of Redis 8, which may differ. The rest says what was expected or given. Every text begins with
//! an error class such as `ERR`.

use std::fmt::Display;

use rollcall_core::bloom::Params;
use rollcall_core::counting::Params as Counting;
use rollcall_core::error::{Error, Limit, Parameter};
pub use rollcall_core::persist::file::Kind;
use rollcall_core::unstable::wire::{BAD_DATA, NOT_FOUND, STALE, StillLoading};

use crate::number::four_digits;
use crate::server::facts::is_redis_8;
use crate::server::ffi::KeyError;

/// The reason why a command was rejected. If the command adds several items, the items before the rejected item were
/// added. Any other rejected command has changed nothing.
#[derive(Debug)]
pub enum CommandError {
    /// The command has too few or too many arguments.
    Arity,
    /// The command cannot use the key.
    Key(KeyError),
    /// The key is missing, and the command does not create it.
    NotFound,
    /// A dump chunk (`LOADCHUNK`) that is damaged, is out of order, or belongs to a complete value.
    BadData,
    /// The value is partially loaded from dump chunks.
    StillLoading(StillLoading),
    /// A client called a filter command, but the option `commands` is `lc`.
    NoFilters,
    /// The command needs RedisBloom's data type, which this module has only if it has registered BF.*. The field is the
    /// value of the option `commands`.
    NoClassic { commands: &'static str },
    /// An option or argument that is not accepted, and why.
    Argument(String),
    /// An error of the core library, or a number outside the range of its parameter.
    Core(Error),
    /// An error of one of a command's payloads, which has this number.
    Payload(usize, Box<CommandError>),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        CommandError::Core(error)
    }
}

impl From<KeyError> for CommandError {
    fn from(error: KeyError) -> Self {
        CommandError::Key(error)
    }
}

/// Formats a client's bytes for error texts: quoted, escaped, and cut if they are long.
pub fn quoted(bytes: &[u8]) -> String {
    const MAX_BYTES: usize = 64;
    if bytes.len() > MAX_BYTES {
        format!("'{}...'", bytes[..MAX_BYTES].escape_ascii())
    } else {
        format!("'{}'", bytes.escape_ascii())
    }
}

/// The error [`CommandError::Argument`].
pub fn bad<T>(why: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Argument(why.into()))
}

impl CommandError {
    /// The error for the argument `what`: the client gave `got` instead of the `expected` kind of number.
    pub fn not_a(expected: impl Display, what: &str, got: &[u8]) -> CommandError {
        CommandError::Argument(format!("bad {what}: expected a {expected}, got {}", quoted(got)))
    }

    /// The error [`CommandError::Payload`].
    pub fn in_payload(number: usize, error: impl Into<CommandError>) -> CommandError {
        CommandError::Payload(number, Box::new(error.into()))
    }

    /// The error reply of a command on values of this `kind`. For [`CommandError::Arity`] the server sends its own
    /// text.
    pub fn text(&self, kind: Kind) -> String {
        match self {
            CommandError::Arity => "ERR wrong number of arguments".to_owned(),
            CommandError::Key(KeyError::OtherType) => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned()
            }
            // Cluster clients repeat a command if its error begins with `TRYAGAIN`.
            CommandError::Key(KeyError::InUse) => {
                "TRYAGAIN the server is saving the key; send the command again".to_owned()
            }
            CommandError::NotFound => format!("ERR {NOT_FOUND}"),
            CommandError::BadData => format!("ERR {BAD_DATA}"),
            CommandError::StillLoading(arrived) => format!("ERR {kind} is {arrived}"),
            CommandError::NoFilters => "ERR filters are kept and not served with commands lc: load the module with \
                commands beside to have RF.*, or with commands all to have BF.* too"
                .to_owned(),
            CommandError::NoClassic { commands } => format!(
                "ERR no classic filter with commands {commands}, which leave BF.* to another module: RF.* have layout \
                 lines"
            ),
            CommandError::Argument(text) => format!("ERR {text}"),
            CommandError::Core(error) => core_text(kind, error),
            CommandError::Payload(number, error) => {
                error.text(kind).replacen("ERR ", &format!("ERR payload {number}: "), 1)
            }
        }
    }
}

/// The text for a number that is outside the range of its parameter.
fn out_of_range(kind: Kind, parameter: Parameter, expected: &str, got: &str) -> String {
    let ours = || format!("bad {}: expected {expected}, got {got}", parameter.name());
    if kind == Kind::Counter {
        return ours();
    }
    let is_negative = got.trim_start_matches('\'').starts_with('-');
    match (parameter, is_redis_8()) {
        // The words are those of Redis 8. The ranges are this module's, which allows larger capacities.
        (Parameter::ErrorRate, true) => format!("error rate must be in the range (0.000000, 1.000000), got {got}"),
        (Parameter::Capacity, true) => {
            format!("capacity must be in the range [1, {}], got {got}", Params::MAX_CAPACITY)
        }
        (Parameter::Expansion, true) => {
            format!("expansion must be in the range [0, {}], got {got}", Params::MAX_EXPANSION)
        }
        // RedisBloom's text is `(0 < error rate range < 1) `. This text begins with it, because clients may compare the
        // beginning.
        (Parameter::ErrorRate, false) => format!("(0 < error rate range < 1) got {got}"),
        (Parameter::Capacity, false) if is_negative || got == "0" => {
            format!("(capacity should be larger than 0), got {got}")
        }
        (Parameter::Expansion, false) if is_negative => {
            format!("expansion should be greater or equal to 1, or 0 for NONSCALING, got {got}")
        }
        _ => ours(),
    }
}

fn core_text(kind: Kind, error: &Error) -> String {
    match error {
        Error::OutOfRange { parameter, expected, got } => {
            format!("ERR {}", out_of_range(kind, *parameter, expected, got))
        }
        Error::TooLarge { needed_bytes, limit_bytes, limit: Limit::Value } => {
            format!(
                "ERR the {kind} needs {needed_bytes} bytes, more than max-key-bytes ({limit_bytes}); to allow more: \
                 CONFIG SET rollcall.max-key-bytes SIZE"
            )
        }
        Error::TooLarge { needed_bytes, limit_bytes, limit: Limit::Memory } => {
            format!("ERR the {kind} needs {needed_bytes} bytes more, more than maxmemory leaves ({limit_bytes})")
        }
        Error::OutOfMemory { needed_bytes } => {
            format!("ERR the {kind} needs {needed_bytes} bytes, more than the allocator has left")
        }
        // The words of RedisBloom, which clients match on.
        Error::Full { .. } => "ERR non scaling filter is full".to_owned(),
        Error::Incompatible { parameter, ours, theirs } => {
            format!("ERR {kind}s differ in {}: {ours} and {theirs}", parameter.name())
        }
        Error::RateExceeded { would_be, asked } => format!(
            "ERR the merged {kind} would have a false-positive rate of {}, above the {asked} asked for",
            four_digits(*would_be)
        ),
        // Clients recognise the error by its first word.
        Error::Stale { .. } => format!("{STALE} {error}"),
        Error::NotExact { exact_limit, exact_bytes } => format!(
            "ERR counter holds an estimate: members are kept only up to its EXACT limit of {exact_limit} members and \
             {exact_bytes} bytes"
        ),
        // A limit above EXACT is rejected earlier, so only BYTES can be too small.
        Error::PastExact { exact_bytes, members, bytes, .. } => {
            let way_out = match *exact_bytes < Counting::MAX_EXACT_BYTES {
                true => "create one with a larger BYTES and LC.MERGE into it, or use a filter's ADMIT",
                false => "use a filter's ADMIT",
            };
            format!(
                "ERR counter would hold an estimate: {members} members of {bytes} bytes are above its BYTES limit of \
                 {exact_bytes}: {way_out}"
            )
        }
        Error::Corrupt { .. } => format!("ERR {BAD_DATA}"),
        _ => format!("ERR {error}"),
    }
}
