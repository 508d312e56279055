//! Shared contents: equal contents of many values are in memory only once.
//!
//! Millions of small values are made with the same parameters. A value holds a [`Shared`] of the parameters and of the
//! numbers derived from them: 8 bytes instead of a hundred. A [`Pool`] finds the contents that exist already.

use std::alloc::Layout;
use std::fmt;
use std::mem::forget;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashTable;

/// The largest number of contents that a [`Pool`] takes. It bounds the memory of the pool, since contents stay in it.
/// Free to change: nothing stored depends on it.
const POOL_LEN: usize = 4096;

/// Contents that other values may hold too. They never change.
///
/// Contents of a [`Pool`] stay in memory, so nobody has to know when the last value drops them. A value does not count
/// down then: this atomic operation takes longer than all else that the core does to free a small filter. The count of
/// such contents only grows, and never reaches its limit of 2^63.
pub(crate) struct Shared<T>(
    /// `None` only while it is dropped.
    Option<Arc<Contents<T>>>,
);

struct Contents<T> {
    is_pooled: bool,
    contents: T,
}

impl<T> Shared<T> {
    fn new(contents: T, is_pooled: bool) -> Self {
        Shared(Some(Arc::new(Contents { is_pooled, contents })))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(held) => &held.contents,
            None => unreachable!("the contents are given up only when they are dropped"),
        }
    }
}

impl<T> Drop for Shared<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.as_ref().is_some_and(|held| held.is_pooled) {
            forget(self.0.take());
        }
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The layout of the allocation of the contents; `None` if a [`Pool`] or another value holds them too.
pub(crate) fn own_layout<T>(shared: &Shared<T>) -> Option<Layout> {
    let held = shared.0.as_ref().filter(|held| !held.is_pooled && Arc::strong_count(held) == 1)?;
    // The two counts that `Arc` keeps in front of the contents.
    let counts = Layout::new::<[usize; 2]>();
    Some(counts.extend(Layout::for_value(&**held)).map_or(counts, |(both, _)| both))
}

/// A pool of shared contents, a hash table in which equal contents are found.
pub(crate) struct Pool<T>(Mutex<HashTable<(u64, Shared<T>)>>);

impl<T> Pool<T> {
    /// An empty pool; allocates nothing.
    pub(crate) const fn new() -> Self {
        Pool(Mutex::new(HashTable::new()))
    }

    /// Returns the contents with this hash that `is_it` recognises, or else new contents from `make`. A full pool takes
    /// no new contents: they are not shared.
    ///
    /// # Errors
    /// The error of `make`.
    pub(crate) fn get<E>(
        &self,
        hash: u64,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Shared<T>, E> {
        // While the lock is held, nothing panics except `is_it`, before anything is changed.
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = table.find(hash, |(_, shared)| is_it(shared)) {
            return Ok(found.clone());
        }
        let contents = make()?;
        // Without memory for a place in the table, the contents are not shared either.
        let is_pooled = table.len() < POOL_LEN && table.try_reserve(1, |&(hash, _)| hash).is_ok();
        let made = Shared::new(contents, is_pooled);
        if is_pooled {
            table.insert_unique(hash, (hash, made.clone()), |&(hash, _)| hash);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pool: &Pool<u64>, number: u64) -> Shared<u64> {
        // One hash for two numbers each, so that contents decide.
        pool.get(number / 2, |&other| other == number, || Ok::<_, ()>(number)).unwrap()
    }

    fn is_same(one: &Shared<u64>, other: &Shared<u64>) -> bool {
        std::ptr::eq(&**one, &**other)
    }

    #[test]
    fn equal_contents_are_held_once() {
        let pool = Pool::new();
        let held: Vec<_> = (0..100).map(|number| get(&pool, number)).collect();
        for (number, shared) in (0..).zip(&held) {
            assert_eq!(**shared, number);
            assert!(is_same(shared, &get(&pool, number)) && is_same(shared, &shared.clone()));
            assert_eq!(own_layout(shared), None);
        }
        assert!(!is_same(&held[0], &held[1]));
    }

    #[test]
    fn errors_are_passed_on_and_leave_nothing() {
        let pool = Pool::<u64>::new();
        assert_eq!(pool.get(0, |_| true, || Err("no")).unwrap_err(), "no");
        assert_eq!(*get(&pool, 1), 1);
    }

    #[test]
    fn a_full_pool_shares_what_it_has_and_takes_no_more() {
        let (pool, len) = (Pool::new(), POOL_LEN as u64);
        let held: Vec<_> = (0..len).map(|number| get(&pool, number)).collect();
        let beyond = get(&pool, len);
        assert!(*beyond == len && !is_same(&beyond, &get(&pool, len)) && is_same(&held[7], &get(&pool, 7)));
        assert_eq!(own_layout(&beyond), Some(Layout::from_size_align(32, 8).unwrap()));
        let copy = beyond.clone();
        assert!(is_same(&copy, &beyond) && own_layout(&beyond).is_none());
        drop(copy);
        assert!(own_layout(&beyond).is_some());
        assert_eq!(pool.0.lock().unwrap().len(), POOL_LEN);
    }

    /// The pool has what no value holds any more, and the next value holds it again.
    #[test]
    fn contents_outlive_the_values_that_held_them() {
        let pool = Pool::new();
        let before = Arc::downgrade(get(&pool, 5).0.as_ref().unwrap());
        assert!(Arc::ptr_eq(&before.upgrade().unwrap(), get(&pool, 5).0.as_ref().unwrap()));
        let beyond = Shared::new(6, false);
        let weak = Arc::downgrade(beyond.0.as_ref().unwrap());
        drop(beyond.clone());
        assert!(weak.upgrade().is_some());
        drop(beyond);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn threads_share() {
        let pool = Pool::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|number| assert_eq!(*get(&pool, number % 10), number % 10)));
            }
        });
        assert_eq!(pool.0.lock().unwrap().len(), 10);
    }
}
