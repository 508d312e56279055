//! The kinds of keys that are written to: every layout of filters, every representation of counters, every window.

use rollcall_core::counting::Params;

/// The items that a key promises to keep, of all items that it acknowledged.
#[derive(Clone, Copy, PartialEq)]
pub enum Remembers {
    All,
    /// The items added since a time. The window uses the manual clock, and the time was this number of slices ago.
    Slices(u64),
    /// The items added within this number of seconds.
    Seconds(u64),
    /// The key remembers only the first items, up to this number.
    First(u64),
}

/// How the checker knows what a key should answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// A filter with the error rate `rate`. If the options of the server decide the error rate, `rate` is 1: the bits
    /// of such small sub-filters do not predict it. `has_card` says that BF.CARD must equal the number of items
    /// reported as new.
    Filter { rate: f64, has_card: bool },
    /// A counter that lists its members.
    Exact,
    /// A counter that must have the same count as a library counter with this error and exact limit.
    Estimate { error: f64, exact: u32 },
    /// A counter whose count is compared with its standard error.
    Theory,
}

/// A second key that sometimes gets the items of the first key: by one of these commands, or by `MERGEDUMP`.
#[derive(Clone, Copy, PartialEq)]
pub enum Shadow {
    None,
    Merge,
    Copy,
    /// A counter without a window, to which the same items are added.
    Items,
}

pub struct Shape {
    pub name: &'static str,
    pub kind: Kind,
    /// The command that creates the key `?`; empty if the first adding command creates it.
    pub create: &'static str,
    /// The start of the command that adds items, without the items.
    pub add: &'static str,
    pub remembers: Remembers,
    /// Number of items after which a writer deletes the key and begins a new one.
    pub items: u64,
    pub shadow: Shadow,
    /// Whether all writers write to the same key.
    pub is_shared: bool,
}

impl Shape {
    pub fn is_filter(&self) -> bool {
        matches!(self.kind, Kind::Filter { .. })
    }

    /// Whether writers remove the oldest items. A shadow may still have items that were removed before it was copied.
    pub fn removes(&self) -> bool {
        (self.kind, self.remembers, self.shadow) == (Kind::Exact, Remembers::All, Shadow::None)
    }

    /// Whether every other command that adds items sends them in one argument, with `WIDTH`.
    pub fn packs(&self) -> bool {
        self.add.ends_with(" ITEMS") && !self.is_shared
    }

    /// The time at which the key expires, in milliseconds since 1970; `None` if it does not, or with its window.
    pub fn expires_at(&self) -> Option<u64> {
        let (_, after) = self.add.split_once(" EXAT ")?;
        after.split(' ').next()?.parse::<u64>().ok().map(|seconds| 1000 * seconds)
    }

    /// The command that adds a single item, if the family has one.
    pub fn adds_one(&self) -> Option<&'static str> {
        match self.add {
            "BF.MADD ?" => Some("BF.ADD ?"),
            _ => None,
        }
    }

    /// The parameters of the library counter that the server's counter is compared with.
    pub fn params(&self) -> Option<Params> {
        let Kind::Estimate { error, exact } = self.kind else { return None };
        Some(Params { error_rate: error, exact_limit: exact, exact_bytes: 16_384, seed: 0 })
    }
}

const FILTER: Shape = Shape {
    name: "",
    kind: Kind::Filter { rate: 0.01, has_card: true },
    create: "",
    add: "BF.MADD ?",
    remembers: Remembers::All,
    items: 20_000,
    shadow: Shadow::None,
    is_shared: false,
};

const COUNTER: Shape = Shape { kind: Kind::Exact, add: "LC.ADD ?", items: 5_000, ..FILTER };

