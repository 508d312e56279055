//! A counter, stored.
//!
//! | what | field |
//! |---|---|
//! | byte | kind and version, 0xc1 |
//! | byte | representation: 0 exact, 1 sparse, 2 dense |
//! | byte | precision: log2 of the bits of the main bitmap |
//! | byte | tail bits: log2 of the bits of a segment of the tail |
//! | rate | error rate |
//! | number | capacity, members |
//! | number | exact limit, members |
//! | number | exact bytes: what these members may have together |
//! | number | seed |
//! | number | floor, members: what an estimate is at least; left out while exact |
//! | byte | the payload: 0 apart, 1 enclosed, 2 enclosed by gaps (`enclosed.rs`) |
//! | number | payload, bytes; left out where it is enclosed |
//! | 4 bytes | checksum |
//!
//! A windowed counter has no floor there. Its first byte is 0xd1, and before the payload it has
//!
//! | what | field |
//! |---|---|
//! | number | window, seconds |
//! | byte | slices of the window |
//! | byte | pace: 0 the clock, 1 by hand |
//! | number | the newest slice that it has reached |
//! | byte | offset: what tags count from |
//!
//! Its payload is apart or enclosed as it is, never by gaps. Members and positions have the tag of the slice that they were
//! last seen in, a byte: `1 + (slice - offset) mod 15` in a window of up to 14 slices, `mod 255` in one of more. Members
//! have it before the length, positions behind. A dense one has a cell of 4 or 8 bits for each bit, 0 while free, else
//! the tag. Of 4 bits the first of two is the lower half of a byte. All tags are of slices that are alive at the newest.
//!
//! Numbers and rates are described in `codec.rs`. The payload of an exact counter is its members, each a length (LEB128)
//! and that many bytes; of a sparse one the ascending positions of its set bits, four bytes each; of a dense one the words
//! of its bitmap. Precision and tail bits are what rate and capacity led to when the counter was made, or less after a
//! merge: they are stored and not worked out again. The number of set bits of each segment is counted again on loading.

use std::alloc;
use std::fmt;

use super::codec::{Kind, Reader, Writer, expect, stored_parameter};
use super::enclosed::{self, Content, Found};
use super::payload::Payload;
use super::value::{ChunkFormat, Loading, Stored};
use crate::counting::counter::Shaped;
use crate::counting::layout::Layout;
use crate::counting::loading::{DenseLoading, SparseLoading};
use crate::counting::payload::PayloadPart;
use crate::counting::windowed_loading::WindowedForm;
use crate::counting::{Counter, Params, Representation};
use crate::error::Error;
use crate::hash::{checksum, checksum_of_numbers};
use crate::heap::OnHeap;
use crate::size_limit::{SizeLimit, Unlimited, try_to_vec, try_with_capacity};
use crate::window::{Pace, Window};

/// Bytes of the header without an enclosed payload, mostly.
const HEADER_BYTES: usize = 40;

fn representation_code(representation: Representation) -> u8 {
    match representation {
        Representation::Exact => 0,
        Representation::Sparse => 1,
        Representation::Dense => 2,
    }
}

fn representation_of(code: u8) -> Result<Representation, Error> {
    match code {
        0 => Ok(Representation::Exact),
        1 => Ok(Representation::Sparse),
        2 => Ok(Representation::Dense),
        other => Err(Error::corrupt("representation", "0, 1 or 2", other)),
    }
}

/// The parameters, and what else is known of a counter but its set: the first fields of its header.
fn fields(counter: &Counter) -> Vec<u8> {
    write_fields(counter, 0).into_bytes()
}

