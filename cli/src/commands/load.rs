//! `load`: loads the values of a file into keys, or merges them into keys. An interrupted load continues.

use std::path::PathBuf;

use clap::Args;
use rollcall_core::persist::file::{FileError, Writer};
use rollcall_core::unstable::persist::{has_window, is_redisbloom_header, unstamped};
use rollcall_core::unstable::wire::StillLoading;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::failure::Failure;
use crate::file::{Entry, Kind, Reader};
use crate::interrupt::Interrupt;
use crate::numbers::{self, expires_in};
use crate::output::Output;
use crate::progress;
use crate::server::{Answer, Class, Fingerprint, LOADED, Named, Server, Summing, Url, texts};
use crate::server::{arrive, beside, check_rights, fingerprint, integer, named, naming, pairs, shown};
use crate::table;

/// The advice after an interrupted load.
const GO_ON: &str = "run the same again: what has arrived stays for a day, and a server of ours goes on after it";

/// The setting for the longest argument that a server takes, and its default in bytes.
const MAX_ARGUMENT: &str = "proto-max-bulk-len";
const DEFAULT_MAX_ARGUMENT: u64 = 512 << 20;

/// Replies of `PTTL` for a key without a time to live, and for a missing key.
const ENDLESS: i64 = -1;
const MISSING: i64 = -2;

/// Arguments of `load`.
#[derive(Debug, Args)]
pub struct Load {
    /// A file that `dump`, `build` or `merge` has written
    file: PathBuf,
    /// The key to load the value to, if the file has one value [default: the key that the file names for each value]
    key: Option<String>,
    /// Replace the key if it exists
    #[arg(long)]
    replace: bool,
    /// Merge the value into the key if it exists: the key becomes the union of both, and keeps its time to live
    #[arg(long, conflicts_with = "replace")]
    merge: bool,
    /// Load the values without their times to live
    #[arg(long)]
    no_ttl: bool,
    /// The keys that are created or replaced expire after this time, instead of that of the file: 3600 (seconds), 15m,
    /// 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = numbers::expiry, conflicts_with = "no_ttl")]
    ex: Option<u64>,
    #[command(flatten)]
    url: Url,
}

/// A value that was loaded.
#[derive(Debug, Serialize)]
struct Loaded {
    key: String,
    kind: &'static str,
    bytes: u64,
    /// Number of bytes that an earlier, interrupted load had already transferred.
    resumed_bytes: u64,
    /// Whether the loaded value was read back and is equal.
    compared: bool,
    /// Whether the value was merged into a key that existed.
    merged: bool,
}

impl Load {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let interrupt = Interrupt::listen()?;
        // A damaged file is found before anything is sent.
        let mut reader = Reader::open_verified(&self.file)?;
        let mut server = Server::connect(&self.url.url, &self.url.access)?;
        let mut all = Vec::new();
        while let Some(entry) = reader.next_value()? {
            if self.key.is_some() && !all.is_empty() {
                return Err(Failure::new(format!("{} has more than one value", self.file.display()))
                    .advise("the first is loaded; without a key each is loaded as the key that it had"));
            }
            let key = self.key.clone().map(String::into_bytes).or_else(|| entry.key.clone()).ok_or_else(|| {
                Failure::arguments(format!("{} does not name the key", self.file.display()))
                    .advise("rollcall load FILE KEY")
            })?;
            all.push(self.load(&mut server, &mut reader, &entry, &key, &interrupt)?);
        }
        if all.is_empty() {
            return Err(Failure::nothing(format!("{} has no values", self.file.display())));
        }
        output.answer(&all, |all| all.iter().map(Loaded::text).collect::<Vec<_>>().join("\n"))
    }

    fn load(
        &self,
        server: &mut Server,
        reader: &mut Reader<impl std::io::Read>,
        entry: &Entry,
        key: &[u8],
        interrupt: &Interrupt,
    ) -> Result<Loaded, Failure> {
        let left = time_left(server, key)?;
        let exists = left != MISSING;
        let is_merge = exists && self.merge;
        if exists && !self.merge && !self.replace {
            return Err(Failure::new(format!("the key {} exists", shown(key)))
                .advise("replace it with --replace, or unite both with --merge"));
        }
        let expires_at = if is_merge { None } else { self.expires_at(entry, key)? };
        let empty = || Failure::new(format!("{} has a value without chunks", self.file.display()));
        let header = reader.next_chunk()?.ok_or_else(empty)?;
        let class = match entry.kind {
            Kind::Counter => Class::Counter,
            Kind::Filter if is_redisbloom_header(&header.1) => Class::Classic,
            Kind::Filter => Class::Filter,
            other => return Err(Failure::new(format!("{}: this tool loads no {other}", self.file.display()))),
        };
        if is_merge {
            let merged = merge(server, class, key, entry.kind, header, reader)?;
            // If the key expired meanwhile, the merge has made a new one.
            if left >= 0
                && time_left(server, key)? == ENDLESS
                && let Some(at) = self.expires_at(entry, key)?
            {
                server.call(key, redis::cmd("PEXPIREAT").arg(key).arg(at))?;
            }
            return Ok(merged);
        }
        // The temporary name has a hash of the header, so a load never continues the value of another file.
        let prefix = format!("{LOADED}{:016x}:", xxh3_64(&header.1));
        let temporary = beside(&prefix, key).unwrap_or_else(|| [prefix.as_bytes(), key].concat());
        let mut arriving = Arriving { server, class, temporary };
        arriving.check_command()?;
        let is_window = has_window(&header.1);
        let (sent, resumed_bytes) = arriving.send(header, reader, interrupt)?;
        let compared = arriving.fingerprint()?.as_ref() == Some(&sent);
        // A window with the system clock may have moved on since it was dumped, so its value may differ.
        if !compared && !is_window {
            arriving.unlink()?;
            let key = shown(key);
            return Err(Failure::does_not_hold(format!("{key}: what the server has is not what the file has")));
        }
        arriving.name(key, expires_at, self.replace)?;
        let (key, kind) = (shown(key), class.noun());
        Ok(Loaded { key, kind, bytes: sent.bytes, resumed_bytes, compared, merged: false })
    }

    /// When the loaded key will expire. Fails if that time is over.
    fn expires_at(&self, entry: &Entry, key: &[u8]) -> Result<Option<u64>, Failure> {
        let expires_at = match self.ex {
            Some(seconds) => Some(expires_in(seconds)),
            None => entry.expires_at.filter(|_| !self.no_ttl),
        };
        if expires_at.is_some_and(|at| at <= expires_in(0)) {
            return Err(Failure::new(format!("the time of {} is over", shown(key)))
                .advise("load it without its time to live, --no-ttl, or with another, --ex TIME"));
        }
        Ok(expires_at)
    }
}

