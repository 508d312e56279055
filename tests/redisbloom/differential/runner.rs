//! Sends a sequence to both servers and compares their replies, step by step.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use super::differences::{Case, DIFFERENCES};
use super::sequences::{Command, FILTERS, Layout, NUM_ITEMS, OTHERS, Step, words};
use rollcall_testkit::{Client, Reply, Server, Setup, deadline, typed};

/// Starts both servers with the same defaults.
pub fn servers(peer: &Path, layout: Layout) -> (Server, Server) {
    // In the layout `lines`, both servers have different false positives. At this low rate, no item of a run is one.
    let (ours, theirs) = match layout {
        Layout::Classic => ("bf-layout classic", ""),
        Layout::Lines => ("bf-error-rate 1e-9", " ERROR_RATE 0.000000001"),
    };
    let ours = Server::with_args(&format!("{ours} max-key-bytes 16mb"));
    let theirs = Setup::default().without_module().line(&format!("loadmodule {}{theirs}", peer.display())).start();
    (ours, theirs)
}

/// How often each difference was seen.
pub type Hits = BTreeMap<&'static str, u64>;

/// An unintended difference.
#[derive(Debug)]
pub struct Found {
    command: Command,
    ours: Reply,
    theirs: Reply,
}

/// The result of a comparison: whether both servers may have different data from now on, or an unintended difference.
type Compared = Result<bool, Box<Found>>;

/// The replies of BF.SCANDUMP: iterators and chunks.
type Chunks = Vec<(i64, Vec<u8>)>;

/// A connection to each server.
pub struct Pair {
    layout: Layout,
    ours: Client,
    theirs: Client,
    pub hits: Hits,
    pub calls: u64,
}

impl Pair {
    pub fn connect(servers: &(Server, Server), layout: Layout, resp3: bool) -> Pair {
        let client = |server: &Server| if resp3 { server.client3() } else { server.client() };
        let (ours, theirs) = (client(&servers.0), client(&servers.1));
        Pair { layout, ours, theirs, hits: Hits::new(), calls: 0 }
    }

    /// Runs a sequence on empty servers, and compares all data afterwards.
    pub fn run(&mut self, sequence: &[Step]) -> Result<(), Box<Found>> {
        self.reset();
        for step in sequence {
            let diverged = match step {
                Step::Call(command) => self.call(command)?,
                Step::Transaction(commands) => self.transaction(commands)?,
                Step::Script(command, resp3) => self.script(command, *resp3)?,
                Step::Transfer { from, to, chunks } => self.transfer(from, to, *chunks)?,
                Step::Expire(key) => self.expire(key)?,
            };
            if diverged {
                self.reset();
            }
        }
        self.compare_data()
    }

    /// Shortens a sequence as far as the servers' replies still differ. Returns a description of the sequence and the
    /// difference.
    pub fn minimise(&mut self, mut sequence: Vec<Step>, mut found: Found) -> String {
        let mut at = sequence.len();
        while at > 0 {
            at -= 1;
            let mut shorter = sequence.clone();
            shorter.remove(at);
            if let Err(again) = self.run(&shorter) {
                (sequence, found) = (shorter, *again);
                at = sequence.len().min(at + 1);
            }
        }
        let mut text = String::new();
        for step in &sequence {
            let _ = writeln!(text, "  {}", show(step));
        }
        let Found { command, ours, theirs } = found;
        let _ = writeln!(text, "differ in {}\n  ours   {ours:?}\n  theirs {theirs:?}", show_command(&command));
        text
    }

    fn both(&mut self, command: &Command) -> (Reply, Reply) {
        self.calls += 1;
        self.ours.send(command);
        self.theirs.send(command);
        (self.ours.receive_exact(), self.theirs.receive_exact())
    }

    fn reset(&mut self) {
        self.both(&words("FLUSHALL"));
        for (_, line) in OTHERS {
            self.both(&words(line));
        }
    }

    /// Compares the replies of both servers to a command.
    fn compare(&mut self, command: &Command, wrapped: bool, ours: Reply, theirs: Reply) -> Compared {
        let case = Case { layout: self.layout, command, wrapped, ours: &ours, theirs: &theirs };
        if ours == theirs {
            return Ok(case.has_own_options());
        }
        match DIFFERENCES.iter().find(|difference| (difference.explains)(&case)) {
            Some(difference) => {
                *self.hits.entry(difference.name).or_default() += 1;
                Ok(difference.diverges)
            }
            None => Err(Box::new(Found { command: command.clone(), ours, theirs })),
        }
    }

