//! Judges filters, counters and servers: finds present and coming problems, and says what to do about them.
//!
//! A filter that has grown or is nearly full still answers well, so the trouble is not visible in its answers. Callers
//! describe a value or server by [`FilterFacts`], [`CounterFacts`], [`PartiallyLoadedFacts`] or [`ServerFacts`], and
//! get [`Finding`]s.

use std::fmt;

mod advice;

use advice::{exact, new_name, percent, rate, round_up};

/// The number of times that a filter may grow without a finding. After each growth a look-up asks one more sub-filter.
pub const HARMLESS_GROWTHS: u64 = 3;

/// A false positive rate above the one asked for by more than this share is a finding. Less is rounding of sizes.
pub const PAST_RATE_SHARE: f64 = 0.05;

/// From this multiple of the rate asked for, [`Problem::PastRate`] is critical.
pub const CRITICAL_RATE_FACTOR: f64 = 2.0;

/// A filter that cannot grow is nearly full from this share of its capacity. The remaining tenth is time to act.
pub const NEARLY_FULL: f64 = 0.9;

/// Memory is short from this share of `maxmemory`.
pub const MEMORY_SHORT: f64 = 0.9;

/// Short memory is critical from this share of `maxmemory`: the next growth of any key may be rejected, or cause
/// evictions.
pub const MEMORY_GONE: f64 = 0.98;

/// The excess over the requested rate that chance explains, in standard deviations. One filter in 740 has more by
/// chance.
const CHANCE: f64 = 3.0;

/// Scatter of the false positive rate: its relative standard deviation is `SCATTER * -log2(error_rate) / sqrt(items)`.
/// For a rate of 0.01 and 10,000 items that is 1.7 %. The logarithm stands for the number of bits per item.
const SCATTER: f64 = 0.26;

/// How urgent a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know; nothing suffers.
    Notice,
    /// Answers or the server will suffer, or the value costs more than necessary.
    Warning,
    /// Answers or the server suffer now.
    Critical,
}

impl Severity {
    /// The name of the severity in lower case, such as `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Only some chunks of a value have been loaded.
    PartiallyLoaded,
    /// A filter that cannot grow rejects new items.
    Full,
    /// A filter that cannot grow will soon reject new items.
    NearlyFull,
    /// A filter has a higher false positive rate than was asked for.
    PastRate,
    /// A filter has grown more often than [`HARMLESS_GROWTHS`].
    Grown,
    /// Everything in a windowed value has expired, and the key itself has no time to live.
    Idle,
    /// A server's memory is short.
    Memory,
    /// A server may evict any filter or counter. For a key: the server may evict it for its time to live.
    MayEvict,
    /// A server keeps filters in its memory without serving their commands.
    NotServed,
}

impl Problem {
    /// All problems.
    pub const ALL: [Problem; 9] = [
        Problem::PartiallyLoaded,
        Problem::Full,
        Problem::NearlyFull,
        Problem::PastRate,
        Problem::Grown,
        Problem::Idle,
        Problem::Memory,
        Problem::MayEvict,
        Problem::NotServed,
    ];

    /// The code word of the problem, such as `nearly-full`. Code words never change.
    pub fn name(self) -> &'static str {
        match self {
            Problem::PartiallyLoaded => "partially-loaded",
            Problem::Full => "full",
            Problem::NearlyFull => "nearly-full",
            Problem::PastRate => "past-rate",
            Problem::Grown => "grown",
            Problem::Idle => "idle",
            Problem::Memory => "memory",
            Problem::MayEvict => "may-evict",
            Problem::NotServed => "not-served",
        }
    }
}

/// A problem and the advice for it. `Display` writes it as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of the problem.
    pub problem: Problem,
    /// The urgency of the problem.
    pub severity: Severity,
    /// The problem in words, with figures.
    pub wrong: String,
    /// The advice: what to do about the problem.
    pub advice: String,
    /// A command that begins to follow the advice; `None` if no single command does. It can be run unchanged, and never
    /// affects existing keys.
    pub command: Option<String>,
}

impl Finding {
    fn new(problem: Problem, severity: Severity, wrong: String, advice: impl Into<String>) -> Self {
        Finding { problem, severity, wrong, advice: advice.into(), command: None }
    }

