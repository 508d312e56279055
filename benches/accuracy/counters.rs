//! Measures a single counter: its error, its bias, the coverage of its standard error, its bytes, and the step from
//! exact to estimate. All measurements use replies, which are whole numbers.

use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;

use crate::claims::{Cell, Check, Claim, Findings, Table, Unit, members, thousands};
use crate::random::Random;
use crate::segments::{Kind, add};
use crate::trials::{Measured, Run, error_of_rms, error_of_share, mean, rms, share};

/// Values of ERROR, each with capacities that lead to different layouts.
const SIZES: [(f64, &[u64]); 4] = [
    (0.02, &[1_000, 10_000, 50_000, 100_000, 1_000_000]),
    (0.01, &[1_000, 50_000, 100_000, 1_000_000]),
    (0.005, &[50_000, 100_000, 1_000_000, 10_000_000]),
    (0.001, &[100_000, 1_000_000, 10_000_000, 1_000_000_000]),
];

/// Numbers of members that are really hashed and added. Larger numbers are simulated.
const HASHED: [u64; 6] = [251, 1_000, 10_000, 50_000, 100_000, 1_000_000];
const SIMULATED: [u64; 5] = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000];
/// Up to this number of members, trials are cheap, so there are many.
const CHEAP: u64 = 100_000;
/// The largest number of members for which the documents promise the error.
const MOST_MEMBERS: u64 = 10_000_000_000;

/// The error may differ from the reported one by this share. A lower error would be wrong too.
const STATED_WITHIN: f64 = 0.02;
/// The largest bias as a share of the standard error. This bias changes the root mean square by half of its square.
const MOST_BIAS: f64 = 0.1;
/// Half a member: rounding may change every reply by this amount.
const ROUNDING: f64 = 0.5;
/// The least share of trials that two standard errors cover in all cases.
const LEAST_COVERED: f64 = 0.88;
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
    // Trials of each kind have members of their own: folded, the same members would give the same error in all kinds.
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
    let name = format!("{} {} {number}", kind.params.error_rate, kind.params.capacity);
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
    let mut findings = Findings::default();
    for (error_rate, capacities) in SIZES {
        let mut table = Table::new(
            format!("ERROR {error_rate}"),
            &["capacity", "(p, c)", "members", "error", "error / stated", "bias / stated", "within 1", "within 2"],
        );
        for &capacity in capacities {
            let kind = Kind::new(error_rate, capacity);
            let mut curve = Vec::new();
            let (cheap, dear) = HASHED.split_at(HASHED.iter().position(|&number| number > CHEAP).unwrap_or(0));
            // A quick run would spend most of its time on them.
            let dear = if run.is_quick { &[] } else { dear };
            let mut replies = hashed(run, kind, cheap, run.trials(3_000));
            replies.extend(hashed(run, kind, dear, run.trials(400)));
            for number in SIMULATED {
                // Large layouts take time by their slots.
                let trials = if kind.bytes() > 200_000 { 1_000 } else { 4_000 };
                replies.push(simulated(run, kind, number, run.trials(trials)));
            }
            for (&number, replies) in cheap.iter().chain(dear).chain(&SIMULATED).zip(&replies) {
                let errors = relative(replies, number);
                curve.push((number as f64, 100.0 * rms(&errors).value));
                table.push(row(kind, number, replies, &errors));
            }
            curves.push((kind, curve));
        }
        findings.tables.push(table);
    }
    findings
}

fn row(kind: Kind, number: u64, replies: &[Reply], errors: &[f64]) -> Vec<Cell> {
    let (stated, error) = (kind.stated(number as f64), rms(errors));
    let asked = kind.params.error_rate;
    let is_promised = number <= MOST_MEMBERS;
    let of_estimate = if number <= kind.params.capacity { 1.025 * asked } else { (2.1 * asked).max(0.021) };
    // What is bounded is the error before rounding.
    let most = of_estimate.hypot(1.0 / (12f64.sqrt() * number as f64));
    let trials = replies.len();
    let covered = |index: usize, least: f64| {
        let is_within = |each: &Reply| each.is_within(number, (index + 1) as f64);
        share(replies.iter().map(is_within)).or(error_of_share(trials, least))
    };
    let of_rms = error_of_rms(trials, 1.0, (number as f64 * stated).powi(2));
    let of_mean = 1.0 / (trials as f64).sqrt();
    // The largest exact count is the least that is reported, so just above it errors are cut off on one side.
    let is_cut = number as f64 * (1.0 - 4.0 * stated) - 1.0 < f64::from(kind.params.exact_limit) + 1.0;
    let normal = |index: usize| match !is_cut && kind.collisions(number) >= NORMAL_FROM {
        _ if !is_promised => Claim::Nothing,
        true => Claim::Near(NORMAL[index], NORMAL_WITHIN),
        false if index == 1 => Claim::AtLeast(LEAST_COVERED),
        false => Claim::Nothing,
    };
    let promised = |claim| if is_promised { claim } else { Claim::Nothing };
    // Where hardly any trial saw a collision, their mean square is that of a few.
    let is_known = kind.collisions(number) * trials as f64 >= MANY_COLLISIONS;
    let near = match (is_cut, is_known) {
        (true, _) => Claim::AtMost(1.0 + STATED_WITHIN),
        (false, true) => near_stated(kind, number as f64),
        (false, false) => Claim::Nothing,
    };
    let unbiased =
        if is_cut { Claim::Nothing } else { Claim::Near(0.0, MOST_BIAS.max(ROUNDING / (stated * number as f64))) };
    vec![
        Cell::Text(members(kind.params.capacity)),
        Cell::Text(kind.layout_name()),
        Cell::Text(members(number)),
        Cell::Full(Check::new(promised(Claim::AtMost(most)), error.or(of_rms * stated), Unit::Percent(3))),
        Cell::Brief(Check::new(promised(near), error.over(stated).or(of_rms), Unit::Plain(3))),
        Cell::Brief(Check::new(promised(unbiased), mean(errors).over(stated).or(of_mean), Unit::Plain(3))),
        Cell::Brief(Check::new(normal(0), covered(0, NORMAL[0]), Unit::Percent(1))),
        Cell::Brief(Check::new(normal(1), covered(1, LEAST_COVERED), Unit::Percent(1))),
    ]
}

