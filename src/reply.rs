//! Reply shapes in RESP2 and RESP3.

use crate::refusal::Refusal;
use crate::server::ffi::Ctx;
use crate::server::metrics::{FULL_REFUSED, MEMORY_REFUSED};
use rollcall_core::admission::Admission;
use rollcall_core::error::Error;
use rollcall_core::unstable::info::Field;

/// Replies with the error for `refusal`.
pub fn refuse(ctx: Ctx, refusal: Refusal) {
    match refusal {
        Refusal::Arity => ctx.reply_wrong_arity(),
        other => reply_refusal(ctx, &other),
    }
}

/// Counts a refusal by a full filter, or by an allocator that has no more. Those by limits are counted where they are
/// found.
pub fn count(refusal: &Refusal) {
    match refusal {
        Refusal::Core { error: Error::Full { .. }, .. } => FULL_REFUSED.count(),
        Refusal::Core { error: Error::OutOfMemory { .. }, .. } => MEMORY_REFUSED.count(),
        _ => {}
    }
}

fn reply_refusal(ctx: Ctx, refusal: &Refusal) {
    count(refusal);
    ctx.reply_error(&refusal.text());
}

/// `OK`.
pub fn ok(ctx: Ctx) {
    ctx.reply_simple(c"OK");
}

/// An array of booleans, one for each item handled. If an item was refused, its error is the last element.
pub fn bools(ctx: Ctx, values: &[bool], stopped: Option<Refusal>) {
    ctx.reply_array(values.len() + usize::from(stopped.is_some()));
    for &value in values {
        ctx.reply_bool(value);
    }
    if let Some(refusal) = stopped {
        reply_refusal(ctx, &refusal);
    }
}

/// An array of integers, one for each item: 1 where it came in, 0 where it was known, -1 where it was refused.
pub fn admissions(ctx: Ctx, told: &[Admission]) {
    ctx.reply_array(told.len());
    for one in told {
        ctx.reply_integer(match one {
            Admission::Admitted => 1,
            Admission::Known => 0,
            Admission::Refused => -1,
        });
    }
}

fn field(ctx: Ctx, field: &Field) {
    match field {
        // Sizes and counts stay below 2^63 (see the limits on capacity and size); a forged one is clamped.
        Field::Integer(value) => ctx.reply_integer(i64::try_from(*value).unwrap_or(i64::MAX)),
        Field::Double(value) => ctx.reply_double(*value),
        Field::Text(text) => ctx.reply_bulk(text.as_bytes()),
        Field::Null => ctx.reply_null(),
    }
}

/// Labels and values: a map in RESP3, a flat array in RESP2.
pub fn info_all(ctx: Ctx, lines: impl ExactSizeIterator<Item = (&'static str, Field)>) {
    ctx.reply_map(lines.len());
    for (label, value) in lines {
        ctx.reply_line(label);
        field(ctx, &value);
    }
}

/// One value: a map of one pair in RESP3, an array of the value in RESP2.
pub fn info_field(ctx: Ctx, label: &str, value: &Field) {
    if ctx.is_resp3() {
        ctx.reply_map(1);
        ctx.reply_line(label);
    } else {
        ctx.reply_array(1);
    }
    field(ctx, value);
}