fn write_fields(counter: &Counter, enclosed_bytes: usize) -> Writer {
    let params = counter.params();
    let windowed = WindowedForm::of(counter, counter.layout());
    let kind = if windowed.is_some() { Kind::WindowedCounter } else { Kind::Counter };
    let mut writer = Writer::new(kind, HEADER_BYTES + enclosed_bytes);
    writer.u8(representation_code(counter.representation()));
    writer.u8(counter.layout().precision() as u8);
    writer.u8(counter.layout().tail_bits() as u8);
    writer.rate(params.error_rate);
    writer.number(params.capacity);
    writer.number(params.exact_limit.into());
    writer.number(params.exact_bytes.into());
    writer.number(params.seed);
    match windowed {
        Some(form) => write_window(&mut writer, &form),
        None if counter.is_exact() => {}
        None => writer.number(counter.floor().into()),
    }
    writer
}

fn write_window(writer: &mut Writer, form: &WindowedForm) {
    let window = form.window();
    writer.number(window.seconds());
    writer.u8(window.slices() as u8);
    writer.u8(match window.pace() {
        Pace::Clock => 0,
        Pace::Manual => 1,
    });
    writer.number(form.newest());
    writer.u8(form.offset());
}

fn read_window(reader: &mut Reader<'_>) -> Result<(Window, u64, u8), Error> {
    let (seconds, slices) = (reader.number("window")?, reader.u8("slices")?);
    let pace = match reader.u8("pace")? {
        0 => Pace::Clock,
        1 => Pace::Manual,
        other => return Err(Error::corrupt("pace", "0 or 1", other)),
    };
    let window = Window::new(seconds, slices.into(), Counter::MAX_SLICES, pace).map_err(stored_parameter)?;
    // Those that were made are as few as the window needs.
    expect("slices", window.slices(), slices.into())?;
    Ok((window, reader.number("newest slice")?, reader.u8("offset")?))
}

/// What the payload of a counter is.
fn content(representation: Representation, layout: Layout) -> Content {
    match representation {
        Representation::Exact => Content::Bytes,
        Representation::Sparse => Content::Positions(layout.num_bits()),
        Representation::Dense => Content::Bits(layout.num_bits()),
    }
}

fn whole_payload(counter: &Counter) -> Payload<'_> {
    Payload::new(|index| counter.payload_part(index))
}

impl Stored for Counter {
    type Loading = LoadingCounter;
    const KIND: super::value::Kind = super::value::Kind::Counter;

    fn header(&self) -> Vec<u8> {
        let payload_bytes = self.payload_bytes();
        let is_enclosed = enclosed::is_enclosed(payload_bytes);
        let mut writer = write_fields(self, if is_enclosed { payload_bytes as usize } else { 0 });
        let content = match self.window() {
            Some(_) => Content::Bytes,
            None => content(self.representation(), self.layout()),
        };
        enclosed::write(&mut writer, whole_payload(self), content, self.set_bits());
        if !is_enclosed {
            writer.number(payload_bytes);
        }
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        let payload = whole_payload(self);
        if enclosed::is_enclosed(self.payload_bytes()) { payload.up_to(0) } else { payload }
    }

    fn chunk_format(&self) -> ChunkFormat {
        match WindowedForm::of(self, self.layout()) {
            Some(form) => windowed_chunk_format(&form, self.payload_bytes()),
            None => chunk_format(self.representation(), self.layout(), self.payload_bytes()),
        }
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
        visit(&fields(self));
        for (member, tag) in records {
            visit(&(member.len() as u64).to_le_bytes());
            visit(member);
            tag.iter().for_each(|&tag| visit(&[tag]));
        }
    }
}

/// Bits set while a dump is read only add to it, while a changed representation, or
/// members inserted among those already read, do not fit.
fn chunk_format(representation: Representation, layout: Layout, payload_bytes: u64) -> ChunkFormat {
    let shape = [representation_code(representation), layout.precision() as u8, layout.tail_bits() as u8];
    let fingerprint = checksum(&shape, payload_bytes);
    ChunkFormat::Checked { fingerprint }
}

/// As [`chunk_format`]. What was read before an advance does not fit what is read after it.
fn windowed_chunk_format(form: &WindowedForm, payload_bytes: u64) -> ChunkFormat {
    let ChunkFormat::Checked { fingerprint } = chunk_format(form.representation, form.layout, payload_bytes) else {
        return ChunkFormat::Plain;
    };
    let numbers = [fingerprint, form.newest(), form.offset().into()];
    ChunkFormat::Checked { fingerprint: checksum_of_numbers(numbers.into_iter(), payload_bytes) }
}

