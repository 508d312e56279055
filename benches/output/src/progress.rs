//! A progress bar for a long run.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of consecutive sections, each with its approximate duration in seconds.
pub struct Progress {
    bar: ProgressBar,
    run: &'static str,
    sections: Vec<(&'static str, u64)>,
    at: usize,
}

/// Steps of the progress bar for each second that a section is expected to take.
const STEPS: u64 = 100;

impl Progress {
    /// A bar at 0. `run` is the name of the whole run, for logs.
    pub fn new(run: &'static str, sections: &[(&'static str, u64)]) -> Progress {
        let bar = ProgressBar::new(sections.iter().map(|(_, seconds)| seconds * STEPS).sum());
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed}, about {eta} left  {msg}");
        bar.set_style(style.expect("a template"));
        bar.enable_steady_tick(Duration::from_millis(500));
        Progress { bar, run, sections: sections.to_vec(), at: 0 }
    }

    /// Shows the name of the section that runs.
    pub fn section(&mut self, index: usize) {
        self.at = index;
        self.part(0.0);
        self.bar.set_message(self.sections[index].0);
        if !std::io::stderr().is_terminal() {
            let (run, seconds, all) = (self.run, self.bar.elapsed().as_secs(), self.sections.len());
            eprintln!("{run}: {seconds:4} s  {}/{all} {}", index + 1, self.sections[index].0);
        }
    }

    /// Shows that the share `part` of the section, from 0 to 1, is done.
    pub fn part(&self, part: f64) {
        let before: u64 = self.sections[..self.at].iter().map(|(_, seconds)| seconds * STEPS).sum();
        self.bar.set_position(before + (part.min(1.0) * (self.sections[self.at].1 * STEPS) as f64) as u64);
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
