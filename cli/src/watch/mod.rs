//! What servers say of themselves and of their filters and counters, with what is wrong: for all commands that show it.
//!
//! - [`rows`]: a [`Row`] for each key, of a server or a cluster, with its findings.
//! - [`Others`]: the keys beyond those that a [`Scope`] has room for, judged some at a time.
//! - [`Info`]: what INFO says of a node, the module's fields included, with its findings.
//! - [`history`]: a counter with a window, slice by slice.
//! - [`Nodes`]: a server or the primaries of a cluster for commands that run on and on. Each is asked on its own, so that
//!   one that is down keeps nothing from the others, and is connected to again by the next question:
//!
//! ```ignore
//! let mut nodes = Nodes::new(&url, access)?;
//! for Asked { server, answer, .. } in nodes.ask(Info::of) { /* the figures of a node, or why there are none */ }
//! let rows = nodes.ask(|server| rows(server, &Scope { pattern: Some("user:*"), max_keys: 1000 }));
//! ```
//!
//! Judgement is that of [`health`](crate::health). Nothing here or above has a threshold of its own.

mod info;
mod nodes;
mod others;
mod rows;

pub use info::Info;
pub use nodes::{Asked, Nodes};
pub use others::{Others, Turn};
pub use rows::{Row, Rows, Scope, history, rows};
