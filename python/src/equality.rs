//! What equal counters are.

use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::live::Windowed;
use rollcall_core::persist;
use rollcall_core::window::Time;

/// Whether two counters answer the same to everything.
pub(crate) fn are_equal(one: &Counter, other: &Counter) -> Result<bool, Error> {
    if (one.params(), one.window(), one.newest_slice()) != (other.params(), other.window(), other.newest_slice())
        || one.count() != other.count()
    {
        return Ok(false);
    }
    if !one.is_exact() || !other.is_exact() {
        return Ok(persist::dump(one).eq(persist::dump(other)));
    }
    // Members are listed in the order they came.
    let newest = one.newest_slice().unwrap_or(0).into();
    for slice in one.oldest_alive(Time::Reached)..=newest {
        let members = |counter: &Counter| -> Result<Vec<Vec<u8>>, Error> {
            let mut members: Vec<_> = counter.members_since(slice)?.map(<[u8]>::to_vec).collect();
            members.sort_unstable();
            Ok(members)
        };
        if members(one)? != members(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}
