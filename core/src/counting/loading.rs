//! A counter out of the bytes of its [`payload`](super::payload).
//!
//! Whatever bytes come in, the outcome is a counter that keeps every invariant or an error; what follows from the
//! bits (the counts of the segments) is worked out anew.

use std::alloc;

use crate::counting::counter::{Counter, Representation, State};
use crate::counting::layout::Layout;
use crate::counting::members::Members;
use crate::counting::params::Params;
use crate::counting::payload::{POSITION_BYTES, PayloadPart};
use crate::counting::slots::{self, Bitmap, zeroed_words};
use crate::error::Error;
use crate::size_limit::SizeLimit;

impl Counter {
    /// The counter that gave this payload.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is; [`Error::Corrupt`] when the floor or the payload is none of this
    /// representation; those of `limit`, [`Error::OutOfMemory`].
    pub(crate) fn from_payload(
        params: Params,
        layout: Layout,
        floor: u32,
        representation: Representation,
        payload: &[u8],
        limit: &impl SizeLimit,
    ) -> Result<Self, Error> {
        check_floor(&params, floor)?;
        match representation {
            Representation::Exact => {
                // Without a limit a counter is never exact, not even while empty.
                if params.exact_limit == 0 {
                    return Err(Error::corrupt("representation", "an estimate", representation));
                }
                if floor != 0 {
                    return Err(Error::corrupt("floor", "0 while exact", floor));
                }
                limit.check(Self::STRUCT_BYTES, payload.len() as u64)?;
                let members = Members::from_bytes(payload, params.room(), params.seed)?;
                Ok(Self::from_state(params, layout, 0, State::Exact(members)))
            }
            Representation::Sparse => {
                if !payload.len().is_multiple_of(POSITION_BYTES) {
                    return Err(Error::corrupt("position bytes", "a multiple of 4", payload.len()));
                }
                let mut loading = Self::loading_sparse(params, layout, floor, payload.len() as u64, limit)?;
                loading.push(payload)?;
                loading.finish()
            }
            Representation::Dense => {
                if payload.len() as u64 != layout.num_bytes() {
                    return Err(Error::corrupt("bitmap bytes", layout.num_bytes(), payload.len()));
                }
                let mut loading = Self::loading_dense(params, layout, floor, limit)?;
                loading.write_bytes(0, payload)?;
                Ok(loading.finish())
            }
        }
    }

    /// Begins to load a sparse counter piece by piece, of so many bytes in all. `limit` is asked for the memory that it
    /// will take.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is; [`Error::Corrupt`] when the floor is; those of `limit`.
    pub(crate) fn loading_sparse(
        params: Params,
        layout: Layout,
        floor: u32,
        total_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<SparseLoading, Error> {
        check_floor(&params, floor)?;
        limit.check(Self::STRUCT_BYTES, slots::heap_bytes(layout, total_bytes / POSITION_BYTES as u64))?;
        Ok(SparseLoading { params, floor, bitmap: Bitmap::new(layout), last: None, cut: Vec::new() })
    }

    /// Begins to load a dense counter piece by piece. The bitmap is allocated at once, for which `limit`
    /// and the allocator are asked.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is; [`Error::Corrupt`] when the floor is; those of `limit`,
    /// [`Error::OutOfMemory`].
    pub(crate) fn loading_dense(
        params: Params,
        layout: Layout,
        floor: u32,
        limit: &impl SizeLimit,
    ) -> Result<DenseLoading, Error> {
        check_floor(&params, floor)?;
        limit.check(Self::STRUCT_BYTES, slots::dense_bytes(layout))?;
        Ok(DenseLoading { params, layout, floor, words: zeroed_words(layout)? })
    }
}

/// Checks the parameters, and a floor against the most that a counter can have counted exactly.
fn check_floor(params: &Params, floor: u32) -> Result<(), Error> {
    params.validate()?;
    if floor > Params::MAX_EXACT_LIMIT + 1 {
        return Err(Error::corrupt("floor", format_args!("at most {}", Params::MAX_EXACT_LIMIT + 1), floor));
    }
    Ok(())
}

/// A sparse counter of which not all positions are there yet.
#[derive(Debug)]
pub(crate) struct SparseLoading {
    params: Params,
    floor: u32,
    /// The positions so far; sparse, however many they are.
    bitmap: Bitmap,
    /// The last of them.
    last: Option<u32>,
    /// The first bytes of a position whose others have not come yet.
    cut: Vec<u8>,
}

impl SparseLoading {
    /// Takes the next bytes of the payload, which may end within a position.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when a position is beyond the bitmap or not above the one before it; nothing was taken then.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let missing = (POSITION_BYTES - self.cut.len()) % POSITION_BYTES;
        let (head, body) = bytes.split_at(missing.min(bytes.len()));
        let joined = [&self.cut, head].concat();
        let (completed, cut) = joined.as_chunks();
        let (whole, rest) = body.as_chunks();
        let positions = completed.iter().chain(whole).map(|&position| u32::from_le_bytes(position));

