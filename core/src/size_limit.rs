//! Limits on the bytes of a filter or counter. A size is compared with its limit before memory is allocated. If an
//! allocation fails, the result is an error.

use std::alloc::Layout;

use bytemuck::Zeroable;

use crate::error::{Error, Limit};

/// Decides whether a filter or counter may take more memory. Users of the library choose [`Unlimited`] or [`MaxBytes`].
pub trait SizeLimit {
    /// Whether a value that takes `held_bytes` may take `more_bytes` in addition. Both are bytes that are requested
    /// from the allocator, without its overhead.
    ///
    /// ```
    /// use rollcall_core::size_limit::{MaxBytes, SizeLimit};
    ///
    /// let limit = MaxBytes(1000);
    /// assert!(limit.check(900, 100).is_ok());
    /// assert!(limit.check(900, 101).is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the value may not grow by `more_bytes`.
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error>;

    /// Like [`check`](Self::check), for bytes that the operation does not need, but that save time. A limit that counts
    /// its rejections must not count rejections here.
    fn allows(&self, held_bytes: u64, more_bytes: u64) -> bool {
        self.check(held_bytes, more_bytes).is_ok()
    }

    /// Is told of memory that loading a value is about to overwrite completely, so that a server may ask the kernel for
    /// all its pages at once.
    #[doc(hidden)]
    fn will_fill(&self, _memory: &[u8]) {}
}

/// The only limit is the memory of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Unlimited;

impl SizeLimit for Unlimited {
    fn check(&self, _held_bytes: u64, _more_bytes: u64) -> Result<(), Error> {
        Ok(())
    }
}

/// One filter or counter takes at most this number of bytes.
#[derive(Debug, Clone, Copy)]
pub struct MaxBytes(pub u64);

impl SizeLimit for MaxBytes {
    fn check(&self, held_bytes: u64, more_bytes: u64) -> Result<(), Error> {
        let needed_bytes = held_bytes.saturating_add(more_bytes);
        let too_large = Error::TooLarge { needed_bytes, limit_bytes: self.0, limit: Limit::Value };
        if needed_bytes > self.0 { Err(too_large) } else { Ok(()) }
    }
}

/// The bytes of an array of `len` elements; `u64::MAX` if the array is larger than the address space.
pub(crate) fn array_bytes<T>(len: u64) -> u64 {
    let layout = usize::try_from(len).ok().and_then(|len| Layout::array::<T>(len).ok());
    layout.map_or(u64::MAX, |layout| layout.size() as u64)
}

/// Reserves memory for `more` elements, or returns [`Error::OutOfMemory`].
#[doc(hidden)]
pub fn try_reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), Error> {
    list.try_reserve_exact(more).map_err(|_| out_of_memory::<T>(more))
}

pub(crate) fn try_with_capacity<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    try_reserve(&mut list, len)?;
    Ok(list)
}

pub(crate) fn try_to_vec<T: Copy>(elements: &[T]) -> Result<Vec<T>, Error> {
    try_collect(elements.len(), elements.iter().copied())
}

/// Collects an iterator of at most `most` elements.
#[doc(hidden)]
pub fn try_collect<T>(most: usize, elements: impl IntoIterator<Item = T>) -> Result<Vec<T>, Error> {
    let mut list = try_with_capacity(most)?;
    list.extend(elements);
    Ok(list)
}

/// Collects an iterator of at most `most` results, or returns its first error.
#[doc(hidden)]
pub fn try_collect_ok<T, E: From<Error>>(
    most: usize,
    elements: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    let mut list = try_with_capacity(most)?;
    for element in elements {
        list.push(element?);
    }
    Ok(list)
}

pub(crate) fn try_filled<T: Clone>(len: usize, element: T) -> Result<Vec<T>, Error> {
    try_collect(len, std::iter::repeat_n(element, len))
}

/// A list of `len` elements of zero bytes.
pub(crate) fn try_zeroed<T: Zeroable>(len: usize) -> Result<Box<[T]>, Error> {
    bytemuck::allocation::try_zeroed_slice_box(len).map_err(|()| out_of_memory::<T>(len))
}

fn out_of_memory<T>(len: usize) -> Error {
    Error::OutOfMemory { needed_bytes: (len as u64).saturating_mul(size_of::<T>() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_address_space_are_rejected() {
        assert_eq!((array_bytes::<u32>(5), array_bytes::<u64>(1 << 62)), (20, u64::MAX));
        let rejected = try_with_capacity::<u32>(usize::MAX).map(|_| ());
        assert_eq!(rejected, Err(Error::OutOfMemory { needed_bytes: u64::MAX }));
        assert_eq!(try_with_capacity::<u32>(1 << 61).map(|_| ()), Err(Error::OutOfMemory { needed_bytes: 1 << 63 }));
    }

    #[test]
    fn a_copy_has_room_for_its_elements_alone() {
        let copy = try_to_vec(&[1u16, 2, 3]).expect("memory");
        assert_eq!((&copy[..], copy.capacity()), (&[1, 2, 3][..], 3));
        let mut list = copy;
        try_reserve(&mut list, 7).expect("memory");
        assert!(list.capacity() >= 10);
    }
}
