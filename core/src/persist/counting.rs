//! The stored form of counters.
//!
//! | what | field |
//! |---|---|
//! | byte | kind and version, 0xc1 |
//! | byte | representation: 0 exact, 1 sparse, 2 dense; plus 4 if the next seven fields are left out |
//! | byte | precision: log2 of the bits of the main bitmap |
//! | byte | tail bits: log2 of the bits of a segment of the tail |
//! | rate | error rate |
//! | number | capacity, members |
//! | number | exact limit, members |
//! | number | exact bytes: the most bytes that the listed members may take together |
//! | number | seed |
//! | number | lower bound of the estimate, members; 0 without a set bit; left out while exact |
//! | byte | the payload: 0 out of line, 1 inline, 2 inline in Golomb-Rice code (`inline.rs`) |
//! | number | payload, bytes; left out if the payload is inline |
//! | 4 bytes | checksum |
//!
//! The seven fields from precision to seed are left out if they equal [`STANDARD`], as they do for most counters:
//! otherwise they would be half of the header of a counter with few members.
//!
//! A windowed counter has no lower bound. Its first byte is 0xd1, and before the payload it has
//!
//! | what | field |
//! |---|---|
//! | number | window, seconds |
//! | byte | slices of the window |
//! | byte | clock source: 0 system, 1 manual, 2 system and the key expires once the counter is empty |
//! | number | the newest slice that it has reached |
//! | byte | offset: the slice number from which tags count |
//!
//! The payload of a windowed counter is out of line or inline, never in Golomb-Rice code. Each member and each position
//! has the tag of the slice in which it was last seen, one byte: `1 + (slice - offset) mod 15` in a window of up to 14
//! slices, `mod 255` in a larger one. The tag is before the length of a member, and after a position. A dense counter
//! has a cell of 4 or 8 bits for each slot: 0 while free, else the tag. The first of two 4-bit cells is the lower half
//! of a byte. All tags are of slices that are live at the newest slice.
//!
//! Numbers and rates are described in `codec.rs`. The payload of an exact counter is its members, each a length
//! (LEB128) and its bytes. The payload of a sparse counter is the ascending positions of its set bits, four bytes each;
//! the payload of a dense one is the words of its bitmap. Precision and tail bits followed from rate and capacity when
//! the counter was made, and may have become smaller by a merge: they are stored and not computed again. The number of
//! set bits in each segment is counted again on loading.

use std::alloc;

use super::codec::{HeaderKind, HeaderReader, HeaderWriter, expect, stored_parameter};
use super::inline::{self, Content};
use super::payload::Payload;
use super::value::{ChunkFormat, Partial, Stored};
use crate::counting::form::CounterForm;
use crate::counting::layout::Layout;
use crate::counting::payload::{PART_BYTES, PayloadPart};
use crate::counting::{Counter, Params, Representation};
use crate::error::Error;
use crate::hash::{checksum, checksum_of_numbers};
use crate::heap::OnHeap;
use crate::size_limit::{SizeLimit, try_collect, try_reserve, try_to_vec, try_with_capacity};
use crate::window::{ClockSource, Window};

/// The bit of the representation byte that is set if the counter has the standard parameters and layout.
const IS_STANDARD: u8 = 4;

/// The parameters that need not be stored, with the precision and tail bits derived from them. They are part of the
/// format, and do not change with the defaults of new counters.
const STANDARD: (Params, u32, u32) =
    (Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 0 }, 14, 10);

/// The representations, indexed by their stored numbers.
const REPRESENTATIONS: [Representation; 3] = [Representation::Exact, Representation::Sparse, Representation::Dense];

/// The clock sources, indexed by their stored numbers, each with whether the key expires once the counter is empty.
const CLOCK_SOURCES: [(ClockSource, bool); 3] =
    [(ClockSource::System, false), (ClockSource::Manual, false), (ClockSource::System, true)];

impl CounterForm {
    fn kind(&self) -> HeaderKind {
        if self.window.is_some() { HeaderKind::WindowedCounter } else { HeaderKind::Counter }
    }

    /// The stored bytes of representation, precision and tail bits.
    fn shape(&self) -> [u8; 3] {
        [self.representation as u8, self.layout.precision() as u8, self.layout.tail_bits() as u8]
    }

    /// Begins a header with all fields of a counter before its payload.
    fn write(&self) -> HeaderWriter {
        let mut writer = HeaderWriter::new(self.kind());
        let [representation, precision, tail_bits] = self.shape();
        if (self.params, self.layout.precision(), self.layout.tail_bits()) == STANDARD {
            writer.u8(representation | IS_STANDARD);
        } else {
            [representation, precision, tail_bits].into_iter().for_each(|byte| writer.u8(byte));
            writer.rate(self.params.error_rate);
            writer.number(self.params.capacity);
            writer.number(self.params.exact_limit.into());
            writer.number(self.params.exact_bytes.into());
            writer.number(self.params.seed);
        }
        if let Some((window, newest, offset)) = self.window {
            writer.number(window.seconds());
            writer.u8(window.slices() as u8);
            let clock = (window.clock_source(), window.is_volatile());
            writer.u8(CLOCK_SOURCES.iter().position(|&known| known == clock).unwrap_or(0) as u8);
            writer.number(newest);
            writer.u8(offset);
        } else if self.representation != Representation::Exact {
            writer.number(self.lower_bound.into());
        }
        writer
    }