    fn call(&mut self, command: &Command) -> Compared {
        let (ours, theirs) = self.both(command);
        self.compare(command, false, ours, theirs)
    }

    fn transaction(&mut self, commands: &[Command]) -> Compared {
        self.both(&words("MULTI"));
        let mut rejected = false;
        for command in commands {
            let (ours, theirs) = self.both(command);
            // An error in a queued command makes the server reject the whole transaction.
            rejected |= ours != theirs;
            if let Err(found) = self.compare(command, true, ours, theirs) {
                self.both(&words("DISCARD"));
                return Err(found);
            }
        }
        let exec = words("EXEC");
        let (ours, theirs) = self.both(&exec);
        if rejected {
            return Ok(true);
        }
        let (Reply::List(b'*', one), Reply::List(b'*', other)) = (&ours, &theirs) else {
            return self.compare(&exec, false, ours, theirs);
        };
        if one.len() != commands.len() || other.len() != commands.len() {
            return Err(Box::new(Found { command: exec, ours, theirs }));
        }
        let mut diverged = false;
        for (command, (one, other)) in commands.iter().zip(one.iter().zip(other)) {
            // If only one server executed the command, later replies differ too.
            if !diverged {
                diverged = self.compare(command, true, one.clone(), other.clone())?;
            }
        }
        Ok(diverged)
    }

    fn script(&mut self, command: &Command, resp3: bool) -> Compared {
        let body = if resp3 { "redis.setresp(3) return" } else { "return" };
        let mut call = vec![b"EVAL".to_vec(), format!("{body} redis.pcall(unpack(ARGV))").into_bytes(), b"0".to_vec()];
        call.extend(command.iter().cloned());
        let (ours, theirs) = self.both(&call);
        self.compare(command, true, ours, theirs)
    }

    fn transfer(&mut self, from: &[u8], to: &[u8], chunks: usize) -> Compared {
        let Some((ours, theirs)) = self.dump(from)? else { return Ok(false) };
        let whole = chunks >= ours.len().max(theirs.len());
        if self.layout == Layout::Lines || ours.len() != theirs.len() {
            // The servers cut dumps into different chunks. So only complete dumps or single headers are compared,
            // under new keys. For a small filter, this module's header contains everything.
            let (exists, _) = self.both(&[words("EXISTS"), vec![to.to_vec()]].concat());
            if exists.number() != Some(0) || !(whole || (chunks == 1 && ours.len() > 1)) {
                return Ok(false);
            }
        }
        for index in 0..ours.len().max(theirs.len()).min(chunks) {
            let command = |(next, chunk): &(i64, Vec<u8>)| {
                vec![b"BF.LOADCHUNK".to_vec(), to.to_vec(), next.to_string().into_bytes(), chunk.clone()]
            };
            match (ours.get(index).map(command), theirs.get(index).map(command)) {
                (Some(one), Some(other)) => {
                    self.calls += 1;
                    self.ours.send(&one);
                    self.theirs.send(&other);
                    let replies = (self.ours.receive_exact(), self.theirs.receive_exact());
                    if self.compare(&one, false, replies.0, replies.1)? {
                        return Ok(true);
                    }
                }
                (Some(one), None) => {
                    let reply = self.ours.call_exact(&one);
                    assert_eq!(reply, Reply::Line(b'+', "OK".into()), "our own chunk");
                }
                (None, Some(other)) => {
                    let reply = self.theirs.call_exact(&other);
                    assert_eq!(reply, Reply::Line(b'+', "OK".into()), "their own chunk");
                }
                (None, None) => {}
            }
        }
        Ok(false)
    }