/// Checks how many bytes a payload has.
fn check_bytes(params: &Params, layout: Layout, representation: Representation, total_bytes: u64) -> Result<(), Error> {
    let most_bytes = match representation {
        Representation::Exact => params.max_exact_payload_bytes(),
        // More positions than this a counter holds densely.
        Representation::Sparse => layout.num_bytes() / 2,
        Representation::Dense => layout.num_bytes(),
    };
    let fits = match representation {
        Representation::Dense => total_bytes == most_bytes,
        Representation::Sparse => total_bytes <= most_bytes && total_bytes.is_multiple_of(4),
        Representation::Exact => total_bytes <= most_bytes,
    };
    if !fits {
        return Err(Error::corrupt("payload length", format_args!("at most {most_bytes} bytes"), total_bytes));
    }
    Ok(())
}

/// A counter whose payload is arriving.
pub struct LoadingCounter {
    params: Params,
    layout: Layout,
    floor: u32,
    representation: Representation,
    windowed: Option<WindowedForm>,
    header: Vec<u8>,
    received_bytes: u64,
    total_bytes: u64,
    state: State,
}

impl fmt::Debug for LoadingCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadingCounter")
            .field("params", &self.params)
            .field("representation", &self.representation)
            .field("received_bytes", &self.received_bytes)
            .field("total_bytes", &self.total_bytes)
            .finish_non_exhaustive()
    }
}

enum State {
    /// The bytes of members, of which there are few, or of a windowed counter: kept as they come, read when all are there.
    Payload(Vec<u8>),
    /// The positions, read as they come.
    Sparse(SparseLoading),
    /// The bitmap, filled in place.
    Dense(DenseLoading),
    /// All of it has arrived and was read.
    Done(Box<Counter>),
}

impl LoadingCounter {
    /// Reads a payload once all of it is there, and leaves it where it is none. Its memory was allowed when loading began.
    fn read(&self, bytes: &mut Vec<u8>) -> Result<State, Error> {
        let counter = match &self.windowed {
            Some(form) => form.load(bytes),
            None => Counter::from_payload(self.params, self.layout, self.floor, self.representation, bytes, &Unlimited),
        };
        Ok(State::Done(Box::new(counter.map_err(stored_parameter)?)))
    }
}

