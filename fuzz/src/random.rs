//! The pseudo-random generator of all tests, benches and examples, and changes of inputs. It has a seed, so that a run
//! can be repeated.

/// SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Debug, Clone)]
pub struct Random(u64);

/// Bytes that often change the meaning of a length, a type or a sign.
const REVEALING: [u8; 10] = [0, 1, 2, 16, 127, 128, 200, 240, 254, 255];

impl Random {
    /// The sequence of numbers that `seed` determines.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number, uniform in 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, uniform.
    ///
    /// # Panics
    /// If `end` is not positive.
    pub fn below<N: TryInto<u64> + TryFrom<u64>>(&mut self, end: N) -> N {
        let end = end.try_into().ok().expect("a positive end");
        N::try_from(self.number() % end).ok().expect("a number below the end")
    }

    /// True with a probability of 1 / `cases`.
    pub fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If `choices` is empty.
    pub fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// One of the texts between the bars in `texts`.
    pub fn of_texts(&mut self, texts: &str) -> Vec<u8> {
        self.of(&texts.split('|').collect::<Vec<_>>()).as_bytes().to_vec()
    }

    /// A number below `end` that is mostly small: each power of two is as likely as the next one.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn up_to(&mut self, end: usize) -> usize {
        let bits = self.below(usize::BITS as usize - end.leading_zeros() as usize + 1);
        self.below(1 << bits.min(usize::BITS as usize - 1)) % end
    }

    /// The input after one to eight changes, at most `max_len` bytes long. Some changes insert parts of `other`.
    pub fn changed(&mut self, input: &[u8], other: &[u8], max_len: usize) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.up_to(8) {
            self.change(&mut bytes, other);
        }
        bytes.truncate(max_len);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + self.up_to(32)).min(bytes.len());
        match self.below(9) {
            0 => self.set(bytes, at, |byte, random| byte ^ 1 << random.below(8)),
            1 => self.set(bytes, at, |_, random| random.number() as u8),
            2 => self.set(bytes, at, |_, random| *random.of(&REVEALING)),
            3 => self.set(bytes, at, |byte, random| byte.wrapping_add_signed(random.below(9) as i8 - 4)),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let new: Vec<u8> = (0..=self.up_to(16)).map(|_| self.number() as u8).collect();
                bytes.splice(at..at, new);
            }
            6 => {
                let copied = bytes[at..end].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copied);
            }
            // Appends the end of the other input.
            7 => {
                let from = self.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => bytes.truncate(at),
        }
    }

    fn set(&mut self, bytes: &mut [u8], at: usize, new: impl FnOnce(u8, &mut Self) -> u8) {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = new(*byte, self);
        }
    }
}
