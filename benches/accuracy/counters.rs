//! Measures a single counter: its error, its bias, the coverage of its standard error, and the step from exact to
//! estimate. All measurements use replies, which are whole numbers.

use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;

use crate::claims::{Cell, Claim, Findings, LEAST_COVERED, Table, Unit, members, thousands};
use crate::random::Random;
use crate::segments::{Kind, add};
use crate::trials::{Run, error_of_rms, error_of_share, mean, rms, share};

/// Values of ERROR that lead to different layouts. 0.0074 is the largest with which counters are as accurate as
/// HyperLogLog.
const ERRORS: [f64; 6] = [0.05, 0.02, 0.01, 0.0074, 0.005, 0.0025];

/// Numbers of members that are really hashed and added. Those of `HASHED` get many trials, and those of `DEAR` few.
/// Larger numbers are simulated.
const HASHED: [u64; 7] = [251, 500, 1_000, 3_000, 10_000, 50_000, 100_000];
const DEAR: [u64; 2] = [1_000_000, 10_000_000];
const SIMULATED: [u64; 4] = [100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000];
/// The standard error is at most this multiple of ERROR.
const MOST_OF_RATE: f64 = 1.04;
/// The largest number of members for which the documents promise the error.
const MOST_MEMBERS: u64 = 10_000_000_000;

/// The error may differ from the reported error by this share, in either direction.
const STATED_WITHIN: f64 = 0.02;
/// The largest bias as a share of the standard error. This bias changes the root mean square by half of its square.
const MOST_BIAS: f64 = 0.1;
/// Half a member: rounding may change every reply by this amount.
const ROUNDING: f64 = 0.5;
/// If at least this number of members share a slot with another member, errors are roughly normal and far above one
/// member.
const NORMAL_FROM: f64 = 300.0;
/// This number of collisions in all trials is enough to measure the size of errors.
const MANY_COLLISIONS: f64 = 200.0;
/// The shares of a normal distribution within one and two standard deviations.
const NORMAL: [f64; 2] = [0.6827, 0.9545];
const NORMAL_WITHIN: f64 = 0.02;

/// A count, and the standard error in members that is reported with it.
#[derive(Clone, Copy)]
struct Reply {
    count: u64,
    stated: f64,
}

impl Reply {
    fn is_within(&self, members: u64, errors: f64) -> bool {
        self.count.abs_diff(members) as f64 <= errors * self.stated
    }
}

fn hashed(run: &mut Run, kind: Kind, numbers: &[u64], trials: u64) -> Vec<Vec<Reply>> {
    // Each kind of counter uses different members. The same members would cause the same errors in all kinds.
    let first = kind.number() << 15;
    let all = run.map(trials, |trial| {
        let mut counter = kind.counter();
        let mut added = 0;
        let at = |&number: &u64| {
            add(&mut counter, first + trial, added..number);
            added = number;
            let count = counter.count();
            Reply { count, stated: count as f64 * counter.standard_error() }
        };
        numbers.iter().map(at).collect::<Vec<_>>()
    });
    (0..numbers.len()).map(|index| all.iter().map(|replies| replies[index]).collect()).collect()
}

fn simulated(run: &mut Run, kind: Kind, number: u64, trials: u64) -> Vec<Reply> {
    let name = format!("{} {number}", kind.params.error_rate);
    run.map(trials, |trial| {
        let count = kind.simulated(number, &mut Random::of(&name, trial));
        Reply { count, stated: count as f64 * kind.stated(count as f64) }
    })
}

fn relative(replies: &[Reply], number: u64) -> Vec<f64> {
    replies.iter().map(|each| each.count as f64 / number as f64 - 1.0).collect()
}

/// The points of a curve in the plot of errors, as pairs of members and root mean square, with the kind of counter.
pub type Curve = (Kind, Vec<(f64, f64)>);

