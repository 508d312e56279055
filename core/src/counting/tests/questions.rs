//! Tests of unions, differences and intersections of counters, against a model that has the time when each member was
//! last seen. Each counter has a window, a clock, a span and a time of its own, or no window.

use super::*;
use crate::counting::Member;
use crate::counting::estimate::Estimated;
use crate::counting::view::View;
use crate::counting::{diff, inter, union};

type Card = fn(&[View<'_>]) -> Result<Estimated, Error>;
type List = for<'a> fn(&[View<'a>]) -> Result<Vec<Member<'a>>, Error>;

impl Tracked {
    fn add(&mut self, items: &[u32], now: u64) {
        let Some((first, more)) = items.split_first() else { return };
        let mut live = self.counter.live(Time::At(now));
        live.add(first.to_le_bytes(), &Unlimited).unwrap();
        let more: Vec<_> = more.iter().map(|item| item.to_le_bytes()).collect();
        live.add_all(&more, &Unlimited, |_| ()).unwrap();
        live.finish();
        self.renew(now);
        self.seen.extend(items.iter().map(|&item| (item, self.newest)));
    }

    fn advance(&mut self, slices: u64) {
        if self.counter.window().is_some_and(|window| window.clock_source() == ClockSource::Manual) {
            self.newest += i128::from(slices);
            self.counter.advance(self.newest as u64);
        }
    }

    /// The view of the last `span` seconds, or of everything without a span, and the members that the view should have.
    fn asked(&self, span: Option<u64>, now: u64) -> (View<'_>, BTreeSet<u32>) {
        let Some((length, clock)) = self.length_and_clock(now) else {
            return (self.counter.at(Time::At(now)), self.seen.keys().copied().collect());
        };
        let window = self.counter.window().unwrap();
        let present = self.newest.max(clock.unwrap_or(self.newest));
        // A clock that is at most one slice behind still gives the moment; otherwise the moment is the last second of
        // the slice.
        let is_trusted = clock.is_some_and(|clock| present <= clock + 1);
        let moment = if is_trusted { now.into() } else { (present + 1) * length - 1 };
        let oldest = present - i128::from(window.slices());
        let span = span.map(|number| 1 + number % window.seconds());
        let from = span.map_or(oldest, |seconds| (moment - i128::from(seconds)).div_euclid(length).max(oldest));
        let view = match span {
            Some(seconds) => self.counter.since(seconds, Time::At(now)).unwrap(),
            None => self.counter.at(Time::At(now)),
        };
        (view, self.since(from))
    }

    /// A counter without a window, of these members alone.
    fn only(&self, members: &BTreeSet<u32>) -> Counter {
        let is_listed = self.counter.is_exact() || self.counter.window().is_none() || members.is_empty();
        let exact_limit = if is_listed { self.counter.params().exact_limit } else { 0 };
        let params = Params { exact_limit, ..*self.counter.params() };
        let mut only = Counter::new(params).unwrap();
        let members: Vec<_> = members.iter().map(|member| member.to_le_bytes()).collect();
        only.add_all(&members, &Unlimited, |_| ()).unwrap();
        only
    }
}

/// Asks all questions about the counters, each with a span and a time, and checks the answers.
fn check(all: &[Tracked], asked: &[(usize, Option<u64>, u64)]) {
    let (views, sets): (Vec<_>, Vec<_>) =
        asked.iter().map(|&(at, span, now)| all[at % all.len()].asked(span, now)).unzip();
    let alone: Vec<Counter> = asked.iter().zip(&sets).map(|((at, ..), set)| all[at % all.len()].only(set)).collect();
    for ((view, set), alone) in views.iter().zip(&sets).zip(&alone) {
        assert_eq!((view.count(), view.counter().unwrap().count()), (alone.count(), alone.count()));
        if view.is_exact() {
            assert_eq!(view.members().unwrap().map(|member| number(&member.text())).collect::<BTreeSet<_>>(), *set);
        } else {
            assert_eq!(words(&view.plain().unwrap()), words(alone));
        }
    }
    let (first, others) = sets.split_first().unwrap();
    let common = first.iter().filter(|member| others.iter().all(|set| set.contains(member)));
    let beyond = first.iter().filter(|member| !others.iter().any(|set| set.contains(member)));
    let questions: [(Card, List, BTreeSet<u32>); 3] = [
        (union_card, union, sets.iter().flatten().copied().collect()),
        (inter_card, inter, common.copied().collect()),
        (diff_card, diff, beyond.copied().collect()),
    ];
    let is_known = views.iter().zip(&sets).all(|(view, set)| view.is_exact() || set.is_empty());
    let are_listed = views.iter().all(|view| view.members().is_ok());
    let alone = standing(&alone.iter().collect::<Vec<_>>());
    for (card, list, expected) in questions {
        let reported = card(&views).unwrap();
        assert_eq!(reported, card(&alone).unwrap());
        if is_known {
            assert_eq!(reported, Estimated { estimate: expected.len() as f64, standard_error: 0.0 });
        }
        assert!(is_known || expected.is_empty() || reported.standard_error >= 0.5, "{reported:?}");
        match list(&views) {
            Ok(members) => {
                assert!(are_listed && members.len() == expected.len());
                assert_eq!(members.iter().map(|member| number(&member.text())).collect::<BTreeSet<_>>(), expected);
            }
            Err(error) => assert!(!are_listed && matches!(error, Error::NotExact { .. })),
        }
    }
}

