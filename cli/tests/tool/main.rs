//! The tool, run as people run it: what it prints, writes and ends with.

mod build;
mod check;
mod document;
mod ends;
mod envelope;
mod failures;
mod install;
mod man;
mod plan;
mod run;