impl Loading for LoadingCounter {
    type Value = Counter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let is_windowed = header.first().is_some_and(|&first| Kind::WindowedCounter.begins_with(first));
        let mut reader = Reader::new(header, if is_windowed { Kind::WindowedCounter } else { Kind::Counter })?;
        let representation = representation_of(reader.u8("representation")?)?;
        let (precision, tail_bits) = (reader.u8("precision")?, reader.u8("tail bits")?);
        let layout = Layout::new(precision.into(), tail_bits.into()).map_err(stored_parameter)?;
        let params = Params {
            error_rate: reader.rate("error_rate")?,
            capacity: reader.number("capacity")?,
            exact_limit: reader.number_u32("exact_limit")?,
            exact_bytes: reader.number_u32("exact_bytes")?,
            seed: reader.number("seed")?,
        };
        params.validate().map_err(stored_parameter)?;
        let has_floor = !is_windowed && representation != Representation::Exact;
        let floor = if has_floor { reader.number_u32("floor")? } else { 0 };
        let windowed = if is_windowed {
            let (window, newest, offset) = read_window(&mut reader)?;
            let form = WindowedForm::new(params, layout, representation, window, newest, offset);
            Some(form.map_err(stored_parameter)?)
        } else {
            None
        };
        let content = if is_windowed { Content::Bytes } else { content(representation, layout) };
        let (total_bytes, enclosed) = match enclosed::read(reader, content)? {
            Found::Enclosed(payload) => (payload.len() as u64, Some(payload)),
            Found::Apart(mut reader) => {
                let total_bytes = reader.number("payload length")?;
                expect("header length", 0, reader.remaining())?;
                (total_bytes, None)
            }
        };
        match &windowed {
            Some(form) => form.check_bytes(total_bytes, limit)?,
            None => check_bytes(&params, layout, representation, total_bytes)?,
        }
        let heap_bytes = match (&windowed, representation) {
            (None, Representation::Exact) => params.exact_heap_bytes(total_bytes),
            _ => total_bytes,
        };
        limit.check(size_of::<Counter>() as u64, heap_bytes)?;
        let state = match representation {
            _ if is_windowed => State::Payload(try_with_capacity(total_bytes as usize)?),
            Representation::Exact => State::Payload(Vec::new()),
            Representation::Sparse => {
                State::Sparse(Counter::loading_sparse(params, layout, floor, total_bytes, limit)?)
            }
            Representation::Dense => State::Dense(Counter::loading_dense(params, layout, floor, &Unlimited)?),
        };
        let kept_header = if enclosed.is_some() { Vec::new() } else { try_to_vec(header)? };
        let mut loading = LoadingCounter {
            params,
            layout,
            floor,
            representation,
            windowed,
            header: kept_header,
            received_bytes: 0,
            total_bytes,
            state,
        };
        // An empty payload is complete.
        loading.push(enclosed.as_deref().unwrap_or_default())?;
        if enclosed.is_some() {
            (loading.received_bytes, loading.total_bytes) = (0, 0);
        }
        Ok(loading)
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn chunk_format(&self) -> ChunkFormat {
        match &self.windowed {
            Some(form) => windowed_chunk_format(form, self.total_bytes),
            None => chunk_format(self.representation, self.layout, self.total_bytes),
        }
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        let bytes = match &self.state {
            State::Payload(bytes) => bytes.as_slice(),
            State::Dense(dense) => dense.as_bytes(),
            State::Sparse(sparse) => return Payload::new(|index| sparse.payload_part(index)),
            State::Done(counter) => return Payload::new(|index| counter.payload_part(index)),
        };
        Payload::new(move |index| (index == 0).then_some(PayloadPart::Bytes(bytes))).up_to(self.received_bytes)
    }

    fn next_memory(&self, len: usize) -> &[u8] {
        let State::Dense(dense) = &self.state else { return &[] };
        let missing = dense.as_bytes().get(self.received_bytes as usize..).unwrap_or_default();
        &missing[..len.min(missing.len())]
    }

    fn push(&mut self, more: &[u8]) -> Result<(), Error> {
        let missing = self.total_bytes - self.received_bytes;
        if more.len() as u64 > missing {
            return Err(Error::corrupt("payload length", format_args!("at most {missing} bytes more"), more.len()));
        }
        match &mut self.state {
            State::Dense(dense) => dense.write_bytes(self.received_bytes, more)?,
            State::Sparse(sparse) => sparse.push(more)?,
            State::Payload(bytes) => {
                let before = bytes.len();
                let needed_bytes = more.len() as u64;
                bytes.try_reserve(more.len()).map_err(|_| Error::OutOfMemory { needed_bytes })?;
                bytes.extend_from_slice(more);
                if more.len() as u64 == missing {
                    let mut all = std::mem::take(bytes);
                    self.state = match self.read(&mut all) {
                        Ok(done) => done,
                        Err(error) => {
                            all.truncate(before);
                            self.state = State::Payload(all);
                            return Err(error);
                        }
                    }
                }
            }
            State::Done(_) => {}
        }
        self.received_bytes += more.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<Counter, Error> {
        expect("payload length", self.total_bytes, self.received_bytes)?;
        if let State::Sparse(sparse) = &mut self.state {
            return sparse.finish();
        }
        match std::mem::replace(&mut self.state, State::Payload(Vec::new())) {
            State::Dense(dense) => Ok(dense.finish()),
            State::Done(counter) => Ok(*counter),
            // Taken out before.
            State::Payload(_) | State::Sparse(_) => Err(Error::corrupt("payload", "one value", "a second")),
        }
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(alloc::Layout)) {
        visit(alloc::Layout::for_value(self.header.as_slice()));
        match &self.state {
            State::Payload(bytes) => {
                visit(alloc::Layout::array::<u8>(bytes.capacity()).unwrap_or(alloc::Layout::new::<u8>()))
            }
            State::Sparse(sparse) => sparse.heap_layouts(visit),
            State::Dense(dense) => visit(alloc::Layout::for_value(dense.as_bytes())),
            State::Done(counter) => {
                visit(alloc::Layout::new::<Counter>());
                counter.heap_layouts(visit);
            }
        }
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let state = match &self.state {
            State::Payload(bytes) => State::Payload(try_to_vec(bytes)?),
            State::Sparse(sparse) => State::Sparse(sparse.try_clone()?),
            State::Dense(dense) => State::Dense(dense.try_clone()?),
            State::Done(counter) => State::Done(Box::new(counter.try_clone()?)),
        };
        Ok(LoadingCounter { header: try_to_vec(&self.header)?, state, ..*self })
    }
}

#[cfg(test)]
mod windowed_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::payload::tests::ENCODED;
    use crate::persist::chunks::{dump, dump_loading, load, piece_checksum, push_chunk, scandump};

