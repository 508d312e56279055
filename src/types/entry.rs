//! A value in the server's keyspace. It is a [`Block`] that the server holds as a raw pointer, and that the module takes
//! back to free it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use prefetch_index::prefetch_index;
use rollcall_core::bloom::BloomFilter;
use rollcall_core::error::Error;
use rollcall_core::unstable::bloom::{Line, LineBuffer};
use rollcall_core::unstable::persist::{self, Loading};

use super::family::{Family, State, serves_classic};
use crate::command_error::CommandError;
use crate::config;
use crate::server::alloc;
use crate::server::ffi::{Key, OtherType};

/// The bytes that the server allocates around a module's value, and that the module has to include in `MEMORY USAGE`:
/// 16 bytes for the server's object, and 16 for the pair of type and pointer.
const SERVER_OBJECT_BYTES: usize = 32;

/// A value as the server's keyspace holds it. Its data type follows from its state, see [`Family::data_type`]. A change
/// in place must not change the data type. The [`totals`](super::totals) include the value until it is dropped.
pub struct KeyEntry<T: Family> {
    pub state: State<T>,
}

impl<T: Family> KeyEntry<T> {
    fn visit_heap(&self, visit: &mut dyn FnMut(Layout)) {
        match &self.state {
            State::Ready(value) => value.heap_layouts(visit),
            State::Loading(loading) => {
                visit(Layout::new::<T::Loading>());
                loading.heap_layouts(visit);
            }
        }
    }

    /// Returns the bytes that the allocator reserved for this value and for the server's object around it.
    pub fn memory_bytes(&self) -> usize {
        let mut bytes = SERVER_OBJECT_BYTES + alloc::usable_layout_size(Block::<T>::layout(self.num_borrowed()));
        self.visit_heap(&mut |layout| bytes += alloc::usable_layout_size(layout));
        bytes
    }

    /// Returns an approximation of [`Self::memory_bytes`]. Does not visit each buffer of a complete value, so it is
    /// fast.
    pub fn num_bytes(&self) -> usize {
        match &self.state {
            State::Ready(value) => value.num_bytes() as usize,
            State::Loading(_) => self.memory_bytes(),
        }
    }

    /// Appends the next dump chunk to a partially loaded value. Does nothing to a complete value.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the chunk is damaged or out of order; the value is then unchanged.
    pub fn push_chunk(&mut self, iterator: u64, data: &[u8]) -> Result<(), Error> {
        let before = self.state.share();
        let State::Loading(loading) = &mut self.state else { return Ok(()) };
        let pushed = persist::push_chunk(&mut **loading, iterator, data);
        before.becomes(&self.state.share());
        pushed
    }

    pub fn try_clone(&self) -> Result<Block<T>, Error> {
        Ok(Block::new(match &self.state {
            State::Ready(value) => State::Ready(value.try_clone()?),
            State::Loading(loading) => State::Loading(Box::new(loading.try_clone()?)),
        }))
    }

    fn lines_mut(&mut self) -> Option<&mut LineBuffer> {
        if let State::Ready(value) = &mut self.state { value.first_lines_mut() } else { None }
    }

    /// Returns the number of lines that the value borrows from its block.
    fn num_borrowed(&self) -> usize {
        let State::Ready(value) = &self.state else { return 0 };
        value.first_lines().map_or(0, LineBuffer::num_borrowed)
    }
}

impl<T: Family> Drop for KeyEntry<T> {
    fn drop(&mut self) {
        self.state.share().leave();
    }
}

/// Bytes from the start of a block to its first line.
const LINES_START: usize = size_of::<Line>();

/// The largest number of lines that a block has. Up to 512 bytes, blocks of whole lines have size classes of their own
/// in common allocators; beyond, a block would be larger than entry and lines apart.
const MOST_LINES: usize = 7;

/// The number of lines that are fetched together with the entry.
const LINES_AHEAD: usize = 2;

/// The entry of a filter and its lines are in different cache lines, and the entry takes only one.
const _: () = assert!(size_of::<KeyEntry<BloomFilter>>() <= LINES_START);

/// The memory of a value: its entry and, for a small filter, the lines of the first sub-filter.
///
/// ```text
/// | entry | padding up to 64 bytes | line 0 | line 1 | ...
/// ```
///
/// A command on a small filter that is in no cache needs the entry and a line. If the line were in another block, its
/// address would be known only once the entry has arrived. In the same block both are fetched at the same time. This
/// saves a sixth of the time of a command on one of a million small filters.
///
/// The filter borrows the lines from the block, for as long as the block lives. Invariant: the number of lines in the
/// block is the number of lines that the entry's filter borrows; so [`replace`] keeps them.
pub struct Block<T: Family> {
    entry: NonNull<KeyEntry<T>>,
    owned: PhantomData<KeyEntry<T>>,
}

