//! The members of an exact counter, as they are listed.

use crate::counting::dated::members as dated;
use crate::counting::dated::ring::Ages;
use crate::counting::members::arena;

/// Iterator over the members of an exact counter.
#[derive(Debug, Clone)]
pub struct Iter<'a>(Members<'a>);

#[derive(Debug, Clone)]
enum Members<'a> {
    Plain(arena::Iter<'a>),
    /// Those of at most this age; none where there is none.
    Dated(dated::Iter<'a>, Ages, Option<u8>),
}

impl<'a> Iter<'a> {
    pub(super) fn plain(members: arena::Iter<'a>) -> Self {
        Iter(Members::Plain(members))
    }

    pub(super) fn none() -> Self {
        Self::plain(arena::Iter::new(&[]))
    }

    pub(super) fn dated(members: dated::Iter<'a>, ages: Ages, most_age: Option<u8>) -> Self {
        Iter(Members::Dated(members, ages, most_age))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match &mut self.0 {
            Members::Plain(members) => members.next(),
            Members::Dated(members, ages, most_age) => {
                let (ages, most_age) = (*ages, (*most_age)?);
                members.find(|&(tag, _)| ages.age(tag) <= most_age).map(|(_, member)| member)
            }
        }
    }
}
