//! Runs trials on all cores, and computes figures from them with their standard errors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rollcall_bench_output::progress::Progress;

/// The largest number of trials of any kind in a quick run.
const MOST_QUICK: u64 = 4096;

/// Number of quick runs without a common trial. More runs would need more trial numbers than the items allow.
const SEEDS: u64 = 8;

/// One run: its length, and its progress.
pub struct Run {
    /// Whether there are only few trials, which show that everything works, and rough figures.
    pub is_quick: bool,
    /// The number of the first trial.
    first: u64,
    progress: Progress,
    steps: (usize, usize),
}

impl Run {
    /// A run that has not begun. Quick runs with different [`SEEDS`] have different trials.
    pub fn new(is_quick: bool, seed: u64, progress: Progress) -> Run {
        let first = if is_quick { seed % SEEDS * MOST_QUICK } else { 0 };
        Run { is_quick, first, progress, steps: (0, 1) }
    }

    /// Begins a section that calls [`Run::map`] about `maps` times.
    pub fn section(&mut self, index: usize, maps: usize) {
        self.steps = (0, maps.max(1));
        self.progress.section(index);
    }

    /// Ends the run.
    pub fn finish(&self) {
        self.progress.finish();
    }

    /// The number of trials. A quick run has a fiftieth, but at least 50, so that their variance is known.
    pub fn trials(&self, full: u64) -> u64 {
        const LEAST: u64 = 50;
        if self.is_quick { (full / 50).max(LEAST.min(full)) } else { full }
    }

    /// The number of look-ups in a trial. A quick run has a tenth.
    pub fn questions(&self, full: u64) -> u64 {
        if self.is_quick { full / 10 } else { full }
    }

    /// Runs `trials` trials and returns their results in order. Trials are numbered from the first trial of this run.
    pub fn map<T: Send>(&mut self, trials: u64, trial: impl Fn(u64) -> T + Sync) -> Vec<T> {
        let first = self.first;
        self.each(trials, |index| trial(first + index))
    }

    /// Calls `trial` with each number below `trials`, and returns the results in order. They do not depend on the core
    /// that computed them.
    pub fn each<T: Send>(&mut self, trials: u64, trial: impl Fn(u64) -> T + Sync) -> Vec<T> {
        let next = AtomicU64::new(0);
        let done = Mutex::new(Vec::with_capacity(trials as usize));
        let (before, all) = self.steps;
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= trials {
                            return;
                        }
                        self.progress.part((before as f64 + index as f64 / trials as f64) / all as f64);
                        let given = trial(index);
                        done.lock().expect("no trial panicked").push((index, given));
                    }
                });
            }
        });
        self.steps.0 = before + 1;
        let mut done = done.into_inner().expect("no trial panicked");
        done.sort_by_key(|&(index, _)| index);
        done.into_iter().map(|(_, given)| given).collect()
    }
}

/// A figure and its standard error.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The value of the figure.
    pub value: f64,
    /// The standard error of the figure.
    pub error: f64,
}

impl Measured {
    /// A known figure, whose error is 0.
    pub fn exact(value: f64) -> Measured {
        Measured { value, error: 0.0 }
    }

    /// The figure with at least the standard error `theory`, because few trials may have a low variance by chance.
    pub fn or(self, theory: f64) -> Measured {
        Measured { error: self.error.max(theory), ..self }
    }

    /// The figure in units of `unit`.
    pub fn over(self, unit: f64) -> Measured {
        Measured { value: self.value / unit, error: self.error / unit }
    }

    /// The quotient of two independently measured figures.
    pub fn quotient(self, other: Measured) -> Measured {
        let value = self.value / other.value;
        let relative = (self.error / self.value).hypot(other.error / other.value);
        Measured { value, error: (value * relative).abs() }
    }

    /// The difference of two independently measured figures.
    pub fn minus(self, other: Measured) -> Measured {
        Measured { value: self.value - other.value, error: self.error.hypot(other.error) }
    }
}

/// The mean of the values, with its standard error.
pub fn mean(values: &[f64]) -> Measured {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|each| (each - value) * (each - value)).sum();
    Measured { value, error: (squares / (count * (count - 1.0))).sqrt() }
}

/// The root mean square of the values. Its standard error comes from the variance of the squares, so that it also holds
/// for errors that are not normal. It is at least the standard error for normal errors, because few squares may have a
/// low variance by chance.
pub fn rms(values: &[f64]) -> Measured {
    let squares: Vec<f64> = values.iter().map(|each| each * each).collect();
    let square = mean(&squares);
    let value = square.value.sqrt();
    let normal = value / (2.0 * values.len() as f64).sqrt();
    Measured { value, error: if value > 0.0 { normal.max(square.error / (2.0 * value)) } else { 0.0 } }
}

/// The standard error of the root mean square of `trials` errors with this standard deviation. The errors come from a
/// Poisson number of events with this variance, so if events are few, few trials determine the result.
pub fn error_of_rms(trials: usize, deviation: f64, variance: f64) -> f64 {
    deviation / 2.0 * ((2.0 + 1.0 / variance) / trials as f64).sqrt()
}

/// The standard error of a share of `trials` trials whose claimed value is `claimed`.
pub fn error_of_share(trials: usize, claimed: f64) -> f64 {
    (claimed * (1.0 - claimed) / trials as f64).sqrt()
}

/// The quotient of two means that were measured in the same trials. The mean of the quotients would be larger, because
/// of the variance of the divisors.
pub fn quotient(pairs: &[(f64, f64)]) -> Measured {
    let mean_of = |figure: fn(&(f64, f64)) -> f64| mean(&pairs.iter().map(figure).collect::<Vec<_>>()).value;
    let (above, below) = (mean_of(|pair| pair.0), mean_of(|pair| pair.1));
    let value = above / below;
    let rest: Vec<f64> = pairs.iter().map(|(above, below)| above - value * below).collect();
    Measured { value, error: mean(&rest).error / below }
}

/// The standard deviation of the values, with its standard error.
pub fn deviation(values: &[f64]) -> Measured {
    let centre = mean(values).value;
    rms(&values.iter().map(|each| each - centre).collect::<Vec<_>>())
}

/// The share of values that are true. The standard error is computed with one more value of each kind, so that it is
/// not 0 if all values are equal.
pub fn share(is_so: impl Iterator<Item = bool>) -> Measured {
    let (mut so, mut all) = (0.0, 0.0);
    for is_so in is_so {
        so += f64::from(u8::from(is_so));
        all += 1.0;
    }
    let smoothed = (so + 1.0) / (all + 2.0);
    Measured { value: so / all, error: (smoothed * (1.0 - smoothed) / all).sqrt() }
}
