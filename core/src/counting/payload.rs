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

use crate::counting::counter::{Counter, Params, Representation, State};
use crate::counting::layout::Layout;
use crate::counting::members::Members;
use crate::counting::slots::{Bitmap, Bits, zeroed_words};
use crate::error::{Error, Parameter};
use crate::size_limit::SizeLimit;

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

    /// The precision that the parameters lead to.
    pub fn precision(&self) -> u32 {
        self.layout.precision()
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut words = zeroed_words(self.layout)?;
        words.copy_from_slice(&self.words);
        Ok(DenseLoading { words, ..*self })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::counter::tests::{SIZES, counter, params, words};
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const REPRESENTATIONS: [Representation; 3] = [Representation::Exact, Representation::Sparse, Representation::Dense];

    fn encode(counter: &Counter) -> Vec<u8> {
        counter.payload().concat()
    }

    fn decode(params: Params, representation: Representation, payload: &[u8]) -> Result<Counter, Error> {
        let precision = params.layout().unwrap().precision();
        Counter::from_payload(params, precision, representation, payload, &Unlimited)
    }

    #[test]
    fn payloads_are_pinned() {
        assert_eq!(encode(&counter(params(SIZES[2], 250), [1, 2])), b"\x06\0user:1\x06\0user:2");
        // Slots 3797 and 6760, by the program that the layout's tests speak of.
        assert_eq!(encode(&counter(params(SIZES[2], 0), [2, 1])), [0xd5, 0x0e, 0, 0, 0x68, 0x1a, 0, 0]);
    }

    #[test]
    fn a_long_sparse_payload_comes_in_pieces() {
        let many = counter(params((1_000_000_000, 0.02), 0), 0..100_000);
        assert_eq!(many.representation(), Representation::Sparse);
        assert_eq!(many.payload().len(), 2);
        assert_eq!(encode(&many).len() as u64, many.payload_bytes());
        assert_eq!(encode(&decode(*many.params(), Representation::Sparse, &encode(&many)).unwrap()), encode(&many));
    }

    #[test]
    fn corrupt_payloads_are_refused() {
        let params = params(SIZES[2], 2);
        let dense = vec![0; 4608];
        let cases: [(Representation, &[u8], &str); 9] = [
            (Representation::Exact, b"\x01", "members"),
            (Representation::Exact, b"\x01\0a\x01\0a", "members"),
            (Representation::Exact, b"\x01\0a\x01\0b\x01\0c", "members"),
            (Representation::Sparse, b"\0\0\0", "position bytes"),
            (Representation::Sparse, b"\x01\0\0\0\x01\0\0\0", "position"),
            (Representation::Sparse, b"\x02\0\0\0\x01\0\0\0", "position"),
            (Representation::Sparse, b"\0\x90\0\0", "position"),
            (Representation::Dense, &dense[1..], "bitmap bytes"),
            (Representation::Dense, b"", "bitmap bytes"),
        ];
        for (representation, payload, name) in cases {
            let error = decode(params, representation, payload).unwrap_err();
            assert!(matches!(error, Error::Corrupt { field, .. } if field == name), "{error}");
        }
        let never_exact = Params { exact_limit: 0, ..params };
        assert!(matches!(decode(never_exact, Representation::Exact, b""), Err(Error::Corrupt { .. })));
        let wrong = Counter::from_payload(params, 13, Representation::Sparse, b"", &Unlimited);
        assert!(matches!(wrong, Err(Error::Corrupt { field: "precision", .. })));
        let zero = Params { capacity: 0, ..params };
        let wrong = Counter::from_payload(zero, 11, Representation::Sparse, b"", &Unlimited);
        assert!(matches!(wrong, Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })));
    }

    #[test]
    fn too_many_positions_become_dense() {
        let positions: Vec<u8> = (0..1000u32).flat_map(|i| (i * 7).to_le_bytes()).collect();
        let read = decode(params(SIZES[2], 250), Representation::Sparse, &positions).unwrap();
        assert_eq!((read.representation(), read.set_bits()), (Representation::Dense, 1000));
    }

    #[test]
    fn loading_asks_the_limit_before_it_allocates() {
        let params = params((10_000_000_000, 0.001), 250);
        assert!(matches!(Counter::loading_dense(params, 30, &MaxBytes(1 << 20)), Err(Error::TooLarge { .. })));
        let refused = Counter::from_payload(params, 30, Representation::Dense, b"", &Unlimited);
        assert!(matches!(refused, Err(Error::Corrupt { field: "bitmap bytes", .. })));
    }

    #[test]
    fn pieces_beyond_the_bitmap_are_refused() {
        let mut loading = Counter::loading_dense(params(SIZES[2], 250), 14, &Unlimited).unwrap();
        assert_eq!(loading.total_bytes(), 4608);
        for offset in [1, 4608, u64::MAX] {
            assert!(matches!(loading.write_bytes(offset, &[1; 4608]), Err(Error::Corrupt { .. })));
        }
        assert!(loading.as_bytes().iter().all(|&byte| byte == 0));
        loading.write_bytes(4608, b"").unwrap();
        assert_eq!(loading.finish().count(), 0);
    }

    proptest! {
        #[test]
        fn decode_of_encode_is_the_same(
            numbers in vec(any::<u64>(), 0..1500),
            size in 0..SIZES.len(),
            exact_limit in prop_oneof![Just(0u32), Just(250), Just(5000)],
            piece in 1usize..3000,
        ) {
            let original = counter(params(SIZES[size], exact_limit), numbers);
            let payload = encode(&original);
            prop_assert_eq!(payload.len() as u64, original.payload_bytes());
            let read = decode(*original.params(), original.representation(), &payload).unwrap();
            prop_assert_eq!(encode(&read), &payload[..]);
            prop_assert_eq!(read.representation(), original.representation());
            prop_assert_eq!(read.count(), original.count());
            if original.representation() == Representation::Dense {
                let mut loading = Counter::loading_dense(*original.params(), original.precision(), &Unlimited).unwrap();
                for (i, bytes) in payload.chunks(piece).enumerate() {
                    loading.write_bytes((i * piece) as u64, bytes).unwrap();
                }
                prop_assert_eq!(words(&loading.finish()), words(&original));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in vec(prop_oneof![Just(0u8), 0u8..8, any::<u8>()], 0..400),
            whole in any::<bool>(),
            size in 0usize..4,
            representation in 0usize..3,
        ) {
            let params = params(SIZES[size], 250);
            let mut bytes = bytes;
            if whole {
                // A dense payload of the right length, to come past that check.
                bytes = bytes.iter().copied().cycle().take(params.layout().unwrap().num_bytes() as usize).collect();
            }
            if let Ok(mut counter) = decode(params, REPRESENTATIONS[representation], &bytes) {
                prop_assert!(counter.estimate().is_finite() && counter.estimate() >= 0.0);
                prop_assert!(!counter.standard_error().is_nan());
                counter.add(b"one more", &Unlimited).unwrap();
                let again = decode(params, counter.representation(), &encode(&counter)).unwrap();
                prop_assert_eq!(words(&again), words(&counter));
                counter.merge(&[&again], &Unlimited).unwrap();
                prop_assert!(!counter.difference(&[&again]).unwrap().estimate.is_nan());
            }
        }
    }
}