    /// All chunks of a key from each server; `None` if the key has no filter.
    fn dump(&mut self, key: &[u8]) -> Result<Option<(Chunks, Chunks)>, Box<Found>> {
        let mut chunks = (Chunks::new(), Chunks::new());
        let mut at = (0, 0);
        let command = |iterator: i64| vec![b"BF.SCANDUMP".to_vec(), key.to_vec(), iterator.to_string().into_bytes()];
        // Reads both dumps in parallel, and then the rest of the longer one.
        for round in 0.. {
            let (one, other) = (command(at.0), command(at.1));
            let go_on = (round == 0 || at.0 != 0, round == 0 || at.1 != 0);
            if go_on == (false, false) {
                break;
            }
            let ours = go_on.0.then(|| self.ours.call_exact(&one));
            let theirs = go_on.1.then(|| self.theirs.call_exact(&other));
            self.calls += 1;
            for (reply, at, chunks) in [(&ours, &mut at.0, &mut chunks.0), (&theirs, &mut at.1, &mut chunks.1)] {
                let Some(reply) = reply else { continue };
                match reply.elements() {
                    [next, chunk] => {
                        *at = next.number().expect("an iterator");
                        let chunk = chunk.bulk().expect("a chunk");
                        assert_eq!(*at == 0, chunk.is_empty(), "only the end is empty: {reply:?}");
                        if *at != 0 {
                            chunks.push((*at, chunk.to_vec()));
                        }
                    }
                    _ => *at = 0,
                }
            }
            // For a filter of more than 1 MiB, the servers' chunks differ. The complete dumps are compared at the
            // end.
            let is_cut = self.layout == Layout::Classic && chunks.1.iter().any(|(_, chunk)| chunk.len() > 1 << 20);
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                let failed = ours.error().is_some() || theirs.error().is_some();
                if !is_cut {
                    self.compare(&one, false, ours, theirs)?;
                }
                if failed {
                    return Ok(None);
                }
            }
        }
        if self.layout == Layout::Classic {
            let all = |chunks: &Chunks| chunks.iter().flat_map(|(_, chunk)| chunk).copied().collect::<Vec<_>>();
            let (ours, theirs) = (all(&chunks.0), all(&chunks.1));
            if ours != theirs {
                let [ours, theirs] = [ours, theirs].map(|bytes| Reply::Line(b'#', format!("{} bytes", bytes.len())));
                return Err(Box::new(Found { command: command(0), ours, theirs }));
            }
        }
        Ok(Some(chunks))
    }

    fn expire(&mut self, key: &[u8]) -> Compared {
        let command = [words("PEXPIRE"), vec![key.to_vec()], words("1")].concat();
        if self.call(&command)? {
            return Ok(true);
        }
        let ask = [words("PTTL"), vec![key.to_vec()]].concat();
        let end = Instant::now() + deadline();
        while [self.ours.call_exact(&ask), self.theirs.call_exact(&ask)].iter().any(|reply| reply.number() != Some(-2))
        {
            assert!(Instant::now() < end, "{} does not expire", key.escape_ascii());
        }
        Ok(false)
    }

    /// Compares everything that the servers report about every key.
    fn compare_data(&mut self) -> Result<(), Box<Found>> {
        self.call(&words("DBSIZE"))?;
        let items: Vec<_> = (0..NUM_ITEMS).map(|item| format!("item:{item}").into_bytes()).collect();
        for key in FILTERS {
            let mut diverged = false;
            for (name, rest) in [
                ("TYPE", &[][..]),
                ("BF.CARD", &[]),
                ("BF.INFO", &[]),
                ("BF.DEBUG", &[]),
                ("BF.MEXISTS", &items),
                ("PERSIST", &[]),
            ] {
                let command = [vec![name.as_bytes().to_vec(), key.to_vec()], rest.to_vec()].concat();
                if !diverged {
                    diverged = self.call(&command)?;
                }
            }
            if !diverged {
                self.dump(key)?;
            }
        }
        Ok(())
    }
}

fn show_command(command: &Command) -> String {
    typed(command, 100)
}

fn show(step: &Step) -> String {
    match step {
        Step::Call(command) => show_command(command),
        Step::Transaction(commands) => {
            format!("MULTI; {}; EXEC", commands.iter().map(show_command).collect::<Vec<_>>().join("; "))
        }
        Step::Script(command, resp3) => format!("EVAL (RESP3: {resp3}): {}", show_command(command)),
        Step::Transfer { from, to, chunks } => {
            format!("the first {chunks} chunks of \"{}\" into \"{}\"", from.escape_ascii(), to.escape_ascii())
        }
        Step::Expire(key) => format!("PEXPIRE \"{}\" 1, and wait", key.escape_ascii()),
    }
}
