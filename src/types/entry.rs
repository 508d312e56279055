//! A value in the server's keyspace. It is a [`Block`] that the server holds as a raw pointer, and that the module
//! takes back to free it.

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

use super::family::{Family, NumLines, State, serves_classic};
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
    /// The number of lines that follow the entry in its block.
    num_lines: T::NumLines,
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
        let mut bytes = SERVER_OBJECT_BYTES + alloc::usable_layout_size(Block::<T>::layout(self.num_lines.get()));
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

    /// Returns the memory that the value borrows; `None` if it borrows none.
    fn borrowed_mut(&mut self) -> Option<&mut &'static mut [Line]> {
        let State::Ready(value) = &mut self.state else { return None };
        value.lines_mut().and_then(LineBuffer::borrowed_mut)
    }
}

impl<T: Family> Drop for KeyEntry<T> {
    fn drop(&mut self) {
        self.state.share().leave();
    }
}

/// Bytes from the start of a block to its first line.
const LINES_START: usize = size_of::<Line>();

/// The largest number of lines in a block. Up to this number, common allocators have a size class for entry and lines
/// together; with more lines, some blocks would be larger than entry and lines apart.
const MOST_LINES: usize = 7;

/// The number of lines that are fetched together with the entry.
const LINES_AHEAD: usize = 2;

/// The entry of a filter and its lines are in different cache lines, and the entry takes only one.
const _: () = assert!(size_of::<KeyEntry<BloomFilter>>() == LINES_START);

/// The memory of a value: its entry and, for a small filter, the lines of the first sub-filter.
///
/// ```text
/// | entry, 64 bytes | line 0 | line 1 | ...
/// ```
///
/// A command on a small filter that is in no cache needs the entry and a line. If the line were in another block, its
/// address would be known only once the entry has arrived. In the same block both are fetched at the same time. This
/// saves a sixth of the time of a command on one of a million small filters.
///
/// The filter borrows the lines for as long as the block lives. A filter that has got other lines leaves those of its
/// block unused.
pub struct Block<T: Family> {
    entry: NonNull<KeyEntry<T>>,
    owned: PhantomData<KeyEntry<T>>,
}

// SAFETY: a block owns its entry and its lines, and nothing else refers to them.
unsafe impl<T: Family> Send for Block<T> where KeyEntry<T>: Send {}

impl<T: Family> Block<T> {
    /// Moves a value to a new block, and adds its share to the totals for `INFO`.
    pub fn new(mut state: State<T>) -> Self {
        let num_lines = match &mut state {
            State::Ready(value) if alloc::aligns_to_lines() => value.lines_mut().map_or(0, |lines| lines.len()),
            _ => 0,
        };
        Self::with_lines(state, if num_lines <= MOST_LINES { num_lines as u8 } else { 0 })
    }

    /// The same as [`Self::new`], for a block with `num_lines` lines: none, or as many as the first sub-filter has.
    fn with_lines(state: State<T>, num_lines: u8) -> Self {
        let layout = Self::layout(num_lines);
        // SAFETY: the layout has a size.
        let block = unsafe { alloc_zeroed(layout) };
        let Some(entry) = NonNull::new(block.cast::<KeyEntry<T>>()) else {
            // The allocator had no memory, or none that is aligned. A filter can do without lines in its block.
            return if num_lines > 0 { Self::with_lines(state, 0) } else { handle_alloc_error(layout) };
        };
        state.share().enter();
        // SAFETY: the block has room for the entry and, behind it, for the lines. They are zeros, so initialised. The
        // block drops the filter before it frees the lines.
        unsafe {
            entry.write(KeyEntry { state, num_lines: T::NumLines::of(num_lines) });
            if num_lines > 0
                && let State::Ready(value) = &mut (*entry.as_ptr()).state
                && let Some(lines) = value.lines_mut()
            {
                lines.move_to(lines_of(block, num_lines));
            }
        }
        Block { entry, owned: PhantomData }
    }

    /// The layout of a block with this number of lines.
    fn layout(num_lines: u8) -> Layout {
        let entry = Layout::new::<KeyEntry<T>>();
        if num_lines == 0 {
            return entry;
        }
        let bytes = LINES_START + usize::from(num_lines) * size_of::<Line>();
        Layout::from_size_align(bytes, align_of::<Line>()).unwrap_or(entry)
    }

