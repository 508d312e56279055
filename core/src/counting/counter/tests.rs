//! Tests of a counter in each of its representations.

use super::*;
use crate::counting::held::ring::own_bytes;
use crate::heap::Mover;
use crate::size_limit::{MaxBytes, Unlimited};
use crate::window::ClockSource;
use proptest::prelude::*;

/// Error rates of counters with different layouts. Their segment bits are 8, 10, 12, 14, 11 and 16.
pub(crate) const RATES: [f64; 6] = [0.05, 0.02, 0.01, 0.005, 0.015, 0.0025];

pub(crate) fn params(error_rate: f64, exact_limit: u32) -> Params {
    Params { error_rate, exact_limit, exact_bytes: Params::DEFAULT_EXACT_BYTES, seed: 0 }
}

/// A counter with these parameters, of the items with these numbers.
pub(crate) fn counter(params: Params, numbers: impl IntoIterator<Item = u64>) -> Counter {
    let mut counter = Counter::new(params).unwrap();
    add(&mut counter, numbers);
    counter
}

pub(crate) fn add(counter: &mut Counter, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        counter.add(format!("user:{number}").as_bytes(), &Unlimited).unwrap();
    }
}

/// A bit for each slot of a counter, whether or not it is marked.
pub(crate) fn words(counter: &Counter) -> Box<[u64]> {
    let mut union = Slots::wide(counter.layout(), Ages::PLAIN).unwrap();
    counter.mark_in(&mut union, Some(0), 0);
    union.window
}

#[test]
fn a_seeded_run_is_pinned() {
    // The expected set bits, estimates and XXH3-64 of the bitmaps are from a separate program.
    let runs = [
        (0, 1000, 840, "976.831421", 0x6141_8437_06a6_1012),
        (0, 100_000, 7_061, "98221.212506", 0xeb8e_db18_4f02_f32c_u64),
    ];
    for (seed, items, marked, estimate, hash) in runs {
        let mut counter = Counter::new(Params { seed, ..params(0.02, 250) }).unwrap();
        add(&mut counter, 1..=items);
        assert_eq!(counter.set_bits(), marked);
        assert_eq!(format!("{:.6}", counter.estimate()), estimate);
        assert_eq!(hash64(bytemuck::cast_slice(&words(&counter)), 0), hash);
    }
}

#[test]
fn exactness_ends_with_the_bytes_asked_for() {
    // Members that are kept in 36 bytes, and UUIDs, which are kept in 16.
    let text: fn(u32) -> String = |number| format!("user{number:032}");
    let uuid: fn(u32) -> String = |number| format!("{number:08x}-0000-4000-8000-000000000000");
    for (item, exact_bytes, most) in [
        (text, Params::DEFAULT_EXACT_BYTES, 455),
        (text, 35, 0),
        (text, 36, 1),
        (text, 1 << 20, 10_000),
        (uuid, Params::DEFAULT_EXACT_BYTES, 1024),
        (uuid, 15, 0),
        (uuid, 16, 1),
    ] {
        let mut counter = Counter::new(Params { exact_bytes, ..params(RATES[2], 10_000) }).unwrap();
        let mut members = 0;
        while counter.add(item(members), &Unlimited).unwrap() && counter.is_exact() {
            members += 1;
        }
        assert_eq!(members, most, "{exact_bytes} bytes");
        assert_eq!(counter.lower_bound(), most + 1);
    }
}

#[test]
fn adding_over_the_limit_changes_nothing() {
    let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let plain = || Counter::new(params(0.01, 20)).unwrap();
    let windowed = || plain().with_window(window, 0).unwrap();
    for (new, has_window) in [(&plain as &dyn Fn() -> Counter, false), (&windowed, true)] {
        for bytes in [own_bytes(has_window), 400, 1000, 1500, 2200] {
            let (limit, mut counter, mut same) = (MaxBytes(bytes), new(), new());
            let items: Vec<_> = (0..3000).map(|number| format!("user:{number}")).collect();
            let mut added = vec![];
            let rejected = counter.add_all(items.iter().map(String::as_bytes), &limit, |new| added.push(new));
            assert!(matches!(rejected, Err(Error::TooLarge { .. })), "{bytes}");
            for (item, added) in items.iter().zip(&added) {
                assert_eq!(same.add(item.as_bytes(), &Unlimited).unwrap(), *added);
            }
            assert_eq!((counter.payload_part(), counter.is_exact()), (same.payload_part(), same.is_exact()));
            // An item with a new slot is rejected again, a known item is accepted.
            assert!(matches!(counter.add(items[added.len()].as_bytes(), &limit), Err(Error::TooLarge { .. })));
            assert!(added.is_empty() || !counter.add(items[0].as_bytes(), &limit).unwrap());
        }
    }
}

#[test]
fn adding_hashes_is_adding_their_members() {
    let items: Vec<_> = (0..3000).map(|number| format!("user:{number}")).collect();
    let hashes: Vec<_> = items.iter().map(|item| hash64(item.as_bytes(), 0)).collect();
    let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::Manual).unwrap();
    let plain = |exact_limit| Counter::new(params(0.01, exact_limit)).unwrap();
    for new in [&plain as &dyn Fn(u32) -> Counter, &|limit| plain(limit).with_window(window, 0).unwrap()] {
        for len in [0, 1, 63, 64, 3000] {
            let (mut by_hash, mut expected) = (new(0), new(0));
            let mut live = by_hash.live(Time::Reached);
            assert_eq!(live.add_hashes(&hashes[..len], &Unlimited), Ok(true));
            assert_eq!(live.outcome.changed, len > 0);
            expected.live(Time::Reached).add_all(&items[..len], &Unlimited, |_| ()).unwrap();
            assert_eq!(words(&by_hash), words(&expected));
        }
        let mut exact = new(10);
        assert_eq!(exact.live(Time::Reached).add_hashes(&hashes, &Unlimited), Ok(false));
        assert_eq!(exact.count(), 0);
        let rejected = new(0).live(Time::Reached).add_hashes(&hashes, &MaxBytes(1000));
        assert!(matches!(rejected, Err(Error::TooLarge { .. })));
    }
}

