//! Every command as a row: its name, its flags, its keys, and its text in `COMMAND DOCS`.

pub(super) mod argument;
mod bloom;
mod command;
mod counting;

pub use argument::{Argument, ArgumentKind};
pub use bloom::{BLOOM, VALKEY_BLOOM};
pub use command::{Command, EntryPoint, Keys};
pub use counting::COUNTING;
