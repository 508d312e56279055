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
//! | number | exact bytes: what these members may have together |
//! | number | seed |
//! | number | lower bound, members: what an estimate is at least; left out while exact |
//! | byte | the payload: 0 out of line, 1 inline, 2 inline in Golomb-Rice code (`inline.rs`) |
//! | number | payload, bytes; left out where it is inline |
//! | 4 bytes | checksum |
//!
//! The seven fields from precision to seed are left out where they are those of [`STANDARD`], which most counters have: they
//! would be half of one with few members.
//!
//! A windowed counter has no lower bound there. Its first byte is 0xd1, and before the payload it has
//!
//! | what | field |
//! |---|---|
//! | number | window, seconds |
//! | byte | slices of the window |
//! | byte | what moves it on: 0 the clock, 1 its user; 2 the clock, and its key expires once it is empty |
//! | number | the newest slice that it has reached |
//! | byte | offset: what tags count from |
//!
//! Its payload is out of line or inline as it is, never in Golomb-Rice code. Members and positions have the tag of the
//! slice that they were last seen in, a byte: `1 + (slice - offset) mod 15` in a window of up to 14 slices, `mod 255`
//! in one of more. Members have it before the length, positions behind. A dense one has a cell of 4 or 8 bits for each
//! bit, 0 while free, else the tag. Of 4 bits the first of two is the lower half of a byte. All tags are of slices that
//! are live at the newest.
//!
//! Numbers and rates are described in `codec.rs`. The payload of an exact counter is its members, each a length
//! (LEB128) and that many bytes; of a sparse one the ascending positions of its set bits, four bytes each; of a dense
//! one the words of its bitmap. Precision and tail bits are what rate and capacity led to when the counter was made, or
//! less after a merge: they are stored and not computed again. The number of set bits of each segment is counted again
//! on loading.

use std::alloc;

use super::codec::{HeaderKind, HeaderReader, HeaderWriter, expect, stored_parameter};
use super::inline::{self, Content, Found};
use super::payload::Payload;
use super::value::{ChunkFormat, Loading, Stored};
use crate::counting::form::CounterForm;
use crate::counting::layout::Layout;
use crate::counting::payload::{PART_BYTES, PayloadPart};
use crate::counting::{Counter, Params, Representation};
use crate::error::Error;
use crate::hash::{checksum, checksum_of_numbers};
use crate::heap::OnHeap;
use crate::size_limit::{SizeLimit, try_reserve, try_to_vec, try_with_capacity};
use crate::window::{ClockSource, Window};

/// Set in the byte of the representation where a counter has the standard parameters and layout.
const IS_STANDARD: u8 = 4;

/// The parameters that are not stored, with the precision and tail bits that they gave when the format was fixed. What
/// becomes of the defaults of new counters does not change them.
const STANDARD: (Params, u32, u32) =
    (Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 0 }, 14, 10);

/// Bytes of the header without an inline payload, mostly.
const HEADER_BYTES: usize = 40;

/// The representations, indexed by their stored numbers.
const REPRESENTATIONS: [Representation; 3] = [Representation::Exact, Representation::Sparse, Representation::Dense];

/// The clock sources likewise, and whether the window is volatile.
const CLOCK_SOURCES: [(ClockSource, bool); 3] =
    [(ClockSource::System, false), (ClockSource::Manual, false), (ClockSource::System, true)];

impl CounterForm {
    fn kind(&self) -> HeaderKind {
        if self.window.is_some() { HeaderKind::WindowedCounter } else { HeaderKind::Counter }
    }

    /// Representation, precision and tail bits.
    fn shape(&self) -> [u8; 3] {
        [self.representation as u8, self.layout.precision() as u8, self.layout.tail_bits() as u8]
    }

    /// Writes the first fields of a header: everything about a counter except its set.
    fn write(&self, inline_bytes: usize) -> HeaderWriter {
        let mut writer = HeaderWriter::new(self.kind(), HEADER_BYTES + inline_bytes);
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

    /// Reads and checks the first fields of a header.
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

    /// The content of the payload.
    fn content(&self) -> Content {
        match self.representation {
            Representation::Sparse if self.window.is_none() => Content::Positions(self.layout.num_bits()),
            Representation::Dense if self.window.is_none() => Content::Bits(self.layout.num_bits()),
            _ => Content::Bytes,
        }
    }

    /// The format of the chunks. Bits set while a dump is read only add to it, while a changed representation, or
    /// members inserted among those already read, do not fit. Nor does what was read before an advance fit what is read
    /// after it.
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
    // Those that were made are as few as the window needs.
    expect("slices", window.slices(), slices.into())?;
    Ok(window)
}

fn whole_payload(counter: &Counter) -> Payload<'_> {
    Payload::new(|index| counter.payload_part(index))
}

impl Stored for Counter {
    type Loading = LoadingCounter;
    const KIND: super::value::Kind = super::value::Kind::Counter;

    fn header(&self) -> Vec<u8> {
        let (form, payload_bytes) = (CounterForm::of(self), self.payload_bytes());
        let is_inline = inline::is_inline(payload_bytes);
        let mut writer = form.write(if is_inline { payload_bytes as usize } else { 0 });
        inline::write(&mut writer, whole_payload(self), form.content(), self.set_bits());
        if !is_inline {
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
        // A set has no order, so neither has its digest.
        records.sort_unstable();
        visit(&CounterForm::of(self).write(0).into_bytes());
        for (member, tag) in records {
            visit(&(member.len() as u64).to_le_bytes());
            visit(member);
            tag.iter().for_each(|&tag| visit(&[tag]));
        }
    }
}

/// A partially loaded counter.
#[derive(Debug)]
pub struct LoadingCounter {
    form: CounterForm,
    header: Vec<u8>,
    total_bytes: u64,
    state: Progress,
}

#[derive(Debug)]
enum Progress {
    /// The bytes loaded so far, which are decoded when all are there.
    Partial(Vec<u8>),
    /// The counter, decoded from all bytes.
    Done(Box<Counter>),
}

impl Loading for LoadingCounter {
    type Value = Counter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let (form, reader) = CounterForm::read(header)?;
        let (total_bytes, inline) = match inline::read(reader, form.content())? {
            Found::Inline(payload) => (payload.len() as u64, Some(payload)),
            Found::OutOfLine(mut reader) => {
                let total_bytes = reader.number("payload length")?;
                expect("header length", 0, reader.remaining())?;
                (total_bytes, None)
            }
        };
        form.check_bytes(total_bytes, limit)?;
        let header = if inline.is_some() { Vec::new() } else { try_to_vec(header)? };
        let state = Progress::Partial(try_with_capacity(total_bytes as usize)?);
        let mut loading = LoadingCounter { form, header, total_bytes, state };
        // An empty payload is complete.
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
                // Positions come in parts as those of a counter do, what there is of the next one apart.
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
        if more.len() as u64 > missing {
            return Err(Error::corrupt("payload length", format_args!("at most {missing} bytes more"), more.len()));
        }
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
            // Taken out before.
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
                let mut copy = try_with_capacity(self.total_bytes as usize)?;
                copy.extend_from_slice(bytes);
                Progress::Partial(copy)
            }
            Progress::Done(counter) => Progress::Done(Box::new(counter.try_clone()?)),
        };
        Ok(LoadingCounter { header: try_to_vec(&self.header)?, state, ..*self })
    }
}

#[cfg(test)]
mod tests;
