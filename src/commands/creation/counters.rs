//! What a counter is created with: read from options and defaults, and written as words for replicas and the AOF.

use rollcall_core::counting::{Counter, Params};
use rollcall_core::error::{Error, Parameter};
use rollcall_core::unstable::counting::layout::Layout;
use rollcall_core::unstable::counting::{Shaped, sizing};
use rollcall_core::window::Window;

use super::super::effects::{AddedWords, announce_expiry, word};
use super::super::keyspace::refusal_of;
use super::super::{expiry, windows};
use crate::args::Options;
use crate::config;
use crate::refusal::Refusal;
use crate::server::ffi::{ArgOrOwned, Args, Closed, Ctx};
use crate::types::family::Family;
use crate::types::names::{Prefix, Verb};

/// What a counter is created with.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Creation {
    params: Params,
    /// The shape of its bitmap, where that was decided elsewhere.
    layout: Option<Layout>,
    /// Its window, and the slice that it begins with.
    window: Option<(Window, u64)>,
    /// When the key expires, in milliseconds since 1970.
    pub(in crate::commands) expiry: Option<i64>,
}

impl Creation {
    /// What the configuration says.
    pub(in crate::commands) fn defaults() -> Self {
        Creation { params: config::counting_defaults(), layout: None, window: None, expiry: None }
    }

    /// What options and defaults make.
    pub(in crate::commands) fn of(ctx: Ctx, options: &Options) -> Result<Self, Refusal> {
        let defaults = config::counting_defaults();
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let params = Params {
            capacity: options.capacity.unwrap_or(defaults.capacity),
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            exact_limit: options.exact_limit.map_or(defaults.exact_limit, narrow),
            exact_bytes: options.exact_bytes.map_or(defaults.exact_bytes, narrow),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        params.validate().map_err(|error| refusal_of::<Counter>(as_given(error, options)))?;
        let layout = match (options.precision, options.tail_bits) {
            (None, None) => None,
            (Some(precision), Some(tail_bits)) => {
                let layout = Layout::new(narrow(precision), narrow(tail_bits));
                Some(layout.map_err(|error| refusal_of::<Counter>(as_given(error, options)))?)
            }
            (Some(_), None) => return Err(Refusal::Argument("option PRECISION needs option TAIL".to_owned())),
            (None, Some(_)) => return Err(Refusal::Argument("option TAIL needs option PRECISION".to_owned())),
        };
        let first = |window: Window| options.window.slice.unwrap_or_else(|| window.first_slice(windows::now(ctx)));
        let window = windows::of_counter(options)?.map(|window| (window, first(window)));
        Ok(Creation { params, layout, window, expiry: expiry::resolve(ctx, options.expiry)? })
    }

    pub(in crate::commands) fn build(&self) -> Result<Counter, Refusal> {
        let layout = self
            .layout
            .map_or_else(|| sizing::layout(self.params.error_rate, self.params.capacity), Ok)
            .map_err(refusal_of::<Counter>)?;
        let counter = Counter::with_layout(self.params, layout).map_err(refusal_of::<Counter>)?;
        match self.window {
            None => Ok(counter),
            Some((window, slice)) => counter.with_window(window, slice).map_err(refusal_of::<Counter>),
        }
    }
}

/// The error, about the number that was given and not about what 32 bits hold of it.
fn as_given(error: Error, options: &Options) -> Error {
    match error {
        Error::OutOfRange { parameter, expected, got } => {
            let given = match parameter {
                Parameter::ExactLimit => options.exact_limit,
                Parameter::ExactBytes => options.exact_bytes,
                Parameter::Precision => options.precision,
                Parameter::TailBits => options.tail_bits,
                _ => None,
            };
            Error::OutOfRange { parameter, expected, got: given.map_or(got, |given| given.to_string()) }
        }
        error => error,
    }
}

/// What a counter was created with, all of which its replicas are told.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Created {
    params: Params,
    layout: Layout,
    window: Option<(Window, u64)>,
    expiry: Option<i64>,
}

impl Created {
    pub(in crate::commands) fn new(counter: &Counter, creation: &Creation) -> Self {
        let Creation { window, expiry, .. } = *creation;
        Created { params: *counter.params(), layout: counter.layout(), window, expiry }
    }
}

pub(in crate::commands) const WORDS: AddedWords<Created> = AddedWords {
    announce_reserved: Created::announce_reserved,
    events: Counter::prefix_of_events,
    options: |ctx, created| {
        let mut words = vec![word(ctx, "CAPACITY"), word(ctx, created.params.capacity.to_string())];
        words.extend(created.reserve_words(ctx));
        words
    },
    expiry: |created| created.expiry,
};

impl Created {
    /// The options that `LC.RESERVE` and `LC.INSERT` share, as words.
    fn reserve_words(&self, ctx: Ctx) -> Vec<ArgOrOwned<'static>> {
        let Created { params, layout, window, .. } = self;
        let mut words = vec![
            word(ctx, "ERROR"),
            word(ctx, format!("{:?}", params.error_rate)),
            word(ctx, "EXACT"),
            word(ctx, params.exact_limit.to_string()),
            word(ctx, "BYTES"),
            word(ctx, params.exact_bytes.to_string()),
            word(ctx, "PRECISION"),
            word(ctx, layout.precision().to_string()),
            word(ctx, "TAIL"),
            word(ctx, layout.tail_bits().to_string()),
            word(ctx, "SEED"),
            word(ctx, params.seed.to_string()),
        ];
        if let Some((window, slice)) = window {
            words.extend(windows::words(ctx, window, false, *slice));
        }
        words
    }

    /// Replicates the creation of an empty key, and sends its event.
    pub(in crate::commands) fn announce_reserved(&self, ctx: Ctx, key: Closed<'_>) {
        let mut arguments = vec![ArgOrOwned::Arg(key.name()), word(ctx, self.params.capacity.to_string())];
        arguments.extend(self.reserve_words(ctx));
        ctx.replicate(Prefix::Lc.name(Verb::Reserve).text(), &arguments, Args::none());
        ctx.changed(key, Prefix::Lc.event(Verb::Reserve));
        announce_expiry(ctx, key, self.expiry);
    }
}
