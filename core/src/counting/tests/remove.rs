//! Tests of removal, with and without a window, against the model.

use super::*;
use crate::counting::counter::tests::words;

fn removed(counter: &mut Counter, items: &[&str]) -> Result<Vec<bool>, Error> {
    counter.live(Time::Reached).remove(items.iter().copied())
}

/// A counter without a window, to which these items were added.
fn plain(params: Params, items: impl IntoIterator<Item = u32>) -> Counter {
    let mut counter = Counter::new(params).unwrap();
    items.into_iter().for_each(|item| drop(counter.mark(item.to_le_bytes(), &Unlimited)));
    counter
}

/// All that is stored of a counter without a window.
fn stored_plain(counter: &Counter) -> (bool, u32, Vec<u8>) {
    (counter.is_exact(), CounterForm::of(counter).lower_bound, encode(counter))
}

impl Tracked {
    /// Removes items through the calls that the server uses, and checks the outcome.
    pub(super) fn remove(&mut self, items: &[u32], now: u64) {
        let time = Time::At(now);
        let (before, due) = (stored(&self.counter), self.counter.live(time).due());
        let mut replica = self.counter.try_clone().unwrap();
        let live = self.since(self.counter.oldest_live(time));
        let bytes: Vec<[u8; 4]> = items.iter().map(|item| item.to_le_bytes()).collect();
        let mut change = self.counter.live(time);
        let found = change.remove(bytes.iter().map(|item| &item[..]));
        let outcome = change.finish();
        if !self.counter.is_exact() && (!live.is_empty() || self.counter.params().exact_limit == 0) {
            assert!(matches!(found, Err(Error::NotExact { .. })), "{found:?}");
            assert_eq!((stored(&self.counter), outcome), (before, Outcome::default()));
            return;
        }
        let mut gone = BTreeSet::new();
        let expected: Vec<bool> = items.iter().map(|item| live.contains(item) && gone.insert(*item)).collect();
        assert_eq!(found.as_ref(), Ok(&expected));
        if gone.is_empty() {
            assert_eq!((stored(&self.counter), outcome), (before, Outcome::default()));
            return;
        }
        assert_eq!((outcome.before, outcome.changed, outcome.after), (due, true, Move::Stay));
        assert_eq!(due, self.renew(now));
        self.seen.retain(|item, _| !gone.contains(item));
        // A replica is sent the move, then what was removed.
        replica.make(due);
        let sent: Vec<[u8; 4]> = gone.iter().map(|item| item.to_le_bytes()).collect();
        let on_replica = replica.live(Time::Reached).remove(sent.iter().map(|item| &item[..]));
        assert_eq!(on_replica, Ok(vec![true; sent.len()]));
        assert_eq!((stored(&replica), stored(&reloaded(&replica))), (stored(&self.counter), stored(&self.counter)));
    }
}

#[test]
fn estimates_remove_nothing() {
    let window = window(4, ClockSource::System);
    for windowed in [false, true] {
        let mut counter = Counter::new(params(2, 0.05)).unwrap();
        if windowed {
            counter = counter.with_window(window, NOON / 10).unwrap();
        }
        (0..9).for_each(|member: u32| drop(counter.mark(member.to_le_bytes(), &Unlimited)));
        let (before, rejected) = (encode(&counter), Error::NotExact { exact_limit: 2, exact_bytes: 500 });
        for items in [&["ann"][..], &[]] {
            assert_eq!(removed(&mut counter, items), Err(rejected.clone()));
        }
        assert_eq!(encode(&counter), before);
        if windowed {
            // All in it has expired, so that it has no members.
            let mut live = counter.live(Time::At(NOON + 50));
            assert_eq!((live.remove(["ann"].into_iter()), live.finish()), (Ok(vec![false]), Outcome::default()));
            assert!(!counter.is_exact());
        }
    }
}

proptest! {
    /// A counter from which members were removed equals one to which they were never added, also after it was merged
    /// and once it estimates.
    #[test]
    fn removed_members_leave_no_trace(
        added in vec(0u32..700, 0..700),
        gone in vec(0u32..700, 0..700),
        again in vec(0u32..700, 0..100),
        exact_limit in prop_oneof![Just(40u32), Just(250), Just(5000)],
        at_once: bool,
    ) {
        let params = Params { error_rate: 0.05, exact_limit, exact_bytes: 16_384, seed: 7 };
        let mut counter = plain(params, added.iter().copied());
        prop_assume!(counter.is_exact());
        let gone_bytes: Vec<[u8; 4]> = gone.iter().map(|item| item.to_le_bytes()).collect();
        for items in gone_bytes.chunks(if at_once { 700 } else { 1 }) {
            counter.live(Time::Reached).remove(items.iter()).unwrap();
        }
        let left = || added.iter().copied().filter(|item| !gone.contains(item));
        let never = plain(params, left());
        prop_assert_eq!(stored_plain(&counter), stored_plain(&never));
        prop_assert!(counter.size_bytes() <= 4 * never.size_bytes());
        for item in 0..700u32 {
            prop_assert_eq!(counter.contains(item.to_le_bytes()), never.contains(item.to_le_bytes()));
        }
        let other = plain(params, again.iter().copied());
        let mut merged = never.try_clone().unwrap();
        counter.merge(&[&other], &Unlimited).unwrap();
        merged.merge(&[&other], &Unlimited).unwrap();
        prop_assert_eq!(stored_plain(&counter), stored_plain(&merged));
        for item in 1000..1000 + exact_limit {
            counter.mark(item.to_le_bytes(), &Unlimited).unwrap();
            merged.mark(item.to_le_bytes(), &Unlimited).unwrap();
        }
        prop_assert_eq!(stored_plain(&counter), stored_plain(&merged));
        prop_assert_eq!(words(&counter), words(&merged));
    }
}
