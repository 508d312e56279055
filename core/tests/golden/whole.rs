//! Stores all bytes of a value whose golden file has only checksums: the `DUMP` payload, then each chunk after its
//! iterator.
//!
//! Each part is preceded by its length. Runs of zero bytes are compressed: a number of zeros, a number of other
//! bytes, and those bytes. Numbers are u64, little-endian.

/// The length from which a run of zero bytes is compressed.
const LONG_RUN: usize = 32;

type Dump = Vec<(u64, Vec<u8>)>;

#[allow(dead_code, reason = "golden.rs writes, released.rs reads")]
pub fn write(payload: &[u8], chunks: &Dump) -> Vec<u8> {
    let mut plain = Vec::new();
    for (next, bytes) in std::iter::once((0, payload)).chain(chunks.iter().map(|(next, bytes)| (*next, &bytes[..]))) {
        plain.extend(next.to_le_bytes());
        plain.extend((bytes.len() as u64).to_le_bytes());
        plain.extend(bytes);
    }
    let mut coded = Vec::new();
    let mut rest = &plain[..];
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        rest = &rest[zeros..];
        let others = rest.windows(LONG_RUN).position(|run| run.iter().all(|byte| *byte == 0)).unwrap_or(rest.len());
        coded.extend((zeros as u64).to_le_bytes());
        coded.extend((others as u64).to_le_bytes());
        coded.extend(&rest[..others]);
        rest = &rest[others..];
    }
    coded
}

#[allow(dead_code, reason = "golden.rs writes, released.rs reads")]
pub fn read(mut coded: &[u8]) -> (Vec<u8>, Dump) {
    let mut plain = Vec::new();
    while !coded.is_empty() {
        let zeros = number(&mut coded);
        plain.resize(plain.len() + zeros, 0);
        let others = number(&mut coded);
        plain.extend(bytes(&mut coded, others));
    }
    let mut rest = &plain[..];
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let next = number(&mut rest) as u64;
        let length = number(&mut rest);
        chunks.push((next, bytes(&mut rest, length).to_vec()));
    }
    (chunks.remove(0).1, chunks)
}

fn number(rest: &mut &[u8]) -> usize {
    u64::from_le_bytes(bytes(rest, 8).try_into().unwrap()) as usize
}

fn bytes<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(length);
    *rest = left;
    taken
}
