//! Tests that counters take the memory that `plan counter` says, for random plans and the members that people have.

use std::collections::HashSet;

use rollcall_core::counting::{Counter, Params};
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::window::{ClockSource, Time, Window};
use rollcall_fuzz::random::Random;

use crate::run::Folder;

/// A number from `from` to `to`, whose logarithm is uniform.
fn spread(random: &mut Random, from: f64, to: f64) -> f64 {
    from * (to / from).powf(random.below(1u64 << 32) as f64 / 2f64.powi(32))
}

/// `len` characters out of `letters`.
fn letters(random: &mut Random, letters: &str, len: u64) -> String {
    (0..len).map(|_| char::from(*random.of(letters.as_bytes()))).collect()
}

const NAMES: &str = "abcdefghijklmnopqrstuvwxyz.";
const TOKENS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A member: a UUID, a user, an integer, an e-mail address, a path, or a token, whose first character is no digit.
fn member(kind: u64, digits: u64, random: &mut Random) -> String {
    match kind {
        0 => {
            let [a, b, c, d, e] = [8, 4, 3, 3, 12].map(|len| letters(random, "0123456789abcdef", len));
            format!("{a}-{b}-4{c}-a{d}-{e}")
        }
        1 => format!("user:{}", digits + random.below(9 * digits)),
        2 => format!("{}", digits + random.below(9 * digits)),
        3 => {
            let (name, host) = (3 + random.below(14), random.of(&["example.org", "mail.test", "a-company.example"]));
            format!("{}{}@{}", letters(random, NAMES, name), random.below(1000), host)
        }
        4 => {
            let (first, second) = (4 + random.below(20), 4 + random.below(40));
            format!("/{}/{}.html", letters(random, NAMES, first), letters(random, NAMES, second))
        }
        _ => format!("t{}", letters(random, TOKENS, 21)),
    }
}

/// The arguments of a random plan, the range of sizes that it gives, and the size of a counter with random members.
fn plan(folder: &Folder, seed: u64) -> (String, [f64; 3]) {
    let mut random = Random::new(seed);
    let (kind, items) = (random.below(6), spread(&mut random, 1.0, 2f64.powi(17)) as usize);
    let mut params = Params { seed, ..Params::default() };
    if random.below(2) == 0 {
        params.error_rate = spread(&mut random, 0.0025, 0.25);
    }
    match random.below(6) {
        0 => params.exact_limit = 0,
        1 => params.exact_limit = spread(&mut random, 1.0, 65_536.0) as u32,
        2 => params.exact_bytes = spread(&mut random, 1.0, 2f64.powi(20)) as u32,
        _ => {}
    }
    let (seconds, slices) = (86_400, [12, 24, 1 + random.below(254)][random.below(3usize)]);
    let has_window = random.below(2) == 0;
    let digits = if items < 100_000 { 100_000 } else { 100_000_000 };
    let (mut members, mut distinct) = (Vec::new(), HashSet::new());
    while members.len() < items {
        let member = member(kind, digits, &mut random);
        members.extend(distinct.insert(member.clone()).then_some(member));
    }

    let mut counter = Counter::new(params).unwrap();
    let window = Window::new(seconds, slices, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let mut slice = 0;
    if has_window {
        counter = counter.with_window(window, 0).unwrap();
        // As many other members have expired.
        let gone = (0..random.below(2) * items as u64).map(|_| random.number().to_string());
        gone.for_each(|member| _ = counter.live(Time::Reached).add(member, &Unlimited).unwrap());
        slice = u64::from(window.slices()) + 1;
    }
    let live = u64::from(window.slices()) + 1;
    let piece = spread(&mut random, 1.0, 2.0 * items as f64) as usize;
    for (number, some) in members.chunks(piece).enumerate() {
        counter.advance(slice + number as u64 * live / members.len().div_ceil(piece) as u64);
        counter.live(Time::Reached).add_all(some.iter(), &Unlimited, |_| ()).unwrap();
    }
    // Some counters have been loaded from a file.
    if random.below(4) == 0 {
        let bytes = persist::to_bytes(&counter).unwrap();
        counter = persist::from_bytes(&bytes, &MaxBytes(1 << 30)).unwrap();
    }

    // Values with equal parameters share them, as on a server: here with a copy.
    let _copy = counter.clone();
    let size = counter.size_bytes();
    let bytes: usize = members.iter().map(String::len).sum();
    let kind = match kind {
        0 => "uuid".to_owned(),
        1 => "user".to_owned(),
        2 => "integer".to_owned(),
        _ => format!("text --length {}", (bytes as f64 / items as f64).round()),
    };
    let Params { error_rate, exact_limit, exact_bytes, .. } = params;
    let window = if has_window { format!(" --window {seconds} --slices {slices}") } else { String::new() };
    let arguments = format!(
        "plan counter {items} --error {error_rate} --exact {exact_limit} --exact-bytes {exact_bytes} \
         --kind {kind}{window}"
    );
    let planned = &folder.json(&arguments)[0];
    let [least, most] = ["least_bytes", "most_bytes"].map(|name| planned[name].as_f64().unwrap());
    (format!("{seed}: {arguments}"), [least, most, size as f64])
}

/// A regression test: in one of 16 plans the size was off by more than 7 %, up to 2.8 times. `docs/tool.md` promises
/// 999 of 1,000 plans; `ROLLCALL_PLANS=10000` measures as many.
#[test]
fn counters_take_what_random_plans_say() {
    const WORKERS: u64 = 8;
    let plans = std::env::var("ROLLCALL_PLANS").map_or(16, |plans| plans.parse().unwrap());
    let planned: Vec<(String, [f64; 3])> = std::thread::scope(|scope| {
        let plan_some = |first: u64| {
            let folder = Folder::new();
            (first..plans).step_by(WORKERS as usize).map(|seed| plan(&folder, seed)).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..WORKERS).map(|first| scope.spawn(move || plan_some(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let outside = |share: f64| {
        let is_outside =
            move |[least, most, size]: [f64; 3]| size < (1.0 - share) * least || size > (1.0 + share) * most;
        planned.iter().filter(move |(_, sizes)| is_outside(*sizes))
    };
    outside(0.05).for_each(|(arguments, sizes)| println!("{sizes:?}: {arguments}"));
    println!("outside by more than 0, 2, 5, 7 %: {:?}", [0.0, 0.02, 0.05, 0.07].map(|share| outside(share).count()));
    assert!(outside(0.05).count() as u64 <= plans / 1000);
}
