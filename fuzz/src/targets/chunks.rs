//! The target `chunks`: loads chunks as `LOADCHUNK` does on a server.

use rollcall_core::bloom::BloomFilter;
use rollcall_core::counting::Counter;
use rollcall_core::error::Error;
use rollcall_core::live::Value;
use rollcall_core::unstable::persist::{Partial, is_header, push_chunk, scandump};

use crate::family::Family;
use crate::forge;
use crate::input::Input;
use crate::laws::{self, is_same_loading};
use crate::limit::Limit;
use crate::made::MADE_BYTES;

/// The largest number of chunks that one input loads.
const MOST_CHUNKS: usize = 16;

/// Loads chunks that are made of two values. Chunks are cut anywhere, may be damaged, and come in any order, mostly
/// with correct checksums. They come from clients or from a primary.
pub fn chunks(data: &[u8]) {
    let mut input = Input::new(data);
    match input.choice(2) {
        0 => load::<BloomFilter>(&mut input),
        _ => load::<Counter>(&mut input),
    }
}

/// The state of a key.
enum Key<T: Value> {
    Missing,
    Partial(T::Partial),
    Ready(T),
}

impl<T: Value> Key<T> {
    /// Does what `LOADCHUNK` from a client does, except that a value with all its chunks stays unfinished.
    fn push(&mut self, next: u64, chunk: &[u8], limit: &Limit) -> Result<(), Error> {
        match self {
            Key::Missing if is_header(next) => *self = Key::Partial(T::Partial::begin(chunk, limit)?),
            Key::Partial(loading) => push_chunk(loading, next, chunk)?,
            Key::Missing | Key::Ready(_) => return Err(Error::corrupt("chunk", "a key that takes it", next)),
        }
        Ok(())
    }

    /// Finishes a value that has received all its chunks.
    fn settle(&mut self) {
        *self = match std::mem::replace(self, Key::Missing) {
            Key::Partial(loading) if loading.received_bytes() == loading.total_bytes() => {
                Key::Ready(loading.finish().expect("all of it has arrived"))
            }
            unfinished => unfinished,
        };
    }
}

/// The values whose chunks are loaded.
fn sources<T: Family>(input: &mut Input<'_>) -> Vec<T> {
    let sources = [(); 2].map(|()| T::made(input, &Limit::of(MADE_BYTES)).ok());
    sources.into_iter().flatten().collect()
}

fn load<T: Family>(input: &mut Input<'_>) {
    let (limit, cut, sources) = (Limit::chosen(input), input.number(), sources::<T>(input));
    let mut key = Key::<T>::Missing;
    for _ in 0..MOST_CHUNKS {
        if input.is_empty() {
            break;
        }
        let is_obeyed = input.byte() >= 224;
        let (next, chunk) = chunk_of(input, &sources, &key);
        take(&mut key, next, &chunk, is_obeyed, &limit);
    }
    if let Key::Ready(value) = &key {
        laws::check(value, cut);
    }
}

/// The chunks for one key that an input makes.
pub(crate) fn sequence<T: Family>(input: &mut Input<'_>) -> Vec<(u64, Vec<u8>)> {
    let (limit, _, sources) = (Limit::chosen(input), input.number(), sources::<T>(input));
    let (mut key, mut chunks) = (Key::<T>::Missing, Vec::new());
    while chunks.len() < MOST_CHUNKS && !input.is_empty() {
        let _is_obeyed = input.byte();
        let (next, chunk) = chunk_of(input, &sources, &key);
        let _ = key.push(next, &chunk, &limit);
        key.settle();
        chunks.push((next, chunk));
    }
    chunks
}

/// The next chunk, after its iterator.
fn chunk_of<T: Family>(input: &mut Input<'_>, sources: &[T], key: &Key<T>) -> (u64, Vec<u8>) {
    let Some(source) = sources.get(usize::from(input.choice(2)) % sources.len().max(1)) else {
        return (input.number(), input.bytes(64).to_vec());
    };
    let stamp = u64::from(input.byte() & 7) << 43;
    match (input.choice(8), key) {
        (0 | 1, Key::Missing) | (2, _) => {
            let mut header = source.header();
            if input.flag() {
                forge::change_header(input, &mut header);
            }
            (1, header)
        }
        (0 | 1 | 3 | 4, Key::Partial(loading)) => {
            let (position, len) = (loading.received_bytes(), usize::from(input.u16()).max(1));
            let mut piece = source.payload().piece(position, len).into_owned();
            if input.byte() < 64 {
                forge::change(input, &mut piece);
            }
            let next = position.saturating_add(piece.len() as u64).saturating_add(1);
            (next | stamp, forge::chunk(loading.chunk_format(), position, &piece))
        }
        // The chunk that the server would return.
        (0 | 1 | 3 | 4 | 5, _) => match scandump(source, input.number()) {
            Ok((next, chunk)) => (next, chunk.into_owned()),
            Err(_) => (input.number(), Vec::new()),
        },
        _ => {
            let (position, len) = (input.number(), usize::from(input.byte()));
            let chunk = forge::chunk(source.chunk_format(), position, input.bytes(len));
            (position.wrapping_add(len as u64).wrapping_add(1), chunk)
        }
    }
}

/// Does what `LOADCHUNK` does, and checks that a rejected chunk changes nothing. `is_obeyed` says that the chunk comes
/// from a primary.
fn take<T: Family>(key: &mut Key<T>, next: u64, chunk: &[u8], is_obeyed: bool, limit: &Limit) {
    limit.forget();
    match key {
        Key::Missing => {
            if key.push(next, chunk, limit).is_ok()
                && let Key::Partial(loading) = key
            {
                limit.check_taken(0, limit.taken::<T::Partial>(|visit| loading.heap_layouts(visit)));
            }
        }
        Key::Partial(loading) => {
            let before = loading.try_clone().expect("memory");
            if push_chunk(loading, next, chunk).is_ok() {
                assert_eq!(loading.header(), before.header());
                laws::check_loading(loading);
            } else {
                assert!(is_same_loading(loading, &before));
                if is_obeyed {
                    loading.fill_with_zeros();
                    key.settle();
                    if let Key::Ready(_) = key {
                        return take(key, next, chunk, is_obeyed, limit);
                    }
                }
            }
        }
        Key::Ready(value) if is_obeyed && !chunk.is_empty() => {
            let before = value.copy();
            match value.overwrite(next, chunk) {
                Ok(()) => value.check_answers(),
                Err(error) => assert!(matches!(error, Error::Corrupt { .. }) && value.is_same(&before)),
            }
        }
        Key::Ready(_) => {}
    }
    key.settle();
}