    fn command(self, command: impl Into<Option<String>>) -> Self {
        Finding { command: command.into(), ..self }
    }

    /// Adapts the advice to create a larger value to `window`; without a window the finding is unchanged. The items of
    /// a window are stored nowhere else, so the old and the larger value have to be filled in parallel for the length
    /// of one window. A volatile key gets no command: writes create such a key by themselves, and a key reserved in its
    /// place would never expire.
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

/// The window of a value: how long it keeps its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowFacts {
    /// Items live for this many seconds, by the system clock.
    Seconds(u64),
    /// Items live for this many seconds, and the key expires once it is empty.
    Volatile(u64),
    /// Items live for this many seconds, and the user advances the window manually.
    Manual(u64),
}

/// Facts about a filter; unknown facts are `None`. Start from [`FilterFacts::new`], because more fields may be added.
#[derive(Debug, Clone, Copy)]
pub struct FilterFacts<'a> {
    /// The name of the key.
    pub key: &'a [u8],
    /// Prefix of the filter's commands: `BF`, or `RF` if another module owns `BF.*`.
    pub prefix: &'a str,
    /// Number of distinct items in the filter.
    pub items: u64,
    /// Number of items that all sub-filters together are sized for; with a window, the items of one window.
    pub capacity: u64,
    /// Number of sub-filters; with a window, in one slice.
    pub sub_filters: u64,
    /// Whether a full filter grows.
    pub grows: bool,
    /// How full the filter is according to its set bits: 1 if it rejects new items. `None` if only the number of items
    /// decides.
    pub fill_by_bits: Option<f64>,
    /// The false positive rate to expect now: the share of absent items that are reported as present.
    pub rate: Option<f64>,
    /// The false positive rate that the user asked for.
    pub error_rate: Option<f64>,
    /// The window of the filter; `None` without one.
    pub window: Option<WindowFacts>,
    /// The options of RESERVE that make a filter like this one, except error rate and capacity.
    pub options: &'a str,
    /// Whether items that have expired take memory.
    pub keeps_expired: bool,
    /// Whether the key has a time to live.
    pub expires: bool,
    /// Whether the server evicts keys with a time to live, and no other keys.
    pub evicts_expiring: bool,
}

impl<'a> FilterFacts<'a> {
    /// Facts about an empty filter that grows and has no window. Set the facts that differ.
    pub fn new(key: &'a [u8]) -> Self {
        FilterFacts {
            key,
            prefix: "BF",
            items: 0,
            capacity: 0,
            sub_filters: 1,
            grows: true,
            fill_by_bits: None,
            rate: None,
            error_rate: None,
            window: None,
            options: "",
            keeps_expired: false,
            expires: false,
            evicts_expiring: false,
        }
    }

    /// The problems of the filter, the most urgent first.
    pub fn findings(&self) -> Vec<Finding> {
        let past = self.past_rate();
        let idle = idle(self.window, self.items == 0, self.keeps_expired, self.expires);
        let evicted = may_be_evicted(self.expires && self.evicts_expiring);
        let mut found: Vec<Finding> = [self.full(), past, self.grown(), idle, evicted].into_iter().flatten().collect();
        sort(&mut found);
        found
    }

    /// The present false positive rate divided by the requested one. `None` if one of them is unknown, or if the
    /// requested one is 0.
    fn rate_share(&self) -> Option<f64> {
        Some(self.rate? / self.error_rate.filter(|&rate| rate > 0.0)?)
    }

