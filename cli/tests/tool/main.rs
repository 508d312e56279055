//! Runs the tool as users do, and checks its output, its files and its exit codes.

mod build;
mod check;
mod document;
mod ends;
mod failures;
mod install;
mod man;
mod plan;
mod random_plans;
mod run;
