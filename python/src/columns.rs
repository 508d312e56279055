//! The items of Arrow columns: texts and bytes in place, whole numbers as their decimal digits, UUIDs as their text.

use std::ops::Range;

use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use rollcall_core::error::Error;

use crate::arguments::Nulls;
use crate::arrow::{Imported, wrong};
use crate::digits::Digits;
use crate::errors::raised_detached;
use crate::rows::BLOCK_ROWS;

/// The rows of a small block: its items stay in the processor's cache, and malloc keeps the memory of their lists.
/// Larger lists go back to the system, which clears their pages for each block: half of the time of whole numbers.
pub(crate) const SMALL_ROWS: usize = 1 << 11;

/// A column of items.
pub(crate) struct Column(Imported);

impl Column {
    /// The column that `given` exports, or `None` if it exports none.
    ///
    /// # Errors
    /// `TypeError` for a column whose items have no agreed text, or with missing values that must not be skipped.
    pub(crate) fn new(given: &Bound<'_, PyAny>, nulls: Nulls) -> PyResult<Option<Self>> {
        let Some(imported) = Imported::new(given)? else { return Ok(None) };
        let column = Column(imported);
        if nulls != Nulls::Skip {
            let missing = given.py().detach(|| column.num_missing());
            if missing > 0 {
                let skip = if nulls == Nulls::Error { "pass nulls=\"skip\", or " } else { "" };
                return Err(PyTypeError::new_err(format!(
                    "missing values are no items ({missing} here): {skip}leave them out in the engine"
                )));
            }
        }
        Ok(Some(column))
    }

    /// Calls `take` with all items but missing values, in blocks.
    pub(crate) fn blocks(&self, py: Python<'_>, mut take: impl FnMut(&[&[u8]]) -> PyResult<()>) -> PyResult<()> {
        let mut texts = Texts::default();
        self.each_block(BLOCK_ROWS, |block| {
            take(&block.items(&mut texts)?)?;
            py.check_signals()
        })
    }

    /// Does the same as [`Self::blocks`] without Python's lock, in small blocks.
    pub(crate) fn blocks_detached(
        &self,
        py: Python<'_>,
        take: impl Fn(&[&[u8]]) -> Result<(), Error> + Sync,
    ) -> PyResult<()> {
        let mut texts = Texts::default();
        self.each_block_detached(py, SMALL_ROWS, |block| raised_detached(take(&block.items(&mut texts)?)))
    }

    /// Calls `take` with all rows, in blocks of at most `block_rows`, without Python's lock.
    pub(crate) fn each_block_detached(
        &self,
        py: Python<'_>,
        block_rows: usize,
        mut take: impl FnMut(Block<'_>) -> PyResult<()> + Send,
    ) -> PyResult<()> {
        let mut rows_since_check = 0;
        py.detach(|| {
            self.each_block(block_rows, |block| {
                rows_since_check += block.rows.len();
                take(block)?;
                if rows_since_check >= BLOCK_ROWS {
                    rows_since_check = 0;
                    Python::attach(|py| py.check_signals())?;
                }
                Ok(())
            })
        })
    }

    /// Calls `take` with all rows, in blocks of at most `block_rows`.
    pub(crate) fn each_block(
        &self,
        block_rows: usize,
        mut take: impl FnMut(Block<'_>) -> PyResult<()>,
    ) -> PyResult<()> {
        for chunk in self.chunks() {
            for start in (0..chunk.len).step_by(block_rows) {
                take(Block { chunk: &chunk, rows: start..chunk.len.min(start + block_rows) })?;
            }
        }
        Ok(())
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.0.chunks.iter().map(ArrayData::len).sum()
    }

    /// An item of this column as a value of Python: int, str or bytes.
    pub(crate) fn as_python<'py>(&self, py: Python<'py>, item: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let text = |bytes: Bound<'py, PyBytes>| PyString::from_encoded_object(&bytes, None, None).map(Bound::into_any);
        let data_type = self.0.chunks.first().map(|chunk| match chunk.data_type() {
            DataType::Dictionary(_, values) => values,
            data_type => data_type,
        });
        let bytes = PyBytes::new(py, item);
        match data_type {
            Some(integers) if integers.is_integer() => py.get_type::<PyInt>().call1((bytes,)),
            Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => text(bytes),
            _ if self.0.holds_uuids => text(bytes),
            _ => Ok(bytes.into_any()),
        }
    }

    /// For each row, whether its value is missing.
    pub(crate) fn missing(&self) -> impl Iterator<Item = bool> {
        self.chunks().flat_map(|chunk| (0..chunk.len).map(move |row| chunk.is_missing(row)))
    }

    /// An answer for each row: of `answers` about the items, and 0 for a missing value.
    pub(crate) fn spread(&self, answers: Vec<u8>) -> Vec<u8> {
        if answers.len() == self.len() {
            return answers;
        }
        let mut answers = answers.into_iter();
        self.missing().map(|is_missing| if is_missing { 0 } else { answers.next().unwrap_or(0) }).collect()
    }

    fn num_missing(&self) -> usize {
        let missing_of = |chunk: Chunk<'_>| match chunk.values {
            Values::Listed { .. } => (0..chunk.len).filter(|&row| chunk.is_missing(row)).count(),
            Values::Missing => chunk.len,
            _ => chunk.nulls.map_or(0, NullBuffer::null_count),
        };
        self.chunks().map(missing_of).sum()
    }

    fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        self.0.chunks.iter().map(|data| Chunk::new(data, self.0.holds_uuids))
    }
}

/// Rows of a column.
pub(crate) struct Block<'a> {
    chunk: &'a Chunk<'a>,
    rows: Range<usize>,
}

impl Block<'_> {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether a row's value is missing. Rows have their numbers in the block.
    #[inline]
    pub(crate) fn is_missing(&self, row: usize) -> bool {
        self.chunk.is_missing(self.rows.start + row)
    }

    /// The items of all rows that are not missing.
    pub(crate) fn items<'t>(&'t self, texts: &'t mut Texts) -> PyResult<Vec<&'t [u8]>> {
        let rows = self.rows.clone();
        let items = match self.chunk.has_missing {
            true => self.chunk.items(rows.filter(|&row| !self.chunk.is_missing(row)), texts),
            false => self.chunk.items(rows, texts),
        };
        items.ok_or_else(is_outside)
    }

    /// Calls `take` with the item of each row, or with `None` if it is missing.
    #[inline(always)]
    pub(crate) fn each(&self, texts: &mut Texts, mut take: impl FnMut(Option<&[u8]>)) -> PyResult<()> {
        if let (Values::Texts { offsets, bytes }, false) = (&self.chunk.values, self.chunk.has_missing) {
            // The usual column needs no list.
            return self.rows.clone().try_for_each(|row| {
                take(Some(text_at(offsets, bytes, row).ok_or_else(is_outside)?));
                Ok(())
            });
        }
        let items = self.items(texts)?;
        let mut items = items.into_iter();
        (0..self.len()).for_each(|row| take(if self.is_missing(row) { None } else { items.next() }));
        Ok(())
    }
}

fn is_outside() -> PyErr {
    wrong("an item lies outside its memory")
}

/// Room for the texts of items that do not lie in a column's memory.
#[derive(Default)]
pub(crate) struct Texts {
    digits: Digits,
    uuids: Vec<[u8; UUID_DIGITS]>,
}

/// A chunk of a column, or a dictionary.
struct Chunk<'a> {
    len: usize,
    nulls: Option<&'a NullBuffer>,
    /// Whether a value may be missing.
    has_missing: bool,
    values: Values<'a>,
}

