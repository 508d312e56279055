//! Judgement: what is wrong, or soon will be, with a filter, a counter or a server, and what to do about it.
//!
//! A filter is in trouble long before its answers are: it has grown, or is nearly full. Whoever watches it describes it by
//! plain facts, [`FilterFacts`], [`CounterFacts`], [`LoadingFacts`] or [`ServerFacts`], and gets [`Finding`]s.

use std::fmt;

use rollcall_core::unstable::rounding::error_of_whole;

mod advice;

use advice::{new_name, percent, rate, round_up};

/// Growths that are no reason to worry. Each makes look-ups of absent items ask one sub-filter more.
pub const HARMLESS_GROWTHS: u64 = 3;

/// A rate past the one asked for by this share is worth a look; less is rounding of sizes.
pub const PAST_RATE_SHARE: f64 = 0.05;

/// As many times the rate asked for are past any use of the promise.
pub const CRITICAL_RATE_FACTOR: f64 = 2.0;

/// From this share of its capacity on a filter that cannot grow is nearly full: a tenth is left to act in.
pub const NEARLY_FULL: f64 = 0.9;

/// From this share of `maxmemory` on memory is short.
pub const MEMORY_SHORT: f64 = 0.9;

/// From this share of `maxmemory` on the next growth of anything may be rejected, or evict.
pub const MEMORY_GONE: f64 = 0.98;

/// Standard errors that a rate may be off by chance without a finding: one filter in 740.
const CHANCE: f64 = 3.0;

/// How far rates scatter: relative standard deviation, for each binary digit of the rate, times the root of the items. A
/// filter of 0.01 with 10,000 items deviates by 1.7 %, and the number of its bits an item goes with the digits.
const SCATTER: f64 = 0.26;

/// Up to this rate a filter is full when it counts its capacity; above, when its bits say so.
const COUNT_SERVES_UP_TO: f64 = 0.02;

/// How urgent a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know; nothing suffers.
    Notice,
    /// Something will suffer, or costs more than it must.
    Warning,
    /// Something suffers now.
    Critical,
}

impl Severity {
    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Only some chunks of a value have been loaded.
    HalfLoaded,
    /// A filter that cannot grow rejects new items.
    Full,
    /// A filter that cannot grow soon will.
    NearlyFull,
    /// More false positives than were asked for.
    PastRate,
    /// A filter has grown more often than [`HARMLESS_GROWTHS`].
    Grown,
    /// A counter has more members than it was made for.
    PastCapacity,
    /// A value with a window has forgotten everything, and does not expire.
    Idle,
    /// A server's memory is short.
    Memory,
    /// A server may evict whole filters, or this volatile key.
    MayEvict,
    /// A server keeps filters that it serves to nobody.
    NotServed,
}

impl Problem {
    /// All of them.
    pub const ALL: [Problem; 10] = [
        Problem::HalfLoaded,
        Problem::Full,
        Problem::NearlyFull,
        Problem::PastRate,
        Problem::Grown,
        Problem::PastCapacity,
        Problem::Idle,
        Problem::Memory,
        Problem::MayEvict,
        Problem::NotServed,
    ];

    /// Its code word, which never changes: `nearly-full`.
    pub fn name(self) -> &'static str {
        match self {
            Problem::HalfLoaded => "half-loaded",
            Problem::Full => "full",
            Problem::NearlyFull => "nearly-full",
            Problem::PastRate => "past-rate",
            Problem::Grown => "grown",
            Problem::PastCapacity => "past-capacity",
            Problem::Idle => "idle",
            Problem::Memory => "memory",
            Problem::MayEvict => "may-evict",
            Problem::NotServed => "not-served",
        }
    }
}

/// Something wrong, and what to do about it. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it is.
    pub problem: Problem,
    /// How urgent it is.
    pub severity: Severity,
    /// What is wrong, with figures.
    pub wrong: String,
    /// What to do about it.
    pub advice: String,
    /// What to type for that, where there is one command: it works as it stands, and changes no key that is there, then or
    /// later.
    pub command: Option<String>,
}

impl Finding {
    fn of(problem: Problem, severity: Severity, wrong: String, advice: impl Into<String>) -> Self {
        Finding { problem, severity, wrong, advice: advice.into(), command: None }
    }

    fn command(self, command: impl Into<Option<String>>) -> Self {
        Finding { command: command.into(), ..self }
    }

