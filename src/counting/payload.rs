//! A counter's set as bytes, and back. What goes around it (versions, parameters, checksums) is not
//! known here.
//!
//! | representation | bytes |
//! |---|---|
//! | exact | each member as its length (u16) and its bytes, in the order they were added |
//! | sparse | the positions of the set slots, ascending, u32 each |
//! | dense | the words of the bitmap, u64 each |
//!
//! Numbers are little-endian. Whatever bytes come in, the outcome is a counter that keeps every
//! invariant or an error; what follows from the bits (the counts of the segments) is worked out anew.

use std::borrow::Cow;

use roaring::RoaringBitmap;

use crate::counting::bitmap::{Bitmap, Bits, zeroed_words};
use crate::counting::counter::{Counter, Params, Representation, State};
use crate::counting::layout::Layout;
use crate::counting::members::Members;
use crate::error::Error;
use crate::limit::SizeLimit;

/// Positions that are written as one piece: 256 KiB.
const POSITIONS_PER_PIECE: usize = 1 << 16;

impl Counter {
    /// Its set as bytes, in pieces to be stored one after the other.
    pub fn payload(&self) -> Vec<Cow<'_, [u8]>> {
        match self.state() {
            State::Exact(members) => vec![Cow::Borrowed(members.as_bytes())],
            State::Estimating(bitmap) => match bitmap.bits() {
                Bits::Dense(words) => vec![Cow::Borrowed(bytemuck::cast_slice(words))],
                Bits::Sparse(positions) => {
                    let mut positions = positions.iter();
                    let piece = |_| {
                        let piece = positions.by_ref().take(POSITIONS_PER_PIECE).flat_map(u32::to_le_bytes);
                        Cow::Owned(piece.collect())
                    };
                    (0..bitmap.counts().total().div_ceil(POSITIONS_PER_PIECE as u64)).map(piece).collect()
                }
            },
        }
    }

    /// Bytes of [`Self::payload`] in all.
    pub fn payload_bytes(&self) -> u64 {
        match self.state() {
            State::Exact(members) => members.as_bytes().len() as u64,
            State::Estimating(bitmap) => match bitmap.bits() {
                Bits::Dense(_) => bitmap.layout().num_bytes(),
                Bits::Sparse(_) => bitmap.counts().total() * size_of::<u32>() as u64,
            },
        }
    }

    /// The counter that gave this payload.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is; [`Error::Corrupt`] when `precision` is not what the
    /// parameters lead to or the payload is not one of this representation; those of `limit`,
    /// [`Error::OutOfMemory`].
    pub fn from_payload(
        params: Params,
        precision: u32,
        representation: Representation,
        payload: &[u8],
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        let layout = checked_layout(&params, precision)?;
        let state = match representation {
            Representation::Exact => {
                // Without a limit a counter is never exact, not even while empty.
                if params.exact_limit == 0 {
                    return Err(Error::corrupt("representation", "an estimate", representation));
                }
                limit.check(Self::STRUCT_BYTES, payload.len() as u64)?;
                State::Exact(Members::from_bytes(payload, params.exact_limit, params.seed)?)
            }
            Representation::Sparse => {
                let positions = positions_from_bytes(payload, layout)?;
                State::Estimating(Bitmap::from_positions(layout, positions, Self::STRUCT_BYTES, limit)?)
            }
            Representation::Dense => {
                if payload.len() as u64 != layout.num_bytes() {
                    return Err(Error::corrupt("bitmap bytes", layout.num_bytes(), payload.len()));
                }
                let mut loading = Self::loading_dense(params, precision, limit)?;
                loading.write_bytes(0, payload)?;
                return Ok(loading.finish());
            }
        };
        Ok(Self::from_state(params, layout, state))
    }

    /// Begins to load a dense counter piece by piece. The bitmap is allocated at once, for which `limit`
    /// and the allocator are asked.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Corrupt`] as [`Self::from_payload`]; those of `limit`,
    /// [`Error::OutOfMemory`].
    pub fn loading_dense(params: Params, precision: u32, limit: &impl SizeLimit) -> Result<DenseLoading, Error> {
        let layout = checked_layout(&params, precision)?;
        limit.check(Self::STRUCT_BYTES, layout.num_bytes())?;
        Ok(DenseLoading { params, layout, words: zeroed_words(layout)? })
    }
}

/// The layout of `precision`, which must be what the parameters lead to.
fn checked_layout(params: &Params, precision: u32) -> Result<Layout, Error> {
    let layout = params.layout()?;
    if layout.precision() != precision {
        return Err(Error::corrupt("precision", layout.precision(), precision));
    }
    Ok(layout)
}

/// Reads ascending positions.
fn positions_from_bytes(bytes: &[u8], layout: Layout) -> Result<RoaringBitmap, Error> {
    let (positions, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(Error::corrupt("position bytes", "a multiple of 4", bytes.len()));
    }
    let mut bitmap = RoaringBitmap::new();
    for &position in positions {
        let position = u32::from_le_bytes(position);
        if u64::from(position) >= layout.num_bits() {
            return Err(Error::corrupt("position", format!("below {}", layout.num_bits()), position));
        }
        if bitmap.try_push(position).is_err() {
            return Err(Error::corrupt("position", "above the one before it", position));
        }
    }
    Ok(bitmap)
}

/// A dense counter of which not all bytes are there yet.
#[derive(Debug)]
pub struct DenseLoading {
    params: Params,
    layout: Layout,
    words: Box<[u64]>,
}

impl DenseLoading {
    /// The parameters it is loaded with.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Bytes of the whole bitmap.
    pub fn total_bytes(&self) -> u64 {
        self.layout.num_bytes()
    }

    /// Bytes of memory it takes in all.
    pub fn size_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.total_bytes()
    }

    /// Writes some bytes of the bitmap at `offset`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they reach beyond the bitmap; nothing was written then.
    pub fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let total = self.total_bytes();
        let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= total);
        let Some(end) = end else {
            let got = format!("{} from {offset}", bytes.len());
            return Err(Error::corrupt("bitmap bytes", format!("at most {total} in all"), got));
        };
        // In range: the bitmap's length is a usize.
        bytemuck::cast_slice_mut(&mut self.words)[offset as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    /// The bytes there are so far, the others being zero.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    /// The counter, once all bytes are there (which the caller knows).
    pub fn finish(self) -> Counter {
        let bitmap = Bitmap::from_words(self.layout, self.words);
        Counter::from_state(self.params, self.layout, State::Estimating(bitmap))
    }
}
