//! `SCANDUMP` and `LOADCHUNK`, the same for both families.

use std::ffi::CStr;

use super::{open, refusal_of, value};
use crate::args;
use crate::limits::ServerLimit;
use crate::refusal::Refusal;
use crate::reply;
use crate::server::facts::must_obey;
use crate::server::ffi::{Args, Ctx, LogLevel, Mode};
use crate::server::metrics::CORRUPT_REFUSED;
use crate::types::callbacks::{Entry, State, entry_of, set_entry};
use crate::types::family::Family;
use rollcall_core::error::Error;
use rollcall_core::persist::{self, Loading};

/// `SCANDUMP key iterator`: [next iterator, chunk]; 0 starts with the header; the end is [0, ""].
pub(super) fn scandump<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), Refusal> {
    let key = ctx.open(args.get(1), Mode::Read);
    let value = value::<T>(&key)?.ok_or(Refusal::NotFound)?;
    let iterator = args::iterator(args.get(2))?;
    let (next, chunk) = value.scandump(iterator);
    ctx.reply_array(2);
    ctx.reply_integer(i64::try_from(next).unwrap_or(0));
    ctx.reply_bulk(&chunk);
    Ok(())
}

/// What is wrong with a chunk goes to the log, once and by field; the client is told that it was refused.
fn refused<T: Family>(ctx: Ctx, error: Error) -> Refusal {
    if let Error::Corrupt { .. } = error {
        CORRUPT_REFUSED.count();
        ctx.log(LogLevel::Warning, &format!("refused a chunk of a {}: {error}", T::NOUN.word()));
        return Refusal::BadData;
    }
    refusal_of::<T>(error)
}

/// Gives a value a chunk: the one that comes next, or any that was acknowledged elsewhere. RedisBloom writes each where
/// it belongs, whatever has come before; our own primaries send them in order.
fn take_chunk<T: Family>(entry: &mut Entry<T>, iterator: u64, data: &[u8], is_obeyed: bool) -> Result<(), Error> {
    if is_obeyed && data.is_empty() {
        return Ok(());
    }
    if let State::Loading(loading) = &mut entry.state {
        let pushed = persist::push_chunk(loading, iterator, data);
        if pushed.is_ok() || !is_obeyed {
            return pushed.and_then(|()| entry.settle());
        }
        entry.settle_with_zeros();
        if matches!(entry.state, State::Loading(_)) {
            return pushed;
        }
    }
    match &mut entry.state {
        State::Ready(value) => value.overwrite(iterator, data),
        State::Loading(_) => Ok(()),
    }
}

/// `LOADCHUNK key iterator data`, with both as `SCANDUMP` gave them, in the same order.
pub(super) fn loadchunk<T: Family>(ctx: Ctx, args: Args<'_>, event: &CStr) -> Result<(), Refusal> {
    let iterator = args::iterator(args.get(2))?;
    let data = args.get(3).bytes();
    let mut key = open::<T>(ctx, args.get(1), Mode::Write)?;
    if iterator == 1 && key.is_missing() {
        let loading = T::Loading::begin(data, &ServerLimit::new(ctx)).map_err(|error| refused::<T>(ctx, error))?;
        let mut entry = Entry::<T>::loading(loading);
        entry.settle().map_err(|error| refused::<T>(ctx, error))?;
        set_entry(&key, entry);
    } else {
        let Some(entry) = entry_of::<T>(&mut key)? else { return Err(Refusal::NotFound) };
        let is_obeyed = must_obey(ctx);
        if matches!(entry.state, State::Ready(_)) && !is_obeyed {
            return Err(Refusal::BadData);
        }
        take_chunk(entry, iterator, data, is_obeyed).map_err(|error| refused::<T>(ctx, error))?;
    }
    ctx.replicate_verbatim();
    ctx.changed(args.get(1), event);
    reply::ok(ctx);
    Ok(())
}
