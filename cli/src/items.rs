//! Reads items from files and standard input, and processes them on all cores.
//!
//! A file is cut into blocks that threads read by themselves, piece by piece; an item belongs to the piece in which it
//! begins. Pipes are read by one thread, in blocks that end at the end of an item. Work proceeds in rounds: each thread
//! processes one block, then one thread gets all results in the order of the input. In memory, each thread has a piece
//! of a file or some blocks of a pipe, and the results of one block.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;

use clap::Args;

use crate::failure::Failure;
use crate::interrupt::{Interrupt, LOOK};
use crate::lines;

/// Number of bytes of a block of a file. Blocks are large for two reasons: starting threads takes negligible time, and
/// each round sets many bits of a filter, which it may have to read from memory as a whole.
const BLOCK_BYTES: usize = 16 << 20;

/// The largest number of bytes of a block of a pipe, which is in memory as a whole.
const PIPED_BYTES: usize = 4 << 20;

/// Number of bytes of a file that a thread reads and processes at a time, so that they stay in its second-level cache.
const PIECE_BYTES: u64 = 256 << 10;

/// The largest size of an item in bytes.
const MAX_ITEM_BYTES: usize = 512 << 20;

/// Options for reading items.
#[derive(Debug, Clone, Copy, Args)]
pub struct Reading {
    /// Items end with a NUL byte instead of a line end (\n or \r\n)
    #[arg(long, short = '0')]
    null: bool,
    /// The number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<NonZeroUsize>,
    /// Bytes of a block: for tests, where blocks are to be many.
    #[arg(long, hide = true, default_value_t = BLOCK_BYTES, value_parser = block_bytes)]
    block_bytes: usize,
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("{text} is no number of threads: give 1 or more"))
}

fn block_bytes(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&bytes| bytes > 0).ok_or_else(|| "at least 1".to_owned())
}

impl Reading {
    /// The number of threads to use.
    pub fn threads(&self) -> usize {
        self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }

    fn end(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// The items of a block, without empty ones.
    pub fn items<'b>(&self, block: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let (end, is_lines) = (self.end(), !self.null);
        let mut rest = block;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let at = memchr::memchr(end, rest);
                let mut item = &rest[..at.unwrap_or(rest.len())];
                rest = at.map_or(&[][..], |at| &rest[at + 1..]);
                if is_lines && item.last() == Some(&b'\r') {
                    item = &item[..item.len() - 1];
                }
                if !item.is_empty() {
                    return Some(item);
                }
            }
            None
        })
    }

    /// The number of items in a block, empty ones included.
    pub fn count(&self, block: &[u8]) -> u64 {
        let ends = memchr::memchr_iter(self.end(), block).count() as u64;
        ends + u64::from(block.last().is_some_and(|last| *last != self.end()))
    }
}

/// The state of a thread, in cache lines of its own. Otherwise what one thread writes for each item would slow down the
/// others. The alignment is 128 bytes, because processors fetch lines in pairs.
#[derive(Debug, Clone, Default)]
#[repr(align(128))]
pub struct Apart<S>(pub S);

/// The files and pipes that items are read from. Reading stops when the user asks the tool to end.
#[derive(Debug)]
pub struct Inputs {
    all: Vec<Input>,
    interrupt: Interrupt,
}

#[derive(Debug)]
enum Input {
    /// A file, with the offset of its first item, and its length when it was opened.
    File { path: PathBuf, file: File, first: u64, len: u64 },
    /// Standard input or another pipe.
    Stream { path: PathBuf },
}

