//! Items as an application would have them, all different, the same in every run.

use std::io::Write;

use crate::resp::Batch;

/// From here on numbers are never added anywhere: items that no filter has.
pub const ABSENT: u64 = 1 << 40;

/// Items a call of the batch commands, as the goals say.
pub const PER_CALL: usize = 350;

/// Item `number`: an address of 33 bytes.
pub fn item(number: u64) -> [u8; 33] {
    let mut item = *b"user:0123456789abcdef@example.com";
    let _ = (&mut item[5..21]).write(&hex(scramble(number)));
    item
}

fn hex(value: u64) -> [u8; 16] {
    std::array::from_fn(|i| b"0123456789abcdef"[(value >> (60 - 4 * i)) as usize & 15])
}

/// A bijection (the finaliser of SplitMix64): numbers in a row give items that share nothing.
pub fn scramble(number: u64) -> u64 {
    let x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Where the items of a command come from.
#[derive(Clone)]
pub enum Source {
    /// In a row from this number on: new ones, as long as nobody used them.
    From(u64),
    /// At random among the numbers below this one.
    Below { bound: u64, drawn: u64 },
}

impl Source {
    /// At random below `bound`, other ones for every `seed`.
    pub fn below(bound: u64, seed: u64) -> Source {
        Source::Below { bound, drawn: scramble(seed) }
    }

    /// The next item.
    pub fn next(&mut self) -> [u8; 33] {
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