// SAFETY: a block owns its entry and its lines, and nothing else refers to them.
unsafe impl<T: Family> Send for Block<T> where KeyEntry<T>: Send {}

impl<T: Family> Block<T> {
    /// Moves a value to a new block, and adds its share to the totals for `INFO`.
    pub fn new(state: State<T>) -> Self {
        let num_lines = match &state {
            State::Ready(value) if alloc::aligns_to_lines() => value.first_lines().map_or(0, |lines| lines.len()),
            _ => 0,
        };
        Self::with_lines(state, if num_lines <= MOST_LINES { num_lines } else { 0 })
    }

    /// The same as [`Self::new`], for a block with `num_lines` lines: none, or as many as the first sub-filter has.
    fn with_lines(state: State<T>, num_lines: usize) -> Self {
        state.share().enter();
        let layout = Self::layout(num_lines);
        // SAFETY: the layout has the size of the entry at least, and room for the lines, which are zeros and so are
        // initialised. The lines live as long as the block, which frees the filter that borrows them first.
        unsafe {
            let block = alloc_zeroed(layout);
            let Some(entry) = NonNull::new(block.cast::<KeyEntry<T>>()) else { handle_alloc_error(layout) };
            entry.write(KeyEntry { state });
            if num_lines > 0
                && let Some(lines) = (*entry.as_ptr()).lines_mut()
            {
                lines.move_to(from_raw_parts_mut(block.add(LINES_START).cast(), num_lines));
            }
            Block { entry, owned: PhantomData }
        }
    }

    /// The layout of a block with this number of lines.
    fn layout(num_lines: usize) -> Layout {
        let entry = Layout::new::<KeyEntry<T>>();
        if num_lines == 0 {
            return entry;
        }
        Layout::from_size_align(LINES_START + num_lines * size_of::<Line>(), align_of::<Line>()).unwrap_or(entry)
    }

    /// Gives up the block, and returns the pointer that the server keeps.
    pub fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).entry.as_ptr().cast()
    }

    /// Takes back a block.
    ///
    /// # Safety
    /// [`Self::into_raw`] returned `value`, which the server has given up or has not accepted.
    pub unsafe fn from_raw(value: *mut c_void) -> Option<Self> {
        NonNull::new(value.cast()).map(|entry| Block { entry, owned: PhantomData })
    }

    /// Lets `relocate` move the block to another place in memory, and returns the new pointer.
    ///
    /// # Safety
    /// [`Self::into_raw`] returned `value`, and no reference to it exists. `relocate` is given the address and the layout
    /// of the block; it returns the address of a copy with the same layout, or the same address.
    pub unsafe fn relocate(value: *mut c_void, relocate: impl FnOnce(*mut u8, Layout) -> *mut u8) -> *mut c_void {
        // SAFETY: as promised. The filter refers to no line while the block moves.
        unsafe {
            let num_lines = match entry_mut::<T>(value).lines_mut().and_then(LineBuffer::borrowed_mut) {
                Some(lines) => std::mem::take(lines).len(),
                None => 0,
            };
            let moved = relocate(value.cast(), Self::layout(num_lines));
            let lines = entry_mut::<T>(moved.cast()).lines_mut();
            if let Some(lines) = lines.and_then(LineBuffer::borrowed_mut) {
                *lines = from_raw_parts_mut(moved.add(LINES_START).cast(), num_lines);
            }
            moved.cast()
        }
    }
}

impl<T: Family> Deref for Block<T> {
    type Target = KeyEntry<T>;

    fn deref(&self) -> &KeyEntry<T> {
        // SAFETY: the block owns its entry.
        unsafe { self.entry.as_ref() }
    }
}

impl<T: Family> Drop for Block<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.num_borrowed());
        // SAFETY: the block owns its entry, and was allocated with this layout.
        unsafe {
            self.entry.drop_in_place();
            dealloc(self.entry.as_ptr().cast(), layout);
        }
    }
}

/// Replaces the value `old` of a key by `value`, and returns the old value. Lines that `old` borrows from its block are
/// borrowed by `value` afterwards, if it has as many.
pub fn replace<T: Family>(old: &mut T, value: T) -> T {
    let mut replaced = std::mem::replace(old, value);
    if let Some(memory) = replaced.first_lines_mut().and_then(LineBuffer::borrowed_mut)
        && let Some(lines) = old.first_lines_mut()
    {
        lines.move_to(std::mem::take(memory));
    }
    replaced
}

