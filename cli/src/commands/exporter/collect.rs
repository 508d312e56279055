//! Polls all servers in threads. A scrape gets the last answers, so scraping cannot load a server.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::failure::Failure;
use crate::server::{Access, Server, texts};
use crate::watch::{Asked, Info, Nodes, Rows, Scope, rows};

/// Limits the load on the server: polling its keys takes at most 1 / `KEYS_SHARE` of the time.
const KEYS_SHARE: u32 = 10;

/// Figures that are older than three intervals plus this time are hidden, because their server no longer answers.
const GRACE: Duration = Duration::from_secs(15);

/// The intervals between polls, and the keys to poll.
#[derive(Debug, Clone)]
pub struct Polling {
    /// Seconds between two polls of INFO.
    pub interval: u64,
    /// Seconds between two polls of the keys.
    pub keys_interval: u64,
    /// The pattern of the keys to poll; `None` to poll no keys.
    pub pattern: Option<String>,
    pub max_keys: usize,
}

/// A server or cluster that is polled, with its last answers.
pub struct Target {
    polling: Polling,
    info: Mutex<Asker>,
    /// Polls the keys on connections of its own, so that a long poll of the keys does not delay other polls.
    keys: Mutex<Asker>,
    infos: Mutex<Option<Look<Info>>>,
    rows: Mutex<Option<Look<Rows>>>,
}

/// Asks the nodes, and logs to standard error when a node begins to fail and when it answers again.
struct Asker {
    nodes: Nodes,
    /// The noun for the answers in the log, such as `keys`.
    what: &'static str,
    /// The error of each failing node, as last logged.
    failing: BTreeMap<String, String>,
}

impl Asker {
    fn new(url: &str, access: &Access, what: &'static str) -> Result<Mutex<Self>, Failure> {
        Ok(Mutex::new(Asker { nodes: Nodes::new(url, access)?, what, failing: BTreeMap::new() }))
    }

    fn ask<T: Send>(&mut self, question: impl Fn(&mut Server) -> Result<T, Failure> + Sync) -> Vec<Asked<T>> {
        let asked = self.nodes.ask(question);
        self.failing.retain(|server, _| asked.iter().any(|node| node.server == *server));
        for Asked { server, answer, .. } in &asked {
            let what = self.what;
            match answer {
                Ok(_) if self.failing.remove(server).is_some() => log(&format!("{what} of {server} again")),
                Ok(_) => {}
                Err(failure) if self.failing.get(server).is_some_and(|why| why == failure.text()) => {}
                Err(failure) => {
                    let advice = failure.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
                    log(&format!("no {what} of {server}: {}{advice}", failure.text()));
                    self.failing.insert(server.clone(), failure.text().to_owned());
                }
            }
        }
        asked
    }
}

/// Writes one line to standard error. Errors are ignored, because standard error may be closed.
fn log(text: &str) {
    let _ = writeln!(io::stderr().lock(), "rollcall: {}", text.replace('\n', " "));
}

/// The answers of all nodes in one poll.
pub struct Look<T> {
    began: Instant,
    pub at: SystemTime,
    pub nodes: Vec<Asked<T>>,
}

impl<T> Look<T> {
    fn new(began: Instant, nodes: Vec<Asked<T>>) -> Self {
        Look { began, at: SystemTime::now(), nodes }
    }
}

impl Target {
    /// Prepares a target for a URL, without connecting.
    pub fn new(url: &str, access: &Access, polling: Polling) -> Result<Self, Failure> {
        let (info, keys) = (Asker::new(url, access, "figures")?, Asker::new(url, access, "keys")?);
        Ok(Target { polling, info, keys, infos: Mutex::new(None), rows: Mutex::new(None) })
    }

    /// Polls all nodes once.
    pub fn look(&mut self) {
        self.look_at_info();
        self.look_at_keys();
    }

    /// The number of failed answers in the last polls.
    pub fn failures(&self) -> usize {
        let of_nodes = |failed: usize, is_failed: bool| failed + usize::from(is_failed);
        let infos = self.infos().iter().flat_map(|look| &look.nodes).map(|node| node.answer.is_err()).fold(0, of_nodes);
        self.rows().iter().flat_map(|look| &look.nodes).map(|node| node.answer.is_err()).fold(infos, of_nodes)
    }

    /// Starts threads that poll the target until the process ends.
    pub fn watch(targets: &Arc<[Target]>, at: usize) -> Result<(), Failure> {
        let spawn = |name: &str, look: fn(&Target) -> Duration| {
            let targets = targets.clone();
            let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
                loop {
                    thread::sleep(look(&targets[at]));
                }
            });
            thread.map(drop).map_err(|error| Failure::new(format!("cannot start a thread: {error}")))
        };
        spawn("info", Target::look_at_info)?;
        if targets[at].polling.pattern.is_some() {
            spawn("keys", Target::look_at_keys)?;
        }
        Ok(())
    }

    /// Polls INFO, and returns the time to wait until the next poll.
    fn look_at_info(&self) -> Duration {
        let began = Instant::now();
        let asked = lock(&self.info).ask(Info::new);
        *lock(&self.infos) = Some(Look::new(began, asked));
        Duration::from_secs(self.polling.interval).saturating_sub(began.elapsed())
    }

    fn look_at_keys(&self) -> Duration {
        let Some(pattern) = self.polling.pattern.as_deref() else { return Duration::MAX };
        let scope = Scope { pattern: Some(pattern), max_keys: self.polling.max_keys };
        let began = Instant::now();
        let asked = lock(&self.keys).ask(|server| readable_rows(server, &scope));
        *lock(&self.rows) = Some(Look::new(began, asked));
        let took = began.elapsed();
        Duration::from_secs(self.polling.keys_interval).saturating_sub(took).max(took * (KEYS_SHARE - 1))
    }

    /// The last answers to INFO; `None` before the first answer.
    pub fn infos(&self) -> MutexGuard<'_, Option<Look<Info>>> {
        lock(&self.infos)
    }

    /// Whether the answers to INFO are too old to be shown.
    pub fn is_stale(&self, look: &Look<Info>) -> bool {
        look.began.elapsed() > Duration::from_secs(3 * self.polling.interval) + GRACE
    }

    /// Whether the figures of keys are too old to be shown. The limit grows with the duration of a poll, like the
    /// interval.
    pub fn are_keys_stale(&self, look: &Look<Rows>) -> bool {
        let took = look.nodes.iter().map(|node| node.took).max().unwrap_or_default();
        let pause = Duration::from_secs(self.polling.keys_interval).max(took * KEYS_SHARE);
        look.began.elapsed() > 3 * pause + GRACE
    }

    /// The rows of keys; `None` before the first answer, and if no keys are polled.
    pub fn rows(&self) -> MutexGuard<'_, Option<Look<Rows>>> {
        lock(&self.rows)
    }
}

/// The rows of keys, if the user may read all of them.
fn readable_rows(server: &mut Server, scope: &Scope<'_>) -> Result<Rows, Failure> {
    let rows = rows(server, scope)?;
    let mut rejected = rows.rows.iter().filter_map(|row| Some((row, row.rejected.as_ref()?)));
    match rejected.find(|(_, text)| texts::is_forbidden(text)) {
        Some((row, text)) => Err(server.rejected(&row.name, &format!("questions about {}", row.key), text)),
        None => Ok(rows),
    }
}

/// Locks a mutex, even if another thread panicked while it held the lock. The data under the lock is always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
