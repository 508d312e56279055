//! The stored form of counters.
//!
//! | what | field |
//! |---|---|
//! | byte | kind and version, 0xc1 |
//! | byte | representation: 0 exact, 1 estimate; plus 4 if the next four fields are left out |
//! | rate | error rate |
//! | number | exact limit (members) |
//! | number | exact bytes: the largest number of bytes that the members of an exact counter may take |
//! | number | seed |
//! | number | lower bound of the estimate (members); 0 if no bit is set; left out while exact |
//! | byte | the number of segments of the bitmap, up to the last with a set bit; left out while exact |
//! | numbers | the number of set bits in each of these segments; left out while exact |
//! | byte | the payload: 0 out of line, 1 inline |
//! | number | length of the payload (bytes); left out if the payload is inline |
//! | 8 bytes | checksum of the payload; left out if the payload is inline or an estimate |
//! | 4 bytes | checksum |
//!
//! The four fields from error rate to seed are left out if they equal [`STANDARD`]. Most counters have these
//! parameters, and leaving them out halves the header of a counter with few members. The layout of the bitmap follows
//! from the error rate (`counting/layout.rs`).
//!
//! A windowed counter has no lower bound. Its first byte is 0xd1. Before the number of segments it has these fields:
//!
//! | what | field |
//! |---|---|
//! | number | length of the window (seconds) |
//! | byte | number of slices of the window |
//! | byte | clock source: 0 system, 1 manual, 2 system and the key expires when the counter is empty |
//! | number | the number of its newest slice |
//! | byte | offset: the number, below 15 or 255, of a slice whose tag is 1 |
//!
//! Each member and each set bit has a tag, which stands for the slice in which it was last added: `1 + ((slice -
//! offset) mod 15)` in a window of up to 14 slices, `mod 255` in a window of more. A member's tag is the byte before
//! the member. A prefix that is stored once for several members has a byte 0 in place of a tag. The tags of a segment's
//! set bits follow the segment, with 4 or 8 bits each. The first of two 4-bit tags is in the lower half of a byte.
//! Members and bits whose slices had expired when the newest slice began are not stored.
//!
//! Numbers and rates are described in `codec.rs`, the payload in `counting/payload.rs`.

use std::alloc;

use crate::counting::counter::Counter;
use crate::counting::held::Held;
use crate::counting::held::members::Members;
use crate::counting::held::ring::{Ages, TagRing, own_bytes};
use crate::counting::held::slots::bytes_of_counts;
use crate::counting::layout::{MAX_SEGMENTS, SegmentCounts};
use crate::counting::params::{Params, Spec};
use crate::counting::payload::{decode, most_bytes};
use crate::error::Error;
use crate::hash::checksum;
use crate::live::Value;
use crate::size_limit::{SizeLimit, try_collect, try_reserve, try_to_vec, try_with_capacity};
use crate::stored::codec::{HeaderKind, HeaderReader, HeaderWriter, expect, stored_parameter};
use crate::stored::inline::{AS_IT_IS, OUT_OF_LINE};
use crate::stored::payload::Payload;
use crate::stored::{ChunkFormat, Partial};
use crate::window::{ClockSource, Window};

/// This bit of the representation byte says that the counter has the parameters [`STANDARD`], which are not stored.
const IS_STANDARD: u8 = 4;

/// A header leaves the parameters out if the counter has exactly these. They must stay the same even if the defaults of
/// new counters change.
const STANDARD: Params = Params { error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 0 };

/// The value of the representation byte for an estimating counter.
const ESTIMATE: u8 = 1;

/// The clock sources, in the order of their stored numbers. Each has a flag: whether the key expires when the counter
/// is empty.
const CLOCK_SOURCES: [(ClockSource, bool); 3] =
    [(ClockSource::System, false), (ClockSource::Manual, false), (ClockSource::System, true)];