/// The reply of `PTTL`.
fn time_left(server: &mut Server, key: &[u8]) -> Result<i64, Failure> {
    Ok(integer(&server.call(key, redis::cmd("PTTL").arg(key))?).unwrap_or(MISSING))
}

/// Merges a value into a key that exists, by one command.
fn merge(
    server: &mut Server,
    class: Class,
    key: &[u8],
    kind: Kind,
    header: (u64, Vec<u8>),
    reader: &mut Reader<impl std::io::Read>,
) -> Result<Loaded, Failure> {
    let name = format!("{}.MERGEDUMP", class.family());
    // The command is tried without arguments first. The error for an unknown command repeats the arguments.
    if let Err(text) = server.ask(key, &redis::cmd(&name))?
        && texts::is_unknown_command(&text)
    {
        let failure = server.rejected(key, &name, &text);
        return Err(match class {
            Class::Classic => failure.advise("it merges classic filters only if BF.* is this module's"),
            _ => failure,
        });
    }
    // The server closes the connection at a longer argument. The default is assumed if the user may not ask.
    let answer = server.ask(key, redis::cmd("CONFIG").arg("GET").arg(MAX_ARGUMENT))?;
    let most = answer.ok().and_then(|reply| integer(&pairs(&reply).first()?.1)?.try_into().ok());
    let most = most.unwrap_or(DEFAULT_MAX_ARGUMENT);
    let check = |bytes: u64| {
        if bytes <= most {
            return Ok(());
        }
        let (most, key, family) = (table::bytes(most), shown(key), class.family());
        Err(Failure::new(format!("{key}: the server takes arguments of at most {most}, and the value is longer"))
            .advise(format!(
                "load the file as another key, in a cluster in the same slot, then {family}.MERGE {key} OTHER. Or \
                 raise {MAX_ARGUMENT}, above 1 GB also client-query-buffer-limit"
            )))
    };
    let failed = |error: FileError| Failure::new(error.to_string());
    let mut payload = Writer::new(Vec::new()).map_err(failed)?;
    payload.begin(&Entry::new(kind)).map_err(failed)?;
    let (mut bytes, mut next) = (0, Some(header));
    while let Some((iterator, chunk)) = next {
        bytes += chunk.len() as u64;
        check(bytes)?;
        payload.chunk(iterator, &chunk).map_err(failed)?;
        next = reader.next_chunk()?;
    }
    payload.end().map_err(failed)?;
    let payload = payload.finish().map_err(failed)?;
    check(payload.len() as u64)?;
    server.call(key, redis::cmd(&name).arg(key).arg(payload))?;
    let (key, kind) = (shown(key), class.noun());
    Ok(Loaded { key, kind, bytes, resumed_bytes: 0, compared: false, merged: true })
}

/// A value that is loaded under a temporary name.
struct Arriving<'a> {
    server: &'a mut Server,
    class: Class,
    temporary: Vec<u8>,
}

