//! The keys of a node beyond [`Scope::max_keys`], which are too many to poll each time. They are judged in turns, in
//! order of names, again and again. Only the rows of keys with a problem are kept.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::rows::{Row, Rows, Scope, rows_of};
use crate::failure::Failure;
use crate::server::Server;

/// The keys of a node that are judged a few at a time: the last key judged, and the keys with a problem.
#[derive(Debug, Default)]
pub struct Others {
    /// The last key that was judged; `None` before the first and after the last.
    after: Option<Vec<u8>>,
    /// Number of keys judged in this round.
    judged: u64,
    /// Whether all keys have been judged at least once.
    is_round: bool,
    /// The keys with a problem by name, each with the time of the poll that judged it.
    wrong: BTreeMap<Vec<u8>, (Row, u64)>,
}

/// The keys that one turn judged.
#[derive(Debug)]
pub struct Turn {
    rows: Vec<Row>,
    /// The last key of this turn; `None` if no key comes after it.
    until: Option<Vec<u8>>,
}

impl Others {
    /// Polls the first `scope.max_keys` keys, and up to the same number of further keys.
    pub fn look(&self, server: &mut Server, scope: &Scope<'_>) -> Result<(Rows, Turn), Failure> {
        let scan = server.scan_turn(scope.pattern, scope.max_keys, self.after.as_deref())?;
        let rows = Rows { rows: rows_of(server, &scan.first)?, left_out: scan.left_out };
        Ok((rows, Turn { rows: rows_of(server, &scan.turn)?, until: scan.until }))
    }

    /// Adds the result of a turn in the poll at the time `at`. At most `most` keys with a problem are kept, the most
    /// urgent ones.
    pub fn take(&mut self, first: &Rows, turn: Turn, at: u64, most: usize) {
        self.judged += turn.rows.len() as u64;
        // Earlier findings in the range of this turn are outdated. The keys before the range were judged in this round.
        let from = self.after.take().map_or(Bound::Unbounded, Bound::Excluded);
        let to = turn.until.clone().map_or(Bound::Unbounded, Bound::Included);
        let old: Vec<Vec<u8>> = self.wrong.range((from, to)).map(|(name, _)| name.clone()).collect();
        old.iter().chain(first.rows.iter().map(|row| &row.name)).for_each(|name| drop(self.wrong.remove(name)));
        let wrong = turn.rows.into_iter().filter(Row::is_wrong);
        self.wrong.extend(wrong.map(|row| (row.name.clone(), (row, at))));
        if self.wrong.len() > most {
            let mut by_urgency: Vec<_> = std::mem::take(&mut self.wrong).into_iter().collect();
            by_urgency.sort_by_key(|(_, (row, _))| std::cmp::Reverse(row.urgency()));
            by_urgency.truncate(most);
            self.wrong = by_urgency.into_iter().collect();
        }
        if turn.until.is_none() {
            (self.is_round, self.judged) = (true, 0);
        }
        self.after = turn.until;
    }

    /// The keys with a problem in order of names, each with the time of the poll that judged it.
    pub fn wrong(&self) -> impl Iterator<Item = &(Row, u64)> {
        self.wrong.values()
    }

    /// The number of other keys that have not been judged yet; `all` is the number of all other keys.
    pub fn unjudged(&self, all: u64) -> u64 {
        if self.is_round { 0 } else { all.saturating_sub(self.judged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: u32, is_wrong: bool) -> Row {
        let name = format!("{name:04}");
        let rejected = is_wrong.then(|| "ERR".to_owned());
        Row { name: name.clone().into_bytes(), key: name, rejected, ..Row::default() }
    }

    /// The names of the keys with a problem.
    fn wrong(others: &Others) -> Vec<u32> {
        others.wrong().map(|(row, _)| row.key.parse().expect("a number")).collect()
    }

    #[test]
    fn every_key_is_judged_in_turn_and_again() {
        let mut others = Others::default();
        let mut bad: Vec<u32> = vec![12, 25, 39];
        let first = Rows { rows: (0..10).map(|name| row(name, name == 3)).collect(), left_out: 30 };
        // The keys are 10 to 39, ten in each turn, as a server would return them.
        let look = |others: &mut Others, bad: &[u32], at: u64| {
            let begin =
                others.after.as_ref().map_or(10, |name| String::from_utf8_lossy(name).parse::<u32>().unwrap() + 1);
            let rows: Vec<Row> = (begin..40).take(10).map(|name| row(name, bad.contains(&name))).collect();
            let until = rows.last().map(|row| row.name.clone()).filter(|name| name != b"0039");
            others.take(&first, Turn { rows, until }, at, 100);
        };
        for (at, unjudged, found) in [(1, 20, vec![12]), (2, 10, vec![12, 25]), (3, 0, vec![12, 25, 39])] {
            look(&mut others, &bad, at);
            assert_eq!((others.unjudged(30), wrong(&others)), (unjudged, found), "{at}");
        }
        // The second round over all keys removes from the list only the keys that have no problem any more, or are
        // gone.
        bad = vec![25, 26];
        for (at, found) in [(4, vec![25, 39]), (5, vec![25, 26, 39]), (6, vec![25, 26])] {
            look(&mut others, &bad, at);
            assert_eq!((others.unjudged(30), wrong(&others)), (0, found), "{at}");
        }
        assert_eq!(others.wrong().map(|(_, at)| *at).collect::<Vec<_>>(), [5, 5]);
    }

    #[test]
    fn others_are_bounded_and_exclude_the_first_rows() {
        let mut others = Others::default();
        let none = Rows::default();
        let rows = (0..50).map(|name| row(name, true)).collect();
        others.take(&none, Turn { rows, until: None }, 1, 20);
        assert_eq!(wrong(&others).len(), 20);
        let first = Rows { rows: (0..50).map(|name| row(name, true)).collect(), left_out: 0 };
        others.take(&first, Turn { rows: Vec::new(), until: None }, 2, 20);
        assert_eq!(wrong(&others), [0_u32; 0]);
        assert_eq!(others.unjudged(0), 0);
    }
}
