//! A server module for benchmarks. Each of its BENCH.* commands does only the work that no command of its kind can
//! avoid.
//!
//! The time of a BENCH.* command is the cost of the server; the additional time of Rollcall's command is the cost of
//! Rollcall. BENCH.* commands take keys and items and reply with a boolean per item, like Rollcall's. They call the
//! server's API directly, through the bindings of `redis-module`. A *line* is a cache line of 64 bytes in a bitmap.
//!
//! | command | what it does |
//! |---|---|
//! | `BENCH.REPLY key item [item ...]` | replies with an array of 0 or 1 for each item |
//! | `BENCH.READ key [item]` | opens the key for reading and reads a word of its value, replies 1 |
//! | `BENCH.COUNT key` | as `BENCH.READ`, and replies with a number |
//! | `BENCH.WRITE key [item]` | as `BENCH.READ`, with the key opened for writing |
//! | `BENCH.CHANGE key [item]` | as `BENCH.WRITE`, then propagates, signals and notifies |
//! | `BENCH.BITMAPS lines bytes [bytes ...]` | makes bitmaps in which an item has this number of lines |
//! | `BENCH.PROBE key item [item ...]` | as `BENCH.READ`; hashes each item and reads one bit in each of its lines |
//! | `BENCH.KNOWN key item [item ...]` | as `BENCH.PROBE`, with the key opened for writing, like adding known items |
//! | `BENCH.FILL key item [item ...]` | as `BENCH.KNOWN`, but sets the bits, then propagates, signals, notifies |
//! | `BENCH.FILLLAST key item [item ...]` | sets bits only in the last bitmap; reads one line of the others |
//! | `BENCH.UNION key [key ...]` | counts the bits that are set in any of several strings of one length |

use std::array::from_fn;
use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_long, c_longlong};
use std::hint::black_box;
use std::ops::Range;

use multiversion::multiversion;
use prefetch_index::prefetch_index;
use redis_module::raw::{self, RedisModuleCtx, RedisModuleKey, RedisModuleString};
use xxhash_rust::xxh3::xxh3_128;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const ERR: c_int = raw::REDISMODULE_ERR as c_int;
const READ: c_int = raw::REDISMODULE_READ as c_int;
const WRITE: c_int = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;

/// Calls a function of the server's API without a null check.
macro_rules! api {
    ($name:ident ( $($arg:expr),* )) => {
        match raw::$name {
            Some(function) => function($($arg),*),
            None => std::process::abort(), // Redis 7.0 has them all.
        }
    };
}

/// The largest number of bytes that all bitmaps of `BENCH.BITMAPS` may have together.
const MOST_BYTES: u64 = 16 << 30;
const MOST_LINES: u64 = 64;

/// Returns whether there are fewer than `least` arguments, the command's name included, and if so replies with an
/// error. The server does not check the number of arguments of a module's commands.
///
/// # Safety
/// The context must be live.
unsafe fn lacks_arguments(ctx: *mut RedisModuleCtx, argc: c_int, least: c_int) -> bool {
    if argc < least {
        // SAFETY: the caller's promise.
        unsafe { api!(RedisModule_WrongArity(ctx)) };
    }
    argc < least
}

type Command = unsafe extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

/// Runs `BENCH.REPLY`, which replies with a boolean for each item, and reads no key.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn reply(ctx: *mut RedisModuleCtx, _argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the context is live.
    unsafe {
        if lacks_arguments(ctx, argc, 2) {
            return OK;
        }
        api!(RedisModule_ReplyWithArray(ctx, c_long::from(argc - 2)));
        for index in 2..argc {
            api!(RedisModule_ReplyWithBool(ctx, index & 1));
        }
    }
    OK
}

