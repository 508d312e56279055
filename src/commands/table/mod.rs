//! The table of commands: names, flags, keys, and texts for `COMMAND DOCS`.

mod bloom;
mod command;
mod counting;

pub use bloom::BLOOM;
pub use command::{Command, Keys};
pub use counting::COUNTING;