/// Fetches the lines that may follow an entry, before the entry is read. There is nothing to see whether any do.
#[inline(always)]
fn prefetch_lines<T: Family>(value: NonNull<c_void>) {
    if T::BORROWS_LINES {
        // SAFETY: a slice of no bytes. Any address may be prefetched.
        let start = unsafe { from_raw_parts(value.cast::<u8>().as_ptr(), 0) };
        (1..=LINES_AHEAD).for_each(|line| prefetch_index(start, line * size_of::<Line>()));
    }
}

/// Converts the server's raw pointer to a reference for reading. No other function than this and [`entry_mut`] does so.
///
/// # Safety
/// `value` was passed to the server as a value of one of `T`'s data types. It is neither freed nor changed while the
/// reference lives.
pub unsafe fn entry<'a, T: Family>(value: *const c_void) -> &'a KeyEntry<T> {
    // SAFETY: every value of T's data types was made by `Block::into_raw`, and a block starts with its entry.
    unsafe { &*value.cast::<KeyEntry<T>>() }
}

/// Converts the server's raw pointer to a mutable reference.
///
/// # Safety
/// The same as for [`entry`]. In addition, no other code reads the value while the reference lives.
pub unsafe fn entry_mut<'a, T: Family>(value: *mut c_void) -> &'a mut KeyEntry<T> {
    // SAFETY: as in `entry`.
    unsafe { &mut *value.cast::<KeyEntry<T>>() }
}

/// Returns the value of an open key for changes; `None` if the key is missing. The error is [`OtherType`] if the key
/// holds another type.
pub fn entry_of<'k, T: Family>(key: &'k mut Key<'_>) -> Result<Option<&'k mut KeyEntry<T>>, OtherType> {
    let value = key.value(T::has_type)?;
    // SAFETY: the type was compared just now. The key is borrowed mutably while the reference lives, so `set_entry`
    // cannot store a value in it. No command opens two keys under one name to change the value of one. The server frees
    // a value only when a command deletes it, and runs none while the reference lives.
    Ok(value.map(|value| unsafe {
        prefetch_lines::<T>(value);
        entry_mut::<T>(value.as_ptr())
    }))
}

/// Returns the value of an open key for reading, otherwise like [`entry_of`].
pub fn peek_entry<'k, T: Family>(key: &'k Key<'_>) -> Result<Option<&'k KeyEntry<T>>, OtherType> {
    let value = key.value(T::has_type)?;
    // SAFETY: as in `entry_of`. The key is borrowed while the reference lives, which keeps `set_entry` away too.
    Ok(value.map(|value| unsafe {
        prefetch_lines::<T>(value);
        entry::<T>(value.as_ptr())
    }))
}

/// Stores a value in a key that is open for writing. The server frees the old value and drops the key's expiry. No
/// reference to the old value can exist, since the key is borrowed mutably.
pub fn set_entry<T: Family>(key: &mut Key<'_>, block: Block<T>) {
    let handle = T::data_type(&block.state).handle();
    let raw = block.into_raw();
    // SAFETY: the pointer is what the callbacks of its data type expect.
    if handle.is_null() || !unsafe { key.set_value(handle, raw) } {
        // SAFETY: the server did not take it.
        drop(unsafe { Block::<T>::from_raw(raw) });
    }
}

/// Replaces the partially loaded value of a key by the complete value that `finish` returns. Nothing happens if
/// `finish` returns `None`.
///
/// The data type of a classic (RedisBloom-compatible) filter changes when it is complete. The server replaces a value
/// in place only by one of the same type, so the filter is stored anew, and the key's expiry is restored. The server
/// then frees the old value, whose contents have been moved out.
///
/// # Errors
/// The error that `finish` returns, or [`CommandError::NoClassic`].
pub fn finalize<T: Family>(
    key: &mut Key<'_>,
    finish: impl FnOnce(&mut T::Loading) -> Result<Option<T>, Error>,
) -> Result<(), CommandError> {
    let Ok(Some(entry)) = entry_of::<T>(key) else { return Ok(()) };
    // The share is computed first: `finish` takes the contents out of `loading`.
    let share = entry.state.share();
    let State::Loading(loading) = &mut entry.state else { return Ok(()) };
    check_kind::<T>(loading)?;
    let finished = finish(loading);
    let moved_from = entry.state.share();
    share.becomes(&moved_from);
    let Some(value) = finished? else { return Ok(()) };
    let state = State::Ready(value);
    if std::ptr::eq(T::data_type(&state), T::data_type(&entry.state)) {
        entry.state = state;
        moved_from.becomes(&entry.state.share());
        return Ok(());
    }
    let expiry = key.expiry();
    set_entry(key, Block::new(state));
    key.set_expiry(expiry);
    Ok(())
}

