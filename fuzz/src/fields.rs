//! RDB values as lists of primitives, to write, read and forge them without a server.

use rollcall_core::error::Error;
use rollcall_core::unstable::persist::rdb::{Sink, Source};

/// One primitive of an RDB value.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Unsigned(u64),
    Double(f64),
    String(Vec<u8>),
}

/// An RDB value that is being written, as a list of its primitives.
#[derive(Default)]
pub struct Written(pub Vec<Field>);

impl Sink for Written {
    fn unsigned(&mut self, value: u64) {
        self.0.push(Field::Unsigned(value));
    }

    fn double(&mut self, value: f64) {
        self.0.push(Field::Double(value));
    }

    fn string(&mut self, bytes: &[u8]) {
        self.0.push(Field::String(bytes.to_vec()));
    }
}

/// The primitives that `save` writes.
pub fn written(save: impl FnOnce(&mut Written)) -> Vec<Field> {
    let mut sink = Written::default();
    save(&mut sink);
    sink.0
}

/// An RDB value, read from its start.
pub struct Fields<'a>(pub &'a [Field]);

impl<'a> Fields<'a> {
    fn next(&mut self, field: &'static str) -> Result<&'a Field, Error> {
        let (first, rest) = self.0.split_first().ok_or_else(|| Error::corrupt(field, "more", "the end"))?;
        self.0 = rest;
        Ok(first)
    }
}

impl<'a> Source for Fields<'a> {
    type Bytes = &'a [u8];

    fn unsigned(&mut self, field: &'static str) -> Result<u64, Error> {
        match self.next(field)? {
            Field::Unsigned(value) => Ok(*value),
            other => Err(Error::corrupt(field, "an unsigned", format_args!("{other:?}"))),
        }
    }

    fn double(&mut self, field: &'static str) -> Result<f64, Error> {
        match self.next(field)? {
            Field::Double(value) => Ok(*value),
            other => Err(Error::corrupt(field, "a double", format_args!("{other:?}"))),
        }
    }

    fn string(&mut self, field: &'static str) -> Result<&'a [u8], Error> {
        match self.next(field)? {
            Field::String(bytes) => Ok(bytes),
            other => Err(Error::corrupt(field, "a string", format_args!("{other:?}"))),
        }
    }
}