    /// The advice that fits a window, for a finding that asks for a larger value. What a window remembers is in no other
    /// source. A volatile key is created by the calls that write to it: one that is reserved in its place stays for ever.
    fn with_window(self, window: Option<WindowFacts>, items: u64) -> Self {
        let advice = match window {
            None => return self,
            Some(WindowFacts::Volatile(_)) => {
                let capacity = round_up(items);
                format!(
                    "give CAPACITY {capacity} in the calls that write to it: it applies when they next create the key, \
                     or write to another name too for a window and rename that"
                )
            }
            Some(_) => "write to it and to a larger one under another name for a window, then rename that".to_owned(),
        };
        let command = self.command.filter(|_| !matches!(window, Some(WindowFacts::Volatile(_))));
        Finding { advice, command, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.wrong, self.advice)?;
        match &self.command {
            Some(command) => write!(f, ": {command}"),
            None => Ok(()),
        }
    }
}

/// What a value with a window remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowFacts {
    /// The items of so many seconds.
    Seconds(u64),
    /// The same, and the key expires once it is empty.
    Volatile(u64),
    /// The same, where its user and not the clock moves it on.
    Manual(u64),
    /// The last items, as many as its capacity.
    Last,
}

impl WindowFacts {
    /// The options that it takes.
    fn options(self) -> String {
        match self {
            WindowFacts::Seconds(seconds) => format!(" WINDOW {seconds}"),
            WindowFacts::Volatile(seconds) => format!(" WINDOW {seconds} VOLATILE"),
            WindowFacts::Manual(seconds) => format!(" WINDOW {seconds} MANUAL"),
            WindowFacts::Last => " LAST".to_owned(),
        }
    }
}

/// What is known of a filter. What is not known is `None`. There may be more fields: build it on [`FilterFacts::of`].
#[derive(Debug, Clone, Copy)]
pub struct FilterFacts<'a> {
    /// The name of the key.
    pub key: &'a [u8],
    /// What its commands begin with: `BF`, or `RF` beside another module that has BF.*.
    pub prefix: &'a str,
    /// Items in it, each once.
    pub items: u64,
    /// Items that all its sub-filters are made for; with a window, those of one window.
    pub capacity: u64,
    /// Sub-filters; with a window those of one slice.
    pub sub_filters: u64,
    /// Whether it grows when it is full.
    pub grows: bool,
    /// False positives to be expected now, as a share of absent items.
    pub rate: Option<f64>,
    /// The rate asked for.
    pub error_rate: Option<f64>,
    /// Its window.
    pub window: Option<WindowFacts>,
    /// Whether the key has a time to live.
    pub expires: bool,
    /// Whether its server evicts keys with a time to live, and only these.
    pub evicts_expiring: bool,
}

impl<'a> FilterFacts<'a> {
    /// A filter that is empty, grows, and has nothing special.
    pub fn of(key: &'a [u8]) -> Self {
        FilterFacts {
            key,
            prefix: "BF",
            items: 0,
            capacity: 0,
            sub_filters: 1,
            grows: true,
            rate: None,
            error_rate: None,
            window: None,
            expires: false,
            evicts_expiring: false,
        }
    }

    /// What is wrong with it, the most urgent first.
    pub fn findings(&self) -> Vec<Finding> {
        let past = self.past_rate();
        let idle = idle(self.window, self.items, self.expires);
        let evicted = may_be_evicted(self.window, self.evicts_expiring);
        let mut found: Vec<Finding> = [self.full(), past, self.grown(), idle, evicted].into_iter().flatten().collect();
        sort(&mut found);
        found
    }

    /// The rate now, in parts of the one asked for.
    fn rate_share(&self) -> Option<f64> {
        Some(self.rate? / self.error_rate.filter(|&rate| rate > 0.0)?)
    }

    fn full(&self) -> Option<Finding> {
        // A window forgets, and does not take NONSCALING; LAST is full all the time.
        if self.grows || self.window.is_some() || self.capacity == 0 {
            return None;
        }
        let share = self.items as f64 / self.capacity as f64;
        let by_bits = self.rate_share().filter(|_| self.error_rate.is_some_and(|rate| rate > COUNT_SERVES_UP_TO));
        let wrong = |what: &str| match by_bits {
            Some(by_bits) if by_bits > share => {
                format!("is at {} of its rate and cannot grow: it {what}", percent(by_bits))
            }
            _ => format!("holds {} of {} items and cannot grow: it {what}", percent(share), self.capacity),
        };
        let larger = self.reserve(self.capacity.saturating_mul(2).max(self.items));
        let fullest = share.max(by_bits.unwrap_or(0.0));
        if fullest >= 1.0 {
            let advice = "fill a larger one under another name and rename it";
            Some(Finding::of(Problem::Full, Severity::Critical, wrong("rejects new ones"), advice).command(larger))
        } else if fullest >= NEARLY_FULL {
            let advice = "fill a larger one under another name before that";
            Some(
                Finding::of(Problem::NearlyFull, Severity::Warning, wrong("will reject new ones"), advice)
                    .command(larger),
            )
        } else {
            None
        }
    }

