//! The stored properties of a counter, without its set. With a [`payload`](super::payload), which is the set, they make
//! the counter again.
//!
//! Any bytes lead to an error or to a counter that keeps every invariant. The counts of the segments follow from the
//! bits, so they are computed again.

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::held::Held;
use crate::counting::held::bitmap::{self, Bitmap, SlotTag};
use crate::counting::held::cells::Cells;
use crate::counting::held::members::Members;
use crate::counting::held::positions::POSITION_BYTES;
use crate::counting::held::ring::{self, TagRing};
use crate::counting::layout::Layout;
use crate::counting::params::{Params, Representation, Spec};
use crate::counting::windowed_set::WindowedSet;
use crate::error::Error;
use crate::size_limit::{SizeLimit, Unlimited};
use crate::window::Window;

/// The properties of a counter without its set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterForm {
    pub(crate) params: Params,
    pub(crate) layout: Layout,
    /// The lower bound of the estimate; 0 for an exact counter and for a windowed one.
    pub(crate) lower_bound: u32,
    /// The representation of the set.
    pub(crate) representation: Representation,
    /// The window, the newest slice that was reached, and the offset that converts slices to tags (`held/ring.rs`).
    pub(crate) window: Option<(Window, u64, u8)>,
}

impl CounterForm {
    /// The stored properties of `counter`.
    pub(crate) fn of(counter: &Counter) -> Self {
        CounterForm {
            params: *counter.params(),
            layout: counter.layout(),
            lower_bound: if counter.is_exact() { 0 } else { counter.lower_bound() },
            representation: counter.representation(),
            window: counter.ring().map(|ring| (ring.window, ring.newest(), ring.offset())),
        }
    }

    fn ring(&self) -> Option<TagRing> {
        self.window.map(|(window, newest, offset)| TagRing::with_offset(window, newest, offset))
    }

