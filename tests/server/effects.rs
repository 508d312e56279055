//! Reads from the AOF what a command sends to replicas.

use redis::Value;

use rollcall_testkit::{Client, Reply, Server, Setup, show};

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
    server.aof(".incr.aof")
}

/// The commands in an AOF.
pub fn commands(mut aof: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let word = |word: Value| match word {
        Value::BulkString(word) => word,
        other => panic!("{}", show(&other)),
    };
    let mut commands = Vec::new();
    while !aof.is_empty() {
        let Value::Array(words) = Reply::read(&mut aof).expect("a command").value() else { panic!("no command") };
        commands.push(words.into_iter().map(word).collect());
    }
    commands
}

/// Runs a command, and returns the commands that it sends to replicas and the AOF.
pub fn sent(client: &mut Client, server: &Server, line: &str) -> Vec<String> {
    let before = appended(server).len();
    client.cmd(line);
    let all = appended(server);
    let line = |words: &Vec<Vec<u8>>| String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    let mut commands: Vec<String> = commands(&all[before..]).iter().map(line).collect();
    commands.retain(|command| !["SELECT 0", "MULTI", "EXEC"].contains(&command.as_str()));
    commands
}