/// Reads the first word of a module's value. Every command has to read its value, so this cost is unavoidable: the
/// value is in a cache line of its own.
///
/// # Safety
/// The key must be open or null. Values of all modules here are pointers to at least a word.
unsafe fn touch(key: *mut RedisModuleKey) {
    // SAFETY: the type of an open key can be asked for, and only a module's value has one.
    unsafe {
        if !key.is_null() && !api!(RedisModule_ModuleTypeGetType(key)).is_null() {
            black_box(api!(RedisModule_ModuleTypeGetValue(key)).cast::<usize>().read());
        }
    }
}

/// Runs `BENCH.READ`, which opens the key for reading, reads a word of its value, and replies with 1.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn read(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { if touch_key(ctx, argv, argc) { api!(RedisModule_ReplyWithBool(ctx, 1)) } else { OK } }
}

/// Runs `BENCH.COUNT`, which reads a word of the value, and replies with a number.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn count(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the caller's promise. A number of five digits, as a counter has.
    unsafe { if touch_key(ctx, argv, argc) { api!(RedisModule_ReplyWithLongLong(ctx, 50_000)) } else { OK } }
}

/// Opens the key for reading, reads a word of its value, and closes the key. Returns false if the command has no key.
///
/// # Safety
/// The context and the `argc` strings must be live.
unsafe fn touch_key(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> bool {
    // SAFETY: there is a key's name. A missing key gives null, which is not closed.
    unsafe {
        if lacks_arguments(ctx, argc, 2) {
            return false;
        }
        let key = api!(RedisModule_OpenKey(ctx, *argv.add(1), READ));
        touch(key);
        if !key.is_null() {
            api!(RedisModule_CloseKey(key));
        }
    }
    true
}

/// Runs `BENCH.WRITE`, which opens the key for writing, and reads a word of its value.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn write(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: there is a key's name; a key opened for writing is never null.
    unsafe {
        if lacks_arguments(ctx, argc, 2) {
            return OK;
        }
        let key = api!(RedisModule_OpenKey(ctx, *argv.add(1), WRITE));
        touch(key);
        api!(RedisModule_CloseKey(key));
        api!(RedisModule_ReplyWithBool(ctx, 1))
    }
}

/// Runs `BENCH.CHANGE`, which opens the key for writing, and then replicates the command and sends events.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn change(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: as in `write`; the event's name ends with NUL.
    unsafe {
        if lacks_arguments(ctx, argc, 2) {
            return OK;
        }
        let name = *argv.add(1);
        let key = api!(RedisModule_OpenKey(ctx, name, WRITE));
        touch(key);
        api!(RedisModule_ReplicateVerbatim(ctx));
        api!(RedisModule_SignalModifiedKey(ctx, name));
        api!(RedisModule_NotifyKeyspaceEvent(ctx, raw::REDISMODULE_NOTIFY_MODULE as c_int, c"bench".as_ptr(), name));
        api!(RedisModule_CloseKey(key));
        api!(RedisModule_ReplyWithBool(ctx, 1))
    }
}

/// A cache line.
#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

/// The bitmaps that `BENCH.BITMAPS` made. Only the server's main thread runs commands, so a thread-local is enough.
struct Bitmaps {
    lines_per_item: u64,
    /// The bitmaps. Each is a list of cache lines.
    lines: Vec<Vec<Line>>,
}

thread_local! {
    static BITMAPS: RefCell<Bitmaps> = const { RefCell::new(Bitmaps { lines_per_item: 1, lines: Vec::new() }) };
}

/// Returns the bytes of an argument.
///
/// # Safety
/// `arg` must be a live string for the lifetime `'a`.
unsafe fn bytes<'a>(arg: *mut RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(api!(RedisModule_StringPtrLen(arg, &mut len)).cast(), len) }
}