    fn past_rate(&self) -> Option<Finding> {
        let (share, asked) = (self.rate_share()?, self.error_rate?);
        let scatter = SCATTER * -asked.log2() / (self.items.max(1) as f64).sqrt();
        if share <= 1.0 + PAST_RATE_SHARE.max(CHANCE * scatter) {
            return None;
        }
        let severity = if share >= CRITICAL_RATE_FACTOR { Severity::Critical } else { Severity::Warning };
        let wrong = format!("is past its rate: {} where {} was asked for", rate(self.rate?), rate(asked));
        let advice = "fill one that is large enough under another name and rename it";
        let found = Finding::of(Problem::PastRate, severity, wrong, advice).command(self.reserve(self.items));
        Some(found.with_window(self.window, self.items))
    }

    fn grown(&self) -> Option<Finding> {
        let grown = self.sub_filters.saturating_sub(1);
        if grown <= HARMLESS_GROWTHS {
            return None;
        }
        let wrong = format!("has grown {grown} times: look-ups ask {} sub-filters", self.sub_filters);
        let found = Finding::of(Problem::Grown, Severity::Warning, wrong, "reserve the next one for what it holds");
        Some(found.command(self.reserve(self.items)).with_window(self.window, self.items))
    }

    /// The command that reserves one like it, under another name, for `items` and a tenth more. `None` where the
    /// rate asked for is not known.
    fn reserve(&self, items: u64) -> Option<String> {
        let error_rate = rate(self.error_rate?);
        let capacity = round_up(items);
        let end = match self.window {
            Some(window) => window.options(),
            None if !self.grows => " NONSCALING".to_owned(),
            None => String::new(),
        };
        Some(format!("{}.RESERVE {} {error_rate} {capacity}{end}", self.prefix, new_name(self.key)))
    }
}

/// What is known of a counter. There may be more fields: build it on [`CounterFacts::of`].
#[derive(Debug, Clone, Copy)]
pub struct CounterFacts<'a> {
    /// The name of the key.
    pub key: &'a [u8],
    /// Members in it, each once.
    pub members: u64,
    /// Members that it is made for.
    pub capacity: u64,
    /// The standard error of the count now, 0 while it is exact.
    pub standard_error: f64,
    /// The standard error asked for.
    pub error: f64,
    /// Its window.
    pub window: Option<WindowFacts>,
    /// Whether the key has a time to live.
    pub expires: bool,
    /// Whether its server evicts keys with a time to live, and only these.
    pub evicts_expiring: bool,
}

impl<'a> CounterFacts<'a> {
    /// A counter that is empty and has nothing special.
    pub fn of(key: &'a [u8]) -> Self {
        CounterFacts {
            key,
            members: 0,
            capacity: 0,
            standard_error: 0.0,
            error: 0.0,
            window: None,
            expires: false,
            evicts_expiring: false,
        }
    }

    /// What is wrong with it, the most urgent first.
    pub fn findings(&self) -> Vec<Finding> {
        let idle = idle(self.window, self.members, self.expires);
        let evicted = may_be_evicted(self.window, self.evicts_expiring);
        let mut found: Vec<Finding> = [self.past_capacity(), idle, evicted].into_iter().flatten().collect();
        sort(&mut found);
        found
    }

    fn past_capacity(&self) -> Option<Finding> {
        // An exact counter is right, whatever it was made for.
        if self.capacity == 0 || self.members <= self.capacity || self.standard_error <= 0.0 {
            return None;
        }
        // Of few members the rounding of the count is more than the error asked for.
        let members = self.members as f64;
        let is_past = self.standard_error > error_of_whole(self.error * (1.0 + PAST_RATE_SHARE) * members) / members;
        let severity = if is_past { Severity::Warning } else { Severity::Notice };
        let wrong = format!(
            "counts {} members and is made for {}: its standard error is {}, {} was asked for",
            self.members,
            self.capacity,
            percent(self.standard_error),
            percent(self.error)
        );
        let window = self.window.map(WindowFacts::options).unwrap_or_default();
        let (capacity, error) = (round_up(self.members), rate(self.error));
        let command = format!("LC.RESERVE {} {capacity} ERROR {error}{window}", new_name(self.key));
        let advice = "reserve the next one for what it counts";
        let found = Finding::of(Problem::PastCapacity, severity, wrong, advice).command(command);
        Some(found.with_window(self.window, self.members))
    }
}

/// What is known of a value of which some chunks have been loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadingFacts {
    /// Bytes that have arrived.
    pub received_bytes: u64,
    /// Bytes that it will have.
    pub total_bytes: u64,
}