/// Measures error, bias and coverage. The curves are for the plot that compares with HyperLogLog.
pub fn errors(run: &mut Run, curves: &mut Vec<Curve>) -> Findings {
    let mut table =
        Table::new("", &["ERROR", "members", "error", "error / stated", "bias / stated", "within 1", "within 2"]);
    for error_rate in ERRORS {
        let kind = Kind::new(error_rate);
        let mut curve = Vec::new();
        let mut replies = hashed(run, kind, &HASHED, run.trials(3_000));
        // A quick run leaves out these numbers, which would take most of its time.
        let dear = if run.is_quick { &[][..] } else { &DEAR };
        for (&number, trials) in dear.iter().zip([400, 40]) {
            replies.extend(hashed(run, kind, &[number], trials));
        }
        for number in SIMULATED {
            replies.push(simulated(run, kind, number, run.trials(4_000)));
        }
        for (&number, replies) in HASHED.iter().chain(dear).chain(&SIMULATED).zip(&replies) {
            let errors = relative(replies, number);
            curve.push((number as f64, 100.0 * rms(&errors).value));
            table.push(row(kind, number, replies, &errors));
        }
        curves.push((kind, curve));
    }
    Findings { tables: vec![table], ..Findings::default() }
}

fn row(kind: Kind, number: u64, replies: &[Reply], errors: &[f64]) -> Vec<Cell> {
    let (stated, error) = (kind.stated(number as f64), rms(errors));
    let is_promised = number <= MOST_MEMBERS;
    // Rounding adds an error of its own to replies. The bound is for the error before rounding.
    let most = (MOST_OF_RATE * kind.params.error_rate).hypot(1.0 / (12f64.sqrt() * number as f64));
    let trials = replies.len();
    let covered = |index: usize, least: f64| {
        let is_within = |each: &Reply| each.is_within(number, (index + 1) as f64);
        share(replies.iter().map(is_within)).or(error_of_share(trials, least))
    };
    let of_rms = error_of_rms(trials, 1.0, (number as f64 * stated).powi(2));
    let of_mean = 1.0 / (trials as f64).sqrt();
    // A counter reports no estimate below its exact limit. Just above the limit, this cuts off errors below the
    // truth.
    let is_cut = number as f64 * (1.0 - 4.0 * stated) - 1.0 < f64::from(kind.params.exact_limit) + 1.0;
    let normal = |index: usize| match !is_cut && kind.collisions(number) >= NORMAL_FROM {
        _ if !is_promised => Claim::Nothing,
        true => Claim::Near(NORMAL[index], NORMAL_WITHIN),
        false if index == 1 => Claim::AtLeast(LEAST_COVERED),
        false => Claim::Nothing,
    };
    let promised = |claim| if is_promised { claim } else { Claim::Nothing };
    // Without enough collisions in all trials, the measured size of errors is left to chance.
    let is_known = kind.collisions(number) * trials as f64 >= MANY_COLLISIONS;
    let near = match (is_cut, is_known) {
        (true, _) => Claim::AtMost(1.0 + STATED_WITHIN),
        (false, true) => near_stated(kind, number as f64),
        (false, false) => Claim::Nothing,
    };
    let unbiased =
        if is_cut { Claim::Nothing } else { Claim::Near(0.0, MOST_BIAS.max(ROUNDING / (stated * number as f64))) };
    vec![
        Cell::Text(kind.params.error_rate.to_string()),
        Cell::Text(members(number)),
        Cell::full(promised(Claim::AtMost(most)), error.or(of_rms * stated), Unit::Percent(3)),
        Cell::brief(promised(near), error.over(stated).or(of_rms), Unit::Plain(3)),
        Cell::brief(promised(unbiased), mean(errors).over(stated).or(of_mean), Unit::Plain(3)),
        Cell::brief(normal(0), covered(0, NORMAL[0]), Unit::Percent(1)),
        Cell::brief(normal(1), covered(1, LEAST_COVERED), Unit::Percent(1)),
    ]
}

