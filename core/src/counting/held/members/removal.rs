//! Removes members from the set of an exact counter, and frees their memory.

use super::Members;
use super::record::Records;
use crate::hash::table_hash;

impl Members {
    /// Removes each member for whose slice tag `is_kept` returns false.
    pub(in crate::counting) fn retain(&mut self, is_kept: impl Fn(u8) -> bool) {
        if self.iter().all(|(tag, _)| is_kept(tag)) {
            return;
        }
        self.close_gaps(|mut records, end| {
            loop {
                let offset = end - records.rest.len();
                if !is_kept(records.next()?.0) {
                    return Some(offset);
                }
            }
        });
        self.index_anew(self.index);
        self.free();
    }

    /// Removes the members at the byte offsets `gone`, which are in ascending order.
    pub(in crate::counting) fn remove(&mut self, mut gone: impl DoubleEndedIterator<Item = usize> + Clone) {
        let is_index_kept = self.remove_from_index(gone.clone().rev());
        self.close_gaps(|_, _| gone.next());
        if !is_index_kept {
            self.index_anew(self.index);
        }
        self.free();
    }

    /// Removes from the index the members at the byte offsets `gone`, which are in descending order. Returns false if
    /// the index must be rebuilt instead.
    fn remove_from_index(&mut self, gone: impl Iterator<Item = usize> + Clone) -> bool {
        let index = self.index;
        let mut buffer = std::mem::take(&mut self.buffer);
        let (arena, groups) = buffer.split_at_mut(buffer.len() - index.bytes());
        let records = Records::new(&arena[..self.arena_len as usize], self.tag_bytes());
        let at = |offset| {
            let mut records = Records { rest: &arena[offset..self.arena_len as usize], ..records.clone() };
            let (before, member) = (records.rest.len(), records.next());
            (member.map_or(0, |(_, member)| table_hash(member.text_in(&mut [0; 64]))), before - records.rest.len())
        };
        let is_kept = index.remove(groups, gone.map(|offset| (offset, at(offset).1)), |offset| at(offset).0);
        self.buffer = buffer;
        is_kept
    }

    /// Removes the bytes of members. It allocates nothing, and does not change the hash index. `next` returns the byte
    /// offset of the next member to be removed, from a given offset on.
    fn close_gaps(&mut self, mut next: impl FnMut(Records<'_>, usize) -> Option<usize>) {
        let end = self.as_bytes().len();
        let (mut from, mut to) = (usize::from(self.front_len), usize::from(self.front_len));
        loop {
            let gone = next(self.records_from(from), end);
            let until = gone.unwrap_or(end);
            if from > to {
                self.buffer.copy_within(from..until, to);
            }
            to += until - from;
            let mut records = self.records_from(until);
            let Some((_, member)) = records.next() else { break };
            let counted_bytes = member.counted_bytes();
            from = end - records.rest.len();
            self.len -= 1;
            self.member_bytes -= counted_bytes as u32;
        }
        self.arena_len = to as u32;
        if self.len == 0 {
            (self.arena_len, self.front_len, self.width) = (0, 0, 0);
        }
    }

    /// Frees the memory of removed members if it is more than three quarters of the buffer.
    fn free(&mut self) {
        // A growing set may take up to three times the memory that it needs. It is copied to a smaller buffer only if
        // it takes more than four times. So adding and removing a member again and again does not copy it each time.
        let arena = self.as_bytes().len();
        if arena + self.index_for(self.len(), self.width, arena).bytes() < self.buffer.len() / 4 {
            self.trim();
        }
    }
}
