//! Runs operations while one of their large allocations fails.

use std::fmt::Debug;

use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::unstable::persist::{Partial, push_chunk, rdb, scandump};

use crate::failing::with_failure;
use rollcall_fuzz::fields::{Field, Fields};
use rollcall_fuzz::values::{dump_of, same_dump};

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

/// Like [`fails_cleanly`], for an operation that only reads.
pub fn reading_fails_cleanly<R>(what: &str, read: impl Fn() -> Result<R, Error>) {
    fails_cleanly(what, || (), |()| read(), |(), ()| true);
}
pub fn clone_of(filter: &BloomFilter) -> BloomFilter {
    filter.try_clone().unwrap()
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
/// Loads a dump step by step, with every large allocation of each step failing once.
pub fn assert_dumps_load_or_fail<T: Value>(value: &T) {
    let dump = dump_of(value);
    reading_fails_cleanly("load", || {
        persist::load::<T, _>(dump.iter().map(|(next, chunk)| (*next, chunk)), &Unlimited)
    });
    // If a push fails, it has taken no bytes, and succeeds when it is repeated.
    let mut loading = T::Partial::begin(&dump[0].1, &Unlimited).unwrap();
    for (next, chunk) in &dump[1..] {
        for n in 1.. {
            let received = loading.received_bytes();
            let (outcome, failed) = with_failure(n, || push_chunk(&mut loading, *next, chunk));
            if !failed {
                assert_eq!(outcome, Ok(()));
                break;
            }
            assert_out_of_memory("push", &outcome);
            assert_eq!((loading.received_bytes(), loading.received().len()), (received, received));
        }
    }
    let (finished, _) = with_failure(1, || loading.finish());
    assert!(same_dump(&finished.unwrap(), value));
}

pub fn assert_scandump_fails_or_gives<T: Value>(value: &T) {
    let dump = dump_of(value);
    let (mut iterator, _) = scandump(value, 0).unwrap();
    while iterator != 0 {
        let (expected, _) = scandump(value, iterator).unwrap();
        for n in 1.. {
            let (outcome, failed) = with_failure(n, || scandump(value, iterator).map(|(next, _)| next));
            if !failed {
                assert_eq!(outcome, Ok(expected));
                break;
            }
            assert_out_of_memory("scandump", &outcome);
        }
        iterator = expected;
    }
    assert!(dump.len() > 1);
}

pub fn assert_rdb_loads_or_fails<L: Partial + Debug>(fields: &[Field]) {
    reading_fails_cleanly("RDB", || rdb::load::<L>(&mut Fields(fields), &Unlimited));
}
