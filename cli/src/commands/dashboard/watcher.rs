//! The only thread that polls the server. So the load on the server does not depend on the number of open pages.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::seen::{Place, Seen, id_of, now_ms};
use super::state::{COUNTER, Node, ShownRow, State, Totals, Trouble};
use crate::failure::Failure;
use crate::server::Server;
use crate::watch::{Asked, Info, Nodes, Others, Row, Rows, Scope, Turn, history};

/// Limits the load on the server: polls take at most 1 / `SHARE` of the time.
const SHARE: u32 = 10;

/// The slices of a windowed counter: the Unix time at which each slice begins, and its number of members. `Err` says
/// why the slices are not known.
pub type Slices = Result<Vec<(i64, i64)>, String>;

/// A page's request for the slices of a counter.
pub struct Question {
    pub place: Place,
    pub answer: oneshot::Sender<Slices>,
}

/// The keys to poll, and the time between two polls.
pub struct Schedule {
    /// The name of the server for display.
    pub name: String,
    /// Whether other nodes of a cluster are not asked.
    pub is_alone: bool,
    pub pattern: Option<String>,
    pub max_keys: usize,
    pub interval: Duration,
}

/// Polls the server at intervals, and publishes the results.
pub struct Watcher {
    nodes: Nodes,
    schedule: Schedule,
    seen: Arc<Mutex<Seen>>,
    started: u64,
    looked: Option<u64>,
    /// The last answer of each node.
    last: BTreeMap<String, (Option<Info>, Rows)>,
    /// The keys of each node that are not shown. They are judged in turns.
    others: BTreeMap<String, Others>,
    troubles: BTreeMap<String, Trouble>,
    /// Slices that were fetched since the last poll.
    slices: HashMap<Vec<u8>, Slices>,
}

