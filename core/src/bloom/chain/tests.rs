//! Tests how often chains query their sub-filters, and that calls with lists give the answers of single calls.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::super::sub_filter::Store;
use super::*;
use crate::admission::Admission::{Admitted, Known, Rejected};
use crate::admission::Terms;
use crate::hash::hash64;
use crate::live::sealed::Sealed;
use crate::size_limit::Unlimited;

/// Counts of calls. Two sub-filters are equal even if these counts differ.
#[derive(Debug, Default)]
struct Aside {
    /// The number of look-ups and insertions of each hash.
    asked: Mutex<HashMap<u64, u32>>,
    /// The number of calls that saved words for undoing an insertion.
    kept: AtomicU32,
    is_copy: bool,
}

impl PartialEq for Aside {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The bitmap that every counted sub-filter reports.
static BYTES: [u8; 64] = [0; 64];

/// A sub-filter that counts its queries. It stores the hash of an item modulo `values`, so items with equal remainders
/// collide. It is full once it has `capacity` items or `most_held` remainders. Like a real sub-filter, it reports a
/// lower bound of its room: half of the remaining places.
#[derive(Debug, PartialEq)]
struct Counted {
    params: Params,
    most_held: u64,
    values: u64,
    held: HashSet<u64>,
    num_items: u64,
    aside: Aside,
}

impl Counted {
    fn new(params: Params, most_held: u64, values: u64) -> Self {
        let (held, aside) = (HashSet::new(), Aside::default());
        Counted { params, most_held, values, held, num_items: 0, aside }
    }

