//! The examples of docs/clients.md, as build.rs found them there.

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

#[test]
fn the_examples_run() {
    examples().expect("every call of the examples");
}