enum Values<'a> {
    Texts {
        offsets: &'a [i32],
        bytes: &'a [u8],
    },
    LargeTexts {
        offsets: &'a [i64],
        bytes: &'a [u8],
    },
    /// Views of 16 bytes, and the buffers with texts of more than 12 bytes.
    Views {
        views: &'a [u8],
        buffers: &'a [Buffer],
    },
    Rows {
        bytes: &'a [u8],
        width: usize,
    },
    Uuids(&'a [u8]),
    Numbers(Numbers<'a>),
    Listed {
        keys: Numbers<'a>,
        dictionary: Box<Chunk<'a>>,
    },
    /// A column without a type.
    Missing,
}

/// The bytes of a view, of a UUID, and of a text that a view itself has.
const VIEW_BYTES: usize = 16;
const UUID_BYTES: usize = 16;
const UUID_DIGITS: usize = 36;
const INLINE_BYTES: usize = 12;

impl<'a> Chunk<'a> {
    fn new(data: &'a ArrayData, holds_uuids: bool) -> Self {
        // The bytes of a buffer, beginning with the first element.
        let elements = |width: usize| {
            let bytes = data.buffers().first().map_or(&[][..], Buffer::as_slice);
            bytes.get(data.offset().saturating_mul(width)..).unwrap_or_default()
        };
        let texts = || data.buffers().get(1).map_or(&[][..], Buffer::as_slice);
        let values = match data.data_type() {
            DataType::Utf8 | DataType::Binary => Values::Texts { offsets: data.buffer(0), bytes: texts() },
            DataType::LargeUtf8 | DataType::LargeBinary => {
                Values::LargeTexts { offsets: data.buffer(0), bytes: texts() }
            }
            DataType::Utf8View | DataType::BinaryView => {
                Values::Views { views: elements(VIEW_BYTES), buffers: data.buffers().get(1..).unwrap_or_default() }
            }
            DataType::FixedSizeBinary(_) if holds_uuids => Values::Uuids(elements(UUID_BYTES)),
            DataType::FixedSizeBinary(width) => {
                let width = usize::try_from(*width).unwrap_or(0);
                Values::Rows { bytes: elements(width), width }
            }
            DataType::Dictionary(keys, _) => match (Numbers::new(keys, data), data.child_data()) {
                (Some(keys), [dictionary]) => {
                    Values::Listed { keys, dictionary: Box::new(Chunk::new(dictionary, holds_uuids)) }
                }
                _ => Values::Missing,
            },
            integers => Numbers::new(integers, data).map_or(Values::Missing, Values::Numbers),
        };
        let has_missing = data.nulls().is_some()
            || match &values {
                Values::Missing => true,
                Values::Listed { dictionary, .. } => dictionary.has_missing,
                _ => false,
            };
        Chunk { len: data.len(), nulls: data.nulls(), has_missing, values }
    }

    #[inline]
    fn is_missing(&self, row: usize) -> bool {
        self.has_missing
            && (self.nulls.is_some_and(|nulls| row < self.len && nulls.is_null(row))
                || match &self.values {
                    Values::Missing => true,
                    Values::Listed { keys, dictionary } => keys.key(row).is_some_and(|key| dictionary.is_missing(key)),
                    _ => false,
                })
    }

    /// The items of rows; `None` if one lies outside its memory.
    fn items<'t>(&'t self, rows: impl Iterator<Item = usize>, texts: &'t mut Texts) -> Option<Vec<&'t [u8]>> {
        let mut items = Vec::with_capacity(rows.size_hint().1?);
        match &self.values {
            Values::Listed { keys, dictionary } => {
                let keys: Option<Vec<_>> = rows.map(|row| keys.key(row)).collect();
                return dictionary.items(keys?.into_iter(), texts);
            }
            Values::Texts { offsets, bytes } => {
                for row in rows {
                    items.push(text_at(offsets, bytes, row)?);
                }
            }
            Values::Numbers(numbers) => numbers.texts(rows, &mut texts.digits, &mut items)?,
            Values::Uuids(bytes) => {
                texts.uuids.resize(items.capacity(), [0; UUID_DIGITS]);
                for (row, text) in rows.zip(&mut texts.uuids) {
                    items.push(text_of_uuid(bytes, row, text)?);
                }
            }
            _ => {
                for row in rows {
                    items.push(self.item(row)?);
                }
            }
        }
        Some(items)
    }

    /// An item of the rarer kinds of columns.
    #[inline]
    fn item(&self, row: usize) -> Option<&'a [u8]> {
        match &self.values {
            Values::LargeTexts { offsets, bytes } => {
                let (start, end) = (*offsets.get(row)?, *offsets.get(row + 1)?);
                bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            }
            Values::Views { views, buffers } => {
                let view = views.as_chunks::<VIEW_BYTES>().0.get(row)?;
                // The length, the first four bytes, the number of the buffer, and the offset there.
                let number = |at: usize| view.get(at..)?.first_chunk().map(|&bytes| u32::from_ne_bytes(bytes) as usize);
                match number(0)? {
                    len @ ..=INLINE_BYTES => view.get(4..4 + len),
                    len => buffers.get(number(8)?)?.as_slice().get(number(12)?..)?.get(..len),
                }
            }
            Values::Rows { bytes, width } => bytes.get(row.checked_mul(*width)?..)?.get(..*width),
            _ => None,
        }
    }
}

