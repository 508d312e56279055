//! Interning: values with equal parameters share one copy of them in memory.
//!
//! Millions of small values are made with the same parameters. Each value has a pointer ([`Shared`]) to the parameters
//! and the numbers derived from them, which takes 8 bytes instead of about 100. A [`Pool`] finds the copy: it returns a
//! pointer to equal contents if they exist already.

use std::alloc::Layout;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashTable;

/// The largest number of contents that a [`Pool`] keeps. It limits the memory of the pool, and the time of a sweep for
/// unused contents. A full pool is swept only at every `POOL_LEN`-th call that does not find its contents. Free to
/// change: nothing stored depends on it.
const POOL_LEN: usize = 1024;

/// A pointer to contents that several values may share. The contents never change.
pub(crate) type Shared<T> = Arc<T>;

/// The layout of the allocation of the contents; `None` if a [`Pool`] or another value shares them.
pub(crate) fn own_layout<T>(shared: &Shared<T>) -> Option<Layout> {
    // `Arc` keeps two counts in front of the contents.
    let counts = Layout::new::<[usize; 2]>();
    (Arc::strong_count(shared) == 1).then(|| counts.extend(Layout::new::<T>()).map_or(counts, |(both, _)| both))
}

/// Interns contents: a hash table that has one shared copy of equal contents.
pub(crate) struct Pool<T>(Mutex<Pooled<T>>);

struct Pooled<T> {
    table: HashTable<(u64, Shared<T>)>,
    /// How many contents were not added because the table was full, since the last sweep for unused contents.
    turned_away: usize,
}

impl<T> Pool<T> {
    /// An empty pool; allocates nothing.
    pub(crate) const fn new() -> Self {
        Pool(Mutex::new(Pooled { table: HashTable::new(), turned_away: 0 }))
    }

    /// Interns contents: looks in the pool for contents with this hash for which `is_it` returns true, and returns a
    /// pointer to them. If there are none, adds and returns the contents that `make` returns. A full pool does not add
    /// them.
    ///
    /// # Errors
    /// The error of `make`.
    pub(crate) fn get<E>(
        &self,
        hash: u64,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Shared<T>, E> {
        // While the lock is held, only `is_it` may panic, and it is called before anything is changed.
        let mut pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = pooled.table.find(hash, |(_, shared)| is_it(shared)) {
            return Ok(found.clone());
        }
        let made = Arc::new(make()?);
        pooled.keep(hash, &made);
        Ok(made)
    }
}

impl<T> Pooled<T> {
    fn keep(&mut self, hash: u64, made: &Shared<T>) {
        if self.table.len() >= POOL_LEN {
            // A sweep removes contents that no value uses. It looks at all contents, so only one in `POOL_LEN` calls
            // that find the table full makes a sweep.
            self.turned_away += 1;
            if self.turned_away < POOL_LEN {
                return;
            }
            self.turned_away = 0;
            self.table.retain(|(_, shared)| Arc::strong_count(shared) > 1);
        }
        // If memory for a place in the table is lacking, the contents are not shared.
        if self.table.len() < POOL_LEN && self.table.try_reserve(1, |&(hash, _)| hash).is_ok() {
            self.table.insert_unique(hash, (hash, made.clone()), |&(hash, _)| hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(pool: &Pool<u64>, number: u64) -> Shared<u64> {
        // Two numbers always have the same hash, so the pool has to compare contents.
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
    fn errors_are_passed_on_and_leave_nothing() {
        let pool = Pool::<u64>::new();
        assert_eq!(pool.get(0, |_| true, || Err("no")).unwrap_err(), "no");
        assert_eq!(*get(&pool, 1), 1);
    }

    #[test]
    fn a_full_pool_shares_what_it_has_and_is_swept_at_times() {
        let (pool, len) = (Pool::new(), POOL_LEN as u64);
        let held: Vec<_> = (0..len).map(|number| get(&pool, number)).collect();
        let beyond = get(&pool, len);
        assert!(!Arc::ptr_eq(&beyond, &get(&pool, len)) && Arc::ptr_eq(&held[7], &get(&pool, 7)));
        assert_eq!(own_layout(&beyond), Some(Layout::from_size_align(24, 8).unwrap()));
        drop(held);
        // No content is in use now. Within `len` calls there is a sweep, which removes them.
        let kept: Vec<_> = (0..len).map(|number| get(&pool, len + number)).collect();
        assert!(Arc::ptr_eq(kept.last().unwrap(), &get(&pool, 2 * len - 1)));
        // The pool holds the content that the sweep made room for, and the two that came after it.
        assert_eq!(pool.0.lock().unwrap().table.len(), 3);
    }

    #[test]
    fn what_is_in_use_stays_in_a_full_pool() {
        let (pool, len) = (Pool::new(), POOL_LEN as u64);
        let mut held: Vec<_> = (0..len).map(|number| get(&pool, number)).collect();
        let _beyond: Vec<_> = (len..2 * len).map(|number| get(&pool, number)).collect();
        // The pool was swept but had no unused contents. It keeps no more than its limit.
        assert_eq!(pool.0.lock().unwrap().table.len(), POOL_LEN);
        assert!((0..).zip(&held).all(|(number, shared)| Arc::ptr_eq(shared, &get(&pool, number))));
        // One unused content makes room for one new content.
        held.pop();
        let _more: Vec<_> = (2 * len..3 * len - 1).map(|number| get(&pool, number)).collect();
        assert!(!Arc::ptr_eq(&get(&pool, 4 * len), &get(&pool, 5 * len)));
        assert_eq!(pool.0.lock().unwrap().table.len(), POOL_LEN);
        assert!((0..).zip(&held).all(|(number, shared)| Arc::ptr_eq(shared, &get(&pool, number))));
    }

    #[test]
    fn threads_share() {
        let pool = Pool::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|number| assert_eq!(*get(&pool, number % 10), number % 10)));
            }
        });
        assert_eq!(pool.0.lock().unwrap().table.len(), 10);
    }
}
