//! Reads from the AOF what a command sends to replicas.

use std::fs;

use rollcall_testkit::client::Client;
use rollcall_testkit::server::{Server, Setup};

/// The prefix of the commands that replicate changes of filters (BF) or counters (LC) with default options. Filters in
/// the layout `lines` are replicated by RF.* commands.
pub fn sent_as(family: &str) -> &str {
    if family == "BF" { "RF" } else { family }
}

/// Starts a server that writes every replicated command to its AOF at once.
pub fn appending(setup: Setup) -> Server {
    setup.line("appendonly yes").line("appendfsync always").start()
}

/// The content of the incremental AOF files.
pub fn appended(server: &Server) -> Vec<u8> {
    let files = fs::read_dir(server.dir().join("appendonlydir")).expect("the AOF's directory");
    let paths = files.map(|file| file.expect("a file").path());
    let incremental = paths.filter(|path| path.to_string_lossy().ends_with(".incr.aof"));
    incremental.flat_map(|path| fs::read(path).expect("the AOF")).collect()
}

/// Runs a command, and returns the commands that it sends to replicas and the AOF.
pub fn sent(client: &mut Client, server: &Server, line: &str) -> Vec<String> {
    let before = appended(server).len();
    client.cmd(line);
    let all = appended(server);
    let text = String::from_utf8_lossy(&all[before..]).into_owned();
    let mut commands: Vec<String> = Vec::new();
    for part in text.split("\r\n") {
        match part.chars().next() {
            Some('*') => commands.push(String::new()),
            Some('$') | None => {}
            Some(_) => {
                let command = commands.last_mut().expect("a command");
                command.push_str(if command.is_empty() { "" } else { " " });
                command.push_str(part);
            }
        }
    }
    commands.retain(|command| !["SELECT 0", "MULTI", "EXEC"].contains(&command.as_str()));
    commands
}
