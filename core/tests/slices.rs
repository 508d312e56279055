//! Compares what windows answer (SINCE of QUERY, WITHROOM, WITHAGES) with a model that keeps the age of each item, and
//! finds the time until there is room by trying every second.

use std::collections::{BTreeMap, BTreeSet};

use rollcall_core::admission::{Admission, Room, Terms};
use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing};
use rollcall_core::counting::{self, Counter};
use rollcall_core::live::{Live, Outcome, Value};
use rollcall_core::size_limit::{MaxBytes, Unlimited};
use rollcall_core::window::{ClockSource, Move, Time, Window};

use rollcall_fuzz::random::Random;
use rollcall_fuzz::values::digest_of;

/// Steps for each kind of value.
const STEPS: u32 = 34_000;
const ITEMS: u64 = 40;
const START: u64 = 1_000_000;

fn some_items(random: &mut Random) -> Vec<String> {
    let len = 1 + random.below(6);
    (0..len).map(|_| format!("item-{}", random.below(ITEMS))).collect()
}

/// What the test needs of a filter and of a counter.
trait Sliced: Value {
    fn live(&mut self, time: Time) -> Live<'_, Self>;
    fn query(&self, item: &str, seconds: Option<u64>, time: Time) -> bool;
    fn members_with_ages(&self, _time: Time) -> Option<Vec<(String, u64)>> {
        None
    }
    fn remove(&mut self, _items: &[String], _time: Time) -> bool {
        false
    }
}

impl Sliced for BloomFilter {
    fn live(&mut self, time: Time) -> Live<'_, Self> {
        self.live(time)
    }

    fn query(&self, item: &str, seconds: Option<u64>, time: Time) -> bool {
        match seconds {
            None => self.at(time).may_contain(item),
            Some(seconds) => self.since(seconds, time).unwrap().may_contain(item),
        }
    }
}

impl Sliced for Counter {
    fn live(&mut self, time: Time) -> Live<'_, Self> {
        self.live(time)
    }

    fn query(&self, item: &str, seconds: Option<u64>, time: Time) -> bool {
        let view = seconds.map_or(self.at(time), |seconds| self.since(seconds, time).unwrap());
        view.contains(item).unwrap()
    }

    fn members_with_ages(&self, time: Time) -> Option<Vec<(String, u64)>> {
        let members = self.at(time).members_with_ages(time).unwrap();
        Some(members.iter().map(|(member, age)| (String::from_utf8(member.text().to_vec()).unwrap(), *age)).collect())
    }

    fn remove(&mut self, items: &[String], time: Time) -> bool {
        self.live(time).remove(items.iter()).unwrap();
        true
    }
}

/// The items of a value, each with its age in slices.
#[derive(Clone)]
struct Model {
    slice_seconds: u64,
    slices: u64,
    follows_clock: bool,
    renews: bool,
    newest: u64,
    ages: BTreeMap<String, u64>,
}

impl Model {
    fn clock(&self, now: u64) -> u64 {
        if self.follows_clock { now / self.slice_seconds } else { self.newest }
    }

    /// The slices by which the window has to move forward.
    fn moved(&self, now: u64) -> u64 {
        self.clock(now).saturating_sub(self.newest)
    }

    fn age(&self, item: &str, now: u64) -> Option<u64> {
        self.ages.get(item).map(|age| age + self.moved(now)).filter(|&age| age <= self.slices)
    }

    fn live(&self, now: u64) -> u64 {
        self.ages.keys().filter(|item| self.age(item, now).is_some()).count() as u64
    }

    /// The second that is the present one: the last of the slice, if no clock moves it or the clock was set back.
    fn second(&self, now: u64) -> i128 {
        let present = self.newest + self.moved(now);
        match self.follows_clock && present <= self.clock(now) + 1 {
            true => now.into(),
            false => i128::from((present + 1) * self.slice_seconds) - 1,
        }
    }

    /// The second at which the slice of a live item began.
    fn start(&self, item: &str, now: u64) -> Option<i128> {
        let age = self.age(item, now)?;
        Some((i128::from(self.newest + self.moved(now)) - i128::from(age)) * i128::from(self.slice_seconds))
    }

    /// Takes over how the window moved.
    fn move_to(&mut self, newest: u64) {
        let later = newest.saturating_sub(self.newest);
        let slices = self.slices;
        self.ages.values_mut().for_each(|age| *age += later);
        self.ages.retain(|_, age| *age <= slices);
        self.newest = newest;
    }

    /// Whether adding these items changes anything, of which some `are_new` or none.
    fn changes(&self, are_new: bool, items: &[String], now: u64) -> bool {
        are_new || self.renews && items.iter().any(|item| self.age(item, now) > Some(0))
    }

