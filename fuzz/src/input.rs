//! An input: choices and numbers out of bytes. Once the bytes have ended, all choices are 0.

use std::sync::LazyLock;

/// How many items there are to choose from.
pub const ITEMS: usize = 1024;

/// Item number 0 is empty, and some are long.
static POOL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let item = |number: usize| match number {
        0 => Vec::new(),
        number if number % 211 == 0 => [number as u8, (number >> 8) as u8].repeat(number),
        number => format!("{number:03x}").repeat(1 + number % 5).into_bytes(),
    };
    (0..ITEMS).map(item).collect()
});

/// Bytes that decide what a target does.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// From its first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// One of `choices`, at most 256.
    pub fn choice(&mut self, choices: u8) -> u8 {
        self.byte() % choices
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// A number: mostly small, else around a power of two, else any.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..128 => small.into(),
            128..176 => self.u16().into(),
            255 => self.u64(),
            large => (1u64 << (large - 176).min(63)).wrapping_add_signed(i64::from(self.byte() as i8)),
        }
    }

    /// A number of at most so many.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let number = self.number();
        most.checked_add(1).map_or(number, |end| number % end)
    }

    /// A rate: mostly one that is asked for, else a power of two, else any double.
    pub fn rate(&mut self) -> f64 {
        const ASKED: [f64; 12] = [0.01, 0.001, 0.1, 0.05, 0.25, 0.0001, 0.5, 0.02, 1e-6, 0.9, 1e-12, 0.3];
        match self.byte() {
            asked @ 0..192 => ASKED[usize::from(asked) % ASKED.len()],
            power @ 192..240 => 2f64.powi(-i32::from(power - 191)),
            _ => f64::from_bits(self.u64()),
        }
    }

    /// So many bytes, or those that are left.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// A number of an item.
    pub fn item(&mut self) -> usize {
        usize::from(self.u16()) % ITEMS
    }

    /// Numbers of items that follow each other.
    pub fn items(&mut self) -> Vec<usize> {
        let (first, len) = (self.item(), self.byte());
        // One list in sixteen is a long one, and one has each item twice.
        let len = usize::from(len) * if len % 16 == 3 { 4 } else { 1 };
        let step = if len % 16 == 5 { 2 } else { 1 };
        (0..len).map(|at| (first + at / step) % ITEMS).collect()
    }
}

/// The item of a number.
pub fn item(number: usize) -> &'static [u8] {
    &POOL[number]
}

/// The items of these numbers.
pub fn items_of(numbers: &[usize]) -> impl ExactSizeIterator<Item = &'static [u8]> + Clone + '_ {
    numbers.iter().map(|&number| item(number))
}
