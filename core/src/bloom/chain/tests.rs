//! Tests how often chains query their sub-filters, and that calls with lists give the answers of single calls.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::super::bitmap::Line;
use super::super::sub_filter::Spec;
use super::*;
use crate::admission::Admission::{Admitted, Known, Rejected};
use crate::admission::Terms;
use crate::bits;
use crate::live::sealed::Sealed;
use crate::shared::Shared;
use crate::size_limit::Unlimited;

/// The number of different bits that the items of the tests can have.
const MOST_VALUES: u64 = 1 << 16;

/// Counts of calls. Two sub-filters are equal even if these counts differ.
#[derive(Debug, Default)]
struct Aside {
    /// The number of look-ups and insertions of each hash.
    asked: Mutex<HashMap<u64, u32>>,
    /// The number of calls that named words for undoing an insertion.
    kept: AtomicU32,
}

impl PartialEq for Aside {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A layout that counts queries to each sub-filter. An item has the bit of its number modulo the number of bits, so
/// items with equal remainders collide. A sub-filter is full once it has its capacity of items or `full_bits` bits.
/// Like a real one, it reports a lower bound of its room: half of the remaining bits.
#[derive(Debug, PartialEq)]
struct Counted(Aside);

/// The number of an item's bit.
fn ask(spec: &Spec<Counted>, hash: Hash128) -> usize {
    *spec.own.0.asked.lock().unwrap().entry(hash.lo).or_default() += 1;
    (hash.lo % spec.num_bits) as usize
}

fn like(spec: &Spec<Counted>) -> Shared<Spec<Counted>> {
    Spec { own: Counted(Aside::default()), ..*spec }.into()
}

impl Sealed for Counted {}

impl Placement for Counted {
    const CHAIN_BYTES: u64 = 0;
    const SUB_FILTER_BYTES: u64 = 0;
    const IN_PLACE_BYTES: u64 = 0;

