//! The arguments of an addition to a counter's set, except the item.

use crate::counting::held::ring::Ages;
use crate::counting::held::tag::Tag;
use crate::counting::params::Spec;

pub(in crate::counting) struct Adding<'a, T: Tag, L> {
    pub(in crate::counting) spec: &'a Spec,
    /// The tag of the slice in which the item is added.
    pub(in crate::counting) tag: T,
    pub(in crate::counting) ages: Ages,
    /// The bytes of the counter's own structs, without its members or its bitmap.
    pub(in crate::counting) held_bytes: u64,
    pub(in crate::counting) limit: &'a L,
}

impl<T: Tag, L> Clone for Adding<'_, T, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Tag, L> Copy for Adding<'_, T, L> {}
