//! Equality of counters.

use rollcall_core::counting::Counter;
use rollcall_core::live::Value;

/// Whether two counters have equal parameters and equal members or bits, last added in the same slices.
pub(crate) fn are_equal(one: &Counter, other: &Counter) -> bool {
    // The digest visits the members of an exact counter in sorted order, so the order of insertion makes no difference.
    let records = |counter: &Counter| {
        let mut records = Vec::new();
        counter.digest(&mut |record| records.push(record.to_vec()));
        records
    };
    one.count() == other.count() && records(one) == records(other)
}