/// The claim about the quotient of the measured and the reported error. If few members share a slot, possible estimates
/// are about one member apart. Rounding may then move all counts away from the truth, or all towards it, by up to half
/// a member.
fn near_stated(kind: Kind, number: f64) -> Claim {
    let (deviation, stated) = (kind.deviation(number), number * kind.stated(number));
    // The mean absolute value of a normally distributed error.
    let mean = deviation * std::f64::consts::FRAC_2_PI.sqrt();
    let rounded = |by: f64| (deviation * deviation + 2.0 * by * mean + by * by).sqrt() / stated;
    let least = (1.0 - STATED_WITHIN) * rounded(-ROUNDING);
    let most = (1.0 + STATED_WITHIN) * rounded(ROUNDING);
    Claim::Near((least + most) / 2.0, (most - least) / 2.0)
}

/// Checks that no addition lowers a count: at the step from exact to estimate, and up to twice the members after it.
pub fn steps(run: &mut Run) -> Findings {
    let mut table = Table::new("", &["ERROR", "EXACT", "counters", "falls at the step", "falls later", "largest fall"]);
    for (error_rate, exact_limit) in
        [(0.25, 250), (0.05, 250), (0.02, 250), (0.01, 250), (0.01, 1_000), (0.0025, 250), (0.01, 10)]
    {
        let mut kind = Kind::new(error_rate);
        kind.params.exact_limit = exact_limit;
        let trials = run.trials(5_000);
        let falls = run.map(trials, |trial| {
            let mut counter = kind.counter();
            let (mut at_step, mut later, mut before) = (0, 0, 0);
            for number in 0..3 * u64::from(exact_limit) {
                let was_exact = counter.is_exact();
                counter.live(Time::Reached).add((trial << 40 | number).to_le_bytes(), &Unlimited).expect("no limit");
                let count = counter.count();
                let fall = before - count.min(before);
                let worst = if was_exact { &mut at_step } else { &mut later };
                *worst = fall.max(*worst);
                before = count;
            }
            (at_step, later)
        });
        let largest = falls.iter().map(|&(at_step, later)| at_step.max(later)).max().unwrap_or(0);
        let [at_step, later] =
            [share(falls.iter().map(|&(at_step, _)| at_step > 0)), share(falls.iter().map(|&(_, later)| later > 0))];
        table.push(vec![
            format!("{error_rate}").into(),
            thousands(u64::from(exact_limit)).into(),
            thousands(trials).into(),
            Cell::full(Claim::Never, at_step, Unit::Percent(1)),
            Cell::brief(Claim::Never, later, Unit::Percent(1)),
            thousands(largest).into(),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// Compares simulated counters with hashed ones, for numbers of members for which both are possible.
pub fn simulation(run: &mut Run) -> Findings {
    let mut table =
        Table::new("", &["ERROR", "members", "errors' quotient", "means apart, in standard errors of a counter"]);
    for (error_rate, number, trials) in [
        (0.01, 1_000, 20_000),
        (0.01, 50_000, 6_000),
        (0.02, 200_000, 2_000),
        (0.0025, 1_000_000, 400),
        (0.05, 1_000_000, 1_000),
    ] {
        let kind = Kind::new(error_rate);
        let trials = run.trials(trials);
        let [real, drawn] =
            [hashed(run, kind, &[number], trials).remove(0), simulated(run, kind, number, run.trials(20_000))]
                .map(|estimates| relative(&estimates, number));
        let stated = kind.stated(number as f64);
        let apart = mean(&real).minus(mean(&drawn)).over(stated);
        let variance = (number as f64 * stated).powi(2);
        let [of_real, of_drawn] = [&real, &drawn].map(|errors| error_of_rms(errors.len(), 1.0, variance));
        let of_means = (1.0 / real.len() as f64 + 1.0 / drawn.len() as f64).sqrt();
        table.push(vec![
            format!("{error_rate}").into(),
            members(number).into(),
            Cell::full(
                Claim::Near(1.0, 0.0),
                rms(&real).quotient(rms(&drawn)).or(of_real.hypot(of_drawn)),
                Unit::Plain(3),
            ),
            Cell::brief(Claim::Near(0.0, 0.0), apart.or(of_means), Unit::Plain(3)),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}