        let last = positions.clone().try_fold(self.last, |last, position| self.follows(last, position).map(Some))?;
        self.bitmap.append(positions);
        self.last = last;
        // What is left of both: without a completed position there is no body.
        self.cut = [cut, rest].concat();
        Ok(())
    }

    /// `position`, if it may come after `last`.
    fn follows(&self, last: Option<u32>, position: u32) -> Result<u32, Error> {
        let num_bits = self.bitmap.layout().num_bits();
        if u64::from(position) >= num_bits {
            return Err(Error::corrupt("position", format_args!("below {num_bits}"), position));
        }
        if last.is_some_and(|last| last >= position) {
            return Err(Error::corrupt("position", "above the one before it", position));
        }
        Ok(position)
    }

    /// Part number `index` of the payload so far, `None` after the last.
    pub(crate) fn payload_part(&self, index: usize) -> Option<PayloadPart<'_>> {
        let follows_the_last = || index.checked_sub(1).is_none_or(|last| self.bitmap.payload_part(last).is_some());
        self.bitmap.payload_part(index).or_else(|| follows_the_last().then_some(PayloadPart::Bytes(&self.cut)))
    }

    /// Calls `visit` with the layout of each heap allocation, but for the few bytes of a cut position.
    pub(crate) fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        self.bitmap.heap_layouts(visit);
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        Ok(SparseLoading { bitmap: self.bitmap.try_clone()?, cut: self.cut.clone(), ..*self })
    }

    /// The counter, once all bytes are there (which the caller knows). It is dense if its positions are more than a
    /// counter keeps sparse. An empty one is left behind.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing was taken then.
    pub(crate) fn finish(&mut self) -> Result<Counter, Error> {
        self.bitmap.settle()?;
        let layout = self.bitmap.layout();
        let bitmap = std::mem::replace(&mut self.bitmap, Bitmap::new(layout));
        Ok(Counter::from_state(self.params, layout, self.floor, State::Estimating(bitmap)))
    }
}

/// A dense counter of which not all bytes are there yet.
#[derive(Debug)]
pub(crate) struct DenseLoading {
    params: Params,
    layout: Layout,
    floor: u32,
    words: Box<[u64]>,
}