    /// Reads and checks the fields of a header before the payload. Returns them with the reader of the rest.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    fn read(header: &[u8]) -> Result<(Self, HeaderReader<'_>), Error> {
        let is_windowed = header.first().is_some_and(|&first| HeaderKind::WindowedCounter.begins_with(first));
        let mut reader =
            HeaderReader::new(header, if is_windowed { HeaderKind::WindowedCounter } else { HeaderKind::Counter })?;
        let code = reader.u8("representation")?;
        let representation = *REPRESENTATIONS
            .get(usize::from(code & !IS_STANDARD))
            .ok_or_else(|| Error::corrupt("representation", "0, 1 or 2, or 4 more", code))?;
        let (params, precision, tail_bits) = match code & IS_STANDARD {
            0 => read_params(&mut reader)?,
            _ => STANDARD,
        };
        let layout = Layout::new(precision, tail_bits).map_err(stored_parameter)?;
        let mut form = CounterForm { params, layout, lower_bound: 0, representation, window: None };
        if is_windowed {
            form.window = Some((read_window(&mut reader)?, reader.number("newest slice")?, reader.u8("offset")?));
        } else if representation != Representation::Exact {
            form.lower_bound = reader.number_u32("lower bound")?;
        }
        form.validate().map_err(stored_parameter)?;
        Ok((form, reader))
    }

    /// The content type of the payload, which determines its inline form.
    fn content(&self) -> Content {
        match self.representation {
            Representation::Sparse if self.window.is_none() => Content::Positions(self.layout.num_bits()),
            Representation::Dense if self.window.is_none() => Content::Bits(self.layout.num_bits()),
            _ => Content::Bytes,
        }
    }

    /// The format of the chunks. Its fingerprint changes if pieces that were read earlier no longer fit pieces that are
    /// read later. Bits that are set while a dump is read do not change it. A new representation, members inserted
    /// among members that were already read, and an advance of the window do.
    fn chunk_format(&self, payload_bytes: u64) -> ChunkFormat {
        let of_shape = checksum(&self.shape(), payload_bytes);
        let fingerprint = self.window.map_or(of_shape, |(_, newest, offset)| {
            checksum_of_numbers([of_shape, newest, offset.into()].into_iter(), payload_bytes)
        });
        ChunkFormat::Checked { fingerprint }
    }
}

fn read_params(reader: &mut HeaderReader<'_>) -> Result<(Params, u32, u32), Error> {
    let (precision, tail_bits) = (reader.u8("precision")?, reader.u8("tail bits")?);
    let params = Params {
        error_rate: reader.rate("error_rate")?,
        capacity: reader.number("capacity")?,
        exact_limit: reader.number_u32("exact_limit")?,
        exact_bytes: reader.number_u32("exact_bytes")?,
        seed: reader.number("seed")?,
    };
    Ok((params, precision.into(), tail_bits.into()))
}

fn read_window(reader: &mut HeaderReader<'_>) -> Result<Window, Error> {
    let (seconds, slices, code) = (reader.number("window")?, reader.u8("slices")?, reader.u8("clock")?);
    let &(clock_source, is_volatile) =
        CLOCK_SOURCES.get(usize::from(code)).ok_or_else(|| Error::corrupt("clock", "0, 1 or 2", code))?;
    let window = Window::new(seconds, slices.into(), Counter::MAX_SLICES, clock_source).map_err(stored_parameter)?;
    let window = window.with_volatile(is_volatile);
    // Windows are always made with the fewest slices that they need.
    expect("slices", window.slices(), slices.into())?;
    Ok(window)
}

fn whole_payload(counter: &Counter) -> Payload<'_> {
    Payload::new(|index| counter.payload_part(index))
}

impl Stored for Counter {
    type Partial = PartialCounter;
    const KIND: super::value::Kind = super::value::Kind::Counter;

    fn header(&self) -> Vec<u8> {
        let (form, payload_bytes) = (CounterForm::of(self), self.payload_bytes());
        let mut writer = form.write();
        inline::write(&mut writer, whole_payload(self), form.content(), self.set_bits());
        if !inline::is_inline(payload_bytes) {
            writer.number(payload_bytes);
        }
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        inline::out_of_line(whole_payload(self))
    }

