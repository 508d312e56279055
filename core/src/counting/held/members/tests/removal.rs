use super::*;
use crate::counting::held::members::index::tests::GROUPS_LOOKED_AT;
use crate::live::tests::Copier;
use proptest::collection::vec;

fn insert(members: &mut Members, item: &[u8]) {
    members.put(item, 1);
}

/// Memory is freed once most members are removed. Adding and removing one member again and again does not copy the
/// others.
#[test]
fn a_set_shrinks_with_its_members() {
    for number in [5u32, 250, 1000] {
        let item = |number: u32| format!("m{number:011}").into_bytes();
        let mut members = Members::default();
        (0..number).for_each(|number| insert(&mut members, &item(number)));
        LOOKED_AT.set(0);
        for left in (0..number).rev() {
            members.remove([0].into_iter());
            assert_eq!(members.len(), left as usize);
            assert!(members.heap_bytes() <= 4 * (Members::bytes_of_read(13 * u64::from(left), ROOM) + 16));
            // The first member is removed and added again, so it becomes the last member.
            if left > 0 {
                let first = members.iter().next().unwrap().1.text().to_vec();
                members.remove([0].into_iter());
                insert(&mut members, &first);
            }
        }
        assert_eq!(members.heap_bytes(), 0);
        assert!(LOOKED_AT.get() <= u64::from(number), "{} of {number}", LOOKED_AT.get());
    }
}

/// A set of small numbers has no index, and shrinks as well.
#[test]
fn a_set_without_an_index_shrinks() {
    let mut members = Members::default();
    (0..255u32).for_each(|number| insert(&mut members, number.to_string().as_bytes()));
    let full = members.heap_bytes();
    for _ in 16..255 {
        members.remove([1].into_iter());
    }
    assert_eq!((members.len(), members.as_bytes().len()), (16, 17));
    assert!(members.heap_bytes() <= 4 * 17 + 16, "{} of {full}", members.heap_bytes());
}

/// Removes all of `items` in one call.
fn remove<'a>(members: &mut Members, items: impl IntoIterator<Item = &'a [u8]>) {
    let offset = |item: &[u8]| members.offset_of(item, table_hash(item)).unwrap();
    let mut gone: Vec<_> = items.into_iter().map(offset).collect();
    gone.sort_unstable();
    members.remove(gone.into_iter());
}

/// Items whose hashes select the first 64th of the groups of any index, or all the last 64th.
fn of_one_group(number: usize, is_last: bool) -> Vec<Vec<u8>> {
    let bound = if is_last { u64::MAX - (u64::MAX >> 6) } else { u64::MAX >> 6 };
    let items = (0..).map(|number: u32| format!("m{number:011}").into_bytes());
    items.filter(|item| (table_hash(item) > bound) == is_last).take(number).collect()
}

/// The index of a large set is kept.
#[test]
fn a_removal_looks_at_few_groups() {
    for number in [40usize, 250, 4000, 65_000] {
        let all: Vec<_> = (0..number).map(|number| format!("m{number:011}").into_bytes()).collect();
        let mut members = Members::default();
        all.iter().for_each(|item| insert(&mut members, item));
        GROUPS_LOOKED_AT.set(0);
        let gone = all.iter().step_by(number / 20).map(|item| remove(&mut members, [&item[..]])).count();
        assert!(GROUPS_LOOKED_AT.get() <= 8 * gone as u64, "{} of {number}", GROUPS_LOOKED_AT.get());
    }
}

/// After it has freed memory, a set is equal to a set that was loaded.
#[test]
fn a_set_that_shrinks_keeps_its_prefix_or_none() {
    for (first, prefix) in [("user:1", "user:"), ("ann", "")] {
        let mut members = Members::default();
        insert(&mut members, first.as_bytes());
        (100..400).for_each(|number| insert(&mut members, format!("user:{number}").as_bytes()));
        for left in [60, 10] {
            let before = members.heap_bytes();
            let all: Vec<_> = members.iter().map(|(_, member)| member.text().to_vec()).collect();
            remove(&mut members, all[..all.len() - left].iter().map(|item| &item[..]));
            assert!(members.heap_bytes() < before);
            assert_eq!(members.prefix(), prefix.as_bytes());
            let read = Members::from_bytes(members.as_bytes(), ROOM, Ages::PLAIN).unwrap();
            assert_eq!((members.index, members.heap_bytes()), (read.index, read.heap_bytes()));
        }
    }
}

/// The prefix (text that members begin with) is removed with the last member. Without a member it could not be
/// loaded.
#[test]
fn a_prefix_goes_with_the_last_member() {
    let mut members = Members::new(AGES);
    for prefix in ["a prefix of some length:", "another:"] {
        let item = format!("{prefix}1").into_bytes();
        members.put(&item, 3);
        assert_eq!(members.prefix(), prefix.as_bytes());
        let offset = members.offset_of(&item, table_hash(&item)).unwrap();
        members.remove(std::iter::once(offset));
        assert_eq!(members.as_bytes(), b"");
    }
}

proptest! {
    /// Members are added and removed at random, one by one and several at once. Now and then the set is stored and
    /// loaded.
    #[test]
    fn a_set_has_the_members_that_are_left(
        pool in prop_oneof![
            items(),
            (0usize..300, any::<bool>()).prop_map(|(number, is_last)| of_one_group(number, is_last)),
        ],
        steps in vec((any::<prop::sample::Index>(), 0usize..40, 0u8..8), 0..100),
    ) {
        prop_assume!(!pool.is_empty());
        let (mut members, mut naive) = (Members::default(), Vec::<&[u8]>::new());
        for (first, number, kind) in steps {
            let mut some: Vec<&[u8]> =
                pool.iter().cycle().skip(first.index(pool.len())).take(number).map(|item| &item[..]).collect();
            some.sort_unstable();
            some.dedup();
            match kind {
                0..4 => {
                    some.retain(|item| !naive.contains(item));
                    some.iter().for_each(|item| insert(&mut members, item));
                    naive.extend(some);
                }
                4..7 => {
                    some.retain(|item| naive.contains(item));
                    some.truncate(if kind == 4 { 1 } else { number });
                    remove(&mut members, some.iter().copied());
                    naive.retain(|item| !some.contains(item));
                }
                _ => {
                    members = Members::from_bytes(members.as_bytes(), ROOM, Ages::PLAIN).unwrap().try_clone().unwrap();
                    members.relocate(&Copier);
                }
            }
            prop_assert!(members.iter().map(|(_, member)| member.text().to_vec()).eq(naive.iter().copied()));
            let bytes = naive.iter().map(|item| counted_bytes(item) as u32).sum::<u32>();
            prop_assert_eq!((members.len(), members.member_bytes), (naive.len(), bytes));
            for item in &pool {
                prop_assert_eq!(members.contains(item), naive.contains(&&item[..]));
            }
        }
    }
}
