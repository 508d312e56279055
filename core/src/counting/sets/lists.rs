//! Unions, differences and intersections as lists of members. All counters must be exact.

use hashbrown::HashTable;

use crate::counting::held::members::Members;
use crate::counting::held::members::record::{Front, Member};
use crate::counting::sets::{check_seeds, distinct};
use crate::counting::view::View;
use crate::error::Error;
use crate::hash::table_hash;
use crate::size_limit::{try_collect, try_filled, try_reserve, try_with_capacity};

/// The distinct members of all views together, in the order of the views, and as they were added.
///
/// # Errors
/// [`Error::NotExact`] if a view is an estimate, [`Error::Incompatible`] if seeds differ, [`Error::OutOfMemory`].
pub fn union<'a>(views: &[View<'a>]) -> Result<Vec<Member<'a>>, Error> {
    let all = Distinct::of(&distinct(views, |_, _| false)?)?;
    let mut places = try_collect(all.len(), all.parts.iter().flatten().map(|entry| entry & MOST_PLACE))?;
    places.sort_unstable();
    try_collect(places.len(), places.iter().filter_map(|&place| member_at(&all.arenas, place)))
}

/// The members of the first view that are in none of the other views, in the order in which they were added.
///
/// # Errors
/// The errors of [`union`].
pub fn diff<'a>(views: &[View<'a>]) -> Result<Vec<Member<'a>>, Error> {
    let views = distinct(views, |at, _| at == 0)?;
    check_views(&views)?;
    let Some((first, others)) = views.split_first() else { return Ok(Vec::new()) };
    let (mut left, len) = (HashTable::new(), first.count());
    let needed_bytes = len * size_of::<(u64, Member<'_>)>() as u64;
    left.try_reserve(len as usize, |&(hash, _)| hash).map_err(|_| Error::OutOfMemory { needed_bytes })?;
    for (hash, member) in hashed(first)? {
        left.insert_unique(hash, (hash, member), |&(hash, _)| hash);
    }
    for other in others {
        // The members of the smaller set are looked up in the larger: either `left` in `other`, or `other` in `left`.
        if left.len() as u64 <= other.count() {
            left.retain(|&mut (hash, member)| !has(other, member, hash));
            continue;
        }
        for (hash, member) in hashed(other)? {
            if let Ok(entry) = left.find_entry(hash, |&(_, own)| own == member) {
                entry.remove();
            }
        }
    }
    let mut left = try_collect(left.len(), left.iter().map(|&(_, member)| member))?;
    // All these members lie in one buffer, in the order in which they were added. So they are sorted by address.
    left.sort_unstable_by_key(|member| member.address());
    Ok(left)
}

/// The members that all views share, in the order in which they were added to the smallest view.
///
/// # Errors
/// The errors of [`union`].
pub fn inter<'a>(views: &[View<'a>]) -> Result<Vec<Member<'a>>, Error> {
    let views = distinct(views, |_, _| false)?;
    check_views(&views)?;
    let Some((at, smallest)) = views.iter().enumerate().min_by_key(|(_, view)| view.count()) else {
        return Ok(Vec::new());
    };
    let mut left = try_collect(smallest.count() as usize, hashed(smallest)?)?;
    for (_, other) in views.iter().enumerate().filter(|&(index, _)| index != at) {
        left.retain(|&(hash, member)| has(other, member, hash));
    }
    try_collect(left.len(), left.iter().map(|&(_, member)| member))
}

/// Checks that all views have the same seed and are exact.
fn check_views(views: &[View<'_>]) -> Result<(), Error> {
    check_seeds(views)?;
    views.iter().try_for_each(|view| view.members().map(|_| ()))
}

fn has(view: &View<'_>, member: Member<'_>, hash: u64) -> bool {
    view.age_of(member.text_in(&mut [0; 64]), hash).is_ok_and(|age| age.is_some())
}

fn hashed<'a>(view: &View<'a>) -> Result<impl Iterator<Item = (u64, Member<'a>)>, Error> {
    Ok(view.members()?.map(|member| {
        #[cfg(test)]
        crate::counting::held::members::tests::LOOKED_AT
            .set(crate::counting::held::members::tests::LOOKED_AT.get() + 1);
        (table_hash(member.text_in(&mut [0; 64])), member)
    }))
}

