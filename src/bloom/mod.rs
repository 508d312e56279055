//! Bloom filters.
