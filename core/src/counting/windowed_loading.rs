//! A windowed counter out of the bytes of its [`payload`](super::payload).

use crate::counting::counter::{Counter, Representation, State};
use crate::counting::dated::cells;
use crate::counting::dated::members::DatedMembers;
use crate::counting::dated::positions::RECORD_BYTES;
use crate::counting::dated::ring::{self, Ring};
use crate::counting::dated::{self, Dated};
use crate::counting::layout::Layout;
use crate::counting::params::{Params, Plan};
use crate::error::Error;
use crate::size_limit::SizeLimit;
use crate::window::Window;

/// What a windowed counter is, but for what it has seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowedForm {
    /// As of any counter.
    pub(crate) params: Params,
    /// As of any counter.
    pub(crate) layout: Layout,
    /// How what was seen is held.
    pub(crate) representation: Representation,
    ring: Ring,
}

impl WindowedForm {
    /// That of a counter with a window.
    pub(crate) fn of(counter: &Counter, layout: Layout) -> Option<Self> {
        let (&params, representation) = (counter.params(), counter.representation());
        counter.ring().map(|&ring| WindowedForm { params, layout, representation, ring })
    }

    /// Of fields that were stored.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when a parameter is; [`Error::Corrupt`] for an offset that is none.
    pub(crate) fn new(
        params: Params,
        layout: Layout,
        representation: Representation,
        window: Window,
        newest: u64,
        offset: u8,
    ) -> Result<Self, Error> {
        params.validate()?;
        ring::check(&window)?;
        let modulus = Ring::new(window, newest).modulus();
        if u32::from(offset) >= modulus {
            return Err(Error::corrupt("offset", format_args!("below {modulus}"), offset));
        }
        let ring = Ring::with_offset(window, newest, offset);
        Ok(WindowedForm { params, layout, representation, ring })
    }

    /// Its window.
    pub(crate) fn window(&self) -> Window {
        self.ring.window
    }

    /// The newest slice that it has reached.
    pub(crate) fn newest(&self) -> u64 {
        self.ring.newest()
    }

    /// What the tags of slices count from.
    pub(crate) fn offset(&self) -> u8 {
        self.ring.offset()
    }

    /// The most bytes of a payload. A dense one has as many.
    pub(crate) fn most_bytes(&self) -> u64 {
        let cells = cells::num_bytes(self.layout, self.ring.has_halves());
        match self.representation {
            Representation::Exact => self.params.max_exact_payload_bytes() + u64::from(self.params.exact_limit),
            // More positions than this are held as cells.
            Representation::Sparse => cells / 2,
            Representation::Dense => cells,
        }
    }

    /// Checks how many bytes a payload has, and asks `limit` for the memory that the counter will take.
    ///
    /// # Errors
    /// [`Error::Corrupt`], those of `limit`.
    pub(crate) fn check_bytes(&self, payload_bytes: u64, limit: &impl SizeLimit) -> Result<(), Error> {
        let (most_bytes, record_bytes) = (self.most_bytes(), RECORD_BYTES as u64);
        let (fits, heap_bytes) = match self.representation {
            Representation::Exact => {
                (payload_bytes <= most_bytes, DatedMembers::bytes_of_read(payload_bytes, self.params.room()))
            }
            Representation::Sparse => {
                let fits = payload_bytes <= most_bytes && payload_bytes.is_multiple_of(record_bytes);
                (fits, dated::bytes_of_slots(self.layout, &self.ring, payload_bytes / record_bytes))
            }
            Representation::Dense => (payload_bytes == most_bytes, payload_bytes),
        };
        if !fits {
            return Err(Error::corrupt("payload length", format_args!("at most {most_bytes} bytes"), payload_bytes));
        }
        limit.check(Counter::WINDOWED_BYTES, heap_bytes)
    }

    /// The counter that gave this payload, which is left as it is where it is none. Its memory was allowed when its bytes
    /// were [checked](Self::check_bytes).
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the payload is none of this form; [`Error::OutOfMemory`].
    pub(crate) fn load(&self, payload: &mut Vec<u8>) -> Result<Counter, Error> {
        let WindowedForm { params, layout, ring, .. } = *self;
        let plan = Plan { params, layout };
        let dated = match self.representation {
            Representation::Exact => Dated::from_exact(ring, &plan, payload)?,
            Representation::Sparse => Dated::from_sparse(ring, &plan, payload)?,
            Representation::Dense => Dated::from_dense(ring, &plan, payload)?,
        };
        Ok(Counter::from_state(params, layout, 0, State::Windowed(Box::new(dated))))
    }
}
