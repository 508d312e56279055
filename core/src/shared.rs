//! Filters and counters with equal parameters share one copy of the parameters in memory.
//!
//! A server may hold millions of small filters and counters with the same parameters. Each has a pointer ([`Shared`])
//! of 8 bytes to parameters of about 100 bytes. A [`Pool`] finds an existing copy of equal contents.

use std::alloc::Layout;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashTable;

/// The largest number of entries in a [`Pool`]. Nothing stored depends on it.
const POOL_LEN: usize = 1024;

/// A pointer to contents that several owners may share and that never change.
pub(crate) type Shared<T> = Arc<T>;

/// The size and alignment of the contents' allocation; `None` if a [`Pool`] or another owner shares them.
pub(crate) fn own_layout<T>(shared: &Shared<T>) -> Option<Layout> {
    // `Arc` stores two counts before the contents.
    let counts = Layout::new::<[usize; 2]>();
    (Arc::strong_count(shared) == 1).then(|| counts.extend(Layout::new::<T>()).map_or(counts, |(both, _)| both))
}

/// A table with one shared copy of equal contents. A full table is emptied: owners keep their contents, but later
/// owners of equal contents share another copy.
pub(crate) struct Pool<T>(Mutex<HashTable<(u64, Shared<T>)>>);

impl<T> Pool<T> {
    pub(crate) const fn new() -> Self {
        Pool(Mutex::new(HashTable::new()))
    }

    /// The shared contents with this hash for which `is_it` is true. If there are none, `make` makes them.
    ///
    /// # Errors
    /// The error of `make`.
    pub(crate) fn get<E>(
        &self,
        hash: u64,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Shared<T>, E> {
        // The table of a poisoned lock is valid: only `is_it` may panic, before anything is changed.
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = table.find(hash, |(_, shared)| is_it(shared)) {
            return Ok(found.clone());
        }
        let made = Arc::new(make()?);
        if table.len() >= POOL_LEN {
            table.clear();
        }
        // If memory for a new entry is lacking, the contents are not shared.
        if table.try_reserve(1, |&(hash, _)| hash).is_ok() {
            table.insert_unique(hash, (hash, made.clone()), |&(hash, _)| hash);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pool: &Pool<u64>, number: u64) -> Shared<u64> {
        // Pairs of numbers have the same hash, so the pool has to compare contents.
        pool.get(number / 2, |&other| other == number, || Ok::<_, ()>(number)).unwrap()
    }

    #[test]
    fn equal_contents_are_held_once() {
        let pool = Pool::new();
        let held: Vec<_> = (0..100).map(|number| get(&pool, number)).collect();
        for (number, shared) in (0..).zip(&held) {
            assert_eq!(**shared, number);
            assert!(Arc::ptr_eq(shared, &get(&pool, number)) && Arc::ptr_eq(shared, &shared.clone()));
            assert_eq!(own_layout(shared), None);
        }
        assert!(!Arc::ptr_eq(&held[0], &held[1]));
    }

    #[test]
    fn errors_are_returned_and_not_pooled() {
        let pool = Pool::<u64>::new();
        assert_eq!(pool.get(0, |_| true, || Err("no")).unwrap_err(), "no");
        assert_eq!(*get(&pool, 1), 1);
    }

    #[test]
    fn a_full_pool_begins_anew() {
        let (pool, len) = (Pool::new(), POOL_LEN as u64);
        let held: Vec<_> = (0..len).map(|number| get(&pool, number)).collect();
        assert_eq!(pool.0.lock().unwrap().len(), POOL_LEN);
        assert!((0..).zip(&held).all(|(number, shared)| Arc::ptr_eq(shared, &get(&pool, number))));
        let beyond = get(&pool, len);
        assert!(Arc::ptr_eq(&beyond, &get(&pool, len)) && pool.0.lock().unwrap().len() == 1);
        // After the pool was emptied, the contents have one owner.
        assert_eq!(own_layout(&held[7]), Some(Layout::from_size_align(24, 8).unwrap()));
        let again = get(&pool, 7);
        assert!(*again == 7 && !Arc::ptr_eq(&again, &held[7]) && own_layout(&again).is_none());
    }

    #[test]
    fn threads_share_a_pool() {
        let pool = Pool::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|number| assert_eq!(*get(&pool, number % 10), number % 10)));
            }
        });
        assert_eq!(pool.0.lock().unwrap().len(), 10);
    }
}
