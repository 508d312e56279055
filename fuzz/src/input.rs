//! Turns the bytes of a fuzz input into choices and numbers. After the last byte every choice is 0.

use std::sync::LazyLock;

/// Number of different items that an input can choose from.
pub const ITEMS: usize = 1024;

/// All items, each with a text of its own. Item 0 is empty, every 211th item is long, and one in seven is a UUID or
/// nearly one. The others are numbers with and without a prefix, hexadecimal digits, and texts that are nearly of
/// these kinds.
static POOL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let item = |number: usize| match number {
        0 => Vec::new(),
        number if number % 211 == 0 => [number as u8, (number >> 8) as u8].repeat(number),
        number if number % 7 == 3 => {
            let uuid = format!("{number:08x}-{number:04x}-4abc-8def-{number:012x}");
            match number % 4 {
                0 => uuid.to_uppercase().into_bytes(),
                1 => uuid.replacen('a', "A", 1).into_bytes(),
                _ => uuid.into_bytes(),
            }
        }
        number if number % 7 == 5 => number.to_string().into_bytes(),
        number if number % 7 == 6 => format!("user:{number}").into_bytes(),
        // The first digit is a letter, so that none is a decimal number.
        number => format!("{:03x}", number | 0xc00).repeat(1 + number % 5).into_bytes(),
    };
    (0..ITEMS).map(item).collect()
});

/// The bytes that decide what a target does, read from front to back.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Begins at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    /// Whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 after the last byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// A number below `choices`.
    pub fn choice(&mut self, choices: u8) -> u8 {
        self.byte() % choices
    }

    /// True or false, from one byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number from the next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number from the next eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// A number that is mostly small, sometimes near a power of two, and sometimes any.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..128 => small.into(),
            128..176 => self.u16().into(),
            255 => self.u64(),
            large => (1u64 << (large - 176).min(63)).wrapping_add_signed(i64::from(self.byte() as i8)),
        }
    }

    /// A number from 0 to `most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let number = self.number();
        most.checked_add(1).map_or(number, |end| number % end)
    }

    /// An error rate: mostly a usual one, sometimes a power of two, and sometimes any double.
    pub fn rate(&mut self) -> f64 {
        const ASKED: [f64; 12] = [0.01, 0.001, 0.1, 0.05, 0.25, 0.0001, 0.5, 0.02, 1e-6, 0.9, 1e-12, 0.3];
        match self.byte() {
            asked @ 0..192 => ASKED[usize::from(asked) % ASKED.len()],
            power @ 192..240 => 2f64.powi(-i32::from(power - 191)),
            _ => f64::from_bits(self.u64()),
        }
    }

    /// The next `len` bytes, or fewer at the end of the input.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// The number of an item.
    pub fn item(&mut self) -> usize {
        usize::from(self.u16()) % ITEMS
    }

    /// The numbers of consecutive items.
    pub fn items(&mut self) -> Vec<usize> {
        let (first, len) = (self.item(), self.byte());
        // One list in sixteen is long, and one has each item twice.
        let len = usize::from(len) * if len % 16 == 3 { 4 } else { 1 };
        let step = if len % 16 == 5 { 2 } else { 1 };
        (0..len).map(|at| (first + at / step) % ITEMS).collect()
    }
}

/// The item with this number.
pub fn item(number: usize) -> &'static [u8] {
    &POOL[number]
}

/// The items with these numbers.
pub fn items_of(numbers: &[usize]) -> impl ExactSizeIterator<Item = &'static [u8]> + Clone + '_ {
    numbers.iter().map(|&number| item(number))
}
