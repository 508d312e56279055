//! A counter, stored.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `RCLC` |
//! | 4 | 1 | version |
//! | 5 | 1 | representation: 0 exact, 1 sparse, 2 dense |
//! | 6 | 1 | precision: log2 of the bits of the main bitmap |
//! | 7 | 1 | 0 |
//! | 8 | 8 | seed |
//! | 16 | 8 | error rate, f64 |
//! | 24 | 8 | capacity, members |
//! | 32 | 4 | exact limit, members |
//! | 36 | 4 | 0 |
//! | 40 | 8 | payload, bytes |
//! | 48 | 8 | checksum |
//!
//! The payload of an exact counter is its members, each a length in two bytes and that many bytes; of a sparse
//! one the ascending positions of its set bits, four bytes each; of a dense one the words of its bitmap.
//! The precision follows from rate and capacity; it is stored so that a reader need not know the sizing
//! formulas, and compared with them here. The number of set bits of each segment is counted again on loading.

use std::alloc::Layout;

use super::codec::{Reader, Writer, expect, stored_parameter};
use super::{Loading, Payload, Stored};
use crate::counting::{Counter, DenseLoading, Params, Representation};
use crate::error::Error;
use crate::hash::checksum;
use crate::size_limit::{SizeLimit, Unlimited};

/// How a header of a counter begins.
pub const MAGIC: [u8; 4] = *b"RCLC";

/// Most bytes that members and their lengths take: their offsets are two bytes.
const MAX_EXACT_PAYLOAD_BYTES: u64 = u16::MAX as u64;

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

impl Stored for Counter {
    type Loading = LoadingCounter;

    fn header(&self) -> Vec<u8> {
        let params = self.params();
        let mut writer = Writer::new(MAGIC);
        writer.u8(representation_code(self.representation()));
        writer.u8(self.precision() as u8);
        writer.u8(0);
        writer.u64(params.seed);
        writer.f64(params.error_rate);
        writer.u64(params.capacity);
        writer.u32(params.exact_limit);
        writer.u32(0);
        writer.u64(self.payload_bytes());
        writer.finish()
    }

    fn payload(&self) -> Payload<'_> {
        Payload::new(self.payload())
    }

    fn shape(&self) -> u64 {
        shape(self.representation(), self.precision(), self.payload_bytes())
    }
}

/// As [`Stored::shape`]: bits set while a dump is read only add to it, while a changed representation, or
/// members inserted among those already read, do not fit.
fn shape(representation: Representation, precision: u32, payload_bytes: u64) -> u64 {
    checksum(&[representation_code(representation), precision as u8], payload_bytes)
}

/// A counter whose payload is arriving.
#[derive(Debug)]
pub struct LoadingCounter {
    params: Params,
    precision: u32,
    representation: Representation,
    header: Vec<u8>,
    received_bytes: u64,
    total_bytes: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Members or positions: kept as they come, read when all are there.
    Bytes(Vec<u8>),
    /// The bitmap, filled in place.
    Dense(DenseLoading),
    /// All has arrived and was read.
    Done(Box<Counter>),
}

impl LoadingCounter {
    /// Reads members or positions once all are there. Their memory was allowed when loading began.
    fn read(&self, bytes: &[u8]) -> Result<State, Error> {
        let counter = Counter::from_payload(self.params, self.precision, self.representation, bytes, &Unlimited)
            .map_err(stored_parameter)?;
        Ok(State::Done(Box::new(counter)))
    }
}

impl Loading for LoadingCounter {
    type Value = Counter;

    fn begin(header: &[u8], limit: &impl SizeLimit) -> Result<Self, Error> {
        let mut reader = Reader::new(header, MAGIC)?;
        let representation = representation_of(reader.u8("representation")?)?;
        let precision = u32::from(reader.u8("precision")?);
        expect("reserved byte", 0, reader.u8("reserved byte")?)?;
        let params = Params {
            seed: reader.u64("seed")?,
            error_rate: reader.f64("error_rate")?,
            capacity: reader.u64("capacity")?,
            exact_limit: reader.u32("exact_limit")?,
        };
        let layout = params.layout().map_err(stored_parameter)?;
        expect("precision", layout.precision(), precision)?;
        expect("reserved bytes", 0, reader.u32("reserved bytes")?)?;
        let total_bytes = reader.u64("payload length")?;
        expect("header length", 0, reader.remaining())?;
        let most_bytes = match representation {
            Representation::Exact => MAX_EXACT_PAYLOAD_BYTES,
            // More positions than this a counter holds densely.
            Representation::Sparse => layout.num_bytes() / 2,
            Representation::Dense => layout.num_bytes(),
        };
        let fits = match representation {
            Representation::Dense => total_bytes == most_bytes,
            Representation::Sparse => total_bytes <= most_bytes && total_bytes % 4 == 0,
            Representation::Exact => total_bytes <= most_bytes,
        };
        if !fits {
            return Err(Error::corrupt("payload length", format_args!("at most {most_bytes} bytes"), total_bytes));
        }
        limit.check(0, total_bytes)?;
        let state = match representation {
            Representation::Dense => State::Dense(Counter::loading_dense(params, precision, &Unlimited)?),
            _ => State::Bytes(Vec::new()),
        };
        let header = header.to_vec();
        let mut loading =
            LoadingCounter { params, precision, representation, header, received_bytes: 0, total_bytes, state };
        if total_bytes == 0 {
            loading.state = loading.read(&[])?;
        }
        Ok(loading)
    }

    fn header(&self) -> &[u8] {
        &self.header
    }

    fn shape(&self) -> u64 {
        shape(self.representation, self.precision, self.total_bytes)
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn received(&self) -> Payload<'_> {
        let received = self.received_bytes as usize;
        match &self.state {
            State::Bytes(bytes) => Payload::new(vec![bytes.as_slice().into()]),
            State::Dense(dense) => Payload::new(vec![dense.as_bytes()[..received].into()]),
            State::Done(counter) => Payload::new(counter.payload()),
        }
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
            State::Bytes(bytes) => {
                let before = bytes.len();
                let needed_bytes = more.len() as u64;
                bytes.try_reserve(more.len()).map_err(|_| Error::OutOfMemory { needed_bytes })?;
                bytes.extend_from_slice(more);
                if more.len() as u64 == missing {
                    let all = std::mem::take(bytes);
                    match self.read(&all) {
                        Ok(done) => self.state = done,
                        Err(error) => {
                            self.state = State::Bytes(all[..before].to_vec());
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
        match std::mem::replace(&mut self.state, State::Bytes(Vec::new())) {
            State::Done(counter) => Ok(*counter),
            State::Dense(dense) => Ok(dense.finish()),
            // Only an empty payload gets here without having been read.
            State::Bytes(bytes) => {
                Counter::from_payload(self.params, self.precision, self.representation, &bytes, &Unlimited)
            }
        }
    }

    fn heap_layouts(&self, visit: &mut dyn FnMut(Layout)) {
        visit(Layout::for_value(self.header.as_slice()));
        match &self.state {
            State::Bytes(bytes) => visit(Layout::array::<u8>(bytes.capacity()).unwrap_or(Layout::new::<u8>())),
            State::Dense(dense) => visit(Layout::for_value(dense.as_bytes())),
            State::Done(counter) => {
                visit(Layout::new::<Counter>());
                counter.heap_layouts(visit);
            }
        }
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let mut copy = Self::begin(&self.header, &Unlimited)?;
        for (_, piece) in self.received().pieces(super::RDB_PIECE_BYTES) {
            copy.push(piece)?;
        }
        Ok(copy)
    }
}
