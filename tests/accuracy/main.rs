//! Accuracy against theory, over many seeds: fixed ones, so a run is always the same run.

mod counting;