    /// The move before a change. Back to the clock's slice it is made even if nothing changes.
    fn moves(&self, changes: bool, now: u64) -> Move {
        match (self.newest > self.clock(now) + 1, self.moved(now)) {
            (true, _) => Move::Rebase(self.clock(now)),
            (false, 1..) if changes => Move::Advance(self.clock(now)),
            _ => Move::Stay,
        }
    }

    fn add(&mut self, item: &str) {
        if self.renews || !self.ages.contains_key(item) {
            self.ages.insert(item.to_owned(), 0);
        }
    }

    /// The answers of `ADMIT`, and the items that it adds.
    fn admit(&self, items: &[String], terms: Terms, now: u64) -> (Vec<Admission>, Vec<String>) {
        let new: BTreeSet<&String> = items.iter().filter(|item| self.age(item, now).is_none()).collect();
        let left = terms.limit.saturating_sub(self.live(now));
        let none = terms.all && new.len() as u64 > left;
        let (mut added, mut admitted, mut answers) = (Vec::new(), BTreeSet::new(), Vec::new());
        for item in items {
            answers.push(if self.age(item, now).is_some() {
                if !none {
                    added.push(item.clone());
                }
                Admission::Known
            } else if admitted.contains(item) {
                Admission::Known
            } else if none || admitted.len() as u64 >= left {
                Admission::Rejected
            } else {
                admitted.insert(item);
                added.push(item.clone());
                Admission::Admitted
            });
        }
        (answers, added)
    }

    /// The room after a call with `items`, of which `num_new` were new, found by trying every second. A call that was
    /// `refused` is repeated.
    fn room(&self, terms: Terms, items: &[String], num_new: usize, refused: bool, now: u64) -> Room {
        let left = |now: u64| terms.limit.saturating_sub(self.live(now));
        let new_at =
            |now: u64| items.iter().filter(|item| self.age(item, now).is_none()).collect::<BTreeSet<_>>().len();
        let needed = |now: u64| match terms.all {
            true if refused => new_at(now) as u64,
            true => num_new.max(1) as u64,
            false => 1,
        };
        let most = (self.slices + 3) * self.slice_seconds;
        let seconds = if self.follows_clock { 0..=most } else { 0..=0 };
        Room {
            items: left(now),
            retry_after: seconds.into_iter().find(|later| left(now + later) >= needed(now + later)),
        }
    }
}

