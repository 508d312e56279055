//! Makes random sequences of commands: valid ones, invalid ones, and ones that are nearly valid.

use rollcall_fuzz::random::Random;

/// A command as a list of words.
pub type Command = Vec<Vec<u8>>;

/// A step of a sequence.
#[derive(Clone, Debug)]
pub enum Step {
    Call(Command),
    /// The commands in a transaction: MULTI, the commands, EXEC.
    Transaction(Vec<Command>),
    /// A command called by a script, which continues after an error. The flag says whether the script uses RESP3.
    Script(Command, bool),
    /// Each server dumps a key, and loads the first `chunks` chunks of its own dump into another key.
    Transfer {
        from: Vec<u8>,
        to: Vec<u8>,
        chunks: usize,
    },
    /// Sets a time to live of a millisecond, and waits until the key has expired.
    Expire(Vec<u8>),
}

/// The layout of the module's filters in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// RedisBloom's layout. Any error rate can be used, because both servers have the same false positives.
    Classic,
    /// Rollcall's layout, a blocked Bloom filter. Only error rates so low that no reply is a false positive can be
    /// used.
    Lines,
}

/// Splits a command line at spaces.
pub fn words(line: &str) -> Command {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Keys of filters.
pub const FILTERS: [&[u8]; 6] = [b"one", b"two", b"three", b"", b"with space", b"\0\xff\r\n"];
/// Number of different ordinary items.
pub const NUM_ITEMS: usize = 250;
/// Keys of other types, each with the command that creates it at the beginning of a sequence.
pub const OTHERS: [(&str, &str); 4] =
    [("string", "SET string value"), ("list", "RPUSH list a b"), ("hash", "HSET hash a b"), ("set", "SADD set a")];

/// Values of `EXPANSION`. Values that only RedisBloom accepts are left out, because its second sub-filter would exceed
/// the machine's memory.
const EXPANSIONS: [&str; 13] = ["1", "1", "2", "2", "3", "4", "10", "32768", "0", "-1", "9223372036854775808", "x", ""];
/// Capacities that are soon exceeded. Larger ones are left out, because RedisBloom would allocate the memory.
const CAPACITIES: &str = "1|1|2|3|4|5|7|8|10|20|64|100|1000";
/// A capacity that is too large for this module, and words that are none.
const BAD_CAPACITIES: &str = "20000000|0|-1|-0|05|+5|1.5|1e3| 5|9223372036854775808|18446744073709551616|abc";
const RATES: &str = "0.01|0.01|0.001|0.1|0.3|0.5|.02|1e-2|0.999|+0.1|0.25";
/// One error rate in several notations. In small filters of RedisBloom, positions repeat, so false positives are far
/// more frequent than the error rate. With the capacities in `WIDE_CAPACITIES` no item of a run is a false positive.
const RARE_RATES: &str = "1e-9|1e-9|0.000000001|1E-9|.000000001|+10e-10";
const WIDE_CAPACITIES: &str = "64|100|250|1000";
const BAD_RATES: &str = "0|1|1.0|-0.1|2|1e300|nan|inf|-inf|1e-400|5e-324|0x1p-30|abc|| 0.1|0.1x";
const FIELDS: &str = "CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION|capacity|Items|eXpAnSiOn|ERROR|FPR|FILL|LAYOUT|\
     Number of filters|CAP||nothing";
const ITERATORS: &str = "0|1|2|9|100|100000|-1|-9223372036854775808|9223372036854775807|9223372036854775808|00|+1|abc|";

/// Fixed sequences that random choice would not find, or not in every run.
pub fn fixed(layout: Layout) -> Vec<Vec<Step>> {
    let calls = |lines: &[&str]| lines.iter().map(|line| Step::Call(words(line))).collect::<Vec<_>>();
    let adds = |range: std::ops::Range<usize>| {
        let items = range.map(|item| format!("i{item}").into_bytes());
        Step::Call(words("BF.MADD one").into_iter().chain(items).collect())
    };
    let mut all = vec![
        calls(&["BF.RESERVE one 1e-300 500", "BF.MADD one a b c", "BF.MEXISTS one a b c d", "BF.INFO one CAPACITY"]),
        calls(&["BF.RESERVE one 5e-324 50"]),
        calls(&["BF.RESERVE one 1e-9 100 EXPANSION 32768", "BF.RESERVE two 1e-9 100 EXPANSION 32769"]),
        calls(&["BF.RESERVE one 1e-9 100 EXPANSION 4294967298", "BF.INSERT one EXPANSION 9223372036854775807 ITEMS a"]),
        calls(&["BF.INSERT one NONSCALING EXPANSION 3 CAPACITY 64 ERROR 1e-9 ITEMS a b c", "BF.INFO one"]),
        calls(&[
            "BF.RESERVE one 1e-9 2 NONSCALING",
            "BF.MADD one a b a c d",
            "BF.INFO one",
            "BF.INSERT one ITEMS c",
            "BF.ADD one c",
            "DEL one",
        ]),
        calls(&["BF.LOADCHUNK one 2 abc", "BF.LOADCHUNK one 0 abc", "BF.LOADCHUNK one 1 abc", "BF.SCANDUMP one x"]),
        // A filter with several sub-filters, which is transferred completely.
        vec![
            Step::Call(words("BF.RESERVE one 1e-9 100 EXPANSION 1")),
            adds(0..400),
            Step::Transfer { from: b"one".to_vec(), to: b"two".to_vec(), chunks: usize::MAX },
            Step::Call(words("BF.INFO two")),
        ],
    ];
    if layout == Layout::Classic {
        // This module's filter grows to its largest number of sub-filters. RedisBloom's filter grows until its error
        // rate is 0.
        let chain = (0..21).map(|hundred| adds(hundred * 100..hundred * 100 + 100));
        all.push(calls(&["BF.RESERVE one 0.5 1 EXPANSION 1"]).into_iter().chain(chain).collect());
    }
    all
}

/// Generates random sequences.
pub struct Generator {
    random: Random,
    layout: Layout,
}

impl Generator {
    pub fn new(seed: u64, layout: Layout) -> Generator {
        Generator { random: Random::new(seed), layout }
    }

    /// The next sequence.
    pub fn sequence(&mut self) -> Vec<Step> {
        let steps = 4 + self.random.below(14);
        (0..steps).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        match self.random.below(40) {
            0 => {
                let count = 1 + self.random.below(4);
                Step::Transaction((0..count).map(|_| self.command()).collect())
            }
            1 | 2 => {
                let command = self.command();
                // In a script with RESP3, maps have a random order, so INFO is left out.
                let resp3 = self.random.one_in(3) && !command[0].eq_ignore_ascii_case(b"BF.INFO");
                Step::Script(command, resp3)
            }
            3 | 4 => Step::Transfer {
                from: self.filter(),
                to: self.filter(),
                // Mostly all chunks.
                chunks: if self.random.one_in(3) { self.random.below(3) } else { usize::MAX },
            },
            5 if self.random.one_in(3) => Step::Expire(self.key()),
            _ => Step::Call(self.command()),
        }
    }

    fn filter(&mut self) -> Vec<u8> {
        self.random.of(&FILTERS).to_vec()
    }

    /// A key, mostly one that may have a filter.
    fn key(&mut self) -> Vec<u8> {
        if self.random.one_in(12) {
            self.random.of(&OTHERS.map(|(name, _)| name)).as_bytes().to_vec()
        } else {
            self.filter()
        }
    }

    fn item(&mut self) -> Vec<u8> {
        match self.random.below(40) {
            0 => Vec::new(),
            1 => b"ITEMS".to_vec(),
            2 => b"\0\r\n\xff".to_vec(),
            3 => vec![b'x'; 5000],
            4 => b"NOCREATE".to_vec(),
            _ => format!("item:{}", self.random.below(NUM_ITEMS)).into_bytes(),
        }
    }

    fn items(&mut self) -> Vec<Vec<u8>> {
        let count = match self.random.below(8) {
            0 => 100,
            1 => 30,
            _ => 1 + self.random.below(7),
        };
        (0..count).map(|_| self.item()).collect()
    }

    fn rate(&mut self) -> Vec<u8> {
        let good = if self.layout == Layout::Classic { RATES } else { RARE_RATES };
        let rates = if self.random.one_in(8) { BAD_RATES } else { good };
        self.random.of_texts(rates)
    }

    fn capacity(&mut self) -> Vec<u8> {
        let choices = match (self.random.one_in(8), self.layout) {
            (true, _) => BAD_CAPACITIES,
            (false, Layout::Classic) => CAPACITIES,
            (false, Layout::Lines) => WIDE_CAPACITIES,
        };
        self.random.of_texts(choices)
    }

    fn expansion(&mut self) -> Vec<u8> {
        let choices = if self.random.one_in(5) { &EXPANSIONS[..] } else { &EXPANSIONS[..8] };
        self.random.of(choices).as_bytes().to_vec()
    }

    /// The word unchanged, in lower case or in mixed case; sometimes its end is cut off.
    fn word(&mut self, word: &str) -> Vec<u8> {
        let mut bytes = match self.random.below(4) {
            0 => word.to_lowercase().into_bytes(),
            1 => word.bytes().enumerate().map(|(i, b)| if i % 2 == 0 { b.to_ascii_lowercase() } else { b }).collect(),
            _ => word.as_bytes().to_vec(),
        };
        if self.random.one_in(60) {
            bytes.truncate(1 + self.random.below(4));
        }
        bytes
    }

    /// Options in any order. Some are repeated, unknown or incomplete.
    fn options(&mut self, insert: bool) -> Command {
        let mut all: Vec<Command> = Vec::new();
        if insert && self.random.one_in(2) {
            all.push(vec![self.word("CAPACITY"), self.capacity()]);
        }
        if insert && self.random.one_in(2) {
            all.push(vec![self.word("ERROR"), self.rate()]);
        }
        if self.random.one_in(3) {
            all.push(vec![self.word("EXPANSION"), self.expansion()]);
        }
        if self.random.one_in(5) {
            all.push(vec![self.word("NONSCALING")]);
        }
        if insert && self.random.one_in(8) {
            all.push(vec![self.word("NOCREATE")]);
        }
        if self.random.one_in(25) {
            let unknown = self.random.of(&["FOO", "cxyz 10", "bar 5", "TTL", "MAXSCALE 2", "EXPAND 2", "NOCREATE"]);
            all.push(words(unknown));
        }
        if self.random.one_in(60) {
            all.push(words(self.random.of::<&str>(&["SEED 7", "LAYOUT lines", "LAYOUT classic", "SEED x"])));
        }
        if self.random.one_in(40) && !all.is_empty() {
            let again = all[self.random.below(all.len())].clone();
            all.push(again);
        }
        for at in (1..all.len()).rev() {
            all.swap(at, self.random.below(at + 1));
        }
        let mut flat = all.concat();
        if self.random.one_in(60) {
            flat.pop();
        }
        flat
    }

    fn command(&mut self) -> Command {
        let mut command = self.whole_command();
        match self.random.below(80) {
            0 => {
                command.pop();
            }
            1 => command.push(b"more".to_vec()),
            2 => command.truncate(1 + self.random.below(command.len())),
            _ => {}
        }
        if self.random.one_in(4) {
            command[0].make_ascii_lowercase();
        }
        command
    }

    fn whole_command(&mut self) -> Command {
        let key = self.key();
        let with = |name: &str, rest: Vec<Vec<u8>>| [vec![name.as_bytes().to_vec(), key.clone()], rest].concat();
        match self.random.below(42) {
            0..6 => {
                let mut rest = vec![self.rate(), self.capacity()];
                rest.extend(self.options(false));
                with("BF.RESERVE", rest)
            }
            6..11 => with("BF.ADD", vec![self.item()]),
            11..16 => with("BF.MADD", self.items()),
            16..22 => {
                let mut rest = self.options(true);
                if !self.random.one_in(40) {
                    rest.push(self.word("ITEMS"));
                }
                rest.extend(self.items());
                with("BF.INSERT", rest)
            }
            22..25 => with("BF.EXISTS", vec![self.item()]),
            25..28 => with("BF.MEXISTS", self.items()),
            28 | 29 => with("BF.CARD", Vec::new()),
            30 | 31 => with("BF.INFO", Vec::new()),
            32 | 33 => with("BF.INFO", vec![self.random.of_texts(FIELDS)]),
            34 => with("BF.DEBUG", Vec::new()),
            35 | 36 => with("BF.SCANDUMP", vec![self.random.of_texts(ITERATORS)]),
            // Chunks that cannot be mistaken for a header. A forged header could crash RedisBloom.
            37 => {
                let data = *self.random.of(&[b"".as_slice(), b"data", b"\0\0\0"]);
                with("BF.LOADCHUNK", vec![self.random.of_texts(ITERATORS), data.to_vec()])
            }
            38 => match self.random.below(4) {
                0 => with("BF.CLEAR", Vec::new()),
                1 => with("BF.MERGE", vec![self.filter()]),
                2 => with("COPY", vec![self.filter()]),
                _ => with("DUMP", Vec::new()),
            },
            39 => match self.random.below(4) {
                0 => with("RENAME", vec![self.filter()]),
                1 => with("UNLINK", Vec::new()),
                2 => with("EXPIRE", vec![b"100".to_vec()]),
                _ => with("PERSIST", Vec::new()),
            },
            40 => match self.random.below(5) {
                0 => with("TYPE", Vec::new()),
                1 => with("EXISTS", Vec::new()),
                2 => [words("OBJECT ENCODING"), vec![key]].concat(),
                3 => [words("MEMORY USAGE"), vec![key]].concat(),
                _ => [words("DEBUG DIGEST-VALUE"), vec![key]].concat(),
            },
            _ => with("DEL", Vec::new()),
        }
    }
}
