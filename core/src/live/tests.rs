//! Methods that make tests shorter.

use crate::heap::Mover;

/// A mover that copies.
pub(crate) struct Copier;

impl Mover for Copier {
    fn relocate<E>(&self, buffer: Box<[E]>) -> Box<[E]> {
        buffer.into_iter().collect()
    }
}

/// Changes at the newest slice or at a given time.
macro_rules! short_forms {
    ($value:ty) => {
        impl $value {
            pub(crate) fn add(&mut self, item: impl AsRef<[u8]>, limit: &impl SizeLimit) -> Result<bool, Error> {
                self.live(Time::Reached).add(item, limit)
            }

            pub(crate) fn add_all<'a, I: AsRef<[u8]> + ?Sized + 'a>(
                &mut self,
                items: impl IntoIterator<Item = &'a I>,
                limit: &impl SizeLimit,
                added: impl FnMut(bool),
            ) -> Result<(), Error> {
                self.live(Time::Reached).add_all(items, limit, added)
            }

            pub(crate) fn admit<'a, I: AsRef<[u8]> + ?Sized + 'a>(
                &mut self,
                items: impl ExactSizeIterator<Item = &'a I>,
                terms: Terms,
                limit: &impl SizeLimit,
            ) -> Result<Vec<Admission>, Error> {
                self.live(Time::Reached).admit(items, terms, limit)
            }

            pub(crate) fn advance_due(&mut self, time: Time) -> crate::window::Move {
                let mut live = self.live(time);
                let due = live.due();
                live.make(due);
                due
            }

            pub(crate) fn admit_at<'a, I: AsRef<[u8]> + ?Sized + 'a>(
                &mut self,
                items: impl ExactSizeIterator<Item = &'a I>,
                terms: Terms,
                time: Time,
                limit: &impl SizeLimit,
            ) -> Result<(Vec<Admission>, crate::live::Outcome<<Self as crate::live::Value>::Expired>), Error> {
                let mut live = self.live(time);
                let reported = live.admit(items, terms, limit)?;
                Ok((reported, live.finish()))
            }
        }
    };
}

pub(crate) use short_forms;