/// The stored properties of a counter, such as its parameters and window, without its members. The members or their
/// bitmap are stored as a [`payload`](super::payload). Loading needs both.
///
/// Loading any bytes gives an error or a valid counter. The memory of the counter is known before its payload is read:
/// from the number of set bits in each segment of the bitmap, or from the length of the payload.
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

    /// Writes all fields of a counter's header that come before its payload.
    pub(crate) fn write(&self) -> HeaderWriter {
        let kind = if self.ring.is_some() { HeaderKind::WindowedCounter } else { HeaderKind::Counter };
        let mut writer = HeaderWriter::new(kind);
        let representation = if self.counts.is_some() { ESTIMATE } else { 0 };
        if self.params == STANDARD {
            writer.u8(representation | IS_STANDARD);
        } else {
            writer.u8(representation);
            writer.rate(self.params.error_rate);
            writer.number(self.params.exact_limit.into());
            writer.number(self.params.exact_bytes.into());
            writer.number(self.params.seed);
        }
        if let Some(ring) = &self.ring {
            let window = ring.window;
            writer.number(window.seconds());
            writer.u8(window.slices() as u8);
            let clock = (window.clock_source(), window.is_volatile());
            writer.u8(CLOCK_SOURCES.iter().position(|&known| known == clock).unwrap_or(0) as u8);
            writer.number(ring.newest);
            writer.u8(ring.offset);
        } else if self.counts.is_some() {
            writer.number(self.lower_bound.into());
        }
        if let Some(counts) = &self.counts {
            let segments = (0..MAX_SEGMENTS).rev().find(|&segment| counts.get(segment) > 0).map_or(0, |last| last + 1);
            writer.u8(segments as u8);
            (0..segments).for_each(|segment| writer.number(counts.get(segment)));
        }
        writer
    }

    /// Reads and checks the fields of a header up to the payload. Returns the fields, and a reader for the rest of the
    /// header.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    fn read(header: &[u8]) -> Result<(Self, HeaderReader<'_>), Error> {
        let kinds = [HeaderKind::Counter, HeaderKind::WindowedCounter];
        let kind = HeaderKind::among(kinds, header).unwrap_or(HeaderKind::Counter);
        let mut reader = HeaderReader::new(header, kind)?;
        let code = reader.u8("representation")?;
        let is_known = code & !IS_STANDARD <= ESTIMATE;
        Error::check_field(is_known, "representation", "0 or 1, or 4 more", code)?;
        let is_estimate = code & ESTIMATE != 0;
        let params = if code & IS_STANDARD == 0 { read_params(&mut reader)? } else { STANDARD };
        let mut form = CounterForm { params, lower_bound: 0, counts: None, ring: None };
        if kind == HeaderKind::WindowedCounter {
            let (window, newest) = (read_window(&mut reader)?, reader.number("newest slice")?);
            form.ring = Some(TagRing::with_offset(window, newest, reader.u8("offset")?)?);
        } else if is_estimate {
            form.lower_bound = reader.number_u32("lower bound")?;
        }
        if is_estimate {
            form.counts = Some(read_counts(&mut reader, &params)?);
        }
        form.validate().map_err(stored_parameter)?;
        Ok((form, reader))
    }

    /// Checks stored fields. The caller has checked that `counts` has no more entries than the bitmap has segments.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a parameter is out of range, and [`Error::Corrupt`] if another field is wrong.
    fn validate(&self) -> Result<(), Error> {
        let layout = self.params.layout()?;
        // A counter has at most this number of members when it stops being exact.
        let most = Params::MAX_EXACT_LIMIT + 1;
        Error::check_field(self.lower_bound <= most, "lower bound", format_args!("at most {most}"), self.lower_bound)?;
        // A counter with an exact limit of 0 is never exact, not even while empty.
        let is_possible = self.counts.is_some() || self.params.exact_limit > 0;
        Error::check_field(is_possible, "representation", "an estimate", "exact")?;
        if let Some(counts) = self.counts {
            let most = (0..layout.num_segments()).map(|segment| counts.get(segment)).max().unwrap_or(0);
            let slots = layout.slots();
            Error::check_field(most <= slots, "marked slots", format_args!("at most {slots}"), most)?;
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
    pub(super) fn check_bytes(&self, payload_bytes: u64, limit: &impl SizeLimit) -> Result<(), Error> {
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
        limit.check(own_bytes(ages.has_tags()), heap_bytes)
    }

    fn ages(&self) -> Ages {
        self.ring.map_or(Ages::PLAIN, |ring| ring.ages)
    }

    /// Builds the counter from these properties and its payload. The caller has called [`Self::check_bytes`] before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the payload contradicts these properties, and [`Error::OutOfMemory`].
    pub(super) fn load(&self, payload: &[u8]) -> Result<Counter, Error> {
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

    /// The format of the chunks of a dump. The fingerprint seeds the checksums of chunks, so that chunks from before
    /// and after a change cannot be combined. It changes with every newly set bit, with any change of the members, and
    /// when a slice begins.
    pub(super) fn chunk_format(&self, members_sum: u64) -> ChunkFormat {
        ChunkFormat::Checked { fingerprint: checksum(&self.write().bytes, members_sum) }
    }
}

/// Reads the number of segments up to the last with a set bit, and the number of set bits in each.
fn read_counts(reader: &mut HeaderReader<'_>, params: &Params) -> Result<SegmentCounts, Error> {
    let layout = params.layout().map_err(stored_parameter)?;
    let (segments, most) = (reader.u8("segments")?, layout.num_segments());
    Error::check_field(usize::from(segments) <= most, "segments", format_args!("at most {most}"), segments)?;
    let (mut counts, mut last) = (SegmentCounts::default(), 1);
    for segment in 0..segments.into() {
        last = reader.number_u32("marked slots")?.into();
        counts.add(segment, last);
    }
    Error::check_field(last > 0, "marked slots", "some in the last segment", last)?;
    Ok(counts)
}

fn read_params(reader: &mut HeaderReader<'_>) -> Result<Params, Error> {
    Ok(Params {
        error_rate: reader.rate("error_rate")?,
        exact_limit: reader.number_u32("exact_limit")?,
        exact_bytes: reader.number_u32("exact_bytes")?,
        seed: reader.number("seed")?,
    })
}

fn read_window(reader: &mut HeaderReader<'_>) -> Result<Window, Error> {
    let (seconds, slices, code) = (reader.number("window")?, reader.u8("slices")?, reader.u8("clock")?);
    let &(clock_source, is_volatile) =
        CLOCK_SOURCES.get(usize::from(code)).ok_or_else(|| Error::corrupt("clock", "0, 1 or 2", code))?;
    let window = Window::new(seconds, slices.into(), Counter::MAX_SLICES, clock_source).map_err(stored_parameter)?;
    let window = window.with_volatile(is_volatile);
    // `Window::new` may lower the number of slices, because a slice lasts whole seconds. A valid header has the lowered
    // number.
    expect("slices", window.slices(), slices.into())?;
    Ok(window)
}

/// A partially loaded counter.
#[derive(Debug)]
pub struct PartialCounter {
    form: CounterForm,
    header: Vec<u8>,
    total_bytes: u64,
    /// The checksum that the members must have. It is `None` for an estimating counter, and if the header contains the
    /// members.
    members_sum: Option<u64>,
    /// The payload bytes loaded so far.
    bytes: Vec<u8>,
    /// The counter. It is decoded when the whole payload has been loaded.
    counter: Option<Counter>,
}

impl Partial for PartialCounter {
    type Value = Counter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let (form, mut reader) = CounterForm::read(header)?;
        let inline = match reader.u8("payload form")? {
            OUT_OF_LINE => None,
            AS_IT_IS => Some(std::mem::take(&mut reader.rest)),
            other => return Err(Error::corrupt("payload form", "0 or 1", other)),
        };
        let (total_bytes, members_sum) = match inline {
            Some(payload) => (payload.len() as u64, None),
            None if form.counts.is_some() => (reader.number("payload length")?, None),
            None => (reader.number("payload length")?, Some(reader.u64("members checksum")?)),
        };
        expect("header length", 0, reader.rest.len())?;
        form.check_bytes(total_bytes, limit)?;
        if let Some(payload) = inline {
            let counter = Some(form.load(payload).map_err(stored_parameter)?);
            return Ok(PartialCounter { form, header: vec![], total_bytes: 0, members_sum, bytes: vec![], counter });
        }
        let (header, bytes) = (try_to_vec(header)?, try_with_capacity(total_bytes as usize)?);
        let mut loading = PartialCounter { form, header, total_bytes, members_sum, bytes, counter: None };
        // A counter whose payload is empty is complete after its header.
        loading.push(&[])?;
        Ok(loading)
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn chunk_format(&self) -> ChunkFormat {
        self.form.chunk_format(self.members_sum.unwrap_or(0))
    }

    fn received_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        Payload::of_parts([&self.bytes])
    }

    fn push(&mut self, more: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes();
        let is_valid = more.len() as u64 <= missing;
        Error::check_field(is_valid, "payload length", format_args!("at most {missing} bytes more"), more.len())?;
        let before = self.bytes.len();
        try_reserve(&mut self.bytes, more.len())?;
        self.bytes.extend_from_slice(more);
        if more.len() as u64 == missing && self.counter.is_none() {
            let bytes = &self.bytes;
            let checked = self.members_sum.map_or(Ok(()), |sum| expect("members checksum", sum, checksum(bytes, 0)));
            let loaded = checked.and_then(|()| self.form.load(bytes)).inspect_err(|_| self.bytes.truncate(before));
            self.counter = Some(loaded.map_err(stored_parameter)?);
        }
        Ok(())
    }

    fn finish(self) -> Result<Counter, Error> {
        let (total, received) = (self.total_bytes, self.received_bytes());
        self.counter.ok_or_else(|| Error::corrupt("payload length", total, received))
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        visit(alloc::Layout::for_value(self.header.as_slice()));
        visit(alloc::Layout::array::<u8>(self.bytes.capacity()).unwrap_or(alloc::Layout::new::<u8>()));
        self.counter.iter().for_each(|counter| counter.heap_layouts(visit));
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let bytes = try_collect(self.total_bytes as usize, self.bytes.iter().copied())?;
        let counter = self.counter.as_ref().map(Counter::try_clone).transpose()?;
        Ok(PartialCounter { header: try_to_vec(&self.header)?, bytes, counter, ..*self })
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

    pub(super) fn load(form: CounterForm, payload: &[u8]) -> Result<Counter, Error> {
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
    fn loading_checks_the_size_of_the_loaded_counter() {
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
