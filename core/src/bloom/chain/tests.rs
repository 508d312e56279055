//! How often chains ask their sub-filters, and that lists answer as single calls do, on chains of any length.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::hash::hash64;
use crate::size_limit::Unlimited;

/// How often each hash was looked for or inserted. It makes no difference between sub-filters.
#[derive(Debug, Default)]
struct Asked(Mutex<HashMap<u64, u32>>);

impl PartialEq for Asked {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A sub-filter that counts how often it is asked. It errs for items that share one of `values` values. It is full with
/// `capacity` items or `most_held` held values. Like a real one, it reports a lower bound of its room: half of the
/// values that are left.
#[derive(Debug, PartialEq)]
struct Counted {
    params: Params,
    most_held: u64,
    values: u64,
    held: HashSet<u64>,
    num_items: u64,
    asked: Asked,
}

impl Counted {
    fn new(params: Params, most_held: u64, values: u64) -> Self {
        let (held, asked) = (HashSet::new(), Asked::default());
        Counted { params, most_held, values, held, num_items: 0, asked }
    }

    fn ask(&self, hash: Hash128) -> u64 {
        *self.asked.0.lock().unwrap().entry(hash.lo).or_default() += 1;
        hash.lo % self.values
    }
}

impl Sealed for Counted {}

impl SubFilter for Counted {
    fn params(&self) -> &Params {
        &self.params
    }
    fn hash(item: &[u8], seed: u64) -> Hash128 {
        Hash128 { lo: hash64(item, seed), hi: 0 }
    }
    fn next(sub_filters: &[Self], _: u64, _: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        let Counted { params, most_held, values, .. } = sub_filters[0];
        Ok(Counted::new(params, most_held, values))
    }
    fn empty_twin(&self, _: u64, _: &(impl SizeLimit + ?Sized)) -> Result<Self, Error> {
        unreachable!("no test asks for one")
    }
    fn try_clone(&self) -> Result<Self, Error> {
        unreachable!("no test copies")
    }
    fn size_bytes(_: &[Self]) -> u64 {
        0
    }
    fn words_of(&self, _: Hash128, _: &mut dyn FnMut(usize, u64)) {}
    fn put_back(&mut self, _: &[(usize, u64)], _: u64) {
        unreachable!("no test takes items back")
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
    fn look_up_chunk(&self, hashes: &[Hash128], pending: u32) -> u32 {
        (0..hashes.len())
            .filter(|i| pending >> i & 1 == 1 && self.may_contain(hashes[*i]))
            .fold(0, |all, i| all | 1 << i)
    }
    fn insert_chunk(&mut self, hashes: &[Hash128], pending: u32) -> u32 {
        (0..hashes.len()).filter(|i| pending >> i & 1 == 1 && self.insert(hashes[*i])).fold(0, |all, i| all | 1 << i)
    }
    fn look_up_all(&self, hashes: impl Iterator<Item = Hash128>, found: &mut impl FnMut(bool)) {
        hashes.for_each(|hash| found(self.may_contain(hash)));
    }
    fn insert_all(&mut self, hashes: impl Iterator<Item = Hash128>, added: &mut impl FnMut(bool)) {
        hashes.for_each(|hash| added(self.insert(hash)));
    }
    fn set_num_items(&mut self, _: u64) -> Result<(), Error> {
        unreachable!("no test loads")
    }
    fn as_bytes(&self) -> &[u8] {
        &[]
    }
    fn append_bytes(&mut self, _: u64, _: &[u8]) -> Result<(), Error> {
        unreachable!("no test loads")
    }
    fn check_mergeable(&self, _: &Self) -> Result<(), Error> {
        unreachable!("no test merges")
    }
    fn union_with(&mut self, _: &Self) -> bool {
        unreachable!("no test merges")
    }
    fn clear(&mut self) {
        unreachable!("no test clears")
    }
    fn relocate(&mut self, _: impl FnOnce(Box<[Line]>) -> Box<[Line]>) {}
    fn heap_layouts(&self, _: &mut dyn FnMut(Layout)) {}
    fn count_union<'a>(&'a self, _others: impl Iterator<Item = &'a Self> + Clone + Sync) -> u64 {
        unreachable!("no test merges")
    }
    fn estimate_items(&self, set_bits: u64) -> f64 {
        set_bits as f64
    }
    fn rate_with(&self, _set_bits: u64) -> f64 {
        0.0
    }
    fn rate_to_come(&self, _: usize) -> f64 {
        unreachable!("no test merges")
    }
}

/// A chain of such sub-filters, all of one capacity.
fn counted(capacity: u64, most_held: u64, values: u64) -> Chain<Counted> {
    let params = Params { error_rate: 0.5, capacity, expansion: 1, seed: 0 };
    Chain::of(Counted::new(params, most_held, values))
}

/// Largest number of times that a sub-filter was asked about one item since the last call.
fn most_asked(chain: &Chain<Counted>) -> u32 {
    let asked = chain.sub_filters().iter().map(|one| std::mem::take(&mut *one.asked.0.lock().unwrap()));
    asked.flat_map(HashMap::into_values).max().unwrap_or(0)
}

fn bytes(items: &[u16]) -> impl Iterator<Item = &[u8]> {
    items.iter().map(bytemuck::bytes_of)
}

/// A sub-filter is asked once in the look-up. It is asked again when the item is added, or when it has become full
/// meanwhile.
#[test]
fn a_sub_filter_is_asked_about_an_item_twice_at_most() {
    let items: Vec<u16> = (0..450).collect();
    for capacity in [1, 3, 31, 32, 33, 100] {
        for values in [u64::MAX, 997] {
            let mut chain = counted(capacity, u64::MAX, values);
            chain.add_all(bytes(&items), &Unlimited, |_| ()).unwrap();
            assert!((1..=2).contains(&most_asked(&chain)), "{capacity}");
            assert!(chain.sub_filters().len() as u64 >= 320 / capacity);
            // Items that are all known, or all absent, are asked about once.
            chain.add_all(bytes(&items), &Unlimited, |_| ()).unwrap();
            assert_eq!(most_asked(&chain), 1, "{capacity}");
            let absent: Vec<u16> = (1000..1450).collect();
            chain.may_contain_all(bytes(&absent), |_| ());
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
        let one_by_one: Vec<bool> = bytes(&items).map(|item| single.add(item, &Unlimited).unwrap()).collect();
        let mut added = Vec::new();
        listed.add_all(bytes(&items), &Unlimited, |is_new| added.push(is_new)).unwrap();
        prop_assert_eq!(added, one_by_one);
        prop_assert!(most_asked(&listed) <= 2 * items.len() as u32 && most_asked(&single) <= 2 * items.len() as u32);
        prop_assert!(listed == single);
    }
}
