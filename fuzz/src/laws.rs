//! Laws that hold for every value that could be made or loaded.

use rollcall_core::persist;
use rollcall_core::unstable::Mover;
use rollcall_core::unstable::persist::{Partial, dump_partial, push_chunk, scandump};

use crate::family::Family;
use crate::limit::Limit;
use crate::values::{load_ours, payload_of, rdb_of, rdb_of_loading};

/// Size limit for loading a value again, in bytes. Every value that is checked is smaller.
const LOADED_BYTES: u64 = 64 << 20;

/// Checks all laws of a complete value. With the feature `one-law` it checks only the law that `cut` selects, so that a
/// fuzzer tries several times as many inputs. `cut` also decides where the payload is divided when it is loaded in two
/// parts.
///
/// # Panics
/// If a law is broken.
pub fn check<T: Family>(value: &T, cut: u64) {
    let laws: [&dyn Fn(); 5] = [
        &|| value.check_answers(),
        &|| assert!(value.copy().is_same(value)),
        &|| check_stored(value),
        &|| check_cut(value, cut),
        &|| check_moved(value),
    ];
    if cfg!(feature = "one-law") {
        laws[(cut % laws.len() as u64) as usize]();
    } else {
        laws.iter().for_each(|law| law());
    }
}

/// Saves the value and loads it again: as an RDB value if `way` is even, else as chunks.
///
/// # Panics
/// If the value does not load, or if the loaded value differs.
pub fn reloaded<T: Family>(value: &T, way: u8) -> T {
    let limit = Limit::of(LOADED_BYTES);
    let loaded =
        if way & 1 == 0 { value.load(&value.save(), &limit) } else { persist::load(persist::dump(value), &limit) };
    let loaded = loaded.expect("what is saved loads");
    assert!(loaded.is_same(value));
    loaded
}

/// Saves and loads the value in every format, and checks that the loaded value is equal.
fn check_stored<T: Family>(value: &T) {
    let limit = Limit::of(LOADED_BYTES);
    let is_same = |copy: T| copy.is_same(value);
    assert!(is_same(persist::load(persist::dump(value), &limit).expect("a dump loads")));
    let mut at = 0;
    let chunks = std::iter::from_fn(|| {
        let (next, chunk) = scandump(value, at).expect("a dump goes on");
        at = next;
        (next != 0).then_some((next, chunk))
    });
    assert!(is_same(persist::load(chunks, &limit).expect("what SCANDUMP says loads")));
    assert!(is_same(value.load(&value.save(), &limit).expect("what is saved loads")));
    // Any filter can also be stored as Rollcall's own data type.
    assert!(is_same(
        load_ours::<T::Partial>(&rdb_of(value), &limit).and_then(|all| all.finish()).expect("so does ours")
    ));
}

/// Checks that a value can be loaded in two parts, and that it can be saved and loaded in between.
fn check_cut<T: Family>(value: &T, cut: u64) {
    let payload = payload_of(value);
    if payload.is_empty() {
        return;
    }
    let mut loading = T::Partial::begin(&value.header(), &Limit::of(LOADED_BYTES)).expect("a header of ours");
    let (first, rest) = payload.split_at((cut % payload.len() as u64) as usize);
    loading.push(first).expect("a part of the payload");
    check_loading(&loading);
    assert!(loading.push(&[rest, b"more"].concat()).is_err());
    assert!(loading.try_clone().expect("memory").finish().is_err());
    loading.push(rest).expect("the rest");
    check_loading(&loading);
    assert!(loading.finish().expect("a whole payload").is_same(value));
}

/// Checks the laws of a partially loaded value: it can be copied, and saved and loaded in every format.
///
/// # Panics
/// If a law is broken.
pub fn check_loading<L: Partial>(loading: &L) {
    if loading.total_bytes() == 0 {
        // The header already contains the whole payload.
        return;
    }
    let limit = Limit::of(LOADED_BYTES);
    let stored: L = load_ours(&rdb_of_loading(loading), &limit).expect("what is saved loads");
    let mut again = L::begin(loading.header(), &limit).expect("its own header");
    for (next, chunk) in dump_partial(loading).skip(1) {
        push_chunk(&mut again, next, &chunk).expect("its own chunk");
    }
    let copy = loading.try_clone().expect("memory");
    for other in [&stored, &again, &copy] {
        assert!(is_same_loading(loading, other));
    }
    let received: u64 = loading.received().pieces(usize::MAX).map(|(_, piece)| piece.len() as u64).sum();
    assert_eq!((received, loading.received().len()), (loading.received_bytes(), received));
    assert!(loading.next_memory(100).len() as u64 <= (loading.total_bytes() - received).min(100));
}

/// Whether both partially loaded values have received the same bytes.
pub fn is_same_loading<L: Partial>(one: &L, other: &L) -> bool {
    (one.received_bytes(), one.total_bytes()) == (other.received_bytes(), other.total_bytes())
        && dump_partial(one).eq(dump_partial(other))
}

/// Copies each buffer to a new allocation, as the defragmentation of a server does.
struct Elsewhere;

impl Mover for Elsewhere {
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        let mut moved = Vec::with_capacity(buffer.len());
        moved.extend(buffer);
        moved.into_boxed_slice()
    }
}

/// Checks that the value stays the same when all its buffers are moved.
fn check_moved<T: Family>(value: &T) {
    let mut moved = value.copy();
    (0..).take_while(|&index| moved.relocate(index, &Elsewhere)).for_each(drop);
    assert!(moved.is_same(value));
}
