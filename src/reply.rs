//! Writes the replies of commands, for RESP2 and RESP3.

use crate::command_error::{CommandError, Kind};
use crate::server::ffi::Ctx;
use crate::server::metrics::{FULL_REJECTED, MEMORY_REJECTED};
use rollcall_core::admission::{Admission, Room};
use rollcall_core::error::Error;
use rollcall_core::unstable::info::Field;

/// Replies with the text of `error`. `kind` is the kind of value that the command is for. Full filters and
/// lacking memory are also counted in the metrics. [`ServerLimit`](crate::limits::ServerLimit) counts the errors of
/// size limits.
pub fn reject(ctx: Ctx, kind: Kind, error: &CommandError) {
    match error {
        CommandError::Arity => return ctx.reply_wrong_arity(),
        CommandError::Core(Error::Full { .. }) => FULL_REJECTED.count(),
        CommandError::Core(Error::OutOfMemory { .. }) => MEMORY_REJECTED.count(),
        _ => {}
    }
    ctx.reply_error(&error.text(kind));
}

/// Replies with an array of booleans, one per handled item. The error of a rejected item is the last element.
pub fn bools(ctx: Ctx, values: &[bool], stopped: Option<CommandError>) {
    ctx.reply_array(values.len() + usize::from(stopped.is_some()));
    for &value in values {
        ctx.reply_bool(value);
    }
    if let Some(error) = stopped {
        reject(ctx, Kind::Filter, &error);
    }
}

/// Replies to `ADMIT` with an integer per item: 1 if it was added, 0 if it was known, -1 if it was rejected. With
/// `WITHROOM`, the three elements of the reply are this array, the room, and the seconds until there is more (-1:
/// never).
pub fn admissions(ctx: Ctx, reported: &[Admission], room: Option<Room>) {
    if room.is_some() {
        ctx.reply_array(3);
    }
    ctx.reply_array(reported.len());
    for one in reported {
        ctx.reply_integer(match one {
            Admission::Admitted => 1,
            Admission::Known => 0,
            Admission::Rejected => -1,
        });
    }
    if let Some(Room { items, retry_after }) = room {
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        ctx.reply_integer(signed(items));
        ctx.reply_integer(retry_after.map_or(-1, signed));
    }
}

fn field(ctx: Ctx, field: &Field) {
    match field {
        // Only forged data have a number of 2^63 or more, which is clamped.
        Field::Integer(value) => ctx.reply_integer(i64::try_from(*value).unwrap_or(i64::MAX)),
        Field::Double(value) => ctx.reply_double(*value),
        Field::Text(text) => ctx.reply_bulk(text.as_bytes()),
        Field::Null => ctx.reply_null(),
    }
}

/// Labels of filters are simple strings, as in RedisBloom. Labels of counters are bulk strings, because some clients
/// turn simple strings into `true`.
fn label(ctx: Ctx, kind: Kind, label: &str) {
    if kind == Kind::Counter { ctx.reply_bulk(label.as_bytes()) } else { ctx.reply_line(label) }
}

/// Replies with pairs of a label and a value: a map in RESP3, a flat array in RESP2.
pub fn info_all(ctx: Ctx, kind: Kind, lines: impl ExactSizeIterator<Item = (&'static str, Field)>) {
    ctx.reply_map(lines.len());
    for (name, value) in lines {
        label(ctx, kind, name);
        field(ctx, &value);
    }
}

/// Replies with a map of one label and value in RESP3, and with an array of the value in RESP2.
pub fn info_field(ctx: Ctx, kind: Kind, name: &str, value: &Field) {
    if ctx.is_resp3() {
        ctx.reply_map(1);
        label(ctx, kind, name);
    } else {
        ctx.reply_array(1);
    }
    field(ctx, value);
}