    fn full(&self) -> Option<Finding> {
        // Windowed filters are never reported as full: they lose old items.
        if self.grows || self.window.is_some() || self.capacity == 0 {
            return None;
        }
        let share = self.items as f64 / self.capacity as f64;
        let by_bits = self.fill_by_bits.filter(|&by_bits| by_bits > share);
        let wrong = |what: &str| match by_bits {
            Some(by_bits) => format!("is {} full by its set bits and cannot grow: it {what}", percent(by_bits)),
            None => format!("holds {} of {} items and cannot grow: it {what}", percent(share), self.capacity),
        };
        let larger = self.reserve(self.capacity.saturating_mul(2).max(self.items));
        let fullest = by_bits.unwrap_or(share);
        if fullest >= 1.0 {
            let advice = "fill a larger one under another name and rename it";
            Some(Finding::new(Problem::Full, Severity::Critical, wrong("rejects new ones"), advice).command(larger))
        } else if fullest >= NEARLY_FULL {
            let advice = "fill a larger one under another name before that";
            Some(
                Finding::new(Problem::NearlyFull, Severity::Warning, wrong("will reject new ones"), advice)
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
        let found = Finding::new(Problem::PastRate, severity, wrong, advice).command(self.reserve(self.items));
        Some(found.with_window(self.window, self.items))
    }

    fn grown(&self) -> Option<Finding> {
        let grown = self.sub_filters.saturating_sub(1);
        if grown <= HARMLESS_GROWTHS {
            return None;
        }
        let wrong = format!("has grown {grown} times: look-ups ask {} sub-filters", self.sub_filters);
        let found = Finding::new(Problem::Grown, Severity::Warning, wrong, "reserve the next one for what it holds");
        Some(found.command(self.reserve(self.items)).with_window(self.window, self.items))
    }

    /// A command that reserves a similar filter under another name, for `items` and a tenth more. `None` if the
    /// requested error rate is unknown.
    fn reserve(&self, items: u64) -> Option<String> {
        let (error_rate, capacity) = (exact(self.error_rate?), round_up(items));
        Some(with_options(
            format!("{}.RESERVE {} {error_rate} {capacity}", self.prefix, new_name(self.key)),
            self.options,
        ))
    }
}

/// Facts about a counter, by default of an empty one without a window.
#[derive(Debug, Clone, Copy, Default)]
pub struct CounterFacts {
    /// Number of distinct members in the counter.
    pub members: u64,
    /// The window of the counter; `None` without one.
    pub window: Option<WindowFacts>,
    /// Whether members that have expired take memory.
    pub keeps_expired: bool,
    /// Whether the key has a time to live.
    pub expires: bool,
    /// Whether the server evicts keys with a time to live, and no other keys.
    pub evicts_expiring: bool,
}

impl CounterFacts {
    /// The problems of the counter, the most urgent first.
    pub fn findings(&self) -> Vec<Finding> {
        let idle = idle(self.window, self.members == 0, self.keeps_expired, self.expires);
        let evicted = may_be_evicted(self.expires && self.evicts_expiring);
        let mut found: Vec<Finding> = [idle, evicted].into_iter().flatten().collect();
        sort(&mut found);
        found
    }
}

/// Facts about a partially loaded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartiallyLoadedFacts {
    /// Bytes that have arrived.
    pub received_bytes: u64,
    /// Number of bytes of the whole value.
    pub total_bytes: u64,
}

impl PartiallyLoadedFacts {
    /// The finding that the value is partially loaded.
    pub fn finding(&self) -> Finding {
        let PartiallyLoadedFacts { received_bytes, total_bytes } = self;
        Finding::new(
            Problem::PartiallyLoaded,
            Severity::Warning,
            format!(
                "is partially loaded: {received_bytes} of {total_bytes} bytes have arrived, and it answers \
                 nobody until all have"
            ),
            "go on with the dump that it is loaded from, or delete it",
        )
    }
}

/// Facts about a server. Start from `ServerFacts::default()`, because more fields may be added.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerFacts<'a> {
    /// The URL of the server, for suggested commands of the tool.
    pub url: &'a str,
    /// Number of bytes of memory that the server uses.
    pub used_bytes: u64,
    /// The server's `maxmemory` in bytes; 0 for no limit, and for a replica, which by default ignores it.
    pub max_bytes: u64,
    /// Number of bytes, out of [`ServerFacts::used_bytes`], that filters and counters take.
    pub own_bytes: u64,
    /// Whether the server's `maxmemory-policy` evicts keys that have no time to live.
    pub evicts_any: bool,
    /// Number of filters and counters on the server.
    pub keys: u64,
    /// Number of filters that the server keeps in memory without serving their commands.
    pub filters_not_served: u64,
    /// Number of partially loaded filters and counters.
    pub partially_loaded: u64,
}

