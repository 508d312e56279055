//! The command `ADVANCE`, which moves a sliding window to a time slice, or makes it follow the system clock.

use std::cmp::Ordering;

use rollcall_core::error::Parameter;
use rollcall_core::window::{ClockSource, Move};

use super::changes::change_live;
use super::effects::{Effects, announce};
use super::keyspace::value_mut;
use super::windows::{expiry_of, no_window, time_of};
use crate::args;
use crate::command_error::{CommandError, bad, quoted};
use crate::server::facts::must_obey;
use crate::server::ffi::{Arg, Args, Ctx, Mode};
use crate::types::family::{Family, change};
use crate::types::names::Verb;

enum To {
    Slice(u64),
    Rebased(u64),
    Clock,
}

fn read_target(args: Args<'_>) -> Result<To, CommandError> {
    let is = |at: usize, word: &[u8]| args.get(at).bytes().eq_ignore_ascii_case(word);
    match args.len() {
        3 if is(2, b"CLOCK") => Ok(To::Clock),
        3 => Ok(To::Slice(args::count(Parameter::Slice, args.get(2))?)),
        4 if is(3, b"REBASE") => Ok(To::Rebased(args::count(Parameter::Slice, args.get(2))?)),
        4 => bad(format!("unknown option {}: expected none", quoted(args.get(3).bytes()))),
        _ => Err(CommandError::Arity),
    }
}

/// Runs `ADVANCE key slice | CLOCK`, and the replicated form `ADVANCE key slice REBASE`.
pub(super) fn advance<T: Family>(ctx: Ctx, args: Args<'_>) -> Result<(), CommandError> {
    let to = read_target(args)?;
    let mut key = ctx.open(args.get(1), Mode::Write)?;
    let (changed, made, expiry) = match value_mut::<T>(&mut key) {
        // On a replica, the value may be missing or partially loaded. The command then does nothing.
        Ok(None) | Err(CommandError::StillLoading(_)) if must_obey(ctx) => (false, Move::Stay, None),
        opened => {
            let value = opened?.ok_or(CommandError::NotFound)?;
            if !must_obey(ctx) {
                check(ctx, value, args.get(1), &to)?;
            }
            let (changed, mut made) = (go_to(value, &to), Move::Stay);
            if let To::Clock = to {
                // On a replica this moves nothing, because the primary sends a separate command for it.
                let ((), outcome) = change_live(ctx, value, |live| live.move_on());
                T::dispose(outcome.expired);
                made = outcome.before;
            }
            let has_moved = changed || made != Move::Stay;
            (changed, made, if has_moved { expiry_of(ctx, value) } else { None })
        }
    };
    if changed {
        ctx.replicate_under(T::OWN_PREFIX.name(Verb::Advance), args);
    }
    // `announce` sends an event for the move `made`. A second event is not needed then.
    let event = (changed && made == Move::Stay).then_some(Verb::Advance);
    let effects = Effects { event, after: made, expiry, ..Effects::default() };
    announce::<T>(ctx, key, effects, |_| ());
    ctx.reply_simple(c"OK");
    Ok(())
}

/// Moves the window of `value` to the target `to`. Returns whether the value changed.
fn go_to<T: Family>(value: &mut T, to: &To) -> bool {
    let (window, newest) = (value.window().copied(), value.newest_slice());
    if window.is_none() {
        return false;
    }
    change(value, |value| match *to {
        To::Slice(slice) => T::dispose(value.advance(slice)),
        To::Rebased(slice) => value.rebase(slice),
        To::Clock => value.set_clock_source(ClockSource::System),
    });
    let has_moved = newest != value.newest_slice();
    T::ADVANCES.add(has_moved.into());
    has_moved || window != value.window().copied()
}

/// Checks the target `to` that a client gave.
fn check<T: Family>(ctx: Ctx, value: &T, key: Arg<'_>, to: &To) -> Result<(), CommandError> {
    let window = value.window().zip(value.present_slice(time_of(ctx, [value])));
    let (window, present) = window.ok_or_else(|| no_window(value, key, "create it with WINDOW"))?;
    let reject = |expected: String, got: u64| bad(format!("bad slice: expected {expected}, got {got}"));
    match *to {
        To::Clock => Ok(()),
        To::Rebased(_) => bad("option REBASE is for replicas and the AOF"),
        To::Slice(slice) => match slice.cmp(&present) {
            Ordering::Less => reject(format!("at least {present}, which the window has reached"), slice),
            Ordering::Greater if window.clock_source() == ClockSource::System => {
                reject(format!("at most {present}, that of the clock by which the window goes"), slice)
            }
            _ => Ok(()),
        },
    }
}