    /// Gives up the block, and returns the pointer that the server keeps.
    pub fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).entry.as_ptr().cast()
    }

    /// Takes back a block; `None` for a null pointer.
    ///
    /// # Safety
    /// [`Self::into_raw`] returned `value`, which the server has given up or has not accepted.
    pub unsafe fn from_raw(value: *mut c_void) -> Option<Self> {
        NonNull::new(value.cast()).map(|entry| Block { entry, owned: PhantomData })
    }

    /// Whether the block of a value has lines. Asks the allocator for the size of the block, and does not read the entry.
    ///
    /// # Safety
    /// [`Self::into_raw`] returned `value`, and it has not been freed.
    pub unsafe fn has_lines(value: *const c_void) -> bool {
        // SAFETY: as promised.
        size_of::<T::NumLines>() > 0
            && alloc::aligns_to_lines()
            && unsafe { alloc::size_of_block(value) } >= LINES_START + size_of::<Line>()
    }

    /// Lets `relocate` move the block to another place in memory, and returns the new pointer.
    ///
    /// # Safety
    /// [`Self::into_raw`] returned `value`, and no reference to it exists. `relocate` is given the address and the
    /// layout of the block; it returns the address of a copy with the same layout, or the same address.
    pub unsafe fn relocate(value: *mut c_void, relocate: impl FnOnce(*mut u8, Layout) -> *mut u8) -> *mut c_void {
        // SAFETY: as promised. The filter borrows no memory while the block moves.
        unsafe {
            let entry = entry_mut::<T>(value);
            let num_lines = entry.num_lines.get();
            entry.borrowed_mut().map(std::mem::take);
            let moved = relocate(value.cast(), Self::layout(num_lines));
            if let Some(borrowed) = entry_mut::<T>(moved.cast()).borrowed_mut() {
                *borrowed = lines_of(moved, num_lines);
            }
            moved.cast()
        }
    }
}

/// Returns the lines of a block.
///
/// # Safety
/// The block has this number of lines, and nothing else refers to them. They are used only while the block lives.
unsafe fn lines_of(block: *mut u8, num_lines: u8) -> &'static mut [Line] {
    // SAFETY: as promised; the address is aligned, as the block is.
    unsafe { from_raw_parts_mut(block.add(LINES_START).cast(), num_lines.into()) }
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
        let layout = Self::layout(self.num_lines.get());
        // SAFETY: the block owns its entry, and was allocated with this layout.
        unsafe {
            self.entry.drop_in_place();
            dealloc(self.entry.as_ptr().cast(), layout);
        }
    }
}

/// Replaces the value `old` of a key by `value`, and returns the old value. If both have the same number of lines, the
/// lines stay in the block.
pub fn replace<T: Family>(old: &mut T, value: T) -> T {
    let mut replaced = std::mem::replace(old, value);
    // Taken in any case: what is replaced may outlive the block.
    let memory = replaced.lines_mut().and_then(LineBuffer::borrowed_mut).map(std::mem::take);
    if let (Some(memory), Some(lines)) = (memory, old.lines_mut())
        && lines.len() == memory.len()
    {
        lines.move_to(memory);
    }
    replaced
}

/// Fetches the lines that may follow an entry. Whether any do is not known yet: the entry says so, and it is fetched at
/// the same time.
#[inline(always)]
fn prefetch_lines<T: Family>(value: NonNull<c_void>) {
    if size_of::<T::NumLines>() > 0 {
        (1..=LINES_AHEAD).for_each(|line| prefetch(value.as_ptr(), line * size_of::<Line>()));
    }
}

