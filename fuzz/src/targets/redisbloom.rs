//! The target `redisbloom`: loads RDB values in RedisBloom's format.

use rollcall_core::bloom::{BitLayout, BloomFilter};
use rollcall_core::error::Error;
use rollcall_core::unstable::persist::redisbloom::{RDB_ENCODING_NEWEST, load_rdb};

use crate::family::Family;
use crate::fields::{Field, Fields};
use crate::forge::{self, Raw};
use crate::input::Input;
use crate::laws;
use crate::limit::Limit;
use crate::made::MADE_BYTES;

/// Number of fields before the first sub-filter, from encoding version 4 on.
const CHAIN_FIELDS: usize = 4;

/// Number of fields of each sub-filter.
const SUB_FILTER_FIELDS: usize = 8;

/// The largest bitmap that [`make_consistent`] makes, in bytes.
const MOST_BYTES: u64 = 1 << 16;

/// Loads an RDB value in RedisBloom's format: a saved filter after changes, or the bytes of the input.
pub fn redisbloom(data: &[u8]) {
    let mut input = Input::new(data);
    let (limit, cut, encoding, is_raw) = beginning(&mut input);
    let loaded = if is_raw {
        load_rdb(&mut Raw(&mut input), encoding, &limit)
    } else {
        let Ok(fields) = changed(&mut input, encoding) else { return };
        load_rdb(&mut Fields(&fields), encoding, &limit)
    };
    if let Ok(filter) = loaded {
        limit.check_taken(0, limit.taken_by(&filter));
        laws::check(&filter, cut);
    }
}

/// The size limit of the value, where its payload is cut, its encoding version, and whether its fields come from the
/// input itself.
fn beginning(input: &mut Input<'_>) -> (Limit, u64, u32, bool) {
    let (limit, cut) = (Limit::chosen(input), input.number());
    let encoding = RDB_ENCODING_NEWEST - u32::from(input.choice(8)).saturating_sub(4).min(RDB_ENCODING_NEWEST);
    (limit, cut, encoding, input.choice(8) == 0)
}

/// The encoding version, and the RDB value that the input makes; `None` if it makes none.
pub(crate) fn fields(input: &mut Input<'_>) -> (u32, Option<Vec<Field>>) {
    let (_, _, encoding, is_raw) = beginning(input);
    (encoding, if is_raw { None } else { changed(input, encoding).ok() })
}

/// The RDB value that RedisBloom would store for a filter, after changes.
fn changed(input: &mut Input<'_>, encoding: u32) -> Result<Vec<Field>, Error> {
    let filter = BloomFilter::made(input, &Limit::of(MADE_BYTES))?;
    if filter.layout() != BitLayout::Classic {
        return Err(Error::corrupt("layout", "classic", filter.layout()));
    }
    let mut fields = filter.save();
    for _ in 0..input.choice(5) {
        forge::change_fields(input, &mut fields);
    }
    if input.byte() < 200 {
        make_consistent(&mut fields);
    }
    if encoding < RDB_ENCODING_NEWEST && fields.len() >= CHAIN_FIELDS {
        fields.remove(CHAIN_FIELDS - 1);
    }
    Ok(fields)
}

/// Makes each bitmap as long as its size field says, and corrects the total number of items.
fn make_consistent(fields: &mut [Field]) {
    let Some((chain, rest)) = fields.split_at_mut_checked(CHAIN_FIELDS) else { return };
    let mut total_items = 0u64;
    for sub_filter in rest.chunks_mut(SUB_FILTER_FIELDS) {
        if let [_, _, _, _, Field::Unsigned(num_bits), _, Field::String(bitmap), Field::Unsigned(items)] = sub_filter {
            if *num_bits / 8 <= MOST_BYTES {
                bitmap.resize((*num_bits / 8) as usize, 0x55);
            }
            total_items = total_items.saturating_add(*items);
        }
    }
    chain[0] = Field::Unsigned(total_items);
}
