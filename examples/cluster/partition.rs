//! One logical filter or counter that is split into parts, each under its own key. So it can be larger than one node of
//! a cluster.
//!
//! ```text
//!   item --XXH3-64, seed of its own--> h        part i = h mod k        key "name:i"
//!
//!   name:0   name:1   ...   name:k-1            k keys without a common hash tag, so in k slots
//! ```
//!
//! Each part is an ordinary filter or counter. An item is added and looked up in one part only. Parts never exchange
//! data.
//!
//! - **Error rate.** The routing hash is independent of the hashes that filters and counters use. So the items of a
//!   part are a random sample, and a filter within its capacity keeps its rate `p`. An absent item is looked up in only
//!   one part, so the whole has the rate `p` too.
//! - **Numbers.** No item is in two parts. So the numbers that `BF.CARD` and `LC.COUNT` return for the parts add up.
//! - **Standard error.** The errors of `k` counts are independent. A part of `n/k` members with a relative error `s`
//!   has an error of `s*n/k` members. The sum of the parts has an error of `sqrt(k)*s*n/k` members: `s/sqrt(k)`,
//!   relative to `n`. See [`unite`].
//! - **Capacity of filters.** The number of items of a part is binomial with the mean `n/k` and a variance below `n/k`.
//!   See [`Partitioned::capacity_of_part`].
//!
//! The routing hash and `k` decide which part stores an item, so both must stay the same while the parts exist.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The largest number of parts: the number of slots of a cluster.
const MAX_PARTS: u32 = 16_384;

/// The seed of the hash that selects the part of an item: the first 64 bits of the fraction of pi. With another seed,
/// stored items would not be found.
const ROUTING_SEED: u64 = 0x243f_6a88_85a3_08d3;

/// The largest part that [`Partitioned::suggested_parts`] suggests, in bytes. Larger parts block a server longer while
/// they are moved. Smaller parts split a list of items into more and shorter lists.
const PART_BYTES: u64 = 32 << 20;

/// The smallest number of parts per node that [`Partitioned::suggested_parts`] suggests. If the parts lie in random
/// slots of the cluster, the load of a node with 8 parts has a relative standard deviation of about a third. Moving a
/// few slots then makes the loads equal.
const PARTS_A_NODE: u64 = 8;

/// The capacity of a part is the mean number of its items plus this number of standard deviations.
const SIGMAS: f64 = 6.0;

/// The name of a logical filter or counter, and the number of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partitioned {
    name: Vec<u8>,
    parts: u32,
}

impl Partitioned {
    /// The largest total capacity that [`capacity_of_part`](Self::capacity_of_part) accepts, and up to which a double
    /// holds every whole number exactly.
    pub const MAX_CAPACITY: u64 = 1 << 53;

    /// Splits a filter or counter into `parts` parts, whose keys are `name:0`, `name:1` and so on.
    ///
    /// # Errors
    /// If `parts` is no power of two up to 16,384, or if the name has a hash tag, which would put all parts into one
    /// slot.
    pub fn new(name: impl Into<Vec<u8>>, parts: u32) -> Result<Self, String> {
        let name = name.into();
        if !parts.is_power_of_two() || parts > MAX_PARTS {
            return Err(format!("number of parts must be a power of two from 1 to {MAX_PARTS}, got {parts}"));
        }
        if has_hash_tag(&name) {
            return Err(format!("name must be without a hash tag, got {}", name.escape_ascii()));
        }
        Ok(Partitioned { name, parts })
    }