#[inline]
fn text_at<'a>(offsets: &[i32], bytes: &'a [u8], row: usize) -> Option<&'a [u8]> {
    let ends = offsets.get(row..)?.first_chunk::<2>()?;
    // A negative offset becomes one beyond all bytes.
    bytes.get(ends[0] as usize..ends[1] as usize)
}

fn text_of_uuid<'t>(bytes: &[u8], at: usize, text: &'t mut [u8; UUID_DIGITS]) -> Option<&'t [u8]> {
    let mut digits = text.iter_mut();
    let (uuids, _) = bytes.as_chunks::<UUID_BYTES>();
    for (at, byte) in uuids.get(at)?.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            *digits.next()? = b'-';
        }
        for half in [byte >> 4, byte & 15] {
            *digits.next()? = *b"0123456789abcdef".get(usize::from(half))?;
        }
    }
    Some(text)
}

/// Whole numbers of any width.
enum Numbers<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// Uses the slice of whichever type the numbers have.
macro_rules! of_any {
    ($given:expr, $numbers:ident => $used:expr) => {
        match $given {
            Numbers::I8($numbers) => $used,
            Numbers::I16($numbers) => $used,
            Numbers::I32($numbers) => $used,
            Numbers::I64($numbers) => $used,
            Numbers::U8($numbers) => $used,
            Numbers::U16($numbers) => $used,
            Numbers::U32($numbers) => $used,
            Numbers::U64($numbers) => $used,
        }
    };
}

impl<'a> Numbers<'a> {
    fn new(data_type: &DataType, data: &'a ArrayData) -> Option<Self> {
        Some(match data_type {
            DataType::Int8 => Numbers::I8(data.buffer(0)),
            DataType::Int16 => Numbers::I16(data.buffer(0)),
            DataType::Int32 => Numbers::I32(data.buffer(0)),
            DataType::Int64 => Numbers::I64(data.buffer(0)),
            DataType::UInt8 => Numbers::U8(data.buffer(0)),
            DataType::UInt16 => Numbers::U16(data.buffer(0)),
            DataType::UInt32 => Numbers::U32(data.buffer(0)),
            DataType::UInt64 => Numbers::U64(data.buffer(0)),
            _ => return None,
        })
    }

    /// Adds the texts of the numbers in `rows` to `items`, which has room for them.
    fn texts<'t>(
        &self,
        rows: impl Iterator<Item = usize>,
        digits: &'t mut Digits,
        items: &mut Vec<&'t [u8]>,
    ) -> Option<()> {
        // The type is decided here, once for all rows.
        of_any!(self, numbers => {
            let mut is_inside = true;
            let inside = rows.map_while(|row| {
                is_inside = row < numbers.len();
                numbers.get(row).map(|&number| number.into())
            });
            digits.write(inside, items);
            is_inside.then_some(())
        })
    }

    #[inline]
    fn get(&self, row: usize) -> Option<i128> {
        of_any!(self, numbers => numbers.get(row).map(|&number| number.into()))
    }

    /// A number as the place of an item in a dictionary.
    #[inline]
    fn key(&self, row: usize) -> Option<usize> {
        usize::try_from(self.get(row)?).ok()
    }
}
