//! Runs a command with a server or cluster that has the module loaded, and stops the servers in any case.
//!
//! ```text
//! with-server [--primaries N] [--move] COMMAND [ARGUMENT...]
//! ```
//!
//! Without `--primaries` it starts a single server, with it a cluster of N primaries. With `--move`, slots that have
//! keys move from node to node as long as the command runs. The command finds the server, or a node of the cluster, by
//! `ROLLCALL_URL=redis://127.0.0.1:PORT`. The program ends with the exit code of the command. It uses the same server
//! and module as the tests (`lib.rs`).

use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rollcall_testkit::{Moving, Server, Setup, cluster_of};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const USAGE: &str = "usage: with-server [--primaries N] [--move] COMMAND [ARGUMENT...]";

/// Time between two checks whether the command has ended.
const POLL: Duration = Duration::from_millis(10);
/// Pause between the migrations of two slots.
const MOVE_PAUSE: Duration = Duration::from_millis(20);

struct Options {
    primaries: Option<usize>,
    moves: bool,
    command: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut options = Options { primaries: None, moves: false, command: Vec::new() };
    while let Some(option) = arguments.next_if(|argument| argument.starts_with("--")) {
        match option.as_str() {
            "--primaries" => {
                let primaries = arguments.next().and_then(|number| number.parse().ok());
                options.primaries = Some(
                    primaries.filter(|number| (1..=100).contains(number)).ok_or("--primaries: expected 1 to 100")?,
                );
            }
            "--move" => options.moves = true,
            "--" => break,
            _ => return Err(format!("unknown option {option}")),
        }
    }
    if options.moves && options.primaries.is_none_or(|primaries| primaries < 2) {
        return Err("--move needs --primaries of 2 or more".to_owned());
    }
    options.command = arguments.collect();
    if options.command.is_empty() { Err("no command is given".to_owned()) } else { Ok(options) }
}

/// Moves slots that have keys, each to the next node, until `stop` is set. Returns the number of slots and the number
/// of keys that were moved.
fn move_slots(nodes: &[Server], stop: &AtomicBool) -> (usize, usize) {
    let (mut slots, mut keys) = (0, 0);
    let is_over = || stop.load(Ordering::Relaxed);
    while !is_over() {
        for node in nodes {
            for key in node.client().list("KEYS *") {
                let mut client = nodes[0].client();
                let slot = client.int(&format!("CLUSTER KEYSLOT {}", rollcall_testkit::text(&key)));
                let count = |node: &Server| node.client().int(&format!("CLUSTER COUNTKEYSINSLOT {slot}"));
                if is_over() || nodes.iter().all(|node| count(node) == 0) {
                    continue;
                }
                let moving = Moving::begin(nodes, slot);
                keys += moving.migrate(nodes);
                moving.end(nodes);
                slots += 1;
                std::thread::sleep(MOVE_PAUSE);
            }
        }
        std::thread::sleep(MOVE_PAUSE);
    }
    (slots, keys)
}

/// Waits for the command; `None` if a signal ended the wait.
fn wait(command: &mut Child, ended_by: &AtomicUsize) -> Option<u8> {
    loop {
        if let Some(status) = command.try_wait().expect("the command's status") {
            let code =
                status.code().or_else(|| std::os::unix::process::ExitStatusExt::signal(&status).map(|n| 128 + n));
            return Some(code.map_or(1, |code| code as u8));
        }
        // Ctrl-C also reaches the command, which may take its time to end.
        let signal = ended_by.load(Ordering::Relaxed);
        if signal != 0 && signal != SIGINT as usize {
            let _ = command.kill();
            let _ = command.wait();
            return None;
        }
        std::thread::sleep(POLL);
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("with-server: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let ended_by = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&ended_by), signal as usize).expect("a signal's handler");
    }
    let setup = Setup::default().outliving_signals();
    let mut nodes = match options.primaries {
        None => vec![setup.start()],
        Some(primaries) => cluster_of(primaries, &setup),
    };
    let url = format!("redis://127.0.0.1:{}", nodes[0].port());
    let command = Command::new(&options.command[0]).args(&options.command[1..]).env("ROLLCALL_URL", url).spawn();
    let mut command = match command {
        Ok(command) => command,
        Err(error) => {
            eprintln!("with-server: {}: {error}", options.command[0]);
            return ExitCode::from(127);
        }
    };
    let stop = AtomicBool::new(false);
    let code = std::thread::scope(|scope| {
        let mover = options.moves.then(|| scope.spawn(|| move_slots(&nodes, &stop)));
        let code = wait(&mut command, &ended_by);
        stop.store(true, Ordering::Relaxed);
        if let Some((slots, keys)) = mover.map(|mover| mover.join().expect("slots move")) {
            println!("with-server: {slots} slots with {keys} keys moved meanwhile");
        }
        code
    });
    match code {
        Some(code) => {
            nodes.iter_mut().for_each(Server::assert_up);
            ExitCode::from(code)
        }
        None => ExitCode::from(128 + ended_by.load(Ordering::Relaxed) as u8),
    }
}