impl Inputs {
    /// Opens files; `-` is standard input.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn open(paths: &[PathBuf], interrupt: &Interrupt) -> Result<Self, Failure> {
        let all = paths.iter().map(|path| Input::open(path)).collect::<Result<_, _>>()?;
        Ok(Inputs { all, interrupt: interrupt.clone() })
    }

    /// An upper bound of the number of items, from counting line ends. `None` if an input is a pipe, which can be read
    /// only once.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn count(&self, reading: &Reading) -> Result<Option<u64>, Failure> {
        if !self.all.iter().all(|input| matches!(input, Input::File { .. })) {
            return Ok(None);
        }
        let mut counts = vec![Apart(0); reading.threads()];
        self.each(reading, &mut counts, |count, block| *count += reading.count(block), |_| Ok(()))?;
        Ok(Some(counts.iter().map(|Apart(count)| count).sum()))
    }

    /// Passes all blocks to `work`, each in one piece or several, on one thread for each of `states`. After each round
    /// `between` gets all states, in the order of their blocks. A state without a block in the round stays as the last
    /// call of `between` left it.
    ///
    /// # Errors
    /// When an input cannot be read, when the user asked to end, or when `between` fails.
    pub fn each<S: Send>(
        &self,
        reading: &Reading,
        states: &mut [Apart<S>],
        work: impl Fn(&mut S, &[u8]) + Sync,
        mut between: impl FnMut(&mut [Apart<S>]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut buffers = vec![Vec::new(); states.len()];
        let interrupt = &self.interrupt;
        let mut between = |states: &mut [Apart<S>]| {
            interrupt.check()?;
            between(states)
        };
        for input in &self.all {
            match input {
                Input::File { path, file, first, len } => {
                    let mut at = *first;
                    while at < *len {
                        // If less than a block for each thread is left, each gets an equal share of it.
                        let share = (*len - at).div_ceil(states.len() as u64).max(PIECE_BYTES);
                        let share = share.min(reading.block_bytes as u64);
                        let read = thread::scope(|scope| {
                            let mut running = Vec::new();
                            for (state, buffer) in states.iter_mut().zip(&mut buffers) {
                                let (start, end) = (at, at.saturating_add(share).min(*len));
                                if start == end {
                                    break;
                                }
                                at = end;
                                let work = &work;
                                running.push(scope.spawn(move || {
                                    (start..end).step_by(PIECE_BYTES as usize).try_for_each(|start| {
                                        // `between` reports that the user asked to end.
                                        if interrupt.check().is_err() {
                                            return Ok(());
                                        }
                                        let end = end.min(start.saturating_add(PIECE_BYTES));
                                        work(&mut state.0, block_of(file, *first, start..end, reading.end(), buffer)?);
                                        Ok(())
                                    })
                                }));
                            }
                            running.into_iter().try_for_each(join)
                        });
                        read.map_err(|error| cannot_read(path, &error))?;
                        between(states)?;
                    }
                }
                Input::Stream { path } => stream(path, reading, states, &work, &mut between, interrupt)?,
            }
        }
        Ok(())
    }
}

impl Input {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Input::Stream { path: path.to_owned() });
        }
        let cannot = |error| cannot_read(path, &error);
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(Failure::new(format!("{} is a folder", path.display())));
        }
        if !metadata.is_file() {
            return Ok(Input::Stream { path: path.to_owned() });
        }
        let mut start = vec![0; lines::MARK_BYTES];
        let len = read_at(&file, &mut start, 0).map_err(cannot)?;
        let kept = lines::start(&mut &start[..len]).map_err(cannot)?.len();
        Ok(Input::File { path: path.to_owned(), file, first: (len - kept) as u64, len: metadata.len() })
    }
}

/// The items that begin in a range of a file, whose first item is at the offset `first`.
fn block_of<'b>(
    file: &File,
    first: u64,
    Range { start, end }: Range<u64>,
    sep: u8,
    buffer: &'b mut Vec<u8>,
) -> io::Result<&'b [u8]> {
    // The byte before `start` is read too: it shows whether an item begins at `start`.
    let from = if start == first { start } else { start - 1 };
    let len = usize::try_from(end - from).map_err(|_| io::ErrorKind::OutOfMemory)?;
    buffer.resize(len, 0);
    let mut filled = read_at(file, buffer, from)?;
    buffer.truncate(filled);
    let begin = match start {
        _ if start == first => 0,
        // No item begins here.
        _ => match memchr::memchr(sep, buffer) {
            Some(at) if at + 1 < len => at + 1,
            _ => return Ok(&[]),
        },
    };
    // The last item is read to its end, which may lie beyond `end`.
    let mut step = 4 << 10;
    while filled > 0 && buffer[filled - 1] != sep {
        if filled - len.min(filled) > MAX_ITEM_BYTES {
            return Err(too_long());
        }
        buffer.resize(filled + step, 0);
        let more = read_at(file, &mut buffer[filled..], from + filled as u64)?;
        if more == 0 {
            break;
        }
        match memchr::memchr(sep, &buffer[filled..filled + more]) {
            Some(at) => filled += at + 1,
            None => filled += more,
        }
        step *= 2;
    }
    Ok(&buffer[begin.min(filled)..filled])
}