/// The encoded members of a view and their front, behind the number of bytes in all arenas before.
type Arena<'a> = (u64, &'a [u8], Front<'a>);

/// The distinct members of several views. Each takes at most 16 bytes, and is a number: 24 bits of its hash, then its
/// place, which is the byte offset of its record in all arenas one after the other.
///
/// Lists of numbers are sorted, so that equal members meet. This takes less time than a hash table, whose entries lie
/// at random places in memory.
pub(super) struct Distinct<'a> {
    arenas: Vec<Arena<'a>>,
    /// A list for each range of hashes, so that one list at a time is copied to grow, and is sorted within the cache.
    parts: Vec<Vec<u64>>,
}

const PLACE_BITS: u32 = 40;
const MOST_PLACE: u64 = (1 << PLACE_BITS) - 1;

/// The bytes of members for each list, and the least and the largest number of lists.
const PART_BYTES: u64 = 256 << 10;
const FEWEST_PARTS: u64 = 8;
const MOST_PARTS: u64 = 256;

impl<'a> Distinct<'a> {
    /// # Errors
    /// The errors of [`union`].
    pub(super) fn of(views: &[View<'a>]) -> Result<Self, Error> {
        check_views(views)?;
        let (mut arenas, mut bytes) = (try_with_capacity(views.len())?, 0);
        for view in views {
            let (arena, front) = view.counter.held.members().map(Members::arena).unwrap_or_default();
            arenas.push((bytes, arena, front));
            bytes += arena.len() as u64;
        }
        if bytes > MOST_PLACE {
            return Err(Error::OutOfMemory { needed_bytes: bytes });
        }
        let len = (bytes / PART_BYTES).clamp(FEWEST_PARTS, MOST_PARTS);
        let mut parts = try_filled(len as usize, Vec::new())?;
        for (view, &(before, arena, _)) in views.iter().zip(&arenas) {
            for (hash, member) in hashed(view)? {
                let offset = member.address() - arena.as_ptr().addr();
                let part = &mut parts[(((hash >> 32) * len) >> 32) as usize];
                if part.len() == part.capacity() {
                    settle(part, &arenas);
                    // A list that is still more than half full becomes twice as long.
                    let (len, room) = (part.len(), part.capacity());
                    try_reserve(part, if 2 * len >= room { len.max(8) } else { 0 })?;
                }
                part.push(hash << PLACE_BITS | (before + offset as u64));
            }
        }
        parts.iter_mut().for_each(|part| settle(part, &arenas));
        Ok(Distinct { arenas, parts })
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }
}

/// Sorts a list, and keeps the first of equal members.
fn settle(part: &mut Vec<u64>, arenas: &[Arena<'_>]) {
    part.sort_unstable();
    let mut len = 0;
    for at in 0..part.len() {
        let entry = part[at];
        let same_hash = part[..len].iter().rev().take_while(|&other| (other ^ entry) >> PLACE_BITS == 0);
        if same_hash.clone().next().is_none() || {
            let member = member_at(arenas, entry & MOST_PLACE);
            same_hash.clone().all(|other| {
                #[cfg(test)]
                crate::hash::tests::COMPARED.set(crate::hash::tests::COMPARED.get() + 1);
                member_at(arenas, other & MOST_PLACE) != member
            })
        } {
            part[len] = entry;
            len += 1;
        }
    }
    part.truncate(len);
}

fn member_at<'a>(arenas: &[Arena<'a>], place: u64) -> Option<Member<'a>> {
    let at = arenas.partition_point(|&(before, ..)| before <= place);
    let &(before, arena, front) = arenas.get(at.checked_sub(1)?)?;
    Some(Member::split(arena.get((place - before) as usize..)?, front)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Params;
    use crate::counting::counter::Counter;
    use crate::counting::held::members::tests::LOOKED_AT;
    use crate::counting::sets::tests::large;
    use crate::counting::view::tests::standing;

    use crate::size_limit::Unlimited;

    const PARAMS: Params = Params { error_rate: 0.05, exact_limit: 20, exact_bytes: 1000, seed: 7 };

    fn counter(params: Params, members: impl IntoIterator<Item = u8>) -> Counter {
        let mut counter = Counter::new(params).unwrap();
        members.into_iter().for_each(|member| {
            counter.add([member], &Unlimited).unwrap();
        });
        counter
    }

    #[test]
    fn lists_look_at_no_more_members_than_counts() {
        let params = Params { exact_limit: 5000, exact_bytes: 100_000, ..PARAMS };
        let of = |members: std::ops::Range<u32>| {
            let mut counter = Counter::new(params).unwrap();
            members.for_each(|member| drop(counter.add(member.to_le_bytes(), &Unlimited)));
            counter
        };
        let own = of(0..1000);
        let few: Vec<_> = (0..300).map(|n| of(5 * n + 500..5 * n + 505)).collect();
        let many: Vec<_> = (0..30).map(|n| of(10 * n + 500..10 * n + 2000)).collect();
        // Each member of the first counter is hashed. For each other counter, the number of further look-ups is its
        // number of members or the number of remaining members, whichever is less.
        for (others, most) in [(few, 1000 + 300 * 5), (many, 1000 + 30 * 1000)] {
            let others: Vec<_> = others.iter().collect();
            LOOKED_AT.set(0);
            let counted = own.difference(&others).unwrap();
            let by_count = LOOKED_AT.replace(0);
            let listed = own.members_beyond(&others).unwrap();
            let by_list = LOOKED_AT.get();
            assert!(listed.iter().map(|member| member.to_vec()).eq((0..500u32).map(|n| n.to_le_bytes().to_vec())));
            assert_eq!(counted.count(), 500);
            assert!(by_list <= by_count && by_list <= most, "{by_list} against {by_count} and {most}");
        }
        // The members of the smallest view are hashed once. Each member is looked up in the other views, until one of
        // them lacks it.
        let others = [of(500..2000), of(0..2000), of(600..3000)];
        LOOKED_AT.set(0);
        let within = own.members_within(&others.each_ref()).unwrap();
        assert_eq!((within.len(), LOOKED_AT.get()), (400, 1000 + 1000 + 500 + 500));
    }

    #[test]
    fn a_union_takes_memory_for_each_member_once() {
        let counters: Vec<_> = (0..30).map(|_| large((0..3000u32).map(u32::to_le_bytes))).collect();
        let all = Distinct::of(&standing(&counters.iter().collect::<Vec<_>>())).unwrap();
        let lists = all.parts.iter().map(|part| size_of_val(&**part) * part.capacity() / part.len());
        let (bytes, most) = (lists.clone().sum::<usize>(), lists.max().unwrap());
        assert_eq!(all.len(), 3000);
        // While a list is copied to one of twice the length, the old list still takes memory.
        assert!(bytes <= 16 * 3000 && bytes + most <= 24 * 3000, "{bytes} and {most}");
    }

    #[test]
    fn a_union_has_the_order_of_its_counters() {
        let counters = [&[3, 1, 2][..], &[5, 1, 4], &[], &[4, 0]].map(|members| counter(PARAMS, members.to_vec()));
        let union = union(&standing(&counters.each_ref())).unwrap();
        assert!(union.iter().map(|member| member.text()[0]).eq([3, 1, 2, 5, 4, 0]));
    }
}
