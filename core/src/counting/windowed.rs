//! Windowed counters: each member counts by when it was last seen. The time is passed in; no clock is read here.

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

    /// An empty counter with the same parameters and with `window`, which begins in `slice`, usually
    /// [`Window::first_slice`].
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more slices than [`Self::MAX_SLICES`], or for more slots than any capacity and error
    /// rate lead to; [`Error::OutOfMemory`].
    pub fn with_window(self, window: Window, slice: u64) -> Result<Self, Error> {
        ring::check(&window)?;
        Self::with_ring(*self.params(), self.layout(), TagRing::new(window, slice))
    }

    /// An empty windowed counter with this layout and ring.
    pub(super) fn with_ring(params: Params, layout: Layout, ring: TagRing) -> Result<Self, Error> {
        params.validate()?;
        let set = WindowedSet::new(ring, Held::none(&Spec { params, layout }));
        Ok(Self::with_contents(params, layout, Contents::Windowed(Box::new(set))))
    }

    pub(super) fn ring(&self) -> Option<&TagRing> {
        self.windowed().map(|set| &set.ring)
    }

    /// The window of the counter, if it has one.
    pub fn window(&self) -> Option<&Window> {
        self.ring().map(|ring| &ring.window)
    }

    /// The newest slice that the counter has reached; 0 without a window.
    pub(crate) fn reached(&self) -> u64 {
        self.ring().map_or(0, TagRing::newest)
    }

    /// The slice that is present at `time`; 0 without a window.
    pub(super) fn present_slice(&self, time: Time) -> u64 {
        self.window().map_or(0, |window| window.present(self.reached(), time))
    }
}
