//! The intended differences from RedisBloom, each by name. `docs/compatibility.md` has the same names, with the
//! reasons.

use super::sequences::{Command, Layout};
use rollcall_testkit::Reply;

/// A command and the replies of both servers.
pub struct Case<'a> {
    pub layout: Layout,
    /// The command, without the script or transaction around it.
    pub command: &'a Command,
    /// Whether the command was queued in a transaction, or called by a script.
    pub wrapped: bool,
    pub ours: &'a Reply,
    pub theirs: &'a Reply,
}

/// An intended difference.
pub struct Difference {
    pub name: &'static str,
    /// Whether the data of both servers may differ after this difference.
    pub diverges: bool,
    /// Whether this difference explains the case.
    pub explains: fn(&Case<'_>) -> bool,
}

const fn same(name: &'static str, explains: fn(&Case<'_>) -> bool) -> Difference {
    Difference { name, diverges: false, explains }
}

const fn diverging(name: &'static str, explains: fn(&Case<'_>) -> bool) -> Difference {
    Difference { name, diverges: true, explains }
}

impl Case<'_> {
    pub fn is(&self, names: &[&str]) -> bool {
        self.command.first().is_some_and(|name| names.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes())))
    }

    fn creates(&self) -> bool {
        self.is(&["BF.RESERVE", "BF.INSERT"])
    }

    /// The words of the command that contain options, which come before the items.
    fn options(&self) -> &[Vec<u8>] {
        let rest = &self.command[(if self.is(&["BF.RESERVE"]) { 4 } else { 2 }).min(self.command.len())..];
        let items = rest.iter().position(|word| self.is(&["BF.INSERT"]) && word.eq_ignore_ascii_case(b"ITEMS"));
        &rest[..items.unwrap_or(rest.len())]
    }

    /// Whether the command has options that RedisBloom does not know. RedisBloom may silently have done something else.
    pub fn has_own_options(&self) -> bool {
        self.creates() && OWN_OPTIONS.iter().any(|name| self.has_option(name))
    }

    fn has_option(&self, name: &str) -> bool {
        self.options().iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// The error rate in the command, at any position.
    fn rate(&self) -> Option<&[u8]> {
        if self.is(&["BF.RESERVE"]) {
            return self.command.get(2).map(Vec::as_slice);
        }
        self.value_of("ERROR")
    }

    fn value_of(&self, option: &str) -> Option<&[u8]> {
        let options = self.options();
        let at = options.iter().position(|word| word.eq_ignore_ascii_case(option.as_bytes()))?;
        options.get(at + 1).map(Vec::as_slice)
    }
}

/// Error texts of RedisBloom, each with the beginnings of the module's texts for the same errors.
const INSERT_ERRORS: [(&str, &[&str]); 5] = [
    ("Bad capacity", &["ERR bad capacity: "]),
    ("Bad error rate", &["ERR bad error rate: "]),
    ("Bad expansion", &["ERR bad expansion: "]),
    (
        "Bad argument received",
        &[
            "ERR (capacity should be larger than 0), got ",
            "ERR (0 < error rate range < 1) got ",
            "ERR expansion should ",
        ],
    ),
    ("Unknown argument received", &["ERR unknown option "]),
];

const LONGER_ERRORS: [&str; 6] = [
    "ERR bad error rate",
    "ERR (0 < error rate range < 1) ",
    "ERR bad capacity",
    "ERR (capacity should be larger than 0)",
    "ERR bad expansion",
    "ERR no expansion",
];

const CLASSLESS_ERRORS: [&str; 3] =
    ["Nonscaling filters cannot expand", "Invalid information value", "Second argument must be numeric"];

/// Options that RedisBloom does not know, or that it mistakes for other options.
const OWN_OPTIONS: [&str; 6] = ["SEED", "LAYOUT", "EX", "PX", "EXAT", "PXAT"];