    fn chunk_format(&self) -> ChunkFormat {
        CounterForm::of(self).chunk_format(self.payload_bytes())
    }

    fn stamp(&self) -> u64 {
        self.reached()
    }

    fn digest(&self, visit: &mut dyn FnMut(&[u8])) {
        let Some(mut records) = self.records() else {
            visit(&self.header());
            return self.payload().pieces(usize::MAX).for_each(|(_, piece)| visit(&piece));
        };
        // A set has no order, so its digest must not depend on one.
        records.sort_unstable();
        visit(&CounterForm::of(self).write().into_bytes());
        for (member, tag) in records {
            visit(&(member.len() as u64).to_le_bytes());
            visit(member);
            tag.iter().for_each(|&tag| visit(&[tag]));
        }
    }
}

/// A partially loaded counter.
#[derive(Debug)]
pub struct PartialCounter {
    form: CounterForm,
    header: Vec<u8>,
    total_bytes: u64,
    state: Progress,
}

#[derive(Debug)]
enum Progress {
    /// The payload bytes loaded so far. They are decoded once all have been loaded.
    Partial(Vec<u8>),
    /// The counter, decoded from the whole payload.
    Done(Box<Counter>),
}

impl Partial for PartialCounter {
    type Value = Counter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let (form, mut reader) = CounterForm::read(header)?;
        let inline = inline::read(&mut reader, form.content())?;
        let total_bytes = match &inline {
            Some(payload) => payload.len() as u64,
            None => reader.number("payload length")?,
        };
        expect("header length", 0, reader.remaining())?;
        form.check_bytes(total_bytes, limit)?;
        let header = if inline.is_some() { Vec::new() } else { try_to_vec(header)? };
        let state = Progress::Partial(try_with_capacity(total_bytes as usize)?);
        let mut loading = PartialCounter { form, header, total_bytes, state };
        // A counter with an empty payload is complete at once.
        loading.push(inline.as_deref().unwrap_or_default())?;
        if inline.is_some() {
            loading.total_bytes = 0;
        }
        Ok(loading)
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn chunk_format(&self) -> ChunkFormat {
        self.form.chunk_format(self.total_bytes)
    }

    fn received_bytes(&self) -> u64 {
        match &self.state {
            Progress::Partial(bytes) => bytes.len() as u64,
            Progress::Done(_) => self.total_bytes,
        }
    }

    fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        match &self.state {
            Progress::Partial(bytes) => {
                // Positions are cut into the same parts as in a counter; an incomplete position at the end is a part of
                // its own.
                let part_bytes = if let Content::Positions(_) = self.form.content() { PART_BYTES } else { usize::MAX };
                let cut_bytes = if part_bytes == PART_BYTES { bytes.len() % 4 } else { 0 };
                let (whole, cut) = bytes.split_at(bytes.len() - cut_bytes);
                let parts = whole.chunks(part_bytes).chain([cut]);
                Payload::new(move |index| parts.clone().nth(index).map(PayloadPart::Bytes))
            }
            Progress::Done(counter) => whole_payload(counter).up_to(self.total_bytes),
        }
    }

    fn push(&mut self, more: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes();
        let is_valid = more.len() as u64 <= missing;
        Error::check_field(is_valid, "payload length", format_args!("at most {missing} bytes more"), more.len())?;
        let Progress::Partial(bytes) = &mut self.state else { return Ok(()) };
        let before = bytes.len();
        try_reserve(bytes, more.len())?;
        bytes.extend_from_slice(more);
        if more.len() as u64 == missing {
            let counter = self.form.load(bytes).inspect_err(|_| bytes.truncate(before)).map_err(stored_parameter)?;
            self.state = Progress::Done(Box::new(counter));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Counter, Error> {
        expect("payload length", self.total_bytes, self.received_bytes())?;
        match std::mem::replace(&mut self.state, Progress::Partial(Vec::new())) {
            Progress::Done(counter) => Ok(*counter),
            // The counter was taken out by an earlier call.
            Progress::Partial(_) => Err(Error::corrupt("payload", "one value", "a second")),
        }
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        visit(alloc::Layout::for_value(self.header.as_slice()));
        match &self.state {
            Progress::Partial(bytes) => {
                visit(alloc::Layout::array::<u8>(bytes.capacity()).unwrap_or(alloc::Layout::new::<u8>()));
            }
            Progress::Done(counter) => {
                visit(alloc::Layout::new::<Counter>());
                counter.heap_layouts(visit);
            }
        }
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let state = match &self.state {
            Progress::Partial(bytes) => {
                Progress::Partial(try_collect(self.total_bytes as usize, bytes.iter().copied())?)
            }
            Progress::Done(counter) => Progress::Done(Box::new(counter.try_clone()?)),
        };
        Ok(PartialCounter { header: try_to_vec(&self.header)?, state, ..*self })
    }
}

#[cfg(test)]
mod tests;
