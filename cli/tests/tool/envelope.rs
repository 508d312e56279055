//! Reads the tool's files by the table in docs/persistence.md, without the tool's own code.

use rollcall_core::persist;
use rollcall_core::size_limit::Unlimited;
use xxhash_rust::xxh3::xxh3_64;

use crate::run::Folder;

/// A value of a file.
pub struct Stored {
    pub kind: u8,
    pub expires_at: u64,
    pub key: Option<Vec<u8>>,
    pub chunks: Vec<(u64, Vec<u8>)>,
}

impl Stored {
    pub fn load<T: rollcall_core::live::Value>(&self) -> T {
        persist::load(self.chunks.iter().map(|(next, chunk)| (*next, chunk)), &Unlimited).unwrap()
    }
}

struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn take(&mut self, len: usize) -> &[u8] {
        self.at += len;
        &self.all[self.at - len..self.at]
    }

    fn number(&mut self, len: usize) -> u64 {
        let mut number = [0; 8];
        number[..len].copy_from_slice(self.take(len));
        u64::from_le_bytes(number)
    }

    fn sum(&mut self) {
        let expected = xxh3_64(&self.all[..self.at]);
        assert_eq!(self.number(8), expected, "the checksum before byte {}", self.at);
    }
}

/// All values of a file.
pub fn values(bytes: &[u8]) -> Vec<Stored> {
    let mut bytes = Bytes { all: bytes, at: 0 };
    assert_eq!(bytes.take(8), b"RollCall");
    assert_eq!(bytes.number(4), 1);
    let mut values: Vec<Stored> = Vec::new();
    loop {
        match bytes.number(1) {
            1 => {
                let (kind, expires_at) = (bytes.number(1) as u8, bytes.number(8));
                let key = (bytes.number(1) == 1).then(|| {
                    let len = bytes.number(4) as usize;
                    bytes.take(len).to_vec()
                });
                values.push(Stored { kind, expires_at, key, chunks: Vec::new() });
            }
            2 => {
                let (next, len) = (bytes.number(8), bytes.number(4) as usize);
                let chunk = bytes.take(len).to_vec();
                values.last_mut().unwrap().chunks.push((next, chunk));
            }
            3 => {
                let chunks = &values.last().unwrap().chunks;
                assert_eq!(bytes.number(8), chunks.len() as u64);
                assert_eq!(bytes.number(8), chunks.iter().map(|(_, chunk)| chunk.len() as u64).sum::<u64>());
            }
            4 => {
                assert_eq!(bytes.number(8), values.len() as u64);
                bytes.sum();
                assert_eq!(bytes.at, bytes.all.len());
                return values;
            }
            other => panic!("a record of kind {other}"),
        }
        bytes.sum();
    }
}

/// A file in the first version of the format. It must stay readable, so it is never regenerated.
const GOLDEN: &[u8] = include_bytes!("golden.rollcall");

#[test]
fn the_golden_file_is_written_and_read_alike() {
    let folder = Folder::new();
    folder.write("items", "ann\nben\ncid\n");
    let ran = folder.run("build filter new items --capacity 10 --key small");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(folder.read("new"), GOLDEN);
    folder.write("golden", GOLDEN);
    let info = &folder.json("info golden")["values"][0];
    assert_eq!(info["Key"], "small");
    assert_eq!(info["Number of items inserted"], 3);
    let [stored] = &values(GOLDEN)[..] else { panic!("one value") };
    assert_eq!((stored.kind, stored.expires_at, stored.key.as_deref()), (b'F', 0, Some(&b"small"[..])));
    assert_eq!(stored.chunks.len(), 1);
}

/// The numbers that these tests use are those in the document's table.
#[test]
fn the_document_reports_the_format() {
    let page = include_str!("../../../docs/persistence.md");
    let section =
        page.split("## Files of the command-line tool").nth(1).expect("the section").split("\n## ").next().unwrap();
    for reported in
        ["`RollCall`", "\n1  ", "\n2  ", "\n3  ", "\n4  ", "F a filter", "C a counter", "64 MiB", "512 MiB", "XXH3-64"]
    {
        assert!(section.contains(reported), "{reported}");
    }
}
