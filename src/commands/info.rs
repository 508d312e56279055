//! The commands `BF.INFO` and `LC.INFO`. The core library's tables define the fields.

use rollcall_core::unstable::info::{Field, InfoField};

use super::argument::{Argument, choice};
use crate::command_error::{CommandError, Kind, bad, quoted};
use crate::reply;
use crate::server::ffi::{Args, Ctx};

/// The words that select the `fields`, for `COMMAND DOCS`.
pub const fn choices<F, const N: usize>(fields: &[InfoField<F>; N]) -> [Argument; N] {
    let mut all = [const { choice(c"", c"") }; N];
    let mut at = 0;
    while at < N {
        all[at] = choice(fields[at].word, fields[at].name);
        at += 1;
    }
    all
}

/// Runs `BF.INFO key [field]` or `LC.INFO key [field]`. It replies with the first `shown` of the `fields`, or with the
/// field that the command names by its word or its label, without the label in RESP2. `value_of` computes the value of
/// a field. `kind` is the kind of the stored value.
pub fn info<F: Copy>(
    ctx: Ctx,
    args: Args<'_>,
    kind: Kind,
    fields: &[InfoField<F>],
    shown: usize,
    value_of: impl Fn(F) -> Field,
) -> Result<(), CommandError> {
    if args.len() == 2 {
        ctx.reply_map(shown);
        for field in &fields[..shown] {
            reply::label(ctx, kind, field.label);
            reply::field(ctx, &value_of(field.of));
        }
        return Ok(());
    }
    let asked = args.get(2).bytes();
    let is_asked = |name: &[u8]| asked.eq_ignore_ascii_case(name);
    let found = fields.iter().find(|field| is_asked(field.word.to_bytes()) || is_asked(field.label.as_bytes()));
    let Some(field) = found else {
        let words: Vec<_> = fields.iter().map(|field| field.word.to_str().unwrap_or_default()).collect();
        let (expected, got) = (words.join(", "), quoted(asked));
        return bad(format!("Invalid information value: expected one of {expected}, got {got}"));
    };
    if ctx.is_resp3() {
        ctx.reply_map(1);
        reply::label(ctx, kind, field.label);
    } else {
        ctx.reply_array(1);
    }
    reply::field(ctx, &value_of(field.of));
    Ok(())
}
