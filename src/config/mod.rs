//! Options, the arguments that set them at loading, and how the server is told of them.

mod arguments;
mod options;
mod register;

pub use arguments::take as take_arguments;
pub use options::{bloom_defaults, bloom_layout, counting_defaults, max_key_bytes, with_bloom};
pub use register::register;
