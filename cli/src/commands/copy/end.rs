//! Compares both servers once more at the end of a copy, because keys also come, go and change by commands of the
//! server, such as RENAME.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{BATCH, NONE, Step, types};
use super::report::{Moved, Outcome};
use super::{Copying, planned};
use crate::failure::Failure;
use crate::server::{Key, Server, Writes, expires_at, fingerprint, is_temporary, text};

impl Copying<'_> {
    /// Compares the keys of both servers. Each difference becomes an outcome in the report.
    pub(super) fn compare(&mut self) -> Result<(), Failure> {
        let writes = Writes::new(&mut self.source)?;
        let is_replaced = writes != self.before;
        let new = self.scan_again()?;
        self.compare_copied(is_replaced)?;
        // Values were not compared yet, and some may have been replaced meanwhile.
        if !is_replaced && Writes::new(&mut self.source)? != writes {
            self.compare_copied(true)?;
        }
        self.name_new(new)?;
        self.check_writers()
    }

    /// Compares the copied keys, and the keys that were gone before they were copied: the target may have old values.
    fn compare_copied(&mut self, is_replaced: bool) -> Result<(), Failure> {
        let is_copied =
            |at: &usize| matches!(self.report.moves[*at].outcome, Outcome::Moved | Outcome::Equal | Outcome::Gone);
        let copied: Vec<usize> = (0..self.report.moves.len()).filter(is_copied).collect();
        let mut clocks = Clocks::new();
        for batch in copied.chunks(BATCH) {
            self.look()?;
            self.compare_batch(batch, is_replaced, &mut clocks)?;
        }
        Ok(())
    }

    /// The keys of the source that no row of the report has, or whose row is only of a key that was gone. The rows of
    /// the report are in order of names.
    fn scan_again(&mut self) -> Result<Vec<Key>, Failure> {
        self.source.refresh()?;
        let (moves, mut new) = (&self.report.moves, BTreeSet::new());
        self.source.scan_each(self.arguments.pattern.as_deref(), &mut |key| {
            let row = row_of(moves, &key.name).ok().map(|at| moves[at].outcome);
            if matches!(row, None | Some(Outcome::Gone)) && !is_temporary(&key.name) {
                new.insert(key);
            }
        })?;
        Ok(new.into_iter().collect())
    }

    /// Compares copied keys, given by the indices of their rows.
    fn compare_batch(&mut self, batch: &[usize], is_replaced: bool, clocks: &mut Clocks) -> Result<(), Failure> {
        let names: Vec<&[u8]> = batch.iter().map(|&at| &self.report.moves[at].name[..]).collect();
        let (here, there) = (types(&mut self.source, &names)?, types(&mut self.target, &names)?);
        for (&at, (here, there)) in batch.iter().zip(here.into_iter().zip(there)) {
            if is_replaced {
                self.look()?;
            }
            let row = &self.report.moves[at];
            let own = row.class.type_name();
            let difference = match (here == own, there == own) {
                (true, true) if is_replaced => changed((&mut self.source, &mut self.target), clocks, row)?,
                (true, false) => missing((&mut self.source, &mut self.target), clocks, row, &there)?,
                (false, true) => superfluous(&mut self.source, clocks, row, &here)?,
                _ => None,
            };
            if let Some((outcome, note)) = difference {
                let row = &mut self.report.moves[at];
                (row.outcome, row.note) = (outcome, note);
            }
        }
        Ok(())
    }

    /// Adds those keys to the report of which the target has no equal value.
    fn name_new(&mut self, keys: Vec<Key>) -> Result<(), Failure> {
        let plan = self.plan(keys, false)?;
        let known = self.report.moves.len();
        for step in &plan.steps {
            let note = match &step.step {
                Step::Equal => continue,
                Step::Move => "came to the source after the first scan".to_owned(),
                Step::Reject(reason) => reason.clone(),
            };
            let row = Moved { outcome: Outcome::Missing, note, ..planned(step) };
            match row_of(&self.report.moves[..known], &row.name) {
                Ok(at) => self.report.moves[at] = row,
                Err(_) => self.report.moves.push(row),
            }
        }
        Ok(())
    }
}

/// The index of the row of a key, or where the row would be.
fn row_of(moves: &[Moved], name: &[u8]) -> Result<usize, usize> {
    moves.binary_search_by(|row| row.name[..].cmp(name))
}

/// The latest known time of each node by its own clock, in milliseconds since 1970.
type Clocks = BTreeMap<String, u64>;

/// Whether a key that had this expiry time has expired by the clock of its server.
fn has_expired(server: &mut Server, clocks: &mut Clocks, key: &[u8], expires_at: Option<u64>) -> Result<bool, Failure> {
    let Some(expires_at) = expires_at else { return Ok(false) };
    let node = server.node_of(key);
    let now = clocks.entry(server.node_name(node)).or_default();
    if *now < expires_at {
        let info = server.call_node(node, redis::cmd("INFO").arg("server"))?;
        let info = text(&info).unwrap_or_default();
        let micros = info.lines().find_map(|line| line.strip_prefix("server_time_usec:")?.trim().parse::<u64>().ok());
        *now = micros.map_or(*now, |micros| micros / 1000);
    }
    Ok(expires_at <= *now)
}

/// What a server has in the place of a copied key, from the key's type.
fn other(server: &str, found: &str) -> String {
    match found {
        NONE => format!("no longer at the {server}"),
        found => format!("the {server} has a value of type {found} there"),
    }
}

/// The outcome of a key and its note; `None` if source and target are equal.
type Difference = Option<(Outcome, String)>;

/// The difference of a key that the source has, and the target has not: `there` is the type of what it has.
fn missing(
    (source, target): (&mut Server, &mut Server),
    clocks: &mut Clocks,
    row: &Moved,
    there: &str,
) -> Result<Difference, Failure> {
    let expires_at = expires_at(source, &row.name)?;
    // Without an expiry time, the key may be gone since its type was asked for.
    let is_gone = expires_at.is_none() && types(source, &[&row.name])? == [NONE];
    let is_expired = there == NONE && has_expired(target, clocks, &row.name, expires_at)?;
    Ok((!is_gone && !is_expired).then(|| (Outcome::Missing, other("target", there))))
}

/// The difference of a key that the target has, and the source has not: `here` is the type of what it has.
fn superfluous(source: &mut Server, clocks: &mut Clocks, row: &Moved, here: &str) -> Result<Difference, Failure> {
    let is_expired = here == NONE && has_expired(source, clocks, &row.name, row.expires_at)?;
    Ok((!is_expired).then(|| (Outcome::Superfluous, other("source", here))))
}

/// How the source's value differs from the copied one.
fn changed(
    (source, target): (&mut Server, &mut Server),
    clocks: &mut Clocks,
    row: &Moved,
) -> Result<Difference, Failure> {
    let now = fingerprint(source, row.class, &row.name)?;
    if now.is_none() {
        return superfluous(source, clocks, row, NONE);
    }
    // The window of the copy may have advanced exactly as far as that of its source.
    if now == row.fingerprint || fingerprint(target, row.class, &row.name)? == now {
        return Ok(None);
    }
    Ok(Some((Outcome::Behind, "changed while it was copied: may lack items".to_owned())))
}
