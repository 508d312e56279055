//! Moves data between servers of different kinds and versions, and checks each cell of the table in
//! docs/migrating.md.
//!
//! `ROLLCALL_SERVERS` has the paths of all servers, separated by colons; `scripts/servers.py with` sets it. Without
//! it, these tests are skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use redis::Value;

use crate::{tool, url};
use rollcall_testkit::{Client, Server, Setup, error_text, populate, snapshot, text, wait_until};

/// The ways to move data, in the order of the table's columns.
const WAYS: [Way; 8] =
    [Way::Rdb, Way::Cli, Way::Aof, Way::PlainAof, Way::Restore, Way::Migrate, Way::Replica, Way::Tool];

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The RDB file of SAVE.
    Rdb,
    /// The file of `redis-cli --rdb`.
    Cli,
    /// An AOF whose base is an RDB file, as servers write by default.
    Aof,
    /// An AOF whose base has commands.
    PlainAof,
    Restore,
    Migrate,
    Replica,
    /// `rollcall copy`.
    Tool,
}

impl Way {
    /// The head of this way's column in the table of docs/migrating.md.
    fn name(self) -> &'static str {
        match self {
            Way::Rdb => "`SAVE`, `BGSAVE`",
            Way::Cli => "`redis-cli --rdb`",
            Way::Aof => "AOF",
            Way::PlainAof => "AOF of commands",
            Way::Restore => "`DUMP`, `RESTORE`",
            Way::Migrate => "`MIGRATE`",
            Way::Replica => "replica",
            Way::Tool => "`rollcall copy`",
        }
    }
}

/// What the servers and the tool report if data cannot be moved. docs/operations.md, Troubleshooting, has each text.
const TEXTS: [&str; 10] = [
    "Can't handle RDB format version",
    "Wrong signature trying to load DB from file",
    "Can't handle foreign type or opcode",
    "Bad file format reading the append only file",
    "DUMP payload version or checksum are wrong",
    "Bad data format",
    // The second of each pair if the value comes after more than a buffer of others.
    "I/O error reading bulk count from MASTER",
    "I/O error trying to sync with MASTER",
    "Error reading bulk length while SYNCing",
    "I/O Error reading RDB payload from socket",
];

/// A server program, by its kind and version: `Valkey 9.1.2`.
struct Program {
    name: String,
    path: PathBuf,
}

fn programs() -> Vec<Program> {
    let Some(paths) = std::env::var_os("ROLLCALL_SERVERS") else {
        println!("left out: ROLLCALL_SERVERS is not set");
        return Vec::new();
    };
    let named = std::env::split_paths(&paths).map(|path| {
        let output = Command::new(&path).arg("--version").output().expect("the server's version");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = said.split(' ').find_map(|word| word.strip_prefix("v=")).expect("a version").to_owned();
        Program { name: format!("{} {version}", said.split(' ').next().unwrap_or_default()), path }
    });
    named.collect()
}

/// A server with data, and the files that it wrote.
struct Source {
    server: Server,
    state: BTreeMap<String, String>,
    hash: Value,
    rdb: Vec<u8>,
    /// The file that `redis-cli --rdb` wrote, or its error.
    cli: Result<Vec<u8>, String>,
    aof: Files,
    plain_aof: Files,
}

/// Files, each with its path relative to the server's folder.
type Files = Vec<(String, Vec<u8>)>;

impl Source {
    /// Starts a server, adds data with the commands `fill`, and makes it write its files.
    #[track_caller]
    fn new(program: &Program, fill: &[&str]) -> Source {
        let (server, mut client) = Setup::default().binary(&program.path).line("appendonly yes").start().with_client();
        populate(&mut client);
        for line in DATA.iter().chain(fill) {
            client.run(line);
        }
        server.save();
        let rdb = fs::read(server.dir().join("dump.rdb")).expect("the RDB file");
        let file = server.dir().join("cli.rdb");
        let mut cli = Command::new("redis-cli");
        let ended = cli.args(["-p", &server.port().to_string(), "--rdb"]).arg(&file).output().expect("redis-cli runs");
        let cli = match ended.status.success() {
            true => Ok(fs::read(file).expect("the file of redis-cli")),
            false => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
        };
        let aof = aof_of(&server);
        client.expect("CONFIG SET aof-use-rdb-preamble no", "+OK");
        let plain_aof = aof_of(&server);
        client.expect("CONFIG SET aof-use-rdb-preamble yes", "+OK");
        let (state, hash) = state_of(&mut client);
        Source { server, state, hash, rdb, cli, aof, plain_aof }
    }

