//! `man`: writes a man page for each subcommand, for packages to install. The descriptions of arguments come from clap;
//! the other sections are written here.

use std::path::PathBuf;
use std::{fs, io};

use clap::Args;
use clap_mangen::roff::{Roff, bold, roman};

use crate::failure::Failure;

/// Every exit code and its meaning.
const EXIT_STATUS: [(&str, &str); 6] = [
    ("0", "everything was done, and every check holds"),
    ("1", "a check does not hold, or something was left out; top --fail-on: there is such a finding"),
    ("2", "wrong arguments"),
    ("3", "the command failed: a server is down, a disk is full"),
    ("4", "there is nothing to work on: no key matches, or a key, value or item is missing"),
    ("128 + N", "signal N ended the command: 130 after Ctrl-C, which ends exporter, dashboard and a live top with 0"),
];

/// Tasks, and the commands that do them. A page has the examples of its own command, and of its subcommands.
pub const EXAMPLES: [(&str, &str); 25] = [
    ("Memory of a million addresses, at one false positive in a thousand:", "rollcall plan filter 1M --error 0.1%"),
    ("Build a filter from a file with one item a line:", "rollcall build filter known.rollcall known.txt --error 0.1%"),
    ("Bring it to a server, as the key known:", "rollcall load known.rollcall known"),
    ("Show what is wrong with the filters and counters of a server:", "rollcall top --once"),
    ("Filters of the last day for 500 users, 1,000 items each:", "rollcall plan filter 1000 --window 24h --keys 500"),
    ("Counters with a standard error of 2 %:", "rollcall plan counter --error 2%"),
    ("Build a counter from two files:", "rollcall build counter visitors.rollcall monday.txt tuesday.txt"),
    (
        "Unite two filters, as one for the key known:",
        "rollcall merge all.rollcall known.rollcall more.rollcall --key known",
    ),
    ("Check that a filter has all its items:", "rollcall check known.rollcall known.txt"),
    (
        "Measure its false positive rate with other items:",
        "rollcall check known.rollcall known.txt --absent absent.txt",
    ),
    ("Describe a file, and compare its checksums:", "rollcall info known.rollcall"),
    ("The keys of users, fullest first, until you quit:", "rollcall top --pattern 'user:*' --sort fill"),
    ("Check a cluster before slots move:", "rollcall nodes --cluster"),
    (
        "Figures of two servers for Prometheus, with those of all keys:",
        "rollcall exporter --url redis://10.0.0.1 --url redis://10.0.0.2 --pattern '*'",
    ),
    ("Figures once, for node_exporter's text files:", "rollcall exporter --once"),
    ("The exit code of a check that runs every hour:", "rollcall top --fail-on warning"),
    ("A web page at http://127.0.0.1:9728/:", "rollcall dashboard --url redis://10.0.0.1:6379"),
    ("See what a copy from RedisBloom would move:", "rollcall copy redis://old:6379 redis://new:6379 --dry-run"),
    ("Copy, while the source's writers wait:", "rollcall copy redis://old:6379 redis://new:6379 --pause"),
    ("Save a key:", "rollcall dump visitors visitors.rollcall"),
    ("Restore it under the name that it had:", "rollcall load visitors.rollcall"),
    (
        "Add the lines of a file to a filter, and create it if it is missing:",
        "rollcall import tokens.txt seen --kind filter --create 'CAPACITY 1000000 ERROR 0.001'",
    ),
    ("Compare a counter with the set of the same members:", "rollcall compare visitors visitors-set"),
    ("Compare all of them:", "rollcall compare --pattern 'visitors:*' --map 'visitors-set:{}'"),
    ("Print completions, for a file that bash reads:", "rollcall completions bash"),
];

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The existing folder to write the pages to
    folder: PathBuf,
}

impl Man {
    pub fn run(self, tool: clap::Command) -> Result<(), Failure> {
        let mut tool = tool.disable_help_subcommand(true);
        tool.build();
        self.write(&tool)
            .map_err(|error| Failure::new(format!("cannot write man pages to {}: {error}", self.folder.display())))
    }

    fn write(&self, command: &clap::Command) -> io::Result<()> {
        for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            self.write(subcommand)?;
        }
        let page = clap_mangen::Man::new(command.clone());
        let mut text = Vec::new();
        page.render_title(&mut text)?;
        page.render_name_section(&mut text)?;
        page.render_synopsis_section(&mut text)?;
        page.render_description_section(&mut text)?;
        page.render_options_section(&mut text)?;
        if command.has_subcommands() {
            page.render_subcommands_section(&mut text)?;
        }
        sections(command).to_writer(&mut text)?;
        page.render_version_section(&mut text)?;
        fs::write(self.folder.join(page.get_filename()), text)
    }
}

/// The sections of a page that do not come from clap.
fn sections(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_STATUS {
        roff.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    roff.control("SH", ["ENVIRONMENT"]);
    let mut reads_any = false;
    for argument in command.get_arguments() {
        if let (Some(name), Some(option)) = (argument.get_env(), argument.get_long()) {
            let meaning = format!("stands for --{option}, which overrides it");
            roff.control("TP", []).text([bold(name.to_string_lossy())]).text([roman(meaning)]);
            reads_any = true;
        }
    }
    if !reads_any {
        roff.text([roman("This command reads no variables of its own.")]);
    }
    roff.control("SH", ["EXAMPLES"]);
    let name = format!("{} ", command.get_bin_name().unwrap_or(command.get_name()));
    for (task, example) in EXAMPLES.iter().filter(|(_, example)| example.starts_with(&name)).take(4) {
        roff.control("PP", []).text([roman(*task)]);
        roff.control("PP", []).control("nf", []).control("RS", []).text([roman(*example)]);
        roff.control("RE", []).control("fi", []);
    }
    roff
}

/// The exit codes as text, shown below the tool's help.
pub fn exit_codes() -> String {
    let rows = EXIT_STATUS.map(|(code, meaning)| format!("  {code:<7}  {meaning}"));
    format!("Exit codes:\n{}", rows.join("\n"))
}
