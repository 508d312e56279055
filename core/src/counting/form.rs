//! The stored properties of a counter, such as its parameters and window, without its members. The members or their
//! bitmap are stored as a [`payload`](super::payload). Loading needs both.
//!
//! Loading any bytes gives an error or a valid counter. The memory of the counter is known before its payload is read:
//! from the number of set bits in each segment of the bitmap, or from the length of the payload.

use crate::counting::counter::Counter;
use crate::counting::held::Held;
use crate::counting::held::members::Members;
use crate::counting::held::ring::{Ages, TagRing};
use crate::counting::held::slots::bytes_of_counts;
use crate::counting::layout::SegmentCounts;
use crate::counting::params::{Params, Spec};
use crate::counting::payload::{decode, most_bytes};
use crate::error::Error;
use crate::size_limit::SizeLimit;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterForm {
    pub(crate) params: Params,
    /// A lower bound of the number of members; 0 for an exact counter and for a windowed counter.
    pub(crate) lower_bound: u32,
    /// The number of set bits in each segment of the bitmap; `None` for an exact counter.
    pub(crate) counts: Option<SegmentCounts>,
    /// The window, its newest slice, and the numbering of its slices; `None` without a window.
    pub(crate) ring: Option<TagRing>,
}

impl CounterForm {
    pub(crate) fn of(counter: &Counter) -> Self {
        CounterForm {
            params: *counter.params(),
            lower_bound: if counter.is_exact() { 0 } else { counter.lower_bound() },
            counts: counter.counts(),
            ring: counter.ring().copied(),
        }
    }