    /// A sparse counter whose payload has two pieces.
    fn sparse() -> Counter {
        let mut counter = Counter::new(Params {
            capacity: 1_000_000_000,
            error_rate: 0.001,
            exact_limit: 0,
            exact_bytes: 16_384,
            seed: 7,
        })
        .unwrap();
        for member in 0..70_000u32 {
            counter.add(member.to_le_bytes(), &Unlimited).unwrap();
        }
        assert_eq!(counter.representation(), Representation::Sparse);
        counter
    }

    fn begin(counter: &Counter) -> LoadingCounter {
        LoadingCounter::begin(&header_apart(counter, counter.payload_bytes()), &Unlimited).unwrap()
    }

    /// A header that does not enclose the payload, however small it is.
    fn header_apart(counter: &Counter, payload_bytes: u64) -> Vec<u8> {
        let mut writer = write_fields(counter, 0);
        writer.u8(0);
        writer.number(payload_bytes);
        writer.finish()
    }

    fn all_of(payload: Payload<'_>) -> Vec<u8> {
        payload.pieces(usize::MAX).flat_map(|(_, piece)| piece.into_owned()).collect()
    }

    fn same(a: &Counter, b: &Counter) -> bool {
        dump(a).eq(dump(b))
    }

    /// Digests compare fields alone, so they are all there.
    #[test]
    fn fields_are_what_a_header_begins_with() {
        let counter = sparse();
        let (fields, header) = (fields(&counter), counter.header());
        assert!(fields.len() > 10 && header.starts_with(&fields), "{fields:?} {header:?}");
    }

    #[test]
    fn a_chunk_encodes_what_it_holds() {
        let counter = sparse();
        ENCODED.set(0);
        let (next, chunk) = scandump(&counter, 1).unwrap();
        assert_eq!((ENCODED.replace(0), next, chunk.len()), (1 << 16, 1 + (1 << 18), (1 << 18) + 8));
        let (_, chunk) = scandump(&counter, next).unwrap();
        assert_eq!(ENCODED.replace(0), (chunk.len() - 8) / 4);
        // Header and length, which saving begins with, need none.
        assert_eq!(counter.header(), header_apart(&counter, counter.payload_bytes()));
        assert_eq!(counter.payload().len(), counter.payload_bytes());
        assert_eq!(ENCODED.replace(0), 0);
        assert_eq!(dump(&counter).count(), 3);
        assert_eq!(ENCODED.get() as u64, counter.set_bits());
    }