    /// The keys of all parts, in order.
    pub fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.parts).map(|part| self.key_of(part))
    }

    /// The index of the part to which an item belongs.
    pub fn part_of(&self, item: impl AsRef<[u8]>) -> u32 {
        // The low bits of the hash are easy to get in languages without unsigned 64-bit integers.
        xxh3_64_with_seed(item.as_ref(), ROUTING_SEED) as u32 & (self.parts - 1)
    }

    /// Splits a list of items into shares. A share has the items of one part, in the order of the list. A part without
    /// items has no share.
    pub fn split<'a, I: AsRef<[u8]>>(&self, items: &'a [I]) -> Split<'a> {
        let route = |(place, item): (usize, &'a I)| (self.part_of(item.as_ref()), place, item.as_ref());
        let mut routed: Vec<(u32, usize, &'a [u8])> = items.iter().enumerate().map(route).collect();
        routed.sort_unstable_by_key(|&(part, place, _)| (part, place));
        let share = |routed: &[(u32, usize, &'a [u8])]| Share {
            part: routed[0].0,
            key: self.key_of(routed[0].0),
            items: routed.iter().map(|&(_, _, item)| item).collect(),
            places: routed.iter().map(|&(_, place, _)| place).collect(),
        };
        Split { shares: routed.chunk_by(|one, next| one.0 == next.0).map(share).collect(), len: items.len() }
    }

    /// The capacity for the filter of each part, if all `k` parts together are for `n = capacity` items: `n/k +
    /// 6*sqrt(n/k)`, but at most `n`.
    ///
    /// By Bernstein's inequality, a part with a mean of `m = n/k` items exceeds this capacity with a probability below
    /// `exp(-18 / (1 + 2/sqrt(m)))`. Even then no item is lost: the part grows, or its false-positive rate rises
    /// slightly.
    ///
    /// # Errors
    /// If `capacity` is 0 or more than [`MAX_CAPACITY`](Self::MAX_CAPACITY).
    pub fn capacity_of_part(&self, capacity: u64) -> Result<u64, String> {
        if !(1..=Self::MAX_CAPACITY).contains(&capacity) {
            return Err(format!("capacity must be from 1 to {}, got {capacity}", Self::MAX_CAPACITY));
        }
        let mean = capacity as f64 / f64::from(self.parts);
        Ok(capacity.min((mean + SIGMAS * mean.sqrt()).ceil() as u64))
    }

    /// Suggests a number of parts for a filter or counter of `bytes` bytes on `nodes` nodes: a power of two with which
    /// a part takes at most 32 MiB, and a node holds at least eight parts.
    pub fn suggested_parts(bytes: u64, nodes: u32) -> u32 {
        let for_size = bytes.div_ceil(PART_BYTES);
        let for_balance = u64::from(nodes) * PARTS_A_NODE;
        // 16,384 is a power of two, so neither the cast nor the rounding overflows.
        (for_size.max(for_balance).clamp(1, u64::from(MAX_PARTS)) as u32).next_power_of_two()
    }

    /// The key of the part `part`, a number below `parts`.
    fn key_of(&self, part: u32) -> Vec<u8> {
        [&self.name[..], b":", part.to_string().as_bytes()].concat()
    }
}

/// Whether a name has a hash tag: text between the first `{` and the next `}`. A cluster puts all keys with the same
/// hash tag into one slot.
fn has_hash_tag(name: &[u8]) -> bool {
    let after = name.iter().position(|&byte| byte == b'{').map(|open| &name[open + 1..]);
    let enclosed = after.and_then(|after| after.iter().position(|&byte| byte == b'}'));
    enclosed.is_some_and(|bytes| bytes > 0)
}

/// A list of items, split into shares.
pub struct Split<'a> {
    /// The shares, in the order of their parts.
    pub shares: Vec<Share<'a>>,
    len: usize,
}

/// The items of a list that belong to one part.
pub struct Share<'a> {
    /// The number of the part.
    pub part: u32,
    /// The key of the part.
    pub key: Vec<u8>,
    /// The items, in the order of the list.
    pub items: Vec<&'a [u8]>,
    /// The place of each item in the list.
    places: Vec<usize>,
}

impl Split<'_> {
    /// Brings replies into the order of the list of items. `replies` has a list for each share, with a reply for each
    /// of its items.
    ///
    /// # Errors
    /// If there is not one list for each share and one reply for each item. Replies are missing, for example, if a
    /// filter that does not scale is full.
    pub fn in_order<R>(&self, replies: Vec<Vec<R>>) -> Result<Vec<R>, String> {
        if replies.len() != self.shares.len() {
            return Err(format!("lists of replies: expected {}, got {}", self.shares.len(), replies.len()));
        }
        let mut ordered: Vec<Option<R>> = Vec::new();
        ordered.resize_with(self.len, || None);
        for (share, replies) in self.shares.iter().zip(replies) {
            if replies.len() != share.places.len() {
                let (expected, part, got) = (share.places.len(), share.part, replies.len());
                return Err(format!("replies of part {part}: expected {expected}, got {got}"));
            }
            for (&place, reply) in share.places.iter().zip(replies) {
                ordered[place] = Some(reply);
            }
        }
        // Every position is filled, because the shares together have each item once.
        Ok(ordered.into_iter().flatten().collect())
    }
}

