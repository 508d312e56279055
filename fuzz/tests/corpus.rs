//! Runs the fuzz targets on every kept input: the corpus, and inputs that once failed. Also runs them on random changes
//! of these inputs, which are the same in every run.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rollcall_fuzz::random::Random;
use rollcall_fuzz::{TARGETS, Target};

/// Number of changed inputs for each target, in all tests together.
const CHANGED: usize = 2_000;

/// Number of tests that share the changed inputs, so that they run in parallel.
const PARTS: usize = 4;

/// The largest size of a changed input in bytes, the same as in `make fuzz`.
const MAX_LEN: usize = 512;

/// The files of a folder, sorted; empty if the folder does not exist.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The corpus of a target, and the inputs on which it once failed.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let kept = files(&folder("corpus").join(name));
    assert!(kept.len() >= 20, "{name}: {} inputs", kept.len());
    let all = kept.iter().chain(&files(&folder("regressions").join(name))).cloned().collect::<Vec<_>>();
    all.iter().map(|file| fs::read(file).expect("a file that can be read")).collect()
}

/// Runs a target. If it panics, the input is written to a file and the panic continues.
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

/// Runs all targets on one part of the changed inputs.
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

/// Checks that every folder of inputs has the name of a target; the inputs of other folders would never run.
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