/// Fetches the cache line that is `offset` bytes behind the start of a value.
#[inline(always)]
pub fn prefetch(value: *const c_void, offset: usize) {
    // SAFETY: a slice of no bytes, which is not null. Any address may be prefetched.
    prefetch_index(unsafe { from_raw_parts(value.cast::<u8>(), 0) }, offset);
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
#[inline]
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
#[inline]
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
/// `finish` returns `None`. The key keeps its expiry.
///
/// The data type of a classic (RedisBloom-compatible) filter changes when it is complete. The server replaces a value
/// in place only by one of the same type, so such a filter is stored anew, and the key's expiry is restored.
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
    share.becomes(&entry.state.share());
    let Some(value) = finished? else { return Ok(()) };
    let (before, state) = (T::data_type(&entry.state), State::Ready(value));
    if std::ptr::eq(T::data_type(&state), before) {
        let new = Block::new(state).into_raw();
        // SAFETY: values of this data type are blocks of `T`. What comes back is the old block or, if the server
        // refuses, the new one. No reference to either is left.
        let old = unsafe {
            let old = key.swap_value(before.handle(), new);
            drop(Block::<T>::from_raw(old));
            old
        };
        debug_assert!(old != new, "the key is open for writing, and its value has this type");
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
    use rollcall_core::admission::Terms;
    use rollcall_core::bloom::{BitLayout, Params};
    use rollcall_core::live::Live;
    use rollcall_core::size_limit::{MaxBytes, Unlimited};
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

    /// Returns the number of lines that the filter borrows.
    fn borrowed(filter: &mut BloomFilter) -> usize {
        filter.first_lines_mut().and_then(LineBuffer::borrowed_mut).map_or(0, |lines| lines.len())
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

    /// What is done to two equal filters, of which one borrows its lines: admissions that are taken back, unions and
    /// growth that is taken back.
    fn change(filter: &mut BloomFilter) {
        let items: Vec<[u8; 4]> = (7000..7400u32).map(u32::to_le_bytes).collect();
        let limit = |more: u64| MaxBytes(filter.size_bytes() + more);
        let limits = [limit(0), limit(64), limit(u64::from(u16::MAX))];
        for (all, dry_run) in [(false, true), (true, false), (true, true)] {
            for limit in &limits {
                for len in [1, 4, 40, 400] {
                    let terms = Terms { limit: filter.num_items() + len as u64 / 2, all, dry_run };
                    // Some are refused, for want of memory.
                    let _ = Live::new(filter, Time::Reached).admit(items[..len].iter(), terms, limit);
                }
            }
        }
        let mut other = filter.new_like(&Unlimited).unwrap();
        add(&mut other, 9000..9001);
        Live::new(filter, Time::Reached).merge(&[&other], &Unlimited).unwrap();
    }

    /// A filter whose lines are in its block is equal to one whose lines are not, through additions, moves, growth,
    /// emptying and copies.
    #[test]
    fn lines_in_a_block_are_as_good_as_others() {
        for layout in [BitLayout::Lines, BitLayout::Classic] {
            for capacity in [1, 10, 50, 100, 300] {
                let mut expected = filter(layout, capacity);
                add(&mut expected, 0..3);
                let num_lines = expected.first_lines_mut().unwrap().len();
                assert!((1..=MOST_LINES).contains(&num_lines));
                let state = State::Ready(expected.try_clone().unwrap());
                let mut value = FilterBlock::with_lines(state, num_lines as u8).into_raw();
                let is_borrowed = |value| borrowed(ready(value)) == num_lines;
                for items in [3..8, 8..100, 100..2000] {
                    add(ready(value), items.clone());
                    add(&mut expected, items);
                    assert!(*ready(value) == expected && is_borrowed(value));
                    change(ready(value));
                    change(&mut expected);
                    assert!(*ready(value) == expected && is_borrowed(value));
                    // SAFETY: the block is live, and `move_elsewhere` returns a copy of it.
                    value = unsafe { FilterBlock::relocate(value, move_elsewhere) };
                    assert!(*ready(value) == expected && is_borrowed(value));
                }
                let mut copy = ready(value).try_clone().unwrap();
                assert!(copy == expected && borrowed(&mut copy) == 0);
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

    /// A filter that has got other lines is no concern of the block, whose lines are then unused.
    #[test]
    fn a_filter_may_have_other_lines_than_those_of_its_block() {
        let mut expected = filter(BitLayout::Lines, 50);
        add(&mut expected, 0..30);
        let start = State::Ready(filter(BitLayout::Lines, 50));
        let mut value = FilterBlock::with_lines(start, 1).into_raw();
        *ready(value) = expected.try_clone().unwrap();
        // SAFETY: the block is live, and `move_elsewhere` returns a copy of it.
        value = unsafe { FilterBlock::relocate(value, move_elsewhere) };
        assert!(*ready(value) == expected && borrowed(ready(value)) == 0);
        // The same with a filter of another size, which the block's lines do not fit.
        let mut larger = filter(BitLayout::Lines, 1000);
        add(&mut larger, 0..500);
        for _ in 0..2 {
            let mut replaced = replace(ready(value), larger.try_clone().unwrap());
            assert_eq!(borrowed(&mut replaced) + borrowed(ready(value)), 0);
        }
        assert!(*ready(value) == larger);
        // SAFETY: the test gives the block up.
        drop(unsafe { FilterBlock::from_raw(value) });
    }

    /// A block without lines is moved and freed as it was allocated. A small filter has such a block too, if malloc does
    /// not align blocks to cache lines, as outside a server.
    #[test]
    fn a_filter_with_lines_of_its_own_has_a_block_of_its_entry_alone() {
        for capacity in [50, 10_000] {
            own_lines(capacity);
        }
    }

    fn own_lines(capacity: u64) {
        let mut expected = filter(BitLayout::Lines, capacity);
        add(&mut expected, 0..100);
        let block = FilterBlock::new(State::Ready(expected.try_clone().unwrap()));
        assert_eq!(FilterBlock::layout(block.num_lines), Layout::new::<KeyEntry<BloomFilter>>());
        // SAFETY: the block is live, and `move_elsewhere` returns a copy of it.
        let value = unsafe { FilterBlock::relocate(block.into_raw(), move_elsewhere) };
        assert!(*ready(value) == expected);
        // SAFETY: the test gives the block up.
        drop(unsafe { FilterBlock::from_raw(value) });
    }
}