fn run<V: Sliced>(mut value: V, mut model: Model, seed: u64) {
    let (mut random, mut now) = (Random::new(seed), START);
    let (mut refused, mut waited, mut rebased) = (0, 0, 0);
    for step in 0..STEPS {
        match random.below(40) {
            0 => now += random.below(model.slice_seconds * (model.slices + 2)),
            // A clock that is set back.
            1 => now -= random.below(3 * model.slice_seconds),
            2..12 => now += random.below(3),
            _ => {}
        }
        if !model.follows_clock && random.below(8) == 0 {
            drop(value.advance(model.newest + random.below(3)));
            model.move_to(value.newest_slice().unwrap());
        }
        let time = Time::At(now);
        let before = model.newest;
        match random.below(6) {
            0 | 1 => {
                let items = some_items(&mut random);
                let (mut new, mut come) = (Vec::new(), BTreeSet::new());
                let mut live = value.live(time);
                live.add_all(&items, &Unlimited, |is_new| new.push(is_new)).unwrap();
                let outcome = live.finish();
                let expected = items.iter().map(|item| model.age(item, now).is_none() && come.insert(item));
                assert!(expected.eq(new.iter().copied()), "step {step}: {items:?}");
                let changes = model.changes(new.contains(&true), &items, now);
                assert_eq!((outcome.before, outcome.changed), (model.moves(changes, now), changes), "step {step}");
                model.move_to(value.newest_slice().unwrap());
                items.iter().for_each(|item| model.add(item));
            }
            2 => {
                let items = some_items(&mut random);
                let live: Vec<_> = items.iter().filter(|item| model.age(item, now).is_some()).collect();
                if value.remove(&items, time) {
                    model.move_to(value.newest_slice().unwrap());
                    model.ages.retain(|item, _| !live.contains(&item));
                }
            }
            _ => {
                let items = some_items(&mut random);
                let limit = random.below(ITEMS / 2);
                let terms = Terms { limit, all: random.below(3) == 0, dry_run: random.below(3) == 0 };
                let (answers, added) = model.admit(&items, terms, now);
                let new: BTreeSet<_> = items.iter().filter(|item| model.age(item, now).is_none()).collect();
                let num_new = new.len();
                let is_admitted = answers.contains(&Admission::Admitted);
                let changes = !terms.dry_run && model.changes(is_admitted, &added, now);
                let moves = if terms.dry_run { Move::Stay } else { model.moves(changes, now) };
                let mut live = value.live(time);
                let (reported, room) = live.admit_with_room(items.iter(), terms, time, &Unlimited).unwrap();
                let outcome = live.finish();
                assert_eq!(reported, answers, "step {step}: {terms:?} {items:?}");
                assert_eq!((outcome.before, outcome.changed), (moves, changes), "step {step}: {terms:?} {items:?}");
                let mut after = model.clone();
                if terms.dry_run {
                    assert_eq!(value.newest_slice(), Some(model.newest), "step {step}");
                    // The call would have moved the window, also back.
                    let is_ahead = model.newest > model.clock(now) + 1;
                    after.move_to(if is_ahead { model.clock(now) } else { model.newest + model.moved(now) });
                } else {
                    model.move_to(value.newest_slice().unwrap());
                    after = model.clone();
                }
                added.iter().for_each(|item| after.add(item));
                let is_refused = reported.contains(&Admission::Rejected);
                let expected = after.room(terms, &items, num_new, is_refused, now);
                assert_eq!(room, expected, "step {step}: {terms:?} {items:?}");
                refused += u32::from(is_refused);
                waited += u32::from(room.retry_after.is_some_and(|seconds| seconds > 0));
                if !terms.dry_run {
                    model = after;
                }
            }
        }
        rebased += u32::from(model.newest < before);
        let seconds = 1 + random.below(model.slice_seconds * model.slices);
        for item in some_items(&mut random) {
            let (start, second) = (model.start(&item, now), model.second(now));
            // The span reaches into the slice if the last second of the slice is less than `seconds` ago.
            let is_within = |start: i128| start + i128::from(model.slice_seconds) > second - i128::from(seconds);
            assert_eq!(value.query(&item, None, time), start.is_some(), "step {step}: {item}");
            assert_eq!(value.query(&item, Some(seconds), time), start.is_some_and(is_within), "step {step}: {item}");
        }
        if let Some(members) = value.members_with_ages(time) {
            let age =
                |item: &String| (item.clone(), (model.second(now) - model.start(item, now).unwrap()).max(0) as u64);
            let expected: BTreeMap<_, _> =
                model.ages.keys().filter(|item| model.age(item, now).is_some()).map(age).collect();
            assert!(members.is_sorted_by(|(_, one), (_, next)| one >= next), "step {step}: {members:?}");
            assert_eq!(members.into_iter().collect::<BTreeMap<_, _>>(), expected, "step {step}");
        }
    }
    // Each case was met often.
    assert!(refused > STEPS / 50, "{refused}");
    if model.follows_clock {
        assert!(waited > STEPS / 50 && rebased > STEPS / 500, "{waited} {rebased}");
    }
}

fn model(window: &Window, renews: bool, newest: u64) -> Model {
    Model {
        slice_seconds: window.slice_seconds(),
        slices: window.slices().into(),
        follows_clock: window.clock_source() == ClockSource::System,
        renews,
        newest,
        ages: BTreeMap::new(),
    }
}

/// So rare are false positives in these filters that the model, which has none, agrees.
const RARE: Params = Params { error_rate: 1e-9, capacity: 100, expansion: 2, seed: 0 };

#[test]
fn filters_answer_as_the_model() {
    for (seed, (seconds, slices, refresh, clock)) in
        [(21, 3, false, ClockSource::System), (20, 5, true, ClockSource::System), (9, 3, false, ClockSource::Manual)]
            .into_iter()
            .enumerate()
    {
        let windowing = Windowing::new(seconds, slices, clock, refresh).unwrap();
        let first = windowing.window.first_slice(START);
        let filter = BloomFilter::windowed(RARE, windowing, first, &Unlimited).unwrap();
        run(filter, model(&windowing.window, refresh, first), seed as u64);
    }
}

#[test]
fn counters_answer_as_the_model() {
    for (seed, (seconds, slices, clock)) in
        [(24, 4, ClockSource::System), (7, 7, ClockSource::System), (9, 3, ClockSource::Manual)].into_iter().enumerate()
    {
        let window = Window::new(seconds, slices, Counter::MAX_SLICES, clock).unwrap();
        let first = window.first_slice(START);
        let counter = Counter::new(counting::Params::default()).unwrap().with_window(window, first).unwrap();
        run(counter, model(&window, true, first), seed as u64);
    }
}

