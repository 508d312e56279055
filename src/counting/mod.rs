//! Counters of distinct members.