    /// Moves all keys to a new server of `program`. The error is the message of the target or the tool.
    fn moves(&self, way: Way, program: &Program, option: Option<&str>) -> Result<(), String> {
        let mut target = Setup::default().binary(&program.path);
        if let Some(option) = option {
            target = target.line(option);
        }
        let start = |files: &[(String, Vec<u8>)], line: Option<&str>| {
            let setup = files.iter().fold(target.clone(), |setup, (name, bytes)| setup.file(name, bytes));
            line.map_or(setup.clone(), |line| setup.line(line)).try_start()
        };
        let dump = |bytes: &Vec<u8>| [("dump.rdb".to_owned(), bytes.clone())];
        let server = match way {
            Way::Rdb => start(&dump(&self.rdb), None)?,
            Way::Cli => start(&dump(self.cli.as_ref().map_err(Clone::clone)?), None)?,
            Way::Aof => start(&self.aof, Some("appendonly yes"))?,
            Way::PlainAof => start(&self.plain_aof, Some("appendonly yes"))?,
            Way::Restore | Way::Migrate | Way::Replica | Way::Tool => start(&[], None)?,
        };
        let (mut from, mut to) = (self.server.client(), server.client());
        match way {
            Way::Rdb | Way::Cli | Way::Aof | Way::PlainAof => {}
            Way::Restore => {
                for key in self.state.keys() {
                    let payload = from.dump(key);
                    let time = from.int(&format!("PEXPIRETIME {key}")).max(0).to_string();
                    let words: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), time.as_bytes(), &payload, b"ABSTTL"];
                    accepted(to.call(&words))?;
                }
            }
            Way::Migrate => {
                for key in self.state.keys() {
                    accepted(from.cmd(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000 COPY", server.port())))?;
                }
            }
            Way::Replica => follow(&mut to, &server, &self.server)?,
            Way::Tool => {
                let ended = tool(&["copy", &url(&self.server), &url(&server), "--watch", "0"]);
                if ended.code != 0 {
                    return Err(ended.err);
                }
            }
        }
        let (mut expected, mut there) = (self.state.clone(), state_of(&mut to));
        if way == Way::Tool {
            expected.retain(|key, _| is_ours(key));
        } else {
            assert_eq!(there.1, self.hash);
        }
        // The digest of a hash whose fields have times to live depends on the kind of server.
        expected.remove("hash");
        there.0.remove("hash");
        assert_eq!(there.0, expected);
        Ok(())
    }
}

/// Keys in addition to those of [`populate`]: windows, and the server's own types. No slice ends during the test.
const DATA: [&str; 9] = [
    "BF.RESERVE bf:classic 0.01 100 LAYOUT classic",
    "BF.RESERVE bf:window 0.01 1000 WINDOW 1099511627776 REFRESH",
    "LC.INSERT lc:window WINDOW 1099511627776 ITEMS ann ben",
    "SET string text PXAT 9999999999999",
    "RPUSH list a b c",
    "SADD set 1 2 3",
    "ZADD scores 1 ann 2 ben",
    "HSET hash field value other value",
    "PFADD hll ann ben",
];

fn is_ours(key: &str) -> bool {
    key.starts_with("bf:") || key.starts_with("lc:")
}

/// The digests of all keys, and the content of `hash` with the times to live of its fields, if the server has such
/// times.
fn state_of(client: &mut Client) -> (BTreeMap<String, String>, Value) {
    let times = client.cmd("HPEXPIRETIME hash FIELDS 1 field");
    let times = if error_text(&times).is_some() { Value::Array(vec![Value::Int(-1)]) } else { times };
    let fields = Value::Array(client.list("HMGET hash field other"));
    (snapshot(client), Value::Array(vec![fields, times]))
}

fn accepted(reply: Value) -> Result<(), String> {
    error_text(&reply).map_or(Ok(()), Err)
}

/// The files of the AOF after a rewrite.
fn aof_of(server: &Server) -> Files {
    server.rewrite_aof();
    let files = fs::read_dir(server.dir().join("appendonlydir")).expect("the folder of the AOF");
    let files = files.map(|file| file.expect("a file").path());
    let name = |path: &Path| format!("appendonlydir/{}", path.file_name().expect("a name").to_string_lossy());
    files.map(|path| (name(&path), fs::read(&path).expect("a file of the AOF"))).collect()
}

