//! Writes the replies of commands, for RESP2 and RESP3.

use crate::command_error::{CommandError, Kind};
use crate::server::ffi::Ctx;
use crate::server::metrics::{FULL_REJECTED, MEMORY_REJECTED};
use rollcall_core::admission::Room;
use rollcall_core::error::Error;
use rollcall_core::unstable::info::Field;

/// The bytes that answer for an item in the reply to a command with `WIDTH`: the item was new, or is there.
pub const YES: u8 = b'1';
/// The item was not new, or is not there.
pub const NO: u8 = b'0';
/// `ADMIT` has rejected the item.
pub const REJECTED: u8 = b'-';

/// [`YES`] or [`NO`].
#[inline]
pub fn answer(is_so: bool) -> u8 {
    if is_so { YES } else { NO }
}

/// Replies with the text of `error`. `kind` is the kind of value that the command is for. Full filters and
/// lacking memory are also counted in the metrics. [`ServerLimit`](crate::limits::ServerLimit) counts the errors of
/// size limits.
pub fn reject(ctx: Ctx, kind: Kind, error: &CommandError) {
    let cause = if let CommandError::Payload(_, cause) = error { cause } else { error };
    match cause {
        CommandError::Arity => return ctx.reply_wrong_arity(),
        CommandError::Core(Error::Full { .. }) => FULL_REJECTED.count(),
        CommandError::Core(Error::OutOfMemory { .. }) => MEMORY_REJECTED.count(),
        _ => {}
    }
    ctx.reply_error(&error.text(kind));
}

/// Replies to a look-up or to an addition to a filter: an array of booleans, one for each handled item, from `answers`.
/// The error of a rejected item is the last element. With `as_text` (the option `WIDTH`) the reply is a string of an
/// answer for each of the `items`: `!` from the first item on that a full filter rejects. Any other error is then the
/// whole reply.
pub fn answers(ctx: Ctx, mut answers: Vec<u8>, items: usize, stopped: Option<CommandError>, as_text: bool) {
    if as_text {
        match stopped {
            Some(CommandError::Core(Error::Full { .. })) => {
                FULL_REJECTED.count();
                answers.resize(items, b'!');
            }
            Some(error) => return reject(ctx, Kind::Filter, &error),
            None => {}
        }
        return ctx.reply_bulk(&answers);
    }
    ctx.reply_array(answers.len() + usize::from(stopped.is_some()));
    answers.iter().for_each(|&answer| ctx.reply_bool(answer == YES));
    if let Some(error) = stopped {
        reject(ctx, Kind::Filter, &error);
    }
}

/// Replies to `ADMIT` with an integer per item: 1 if it was added, 0 if it was known, -1 if it was rejected. With
/// `as_text` (the option `WIDTH`) the `answers` are the reply. With `WITHROOM`, the three elements of the reply are
/// these replies, the room, and the seconds until there is more (-1: never).
pub fn admissions(ctx: Ctx, answers: &[u8], room: Option<Room>, as_text: bool) {
    if room.is_some() {
        ctx.reply_array(3);
    }
    if as_text {
        ctx.reply_bulk(answers);
    } else {
        ctx.reply_array(answers.len());
        for &answer in answers {
            ctx.reply_integer(match answer {
                YES => 1,
                NO => 0,
                _ => -1,
            });
        }
    }
    if let Some(Room { items, retry_after }) = room {
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        ctx.reply_integer(signed(items));
        ctx.reply_integer(retry_after.map_or(-1, signed));
    }
}

/// Replies with the label of a field of `INFO`. Labels of filters are simple strings, as in RedisBloom. Labels of
/// counters are bulk strings, because some clients turn simple strings into `true`.
pub fn label(ctx: Ctx, kind: Kind, label: &str) {
    if kind == Kind::Counter { ctx.reply_bulk(label.as_bytes()) } else { ctx.reply_line(label) }
}

/// Replies with the value of a field of `INFO`.
pub fn field(ctx: Ctx, field: &Field) {
    match field {
        // Only forged data have a number of 2^63 or more, which is clamped.
        Field::Integer(value) => ctx.reply_integer(i64::try_from(*value).unwrap_or(i64::MAX)),
        Field::Double(value) => ctx.reply_double(*value),
        Field::Text(text) => ctx.reply_bulk(text.as_bytes()),
        Field::Null => ctx.reply_null(),
    }
}