pub const SHAPES: [Shape; 19] = [
    Shape {
        name: "lines",
        kind: Kind::Filter { rate: 0.001, has_card: true },
        create: "BF.RESERVE ? 0.001 20000",
        shadow: Shadow::Merge,
        ..FILTER
    },
    // In the layout `classic`, such small sub-filters have a quarter more false positives than their set bits
    // predict, as in RedisBloom. So this key has the layout `lines`.
    Shape { name: "chain", create: "BF.RESERVE ? 0.01 50 EXPANSION 2 LAYOUT lines", shadow: Shadow::Copy, ..FILTER },
    Shape { name: "classic", create: "BF.RESERVE ? 0.01 1000 LAYOUT classic", shadow: Shadow::Copy, ..FILTER },
    // A filter above 8 MiB is freed in the background and stored in several pieces. It uses huge pages if
    // ROLLCALL_ARGS enables them.
    Shape { name: "large", create: "BF.RESERVE ? 0.01 8000000", shadow: Shadow::Copy, ..FILTER },
    Shape { name: "default", kind: Kind::Filter { rate: 1.0, has_card: true }, items: 2_000, ..FILTER },
    Shape {
        name: "admitting",
        add: "BF.ADMIT ? LIMIT 1000000 WITHROOM CAPACITY 1000 ERROR 0.01 ITEMS",
        items: 10_000,
        ..FILTER
    },
    Shape {
        name: "many-writers",
        kind: Kind::Filter { rate: 0.001, has_card: true },
        add: "BF.INSERT ? CAPACITY 1000 ERROR 0.001 EXPANSION 4 ITEMS",
        is_shared: true,
        ..FILTER
    },
    Shape {
        name: "window",
        kind: Kind::Filter { rate: 0.01, has_card: false },
        create: "BF.RESERVE ? 0.01 5000 WINDOW 1000 SLICES 4 MANUAL",
        remembers: Remembers::Slices(4),
        ..FILTER
    },
    Shape {
        name: "clock",
        kind: Kind::Filter { rate: 0.01, has_card: false },
        create: "BF.RESERVE ? 0.01 20000 WINDOW 8 SLICES 4",
        remembers: Remembers::Seconds(8),
        items: 200_000,
        ..FILTER
    },
    Shape {
        name: "refreshed",
        kind: Kind::Filter { rate: 0.01, has_card: false },
        create: "BF.RESERVE ? 0.01 5000 WINDOW 1099511627776 REFRESH",
        items: 5_000,
        shadow: Shadow::Copy,
        ..FILTER
    },
    Shape { name: "exact", create: "LC.RESERVE ? EXACT 65536 BYTES 1048576", shadow: Shadow::Merge, ..COUNTER },
    Shape {
        name: "promoted",
        kind: Kind::Estimate { error: 0.01, exact: 250 },
        add: "LC.INSERT ? ERROR 0.01 EXACT 250 BYTES 16384 SEED 0 ITEMS",
        items: 3_000,
        shadow: Shadow::Merge,
        ..COUNTER
    },
    Shape {
        name: "estimate",
        kind: Kind::Estimate { error: 0.01, exact: 0 },
        add: "LC.INSERT ? ERROR 0.01 EXACT 0 BYTES 16384 SEED 0 ITEMS",
        items: 1_500,
        shadow: Shadow::Copy,
        ..COUNTER
    },
    Shape {
        name: "coarse",
        kind: Kind::Estimate { error: 0.05, exact: 0 },
        create: "LC.RESERVE ? ERROR 0.05 EXACT 0 BYTES 16384 SEED 0",
        items: 20_000,
        shadow: Shadow::Copy,
        ..COUNTER
    },
    Shape { name: "default-counter", kind: Kind::Theory, items: 2_000, ..COUNTER },
    Shape {
        name: "admitting-counter",
        add: "LC.ADMIT ? LIMIT 300 WITHROOM EXACT 1000 BYTES 1048576 ITEMS",
        remembers: Remembers::First(300),
        items: 400,
        ..COUNTER
    },
    Shape {
        name: "many-writers-counter",
        add: "LC.INSERT ? EXACT 65536 BYTES 1048576 ITEMS",
        is_shared: true,
        ..COUNTER
    },
    Shape {
        name: "window-counter",
        create: "LC.RESERVE ? EXACT 65536 BYTES 1048576 WINDOW 1200 SLICES 12 MANUAL",
        remembers: Remembers::Slices(12),
        shadow: Shadow::Items,
        ..COUNTER
    },
    Shape {
        name: "estimating-window-counter",
        kind: Kind::Theory,
        create: "LC.RESERVE ? EXACT 0 WINDOW 1099511627776 SLICES 20",
        items: 10_000,
        ..COUNTER
    },
];

/// Keys with a time to live. Scenarios that wait until such keys are gone do not use them.
pub const EXPIRING: [Shape; 2] = [VOLATILE, LASTING];

/// A key that expires in 2100.
const LASTING: Shape =
    Shape { name: "lasting", add: "LC.INSERT ? EXAT 4102444800 EXACT 65536 BYTES 1048576 ITEMS", ..COUNTER };

/// A key that expires if nobody writes to it.
pub const VOLATILE: Shape = Shape {
    name: "volatile",
    kind: Kind::Filter { rate: 0.01, has_card: false },
    add: "BF.INSERT ? CAPACITY 20000 ERROR 0.01 WINDOW 8 SLICES 4 VOLATILE ITEMS",
    remembers: Remembers::Seconds(8),
    items: 200_000,
    ..FILTER
};
