//! `make accuracy`: measures every claim of accuracy in the documents.
//!
//! Every figure comes with its standard error. A claim holds if the figure exceeds it by at most three standard errors.
//! The program fails if a claim does not hold. Seeds are fixed, and the mathematics is the same on every platform, so a
//! run writes the same tables everywhere.
//!
//! A full run writes all tables and plots into `target/accuracy/`, and the figures and plots of docs/accuracy.md.
//! `ACCURACY_QUICK=1` makes a quick run, which only writes into `target/accuracy-quick/`. `ACCURACY_ONLY=word,word`
//! runs the sections whose name has one of the words, prints their tables and writes nothing. `ACCURACY_SEED`, 0 to 7,
//! gives a quick run other items.

mod chains;
mod claims;
mod counters;
mod differences;
mod document;
mod fills;
mod filters;
mod hyperloglog;
mod intersections;
mod items;
mod random;
mod segments;
mod spans;
mod trials;
mod unions;

use std::path::Path;
use std::process::ExitCode;

use claims::Findings;
use counters::Curve;
use document::Section;
use rollcall_bench_output::progress::Progress;
use trials::Run;

/// Runs a part and returns its results. The part about counters adds curves, which the part about HyperLogLog plots.
type Measure = fn(&mut Run, &mut Vec<Curve>) -> Findings;

/// A part of the run.
struct Part {
    mark: &'static str,
    title: &'static str,
    /// The approximate duration in seconds, in a quick and in a full run.
    seconds: [u64; 2],
    /// The approximate number of calls of [`Run::map`], for the progress bar.
    maps: usize,
    measure: Measure,
}

const fn part(mark: &'static str, title: &'static str, seconds: [u64; 2], maps: usize, measure: Measure) -> Part {
    Part { mark, title, seconds, maps, measure }
}

/// All parts, in the order of the document.
const PARTS: [Part; 16] = [
    part("counters", "one counter", [8, 90], 42, counters::errors),
    part("hyperloglog", "beside HyperLogLog", [1, 8], 5, |run, curves| hyperloglog::compare(run, curves)),
    part("steps", "a count never falls", [1, 7], 7, |run, _| counters::steps(run)),
    part("unions", "unions and merges", [1, 7], 6, |run, _| unions::unions(run)),
    part("differences", "differences", [3, 25], 29, |run, _| differences::coverages(run)),
    part("intersections", "intersections", [5, 50], 33, |run, _| intersections::coverages(run)),
    part("spans", "spans of windows", [2, 40], 6, |run, _| spans::coverages(run)),
    part("items", "families of items", [8, 40], 24, |run, _| items::families(run)),
    part("capacity", "full filters", [6, 20], 84, |run, _| filters::at_capacity(run)),
    part("deviations", "one filter against all", [1, 6], 4, |run, _| filters::deviations(run)),
    part("rejecting", "filters that do not scale", [1, 4], 18, |run, _| filters::rejecting(run)),
    part("cards", "BF.CARD", [1, 1], 10, |run, _| filters::cards(run)),
    part("chains", "filters that scale", [3, 15], 11, |run, _| chains::growth(run)),
    part("classic", "RedisBloom's layout", [2, 12], 12, |run, _| filters::classic(run)),
    part("simulation", "simulated against added", [3, 20], 10, |run, _| counters::simulation(run)),
    part("asking", "computed against asked", [3, 15], 7, |run, _| filters::by_asking(run)),
];

fn main() -> ExitCode {
    let is_quick = std::env::var("ACCURACY_QUICK").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let only = std::env::var("ACCURACY_ONLY").unwrap_or_default();

    fills::check_lines();
    let parts: Vec<&Part> = PARTS.iter().filter(|part| only.split(',').any(|word| part.title.contains(word))).collect();
    let expected: Vec<_> = parts.iter().map(|part| (part.title, part.seconds[usize::from(!is_quick)])).collect();
    let seed = std::env::var("ACCURACY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut run = Run::new(is_quick, seed, Progress::new("accuracy", &expected));
    let mut curves = Vec::new();
    let mut sections = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        run.section(index, part.maps);
        let findings = (part.measure)(&mut run, &mut curves);
        sections.push(Section { mark: part.mark, title: part.title, findings });
    }
    run.finish();
    if is_quick {
        claims::bound_for(sections.iter().map(|section| section.findings.summary().claims).sum());
    }

    if only.is_empty() {
        let folder = Path::new(if is_quick { "target/accuracy-quick" } else { "target/accuracy" });
        let written = document::write(folder, &sections);
        if let Err(error) = written.and_then(|()| if is_quick { Ok(()) } else { document::write_page(&sections) }) {
            eprintln!("accuracy: {}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
        println!("accuracy: written to {}/tables.md", folder.display());
    } else {
        sections.iter().flat_map(|section| &section.findings.tables).for_each(|table| println!("{}", table.markdown()));
    }
    println!("{}", document::summary(&sections));
    let broken: Vec<String> = sections
        .iter()
        .flat_map(|section| {
            section.findings.summary().broken.into_iter().map(|row| format!("{}: {row}", section.title))
        })
        .collect();
    broken.iter().for_each(|row| println!("does not hold: {row}"));
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
