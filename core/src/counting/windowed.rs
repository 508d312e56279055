//! Windowed counters: members count by when they were last seen. No clock is asked here: the time is passed in.

use crate::counting::counter::{Contents, Counter, Shaped};
use crate::counting::held::Held;
use crate::counting::held::ring::{self, MOST_SLICES, TagRing};
use crate::counting::layout::Layout;
use crate::counting::params::{Params, Spec};
use crate::counting::windowed_set::WindowedSet;
use crate::error::Error;
use crate::window::{Time, Window};

impl Counter {
    /// The most slices that a window may have.
    pub const MAX_SLICES: u32 = MOST_SLICES;

    /// An empty counter with the same parameters and a window that begins in a slice, mostly that of
    /// [`Window::first_slice`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more slices than [`Self::MAX_SLICES`], or more slots than one that follows from a
    /// capacity and an error rate; [`Error::OutOfMemory`].
    pub fn with_window(self, window: Window, slice: u64) -> Result<Self, Error> {
        ring::check(&window)?;
        Self::with_ring(*self.params(), self.layout(), TagRing::new(window, slice))
    }

    /// An empty windowed counter.
    pub(super) fn with_ring(params: Params, layout: Layout, ring: TagRing) -> Result<Self, Error> {
        params.validate()?;
        let set = WindowedSet::new(ring, Held::none(&Spec { params, layout }));
        Ok(Self::with_contents(params, layout, Contents::Windowed(Box::new(set))))
    }

    pub(super) fn ring(&self) -> Option<&TagRing> {
        self.windowed().map(WindowedSet::ring)
    }

    /// The window of the counter, if it has one.
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The newest slice that the counter has reached; 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.ring().map_or(0, TagRing::newest)
    }

    /// The present slice at a time.
    pub(super) fn present_slice(&self, time: Time) -> u64 {
        self.window().map_or(0, |window| window.present(self.reached(), time))
    }
}
