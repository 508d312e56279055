//! The HyperLogLog of Redis, as PFADD and PFCOUNT implement it: 2^14 registers of 6 bits. Members are hashed with
//! Rollcall's hash.
//!
//! The estimator is by O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
//! arXiv:1702.01284, section 4.

use rollcall_core::unstable::hash64;

use crate::claims::{Cell, Claim, Findings, Table, Unit, members};
use crate::counters::Curve;
use crate::random::Random;
use crate::segments::Kind;
use crate::trials::{Run, rms};
use rollcall_bench_output::plot::{self, Line};

/// log2 of the number of registers.
const PRECISION: u32 = 14;
const REGISTERS: usize = 1 << PRECISION;
/// Number of remaining bits of a hash. The largest value of a register is one more.
const REST: u32 = 64 - PRECISION;

/// The number of registers with each value.
type Histogram = [u32; REST as usize + 2];

fn estimate(histogram: &Histogram) -> f64 {
    let registers = REGISTERS as f64;
    let count = |value: u32| f64::from(histogram[value as usize]);
    let mut sum = registers * tau(1.0 - count(REST + 1) / registers);
    for value in (1..=REST).rev() {
        sum = (sum + count(value)) / 2.0;
    }
    sum += registers * sigma(count(0) / registers);
    registers * registers / (2.0 * std::f64::consts::LN_2 * sum)
}

/// `x + sum over k >= 1 of x^(2^k) * 2^(k-1)`: the contribution of empty registers.
fn sigma(x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (x, 1.0, x);
    loop {
        power *= power;
        let next = sum + power * weight;
        if next == sum {
            return sum;
        }
        sum = next;
        weight *= 2.0;
    }
}

/// `(1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 * 2^-k) / 3`: the contribution of full registers.
fn tau(x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (x, 1.0, 1.0 - x);
    loop {
        root = root.sqrt();
        weight /= 2.0;
        let next = sum - (1.0 - root) * (1.0 - root) * weight;
        if next == sum {
            return sum / 3.0;
        }
        sum = next;
    }
}

/// The relative errors of one HyperLogLog, at each number of members in `numbers`.
fn hashed(trial: u64, numbers: &[u64]) -> Vec<f64> {
    let mut registers = vec![0u8; REGISTERS];
    let mut added = 0;
    let mut at = |&number: &u64| {
        for member in added..number {
            let hash = hash64(&(trial << 40 | member).to_le_bytes(), 0);
            // A 1 above the remaining bits ends the run of zeros.
            let value = ((hash >> PRECISION) | 1 << REST).trailing_zeros() as u8 + 1;
            let register = &mut registers[hash as usize % REGISTERS];
            *register = value.max(*register);
        }
        added = number;
        let mut histogram = [0; REST as usize + 2];
        registers.iter().for_each(|&value| histogram[usize::from(value)] += 1);
        estimate(&histogram).round() / number as f64 - 1.0
    };
    numbers.iter().map(&mut at).collect()
}

/// The relative error at a simulated number of members. Registers are drawn as independent Poisson variables; this
/// changes the variance by a share of only 1/n.
fn simulated(random: &mut Random, number: u64) -> f64 {
    let load = number as f64 / REGISTERS as f64;
    let mut histogram = [0; REST as usize + 2];
    for _ in 0..REGISTERS {
        // P(value <= v) = exp(-load * 2^-v), and 1 for v = REST + 1.
        let value = libm::ceil(libm::log2(load / -libm::log(random.unit())));
        histogram[value.clamp(0.0, f64::from(REST + 1)) as usize] += 1;
    }
    estimate(&histogram).round() / number as f64 - 1.0
}

const CHEAP: [u64; 8] = [300, 1_000, 3_000, 10_000, 12_000, 16_000, 25_000, 50_000];
const DEAR: [u64; 2] = [200_000, 1_000_000];
const SIMULATED: [u64; 3] = [10_000_000, 1_000_000_000, 10_000_000_000];
/// The documents promise that a counter with this ERROR is at least as accurate as HyperLogLog.
const EVEN: f64 = 0.0074;

/// Compares counters with HyperLogLog, and plots all errors.
pub fn compare(run: &mut Run, curves: &[Curve]) -> Findings {
    let mut errors = Vec::new();
    for (numbers, trials) in [(&CHEAP[..], 4_000), (&DEAR[..], 600)] {
        let all = run.map(run.trials(trials), |trial| hashed(trial, numbers));
        errors.extend((0..numbers.len()).map(|index| all.iter().map(|errors| errors[index]).collect::<Vec<_>>()));
    }
    for number in SIMULATED {
        errors
            .push(run.map(run.trials(4_000), |trial| simulated(&mut Random::of("registers", trial ^ number), number)));
    }
    let kinds = [Kind::new(0.01), Kind::new(EVEN)];
    let heads =
        ["members", "ERROR 0.01 states", "ERROR 0.0074", "HyperLogLog, measured", "0.01 / HyperLogLog", "0.0074"];
    let mut table = Table::new("", &heads);
    let mut points = Vec::new();
    for (&number, errors) in CHEAP.iter().chain(&DEAR).chain(&SIMULATED).zip(&errors) {
        let (ours, theirs) = (kinds.map(|kind| kind.stated(number as f64)), rms(errors));
        let quotient = |ours, claim| {
            let quotient = crate::trials::Measured::exact(ours).quotient(theirs);
            Cell::brief(claim, quotient, Unit::Plain(2))
        };
        points.push((number as f64, 100.0 * theirs.value));
        table.push(vec![
            members(number).into(),
            format!("{:.3} %", 100.0 * ours[0]).into(),
            format!("{:.3} %", 100.0 * ours[1]).into(),
            Cell::brief(Claim::Nothing, theirs, Unit::Percent(3)),
            quotient(ours[0], Claim::Nothing),
            quotient(ours[1], Claim::AtMost(1.0)),
        ]);
    }
    Findings { tables: vec![table], plots: vec![plot(curves, points)] }
}

fn plot(curves: &[Curve], hyperloglog: Vec<(f64, f64)>) -> plot::File {
    let mut lines = Vec::new();
    for (number, (kind, points)) in curves.iter().enumerate() {
        let label = format!("ERROR {}", kind.params.error_rate);
        let steps = (0..=135).map(|step| 251.0 * libm::exp2(f64::from(step) / 5.0)).filter(|&n| n <= 2e10);
        lines.push(Line::nth(number, label, steps.map(|n| (n, 100.0 * kind.stated(n))).collect()).curve());
        let promised = points.iter().copied().filter(|&(n, error)| n <= 1e10 && error > 0.0);
        lines.push(Line::nth(number, "", promised.collect()).points());
    }
    lines.push(Line::nth(7, "HyperLogLog", hyperloglog).dashed());
    plot::File {
        name: "error",
        title: "Error of a counter: stated (lines) and measured (points)",
        x: plot::Axis::log("members"),
        y: plot::Axis::log("standard error, %"),
        lines,
        legend: plot::Corner::LowerRight,
    }
}
