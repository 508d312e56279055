//! Every input that is kept is run: what fuzzing found worth keeping, and what once failed. So are changes of these, drawn
//! by chance and the same in every run.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rollcall_fuzz::random::Random;
use rollcall_fuzz::{TARGETS, Target};

/// Changed inputs of each target, in all tests together.
const CHANGED: usize = 2_000;

/// Tests that share them, for as many cores.
const PARTS: usize = 4;

/// Longest changed input, bytes: as `make fuzz` has them.
const MAX_LEN: usize = 512;

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

/// The kept inputs of a target, and those that once failed.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let kept = files(&folder("corpus").join(name));
    assert!(kept.len() >= 20, "{name}: {} inputs", kept.len());
    let all = kept.iter().chain(&files(&folder("regressions").join(name))).cloned().collect::<Vec<_>>();
    all.iter().map(|file| fs::read(file).expect("a file that can be read")).collect()
}

/// Panics where the target does, and leaves the input in a file.
fn run(name: &str, target: Target, input: &[u8]) {
    let Err(reason) = catch_unwind(|| target(input)) else { return };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-failed"));
    fs::write(&file, input).expect("a file that can be written");
    eprintln!("{name} fails with the input in {}", file.display());
    std::panic::resume_unwind(reason);
}

#[test]
fn every_kept_input_passes() {
    for (name, target) in TARGETS {
        inputs(name).iter().for_each(|input| run(name, target, input));
        run(name, target, b"");
    }
}

/// One of the parts that the changed inputs are cut into.
fn changed_inputs_pass(part: usize) {
    for (name, target) in TARGETS {
        let (inputs, mut random) = (inputs(name), Random::new(part as u64));
        for _ in 0..CHANGED / PARTS {
            let (input, other) = (random.below(inputs.len()), random.below(inputs.len()));
            run(name, target, &random.changed(&inputs[input], &inputs[other], MAX_LEN));
        }
    }
}

#[test]
fn changed_inputs_pass_0() {
    changed_inputs_pass(0);
}

#[test]
fn changed_inputs_pass_1() {
    changed_inputs_pass(1);
}

#[test]
fn changed_inputs_pass_2() {
    changed_inputs_pass(2);
}

#[test]
fn changed_inputs_pass_3() {
    changed_inputs_pass(3);
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