#[test]
fn hashes_do_not_move_a_window() {
    let window = Window::new(40, 4, Counter::MAX_SLICES, ClockSource::System).unwrap();
    let mut counter = Counter::new(params(0.01, 0)).unwrap().with_window(window, 0).unwrap();
    for (time, is_added) in [(9, true), (10, false)] {
        assert_eq!(counter.live(Time::At(time)).add_hashes(&[1], &Unlimited), Ok(is_added), "{time}");
    }
    assert_eq!(counter.reached(), 0);
}

/// A mover that copies buffers and records the number of bytes.
#[derive(Default)]
struct Copier(std::cell::Cell<usize>);

impl Mover for Copier {
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        self.0.update(|bytes| bytes + size_of_val(&*buffer));
        buffer.into_iter().collect()
    }
}

#[test]
fn relocation_keeps_the_bits() {
    for (exact_limit, items) in [(0, 5000), (0, 100), (250, 250), (5000, 5000), (250, 0)] {
        let mut counter = counter(params(0.01, exact_limit), 0..items);
        let (before, copier) = ((counter.count(), words(&counter)), Copier::default());
        assert!(counter.relocate(0, &copier) && !counter.relocate(1, &copier));
        assert_eq!((counter.count(), words(&counter)), before);
        // The buffer of the members, or the buffers of the cells and of the lists.
        let (moved, mut sizes) = (copier.0.get(), Vec::new());
        counter.heap_layouts(&mut |layout| sizes.push(layout.size()));
        let buffers = sizes.iter().filter(|&&size| counter.is_exact() || size != size_of::<Slots>()).sum();
        assert!(moved == 0 || moved == buffers, "{moved} of {sizes:?}");
        assert!(moved > 0 || items < 250, "{items}");
    }
}

#[test]
fn a_list_into_a_new_counter_takes_no_more_than_its_members_one_by_one() {
    let alike = |number: usize| format!("member {number:03}");
    let shorter = |number: usize| format!("{}{number:03}", "m".repeat((300 - number) / 10));
    for len in [1, 2, 4, 5, 10, 15, 16, 46, 106, 250] {
        for again in [1, 3] {
            for name in [alike as fn(usize) -> String, shorter] {
                let items: Vec<String> = (0..len).map(|number| name(number / again)).collect();
                let [mut at_once, mut one_by_one] = [(); 2].map(|()| counter(params(0.01, 250), 0..0));
                at_once.live(Time::Reached).add_all(&items, &Unlimited, |_| ()).unwrap();
                for item in &items {
                    one_by_one.live(Time::Reached).add(item, &Unlimited).unwrap();
                }
                assert!(at_once.size_bytes() <= one_by_one.size_bytes(), "{len} items");
                let members = |counter: &Counter| {
                    counter.members().map(|all| all.map(|member| member.text().to_vec()).collect::<Vec<_>>())
                };
                assert_eq!(members(&at_once), members(&one_by_one));
                assert!(items.iter().all(|item| at_once.contains(item) == Ok(true)));
                at_once.live(Time::Reached).add("one more", &Unlimited).ok();
                assert!(items.iter().all(|item| len == 250 || at_once.contains(item) == Ok(true)));
            }
        }
    }
}

proptest! {
    #[test]
    fn the_count_never_falls_by_an_addition(
        seed in any::<u64>(),
        rate in 0..RATES.len(),
        exact_limit in prop_oneof![Just(0u32), 0u32..400],
        batch in 1usize..40,
        long in prop::option::of(0usize..300),
    ) {
        let mut one_by_one = Counter::new(Params { seed, ..params(RATES[rate], exact_limit) }).unwrap();
        let mut in_lists = one_by_one.try_clone().unwrap();
        let mut items: Vec<_> = (0..1200).map(|number| format!("user:{number}").into_bytes()).collect();
        if let Some(at) = long {
            // An item whose length alone makes the counter an estimate.
            items[at] = vec![b'x'; 16_385];
        }
        for (known, item) in items.iter().enumerate() {
            let (before, was_exact) = (one_by_one.estimate(), one_by_one.is_exact());
            one_by_one.add(item, &Unlimited).unwrap();
            prop_assert!(one_by_one.estimate() >= before);
            if was_exact && !one_by_one.is_exact() {
                prop_assert_eq!(u64::from(one_by_one.lower_bound()), known as u64 + 1);
                prop_assert!(one_by_one.count() > known as u64);
            }
        }
        for items in items.chunks(batch) {
            let before = in_lists.count();
            in_lists.add_all(items.iter().map(Vec::as_slice), &Unlimited, |_| ()).unwrap();
            prop_assert!(in_lists.count() >= before);
        }
        prop_assert_eq!(in_lists.lower_bound(), one_by_one.lower_bound());
        prop_assert_eq!(in_lists.estimate(), one_by_one.estimate());
        prop_assert!(u64::from(in_lists.lower_bound()) <= u64::from(exact_limit) + 1);
    }
}
