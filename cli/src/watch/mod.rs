//! Asks servers for their state and for their filters and counters, and judges the answers. All monitoring commands use
//! it.
//!
//! - [`rows`]: a [`Row`] for each key, of a server or a cluster, with its findings.
//! - [`Others`]: the keys beyond those that a [`Scope`] has room for, judged some at a time.
//! - [`Info`]: the fields of INFO for a node, with those of the module, and the findings about the node;
//!   [`server_row`]: these findings as a [`Row`].
//! - [`history`]: a counter with a window, slice by slice.
//! - [`Nodes`]: a server, or the primaries of a cluster, for commands that run for a long time. Each node is asked on
//!   its own, so a node that is down does not delay the others, and the next question connects to it again:
//!
//! ```ignore
//! let mut nodes = Nodes::new(&url, access)?;
//! for Asked { server, answer, .. } in nodes.ask(Info::new) { /* the figures of a node, or why there are none */ }
//! let rows = nodes.ask(|server| rows(server, &Scope { pattern: Some("user:*"), max_keys: 1000 }));
//! ```
//!
//! [`health`](crate::health) makes all judgements. This module and the commands that use it have no thresholds of their
//! own.

mod info;
mod nodes;
mod others;
mod rows;

pub use info::{Info, server_row};
pub use nodes::{Asked, Nodes};
pub use others::{Others, Turn};
pub use rows::{Row, Rows, SERVER, Scope, history, rows};
