//! Items like those of an application: nearly all distinct, and the same in every run.

use rollcall_fuzz::random::Random;

/// Number of items in a list.
pub const LIST: usize = 350;

/// An item: `user:`, twelve digits, `@example.com`.
pub type Item = [u8; 29];

/// A command and its arguments.
pub type Call = Vec<Vec<u8>>;

/// An endless sequence of items. Sequences with different seeds share hardly any item.
pub struct Items(Random);

impl Items {
    pub fn new(seed: u64) -> Items {
        Items(Random::new(seed << 48))
    }
}

impl Iterator for Items {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let mut item = *b"user:0123456789ab@example.com";
        let number = self.0.number();
        for (at, digit) in item[5..17].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (4 * at)) as usize & 15];
        }
        Some(item)
    }
}

/// A command line, split at its spaces.
pub fn call(line: &str) -> Call {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// An item of the rows about lists in one argument: 32 bytes, as hashed tokens have.
pub fn wide(item: Item) -> [u8; 32] {
    let mut wide = [b'.'; 32];
    wide[..item.len()].copy_from_slice(&item);
    wide
}

/// `count` calls that begin with `head`, with `len` wide items each: in one argument (`WIDTH`) if they are `packed`.
pub fn wide_calls(head: &str, packed: bool, items: &mut Items, count: usize, len: usize) -> Vec<Call> {
    let mut items = items.map(wide);
    if !packed {
        return calls(head, &mut items, count, len);
    }
    let head = format!("{head} WIDTH 32 ITEMS");
    let one = |_| call(&head).into_iter().chain([items.by_ref().take(len).flatten().collect()]).collect();
    (0..count).map(one).collect()
}

/// `count` calls that begin with `head`, with `len` items each.
pub fn calls(head: &str, items: &mut impl Iterator<Item: AsRef<[u8]>>, count: usize, len: usize) -> Vec<Call> {
    let one = |_| call(head).into_iter().chain(items.by_ref().take(len).map(|item| item.as_ref().to_vec())).collect();
    (0..count).map(one).collect()
}