/// Makes a server a replica, and waits until it has all data. The error is the log of a replica that failed.
fn follow(client: &mut Client, replica: &Server, primary: &Server) -> Result<(), String> {
    client.expect(&format!("REPLICAOF 127.0.0.1 {}", primary.port()), "+OK");
    wait_until("the replica to follow or to fail", || {
        let Some(info) = client.try_call(&["INFO", "replication"]) else { return Some(Err(replica.log())) };
        if replica.log().contains("after failure") {
            return Some(Err(replica.log()));
        }
        text(&info).contains("master_link_status:up").then_some(Ok(()))
    })
}

/// The kind and the series of a server: `Valkey 9.1` of `Valkey 9.1.2`.
fn series(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(series, _)| series)
}

/// The rows of the table whose head begins with `head`, without the line below the head.
fn table(page: &str, head: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut rows: Vec<_> = page
        .lines()
        .skip_while(|line| !line.starts_with(head))
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect();
    assert!(rows.len() > 2, "no table that begins with {head}");
    rows.remove(1);
    rows
}

fn page(name: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The element of [`TEXTS`] that an error contains.
#[track_caller]
fn text_of(error: &str) -> &'static str {
    TEXTS.into_iter().find(|text| error.contains(text)).unwrap_or_else(|| panic!("an unknown error: {error}"))
}

const RELAXED: &str = "rdb-version-check relaxed";

#[test]
fn data_moves_between_servers_as_the_page_says() {
    let programs = programs();
    let mut rows = table(&page("migrating.md"), "| from, to |");
    let head: Vec<String> = ["from, to"].into_iter().chain(WAYS.map(Way::name)).map(str::to_owned).collect();
    assert_eq!(rows.remove(0), head);
    assert_eq!(rows.len(), 12, "a row for each pair of servers");
    let mut wrong = Vec::new();
    for from in &programs {
        let source = Source::new(from, &[]);
        for to in programs.iter().filter(|to| to.name != from.name) {
            let pair = format!("{}, {}", from.name, to.name);
            let is_pair =
                |row: &&Vec<String>| row[0].split(", ").map(series).eq([series(&from.name), series(&to.name)]);
            let Some(stated) = rows.iter().find(is_pair) else {
                println!("left out: no row for {pair}");
                continue;
            };
            for (way, stated) in WAYS.into_iter().zip(&stated[1..]) {
                let seen = match source.moves(way, to, None) {
                    Ok(()) => "yes",
                    Err(error) => {
                        text_of(&error);
                        let is_valkey = to.name.starts_with("Valkey");
                        match is_valkey && source.moves(way, to, Some(RELAXED)).is_ok() {
                            true => "relaxed",
                            false => "no",
                        }
                    }
                };
                println!("{pair}: {}: {seen}", way.name());
                if seen != stated {
                    wrong.push(format!("{pair}: {}: seen {seen}, stated {stated}", way.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One value that the target cannot load prevents the move of all values: the list below the table says so.
#[test]
fn values_that_the_target_does_not_know_hold_all_others_back() {
    let field_time = "HPEXPIREAT hash 9999999999999 FIELDS 1 field";
    let fail = [Way::Rdb, Way::Cli, Way::Aof, Way::Restore, Way::Migrate, Way::Replica];
    let programs = programs();
    let find = |name: &str| programs.iter().find(|program| series(&program.name) == name);
    for (from, to, value) in [
        ("Redis 8.2", "Valkey 9.1", field_time),
        ("Redis 8.10", "Valkey 9.1", field_time),
        ("Redis 8.10", "Valkey 9.1", "XADD stream 1-1 field value"),
        ("Valkey 9.1", "Redis 8.2", field_time),
        ("Valkey 9.1", "Redis 8.10", field_time),
    ] {
        let (Some(from), Some(to)) = (find(from), find(to)) else {
            println!("left out: {from} to {to}");
            continue;
        };
        let source = Source::new(from, &[value]);
        let option = to.name.starts_with("Valkey").then_some(RELAXED);
        for way in WAYS {
            match source.moves(way, to, option) {
                Ok(()) => assert!(!fail.contains(&way), "{} to {}: {} moved", from.name, to.name, way.name()),
                Err(error) => {
                    assert!(fail.contains(&way), "{} to {}: {}: {error}", from.name, to.name, way.name());
                    println!("{} to {}: {}: {}", from.name, to.name, way.name(), text_of(&error));
                }
            }
        }
    }
}

#[test]
fn troubleshooting_has_the_texts_of_errors() {
    let page = page("operations.md");
    for text in TEXTS {
        assert!(page.contains(text), "operations.md lacks: {text}");
    }
}
