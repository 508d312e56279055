//! Reads the parameters of a new counter from a command's options. Writes them as options for replicas and the AOF.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::error::Error;
use rollcall_core::window::Window;

use super::super::effects::{Creating, LastWords};
use super::super::windows;
use crate::args::{Options, narrow};
use crate::command_error::CommandError;
use crate::config;
use crate::limits::ServerLimit;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx};

#[derive(Clone, Copy, PartialEq)]
pub(in crate::commands) struct Creation {
    params: Params,
    /// The sliding window, and the number of its newest slice.
    window: Option<(Window, u64)>,
}

static LAST_WORDS: LastWords<Creation> = LastWords::new(None);

impl Creating<Counter> for Creation {
    const LAST_WORDS: &'static LastWords<Self> = &LAST_WORDS;

    fn defaults(ctx: Ctx, _command: Args<'_>) -> Self {
        // A replicated command uses the library's defaults, because a primary sends all parameters that differ from
        // them.
        let params = if must_obey(ctx) { Params::default() } else { config::counting_defaults() };
        Creation { params, window: None }
    }

    fn from_options(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let defaults = Self::defaults(ctx, command).params;
        let params = Params {
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            exact_limit: options.exact_limit.map_or(defaults.exact_limit, narrow),
            exact_bytes: options.exact_bytes.map_or(defaults.exact_bytes, narrow),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        params.validate().map_err(|error| options.as_given(error))?;
        let first = |window: Window| options.window.slice.unwrap_or_else(|| window.first_slice(ctx.now_seconds()));
        Ok(Creation { params, window: windows::counter_window(options)?.map(|window| (window, first(window))) })
    }

    fn is_implied(&self) -> bool {
        self.params == Params::default()
    }

    fn build(&self, _limit: &ServerLimit) -> Result<Counter, Error> {
        let counter = Counter::new(self.params)?;
        match self.window {
            None => Ok(counter),
            Some((window, slice)) => counter.with_window(window, slice),
        }
    }

    fn options(&self) -> String {
        let Params { error_rate, exact_limit, exact_bytes, seed } = self.params;
        let window = self.window.map_or(String::new(), |(window, slice)| windows::words(&window, false, slice));
        format!("ERROR {error_rate:?} EXACT {exact_limit} BYTES {exact_bytes} SEED {seed} {window}")
    }
}