/// A merge at a given time equals a merge without a time between the moves that its outcome reports. On error nothing
/// changes.
fn check_merges<V: Sliced + Clone>(made: impl Fn(&mut Random) -> V) {
    let mut random = Random::new(9);
    let (mut moved, mut rejected) = (0, 0);
    for _ in 0..1_000 {
        let values: Vec<V> = (0..1 + random.below(4)).map(|_| made(&mut random)).collect();
        let (others, now): (Vec<&V>, u64) = (values[1..].iter().collect(), random.below(8));
        let [mut merged, mut expected] = [values[0].clone(), values[0].clone()];
        let mut live = merged.live(Time::At(now));
        let result = live.merge(&others, &MaxBytes(*random.of(&[0, u64::MAX])));
        let Outcome { before, changed, after, .. } = live.finish();
        if result.is_err() {
            assert!(digest_of(&merged) == digest_of(&values[0]));
            rejected += 1;
            continue;
        }
        drop(expected.make(before));
        assert_eq!(expected.live(Time::Reached).merge(&others, &Unlimited), Ok(changed));
        drop(expected.make(after));
        assert!(digest_of(&merged) == digest_of(&expected));
        let slices: Vec<u64> = values.iter().filter_map(V::newest_slice).collect();
        let stays = (before, after) == (Move::Stay, Move::Stay);
        // If the clock had jumped ahead, the value is back at the clock's slice.
        assert!(merged.newest_slice().unwrap() <= now + 1 || stays && slices[0] <= now + 1);
        // Clocks may differ by one slice, so nothing expires early by more than that.
        let most = if before == Move::Stay { slices[0].max(now) + 1 } else { now + 1 };
        assert!(slices[1..].iter().all(|&slice| slice <= most));
        moved += u32::from(!stays);
    }
    assert!(moved > 50 && rejected > 50, "{moved} {rejected}");
}

#[test]
fn a_merge_at_a_time_is_its_moves_and_a_merge_or_nothing() {
    let items = |random: &mut Random| (0..random.below(20)).map(|_| random.below(60).to_string()).collect::<Vec<_>>();
    let window = |slices: u32| Window::new(slices.into(), slices, 64, ClockSource::System).unwrap();
    // One value in twelve cannot be merged with the others.
    for (slices, refresh) in [(1, false), (3, true), (4, false)] {
        check_merges(|random| {
            let params = Params { capacity: 10 + u64::from(random.below(12) == 0), ..RARE };
            let windowing = Windowing { window: window(slices), refresh };
            let mut filter = BloomFilter::windowed(params, windowing, random.below(8), &Unlimited).unwrap();
            filter.live(Time::Reached).extend(items(random));
            filter
        });
    }
    for (slices, exact_limit) in [(1, 60), (4, 0), (14, 60), (60, 0)] {
        check_merges(|random| {
            let (error_rate, seed) = (*random.of(&[0.05, 0.02]), u64::from(random.below(12) == 0));
            let params = counting::Params { error_rate, exact_limit, exact_bytes: 500, seed };
            let mut counter = Counter::new(params).unwrap().with_window(window(slices), random.below(8)).unwrap();
            counter.live(Time::Reached).extend(items(random));
            counter
        });
    }
}

/// The room of a filter that does not scale is what the next call admits.
#[test]
fn the_room_of_a_full_filter_is_that_of_its_bits() {
    let params = Params { error_rate: 0.01, capacity: 60, expansion: 0, seed: 0 };
    for layout in [BitLayout::Lines, BitLayout::Classic] {
        let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
        let mut random = Random::new(5);
        let terms = |limit, dry_run| Terms { limit, all: false, dry_run };
        for step in 0..40 {
            let items: Vec<_> = (0..1 + random.below(4)).map(|at| format!("{step}-{at}")).collect();
            let admit = |filter: &mut BloomFilter, items: &[String], terms| {
                filter.live(Time::Reached).admit_with_room(items.iter(), terms, Time::Reached, &Unlimited).unwrap()
            };
            let (_, would_leave) = admit(&mut filter, &items, terms(1000, true));
            let (_, room) = admit(&mut filter, &items, terms(1000, false));
            assert!(would_leave.items <= room.items, "step {step}: {would_leave:?} {room:?}");
            let next: Vec<_> = (0..100).map(|at| format!("next-{at}")).collect();
            let (admitted, full) = admit(&mut filter.clone(), &next, terms(1000, false));
            let num_admitted = admitted.iter().filter(|&&one| one == Admission::Admitted).count();
            assert_eq!(room.items, num_admitted as u64, "step {step}");
            assert_eq!(full, Room { items: 0, retry_after: None });
            let one_more = filter.num_items() + 1;
            assert!(admit(&mut filter, &items, terms(one_more, true)).1.items <= 1);
            assert!(room.items > 0 || room.retry_after.is_none());
        }
        assert!(filter.num_items() >= 55, "{}", filter.num_items());
    }
}
