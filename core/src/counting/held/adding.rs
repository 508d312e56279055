//! What an addition needs besides the item.

use crate::counting::held::ring::Ages;
use crate::counting::held::tag::Tag;
use crate::counting::params::Spec;
use crate::size_limit::SizeLimit;

/// The context of an addition: everything except the item.
#[derive(Clone, Copy)]
pub(in crate::counting) struct Adding<'a, T: Tag> {
    pub(in crate::counting) spec: &'a Spec,
    /// The tag of the slice in which the item is seen.
    pub(in crate::counting) tag: T,
    pub(in crate::counting) ages: Ages,
    /// Bytes that the counter takes without its set.
    pub(in crate::counting) held_bytes: u64,
    pub(in crate::counting) limit: &'a dyn SizeLimit,
}