    /// Checks stored fields.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is out of range; [`Error::Corrupt`] when another field is wrong.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        self.params.validate()?;
        // The largest exact count that any counter can have had, plus one.
        let most = Params::MAX_EXACT_LIMIT + 1;
        Error::check_field(self.lower_bound <= most, "lower bound", format_args!("at most {most}"), self.lower_bound)?;
        // A counter with an exact limit of 0 is never exact, not even while empty.
        let is_possible = self.representation != Representation::Exact || self.params.exact_limit > 0;
        Error::check_field(is_possible, "representation", "an estimate", self.representation)?;
        let Some((window, newest, offset)) = self.window else { return Ok(()) };
        ring::check(&window)?;
        let modulus = TagRing::new(window, newest).modulus();
        Error::check_field(u32::from(offset) < modulus, "offset", format_args!("below {modulus}"), offset)
    }

    /// Checks the length of a payload, and asks `limit` for the memory of the counter.
    ///
    /// # Errors
    /// [`Error::Corrupt`], and the errors of `limit`.
    pub(crate) fn check_bytes(&self, payload_bytes: u64, limit: &impl SizeLimit) -> Result<(), Error> {
        match self.ring() {
            None => self.check_set::<()>(payload_bytes, (), Counter::STRUCT_BYTES, limit),
            Some(ring) => self.check_set::<u8>(payload_bytes, ring.ages(), Counter::WINDOWED_BYTES, limit),
        }
    }

    fn check_set<T: SlotTag>(
        &self,
        payload_bytes: u64,
        ages: T::Ages,
        held_bytes: u64,
        limit: &impl SizeLimit,
    ) -> Result<(), Error> {
        let CounterForm { params, layout, representation, .. } = *self;
        let dense_bytes = T::Cells::num_bytes(layout, ages);
        let record_bytes = (POSITION_BYTES + T::BYTES) as u64;
        let (least_bytes, most_bytes) = match representation {
            Representation::Exact => (0, params.room().arena_bytes() + T::BYTES as u64 * u64::from(params.exact_limit)),
            // A bitmap with more positions would have been stored dense.
            Representation::Sparse => (0, bitmap::most_position_bytes::<T>(layout, ages)),
            Representation::Dense => (dense_bytes, dense_bytes),
        };
        let is_whole = representation != Representation::Sparse || payload_bytes.is_multiple_of(record_bytes);
        let is_valid = (least_bytes..=most_bytes).contains(&payload_bytes) && is_whole;
        Error::check_field(is_valid, "payload length", format_args!("at most {most_bytes} bytes"), payload_bytes)?;
        let slots_bytes = |bytes| Bitmap::<T>::STRUCT_BYTES + bytes;
        let heap_bytes = match representation {
            Representation::Exact => Members::<T>::bytes_of_read(payload_bytes, params.room()),
            Representation::Sparse => slots_bytes(bitmap::heap_bytes::<T>(layout, payload_bytes / record_bytes, ages)),
            Representation::Dense => slots_bytes(T::Cells::heap_bytes(layout, ages)),
        };
        limit.check(held_bytes, heap_bytes)
    }

    /// Builds the counter from these properties and its payload. The caller has checked the memory limit with
    /// [`Self::check_bytes`]. On error the payload is unchanged.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the payload does not fit this form; [`Error::OutOfMemory`].
    pub(crate) fn load(&self, payload: &mut Vec<u8>) -> Result<Counter, Error> {
        self.check_bytes(payload.len() as u64, &Unlimited)?;
        let CounterForm { params, layout, lower_bound, representation, .. } = *self;
        let spec = Spec { params, layout };
        let contents = match self.ring() {
            None => {
                let mut held = Held::from_payload(representation, payload, &spec, ())?;
                if let Held::Estimating(bitmap) = &mut held {
                    // A member marks a slot, and a slot is never freed.
                    let is_possible = lower_bound == 0 || bitmap.set_bits() > 0;
                    Error::check_field(is_possible, "lower bound", "0 without a set bit", lower_bound)?;
                    bitmap.raise_lower_bound(lower_bound);
                }
                Contents::Plain(held)
            }
            Some(ring) => {
                let held = Held::from_payload(representation, payload, &spec, ring.ages())?;
                Contents::Windowed(Box::new(WindowedSet { ring, held }))
            }
        };
        Ok(Counter::with_contents(params, layout, contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::counter::tests::{SIZES, counter, layout, params, words};
    use crate::counting::payload::tests::encode;
    use crate::error::Parameter;
    use crate::size_limit::{MaxBytes, Unlimited};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const REPRESENTATIONS: [Representation; 3] = [Representation::Exact, Representation::Sparse, Representation::Dense];

    fn form(params: Params, layout: Layout, lower_bound: u32, representation: Representation) -> CounterForm {
        CounterForm { params, layout, lower_bound, representation, window: None }
    }

    fn load(form: CounterForm, payload: &[u8]) -> Result<Counter, Error> {
        form.validate()?;
        form.load(&mut payload.to_vec())
    }

    fn decode(params: Params, representation: Representation, payload: &[u8]) -> Result<Counter, Error> {
        load(form(params, params.layout()?, 0, representation), payload)
    }

    #[test]
    fn corrupt_payloads_are_rejected() {
        let params = params(SIZES[2], 2);
        let dense = vec![0; 4608];
        let cases: [(Representation, &[u8], &str); 9] = [
            (Representation::Exact, b"\x02a", "members"),
            (Representation::Exact, b"\x01a\x01a", "members"),
            (Representation::Exact, b"\x01a\x01b\x01c", "members"),
            (Representation::Sparse, b"\0\0\0", "payload length"),
            (Representation::Sparse, b"\x01\0\0\0\x01\0\0\0", "position"),
            (Representation::Sparse, b"\x02\0\0\0\x01\0\0\0", "position"),
            (Representation::Sparse, b"\0\x90\0\0", "position"),
            (Representation::Dense, &dense[1..], "payload length"),
            (Representation::Dense, b"", "payload length"),
        ];
        for (representation, payload, name) in cases {
            let error = decode(params, representation, payload).unwrap_err();
            assert!(matches!(error, Error::Corrupt { field, .. } if field == name), "{error}");
        }
        let never_exact = Params { exact_limit: 0, exact_bytes: 16 << 10, ..params };
        assert!(matches!(decode(never_exact, Representation::Exact, b""), Err(Error::Corrupt { .. })));
        let zero = Params { capacity: 0, ..params };
        let wrong = load(form(zero, layout(11, 10), 0, Representation::Sparse), b"");
        assert!(matches!(wrong, Err(Error::OutOfRange { parameter: Parameter::Capacity, .. })));
    }

    #[test]
    fn lower_bounds_that_no_exact_count_led_to_are_rejected() {
        let (params, layout) = (params(SIZES[2], 250), layout(14, 10));
        let load = |lower_bound, representation, payload: &[u8]| {
            load(form(params, layout, lower_bound, representation), payload)
        };
        let dense = vec![0; layout.num_bytes() as usize];
        for (lower_bound, representation, payload) in [
            (65_538, Representation::Sparse, &b"\x01\0\0\0"[..]),
            (u32::MAX, Representation::Dense, &dense),
            // Members that set no bit.
            (1, Representation::Sparse, b""),
            (116, Representation::Dense, &dense),
        ] {
            let rejected = load(lower_bound, representation, payload);
            assert!(matches!(rejected, Err(Error::Corrupt { field: "lower bound", .. })), "{rejected:?}");
        }
        let loaded = load(65_537, Representation::Sparse, b"\x01\0\0\0").unwrap();
        assert_eq!((loaded.count(), loaded.lower_bound()), (65_537, 65_537));
    }

    #[test]
    fn there_are_as_many_positions_as_are_held() {
        let read = |len: u32| {
            let positions: Vec<u8> = (0..len).flat_map(|i| (i * 7).to_le_bytes()).collect();
            decode(params(SIZES[2], 250), Representation::Sparse, &positions)
        };
        let all = read(1152).unwrap();
        assert_eq!((all.representation(), all.set_bits()), (Representation::Sparse, 1152));
        assert!(matches!(read(1153), Err(Error::Corrupt { field: "payload length", .. })));
    }

    #[test]
    fn the_limit_is_asked_for_what_it_will_take() {
        let (params, layout) = (params(SIZES[2], 250), layout(22, 10));
        let check =
            |representation, bytes, limit| form(params, layout, 0, representation).check_bytes(bytes, &MaxBytes(limit));
        assert_eq!(check(Representation::Sparse, 4000, 1 << 14), Ok(()));
        // In memory a position takes at least a byte and a sixteenth; in the payload it takes four bytes.
        for bytes in [1 << 17, layout.num_bytes() / 2] {
            assert!(matches!(check(Representation::Sparse, bytes, bytes / 4), Err(Error::TooLarge { .. })));
        }
        assert!(matches!(check(Representation::Dense, layout.num_bytes(), 1 << 19), Err(Error::TooLarge { .. })));
        for bytes in [0, layout.num_bytes() - 1, layout.num_bytes() + 1] {
            let rejected = check(Representation::Dense, bytes, u64::MAX);
            assert!(matches!(rejected, Err(Error::Corrupt { field: "payload length", .. })));
        }
    }

    proptest! {
        #[test]
        fn decode_of_encode_is_the_same(
            numbers in vec(any::<u64>(), 0..1500),
            size in 0..SIZES.len(),
            exact_limit in prop_oneof![Just(0u32), Just(250), Just(5000)],
        ) {
            let original = counter(params(SIZES[size], exact_limit), numbers);
            let payload = encode(&original);
            prop_assert_eq!(payload.len() as u64, original.payload_bytes());
            let read = load(CounterForm::of(&original), &payload).unwrap();
            prop_assert_eq!(encode(&read), &payload[..]);
            prop_assert_eq!(read.representation(), original.representation());
            prop_assert_eq!(read.count(), original.count());
            prop_assert_eq!(words(&read), words(&original));
        }

        #[test]
        fn any_bytes_are_read_or_rejected(
            bytes in vec(prop_oneof![Just(0u8), 0u8..8, any::<u8>()], 0..400),
            whole in any::<bool>(),
            size in 0usize..4,
            representation in 0usize..3,
        ) {
            let params = params(SIZES[size], 250);
            let mut bytes = bytes;
            if whole {
                // A dense payload of the right length, so that the check of the length passes.
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
