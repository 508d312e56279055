//! Options, the arguments that set them at loading, and their registration with the server.

mod arguments;
mod options;
mod register;

pub use arguments::take as take_arguments;
pub use options::{bloom_defaults, bloom_layout, counting_defaults, max_key_bytes, with_bloom};
pub use register::register;
