//! Reads the parameters of a new filter from a command's options. Writes them as options for replicas and the AOF.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing};
use rollcall_core::error::{Error, Parameter};
use rollcall_core::unstable::bloom::classic::DEFAULT_GROWTH;
use rollcall_core::unstable::bloom::expansion_error;

use super::super::effects::{Creating, LastWords};
use super::super::windows;
use crate::args::{self, Allowed, Opt, Options};
use crate::command_error::CommandError;
use crate::config;
use crate::limits::ServerLimit;
use crate::server::facts::{is_redis_8, must_obey};
use crate::server::ffi::{Args, Ctx};
use crate::types::entry::no_classic;
use crate::types::family::serves_classic;
use crate::types::names::Prefix;

const RESERVE_OPTIONS: Allowed = &[OF_RESERVE, windows::OF_FILTERS, args::EXPIRY];
const OF_RESERVE: &[Opt] = &[Opt::Expansion, Opt::NonScaling, Opt::Seed, Opt::Layout];

/// Redis 8 lowers any larger error rate of a filter to this rate.
const LARGEST_RATE_OF_REDIS_8: f64 = 0.25;

#[derive(Clone, Copy, PartialEq)]
pub(in crate::commands) struct Creation {
    params: Params,
    layout: BitLayout,
    /// The expansion of a RedisBloom-compatible filter with `NONSCALING`, which RedisBloom stores although the filter
    /// never grows.
    noted_growth: Option<u32>,
    /// Whether the command comes from a primary or the AOF. Its parameters are then used unchanged.
    is_obeyed: bool,
    /// The sliding window, and the number of its newest slice.
    windowing: Option<(Windowing, u64)>,
}

impl Creation {
    /// Lowers the error rate of a RedisBloom-compatible filter to [`LARGEST_RATE_OF_REDIS_8`], as Redis 8 does. A
    /// command of the primary or of an AOF must create the filter unchanged.
    fn as_made_here(mut self) -> Self {
        if !self.is_obeyed && self.layout == BitLayout::Classic && is_redis_8() {
            self.params.error_rate = self.params.error_rate.min(LARGEST_RATE_OF_REDIS_8);
        }
        self
    }

    /// Like [`Self::from_options`], for a replicated command. If a parameter is outside this module's ranges, the
    /// filter becomes a RedisBloom-compatible filter, whose ranges are wider.
    pub(in crate::commands) fn obeyed(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        Self::from_options(ctx, command, options).or_else(|error| {
            if options.layout == Some(BitLayout::Lines) || Prefix::Rf.is_of(command) {
                return Err(error);
            }
            Ok(Creation { layout: BitLayout::Classic, ..Self::from_any_range(ctx, command, options)? })
        })
    }

    fn from_any_range(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let Creation { params: defaults, layout, is_obeyed, .. } = Self::defaults(ctx, command);
        let narrow = |expansion: u64| u32::try_from(expansion).map_err(|_| expansion_error(expansion));
        let given = options.expansion.map(narrow).transpose()?;
        let mut params = Params {
            error_rate: options.error_rate.unwrap_or(defaults.error_rate),
            capacity: options.capacity.unwrap_or(defaults.capacity),
            expansion: given.unwrap_or(defaults.expansion),
            seed: options.seed.unwrap_or(defaults.seed),
        };
        if options.non_scaling {
            params.expansion = 0;
        }
        let noted_growth = given.filter(|&expansion| params.expansion == 0 && expansion != 0);
        let layout = options.layout.unwrap_or(layout);
        if layout == BitLayout::Classic && !serves_classic() {
            return Err(no_classic());
        }
        Creation { params, layout, noted_growth, is_obeyed, windowing: None }.with_window(ctx, options)
    }

    /// Adds the sliding window that `options` describe.
    fn with_window(mut self, ctx: Ctx, options: &Options) -> Result<Self, CommandError> {
        let Some(windowing) = windows::filter_windowing(options)? else { return Ok(self) };
        if options.layout == Some(BitLayout::Classic) {
            return Err(CommandError::Argument("option WINDOW needs layout lines, got classic".to_owned()));
        }
        self.layout = BitLayout::Lines;
        if self.params.expansion == 0 {
            self.params.expansion = DEFAULT_GROWTH;
        }
        let first = || windowing.window.first_slice(ctx.now_seconds());
        let slice = options.window.slice.unwrap_or_else(first);
        self.windowing = Some((windowing, slice));
        Ok(self)
    }