/// All intended differences. The first one that explains a case counts, so special ones come first.
pub const DIFFERENCES: [Difference; 30] = [
    same("wrong-type-of-exists", |case| {
        let no = |reply: &Reply| {
            matches!(reply, Reply::Line(b':', text) if text == "0")
                || matches!(reply, Reply::Line(b'#', text) if text == "f")
        };
        let no_to_all = match case.theirs {
            Reply::List(b'*', elements) => elements.iter().all(no),
            one => no(one),
        };
        case.is(&["BF.EXISTS", "BF.MEXISTS"]) && case.ours.fails_with("WRONGTYPE ") && no_to_all
    }),
    same("longer-errors", |case| {
        let theirs = case.theirs.error().unwrap_or_default();
        case.is(&["BF.RESERVE", "BF.LOADCHUNK"])
            && (LONGER_ERRORS.contains(&theirs) || theirs == "ERR Second argument must be numeric")
            && case.ours.fails_with(theirs)
    }),
    same("longer-errors-of-expansion", |case| {
        case.is(&["BF.RESERVE"])
            && case.theirs.error() == Some("ERR expansion should be greater or equal to 1")
            && case.ours.fails_with("ERR expansion should be greater or equal to 1, or 0 for NONSCALING, got '-")
    }),
    same("error-class", |case| {
        let theirs = case.theirs.error().unwrap_or_default();
        CLASSLESS_ERRORS.contains(&theirs) && case.ours.fails_with(&format!("ERR {theirs}: "))
    }),
    same("errors-of-insert", |case| {
        let theirs = case.theirs.error().unwrap_or_default();
        case.is(&["BF.INSERT"])
            && INSERT_ERRORS
                .iter()
                .any(|(text, starts)| *text == theirs && starts.iter().any(|start| case.ours.fails_with(start)))
    }),
    diverging("longer-reserve", |case| {
        case.is(&["BF.RESERVE"])
            && case.command.len() > 7
            && case.theirs.fails_with("ERR wrong number of arguments for 'bf.reserve' command")
            && (case.ours.error().is_some() || case.has_own_options())
    }),
    // If a command has several errors, the servers may report different ones.
    same("several-faults", |case| {
        let (ours, theirs) = (case.ours.error().unwrap_or_default(), case.theirs.error().unwrap_or_default());
        let expands = ["Nonscaling filters cannot expand", "ERR no expansion"].contains(&theirs)
            && (ours.starts_with("ERR bad expansion: ") || ours.starts_with("ERR expansion should be "))
            && case.has_option("NONSCALING");
        // RedisBloom parses all values before it checks any of them, and does not accept numbers beyond 64 bits.
        let texts = INSERT_ERRORS.iter().any(|(text, _)| *text == theirs);
        let reported = INSERT_ERRORS.iter().any(|(_, starts)| starts.iter().any(|start| ours.starts_with(start)));
        let faults = case.options().len() > 3;
        (case.is(&["BF.RESERVE"]) && expands) || (case.is(&["BF.INSERT"]) && texts && reported && faults)
    }),
    diverging("unknown-options", |case| {
        let ours = case.ours.error().unwrap_or_default();
        let named =
            |word: &&Vec<u8>| ours.starts_with(&format!("ERR unknown option '{}': expected ", word.escape_ascii()));
        let known = ["CAPACITY", "ERROR", "EXPANSION", "NONSCALING", "NOCREATE", "ITEMS", "SEED", "LAYOUT"];
        let reserve = ["EXPANSION", "NONSCALING", "SEED", "LAYOUT"];
        let known = if case.is(&["BF.RESERVE"]) { &reserve[..] } else { &known };
        case.creates()
            && case
                .options()
                .iter()
                .find(named)
                .is_some_and(|word| !known.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())))
    }),
    diverging("repeated-options", |case| {
        let given = |name: &str| case.options().iter().filter(|w| w.eq_ignore_ascii_case(name.as_bytes())).count();
        case.creates()
            && ["CAPACITY", "ERROR", "EXPANSION", "NONSCALING", "NOCREATE", "SEED", "LAYOUT"]
                .iter()
                .any(|name| case.ours.error() == Some(&format!("ERR option {name} is given twice")) && given(name) > 1)
    }),
    diverging("own-options", |case| {
        let rejected = ["ERR bad seed: ", "ERR bad layout: ", "ERR invalid expire time: ", "ERR options EX, PX, EXAT "];
        let without_value = |name: &&str| case.ours.fails_with(&format!("ERR option {name} needs"));
        let known = case.theirs.error() == Some("Unknown argument received")
            || case.ours.error().is_none()
            || rejected.iter().any(|start| case.ours.fails_with(start))
            || OWN_OPTIONS.iter().any(without_value);
        case.has_own_options() && known
    }),
    diverging("plain-numbers", |case| {
        let odd = case.rate().is_some_and(|rate| [&b"inf"[..], b"-inf", b"0x1p-30"].contains(&rate));
        case.creates() && odd && case.ours.fails_with("ERR bad error rate: expected a number, got ")
    }),
    diverging("smallest-rate", |case| {
        case.creates()
            && case.rate() == Some(b"5e-324")
            && case.theirs.error() == Some("ERR could not create filter")
            && (case.ours.fails_with("ERR (0 < error rate range < 1) got 0") || case.layout == Layout::Lines)
    }),
    diverging("largest-expansion", |case| {
        let reported = case.ours.fails_with("ERR bad expansion: expected from 0 to 32768, got ");
        let value = case.value_of("EXPANSION").and_then(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
        case.creates() && reported && value.is_some_and(|value| value > 32768)
    }),
    diverging("expansion-0", |case| {
        let rejected = ["ERR expansion should be greater or equal to 1", "Bad argument received"];
        case.creates()
            && case.value_of("EXPANSION") == Some(b"0")
            && case.theirs.error().is_some_and(|text| rejected.contains(&text))
            && (case.ours.error().is_none()
                || ["ERR item exists", "ERR not found", "WRONGTYPE ", "ERR the filter needs "]
                    .iter()
                    .any(|e| case.ours.fails_with(e)))
    }),
    diverging("size-limits", |case| {
        case.is(&["BF.RESERVE", "BF.INSERT", "BF.ADD", "BF.MADD"])
            && case.theirs.last_error().is_none()
            && case.ours.last_error().is_some_and(|text| {
                text.starts_with("ERR the filter needs ") && text.contains(" bytes, more than max-key-bytes (")
            })
    }),
    diverging("longest-chain", |case| {
        case.is(&["BF.MADD"])
            && case.theirs.last_error().is_none()
            && case.ours.last_error().is_some_and(|text| text.starts_with("ERR bad number of sub-filters: "))
    }),
    // The server checks the number of arguments for this module. RedisBloom checks it itself, later.
    diverging("arity-by-server", |case| {
        let wrong = |text: &str| text.starts_with("ERR wrong number of arguments for '");
        let ours = case.ours.error().unwrap_or_default();
        let reported = ours.starts_with("ERR Wrong number of args calling ");
        let theirs = case.theirs.error().unwrap_or_default();
        case.wrapped
            && ((reported && wrong(theirs)) || (wrong(ours) && *case.theirs == Reply::Line(b'+', "QUEUED".into())))
    }),
    same("more-fields-of-info", |case| {
        case.is(&["BF.INFO"])
            && case.theirs.error() == Some("Invalid information value")
            && matches!(case.ours, Reply::List(b'*' | b'%', elements) if elements.len() <= 2)
    }),
    diverging("still-loading", |case| {
        case.command[0].to_ascii_uppercase().starts_with(b"BF.")
            && !case.is(&["BF.LOADCHUNK"])
            && case.ours.fails_with("ERR filter is still loading: ")
    }),
    diverging("chunks-in-order", |case| {
        case.is(&["BF.LOADCHUNK"])
            && case.ours.fails_with("ERR received bad data")
            && *case.theirs == Reply::Line(b'+', "OK".into())
    }),
    same("chunks-that-do-not-fit", |case| {
        let theirs = ["ERR invalid offset - no link found", "ERR invalid chunk - Too big for current filter"];
        case.is(&["BF.LOADCHUNK"])
            && case.ours.fails_with("ERR received bad data")
            && case.theirs.error().is_some_and(|text| theirs.contains(&text))
    }),
    diverging("new-commands", |case| {
        case.is(&["BF.MERGE", "BF.CLEAR"])
            && (case.theirs.fails_with("ERR unknown command ")
                || case.theirs.fails_with("ERR Unknown Redis command called from script")
                || case.theirs.fails_with("ERR Unknown command called from script"))
    }),
    diverging("copies", |case| {
        case.is(&["COPY"])
            && case.theirs.fails_with("ERR not supported for this module key")
            && *case.ours == Reply::Line(b':', "1".into())
    }),
    same("memory-usage", |case| case.is(&["MEMORY"]) && case.ours.number().is_some() && case.theirs.number().is_some()),
    same("digests", |case| case.is(&["DEBUG"]) && case.ours.has_shape_of(case.theirs)),
    same("name-of-the-type", |case| {
        let is = |reply: &Reply, name: &str| *reply == Reply::Line(b'+', name.into());
        case.is(&["TYPE"]) && is(case.ours, "RCfilter-") && is(case.theirs, "MBbloom--")
    }),
    // The first byte marks a module value, and the next 9 name its type.
    same("values-of-dump", |case| {
        let (ours, theirs) = (case.ours.bulk(), case.theirs.bulk());
        case.is(&["DUMP"]) && ours.is_some() && theirs.is_some() && ours.map(|o| &o[..10]) != theirs.map(|t| &t[..10])
    }),
    same("sizes", |case| {
        // The size in bytes may differ; everything else must be equal.
        let size = Reply::Line(b'+', "Size".into());
        let alone = case.command.get(2).is_some_and(|field| field.eq_ignore_ascii_case(b"SIZE"));
        let is_size = |at: usize| {
            (alone && at + 1 == case.ours.elements().len())
                || (at > 0 && case.ours.elements().get(at - 1) == Some(&size))
        };
        let pairs = case.ours.elements().iter().zip(case.theirs.elements());
        case.layout == Layout::Lines
            && case.is(&["BF.INFO"])
            && case.ours.has_shape_of(case.theirs)
            && pairs.enumerate().all(|(at, (ours, theirs))| ours == theirs || is_size(at))
    }),
    same("texts-of-debug", |case| {
        let first = |reply: &Reply| {
            let text = String::from_utf8_lossy(reply.elements().first()?.bulk()?).into_owned();
            Some(text.split(' ').next()?.to_owned())
        };
        case.layout == Layout::Lines
            && case.is(&["BF.DEBUG"])
            && case.ours.has_shape_of(case.theirs)
            && first(case.ours) == first(case.theirs)
    }),
    same("chunks", |case| {
        case.layout == Layout::Lines && case.is(&["BF.SCANDUMP"]) && case.ours.has_shape_of(case.theirs)
    }),
];
