//! The table of commands: names, flags, keys, and texts for `COMMAND DOCS`.

pub(super) mod argument;
mod bloom;
mod command;
mod counting;

pub use argument::{Argument, ArgumentKind};
pub use bloom::BLOOM;
pub use command::{Command, Keys};
pub use counting::COUNTING;
