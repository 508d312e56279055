//! The module's options, and the arguments that set them when the module is loaded.

mod arguments;
mod options;
mod register;

pub use arguments::take as take_arguments;
pub use options::{Commands, auto_create, bloom_defaults, bloom_layout, commands, counting_defaults, max_key_bytes};
pub use register::register;