/// Locks the state. The panic of another thread leaves the state consistent, because each change is a single
/// assignment.
pub fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    /// A watcher before its first poll.
    pub fn new(nodes: Nodes, schedule: Schedule, seen: Arc<Mutex<Seen>>) -> Self {
        let (last, others, troubles) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (started, slices) = (now_ms(), HashMap::new());
        let watcher = Watcher { nodes, schedule, seen, started, looked: None, last, others, troubles, slices };
        watcher.publish(Duration::ZERO, 0);
        watcher
    }

    /// Polls the server at intervals and answers questions in between. Returns when no page can ask any more.
    pub fn run(mut self, questions: &Receiver<Question>) {
        loop {
            let began = Instant::now();
            self.look();
            let next = began + self.schedule.interval.max(began.elapsed() * SHARE);
            loop {
                match questions.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(Question { place, answer }) => {
                        // Sending fails if the page that asked has gone.
                        let _ = answer.send(self.slices_of(&place));
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    fn ask(&mut self) -> Vec<Asked<(Option<Info>, Rows, Turn)>> {
        let scope = Scope { pattern: self.schedule.pattern.as_deref(), max_keys: self.schedule.max_keys };
        let (others, none) = (&self.others, Others::default());
        self.nodes.ask(|server| {
            // INFO may fail for lack of permission while the keys can be read. If the connection was lost, the next
            // question fails too.
            let info = Info::new(server).ok();
            let (rows, turn) = others.get(&server.name()).unwrap_or(&none).look(server, &scope)?;
            Ok((info, rows, turn))
        })
    }

    fn look(&mut self) {
        let began = Instant::now();
        let asked = self.ask();
        let (took, now) = (began.elapsed(), now_ms());
        let is_there = |name: &String| asked.iter().any(|asked| asked.server == *name);
        self.last.retain(|name, _| is_there(name));
        self.others.retain(|name, _| is_there(name));
        self.troubles.retain(|name, _| is_there(name));
        for Asked { server, answer, .. } in asked {
            match answer {
                Ok((info, rows, turn)) => {
                    self.looked = Some(now);
                    self.troubles.remove(&server);
                    self.others.entry(server.clone()).or_default().take(&rows, turn, now, self.schedule.max_keys);
                    self.last.insert(server, (info, rows));
                }
                Err(failure) => {
                    let since = self.troubles.get(&server).map_or(now, |trouble| trouble.since);
                    self.troubles.insert(server.clone(), Trouble::new(&server, since, &failure));
                }
            }
        }
        self.slices.clear();
        self.publish(took, now);
    }

    /// Adds the results of the poll at `now` to the history, and publishes the state for pages.
    fn publish(&self, took: Duration, now: u64) {
        let at = now / 1000;
        let is_unread = self.looked != Some(now);
        let mut all: Vec<&Row> = self.last.values().flat_map(|(_, rows)| &rows.rows).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let over = all.split_off(all.len().min(self.schedule.max_keys));
        let mut left_out = self.last.values().map(|(_, rows)| rows.left_out).sum::<u64>() + over.len() as u64;
        let unjudged = |(name, (_, rows)): (&String, &(_, Rows))| Some(self.others.get(name)?.unjudged(rows.left_out));
        let unjudged = self.last.iter().filter_map(unjudged).sum();
        // Findings are shown even for rows beyond the limit.
        let over = over.into_iter().filter(|row| row.is_wrong()).map(|row| (row, now));
        let others = self.others.values().flat_map(Others::wrong).map(|(row, at)| (row, *at));
        let wrong: Vec<(&Row, u64)> = over.chain(others).collect();
        left_out = left_out.saturating_sub(wrong.len() as u64);
        let infos: Vec<&Info> = self.last.values().filter_map(|(info, _)| info.as_ref()).collect();
        let infos = if infos.len() == self.last.len() { infos } else { Vec::new() };
        let totals = Totals::new(&infos, &all, self.schedule.pattern.is_some());
        let mut seen = lock(&self.seen);
        let mut shown = Vec::with_capacity(all.len() + wrong.len());
        for (row, judged) in all.into_iter().map(|row| (row, now)).chain(wrong) {
            let is_new = judged == now && !is_unread && !self.troubles.contains_key(&row.server);
            shown.push(shown_row(&mut seen, row, is_new.then_some(at)));
        }
        if is_unread {
            seen.interrupt();
        } else {
            seen.end_look(at);
            if self.troubles.is_empty() {
                seen.add_totals(at, [totals.items, totals.members, totals.bytes].map(|sum| sum as f64));
            } else {
                seen.interrupt_totals();
            }
        }
        let state = State {
            version: env!("CARGO_PKG_VERSION"),
            server: &self.schedule.name,
            pattern: self.schedule.pattern.as_deref(),
            interval: self.schedule.interval.as_secs(),
            started: self.started,
            looked: self.looked,
            took_ms: took.as_millis() as u64,
            is_part: self.schedule.is_alone && infos.iter().any(|info| info.is_in_cluster),
            is_unread: is_unread && !self.troubles.is_empty(),
            troubles: self.troubles.values().collect(),
            totals,
            nodes: self.last.iter().filter_map(|(name, (info, _))| Some(Node { name, info: info.as_ref()? })).collect(),
            rows: shown,
            left_out,
            unjudged,
        };
        seen.set_state(serde_json::to_string(&state).unwrap_or_else(|_| "null".to_owned()));
    }

    fn slices_of(&mut self, place: &Place) -> Slices {
        if let Some(slices) = self.slices.get(&place.name) {
            return slices.clone();
        }
        let ask = |server: &mut Server| -> Result<_, Failure> {
            if server.name() == place.node { history(server, &place.name).map(Some) } else { Ok(None) }
        };
        let asked = self.nodes.ask(ask).into_iter().filter(|asked| asked.server == place.node);
        let mut answers = asked.filter_map(|asked| asked.answer.transpose());
        let slices = match answers.next() {
            Some(Ok(slices)) => Ok(slices),
            Some(Err(failure)) => Err(failure.text().to_owned()),
            None => Err(format!("{} is not among the servers any more", place.node)),
        };
        self.slices.insert(place.name.clone(), slices.clone());
        slices
    }
}

/// A row for pages. `at` is when its key was read, if that was in this poll: its figures then become history.
fn shown_row<'a>(seen: &mut Seen, row: &'a Row, at: Option<u64>) -> ShownRow<'a> {
    let id = id_of(&row.name);
    let has_slices = row.kind == COUNTER && row.window.is_some();
    let trend = at.and_then(|at| {
        let place = Place { name: row.name.clone(), node: row.server.clone(), has_slices };
        let number = |value: Option<i64>| value.map_or(f64::NAN, |value| value as f64);
        let values = [number(row.items), number(row.capacity), number(row.bytes), row.rate.unwrap_or(f64::NAN)];
        seen.add_key(&id, &place, at, values)
    });
    let (growth, growth_seconds) =
        (trend.as_ref().map(|trend| trend.growth), trend.as_ref().map(|trend| trend.seconds));
    ShownRow { id, row, has_slices, trend: trend.map(|trend| trend.digits), growth, growth_seconds }
}
