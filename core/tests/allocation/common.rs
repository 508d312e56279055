//! Runs operations while one of their large allocations fails.

use std::fmt::Debug;

use rollcall_core::error::Error;

use crate::failing::with_failure;

/// Runs `operate` on a new value from `make` with its first large allocation failing, then its second, and so on. Each
/// failure must be returned as an error, and `same` checks that the value is unchanged. Returns the number of failures.
pub fn failures<T, R>(
    what: &str,
    make: impl Fn() -> T,
    operate: impl Fn(&mut T) -> Result<R, Error>,
    same: impl Fn(&T, &T) -> bool,
) -> u64 {
    for n in 1.. {
        let mut value = make();
        let (outcome, failed) = with_failure(n, || operate(&mut value).map(|_| ()));
        if !failed {
            assert_eq!(outcome, Ok(()), "{what}");
            return n - 1;
        }
        assert_out_of_memory(what, &outcome);
        assert!(same(&value, &make()), "{what}, allocation {n}: changed");
    }
    unreachable!()
}

pub fn assert_out_of_memory<R: Debug>(what: &str, outcome: &Result<R, Error>) {
    assert!(matches!(outcome, Err(Error::OutOfMemory { .. })), "{what}: {outcome:?}");
}

/// Like [`failures`], and panics if the operation has no large allocation.
pub fn fails_cleanly<T, R>(
    what: &str,
    make: impl Fn() -> T,
    operate: impl Fn(&mut T) -> Result<R, Error>,
    same: impl Fn(&T, &T) -> bool,
) {
    assert!(failures(what, make, operate, same) > 0, "{what}: no large allocation");
}

pub fn items(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|item| format!("more:{item}").into_bytes()).collect()
}

/// Adds the items with the first large allocation failing, then with the second, and so on. Items added before the
/// failure must be stored and reported; these are all of them if the failed allocation was only to save time. Returns
/// the number of failures.
pub fn add_all_failures<T>(
    empty: impl Fn() -> T,
    items: &[Vec<u8>],
    add_all: impl Fn(&mut T, &[Vec<u8>], &mut Vec<bool>) -> Result<(), Error>,
    same: impl Fn(&T, &T) -> bool,
) -> u64 {
    for n in 1.. {
        let (mut ours, mut reported) = (empty(), Vec::with_capacity(items.len()));
        let (outcome, failed) = with_failure(n, || add_all(&mut ours, items, &mut reported));
        if !failed {
            assert_eq!(outcome, Ok(()));
            return n - 1;
        }
        match reported.len() < items.len() {
            true => assert_out_of_memory("add_all", &outcome),
            false => assert_eq!(outcome, Ok(())),
        }
        let mut expected = empty();
        add_all(&mut expected, &items[..reported.len()], &mut Vec::new()).unwrap();
        assert!(same(&ours, &expected), "allocation {n}");
    }
    unreachable!()
}
