//! `Clone` and `FromIterator` for counters. Errors become panics here, since these traits cannot report errors.

use super::counter::Counter;
use super::params::Params;
use crate::window::Time;

/// Clones like [`Counter::try_clone`].
///
/// ```
/// # use rollcall_core::counting::Counter;
/// let counter: Counter = ["ann", "ben"].into_iter().collect();
/// assert_eq!(counter.clone().count(), 2);
/// ```
///
/// # Panics
/// If memory cannot be allocated.
impl Clone for Counter {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Collects items in a counter with [`Params::default`].
///
/// ```
/// use rollcall_core::counting::Counter;
///
/// let counter: Counter = ["ann", "ben", "ann"].into_iter().collect();
/// assert_eq!(counter.count(), 2);
/// ```
///
/// # Panics
/// If memory cannot be allocated.
impl<T: AsRef<[u8]>> FromIterator<T> for Counter {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut counter = Counter::new(Params::default()).unwrap_or_else(|error| panic!("{error}"));
        counter.live(Time::Reached).extend(items);
        counter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::BLOCK;
    use crate::size_limit::Unlimited;

    #[test]
    fn members_of_any_type_come_in_blocks_of_any_length() {
        for len in [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let mut counter: Counter = (0..len as u32).map(u32::to_le_bytes).collect();
            let mut expected = Counter::new(Params::default()).unwrap();
            (0..len as u32).for_each(|member| drop(expected.add(member.to_le_bytes(), &Unlimited)));
            assert_eq!(counter.estimate(), expected.estimate());
            let copy = counter.clone();
            counter.live(Time::Reached).extend(["ann", "ben"]);
            counter.live(Time::Reached).extend([vec![b'z'; 9]]);
            assert!(counter.estimate() > copy.estimate());
            assert_eq!(copy.estimate(), expected.estimate());
        }
    }
}