    #[test]
    fn a_bad_chunk_of_positions_is_refused_when_it_comes() {
        let counter = sparse();
        let chunks: Vec<_> = dump(&counter).collect();
        let mut loading = begin(&counter);
        let (next, first) = &chunks[1];
        // The last of its positions is that of the one before: its checksum is right.
        let mut bad = first[..first.len() - 8].to_vec();
        let end = bad.len();
        bad.copy_within(end - 8..end - 4, end - 4);
        let ChunkFormat::Checked { fingerprint } = loading.chunk_format() else { panic!("a format of ours") };
        bad.extend_from_slice(&piece_checksum(&bad, 0, fingerprint).to_le_bytes());
        let error = push_chunk(&mut loading, *next, &bad).unwrap_err();
        assert!(matches!(error, Error::Corrupt { field: "position", .. }), "{error}");
        assert_eq!((loading.received_bytes(), loading.received().len()), (0, 0));
        chunks[1..].iter().for_each(|(next, chunk)| push_chunk(&mut loading, *next, chunk).unwrap());
        assert!(same(&loading.finish().unwrap(), &counter));
    }

    #[test]
    fn what_has_arrived_of_positions_goes_on_from_anywhere() {
        let counter = sparse();
        let payload = all_of(counter.payload());
        let mut loading = begin(&counter);
        for end in [0, 3, 5, 8, 4001, (1 << 18) - 3, 1 << 18, (1 << 18) + 7, payload.len() - 1] {
            loading.push(&payload[loading.received_bytes as usize..end]).unwrap();
            assert_eq!((loading.received_bytes(), loading.received().len()), (end as u64, end as u64));
            assert!(all_of(loading.received()) == payload[..end]);
            assert!(matches!(loading.finish(), Err(Error::Corrupt { field: "payload length", .. })));
            // A copy, a rewritten AOF. RDB files are in tests/format.rs.
            let mut rewritten = begin(&counter);
            dump_loading(&loading).skip(1).for_each(|(next, chunk)| push_chunk(&mut rewritten, next, &chunk).unwrap());
            for mut again in [loading.try_clone().unwrap(), rewritten] {
                again.push(&payload[end..]).unwrap();
                assert!(again.push(b"\0").is_err());
                assert!(same(&again.finish().unwrap(), &counter));
            }
        }
    }

    #[test]
    fn members_that_cannot_be_leave_what_came_before() {
        let params = Params { capacity: 50_000, error_rate: 0.01, exact_limit: 250, exact_bytes: 16_384, seed: 7 };
        let mut counter = Counter::new(params).unwrap();
        for member in [&b"ann"[..], b"ben"] {
            counter.add(member, &Unlimited).unwrap();
        }
        let mut loading = begin(&counter);
        loading.push(b"\x03ann").unwrap();
        assert!(matches!(loading.push(b"\x03ann"), Err(Error::Corrupt { field: "members", .. })));
        assert_eq!(all_of(loading.received()), b"\x03ann");
        loading.push(b"\x03ben").unwrap();
        assert!(same(&loading.try_clone().unwrap().finish().unwrap(), &counter));
        assert!(same(&loading.finish().unwrap(), &counter));
        assert!(loading.finish().is_err());
    }

    #[test]
    fn more_positions_than_a_sparse_counter_has_are_held_densely() {
        let sparse = sparse();
        let most = sparse.layout().num_bytes() / 2;
        let header = header_apart(&sparse, most);
        assert!(LoadingCounter::begin(&header, &crate::size_limit::MaxBytes(most + 1000)).is_err());
        assert!(LoadingCounter::begin(&header_apart(&sparse, most + 4), &Unlimited).is_err());
        let mut loading = LoadingCounter::begin(&header, &Unlimited).unwrap();
        (0..most as u32 / 4).for_each(|position| loading.push(&position.to_le_bytes()).unwrap());
        let dense = loading.finish().unwrap();
        assert_eq!((dense.representation(), dense.set_bits()), (Representation::Dense, most / 4));
        assert!(same(&load::<Counter, _>(dump(&dense), &Unlimited).unwrap(), &dense));
    }
}
