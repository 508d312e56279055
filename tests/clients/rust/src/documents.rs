//! Runs the examples of docs/clients.md, which build.rs extracted.

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

#[test]
fn the_examples_run() {
    examples().expect("every call of the examples");
}
