//! The parameters of a new counter: parsed from options, completed from the configuration, and written as options for
//! replicas and the AOF.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::error::Error;
use rollcall_core::unstable::counting::layout::Layout;
use rollcall_core::unstable::counting::{Shaped, sizing};
use rollcall_core::window::Window;

use super::super::effects::{Creating, LastWords};
use super::super::{expiry, windows};
use crate::args::{Options, narrow};
use crate::command_error::CommandError;
use crate::config;
use crate::limits::ServerLimit;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx};
use crate::types::names::Prefix;

/// The parameters with which a command creates a counter and its key.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::commands) struct Creation {
    params: Params,
    /// The layout of the dense counter's bitmap, if the options `PRECISION` and `TAIL` give it. If `None`, the layout
    /// follows from the capacity and the error rate.
    layout: Option<Layout>,
    /// The sliding window of the counter, and the time slice in which the window begins.
    window: Option<(Window, u64)>,
    /// The time at which the key expires, in milliseconds since 1970; `None` if it does not expire.
    expiry: Option<i64>,
}

impl Creation {
    /// Returns the layout of the dense counter's bitmap. If the options gave none, computes it from the capacity and
    /// the error rate.
    fn layout(&self) -> Result<Layout, Error> {
        self.layout.map_or_else(|| sizing::layout(self.params.error_rate, self.params.capacity), Ok)
    }
}

static LAST_WORDS: LastWords<Creation> = LastWords::new(None);

impl Creating<Counter> for Creation {
    const LAST_WORDS: &'static LastWords<Self> = &LAST_WORDS;

    fn defaults(ctx: Ctx, _command: Args<'_>) -> Self {
        // A replicated command has the library's defaults: a primary with others sends all parameters.
        let params = if must_obey(ctx) { Params::default() } else { config::counting_defaults() };
        Creation { params, layout: None, window: None, expiry: None }
    }

    fn from_options(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let defaults = Self::defaults(ctx, command).params;
        let params = Params {
            capacity: options.capacity.unwrap_or(defaults.capacity),
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            exact_limit: options.exact_limit.map_or(defaults.exact_limit, narrow),
            exact_bytes: options.exact_bytes.map_or(defaults.exact_bytes, narrow),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        params.validate().map_err(|error| options.as_given(error))?;
        let layout = match (options.precision, options.tail_bits) {
            (None, None) => None,
            (Some(precision), Some(tail_bits)) => {
                let layout = Layout::new(narrow(precision), narrow(tail_bits));
                Some(layout.map_err(|error| options.as_given(error))?)
            }
            (Some(_), None) => return Err(CommandError::Argument("option PRECISION needs option TAIL".to_owned())),
            (None, Some(_)) => return Err(CommandError::Argument("option TAIL needs option PRECISION".to_owned())),
        };
        let first = |window: Window| options.window.slice.unwrap_or_else(|| window.first_slice(ctx.now_seconds()));
        let window = windows::counter_window(options)?.map(|window| (window, first(window)));
        let volatile = expiry::of_window(ctx, window.as_ref().map(|(window, slice)| (window, *slice)));
        Ok(Creation { params, layout, window, expiry: expiry::resolve(ctx, options.expiry)?.or(volatile) })
    }

    fn is_implied(&self) -> bool {
        // Of any other size the layout is sent, so that the formulas of sizing may change.
        self.params == Params::default() && self.layout.is_none()
    }

    fn without_expiry(&self) -> Self {
        Creation { expiry: None, ..*self }
    }

    fn build(&self, _limit: &ServerLimit) -> Result<Counter, Error> {
        let counter = Counter::with_layout(self.params, self.layout()?)?;
        match self.window {
            None => Ok(counter),
            Some((window, slice)) => counter.with_window(window, slice),
        }
    }

    fn prefix(&self) -> Prefix {
        Prefix::Lc
    }

    fn expiry(&self) -> Option<i64> {
        self.expiry
    }

    fn size(&self) -> (Option<f64>, u64) {
        (None, self.params.capacity)
    }

    fn options(&self) -> String {
        let Params { error_rate, exact_limit, exact_bytes, seed, .. } = self.params;
        let layout = self
            .layout()
            .map_or(String::new(), |layout| format!("PRECISION {} TAIL {}", layout.precision(), layout.tail_bits()));
        let window = self.window.map_or(String::new(), |(window, slice)| windows::words(&window, false, slice));
        format!("ERROR {error_rate:?} EXACT {exact_limit} BYTES {exact_bytes} {layout} SEED {seed} {window}")
    }
}