/// The claim about the quotient of the measured and the reported error. If few members share a slot, possible estimates
/// are about one member apart. Rounding may then move all counts away from the truth, or all towards it, by up to half
/// a member.
fn near_stated(kind: Kind, number: f64) -> Claim {
    let (deviation, stated) = (kind.deviation(number), number * kind.stated(number));
    // The mean of an error of normal distribution, without its sign.
    let mean = deviation * std::f64::consts::FRAC_2_PI.sqrt();
    let rounded = |by: f64| (deviation * deviation + 2.0 * by * mean + by * by).sqrt() / stated;
    let least = (1.0 - STATED_WITHIN) * rounded(-ROUNDING);
    let most = (1.0 + STATED_WITHIN) * rounded(ROUNDING);
    Claim::Near((least + most) / 2.0, (most - least) / 2.0)
}

/// The documented bytes of a dense counter, by ERROR and capacity.
const BYTES: [(f64, [(u64, u64); 7]); 4] = [
    (
        0.02,
        [
            (1_000, 992),
            (10_000, 1_216),
            (50_000, 2_688),
            (100_000, 3_328),
            (1_000_000, 3_328),
            (10_000_000, 3_328),
            (MOST_MEMBERS, 6_400),
        ],
    ),
    (
        0.01,
        [
            (1_000, 3_712),
            (10_000, 3_712),
            (50_000, 4_608),
            (100_000, 6_528),
            (1_000_000, 12_288),
            (10_000_000, 12_288),
            (MOST_MEMBERS, 23_552),
        ],
    ),
    (
        0.005,
        [
            (50_000, 6_528),
            (100_000, 10_496),
            (1_000_000, 34_816),
            (10_000_000, 45_056),
            (100_000_000, 45_056),
            (1_000_000_000, 45_056),
            (MOST_MEMBERS, 86_016),
        ],
    ),
    (
        0.001,
        [
            (100_000, 67_456),
            (1_000_000, 132_864),
            (10_000_000, 525_824),
            (100_000_000, 1_048_576),
            (500_000_000, 1_048_576),
            (1_000_000_000, 1_048_576),
            (MOST_MEMBERS, 1_048_576),
        ],
    ),
];

/// Compares the bytes of dense counters with the documented ones.
pub fn sizes() -> Findings {
    let mut table = Table::new("", &["ERROR", "capacity", "(p, c)", "bytes"]);
    for (error_rate, sizes) in BYTES {
        for (capacity, bytes) in sizes {
            let kind = Kind::new(error_rate, capacity);
            let claim = Claim::Near(bytes as f64, 0.0);
            table.push(vec![
                format!("{error_rate}").into(),
                members(capacity).into(),
                kind.layout_name().into(),
                Cell::Full(Check::new(claim, Measured::exact(kind.bytes() as f64), Unit::Plain(0))),
            ]);
        }
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// Checks that no addition lowers a count: at the step from exact to estimate, and up to twice the members after it.
pub fn steps(run: &mut Run) -> Findings {
    let mut table =
        Table::new("", &["ERROR", "capacity", "EXACT", "counters", "falls at the step", "falls later", "largest fall"]);
    for (error_rate, capacity, exact_limit) in [
        (0.05, 50_000, 250),
        (0.02, 1_000, 250),
        (0.01, 50_000, 250),
        (0.01, 50_000, 1_000),
        (0.001, 1_000_000, 250),
        (0.01, 50_000, 10),
    ] {
        let mut kind = Kind::new(error_rate, capacity);
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
            members(capacity).into(),
            thousands(u64::from(exact_limit)).into(),
            thousands(trials).into(),
            Cell::Full(Check::new(Claim::Never, at_step, Unit::Percent(1))),
            Cell::Brief(Check::new(Claim::Never, later, Unit::Percent(1))),
            thousands(largest).into(),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}

/// Compares simulated counters with hashed ones, for numbers of members for which both are possible.
pub fn simulation(run: &mut Run) -> Findings {
    let mut table = Table::new(
        "",
        &["ERROR", "capacity", "members", "errors' quotient", "means apart, in standard errors of a counter"],
    );
    for (error_rate, capacity, number, trials) in [
        (0.01, 50_000, 1_000, 20_000),
        (0.01, 50_000, 50_000, 6_000),
        (0.02, 1_000_000, 200_000, 2_000),
        (0.001, 1_000_000, 1_000_000, 400),
        (0.02, 1_000, 1_000_000, 1_000),
    ] {
        let kind = Kind::new(error_rate, capacity);
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
            members(capacity).into(),
            members(number).into(),
            Cell::Full(Check::new(
                Claim::Near(1.0, 0.0),
                rms(&real).quotient(rms(&drawn)).or(of_real.hypot(of_drawn)),
                Unit::Plain(3),
            )),
            Cell::Brief(Check::new(Claim::Near(0.0, 0.0), apart.or(of_means), Unit::Plain(3))),
        ]);
    }
    Findings { tables: vec![table], ..Findings::default() }
}