    fn hash(item: &[u8], _: u64) -> Hash128 {
        // Multiplied by an odd number, the 65,536 items keep different numbers.
        let number = item.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Hash128 { lo: number.wrapping_mul(40_503) % MOST_VALUES, hi: 0 }
    }
    fn first(_: &Params) -> Result<Shared<Spec<Self>>, Error> {
        unreachable!("no chain here has a window")
    }
    fn next(first: &Spec<Self>, _: &Spec<Self>, _: u64) -> Result<Shared<Spec<Self>>, Error> {
        if first.params.expansion == 0 {
            return Err(Error::Full { capacity: first.params.capacity });
        }
        Ok(like(first))
    }
    fn contains(spec: &Spec<Self>, lines: &[Line], hash: Hash128) -> bool {
        bits::get(bytemuck::cast_slice(lines), ask(spec, hash))
    }
    fn contains_chunk(spec: &Spec<Self>, lines: &[Line], hashes: &[Hash128], pending: Marks) -> Marks {
        marked(pending).filter(|&i| Self::contains(spec, lines, hashes[i])).fold(0, |all, i| all | 1 << i)
    }
    fn insert(spec: &Spec<Self>, lines: &mut [Line], hash: Hash128) -> (bool, u64) {
        let is_new = bits::set(bytemuck::cast_slice_mut(lines), ask(spec, hash));
        (is_new, is_new.into())
    }
    fn insert_chunk(spec: &Spec<Self>, lines: &mut [Line], hashes: &[Hash128], pending: Marks) -> (Marks, u64) {
        let new = marked(pending).filter(|&i| Self::insert(spec, lines, hashes[i]).0).fold(0, |all, i| all | 1 << i);
        (new, new.count_ones().into())
    }
    fn words_of(spec: &Spec<Self>, hash: Hash128, visit: &mut dyn FnMut(usize)) {
        spec.own.0.kept.fetch_add(1, Ordering::Relaxed);
        visit((hash.lo % spec.num_bits) as usize / bits::WORD_BITS);
    }
    fn look_up(sub_filters: &[SubFilter<Self>], hash: Hash128) -> bool {
        sub_filters.iter().rev().any(|sub_filter| sub_filter.may_contain(hash))
    }
    fn check_mergeable(_: &Spec<Self>, _: &Spec<Self>) -> Result<(), Error> {
        unreachable!("no test merges")
    }
    fn estimate_items(_: &Spec<Self>, _: u64) -> f64 {
        unreachable!("no test asks for an estimate")
    }
    fn rate_of(_: &Spec<Self>, _: f64) -> f64 {
        unreachable!("no test asks for a rate")
    }
    fn rate_to_come(_: &Spec<Self>, _: usize) -> f64 {
        unreachable!("no test merges")
    }
}

/// A chain of [`Counted`] sub-filters, all of one size.
fn chain(capacity: u64, expansion: u32, full_bits: u64, num_bits: u64) -> Chain<Counted> {
    let params = Params { error_rate: 0.5, capacity, expansion, seed: 0 };
    let (num_bytes, own) = (num_bits.div_ceil(64) * 8, Counted(Aside::default()));
    let spec = Spec { params, capacity, error_rate: 0.5, hashes: 2, num_bits, num_bytes, full_bits, own };
    Chain::from_first(SubFilter::from_spec(spec.into(), 0, &Unlimited).unwrap())
}

fn counted(capacity: u64, full_bits: u64, num_bits: u64) -> Chain<Counted> {
    chain(capacity, 1, full_bits, num_bits)
}

/// The largest number of queries to a sub-filter about one item since the last call.
fn most_asked(chain: &Chain<Counted>) -> u32 {
    let asked = chain.sub_filters().iter().map(|one| std::mem::take(&mut *one.spec.own.0.asked.lock().unwrap()));
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
        for values in [MOST_VALUES, 997] {
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
        full_bits in prop_oneof![Just(u64::MAX), 1u64..70], values in prop_oneof![Just(MOST_VALUES), 300u64..5000],
    ) {
        let (mut single, mut listed) = (counted(capacity, full_bits, values), counted(capacity, full_bits, values));
        let one_by_one: Vec<bool> = bytes(&items).map(|item| single.add(item, &Unlimited) == Ok(Mark::New)).collect();
        let mut added = Vec::new();
        listed.add_all(bytes(&items), &Unlimited, &mut false, |is_new| added.push(is_new)).unwrap();
        prop_assert_eq!(added, one_by_one);
        prop_assert!(most_asked(&listed) <= 2 * items.len() as u32 && most_asked(&single) <= 2 * items.len() as u32);
        prop_assert!(listed == single);
    }
}

fn fixed(capacity: u64) -> Chain<Counted> {
    chain(capacity, 0, u64::MAX, 512)
}

fn kept(chain: &Chain<Counted>) -> u32 {
    chain.sub_filters()[0].spec.own.0.kept.swap(0, Ordering::Relaxed)
}

/// To undo insertions, the chain saves either words, 16 bytes each, or a copy of the bitmap, here 64 bytes. It chooses
/// the smaller. Words are counted once, and named again to be saved.
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
            let is_copied = new * 16 >= chain.sub_filters()[0].as_bytes().len();
            assert_eq!(kept(&chain) as usize, if is_copied { new } else { 2 * new });
        }
    }
}

#[test]
fn nothing_is_kept_of_what_will_not_be_taken_back() {
    let items: Vec<u16> = (0..5).collect();
    let mut chain = fixed(3);
    let terms = Terms { limit: u64::MAX, all: false, dry_run: false };
    // The chain lacks room for some of the items, and takes the others.
    let reported = chain.admit_now(bytes(&items), terms, &Unlimited).unwrap();
    assert_eq!((reported, kept(&chain)), ([Admitted, Admitted, Admitted, Rejected, Rejected].to_vec(), 0));
    // A full sub-filter changes no more.
    for (all, dry_run) in [(false, false), (true, false), (false, true)] {
        let reported = chain.admit_now(bytes(&items), Terms { all, dry_run, ..terms }, &Unlimited).unwrap();
        assert_eq!((reported, kept(&chain)), ([Known, Known, Known, Rejected, Rejected].to_vec(), 0));
    }
}
