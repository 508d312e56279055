//! Items as an application would have them. They are all different, and the same in every run.

use crate::resp::Batch;

/// The first number of items that are never added, and so are absent from every filter.
pub const ABSENT: u64 = 1 << 40;

/// Number of items per call of the batch commands, as the goals require.
pub const PER_CALL: usize = 350;

/// Number of bits of an item's number.
const BITS: u32 = 48;

/// An item: `user:`, twelve digits, `@example.com`.
pub type Item = [u8; 29];

/// Item `number`, below 2^48.
pub fn item(number: u64) -> Item {
    let mut item = *b"user:0123456789ab@example.com";
    let spread = scramble(number);
    for (at, digit) in item[5..17].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(spread >> (BITS - 4 - 4 * at as u32)) as usize & 15];
    }
    item
}

/// A bijection on 48 bits: consecutive numbers give unrelated items. Each step is invertible: a product with an odd
/// factor, and a shift by half of the bits.
pub fn scramble(number: u64) -> u64 {
    const MASK: u64 = (1 << BITS) - 1;
    let mut x = number & MASK;
    for factor in [0x9E37_79B9_7F4B, 0xBF58_476D_1CE5, 0x94D0_49BB_1331] {
        x = x.wrapping_mul(factor) & MASK;
        x ^= x >> (BITS / 2);
    }
    x
}

/// The source of a command's items.
#[derive(Clone)]
pub enum Source {
    /// Consecutive numbers from this one on, which are new items.
    From(u64),
    /// Random numbers below `bound`.
    Below { bound: u64, drawn: u64 },
}

impl Source {
    /// Random numbers below `bound`, different ones for every `seed`.
    pub fn below(bound: u64, seed: u64) -> Source {
        Source::Below { bound, drawn: scramble(seed) }
    }

    /// The next item.
    pub fn next(&mut self) -> Item {
        match self {
            Source::From(number) => {
                *number += 1;
                item(*number - 1)
            }
            Source::Below { bound, drawn } => {
                *drawn = drawn.wrapping_add(1);
                item(scramble(*drawn) % *bound)
            }
        }
    }
}

/// `calls` requests of `items` items each, in batches of `pipelined`.
pub fn calls(head: &[&str], source: &mut Source, calls: usize, items: usize, pipelined: usize) -> Vec<Batch> {
    let mut batches = Vec::with_capacity(calls.div_ceil(pipelined));
    let mut left = calls;
    while left > 0 {
        let mut batch = Batch::default();
        for _ in 0..left.min(pipelined) {
            batch.push_items(head, (0..items).map(|_| source.next()));
        }
        left -= batch.requests();
        batches.push(batch);
    }
    batches
}