impl Arriving<'_> {
    /// Checks that the server has the command and that its user may run it.
    fn check_command(&mut self) -> Result<(), Failure> {
        // The command is tried without arguments first. The error for an unknown command repeats the arguments, and a
        // chunk is binary.
        if let Err(text) = self.server.ask(&self.temporary, &self.class.command("LOADCHUNK"))?
            && texts::is_unknown_command(&text)
        {
            return Err(self.not_there(&text));
        }
        check_rights(self.server, &self.temporary)
    }

    /// Sends the chunks that have not yet arrived. Returns the fingerprint of all, and the number of bytes that had
    /// arrived before.
    fn send(
        &mut self,
        header: (u64, Vec<u8>),
        reader: &mut Reader<impl std::io::Read>,
        interrupt: &Interrupt,
    ) -> Result<(Fingerprint, u64), Failure> {
        let arrived = self.arrived()?;
        let (mut summing, mut resumed_bytes) = (Summing::new(), 0);
        let bar = progress::bar(None, "bytes");
        let mut next = Some(header);
        while let Some(chunk) = next {
            interrupt.check().map_err(|failure| failure.advise(GO_ON))?;
            summing.take(&chunk);
            bar.inc(chunk.1.len() as u64);
            if arrived.is_some_and(|arrived| unstamped(chunk.0) <= arrived + 1) {
                resumed_bytes += chunk.1.len() as u64;
            } else if let Err(text) = arrive(self.server, self.class, &self.temporary, &chunk)? {
                return Err(self.rejected(&text)?);
            }
            next = reader.next_chunk()?;
        }
        bar.finish_and_clear();
        if let Err(text) = self.count()? {
            return Err(self.rejected(&text)?);
        }
        Ok((summing.end(), resumed_bytes))
    }

    /// Number of bytes of the payload that an earlier load has transferred; `None` if the load has to begin again.
    fn arrived(&mut self) -> Result<Option<u64>, Failure> {
        if let Err(text) = self.count()?
            && let Some(arrived) = StillLoading::from_error(&text)
        {
            return Ok(Some(arrived.received_bytes));
        }
        // A server that does not report the bytes received cannot continue a load, so the temporary key is deleted.
        self.unlink()?;
        Ok(None)
    }

    /// Gives the value its key.
    fn name(&mut self, key: &[u8], expires_at: Option<u64>, replace: bool) -> Result<(), Failure> {
        let commands = naming(&self.temporary, key, expires_at, replace);
        let answers = self.server.ask_all(&commands.map(|command| (&self.temporary[..], command)))?;
        match named(&answers) {
            Ok(Named::Yes) => Ok(()),
            Ok(Named::Taken) => Err(Failure::new(format!("the key {} exists by now", shown(key)))
                .advise("replace it with --replace, or unite both with --merge")),
            Ok(Named::Gone) => Err(Failure::new(format!("the time of {} is over", shown(key)))),
            Err(text) => Err(self.server.rejected(key, "RENAME", &text)),
        }
    }

    /// The failure of a server that rejected a chunk, or the value.
    fn rejected(&mut self, text: &str) -> Result<Failure, Failure> {
        let failure = self.not_there(text);
        if !texts::is_bad_data(text) {
            return Ok(failure);
        }
        // The same chunks would be rejected again, so the partially loaded value is deleted.
        self.unlink()?;
        Ok(failure.advise("its log has why"))
    }

    /// The failure of a server that rejects values of this class.
    fn not_there(&self, text: &str) -> Failure {
        let command = format!("{}.LOADCHUNK", self.class.family());
        let failure = self.server.rejected(&self.temporary, &command, text);
        match self.class {
            Class::Filter if texts::is_unknown_command(text) => failure.advise(
                "the module is not loaded there. RedisBloom takes classic filters only, whose file `rollcall info` \
                 calls classic",
            ),
            _ => failure,
        }
    }

    fn count(&mut self) -> Result<Answer, Failure> {
        self.server.ask(&self.temporary, self.class.count().arg(&self.temporary))
    }

    fn fingerprint(&mut self) -> Result<Option<Fingerprint>, Failure> {
        fingerprint(self.server, self.class, &self.temporary)
    }

    fn unlink(&mut self) -> Result<(), Failure> {
        self.server.call(&self.temporary, redis::cmd("UNLINK").arg(&self.temporary)).map(drop)
    }
}

impl Loaded {
    fn text(&self) -> String {
        let mut text = format!("{}: a {}, {}", self.key, self.kind, table::bytes(self.bytes));
        if self.resumed_bytes > 0 {
            text += &format!(", {} of it there before", table::bytes(self.resumed_bytes));
        }
        if self.merged {
            text += ", merged";
        } else if !self.compared {
            text += "; its window has moved on since the dump";
        }
        text
    }
}
