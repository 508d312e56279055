//! The commands `SCANDUMP` and `LOADCHUNK`, which transfer a filter or counter in chunks.

use rollcall_core::error::Error;
use rollcall_core::unstable::persist::{self, Partial};

use super::effects::{Effects, announce};
use super::keyspace::{open, value};
use super::windows::expiry_of;
use crate::args;
use crate::command_error::{CommandError, quoted};
use crate::limits::ServerLimit;
use crate::server::alloc;
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Args, Ctx, Key, Mode, WARNING};
use crate::server::metrics::CORRUPT_REJECTED;
use crate::types::entry::{KeyEntry, check_kind, entry_of, finalize, peek_entry, set_entry};
use crate::types::family::{Family, State, change};
use crate::types::names::Verb;

/// Runs `SCANDUMP key iterator`, which replies with the next iterator and a chunk. Iterator 0 gives the header; the
/// last reply is [0, ""].
pub(super) fn scandump<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let key = ctx.open(args.get(1), Mode::Read)?;
    let value = value::<T>(&key)?.ok_or(CommandError::NotFound)?;
    let iterator = args::iterator(args.get(2))?;
    let (next, chunk) = persist::scandump(value, iterator)?;
    // The server copies the reply, and ends the process if memory for the copy is lacking.
    if !alloc::can_allocate(chunk.len()) {
        return Err(Error::OutOfMemory { needed_bytes: chunk.len() as u64 }.into());
    }
    ctx.reply_array(2);
    ctx.reply_integer(i64::try_from(next).unwrap_or(0));
    ctx.reply_bulk(&chunk);
    Ok(())
}

/// The error reply for a rejected dump chunk. The name of a damaged field is only logged.
fn rejected<T: Family>(ctx: Ctx, key: Arg<'_>, error: CommandError) -> CommandError {
    match error {
        CommandError::Core(error @ Error::Corrupt { .. }) => {
            CORRUPT_REJECTED.count();
            ctx.log(WARNING, &format!("rejected a chunk of a {}: {error}", T::KIND));
            CommandError::BadData
        }
        CommandError::NoClassic { .. } if must_obey(ctx) => {
            let text = error.text(T::KIND);
            let (key, why) = (quoted(key.bytes()), text.trim_start_matches("ERR "));
            ctx.log(WARNING, &format!("rejected a chunk for {key}: {why}"));
            error
        }
        other => other,
    }
}

/// Adds a dump chunk to an existing value. A client has to send the chunks in order. Replicated chunks may come in any
/// order, because a primary with RedisBloom accepts any order from its clients.
fn take_chunk<T: Family>(key: &mut Key<'_>, iterator: u64, data: &[u8], is_obeyed: bool) -> Result<(), CommandError> {
    let Some(entry) = entry_of::<T>(key)? else { return Err(CommandError::NotFound) };
    let failed = match &mut entry.state {
        State::Ready(_) if !is_obeyed => return Err(CommandError::BadData),
        _ if is_obeyed && data.is_empty() => return Ok(()),
        State::Ready(value) => return Ok(change(value, |value| value.overwrite(iterator, data))?),
        State::Partial(partial) => {
            if !is_obeyed {
                check_kind(&**partial)?;
            }
            match entry.push_chunk(iterator, data) {
                Ok(()) => return finalize::<T>(key, false),
                Err(error) => error,
            }
        }
    };
    if is_obeyed {
        finalize::<T>(key, true)?;
        if let Some(KeyEntry { state: State::Ready(value), .. }) = entry_of::<T>(key)? {
            return Ok(change(value, |value| value.overwrite(iterator, data))?);
        }
    }
    Err(failed.into())
}

/// Runs `LOADCHUNK key iterator data`, with an iterator and a chunk of `SCANDUMP`, in the same order.
pub(super) fn loadchunk<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let iterator = args::iterator(args.get(2))?;
    let data = args.get(3).bytes();
    let mut key = open::<T>(ctx, args.get(1), Mode::Write)?;
    let taken = if persist::is_header(iterator) && key.is_missing() {
        begin::<T>(ctx, &mut key, data)
    } else {
        take_chunk::<T>(&mut key, iterator, data, must_obey(ctx))
    };
    taken.map_err(|error| rejected::<T>(ctx, args.get(1), error))?;
    let (prefix, expiry) = match peek_entry::<T>(&key)? {
        None => (T::prefix_of_events(), None),
        // The last chunk has completed the value. With `VOLATILE`, the key expires when all its items have, so the
        // expiry is set now.
        Some(KeyEntry { state: State::Ready(value), .. }) => (value.prefix(), expiry_of(ctx, value)),
        Some(entry) => (entry.state.prefix(), None),
    };
    let effects = Effects { event: Some(Verb::LoadChunk), expiry, ..Effects::default() };
    announce::<T>(ctx, key, effects, |_| ctx.replicate_under(prefix.name(Verb::LoadChunk), args));
    ctx.reply_simple(c"OK");
    Ok(())
}

/// Begins a partially loaded value from the header of a dump.
///
/// If another module owns BF.*, a client's RedisBloom-compatible filter is rejected. An AOF may contain a partially
/// loaded one, which is accepted.
fn begin<T: Family>(ctx: Ctx, key: &mut Key<'_>, header: &[u8]) -> Result<(), CommandError> {
    let partial = T::Partial::begin(header, &ServerLimit::new(ctx))?;
    if partial.is_complete() || !must_obey(ctx) {
        check_kind(&partial)?;
    }
    // The header alone may be the whole value, for example an empty counter.
    set_entry(key, KeyEntry::<T>::new(State::from_partial(partial)?));
    Ok(())
}
