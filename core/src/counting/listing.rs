//! The members of an exact counter, as a list.

use crate::counting::held::members::arena::Records;
use crate::counting::held::ring::Ages;

/// Iterator over the members of an exact counter.
#[derive(Debug, Clone)]
pub(super) struct Iter<'a>(Listed<'a>);

#[derive(Debug, Clone)]
enum Listed<'a> {
    Plain(Records<'a, ()>),
    Windowed(Records<'a, u8>, Ages, Option<u8>),
}

impl<'a> Iter<'a> {
    pub(super) fn plain(members: Records<'a, ()>) -> Self {
        Iter(Listed::Plain(members))
    }

    pub(super) fn none() -> Self {
        Self::plain(Records::new(&[]))
    }

    /// Iterates over the members of at most the age `most_age`, in slices; over none if it is `None`.
    pub(super) fn windowed(members: Records<'a, u8>, ages: Ages, most_age: Option<u8>) -> Self {
        Iter(Listed::Windowed(members, ages, most_age))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match &mut self.0 {
            Listed::Plain(members) => members.next().map(|(_, member)| member),
            Listed::Windowed(members, ages, most_age) => {
                let (ages, most_age) = (*ages, (*most_age)?);
                members.find(|&(tag, _)| ages.age(tag) <= most_age).map(|(_, member)| member)
            }
        }
    }
}