impl LoadingFacts {
    /// What is wrong with it.
    pub fn finding(&self) -> Finding {
        let LoadingFacts { received_bytes, total_bytes } = self;
        Finding::of(
            Problem::HalfLoaded,
            Severity::Warning,
            format!(
                "is half loaded: {received_bytes} of {total_bytes} bytes have arrived, and it answers nobody until all have"
            ),
            "go on with the dump that it is loaded from, or delete it",
        )
    }
}

/// What is known of a server. There may be more fields: build it on its default.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerFacts {
    /// Bytes that it uses.
    pub used_bytes: u64,
    /// Bytes that it may use, `maxmemory`; 0 for no limit.
    pub max_bytes: u64,
    /// Of these, bytes of filters and counters.
    pub own_bytes: u64,
    /// Whether it evicts keys that have no time to live, by its `maxmemory-policy`.
    pub evicts_any: bool,
    /// Filters that it has.
    pub filters: u64,
    /// Filters that it keeps and serves to nobody.
    pub filters_not_served: u64,
    /// Filters and counters of which some chunks have been loaded.
    pub half_loaded: u64,
}

impl ServerFacts {
    /// What is wrong with it, the most urgent first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> =
            [self.memory(), self.may_evict(), self.not_served(), self.half_loaded()].into_iter().flatten().collect();
        sort(&mut found);
        found
    }

    fn memory(&self) -> Option<Finding> {
        let share = self.used_bytes as f64 / self.max_bytes as f64;
        if self.max_bytes == 0 || share < MEMORY_SHORT {
            return None;
        }
        let severity = if share >= MEMORY_GONE { Severity::Critical } else { Severity::Warning };
        let own = percent(self.own_bytes as f64 / self.used_bytes.max(1) as f64);
        let wrong = format!("uses {} of maxmemory, {own} of that for filters and counters", percent(share));
        let advice = "raise maxmemory, or find what is too large";
        Some(Finding::of(Problem::Memory, severity, wrong, advice).command("rollcall top --sort bytes".to_owned()))
    }

    fn may_evict(&self) -> Option<Finding> {
        if self.max_bytes == 0 || !self.evicts_any || self.filters == 0 {
            return None;
        }
        let wrong = "evicts whole filters when its memory is used up; one that is made again answers no to everything";
        let advice = "give filters a server of their own with maxmemory-policy noeviction";
        Some(Finding::of(Problem::MayEvict, Severity::Notice, wrong.to_owned(), advice))
    }

    fn not_served(&self) -> Option<Finding> {
        let filters = self.filters_not_served;
        (filters > 0).then(|| {
            let wrong = format!("keeps {filters} {} that it serves to nobody", plural(filters, "filter"));
            let advice = "load the module with commands all, or with commands beside for RF.*";
            Finding::of(Problem::NotServed, Severity::Notice, wrong, advice)
        })
    }

    fn half_loaded(&self) -> Option<Finding> {
        let keys = self.half_loaded;
        (keys > 0).then(|| {
            let wrong = format!("has {keys} half-loaded {}, which answer nobody", plural(keys, "key"));
            let advice = "go on with their dumps, or delete them";
            Finding::of(Problem::HalfLoaded, Severity::Warning, wrong, advice).command("rollcall top".to_owned())
        })
    }
}

/// A window by time drops what it forgets only when somebody writes, so what nobody writes to keeps its memory. There is no
/// command: only its user knows whether it is used again, and one `EXPIRE` would delete it then.
fn idle(window: Option<WindowFacts>, held: u64, expires: bool) -> Option<Finding> {
    let Some(WindowFacts::Seconds(seconds)) = window.filter(|_| !expires && held == 0) else { return None };
    let wrong = format!("has forgotten all: nobody wrote to it for its window of {seconds} s, and it does not expire");
    let advice = "delete it if it is not used again; keys that are made with VOLATILE go by themselves";
    Some(Finding::of(Problem::Idle, Severity::Notice, wrong, advice))
}

/// A volatile key has a time to live, so a policy that is to spare what lasts takes it, and its limit begins anew.
fn may_be_evicted(window: Option<WindowFacts>, evicts_expiring: bool) -> Option<Finding> {
    let Some(WindowFacts::Volatile(_)) = window.filter(|_| evicts_expiring) else { return None };
    let wrong = "may be evicted whole when memory is used up, since it has a time to live".to_owned();
    let advice = "give volatile keys a server of their own with maxmemory-policy noeviction";
    Some(Finding::of(Problem::MayEvict, Severity::Notice, wrong, advice))
}

/// The most urgent first; alike ones in the order in which they were found.
fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
}

fn plural(number: u64, noun: &str) -> String {
    if number == 1 { noun.to_owned() } else { format!("{noun}s") }
}

#[cfg(test)]
mod tests;
