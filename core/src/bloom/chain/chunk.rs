//! What is expected of a chunk of hashes, and the outcomes of its look-up and of its addition.

use crate::hash::{CHUNK, Marks};

/// The expected answer for most items of a chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// Most items are absent.
    Absent,
    /// Most items are present.
    Present,
}

/// The outcome of the first step of a look-up of a chunk.
#[derive(Debug)]
pub struct Screened {
    /// The mask of the hashes that were found.
    pub(in crate::bloom) found: Marks,
    /// The mask of the hashes that are undecided. Only the layout `lines` leaves some.
    pub(in crate::bloom) open: Marks,
    /// The number of sub-filters, the oldest, that may contain undecided hashes.
    pub(in crate::bloom) num_oldest: usize,
    /// For each undecided hash, the mask of those sub-filters that may contain it. Not used for a single one.
    pub(in crate::bloom) candidates: [u8; CHUNK],
}

impl Screened {
    /// A look-up that left nothing undecided.
    pub(in crate::bloom) fn found(found: Marks) -> Self {
        Screened { found, open: 0, candidates: [0; CHUNK], num_oldest: 0 }
    }
}

/// The outcome of adding a chunk of hashes to a chain.
pub(in crate::bloom) struct AddedChunk {
    /// The mask of the items that were new.
    pub(in crate::bloom) new: Marks,
    /// The number of hashes that were handled.
    pub(in crate::bloom) handled: usize,
}