/// Runs `BENCH.BITMAPS`, which creates the bitmaps for the other commands, and sets how many lines an item has.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn bitmaps(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the context is live.
    if unsafe { lacks_arguments(ctx, argc, 2) } {
        return OK;
    }
    // SAFETY: there are `argc` live strings.
    let arguments = (1..argc as usize).map(|index| unsafe { bytes(*argv.add(index)) });
    let numbers: Vec<u64> = arguments.filter_map(|text| std::str::from_utf8(text).ok()?.parse().ok()).collect();
    let (lines_per_item, sizes) = numbers.split_first().unwrap_or((&1, &[]));
    let total = sizes.iter().fold(0, |total: u64, bytes| total.saturating_add(*bytes));
    if total > MOST_BYTES || *lines_per_item > MOST_LINES {
        // SAFETY: the context is live; the text ends with NUL.
        return unsafe { api!(RedisModule_ReplyWithError(ctx, c"ERR at most 64 lines and 16 GiB".as_ptr())) };
    }
    let counts = sizes.iter().map(|bytes| (*bytes as usize).div_ceil(64).max(1));
    BITMAPS.with_borrow_mut(|bitmaps| {
        bitmaps.lines_per_item = *lines_per_item;
        if !counts.clone().eq(bitmaps.lines.iter().map(Vec::len)) {
            // Every page is written, so that it is resident. Half of the bits are set, as in a full filter.
            bitmaps.lines = counts.map(|count| vec![Line([0x5555_5555_5555_5555; 8]); count]).collect();
        }
    });
    // SAFETY: the context is live.
    unsafe { api!(RedisModule_ReplyWithLongLong(ctx, sizes.len() as c_longlong)) }
}

/// The number of items that are hashed, and whose cache lines are prefetched, before the first line is read. Large
/// bitmaps are not in the processor's cache.
const CHUNK: usize = 64;

/// In which bitmaps a command accesses all lines of an item. In any other bitmap it accesses only one line, as a filter
/// that consists of several sub-filters does for most items.
#[derive(Clone, Copy, PartialEq)]
enum Whole {
    All,
    Last,
}

/// Finds the lines of each item in each bitmap, and calls `visit` with a word and a bit of each line. The last argument
/// of `visit` is true if all lines of the item in this bitmap are visited. Calls `answer` after each item.
fn walk<'a>(
    bitmaps: &mut Bitmaps,
    whole: Whole,
    mut items: impl Iterator<Item = &'a [u8]>,
    visit: impl Fn(&mut u64, u64, bool) -> bool,
    mut answer: impl FnMut(bool),
) {
    let Bitmaps { lines_per_item, lines } = bitmaps;
    let last = lines.len().saturating_sub(1);
    let is_whole = |bitmap: usize| whole == Whole::All || bitmap == last;
    let picks = |hash: u128, is_whole: bool| {
        let lines = if is_whole { *lines_per_item } else { 1 };
        (0..lines).map(move |i| (hash as u64).wrapping_add(i.wrapping_mul((hash >> 64) as u64 | 1)))
    };
    let index = |pick: u64, len: usize| ((u128::from(pick) * len as u128) >> 64) as usize;
    loop {
        let mut hashes = [0; CHUNK];
        let mut len = 0;
        for (hash, item) in hashes.iter_mut().zip(&mut items) {
            *hash = xxh3_128(item);
            len += 1;
        }
        for (at, lines) in lines.iter().enumerate() {
            for &hash in &hashes[..len] {
                picks(hash, is_whole(at)).for_each(|pick| prefetch_index(lines, index(pick, lines.len())));
            }
        }
        for &hash in &hashes[..len] {
            let mut all = true;
            for (at, lines) in lines.iter_mut().enumerate() {
                let (count, is_whole) = (lines.len(), is_whole(at));
                picks(hash, is_whole).for_each(|pick| {
                    all &= visit(&mut lines[index(pick, count)].0[pick as usize & 7], 1 << (pick >> 58), is_whole)
                });
            }
            answer(all);
        }
        if len < CHUNK {
            return;
        }
    }
}