/// Reads from offset `from` until `bytes` is full or the file ends. Returns the number of bytes read.
fn read_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], from + len as u64) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// [`Inputs::each`] for an input that can be read only once: a separate thread reads ahead of the workers.
fn stream<S: Send>(
    path: &Path,
    reading: &Reading,
    states: &mut [Apart<S>],
    work: &(impl Fn(&mut S, &[u8]) + Sync),
    between: &mut impl FnMut(&mut [Apart<S>]) -> Result<(), Failure>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let (full, blocks) = sync_channel(states.len());
    let (used, empty) = channel();
    let opened: Box<dyn Read + Send> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(|error| cannot_read(path, &error))?),
    };
    let (size, sep) = (reading.block_bytes.min(PIPED_BYTES), reading.end());
    // The thread is not scoped, so that after a failure nobody waits for input that may never come.
    let reader = move || {
        if let Err(error) = read_blocks(opened, size, sep, &full, &empty) {
            let _ = full.send(Err(error));
        }
    };
    thread::Builder::new().spawn(reader).map_err(|error| cannot_read(path, &error))?;
    loop {
        let mut round: Vec<Vec<u8>> = Vec::with_capacity(states.len());
        while round.len() < states.len() {
            match blocks.recv_timeout(LOOK) {
                Ok(block) => round.push(block.map_err(|error| cannot_read(path, &error))?),
                Err(RecvTimeoutError::Timeout) => interrupt.check()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if round.is_empty() {
            return Ok(());
        }
        thread::scope(|scope| {
            for (state, block) in states.iter_mut().zip(&round) {
                scope.spawn(move || work(&mut state.0, block));
            }
        });
        between(states)?;
        give_back(&used, round);
    }
}

fn give_back(used: &Sender<Vec<u8>>, round: Vec<Vec<u8>>) {
    for block in round {
        // Sending fails once the reader has ended, and then buffers need no recycling.
        let _ = used.send(block);
    }
}

/// Reads blocks that end at the end of an item, into recycled buffers if any are returned.
fn read_blocks(
    mut input: impl Read,
    size: usize,
    sep: u8,
    full: &SyncSender<io::Result<Vec<u8>>>,
    empty: &Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut carried = lines::start(&mut input)?;
    loop {
        let mut block = empty.try_recv().unwrap_or_default();
        block.clear();
        block.extend_from_slice(&carried);
        let mut wanted = size.max(carried.len() + 1);
        let end = loop {
            let from = block.len();
            let read = input.by_ref().take((wanted - from) as u64).read_to_end(&mut block)?;
            if read < wanted - from {
                break None;
            }
            if let Some(at) = memchr::memrchr(sep, &block[from..]) {
                break Some(from + at + 1);
            }
            if block.len() > MAX_ITEM_BYTES {
                return Err(too_long());
            }
            wanted *= 2;
        };
        carried.clear();
        if let Some(end) = end {
            carried.extend_from_slice(&block[end..]);
            block.truncate(end);
        }
        // Sending fails only if the receiver has failed, and then the receiver reports the error.
        if !block.is_empty() && full.send(Ok(block)).is_err() || end.is_none() {
            return Ok(());
        }
    }
}

/// Returns the result of a thread. A panic of the thread continues here.
fn join<T>(running: thread::ScopedJoinHandle<'_, T>) -> T {
    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn too_long() -> io::Error {
    io::Error::other("an item of more than 512 MiB: do items end as they should?")
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    Failure::new(format!("cannot read {name}: {error}"))
}