impl ServerFacts<'_> {
    /// The problems of the server, the most urgent first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = [self.memory(), self.may_evict(), self.not_served(), self.partially_loaded()]
            .into_iter()
            .flatten()
            .collect();
        sort(&mut found);
        found
    }

    fn memory(&self) -> Option<Finding> {
        let share = self.used_bytes as f64 / self.max_bytes as f64;
        // A server that evicts keeps its memory full.
        if self.max_bytes == 0 || self.evicts_any || share < MEMORY_SHORT {
            return None;
        }
        let severity = if share >= MEMORY_GONE { Severity::Critical } else { Severity::Warning };
        let own = percent(self.own_bytes as f64 / self.used_bytes.max(1) as f64);
        let wrong = format!("uses {} of maxmemory, {own} of that for filters and counters", percent(share));
        let advice = "raise maxmemory, or find what is too large";
        Some(Finding::new(Problem::Memory, severity, wrong, advice).command(self.top(" --sort bytes")))
    }

    /// The command that lists the keys of the server.
    fn top(&self, options: &str) -> String {
        format!("rollcall top --url {}{options}", self.url)
    }

    fn may_evict(&self) -> Option<Finding> {
        if self.max_bytes == 0 || !self.evicts_any || self.keys == 0 {
            return None;
        }
        let wrong = "may evict any filter or counter when its memory is used up; one that is made again is empty";
        let advice = "give filters and counters a server of their own with maxmemory-policy noeviction";
        Some(Finding::new(Problem::MayEvict, Severity::Notice, wrong.to_owned(), advice))
    }

    fn not_served(&self) -> Option<Finding> {
        let filters = self.filters_not_served;
        (filters > 0).then(|| {
            let wrong = format!("keeps {filters} {} that it serves to nobody", plural(filters, "filter"));
            let advice = "load the module with commands all, or with commands beside for RF.*";
            Finding::new(Problem::NotServed, Severity::Notice, wrong, advice)
        })
    }

    fn partially_loaded(&self) -> Option<Finding> {
        let keys = self.partially_loaded;
        (keys > 0).then(|| {
            let wrong = format!("has {keys} partially loaded {}, which answer nobody", plural(keys, "key"));
            let advice = "go on with their dumps, or delete them";
            Finding::new(Problem::PartiallyLoaded, Severity::Warning, wrong, advice).command(self.top(""))
        })
    }
}

/// The finding about an empty windowed value that does not expire. Expired items are freed only by a write, so a value
/// that nobody writes to keeps its memory. A value that nobody has written to yet takes none; only a volatile one is
/// idle then too, because it should have expired. The finding has no command: only the user knows whether the key is
/// still in use, and `EXPIRE` would delete it then.
fn idle(window: Option<WindowFacts>, is_empty: bool, keeps_expired: bool, expires: bool) -> Option<Finding> {
    let (wrong, advice) = match window.filter(|_| is_empty && !expires)? {
        WindowFacts::Seconds(seconds) if keeps_expired => (
            format!(
                "has only expired items: nothing was written to it for its window of {seconds} s, and the key does \
                 not expire"
            ),
            "delete it if it is not used again; keys that are made with VOLATILE go by themselves",
        ),
        WindowFacts::Volatile(_) => (
            "is empty, and has lost the time to live that VOLATILE keys have".to_owned(),
            "delete it if it is not used again; the next write sets a time to live",
        ),
        _ => return None,
    };
    Some(Finding::new(Problem::Idle, Severity::Notice, wrong, advice))
}

/// The finding about a key with a time to live on a server that evicts such keys. An evicted key starts again empty.
fn may_be_evicted(may_be_evicted: bool) -> Option<Finding> {
    may_be_evicted.then(|| {
        let wrong = "has a time to live, so it may be evicted whole when memory is used up, and limits on it with it";
        let advice = "give keys with a time to live a server of their own with maxmemory-policy noeviction";
        Finding::new(Problem::MayEvict, Severity::Notice, wrong.to_owned(), advice)
    })
}

/// Appends options, if there are any, to a command.
fn with_options(command: String, options: &str) -> String {
    if options.is_empty() { command } else { format!("{command} {options}") }
}

/// Sorts findings, the most urgent first; equally urgent ones keep their order.
fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
}

fn plural(number: u64, noun: &str) -> String {
    if number == 1 { noun.to_owned() } else { format!("{noun}s") }
}

#[cfg(test)]
mod tests;