impl DenseLoading {
    /// A copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn try_clone(&self) -> Result<Self, Error> {
        let mut words = zeroed_words(self.layout)?;
        words.copy_from_slice(&self.words);
        Ok(DenseLoading { words, ..*self })
    }

    /// Bytes of the whole bitmap.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.layout.num_bytes()
    }

    /// Writes some bytes of the bitmap at `offset`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they reach beyond the bitmap; nothing was written then.
    pub(crate) fn write_bytes(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
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
    pub(crate) fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    /// The counter, once all bytes are there (which the caller knows).
    pub(crate) fn finish(self) -> Counter {
        let bitmap = Bitmap::from_words(self.layout, self.words);
        Counter::from_state(self.params, self.layout, self.floor, State::Estimating(bitmap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::counter::Shaped;
    use crate::counting::counter::tests::{SIZES, counter, layout, params, words};
    use crate::counting::payload::tests::{encode, many};
    use crate::error::Parameter;
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const REPRESENTATIONS: [Representation; 3] = [Representation::Exact, Representation::Sparse, Representation::Dense];

    fn decode(params: Params, representation: Representation, payload: &[u8]) -> Result<Counter, Error> {
        Counter::from_payload(params, params.layout().unwrap(), 0, representation, payload, &Unlimited)
    }

    #[test]
    fn corrupt_payloads_are_refused() {
        let params = params(SIZES[2], 2);
        let dense = vec![0; 4608];
        let cases: [(Representation, &[u8], &str); 9] = [
            (Representation::Exact, b"\x02a", "members"),
            (Representation::Exact, b"\x01a\x01a", "members"),
            (Representation::Exact, b"\x01a\x01b\x01c", "members"),
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
        let never_exact = Params { exact_limit: 0, exact_bytes: 16 << 10, ..params };
        assert!(matches!(decode(never_exact, Representation::Exact, b""), Err(Error::Corrupt { .. })));
        let zero = Params { capacity: 0, ..params };
        let wrong = Counter::from_payload(zero, layout(11, 10), 0, Representation::Sparse, b"", &Unlimited);
        assert!(matches!(wrong, Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })));
    }

    #[test]
    fn floors_that_no_exact_count_led_to_are_refused() {
        let (params, layout) = (params(SIZES[2], 250), layout(14, 10));
        let load = |floor, representation, payload: &[u8]| {
            Counter::from_payload(params, layout, floor, representation, payload, &Unlimited)
        };
        let dense = vec![0; layout.num_bytes() as usize];
        for (floor, representation, payload) in [
            (1, Representation::Exact, &b"\x01a"[..]),
            (65_538, Representation::Sparse, b"\x01\0\0\0"),
            (u32::MAX, Representation::Dense, &dense),
        ] {
            let refused = load(floor, representation, payload);
            assert!(matches!(refused, Err(Error::Corrupt { field: "floor", .. })), "{refused:?}");
        }
        let loaded = load(65_537, Representation::Sparse, b"\x01\0\0\0").unwrap();
        assert_eq!((loaded.count(), loaded.floor()), (65_537, 65_537));
    }

    #[test]
    fn too_many_positions_become_dense() {
        let positions: Vec<u8> = (0..1000u32).flat_map(|i| (i * 7).to_le_bytes()).collect();
        let read = decode(params(SIZES[2], 250), Representation::Sparse, &positions).unwrap();
        assert_eq!((read.representation(), read.set_bits()), (Representation::Dense, 1000));
    }

    #[test]
    fn a_bad_position_is_refused_when_it_comes() {
        let params = params(SIZES[2], 250);
        let mut loading = Counter::loading_sparse(params, layout(14, 10), 0, 4 * 4, &Unlimited).unwrap();
        let position = |position: u32| position.to_le_bytes();
        loading.push(&[position(7), position(9)].concat()).unwrap();
        for bad in [[position(8), position(10)], [position(10), position(36_864)], [position(9), position(10)]] {
            let error = loading.push(&bad.concat()).unwrap_err();
            assert!(matches!(error, Error::Corrupt { field: "position", .. }), "{error}");
        }
        // Nothing of them was taken.
        loading.push(&[position(10), position(36_863)].concat()).unwrap();
        assert_eq!(encode(&loading.finish().unwrap()), [7, 9, 10, 36_863].map(position).concat());
    }

    #[test]
    fn what_arrived_of_a_sparse_counter_is_its_payload_so_far() {
        let payload = encode(&many());
        let mut loading =
            Counter::loading_sparse(*many().params(), many().layout(), 0, payload.len() as u64, &Unlimited).unwrap();
        let mut arrived = 0;
        // A part is 2^18 bytes.
        for end in [0, 1, 3, 4, 9, 10, (1 << 18) - 1, 1 << 18, (1 << 18) + 2, (1 << 18) + 5, payload.len()] {
            loading.push(&payload[arrived..end]).unwrap();
            arrived = end;
            let parts: Vec<_> = (0..).map_while(|index| loading.payload_part(index)).collect();
            let read: Vec<_> = parts.iter().map(|part| part.read(0, part.num_bytes())).collect();
            assert!(read.concat() == payload[..end], "{end}");
            let mut copy = loading.try_clone().unwrap();
            copy.push(&payload[end..]).unwrap();
            assert!(encode(&copy.finish().unwrap()) == payload);
        }
    }

    #[test]
    fn loading_asks_the_limit_before_it_allocates() {
        let (params, layout) = (params(SIZES[2], 250), layout(22, 10));
        // What is allowed is what it will take, sparse or not.
        let few = Counter::loading_sparse(params, layout, 0, 4000, &MaxBytes(1 << 17));
        assert!(few.is_ok_and(|mut few| few.finish().is_ok()));
        for bytes in [1 << 17, 1 << 19] {
            let many = Counter::loading_sparse(params, layout, 0, bytes, &MaxBytes(bytes + 1000));
            assert!(matches!(many, Err(Error::TooLarge { .. })));
        }
        assert!(matches!(Counter::loading_dense(params, layout, 0, &MaxBytes(1 << 19)), Err(Error::TooLarge { .. })));
        let refused = Counter::from_payload(params, layout, 0, Representation::Dense, b"", &Unlimited);
        assert!(matches!(refused, Err(Error::Corrupt { field: "bitmap bytes", .. })));
    }

    #[test]
    fn pieces_beyond_the_bitmap_are_refused() {
        let mut loading = Counter::loading_dense(params(SIZES[2], 250), layout(14, 10), 0, &Unlimited).unwrap();
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
            let (params, layout, floor) = (*original.params(), original.layout(), original.floor());
            let floor = if original.is_exact() { 0 } else { floor };
            let read =
                Counter::from_payload(params, layout, floor, original.representation(), &payload, &Unlimited).unwrap();
            prop_assert_eq!(encode(&read), &payload[..]);
            prop_assert_eq!(read.representation(), original.representation());
            prop_assert_eq!(read.count(), original.count());
            if original.representation() == Representation::Dense {
                let mut loading = Counter::loading_dense(*original.params(), original.layout(), original.floor(), &Unlimited).unwrap();
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