/// Runs `BENCH.PROBE`, which looks up items in the bitmaps with the key open for reading.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn probe(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { look(ctx, argv, argc, READ) }
}

/// Runs `BENCH.KNOWN`, which looks up items in the bitmaps with the key open for writing, like adding known items.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn known(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { look(ctx, argv, argc, WRITE) }
}

/// Looks up the items in the bitmaps while the key is open in `mode`, and replies with a boolean per item.
///
/// # Safety
/// The context and the `argc` strings must be live.
unsafe fn look(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int, mode: c_int) -> c_int {
    // SAFETY: there are `argc` live strings, of which the first two are the command and the key.
    unsafe {
        if lacks_arguments(ctx, argc, 2) {
            return OK;
        }
        let key = api!(RedisModule_OpenKey(ctx, *argv.add(1), mode));
        touch(key);
        api!(RedisModule_ReplyWithArray(ctx, c_long::from(argc - 2)));
        BITMAPS.with_borrow_mut(|bitmaps| {
            let items = (2..argc as usize).map(|index| bytes(*argv.add(index)));
            walk(
                bitmaps,
                Whole::All,
                items,
                |word, bit, _| *word & bit != 0,
                |all| {
                    api!(RedisModule_ReplyWithBool(ctx, c_int::from(all)));
                },
            );
        });
        if !key.is_null() {
            api!(RedisModule_CloseKey(key));
        }
    }
    OK
}

/// Runs `BENCH.FILL`, which sets the bits of items in all bitmaps, replicates the command and sends events.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn fill(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set(ctx, argv, argc, Whole::All) }
}

/// Runs `BENCH.FILLLAST`, which sets the bits of items in the last bitmap, after reading one line of each other bitmap.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn fill_last(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set(ctx, argv, argc, Whole::Last) }
}

/// Sets the bits of the items in the bitmaps, replicates the command and replies.
///
/// # Safety
/// The context and the `argc` strings must be live.
unsafe fn set(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int, whole: Whole) -> c_int {
    // SAFETY: as in `look`; the event's name ends with NUL.
    unsafe {
        if lacks_arguments(ctx, argc, 2) {
            return OK;
        }
        let name = *argv.add(1);
        let key = api!(RedisModule_OpenKey(ctx, name, WRITE));
        touch(key);
        api!(RedisModule_ReplyWithArray(ctx, c_long::from(argc - 2)));
        BITMAPS.with_borrow_mut(|bitmaps| {
            let items = (2..argc as usize).map(|index| bytes(*argv.add(index)));
            let set = |word: &mut u64, bit, is_whole| {
                let was_set = *word & bit != 0;
                if is_whole {
                    *word |= bit;
                }
                was_set
            };
            walk(bitmaps, whole, items, set, |all| {
                api!(RedisModule_ReplyWithBool(ctx, c_int::from(!all)));
            });
        });
        api!(RedisModule_ReplicateVerbatim(ctx));
        api!(RedisModule_SignalModifiedKey(ctx, name));
        api!(RedisModule_NotifyKeyspaceEvent(ctx, raw::REDISMODULE_NOTIFY_MODULE as c_int, c"bench".as_ptr(), name));
        api!(RedisModule_CloseKey(key));
    }
    OK
}

/// The number of words of the union that are computed before their bits are counted. A block of this size stays in the
/// processor's first-level cache.
const BLOCK: usize = 512;

/// Returns the number of bits that are set in any of the `strings`.
fn count_union(strings: &[&[u64]]) -> u64 {
    let len = strings.iter().map(|words| words.len()).min().unwrap_or(0);
    let mut total = 0;
    for start in (0..len).step_by(BLOCK) {
        total += count_part(strings, start..len.min(start + BLOCK));
    }
    total
}

