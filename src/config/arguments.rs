//! Parses the arguments with which the module is loaded (`loadmodule`, `MODULE LOAD`, `MODULE LOADEX ... ARGS`): pairs
//! of a name and a value. The names of RedisBloom and valkey-bloom are known too, since this module can replace both.

use std::ffi::CStr;

use super::options::{ALL, Setting, ignored};
use crate::command_error::quoted;
use crate::server::ffi::{Args, Ctx, NOTICE};

/// Arguments of RedisBloom, each with this module's option of the same meaning.
static REDISBLOOM_NAMES: [(&str, &CStr); 2] = [("ERROR_RATE", c"bf-error-rate"), ("INITIAL_SIZE", c"bf-initial-size")];

/// The prefixes of RedisBloom's arguments for cuckoo filters: `CF_` before Redis 8, `CF-` since then.
const REDISBLOOM_CUCKOO: [&str; 2] = ["CF_", "CF-"];

/// The prefix of valkey-bloom's options, which is also written `BF.BLOOM-`.
const VALKEY_BLOOM: &str = "BLOOM-";

/// Options of valkey-bloom that have a replacement here, with the advice of the error.
static VALKEY_BLOOM_NAMES: [(&str, &str); 7] = [
    ("BLOOM-CAPACITY", "use bf-initial-size"),
    ("BLOOM-FP-RATE", "use bf-error-rate"),
    ("BLOOM-EXPANSION", "use bf-expansion-factor"),
    ("BLOOM-MEMORY-USAGE-LIMIT", "use max-key-bytes"),
    ("BLOOM-MEMORY-LIMIT-PER-FILTER", "use max-key-bytes"),
    ("BLOOM-USE-RANDOM-SEED", "use hash-seed, a number that all servers share"),
    ("BLOOM-DEFRAG-ENABLED", "the server's activedefrag decides"),
];

/// The smallest similarity, from 0 to 1, at which the error for an unknown name suggests a known name.
const SIMILAR: f64 = 0.75;

/// The error for an argument of valkey-bloom, with its replacement; `None` for other arguments.
fn valkey_bloom(name: &[u8]) -> Option<String> {
    let upper = String::from_utf8_lossy(name).to_ascii_uppercase();
    let bare = upper.trim_start_matches("--");
    let bare = bare.strip_prefix("BF.").unwrap_or(bare);
    if !bare.starts_with(VALKEY_BLOOM) {
        return None;
    }
    let instead = VALKEY_BLOOM_NAMES.iter().find(|(theirs, _)| bare == *theirs);
    let instead = instead.map_or("there is no such option here", |(_, instead)| instead);
    Some(format!(
        "argument {} is valkey-bloom's: {instead}; see \"Coming from valkey-bloom\" in docs/migrating.md",
        quoted(name)
    ))
}

/// Parses the arguments, and applies them if all are valid. A `loadmodule` line for RedisBloom works unchanged.
///
/// # Errors
/// One line with the rejected argument and its valid values.
pub fn take(ctx: Ctx, args: Args<'_>) -> Result<(), String> {
    // An earlier load may have failed after it had applied its arguments.
    ALL.iter().for_each(|option| option.begin_with(None));
    // Tools that only inspect a module load it with one empty argument, which RedisBloom accepts.
    if args.len() == 1 && args.get(0).bytes().is_empty() {
        return Ok(());
    }
    let mut taken: Vec<(&Setting, _)> = Vec::new();
    let mut at = 0;
    while at < args.len() {
        let given = args.get(at).bytes();
        let redisblooms = REDISBLOOM_NAMES.iter().find(|(theirs, _)| given.eq_ignore_ascii_case(theirs.as_bytes()));
        let name = redisblooms.map_or(given, |(_, ours)| ours.to_bytes());
        let value = args.from(at + 1).bytes().next().ok_or_else(|| format!("argument {} needs a value", quoted(given)));
        if let Some(&option) = ALL.iter().find(|option| name.eq_ignore_ascii_case(option.name.to_bytes())) {
            let bits = option.parse(value?).map_err(|why| format!("argument {}: {why}", quoted(given)))?;
            // RedisBloom takes the last of its repeated arguments.
            if redisblooms.is_none() && taken.iter().any(|(other, _)| other.name == option.name) {
                return Err(format!("argument {} is given twice", quoted(given)));
            }
            taken.push((option, bits));
        } else if REDISBLOOM_CUCKOO.iter().any(|start| name.to_ascii_uppercase().starts_with(start.as_bytes())) {
            ctx.log(NOTICE, &ignored(name, &value?.escape_ascii().to_string()));
        } else {
            return Err(valkey_bloom(given).unwrap_or_else(|| unknown(given)));
        }
        at += 2;
    }
    taken.into_iter().for_each(|(option, bits)| option.begin_with(Some(bits)));
    Ok(())
}

/// The error for an unknown argument. It suggests the most similar argument, or lists all options.
fn unknown(name: &[u8]) -> String {
    let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
    let similarity = |known: &str| strsim::jaro_winkler(&lower, &known.to_ascii_lowercase());
    let names = || ALL.iter().filter_map(|option| option.name.to_str().ok());
    let all_names = names().chain(REDISBLOOM_NAMES.iter().map(|(theirs, _)| *theirs));
    let nearest = all_names.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let hint = match nearest {
        Some(nearest) if similarity(nearest) >= SIMILAR => format!("did you mean {nearest}?"),
        _ => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
    };
    format!("unknown argument {}: {hint}", quoted(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_arguments_name_the_nearest_known_one() {
        for (given, nearest) in [
            ("bf-eror-rate", "bf-error-rate"),
            ("BF_ERROR_RATE", "bf-error-rate"),
            ("bf-expansion", "bf-expansion-factor"),
            ("lc-exakt-limit", "lc-exact-limit"),
            ("max-key-byte", "max-key-bytes"),
            ("ERRORRATE", "ERROR_RATE"),
            ("layout", "bf-layout"),
        ] {
            let reported = unknown(given.as_bytes());
            assert_eq!(reported, format!("unknown argument '{given}': did you mean {nearest}?"));
        }
        let reported = unknown(b"\xffzzz");
        assert!(
            reported.contains("expected one of") && ALL.iter().all(|o| reported.contains(o.name.to_str().unwrap())),
            "{reported}"
        );
    }
}
