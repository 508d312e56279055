//! Reads arrays as items: each row of an object with Python's buffer protocol is an item.
//!
//! Other threads may write to the memory of an array while Python's lock is released, and extension modules even while
//! it is held. So no `&[u8]` to this memory may exist. Rows are copied in blocks while Python's lock is held, through
//! cells that others may change. The copies are hashed after the lock is released. This costs one more pass within the
//! processor's cache, and no memory in proportion to the array.

use std::slice;

use pyo3::buffer::{PyUntypedBuffer, ReadOnlyCell};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Number of bytes of a block. Blocks are large because each block takes Python's lock again, which takes up to 5 ms
/// under contention.
const BLOCK_BYTES: usize = 4 << 20;

/// The largest number of rows in a block.
pub(crate) const BLOCK_ROWS: usize = 1 << 16;

/// The rows of a buffer.
pub(crate) struct Rows {
    buffer: PyUntypedBuffer,
    width: usize,
    len: usize,
    /// Whether zeros at the end of a row are padding.
    padded: bool,
}

impl Rows {
    /// The rows of a buffer. A row has `width` bytes if given; otherwise it is an element of a one-dimensional array of
    /// bytes, or a row of a two-dimensional one.
    ///
    /// Without `width`, numbers are rejected: their bytes are other items than the digits that clients send.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` if the buffer has no rows of bytes; the message says why.
    pub(crate) fn new(buffer: PyUntypedBuffer, width: Option<usize>) -> PyResult<Self> {
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "the rows of the array do not lie one after another: pass numpy.ascontiguousarray(array)",
            ));
        }
        let format = buffer.format().to_bytes();
        if holds(format, b"O") {
            return Err(PyTypeError::new_err("an array of objects holds no bytes: pass array.tolist()"));
        }
        if holds(format, b"wu") {
            return Err(PyTypeError::new_err("an array of str holds UTF-32: pass array.tolist()"));
        }
        // These letters also occur in the formats of complex numbers: `Zf`, `Zd` and `Zg`.
        if holds(format, b"efdg") {
            return Err(PyTypeError::new_err(
                "floats are no items, and a missing value makes floats of whole numbers: drop missing values before, \
                 and pass map('{:d}'.format, array.tolist())",
            ));
        }
        let is_structure = format.starts_with(b"T{");
        let (of_shape, padded) = match (buffer.shape(), format) {
            (&[_], [.., b's']) => (Some(buffer.item_size()), true),
            // Bytes without a type, such as NumPy's void.
            (&[_], [.., b'x']) => (Some(buffer.item_size()), false),
            (&[_, last], b"B" | b"b" | b"c") => (Some(last), false),
            _ => (None, false),
        };
        let (width, padded) = match (width, of_shape) {
            (Some(width), _) => (width, false),
            (None, Some(width)) => (width, padded),
            (None, None) => {
                let digits = if is_structure || buffer.dimensions() != 1 {
                    ""
                } else {
                    "pass map('{:d}'.format, array.tolist()) for the digits of its numbers, or "
                };
                return Err(PyTypeError::new_err(format!(
                    "expected an array of bytes (dtype S), or of two dimensions with bytes in the last, got {} of \
                     format '{}': {digits}width= for its bytes",
                    match buffer.dimensions() {
                        1 => "one dimension".to_owned(),
                        dimensions => format!("{dimensions} dimensions"),
                    },
                    buffer.format().to_string_lossy(),
                )));
            }
        };
        let len = match (width, buffer.len_bytes()) {
            // If rows have zero bytes, the number of rows follows only from the shape.
            (0, 0) if of_shape == Some(0) => buffer.shape().first().copied().unwrap_or(0),
            (0, _) => return Err(PyValueError::new_err("width must be at least 1, got 0")),
            (width, bytes) if bytes % width == 0 => bytes / width,
            (width, bytes) => {
                return Err(PyValueError::new_err(format!("{bytes} bytes are no whole number of rows of {width}")));
            }
        };
        Ok(Rows { buffer, width, len, padded })
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of rows in a block.
    pub(crate) fn block_rows(&self) -> usize {
        (BLOCK_BYTES / self.width.max(1)).clamp(1, BLOCK_ROWS)
    }

    /// Replaces the contents of `block` by copies of `len` rows, beginning with row `start`.
    ///
    /// # Errors
    /// `MemoryError` if memory for the block is short.
    pub(crate) fn copy(&self, py: Python<'_>, start: usize, len: usize, block: &mut Vec<u8>) -> PyResult<()> {
        let bytes = start.saturating_mul(self.width)..start.saturating_add(len).saturating_mul(self.width);
        let cells = self.cells(py).get(bytes).unwrap_or_default();
        block.clear();
        block.try_reserve(cells.len()).map_err(|_| no_memory(cells.len()))?;
        block.extend(cells.iter().map(ReadOnlyCell::get));
        Ok(())
    }

    /// Splits a block into its `len` rows.
    pub(crate) fn split<'a>(&self, block: &'a [u8], len: usize) -> impl Iterator<Item = &'a [u8]> {
        let (width, padded) = (self.width, self.padded);
        (0..len).map(move |row| {
            let row = block.get(row * width..(row + 1) * width).unwrap_or_default();
            match row.iter().rposition(|&byte| byte != 0) {
                _ if !padded => row,
                Some(last) => &row[..=last],
                None => &[],
            }
        })
    }

    /// All bytes of the buffer, as cells that other threads may change.
    fn cells<'a>(&'a self, _py: Python<'a>) -> &'a [ReadOnlyCell<u8>] {
        let (start, len) = (self.buffer.buf_ptr().cast::<ReadOnlyCell<u8>>(), self.buffer.len_bytes());
        if len == 0 || start.is_null() {
            return &[];
        }
        // SAFETY: A buffer that is contiguous (`new` asked) has `len` bytes from `start` on. They stay there until it
        // is released, which `self` keeps from happening. A cell may be changed by others, has no invalid value, and
        // has the size and the alignment of a byte (it is `repr(transparent)`).
        unsafe { slice::from_raw_parts(start, len) }
    }
}

/// Whether a format has one of these characters; in the format of a structure, `T{<i8:name:...}`, as the type of a
/// field.
fn holds(format: &[u8], characters: &[u8]) -> bool {
    // Types and names alternate, separated by ":".
    format.split(|&byte| byte == b':').step_by(2).any(|types| types.iter().any(|byte| characters.contains(byte)))
}

/// A `MemoryError` that names a number of bytes.
pub(crate) fn no_memory(num_bytes: usize) -> PyErr {
    PyMemoryError::new_err(format!("{num_bytes} bytes are more than there is memory for"))
}