fn made() -> impl Strategy<Value = (Params, Option<Window>)> {
    let exact_limit = prop_oneof![Just(0u32), Just(10), Just(60)];
    let rate = prop_oneof![Just(0.05), Just(0.02)];
    let window = (0..SLICES.len(), 1u64..8, 0u64..8, any::<bool>()).prop_map(|(slices, length, less, is_by_hand)| {
        let (slices, source) = (SLICES[slices], if is_by_hand { ClockSource::Manual } else { ClockSource::System });
        let seconds = (u64::from(slices) * length).saturating_sub(less).max(slices.into());
        Window::new(seconds, slices, MOST_SLICES, source).unwrap()
    });
    let window = prop_oneof![1 => Just(None), 3 => window.prop_map(Some)];
    ((exact_limit, rate).prop_map(|(exact_limit, rate)| params(exact_limit, rate)), window)
}

#[derive(Debug, Clone)]
enum Step {
    Add(usize, Vec<u32>),
    Pass(u64),
    /// Time passes to the end of the present slice of a counter: to its last second, or to one of the two seconds after
    /// it.
    PassToBorder(usize, u64),
    Back(u64),
    /// A counter with the manual clock advances.
    Advance(usize, u64),
    /// Questions about counters, each with a span, and with a time in seconds around the beginning of its newest slice,
    /// or now.
    Ask(Vec<(usize, Option<u64>, bool, i64)>),
}

fn step() -> impl Strategy<Value = Step> {
    let near = prop_oneof![3 => Just(0i64), 4 => -2i64..3, 1 => -40i64..40, 1 => -5000i64..5000];
    let span = proptest::option::weighted(0.7, prop_oneof![0u64..30, any::<u64>()]);
    let asked = vec((0usize..4, span, any::<bool>(), near), 1..5);
    prop_oneof![
        6 => (0usize..4, vec(0u32..60, 1..8)).prop_map(|(at, items)| Step::Add(at, items)),
        2 => (0usize..4, vec(0u32..500, 1..200)).prop_map(|(at, items)| Step::Add(at, items)),
        3 => (0u64..20).prop_map(Step::Pass),
        1 => (0u64..1000).prop_map(Step::Pass),
        4 => (0usize..4, 0u64..3).prop_map(|(at, seconds)| Step::PassToBorder(at, seconds)),
        1 => (0u64..40).prop_map(Step::Back),
        2 => (0usize..4, 0u64..6).prop_map(|(at, slices)| Step::Advance(at, slices)),
        6 => asked.prop_map(Step::Ask),
    ]
}

proptest! {
    #[test]
    fn counters_answer_like_sets_with_timestamps(
        made in vec(made(), 2..5),
        steps in vec(step(), 1..50),
        // Slices before 1970 have negative numbers.
        start in prop_oneof![Just(NOON * 1000), 0u64..200],
    ) {
        let mut now = start;
        let mut all: Vec<Tracked> = made.into_iter().map(|made| Tracked::new(made, now)).collect();
        let counters = all.len();
        for step in steps {
            match step {
                Step::Add(at, items) => all[at % counters].add(&items, now),
                Step::Pass(seconds) => now += seconds,
                Step::PassToBorder(at, seconds) => {
                    let length = all[at % counters].counter.window().map_or(1, Window::slice_seconds);
                    now = (now / length + 1) * length + seconds - 1;
                }
                Step::Back(seconds) => now = now.saturating_sub(seconds),
                Step::Advance(at, slices) => all[at % counters].advance(slices),
                Step::Ask(asked) => {
                    let time = |(at, span, is_by_slice, after): (usize, _, _, i64)| {
                        let tracked = &all[at % counters];
                        let begin = tracked.counter.window().map(|window| window.start_of(tracked.newest as u64));
                        (at, span, begin.filter(|_| is_by_slice).unwrap_or(now).saturating_add_signed(after))
                    };
                    check(&all, &asked.into_iter().map(time).collect::<Vec<_>>());
                }
            }
        }
        check(&all, &(0..counters).map(|at| (at, None, now)).collect::<Vec<_>>());
    }
}
