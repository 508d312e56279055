//! `load`: loads the values of a file into keys. An interrupted load continues.

use std::path::PathBuf;

use clap::Args;
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
use crate::server::{Class, LOADED, Named, Server, Summing, Url, texts};
use crate::server::{arrive, beside, check_rights, fingerprint, named, naming, shown};
use crate::table;

/// The advice after an interrupted load.
const GO_ON: &str = "run the same again: what has arrived stays for a day, and a server of ours goes on after it";

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
    /// Load the values without their times to live
    #[arg(long)]
    no_ttl: bool,
    /// The values expire after this time, instead of that of the file: 3600 (seconds), 15m, 24h, 7d
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
        let exists = server.call(key, redis::cmd("EXISTS").arg(key))?;
        if exists == redis::Value::Int(1) && !self.replace {
            return Err(Failure::new(format!("the key {} exists", shown(key))).advise("replace it with --replace"));
        }
        let expires_at = match self.ex {
            Some(seconds) => Some(expires_in(seconds)),
            None => entry.expires_at.filter(|_| !self.no_ttl),
        };
        if expires_at.is_some_and(|at| at <= expires_in(0)) {
            return Err(Failure::new(format!("the time of {} is over", shown(key)))
                .advise("load it without its time to live, --no-ttl, or with another, --ex TIME"));
        }
        let empty = || Failure::new(format!("{} has a value without chunks", self.file.display()));
        let header = reader.next_chunk()?.ok_or_else(empty)?;
        let class = match entry.kind {
            Kind::Counter => Class::Counter,
            Kind::Filter if is_redisbloom_header(&header.1) => Class::Classic,
            Kind::Filter => Class::Filter,
            other => return Err(Failure::new(format!("{}: this tool loads no {other}", self.file.display()))),
        };
        // The temporary name has a hash of the header, so a load never continues the value of another file.
        let prefix = format!("{LOADED}{:016x}:", xxh3_64(&header.1));
        let temporary = beside(&prefix, key).unwrap_or_else(|| [prefix.as_bytes(), key].concat());
        // The command is tried without arguments first. The error for an unknown command repeats the arguments, and a
        // chunk is binary.
        if let Err(text) = server.ask(&temporary, &class.command("LOADCHUNK"))?
            && texts::is_unknown_command(&text)
        {
            return Err(not_there(server, class, &temporary, &text));
        }
        check_rights(server, &temporary)?;
        let arrived = self.arrived(server, class, &temporary)?;
        let rejected = |server: &mut Server, text: String| {
            let failure = not_there(server, class, &temporary, &text);
            if !texts::is_bad_data(&text) {
                return Ok(failure);
            }
            // The same chunks would be rejected again, so the partially loaded value is deleted.
            server.call(&temporary, redis::cmd("UNLINK").arg(&temporary))?;
            Ok(failure.advise("its log has why"))
        };
        let (mut summing, mut bytes, mut resumed) = (Summing::new(), 0, 0);
        let bar = progress::bar(None, "bytes");
        let is_window = has_window(&header.1);
        let mut next = Some(header);
        while let Some(chunk) = next {
            interrupt.check().map_err(|failure| failure.advise(GO_ON))?;
            summing.take(&chunk);
            bytes += chunk.1.len() as u64;
            bar.inc(chunk.1.len() as u64);
            if arrived.is_some_and(|arrived| unstamped(chunk.0) <= arrived + 1) {
                resumed += chunk.1.len() as u64;
            } else if let Err(text) = arrive(server, class, &temporary, &chunk)? {
                return Err(rejected(server, text)?);
            }
            next = reader.next_chunk()?;
        }
        bar.finish_and_clear();
        if let Err(text) = server.ask(&temporary, class.count().arg(&temporary))? {
            return Err(rejected(server, text)?);
        }
        let same = fingerprint(server, class, &temporary)? == Some(summing.end());
        // A window with the system clock may have moved on since it was dumped, so its value may differ.
        if !same && !is_window {
            server.call(&temporary, redis::cmd("UNLINK").arg(&temporary))?;
            return Err(Failure::does_not_hold(format!(
                "{}: what the server has is not what the file has",
                shown(key)
            )));
        }
        let commands = naming(&temporary, key, expires_at, self.replace);
        let answers = server.ask_all(&commands.map(|command| (&temporary[..], command)))?;
        match named(&answers) {
            Ok(Named::Yes) => {}
            Ok(Named::Taken) => {
                return Err(
                    Failure::new(format!("the key {} exists by now", shown(key))).advise("replace it with --replace")
                );
            }
            Ok(Named::Gone) => return Err(Failure::new(format!("the time of {} is over", shown(key)))),
            Err(text) => return Err(server.rejected(key, "RENAME", &text)),
        }
        Ok(Loaded { key: shown(key), kind: class.noun(), bytes, resumed_bytes: resumed, compared: same })
    }

    /// Number of bytes of the payload that an earlier load has transferred; `None` if the load has to begin again.
    fn arrived(&self, server: &mut Server, class: Class, temporary: &[u8]) -> Result<Option<u64>, Failure> {
        if let Err(text) = server.ask(temporary, class.count().arg(temporary))?
            && let Some(arrived) = StillLoading::from_error(&text)
        {
            return Ok(Some(arrived.received_bytes));
        }
        // A server that does not report the bytes received cannot continue a load, so the temporary key is deleted.
        server.call(temporary, redis::cmd("UNLINK").arg(temporary))?;
        Ok(None)
    }
}

impl Loaded {
    fn text(&self) -> String {
        let mut text = format!("{}: a {}, {}", self.key, self.kind, table::bytes(self.bytes));
        if self.resumed_bytes > 0 {
            text += &format!(", {} of it there before", table::bytes(self.resumed_bytes));
        }
        if !self.compared {
            text += "; its window has moved on since the dump";
        }
        text
    }
}

/// The failure of a server that rejects values of this class.
fn not_there(server: &Server, class: Class, key: &[u8], text: &str) -> Failure {
    let failure = server.rejected(key, &format!("{}.LOADCHUNK", class.family()), text);
    match class {
        Class::Filter if texts::is_unknown_command(text) => failure.advise(
            "the module is not loaded there. RedisBloom takes classic filters only, whose file `rollcall info` \
             calls classic",
        ),
        _ => failure,
    }
}
