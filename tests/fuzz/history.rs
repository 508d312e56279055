//! The last commands, which are shown if a test fails.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use crate::sentence::Words;
use rollcall_testkit::typed;

/// Number of commands that are kept, which exceeds the number between two comparisons of all values.
const KEPT: usize = 1_000;

/// Number of commands that are shown.
const LINES: usize = 40;

/// Number of bytes that are shown of each argument. The file has all bytes.
const SHOWN: usize = 120;

/// The last commands. If it is dropped during a panic, it prints the commands in redis-cli's notation, and writes them
/// to a file without shortening.
pub struct History {
    seed: u64,
    last: VecDeque<Words>,
    said: usize,
}

impl History {
    /// An empty history of a run with this seed.
    pub fn new(seed: u64) -> History {
        History { seed, last: VecDeque::new(), said: 0 }
    }

    /// The number of commands sent so far.
    pub fn len(&self) -> usize {
        self.said
    }

    /// Records a command.
    pub fn push(&mut self, words: &[Vec<u8>]) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(words.to_vec());
        self.said += 1;
    }
}

impl Drop for History {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-server-{}.txt", self.seed));
        let whole: String = self.last.iter().map(|words| typed(words, usize::MAX) + "\n").collect();
        let written = fs::write(&file, whole).map_or_else(|error| error.to_string(), |()| file.display().to_string());
        eprintln!("seed {}, command {}; the last ones, for redis-cli (whole: {written}):", self.seed, self.said);
        let last = self.last.iter().skip(self.last.len().saturating_sub(LINES));
        last.for_each(|words| eprintln!("{}", typed(words, SHOWN)));
    }
}

#[test]
fn commands_are_shown_as_redis_cli_reads_them() {
    let words = [&b"SET"[..], b"", b"a b", b"\0\"\\\xff", b"k:1"].map(<[u8]>::to_vec);
    assert_eq!(typed(&words, 100), r#"SET "" "a b" "\x00\"\\\xff" k:1"#);
    assert_eq!(typed(&words[..1], 2), "SE...(3 bytes)");
}
