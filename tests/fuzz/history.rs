//! The last commands, which are shown if a test fails.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use crate::sentence::Words;

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
        let whole: String = self.last.iter().map(|words| line(words, usize::MAX) + "\n").collect();
        let written = fs::write(&file, whole).map_or_else(|error| error.to_string(), |()| file.display().to_string());
        eprintln!("seed {}, command {}; the last ones, for redis-cli (whole: {written}):", self.seed, self.said);
        let last = self.last.iter().skip(self.last.len().saturating_sub(LINES));
        last.for_each(|words| eprintln!("{}", line(words, SHOWN)));
    }
}

/// A command as redis-cli reads it, with at most `most` bytes of each argument.
pub fn line(words: &[Vec<u8>], most: usize) -> String {
    let word = |word: &Vec<u8>| {
        let shown = &word[..word.len().min(most)];
        let is_plain =
            !word.is_empty() && shown.iter().all(|byte| byte.is_ascii_alphanumeric() || b".:-_+".contains(byte));
        let quoted = if is_plain {
            String::from_utf8_lossy(shown).into_owned()
        } else {
            let escaped: String = shown.iter().map(|byte| escaped(*byte)).collect();
            format!("\"{escaped}\"")
        };
        if word.len() > most { format!("{quoted}...({} bytes)", word.len()) } else { quoted }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn escaped(byte: u8) -> String {
    match byte {
        b'"' | b'\\' => format!("\\{}", byte as char),
        b' '..=b'~' => (byte as char).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

#[test]
fn lines_are_as_redis_cli_reads_them() {
    let words = [&b"SET"[..], b"", b"a b", b"\0\"\\\xff", b"k:1"].map(<[u8]>::to_vec);
    assert_eq!(line(&words, 100), r#"SET "" "a b" "\x00\"\\\xff" k:1"#);
    assert_eq!(line(&words[..1], 2), "SE...(3 bytes)");
}
