//! Trials on all cores, and what they show with its standard error.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rollcall_bench_output::progress::Progress;

/// Trials that a quick run has of anything, at most.
const MOST_QUICK: u64 = 4096;

/// Quick runs without a trial in common. More would be more trials than have items of their own.
const SEEDS: u64 = 8;

/// How long a run is, and how far.
pub struct Run {
    /// Few trials: shows that everything works and roughly what it gives.
    pub is_quick: bool,
    /// The number of the first trial.
    first: u64,
    progress: Progress,
    steps: (usize, usize),
}

impl Run {
    /// Nothing is done yet. A quick run has other trials with each of the [`SEEDS`].
    pub fn new(is_quick: bool, seed: u64, progress: Progress) -> Run {
        let first = if is_quick { seed % SEEDS * MOST_QUICK } else { 0 };
        Run { is_quick, first, progress, steps: (0, 1) }
    }

    /// A section begins, which calls [`Run::map`] about so many times.
    pub fn section(&mut self, index: usize, maps: usize) {
        self.steps = (0, maps.max(1));
        self.progress.section(index);
    }

    /// All is done.
    pub fn finish(&self) {
        self.progress.finish();
    }

    /// The number of trials: a twentieth in a quick run, but so many at least that their scatter is known.
    pub fn trials(&self, full: u64) -> u64 {
        const LEAST: u64 = 50;
        if self.is_quick { (full / 20).max(LEAST.min(full)) } else { full }
    }

    /// The number of questions in a trial: a tenth in a quick run.
    pub fn questions(&self, full: u64) -> u64 {
        if self.is_quick { full / 10 } else { full }
    }

    /// What each of `n` trials gives, in order. They are numbered on from the first of this run.
    pub fn map<T: Send>(&mut self, trials: u64, trial: impl Fn(u64) -> T + Sync) -> Vec<T> {
        let first = self.first;
        self.each(trials, |index| trial(first + index))
    }

    /// What each number up to this one gives, in order: so it does not matter which core did which.
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
    /// The figure.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Measured {
    /// Known, not measured.
    pub fn exact(value: f64) -> Measured {
        Measured { value, error: 0.0 }
    }

    /// With at least the error that theory says: few trials may scatter little by chance.
    pub fn or(self, theory: f64) -> Measured {
        Measured { error: self.error.max(theory), ..self }
    }

    /// In units of `unit`.
    pub fn over(self, unit: f64) -> Measured {
        Measured { value: self.value / unit, error: self.error / unit }
    }

    /// The quotient of two that were measured apart.
    pub fn quotient(self, other: Measured) -> Measured {
        let value = self.value / other.value;
        let relative = (self.error / self.value).hypot(other.error / other.value);
        Measured { value, error: (value * relative).abs() }
    }

    /// The difference of two that were measured apart.
    pub fn minus(self, other: Measured) -> Measured {
        Measured { value: self.value - other.value, error: self.error.hypot(other.error) }
    }
}

/// The mean, and the standard deviation of the mean.
pub fn mean(values: &[f64]) -> Measured {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|each| (each - value) * (each - value)).sum();
    Measured { value, error: (squares / (count * (count - 1.0))).sqrt() }
}

/// The root mean square. Its error comes from how the squares scatter, so it holds for errors that are not normal too; but
/// it is at least that for normal ones, since few squares may scatter little by chance.
pub fn rms(values: &[f64]) -> Measured {
    let squares: Vec<f64> = values.iter().map(|each| each * each).collect();
    let square = mean(&squares);
    let value = square.value.sqrt();
    let normal = value / (2.0 * values.len() as f64).sqrt();
    Measured { value, error: if value > 0.0 { normal.max(square.error / (2.0 * value)) } else { 0.0 } }
}

/// The standard error of the root mean square of `n` errors of this standard deviation, which come from a Poisson number
/// of this variance: with few of these a few trials decide.
pub fn error_of_rms(trials: usize, deviation: f64, variance: f64) -> f64 {
    deviation / 2.0 * ((2.0 + 1.0 / variance) / trials as f64).sqrt()
}

/// The standard error of a share of `n` trials that is claimed to be this one.
pub fn error_of_share(trials: usize, claimed: f64) -> f64 {
    (claimed * (1.0 - claimed) / trials as f64).sqrt()
}

/// The quotient of two means that were measured in the same trials. The mean of quotients would be another: larger, by how
/// much the divisors scatter.
pub fn quotient(pairs: &[(f64, f64)]) -> Measured {
    let mean_of = |figure: fn(&(f64, f64)) -> f64| mean(&pairs.iter().map(figure).collect::<Vec<_>>()).value;
    let (above, below) = (mean_of(|pair| pair.0), mean_of(|pair| pair.1));
    let value = above / below;
    let rest: Vec<f64> = pairs.iter().map(|(above, below)| above - value * below).collect();
    Measured { value, error: mean(&rest).error / below }
}

/// The standard deviation of one value.
pub fn deviation(values: &[f64]) -> Measured {
    let centre = mean(values).value;
    rms(&values.iter().map(|each| each - centre).collect::<Vec<_>>())
}

/// The share of which it is true. The error is that of one more of either, so that it is not 0 where all are alike.
pub fn share(is_so: impl Iterator<Item = bool>) -> Measured {
    let (mut so, mut all) = (0.0, 0.0);
    for is_so in is_so {
        so += f64::from(u8::from(is_so));
        all += 1.0;
    }
    let smoothed = (so + 1.0) / (all + 2.0);
    Measured { value: so / all, error: (smoothed * (1.0 - smoothed) / all).sqrt() }
}