    /// Parses a `BF.RESERVE`. Returns the parameters of the filter and the expiry of its key. `creation` computes
    /// parameters from options.
    pub(in crate::commands) fn from_reservation(
        ctx: Ctx,
        args: Args<'_>,
        creation: fn(Ctx, Args<'_>, &Options) -> Result<Creation, CommandError>,
    ) -> Result<(Creation, Option<i64>), CommandError> {
        // The checks are in RedisBloom's order, so that a command with several errors gets RedisBloom's reply.
        let error_rate = Some(args::number(Parameter::ErrorRate, args.get(2))?);
        creation(ctx, args, &Options { error_rate, ..Options::default() })?;
        let capacity = Some(args::count(Parameter::Capacity, args.get(3))?);
        creation(ctx, args, &Options { capacity, ..Options::default() })?;
        let options = Options { error_rate, capacity, ..args::options(ctx, args, 4, RESERVE_OPTIONS)? };
        windows::check_reservation(ctx, &options)?;
        // As in RedisBloom, only `BF.INSERT` accepts both `NONSCALING` and `EXPANSION`.
        if options.non_scaling && options.expansion.is_some() {
            return Err(CommandError::Argument(
                "Nonscaling filters cannot expand: give NONSCALING or EXPANSION, not both".to_owned(),
            ));
        }
        Ok((creation(ctx, args, &options)?, options.expiry))
    }
}

static LAST_WORDS: LastWords<Creation> = LastWords::new(None);

impl Creating<BloomFilter> for Creation {
    const LAST_WORDS: &'static LastWords<Self> = &LAST_WORDS;

    /// RF.* commands create filters in Rollcall's own layout (`lines`). A replicated BF.* command without a layout
    /// creates a RedisBloom-compatible filter, because RedisBloom and this module replicate only such filters by BF.*
    /// commands.
    ///
    /// A replicated RF.* command gets the library's defaults: a primary with other defaults sends all parameters. All
    /// other commands get the configured defaults.
    fn defaults(ctx: Ctx, command: Args<'_>) -> Self {
        let is_obeyed = must_obey(ctx);
        let (layout, params) = match (Prefix::Rf.is_of(command), is_obeyed) {
            (true, true) => (BitLayout::Lines, Params::default()),
            (true, false) => (BitLayout::Lines, config::bloom_defaults()),
            (false, true) => (BitLayout::Classic, config::bloom_defaults()),
            (false, false) => (config::bloom_layout(), config::bloom_defaults()),
        };
        Creation { params, layout, noted_growth: None, is_obeyed, windowing: None }.as_made_here()
    }

    fn from_options(ctx: Ctx, command: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let creation = Self::from_any_range(ctx, command, options)?;
        // A given expansion has to be in range even if NONSCALING overrides it.
        let expansion = creation.noted_growth.unwrap_or(creation.params.expansion);
        Params { expansion, ..creation.params }.validate()?;
        Ok(creation.as_made_here())
    }

    fn is_implied(&self) -> bool {
        self.layout == BitLayout::Lines && config::bloom_defaults() == Params::default()
    }

    fn build(&self, limit: &ServerLimit) -> Result<BloomFilter, Error> {
        match (self.windowing, self.layout) {
            (Some((windowing, slice)), _) => BloomFilter::windowed(self.params, windowing, slice, limit),
            // A client's parameters have been checked already. Those of a replicated command may lie outside the ranges
            // for clients, and `BloomFilter::classic` accepts them.
            (None, BitLayout::Classic) => {
                BloomFilter::classic(self.params, self.noted_growth.unwrap_or(DEFAULT_GROWTH), limit)
            }
            (None, BitLayout::Lines) => BloomFilter::new(BitLayout::Lines, self.params, limit),
        }
    }

    fn size(&self) -> Option<(f64, u64)> {
        Some((self.params.error_rate, self.params.capacity))
    }

    /// The parameters other than error rate and capacity, as options of a replicated command. For a
    /// RedisBloom-compatible filter, RedisBloom must know all these options, because a replica with RedisBloom may run
    /// the command.
    fn options(&self) -> String {
        let Params { expansion, seed, .. } = self.params;
        let mut words = String::new();
        if expansion == 0 {
            words += "NONSCALING ";
        }
        if let Some(expansion) = self.noted_growth.or((expansion != 0).then_some(expansion)) {
            words += &format!("EXPANSION {expansion} ");
        }
        if self.layout == BitLayout::Lines {
            words += &format!("SEED {seed} LAYOUT {} ", self.layout);
        }
        if let Some((windowing, slice)) = &self.windowing {
            words += &windows::words(&windowing.window, windowing.refresh, *slice);
        }
        words
    }
}