    /// Checks stored fields. The caller has checked that `counts` has no more entries than the bitmap has segments.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a parameter is out of range, and [`Error::Corrupt`] if another field is wrong.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let layout = self.params.layout()?;
        // A counter has at most this number of members when it stops being exact.
        let most = Params::MAX_EXACT_LIMIT + 1;
        Error::check_field(self.lower_bound <= most, "lower bound", format_args!("at most {most}"), self.lower_bound)?;
        // A counter with an exact limit of 0 is never exact, not even while empty.
        let is_possible = self.counts.is_some() || self.params.exact_limit > 0;
        Error::check_field(is_possible, "representation", "an estimate", "exact")?;
        if let Some(counts) = self.counts {
            let most = (0..layout.num_segments()).map(|segment| counts.get(segment)).max().unwrap_or(0);
            Error::check_field(
                most <= layout.slots(),
                "marked slots",
                format_args!("at most {}", layout.slots()),
                most,
            )?;
            // A counter without members is exact, unless its exact limit is 0.
            let is_possible = counts.total() > 0 || self.params.exact_limit == 0;
            Error::check_field(is_possible, "representation", "exact, without a marked slot", "an estimate")?;
            // A counter with members has marked slots.
            let is_possible = self.lower_bound == 0 || counts.total() > 0;
            Error::check_field(is_possible, "lower bound", "0 without a marked slot", self.lower_bound)?;
        }
        Ok(())
    }

    /// Checks the length of a payload, and asks `limit` for the memory of the counter.
    ///
    /// # Errors
    /// [`Error::Corrupt`], and the errors of `limit`.
    pub(crate) fn check_bytes(&self, payload_bytes: u64, limit: &impl SizeLimit) -> Result<(), Error> {
        let (Spec { params, layout }, room) = (Spec::new(self.params)?, self.params.room());
        let ages = self.ages();
        let most = match &self.counts {
            Some(counts) => most_bytes(layout, counts, ages),
            None => room.arena_bytes() + ages.tag_bytes() as u64 * (1 + u64::from(params.exact_limit)),
        };
        let is_possible = payload_bytes <= most;
        Error::check_field(is_possible, "payload length", format_args!("at most {most} bytes"), payload_bytes)?;
        let heap_bytes = match &self.counts {
            Some(counts) => bytes_of_counts(layout, counts, ages),
            None => Members::bytes_of_read(payload_bytes, room),
        };
        limit.check(Counter::own_bytes(ages.has_tags()), heap_bytes)
    }

    fn ages(&self) -> Ages {
        self.ring.map_or(Ages::PLAIN, |ring| ring.ages())
    }

    /// Builds the counter from these properties and its payload. The caller has called [`Self::check_bytes`] before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the payload contradicts these properties, and [`Error::OutOfMemory`].
    pub(crate) fn load(&self, payload: &[u8]) -> Result<Counter, Error> {
        let spec = Spec::new(self.params)?;
        let held = match self.counts {
            None => Held::Exact(Members::from_bytes(payload, spec.params.room(), self.ages())?),
            Some(counts) => {
                let mut slots = decode(payload, spec.layout, counts, self.ages())?;
                slots.raise_lower_bound(self.lower_bound);
                Held::Estimating(Box::new(slots))
            }
        };
        Ok(Counter::holding(spec, held, self.ring))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::counter::tests::{RATES, counter, params, words};
    use crate::counting::payload::tests::encode;
    use crate::error::Parameter;
    use crate::live::Value;
    use crate::size_limit::MaxBytes;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn form(params: Params, lower_bound: u32, counts: Option<&[u64]>) -> CounterForm {
        let counts = counts.map(|all| {
            let mut counts = SegmentCounts::default();
            all.iter().enumerate().for_each(|(segment, &count)| counts.add(segment, count));
            counts
        });
        CounterForm { params, lower_bound, counts, ring: None }
    }

    fn load(form: CounterForm, payload: &[u8]) -> Result<Counter, Error> {
        form.validate()?;
        form.load(payload)
    }

    #[test]
    fn corrupt_payloads_are_rejected() {
        // Each segment has 256 slots, whose bits take 32 bytes.
        let params = params(RATES[0], 2);
        let bits = [0x55; 32];
        type Case<'a> = (Option<&'a [u64]>, &'a [u8], &'a str);
        let cases: [Case<'_>; 12] = [
            (None, b"\x02a", "members"),
            (None, b"\x01a\x01a", "members"),
            (None, b"\x01a\x01b\x01c", "members"),
            (Some(&[1]), b"", "coded payload"),
            // This Golomb-Rice code has ones up to the end of the bytes, and no zero after them.
            (Some(&[2]), &[0, 0xff, 0xff], "coded payload"),
            (Some(&[255]), b"", "coded payload"),
            (Some(&[1]), &[0; 2], "segments"),
            (Some(&[128]), &bits[1..], "segments"),
            (Some(&[127]), &bits, "marked slots"),
            (Some(&[129]), &bits, "marked slots"),
            (Some(&[256]), b"a", "segments"),
            (Some(&[257]), b"", "marked slots"),
        ];
        for (counts, payload, name) in cases {
            let error = load(form(params, 0, counts), payload).unwrap_err();
            assert!(matches!(error, Error::Corrupt { field, .. } if field == name), "{error}, not {name}");
        }
        assert_eq!(load(form(params, 0, Some(&[128])), &bits).unwrap().set_bits(), 128);
        let never_exact = Params { exact_limit: 0, exact_bytes: 16 << 10, ..params };
        let rejected = load(form(never_exact, 0, None), b"");
        assert!(matches!(rejected, Err(Error::Corrupt { field: "representation", .. })), "{rejected:?}");
        let rejected = load(form(Params { error_rate: 0.0, ..params }, 0, Some(&[])), b"");
        assert!(matches!(rejected, Err(Error::OutOfRange { parameter: Parameter::ErrorRate, .. })));
    }

    #[test]
    fn lower_bounds_that_no_exact_count_led_to_are_rejected() {
        let load = |exact_limit, lower_bound, counts: &[u64]| {
            load(form(params(RATES[0], exact_limit), lower_bound, Some(counts)), b"")
        };
        for (exact_limit, lower_bound, counts) in [(250, 65_538, &[256][..]), (250, u32::MAX, &[256]), (0, 1, &[])] {
            let rejected = load(exact_limit, lower_bound, counts);
            assert!(matches!(rejected, Err(Error::Corrupt { field: "lower bound", .. })), "{rejected:?}");
        }
        // A counter with these fields would be exact, so an estimating counter with them is corrupt.
        let rejected = load(250, 0, &[]);
        assert!(matches!(rejected, Err(Error::Corrupt { field: "representation", .. })), "{rejected:?}");
        assert!(load(0, 0, &[]).is_ok());
        let loaded = load(250, 65_537, &[256]).unwrap();
        assert_eq!((loaded.count(), loaded.lower_bound()), (65_537, 65_537));
    }

    #[test]
    fn the_limit_is_asked_for_what_it_will_take() {
        for members in [300, 3000, 50_000] {
            let counter = counter(params(RATES[2], 250), 0..members);
            let (form, payload) = (CounterForm::of(&counter), encode(&counter));
            let check = |limit| form.check_bytes(payload.len() as u64, &MaxBytes(limit));
            let bytes = form.load(&payload).unwrap().num_bytes();
            assert_eq!((bytes, check(bytes)), (counter.num_bytes(), Ok(())));
            assert!(matches!(check(bytes - 1), Err(Error::TooLarge { .. })));
        }
    }

    proptest! {
        #[test]
        fn decode_of_encode_is_the_same(
            numbers in vec(any::<u64>(), 0..1500),
            rate in 0..RATES.len(),
            exact_limit in prop_oneof![Just(0u32), Just(250), Just(5000)],
        ) {
            let original = counter(params(RATES[rate], exact_limit), numbers);
            let payload = encode(&original);
            let read = load(CounterForm::of(&original), &payload).unwrap();
            prop_assert_eq!(encode(&read), &payload[..]);
            prop_assert_eq!(read.is_exact(), original.is_exact());
            prop_assert_eq!(read.count(), original.count());
            prop_assert_eq!(words(&read), words(&original));
        }

        #[test]
        fn any_bytes_are_read_or_rejected(
            bytes in vec(prop_oneof![Just(0u8), 0u8..8, any::<u8>()], 0..400),
            counts in proptest::option::weighted(0.9, vec(prop_oneof![0u64..4, 0u64..257], 0..27)),
            rate in 0usize..3,
        ) {
            let form = form(params(RATES[rate], 250), 0, counts.as_deref());
            if let Ok(mut counter) = load(form, &bytes) {
                prop_assert_eq!(encode(&counter), bytes);
                prop_assert!(counter.estimate().is_finite() && counter.estimate() >= 0.0);
                prop_assert!(!counter.standard_error().is_nan());
                counter.add(b"one more", &crate::size_limit::Unlimited).unwrap();
                let again = load(CounterForm::of(&counter), &encode(&counter)).unwrap();
                prop_assert_eq!(words(&again), words(&counter));
                counter.merge(&[&again], &crate::size_limit::Unlimited).unwrap();
                prop_assert!(!counter.difference(&[&again]).unwrap().estimate.is_nan());
            }
        }
    }
}