/// The count of all parts and its standard error, from those of each part. Standard errors are numbers of members, as
/// in the reply of `LC.UNIONCARD`.
pub fn unite(estimates: impl IntoIterator<Item = (u64, f64)>) -> (u64, f64) {
    let add = |(count, variance): (u64, f64), (more, error): (u64, f64)| {
        (count.saturating_add(more), variance + error * error)
    };
    let (count, variance) = estimates.into_iter().fold((0, 0.0), add);
    (count, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(parts: u32) -> Partitioned {
        Partitioned::new("name", parts).unwrap()
    }

    /// An item and its hash under [`ROUTING_SEED`], computed by XXH3's reference implementation in C. `examples/python`
    /// has the same rows.
    #[test]
    fn routing_hash_equals_the_reference_implementation() {
        let bytes: Vec<u8> = (0..=255).collect();
        let long = "rollcall".repeat(200);
        let rows: [(&[u8], u64); 10] = [
            (b"", 0x2ddf_1348_e67d_dace),
            (b"a", 0xefe6_972b_6321_5397),
            (b"ann", 0x45d0_60c9_793f_7720),
            (b"user:1", 0x079f_7aca_4f88_9113),
            (b"token-1", 0x820b_80be_17d6_5517),
            (&bytes[..16], 0xd463_68a9_ff84_5e4d),
            (&bytes[..128], 0x39c6_8aaa_ce26_e67d),
            (&bytes[..240], 0x11ad_50fc_b281_0fe3),
            (&bytes, 0x409f_9718_3bf4_4c50),
            (long.as_bytes(), 0x78ba_bd59_6dd9_2fcc),
        ];
        for (item, hash) in rows {
            assert_eq!(xxh3_64_with_seed(item, ROUTING_SEED), hash, "{}", item.escape_ascii());
            for k in [1, 2, 64, MAX_PARTS] {
                assert_eq!(u64::from(parts(k).part_of(item)), hash % u64::from(k));
            }
        }
    }

    #[test]
    fn names_and_numbers_are_checked() {
        for k in (0..15).map(|power| 1 << power) {
            let keys: Vec<_> = parts(k).keys().collect();
            assert_eq!(keys.len(), k as usize);
            assert_eq!(keys[k as usize - 1], format!("name:{}", k - 1).into_bytes());
        }
        for k in [0, 3, 15, 16_383, 32_768, u32::MAX] {
            let error = Partitioned::new("name", k).unwrap_err();
            assert_eq!(error, format!("number of parts must be a power of two from 1 to 16384, got {k}"));
        }
        for name in ["", "a", "a:1", "{", "}", "}{", "{}", "{}{a}", "a{}b", "{a", "a}", "}a{"] {
            assert!(Partitioned::new(name, 4).is_ok(), "{name}");
        }
        for name in ["{a}", "x{a}y", "}{a}", "{{}}", "{{a}", "a{b}{c}"] {
            let error = Partitioned::new(name, 4).unwrap_err();
            assert_eq!(error, format!("name must be without a hash tag, got {name}"));
        }
    }

    /// The shares together hold each item of the list once, in the share of its part, and in order. Replies that do not
    /// fit them are rejected.
    #[test]
    fn replies_come_in_the_order_of_the_list() {
        let items: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        for k in [1, 4, MAX_PARTS] {
            let (all, split) = (parts(k), parts(k).split(&items));
            assert!(split.shares.is_sorted_by(|share, next| share.part < next.part));
            for share in &split.shares {
                assert_eq!(share.key, format!("name:{}", share.part).into_bytes());
                assert!(share.items.iter().all(|item| all.part_of(item) == share.part));
                assert!(share.places.is_sorted());
            }
            let replies = split.shares.iter().map(|share| share.items.clone()).collect();
            assert!(split.in_order(replies).unwrap().into_iter().eq(items.iter().map(String::as_bytes)));
        }
        let split = parts(4).split(&items);
        let replies = || -> Vec<Vec<usize>> { split.shares.iter().map(|share| share.places.clone()).collect() };
        let (mut lists, mut short, mut long) = (replies(), replies(), replies());
        lists.pop();
        short[2].pop();
        long[1].push(7);
        let said = |replies| split.in_order(replies).unwrap_err();
        assert_eq!(said(lists), "lists of replies: expected 4, got 3");
        let [of_second, of_third] = [1, 2].map(|share: usize| split.shares[share].items.len());
        assert_eq!(said(short), format!("replies of part 2: expected {of_third}, got {}", of_third - 1));
        assert_eq!(said(long), format!("replies of part 1: expected {of_second}, got {}", of_second + 1));
        assert!(parts(4).split(&[""; 0]).shares.is_empty());
    }

    #[test]
    fn capacities_and_numbers_of_parts_are_pinned() {
        for (capacity, k, expected) in [
            (1, 1, 1),
            (1, 1024, 1),
            (10, 4, 10),
            (1_000_000, 1, 1_000_000),
            (1_000_000, 16, 64_000),
            (1_000_000_000, 64, 15_648_718),
            (Partitioned::MAX_CAPACITY, 16_384, 549_755_813_888 + 4_448_732),
        ] {
            assert_eq!(parts(k).capacity_of_part(capacity).unwrap(), expected, "{capacity} over {k}");
        }
        for capacity in [0, Partitioned::MAX_CAPACITY + 1, u64::MAX] {
            assert!(parts(4).capacity_of_part(capacity).is_err());
        }
        for (bytes, nodes, expected) in [
            (0, 0, 1),
            (1, 1, 8),
            (0, 3, 32),
            (32 << 20, 0, 1),
            ((32 << 20) + 1, 0, 2),
            (1 << 40, 3, 16_384),
            (u64::MAX, u32::MAX, 16_384),
        ] {
            assert_eq!(Partitioned::suggested_parts(bytes, nodes), expected, "{bytes} on {nodes}");
        }
    }

    #[test]
    fn counts_and_variances_add_up() {
        assert_eq!(unite([]), (0, 0.0));
        assert_eq!(unite([(3, 0.0), (4, 0.0)]), (7, 0.0));
        assert_eq!(unite([(30, 3.0), (40, 4.0)]), (70, 5.0));
        assert_eq!(unite([(u64::MAX, 0.0), (1, 0.0)]).0, u64::MAX);
    }

    /// Pearson's chi-square has the mean `k - 1` and the variance `2*(k - 1)`. The bounds are four standard deviations
    /// either way, since a spread that is too even is not random either.
    #[test]
    fn items_spread_as_if_at_random() {
        type Shape = (&'static str, fn(u64) -> Vec<u8>);
        let shapes: [Shape; 4] = [
            ("words", |number| number.to_le_bytes().to_vec()),
            ("decimals", |number| number.to_string().into_bytes()),
            ("users", |number| format!("user:{number:012}").into_bytes()),
            ("long", |number| format!("{number:0300}").into_bytes()),
        ];
        for (what, item) in shapes {
            for k in [2, 64, 1024] {
                let (all, n) = (parts(k), 40_000);
                let mut loads = vec![0u32; k as usize];
                (0..n).for_each(|number| loads[all.part_of(item(number)) as usize] += 1);
                let mean = n as f64 / f64::from(k);
                let chi_square: f64 = loads.iter().map(|&load| (f64::from(load) - mean).powi(2) / mean).sum();
                let freedom = f64::from(k - 1);
                assert!((chi_square - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(), "{what}, {k}: {chi_square}");
                let room = all.capacity_of_part(n).unwrap();
                assert!(loads.iter().all(|&load| u64::from(load) <= room), "{what}, {k}: {loads:?}");
            }
        }
    }
}
