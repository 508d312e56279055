//! Options: names, ranges, defaults, and the arguments that set them at loading.

mod arguments;
mod options;

pub use arguments::take as take_arguments;
pub use options::{bloom_defaults, bloom_layout, counting_defaults, max_key_bytes, register, with_bloom};
