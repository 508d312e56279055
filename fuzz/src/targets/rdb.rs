//! The target `rdb`: loads RDB values in Rollcall's format.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::unstable::persist::{Partial, rdb as ours};

use crate::family::Family;
use crate::fields::Field;
use crate::forge::{self, Raw};
use crate::input::Input;
use crate::laws;
use crate::limit::Limit;
use crate::made::MADE_BYTES;
use crate::values::{cut_after, load_ours, rdb_of, rdb_of_loading};

/// Loads an RDB value in Rollcall's format: a saved value after changes, or the bytes of the input.
pub fn rdb(data: &[u8]) {
    let mut input = Input::new(data);
    match input.choice(2) {
        0 => load::<BloomFilter>(&mut input),
        _ => load::<Counter>(&mut input),
    }
}

fn load<T: Family>(input: &mut Input<'_>) {
    let (limit, cut, way) = (Limit::chosen(input), input.number(), input.choice(8));
    let loaded = if way == 0 {
        ours::load::<T::Partial>(&mut Raw(input), &limit)
    } else {
        let Some(fields) = forged::<T>(way, cut, input, &limit) else { return };
        load_ours(&fields, &limit)
    };
    let Ok(loading) = loaded else { return };
    limit.check_taken(0, limit.taken::<T::Partial>(|visit| loading.heap_layouts(visit)));
    laws::check_loading(&loading);
    if let Ok(value) = loading.finish() {
        limit.check_taken(0, limit.taken_by(&value));
        laws::check(&value, cut);
    }
}

/// The RDB value that the input makes; `None` if it makes none.
pub(crate) fn fields<T: Family>(input: &mut Input<'_>) -> Option<Vec<Field>> {
    let (limit, cut, way) = (Limit::chosen(input), input.number(), input.choice(8));
    if way == 0 { None } else { forged::<T>(way, cut, input, &limit) }
}

fn forged<T: Family>(way: u8, cut: u64, input: &mut Input<'_>, limit: &Limit) -> Option<Vec<Field>> {
    if way == 1 {
        return of_header::<T::Partial>(input, limit).ok();
    }
    let value = T::made(input, &Limit::of(MADE_BYTES)).ok()?;
    Some(changed::<T>(value, cut, input))
}

/// Header and payload from the bytes of the input, with correct checksums.
fn of_header<L: Partial>(input: &mut Input<'_>, limit: &Limit) -> Result<Vec<Field>, Error> {
    let len = usize::from(input.u16()) % 1024;
    let mut header = [input.bytes(len), &[0; 4]].concat();
    forge::seal_header(&mut header);
    let loading = L::begin(&header, limit)?;
    let (stored_bytes, piece) = (loading.total_bytes(), input.bytes(1 << 16));
    let mut fields = vec![Field::String(header)];
    if stored_bytes > 0 {
        fields.extend([Field::Unsigned(stored_bytes.min(piece.len() as u64)), Field::Unsigned(0)]);
        fields.extend([Field::Unsigned(0), Field::String(piece.to_vec())]);
    }
    forge::seal_fields(&mut fields, &loading);
    Ok(fields)
}

/// The RDB value of a complete or partially loaded value, after changes. Mostly the checksums are corrected afterwards.
fn changed<T: Family>(value: T, cut: u64, input: &mut Input<'_>) -> Vec<Field> {
    let mut fields = if input.flag() { partial(&value, cut) } else { rdb_of(&value) };
    if let Some(Field::String(header)) = fields.first_mut() {
        forge::change_header(input, header);
    }
    for _ in 0..input.choice(4) {
        forge::change_fields(input, &mut fields);
    }
    if input.byte() < 240
        && let Some(Field::String(header)) = fields.first()
        && let Ok(loading) = T::Partial::begin(header, &Limit::of(1 << 20))
    {
        forge::seal_fields(&mut fields, &loading);
    }
    fields
}

/// The RDB value of a partially loaded value, or of a complete one whose header has the whole payload.
fn partial<T: Value>(value: &T, cut: u64) -> Vec<Field> {
    match value.payload().len() {
        0 => rdb_of(value),
        bytes => rdb_of_loading(&cut_after(value, cut % bytes)),
    }
}
