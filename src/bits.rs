//! Bits over words: set, get, count. No hashing, no formulas.