    fn ask(&self, hash: Hash128) -> u64 {
        *self.aside.asked.lock().unwrap().entry(hash.lo).or_default() += 1;
        hash.lo % self.values
    }
}

impl Sealed for Counted {}

impl SubFilter for Counted {
    type Spec = ();
    fn of(_: Store<()>) -> Self {
        unreachable!("it has no store")
    }
    fn store(&self) -> &Store<()> {
        unreachable!("it has no store")
    }
    fn store_mut(&mut self) -> &mut Store<()> {
        unreachable!("it has no store")
    }
    fn restore(&mut self, earlier: Self) {
        *self = earlier;
    }
    fn num_bytes(&self) -> usize {
        BYTES.len()
    }
    fn hashes(&self) -> u32 {
        1
    }
    fn params(&self) -> &Params {
        &self.params
    }
    fn hash(item: &[u8], seed: u64) -> Hash128 {
        Hash128 { lo: hash64(item, seed), hi: 0 }
    }
    fn first(_: &Params, _: u64, _: &impl SizeLimit) -> Result<Self, Error> {
        unreachable!("no chain here has a window")
    }
    fn next(&self, _: &Self, _: u64, _: u64, _: &impl SizeLimit) -> Result<Self, Error> {
        let Counted { params, most_held, values, .. } = *self;
        if params.expansion == 0 {
            return Err(Error::Full { capacity: params.capacity });
        }
        Ok(Counted::new(params, most_held, values))
    }
    fn try_clone(&self) -> Result<Self, Error> {
        let aside = Aside { is_copy: true, ..Aside::default() };
        Ok(Counted { held: self.held.clone(), num_items: self.num_items, aside, ..*self })
    }
    fn size_bytes(_: &[Self]) -> u64 {
        0
    }
    fn words_of(&self, hash: Hash128, visit: &mut dyn FnMut(usize, u64)) {
        self.aside.kept.fetch_add(1, Ordering::Relaxed);
        let value = hash.lo % self.values;
        visit(value as usize, u64::from(self.held.contains(&value)));
    }
    fn put_back(&mut self, words: &[(usize, u64)], num_items: u64) {
        words.iter().filter(|(_, was_held)| *was_held == 0).for_each(|(value, _)| {
            self.held.remove(&(*value as u64));
        });
        self.num_items = num_items;
    }
    fn capacity(&self) -> u64 {
        self.params.capacity
    }
    fn error_rate(&self) -> f64 {
        0.0
    }
    fn num_items(&self) -> u64 {
        self.num_items
    }
    fn is_full(&self) -> bool {
        self.room() == 0
    }
    fn room(&self) -> u64 {
        self.capacity().saturating_sub(self.num_items).min(self.most_held.saturating_sub(self.set_bits()).div_ceil(2))
    }
    fn holds(&self, _: u64, _: u64) -> bool {
        unreachable!("no test merges")
    }
    fn num_bits(&self) -> u64 {
        self.values
    }
    fn set_bits(&self) -> u64 {
        self.held.len() as u64
    }
    fn may_contain(&self, hash: Hash128) -> bool {
        self.held.contains(&self.ask(hash))
    }
    fn insert(&mut self, hash: Hash128) -> bool {
        let is_new = self.held.insert(self.ask(hash));
        self.num_items += u64::from(is_new);
        is_new
    }
    fn look_up_chunk(&self, hashes: &[Hash128], pending: Marks) -> Marks {
        (0..hashes.len())
            .filter(|i| pending >> i & 1 == 1 && self.may_contain(hashes[*i]))
            .fold(0, |all, i| all | 1 << i)
    }
    fn insert_chunk(&mut self, hashes: &[Hash128], pending: Marks) -> Marks {
        (0..hashes.len()).filter(|i| pending >> i & 1 == 1 && self.insert(hashes[*i])).fold(0, |all, i| all | 1 << i)
    }
    fn as_bytes(&self) -> &[u8] {
        &BYTES
    }
    fn check_mergeable(&self, _: &Self) -> Result<(), Error> {
        unreachable!("no test merges")
    }
    fn estimate_items(&self, set_bits: u64) -> f64 {
        set_bits as f64
    }
    fn rate_of(&self, _: f64) -> f64 {
        unreachable!("no test asks for a rate")
    }
    fn rate_with(&self, _set_bits: u64) -> f64 {
        0.0
    }
    fn rate_to_come(&self, _: usize) -> f64 {
        unreachable!("no test merges")
    }
}

/// A chain of [`Counted`] sub-filters, all of one capacity.
fn counted(capacity: u64, most_held: u64, values: u64) -> Chain<Counted> {
    let params = Params { error_rate: 0.5, capacity, expansion: 1, seed: 0 };
    Chain::of(Counted::new(params, most_held, values))
}

/// The largest number of queries to a sub-filter about one item since the last call.
fn most_asked(chain: &Chain<Counted>) -> u32 {
    let asked = chain.sub_filters().iter().map(|one| std::mem::take(&mut *one.aside.asked.lock().unwrap()));
    asked.flat_map(HashMap::into_values).max().unwrap_or(0)
}

fn bytes(items: &[u16]) -> impl ExactSizeIterator<Item = &[u8]> {
    items.iter().map(bytemuck::bytes_of)
}

/// A sub-filter is queried once to look an item up. It is queried again to add the item, or if it has become full since
/// the look-up.
#[test]
fn a_sub_filter_is_asked_about_an_item_twice_at_most() {
    let items: Vec<u16> = (0..450).collect();
    for capacity in [1, 3, 32, 63, 64, 65, 100] {
        for values in [u64::MAX, 997] {
            let mut chain = counted(capacity, u64::MAX, values);
            chain.add_all(bytes(&items), &Unlimited, &mut false, |_| ()).unwrap();
            assert!((1..=2).contains(&most_asked(&chain)), "{capacity}");
            assert!(chain.sub_filters().len() as u64 >= 320 / capacity);
            // Items that are all known, or all absent, are asked about once.
            chain.add_all(bytes(&items), &Unlimited, &mut false, |_| ()).unwrap();
            assert_eq!(most_asked(&chain), 1, "{capacity}");
            let absent: Vec<u16> = (1000..1450).collect();
            chain.may_contain_all(bytes(&absent), 0, |_| ());
            assert_eq!(most_asked(&chain), 1, "{capacity}");
        }
    }
}

proptest! {
    #[test]
    fn a_list_is_one_item_after_another(
        items in prop::collection::vec(0u16..400, 0..300), capacity in 1u64..70,
        most_held in prop_oneof![Just(u64::MAX), 1u64..70], values in prop_oneof![Just(u64::MAX), 300u64..5000],
    ) {
        let (mut single, mut listed) = (counted(capacity, most_held, values), counted(capacity, most_held, values));
        let one_by_one: Vec<bool> = bytes(&items).map(|item| single.add(item, &Unlimited) == Ok(Mark::New)).collect();
        let mut added = Vec::new();
        listed.add_all(bytes(&items), &Unlimited, &mut false, |is_new| added.push(is_new)).unwrap();
        prop_assert_eq!(added, one_by_one);
        prop_assert!(most_asked(&listed) <= 2 * items.len() as u32 && most_asked(&single) <= 2 * items.len() as u32);
        prop_assert!(listed == single);
    }
}

fn fixed(capacity: u64) -> Chain<Counted> {
    Chain::of(Counted::new(Params { error_rate: 0.5, capacity, expansion: 0, seed: 0 }, u64::MAX, u64::MAX))
}

/// To undo insertions, the chain saves either words, 16 bytes each, or a copy of the bitmap, here 64 bytes. It chooses
/// the smaller.
#[test]
fn what_may_be_taken_back_is_kept_in_the_less_memory() {
    let items: Vec<u16> = (0..10).collect();
    for new in 2..=8 {
        for (all, dry_run) in [(true, false), (true, true), (false, true)] {
            let (mut chain, mut before) = (fixed(new as u64), fixed(new as u64));
            [&mut chain, &mut before].into_iter().for_each(|chain| drop(chain.add(b"first", &Unlimited)));
            let terms = Terms { limit: u64::MAX, all, dry_run };
            let reported = chain.admit_now(bytes(&items[..new]), terms, &Unlimited).unwrap();
            assert_eq!(reported.len(), new);
            assert!(chain == before && chain.num_items(0) == 1);
            assert_eq!(chain.sub_filters()[0].aside.is_copy, new * 16 >= BYTES.len(), "{new}");
        }
    }
}

#[test]
fn nothing_is_kept_of_what_will_not_be_taken_back() {
    let items: Vec<u16> = (0..5).collect();
    let mut chain = fixed(3);
    let terms = Terms { limit: u64::MAX, all: false, dry_run: false };
    let kept = |chain: &Chain<Counted>| chain.sub_filters()[0].aside.kept.load(Ordering::Relaxed);
    // The chain lacks room for some of the items, and takes the others.
    let reported = chain.admit_now(bytes(&items), terms, &Unlimited).unwrap();
    assert_eq!((reported, kept(&chain)), ([Admitted, Admitted, Admitted, Rejected, Rejected].to_vec(), 0));
    // A full sub-filter changes no more.
    for (all, dry_run) in [(false, false), (true, false), (false, true)] {
        let reported = chain.admit_now(bytes(&items), Terms { all, dry_run, ..terms }, &Unlimited).unwrap();
        assert_eq!((reported, kept(&chain)), ([Known, Known, Known, Rejected, Rejected].to_vec(), 0));
    }
}
