//! Finds the console examples of a document, runs them, and compares their output with the document.
//!
//! An example is a fenced block marked `console`: prompts as redis-cli shows them, each followed by its output.
//! Examples run over RESP2, as in redis-cli by default; blocks marked `console resp3` run over RESP3, as in `redis-cli
//! -3`. In the output `...` stands for any text, and a line of only `...` for any number of lines.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use rollcall_testkit::{Server, matches};

/// The start of every prompt.
const PROMPT: &str = "127.0.0.1:6379";

/// A command of a document.
pub struct Example {
    /// The line number of the prompt in the document, from 1.
    pub line: usize,
    /// Whether the connection speaks RESP3.
    pub resp3: bool,
    /// The command line as typed.
    pub command: String,
    /// The lines of output that the document shows.
    pub output: Vec<String>,
}

/// The command on a prompt line, such as `127.0.0.1:6379> X`, or `127.0.0.1:6379(TX)> X` in a transaction.
fn prompt(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(PROMPT)?;
    rest.strip_prefix("> ").or_else(|| rest.strip_prefix("(TX)> "))
}

/// All examples of a document, in order.
///
/// # Panics
/// If a block has a wrong form. A typing error would otherwise keep an example from being run.
pub fn examples(name: &str, text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut block: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(info) = line.trim_start().strip_prefix("```") {
            block = match block {
                None => Some(info),
                Some(_) => None,
            };
            if info.starts_with("console") {
                assert!(matches!(info, "console" | "console resp3"), "{name}:{number}: unknown block {info:?}");
            }
            continue;
        }
        let Some(info @ ("console" | "console resp3")) = block else {
            assert!(prompt(line).is_none(), "{name}:{number}: a prompt outside of a console block is not run");
            continue;
        };
        if let Some(command) = prompt(line) {
            let (resp3, command) = (info == "console resp3", command.to_owned());
            examples.push(Example { line: number, resp3, command, output: Vec::new() });
        } else {
            let example = examples.last_mut().unwrap_or_else(|| panic!("{name}:{number}: output without a prompt"));
            assert!(number > example.line + example.output.len(), "{name}:{number}");
            example.output.push(line.to_owned());
        }
    }
    assert!(block.is_none(), "{name}: a block is left open");
    examples
}

/// redis-cli, which prints as on a terminal.
struct Cli {
    program: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Cli {
    fn start(server: &Server, options: &[&str]) -> Cli {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &server.port().to_string(), "--no-raw"]).args(options);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("redis-cli starts");
        let printed = BufReader::new(program.stdout.take().expect("its output")).lines();
        Cli { program, printed }
    }

    /// The lines that redis-cli prints for a command, without the time of a slow one. It answers the open quote after
    /// the command by itself.
    fn print(&mut self, command: &str) -> Vec<String> {
        let input = self.program.stdin.as_mut().expect("its input");
        writeln!(input, "{command}\n\"").expect("redis-cli reads");
        let seconds = |line: &str| line.strip_prefix('(')?.strip_suffix("s)")?.parse::<f64>().ok();
        let lines = self.printed.by_ref().map(|line| line.expect("text"));
        lines.take_while(|line| line != "Invalid argument(s)").filter(|line| seconds(line).is_none()).collect()
    }
}

/// Runs the examples of a document in order on a new server. Returns a description of each example with different
/// output.
pub fn run(name: &str, examples: &[Example]) -> Vec<String> {
    let mut server = Server::start();
    let (mut resp2, mut resp3) = (Cli::start(&server, &[]), Cli::start(&server, &["-3"]));
    let mut wrong = Vec::new();
    for Example { line, resp3: is_resp3, command, output } in examples {
        let printed = if *is_resp3 { &mut resp3 } else { &mut resp2 }.print(command);
        if !lines_match(output, &printed) {
            let (shown, printed) = (output.join("\n    "), printed.join("\n    "));
            wrong.push(format!("{name}:{line}: {command}\n  shown:\n    {shown}\n  printed:\n    {printed}"));
        }
    }
    server.assert_up();
    wrong
}

/// Whether the printed lines match the lines in the document.
fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown {
        [] => printed.is_empty(),
        [first, rest @ ..] if first.trim() == "..." => {
            (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..]))
        }
        [first, rest @ ..] => match printed {
            [line, more @ ..] => line_matches(first, line) && lines_match(rest, more),
            [] => false,
        },
    }
}

/// Whether a printed line matches a line in the document.
fn line_matches(shown: &str, printed: &str) -> bool {
    shown.trim_end() == printed.trim_end() || same_number(shown, printed) || matches(printed, shown, "...")
}

/// Whether two lines differ only in the notation of the same double at their end. Servers before 7.2 print 17 digits,
/// later servers the fewest digits that give the same double.
fn same_number(shown: &str, printed: &str) -> bool {
    let split = |line: &str| {
        let (head, tail) = line.rsplit_once(' ').unwrap_or(("", line));
        let number = tail.trim_matches('"');
        let value: f64 = number.parse().ok().filter(|_| number.contains(['.', 'e']))?;
        Some((head.to_owned(), tail.starts_with('"'), value))
    };
    split(shown).is_some_and(|shown| Some(shown) == split(printed))
}

#[test]
fn output_is_compared_as_described() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (shown, printed, same) in [
        ("OK", "OK", true),
        ("OK", "(nil)", false),
        ("OK", "OK\nmore", false),
        ("1) (integer) ...", "1) (integer) 12", true),
        ("1) \"a...\"", "1) \"abc\"", true),
        ("a...c...e", "abcde", true),
        ("a...d...c", "abcde", false),
        ("# x\n...\nlast:1", "# x\na:1\nb:2\nlast:1", true),
        ("...", "", true),
        ("1) \"0.1\"", "1) \"0.10000000000000001\"", true),
        ("(double) 0.1", "(double) 0.10000000000000001", true),
        ("(double) 0.1", "(double) 0.11", false),
        ("(integer) 1", "(integer) 01", false),
    ] {
        assert_eq!(lines_match(&lines(shown), &lines(printed)), same, "{shown:?} and {printed:?}");
    }
}
