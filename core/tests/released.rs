//! Checks that the golden files of every released version are unchanged, and that they load. `golden/released.txt`
//! lists the files, each with its version, the XXH3-64 of the file, the number of items (or of bytes, if the value is
//! partially loaded), and the path. Lines are only added, before a release, by `ROLLCALL_RELEASE=1 cargo test -p
//! rollcall-core --test released`.
//!
//! `golden.rs` describes the files. If a file has only the checksum of long bytes, `NAME.whole` next to it has all
//! bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rollcall_core::bloom::{BitLayout, BloomFilter};
use rollcall_core::counting::Counter;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::checksum;
use rollcall_core::unstable::persist::{Partial, PartialCounter, PartialFilter};

use rollcall_fuzz::payload::{self, from_hex};
use rollcall_fuzz::values::{Dump, filter_of_rdb, from_chunks, load_rdb, same_dump};

#[path = "golden/whole.rs"]
mod whole;

const FOLDERS: [&str; 2] = ["core/tests/golden", "tests/server/golden"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn list() -> PathBuf {
    root().join("core/tests/golden/released.txt")
}

/// The present golden files, as paths from the root.
fn present() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            paths.push(format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap()));
        }
    }
    paths.retain(|path| !path.ends_with(".rs") && !path.ends_with("/released.txt"));
    paths.sort();
    paths
}

/// The `DUMP` payload and the chunks in a golden file.
fn stored(path: &Path) -> (Vec<u8>, Dump) {
    let text = fs::read_to_string(path).unwrap();
    if text.contains("XXH3") {
        return whole::read(&fs::read(path.with_extension("whole")).unwrap());
    }
    let payload = text.lines().find_map(|line| line.strip_prefix("payload ")).map(from_hex).unwrap();
    let chunks = text.lines().filter_map(|line| line.strip_prefix("chunk ")?.split_once(' '));
    (payload, chunks.map(|(next, hex)| (next.parse().unwrap(), from_hex(hex))).collect())
}

fn received<L: Partial>(fields: &[rollcall_fuzz::fields::Field], chunks: &Dump) -> u64 {
    let (from_rdb, from_dump): (L, L) = (load_rdb(fields).unwrap(), from_chunks(chunks));
    assert_eq!(from_rdb.received_bytes(), from_dump.received_bytes());
    from_rdb.received_bytes()
}

/// Loads the value of a file from its payload and from its chunks, and checks that both are equal. Returns the number
/// of items, or of received bytes if the value is partially loaded.
fn load(path: &Path) -> u64 {
    let (payload, chunks) = stored(path);
    let (type_name, _, fields) = payload::decode(&payload).unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap();
    let is_partial = name.ends_with("-arriving") || name.ends_with("-begun");
    match (type_name.as_str(), is_partial) {
        ("RCcounter", true) => received::<PartialCounter>(&fields, &chunks),
        ("RCfilter-", true) => received::<PartialFilter>(&fields, &chunks),
        ("RCcounter", false) => {
            let counter: Counter = persist::load(chunks, &Unlimited).unwrap();
            assert!(same_dump(&load_rdb::<PartialCounter>(&fields).unwrap().finish().unwrap(), &counter), "{name}");
            counter.count()
        }
        (type_name, false) => {
            let layout = if type_name == "MBbloom--" { BitLayout::Classic } else { BitLayout::Lines };
            let filter: BloomFilter = persist::load(chunks, &Unlimited).unwrap();
            assert!(filter_of_rdb(layout, &fields).unwrap() == filter, "{name}");
            filter.num_items()
        }
        _ => panic!("{name}: {type_name}"),
    }
}

/// The line about a file in the list, without the version. RedisBloom's values are loaded by `redisbloom/golden.rs`,
/// and the server's files by `tests/server/every_server/persistence_golden.rs`.
fn described(path: &str) -> String {
    let bytes = fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path} was released: {error}"));
    let is_value = path.starts_with(FOLDERS[0]) && path.ends_with(".txt") && !path.contains("/redisbloom-");
    let items = if is_value { load(&root().join(path)).to_string() } else { "-".to_owned() };
    format!("{:016x} {items} {path}", checksum(&bytes, 0))
}

#[test]
fn files_of_released_versions_are_unchanged_and_load() {
    let mut text = fs::read_to_string(list()).unwrap_or_default();
    if std::env::var_os("ROLLCALL_RELEASE").is_some_and(|value| value == "1") {
        for path in present() {
            if !text.lines().any(|line| line.ends_with(&format!(" {path}"))) {
                text += &format!("{} {}\n", env!("CARGO_PKG_VERSION"), described(&path));
            }
        }
        fs::write(list(), &text).unwrap();
    }
    let mut versions = BTreeMap::new();
    for line in text.lines() {
        let (version, rest) = line.split_once(' ').unwrap();
        let path = rest.rsplit(' ').next().unwrap();
        assert_eq!(described(path), rest, "{path} of {version} differs, or loads otherwise");
        *versions.entry(version).or_insert(0) += 1;
    }
    assert!(versions["0.1.0"] >= 70, "{versions:?}");
}
