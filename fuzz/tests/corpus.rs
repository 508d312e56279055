//! Every input that is kept is run: what fuzzing found worth keeping, and what once failed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rollcall_fuzz::TARGETS;

/// Files of a folder, in order; none where there is no folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn every_kept_input_passes() {
    for (name, target) in TARGETS {
        let kept = files(&folder("corpus").join(name));
        assert!(kept.len() >= 20, "{name}: {} inputs", kept.len());
        for file in kept.iter().chain(&files(&folder("regressions").join(name))) {
            eprintln!("{}", file.display());
            target(&fs::read(file).expect("a file that can be read"));
        }
        target(b"");
    }
}

/// A folder of another name would be run by nothing.
#[test]
fn folders_are_those_of_targets() {
    let known: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    for kind in ["corpus", "regressions"] {
        for file in files(&folder(kind)) {
            let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
            assert!(known.contains(name), "{kind}/{name}");
        }
    }
    let programs = files(&folder("libfuzzer/fuzz_targets"));
    let programs: BTreeSet<&str> = programs.iter().filter_map(|file| file.file_stem()?.to_str()).collect();
    assert_eq!(programs, known);
}