/// Returns the number of bits that are set in any of the strings, within one `part` of at most a block. Uses AVX2 if
/// the processor has it, and reads eight strings at once.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
fn count_part(strings: &[&[u64]], part: Range<usize>) -> u64 {
    let mut block = [0; BLOCK];
    let block = &mut block[..part.len()];
    if let [a, b] = strings {
        let (a, b) = (&a[part.clone()], &b[part]);
        return a.iter().zip(b).map(|(a, b)| u64::from((a | b).count_ones())).sum();
    }
    for group in strings.chunks(8) {
        // Of a group of fewer than eight, the first comes again: that changes no bit.
        let group: [&[u64]; 8] = from_fn(|index| &group.get(index).unwrap_or(&group[0])[part.clone()]);
        for (index, union) in block.iter_mut().enumerate() {
            *union |= group.iter().fold(0, |all, words| all | words[index]);
        }
    }
    block.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Runs `BENCH.UNION`, which counts the bits that are set in any of the given strings.
///
/// # Safety
/// Must be called by the server, with a live context and `argc` live strings.
unsafe extern "C" fn union(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: there are `argc` strings. What StringDMA gives holds until a command changes the string; a key that is
    // missing or no string is left out. Any bytes are words; the unaligned ends are skipped.
    unsafe {
        let mut keys = Vec::with_capacity(argc as usize);
        let mut strings = Vec::with_capacity(argc as usize);
        for index in 1..argc as usize {
            let key = api!(RedisModule_OpenKey(ctx, *argv.add(index), READ));
            if key.is_null() {
                continue;
            }
            keys.push(key);
            let mut len = 0;
            let start = api!(RedisModule_StringDMA(key, &mut len, READ)).cast::<u8>();
            if !start.is_null() && len > 0 {
                let (_, words, _) = std::slice::from_raw_parts(start, len).align_to::<u64>();
                strings.push(words);
            }
        }
        let bits = count_union(&strings);
        keys.into_iter().for_each(|key| api!(RedisModule_CloseKey(key)));
        api!(RedisModule_ReplyWithLongLong(ctx, bits as c_longlong))
    }
}

/// The entry point that the server calls when it loads the module. Registers the commands.
///
/// # Safety
/// Must be called by the server when it loads the module.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // The server looks the function up by this name.
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut RedisModuleCtx,
    _argv: *mut *mut RedisModuleString,
    _argc: c_int,
) -> c_int {
    let commands: [(&CStr, Command, &CStr, c_int); 11] = [
        (c"bench.reply", reply, c"readonly fast", 1),
        (c"bench.read", read, c"readonly fast", 1),
        (c"bench.count", count, c"readonly fast", 1),
        (c"bench.write", write, c"write deny-oom fast", 1),
        (c"bench.change", change, c"write deny-oom fast", 1),
        (c"bench.bitmaps", bitmaps, c"readonly", 0),
        (c"bench.probe", probe, c"readonly fast", 1),
        (c"bench.known", known, c"write deny-oom fast", 1),
        (c"bench.fill", fill, c"write deny-oom fast", 1),
        (c"bench.filllast", fill_last, c"write deny-oom fast", 1),
        (c"bench.union", union, c"readonly", -1),
    ];
    // SAFETY: the context is live; names and flags end with NUL. Without the option the server would signal a change
    // after each opening for writing. Our module sets the option too.
    unsafe {
        if raw::Export_RedisModule_Init(ctx, c"bench".as_ptr(), 1, raw::REDISMODULE_APIVER_1 as c_int) == ERR {
            return ERR;
        }
        api!(RedisModule_SetModuleOptions(ctx, raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED as c_int));
        for (name, command, flags, last_key) in commands {
            let (name, flags) = (name.as_ptr(), flags.as_ptr());
            // Where the last key is 0, the command has no keys.
            let first_key = c_int::from(last_key != 0);
            if api!(RedisModule_CreateCommand(ctx, name, Some(command), flags, first_key, last_key, first_key)) == ERR {
                return ERR;
            }
        }
    }
    OK
}