/// Checks that this server may complete the partially loaded value: a classic filter needs BF.* to be served here.
///
/// # Errors
/// [`CommandError::NoClassic`] for a classic filter if this module does not serve BF.*.
pub fn check_kind<T: Family>(loading: &T::Loading) -> Result<(), CommandError> {
    if T::becomes_classic(loading) && !serves_classic() { Err(no_classic()) } else { Ok(()) }
}

/// Returns the error for a classic (RedisBloom-compatible) filter if this module does not serve BF.* on this server.
pub fn no_classic() -> CommandError {
    CommandError::NoClassic { commands: config::commands().word() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollcall_core::bloom::{BitLayout, Params};
    use rollcall_core::live::Live;
    use rollcall_core::size_limit::Unlimited;
    use rollcall_core::window::Time;
    use std::alloc::alloc;

    type FilterBlock = Block<BloomFilter>;

    fn filter(layout: BitLayout, capacity: u64) -> BloomFilter {
        let params = Params { error_rate: 0.01, capacity, ..Params::default() };
        BloomFilter::new(layout, params, &Unlimited).unwrap()
    }

    fn add(filter: &mut BloomFilter, items: std::ops::Range<u32>) {
        let items: Vec<[u8; 4]> = items.map(u32::to_le_bytes).collect();
        Live::new(filter, Time::Reached).add_all(&items, &Unlimited, |_| {}).unwrap();
    }

    /// Returns the filter in a block, for changes.
    fn ready(value: *mut c_void) -> &'static mut BloomFilter {
        // SAFETY: the block lives until the end of the test, which uses one reference at a time.
        match unsafe { &mut entry_mut::<BloomFilter>(value).state } {
            State::Ready(filter) => filter,
            State::Loading(_) => panic!("the filter is complete"),
        }
    }

    /// Moves a block as the server's defragmenter does: the old block is freed, here after its bytes were destroyed.
    fn move_elsewhere(block: *mut u8, layout: Layout) -> *mut u8 {
        // SAFETY: the block has this layout.
        unsafe {
            let moved = alloc(layout);
            block.copy_to_nonoverlapping(moved, layout.size());
            block.write_bytes(0xaa, layout.size());
            dealloc(block, layout);
            moved
        }
    }

    /// A filter whose lines are in its block is equal to one whose lines are not, through additions, moves, growth,
    /// emptying and copies.
    #[test]
    fn lines_in_a_block_are_as_good_as_others() {
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            for capacity in [1, 10, 50, 100, 300] {
                let mut expected = filter(layout, capacity);
                add(&mut expected, 0..3);
                let num_lines = expected.first_lines().unwrap().len();
                assert!((1..=MOST_LINES).contains(&num_lines));
                let state = State::Ready(expected.try_clone().unwrap());
                let mut value = FilterBlock::with_lines(state, num_lines).into_raw();
                let is_borrowed = |value| ready(value).first_lines().unwrap().num_borrowed() == num_lines;
                for items in [3..8, 8..100, 100..2000] {
                    add(ready(value), items.clone());
                    add(&mut expected, items);
                    assert!(*ready(value) == expected && is_borrowed(value));
                    // SAFETY: the block is live, and `move_elsewhere` returns a copy of it.
                    value = unsafe { FilterBlock::relocate(value, move_elsewhere) };
                    assert!(*ready(value) == expected && is_borrowed(value));
                }
                let copy = ready(value).try_clone().unwrap();
                assert!(copy == expected && copy.first_lines().unwrap().num_borrowed() == 0);
                let empty = expected.new_like(&Unlimited).unwrap();
                drop(replace(ready(value), ready(value).new_like(&Unlimited).unwrap()));
                assert!(*ready(value) == empty && is_borrowed(value));
                add(ready(value), 0..10);
                assert!(*ready(value) != empty);
                // SAFETY: the server has no such block; the test gives it up.
                drop(unsafe { FilterBlock::from_raw(value) });
            }
        }
    }

    /// A block without lines is moved and freed as it was allocated.
    #[test]
    fn a_value_with_many_lines_has_a_block_of_its_entry_alone() {
        let mut expected = filter(BitLayout::Lines, 10_000);
        add(&mut expected, 0..100);
        let block = FilterBlock::new(State::Ready(expected.try_clone().unwrap()));
        assert_eq!(FilterBlock::layout(block.num_borrowed()), Layout::new::<KeyEntry<BloomFilter>>());
        // SAFETY: the block is live, and `move_elsewhere` returns a copy of it.
        let value = unsafe { FilterBlock::relocate(block.into_raw(), move_elsewhere) };
        assert!(*ready(value) == expected);
        // SAFETY: the test gives the block up.
        drop(unsafe { FilterBlock::from_raw(value) });
    }
}
