//! What remains of commands that are interrupted or killed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Ended, copy, tool, url};
use rollcall_testkit::{Client, Server, add_many, wait_until};

/// A proxy to a server that passes on a limited number of bytes of its answers, and then lets the client wait. It can
/// also hold back a request.
pub struct Narrow {
    port: u16,
    left: Arc<AtomicU64>,
    gate: Arc<Gate>,
}

/// Holds back the first request that has the word.
#[derive(Default)]
struct Gate {
    word: Mutex<Option<&'static str>>,
    is_held: AtomicBool,
}

impl Gate {
    fn holds(&self, request: &[u8]) -> bool {
        let word = *self.word.lock().expect("no panic");
        word.is_some_and(|word| request.windows(word.len()).any(|part| part == word.as_bytes()))
    }
}

impl Narrow {
    /// Starts a proxy to `server` that passes on `bytes` of its answers.
    pub fn to(server: &Server, bytes: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let (port, left) = (listener.local_addr().expect("its address").port(), Arc::new(AtomicU64::new(bytes)));
        let (to, shared, gate) = (server.port(), left.clone(), Arc::new(Gate::default()));
        let own = gate.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), left, gate) = (stream, shared.clone(), own.clone()) else { return };
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
                let pair = (stream.try_clone().expect("a stream"), server.try_clone().expect("a stream"));
                std::thread::spawn(move || ask(&pair.0, &pair.1, &gate));
                std::thread::spawn(move || answer(&server, &stream, &left));
            }
        });
        Narrow { port, left, gate }
    }

    /// Holds back the next request with this word, from now on.
    pub fn hold(&self, word: &'static str) {
        *self.gate.word.lock().expect("no panic") = Some(word);
    }

    /// Waits until a request is held back.
    pub fn wait_held(&self) {
        wait_until("a request", || self.gate.is_held.load(Ordering::Relaxed).then_some(()));
    }

    /// Passes on the request that is held back, and all others.
    pub fn release(&self) {
        *self.gate.word.lock().expect("no panic") = None;
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Waits until the limit is reached.
    pub fn wait(&self) {
        wait_until("its end", || (self.left.load(Ordering::Relaxed) == 0).then_some(()));
    }

    /// Passes on all further bytes.
    pub fn open(&self) {
        self.left.store(u64::MAX / 2, Ordering::Relaxed);
    }
}

fn ask(stream: &TcpStream, server: &TcpStream, gate: &Gate) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = (&mut &*stream).read(&mut buffer) {
        while gate.holds(&buffer[..read]) {
            gate.is_held.store(true, Ordering::Relaxed);
            std::thread::yield_now();
        }
        if (&mut &*server).write_all(&buffer[..read]).is_err() {
            break;
        }
    }
}

fn answer(server: &TcpStream, stream: &TcpStream, left: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = (&mut &*server).read(&mut buffer) {
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            let may = usize::try_from(left.load(Ordering::Relaxed)).expect("few").min(rest.len());
            if (&mut &*stream).write_all(&rest[..may]).is_err() {
                return;
            }
            left.fetch_sub(may as u64, Ordering::Relaxed);
            rest = &rest[may..];
            std::thread::yield_now();
        }
    }
}

/// Starts the tool with these arguments.
pub fn start(arguments: &[&str]) -> Child {
    start_with(arguments, Stdio::null())
}

fn start_with(arguments: &[&str], input: Stdio) -> Child {
    let mut command = rollcall_testkit::heeding_signals(env!("CARGO_BIN_EXE_rollcall"));
    command.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the tool starts")
}

/// Sends a signal, such as `-INT`, to the tool.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// Waits until the tool has ended.
pub fn end(child: Child) -> Ended {
    let output = child.wait_with_output().expect("the tool ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// Starts the tool, sends it a signal when `narrow` has reached its limit, passes on the rest, and waits for the end.
fn stop(narrow: &Narrow, arguments: &[&str], name: &str) -> Ended {
    let child = start(arguments);
    narrow.wait();
    signal(&child, name);
    // The rest of a chunk can arrive, so that the current step ends.
    narrow.open();
    end(child)
}

/// All keys of a server, sorted.
fn keys(client: &mut Client) -> Vec<String> {
    let mut keys: Vec<String> =
        client.list("KEYS *").iter().filter_map(|key| redis::from_redis_value_ref(key).ok()).collect();
    keys.sort();
    keys
}

/// Adds a filter of 24 MB, which has two chunks, and small keys that are copied before it.
fn large(client: &mut Client) {
    client.expect("BF.RESERVE f:large 0.001 12000000", "+OK");
    client.expect("LC.ADD a:counter a", "1");
    client.expect("BF.ADD b:filter a", "1");
}

/// A regression test: an interrupted copy reported a lost connection, and before that an empty server.
#[test]
fn a_copy_that_is_interrupted_says_so_and_leaves_nothing() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    large(&mut client);
    // Interrupts the copy before it knows the keys.
    let narrow = Narrow::to(&server, 100);
    let ended = stop(&narrow, &["copy", &narrow.url(), &url(&other), "--watch", "0"], "-INT");
    assert_eq!((ended.code, &ended.out[..]), (130, ""), "{}", ended.err);
    // Interrupts the copy in the middle of a chunk.
    for bytes in [9_000_000, 20_000_000] {
        let narrow = Narrow::to(&server, bytes);
        let ended = stop(&narrow, &["copy", &narrow.url(), &url(&other), "--watch", "0"], "-INT");
        assert_eq!(ended.code, 130, "{}{}", ended.out, ended.err);
        assert!(ended.err.starts_with("rollcall: interrupted\n  what was moved stays"), "{}", ended.err);
        assert!(ended.out.contains("3 keys, ") && ended.out.contains("1 to move, "), "{}", ended.out);
        let mut there = other.client();
        assert_eq!(keys(&mut there), ["a:counter", "b:filter"]);
    }
}

/// A regression test: the temporary key of a killed tool stayed without a time to live if the value in it was
/// complete.
#[test]
fn temporary_keys_of_a_killed_command_expire() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    large(&mut client);
    client.expect("PEXPIREAT b:filter 99999999999999", "1");
    // Kills the tool while it reads the source, and while it reads the complete value back from the target.
    let (from, to) = (Narrow::to(&server, 20_000_000), Narrow::to(&other, 9_000_000));
    for (source, target, narrow) in [(from.url(), url(&other), &from), (url(&server), to.url(), &to)] {
        stop(narrow, &["copy", &source, &target, "--watch", "0"], "-KILL");
        let mut there = other.client();
        let left = wait_until("what is left", || keys(&mut there).into_iter().find(|key| key.starts_with("rollcall.")));
        assert!((1..=86_400).contains(&there.int(&format!("TTL {left}"))), "{left}");
    }
    // The next copy moves all keys, each with its own time to live, and leaves no temporary key.
    copy(&server, &other, &[]).expect(0);
    let mut there = other.client();
    assert_eq!(keys(&mut there), ["a:counter", "b:filter", "f:large"]);
    assert_eq!(["a:counter", "f:large"].map(|key| there.int(&format!("PTTL {key}"))), [-1, -1]);
    assert_eq!(there.int("PEXPIRETIME b:filter"), 99_999_999_999_999);
    // A temporary key is not copied, even if its value is complete.
    there.expect("COPY f:large rollcall.load:0:{f:large}:f:large", "1");
    let third = Server::start();
    copy(&other, &third, &[]).expect(0);
    assert_eq!(keys(&mut third.client()), ["a:counter", "b:filter", "f:large"]);
}

#[test]
fn a_load_that_stops_goes_on_within_a_day() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    client.expect("BF.RESERVE f 0.001 24000000", "+OK");
    add_many(&mut client, "BF.MADD f", "item:", 0..1000);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file").to_str().expect("a path").to_owned();
    tool(&["dump", "f", &file, "--url", &url(&server)]).expect(0);
    // The server answers each chunk with a few bytes. After 60 bytes the load hangs between two chunks.
    let mut there = other.client();
    for (name, code) in [("-INT", 130), ("-KILL", -1)] {
        let narrow = Narrow::to(&other, 60);
        let ended = stop(&narrow, &["load", &file, "--url", &narrow.url()], name);
        assert_eq!(ended.code, code, "{}{}", ended.out, ended.err);
        if code == 130 {
            assert!(ended.err.starts_with("rollcall: interrupted\n  run the same again"), "{}", ended.err);
        }
        for key in keys(&mut there) {
            assert!((1..=86_400).contains(&there.int(&format!("TTL {key}"))), "{key}");
        }
    }
    tool(&["load", &file, "--url", &url(&other)]).expect(0);
    assert_eq!(keys(&mut there), ["f"]);
    assert_eq!(there.int("PTTL f"), -1);
    assert_eq!(there.digest("f"), client.digest("f"));
}

/// A user who may not set the final time to live must not start a copy: the copied key would expire after a day.
#[test]
fn a_target_that_rejects_the_last_step_is_rejected_at_the_first() {
    let (server, other) = (Server::start(), Server::start());
    server.client().expect("LC.ADD k a", "1");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file").to_str().expect("a path").to_owned();
    tool(&["dump", "k", &file, "--url", &url(&server)]).expect(0);
    for right in ["expire", "pexpireat", "persist"] {
        other.client().expect(&format!("ACL SETUSER some reset on >pw ~* +@all -{right}"), "+OK");
        let to = format!("redis://some:pw@127.0.0.1:{}", other.port());
        for arguments in [&["copy", &url(&server), &to, "--watch", "0"][..], &["load", &file, "--url", &to]] {
            tool(arguments).fails(3, right);
            assert_eq!(other.client().int("DBSIZE"), 0);
        }
    }
}

/// A regression test: a signal did not end an import that waited for standard input.
#[test]
fn an_import_that_waits_for_lines_ends() {
    let (server, mut client) = Server::start().with_client();
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        client.expect("LC.RESERVE c", "+OK");
        let arguments = ["import", "-", "c", "--batch", "1", "--pipeline", "1", "--url", &url(&server)];
        let mut child = start_with(&arguments, Stdio::piped());
        let mut input = child.stdin.take().expect("its input");
        input.write_all(b"ann\nben\n").expect("it reads its input");
        wait_until("both lines", || (client.int("LC.COUNT c") == 2).then_some(()));
        signal(&child, name);
        wait_until("its end", || child.try_wait().expect("its status"));
        let ended = end(child);
        assert_eq!(ended.code, code, "{}", ended.err);
        let said = "rollcall: interrupted\n  the first 2 lines are in: to go on after them, add --skip 2";
        // The signal may arrive before the reply to the second command.
        assert!(ended.err.starts_with(said) || ended.err.contains("the first 1 lines"), "{}", ended.err);
        drop(input);
        client.expect("DEL c", "1");
    }
}

/// A regression test: a signal did not end a command that waited for a server's answer.
#[test]
fn a_server_that_does_not_answer_keeps_no_command() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    large(&mut client);
    client.expect("SADD set a", "1");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    std::fs::write(path("lines"), "a\n").expect("the file");
    tool(&["dump", "f:large", &path("file"), "--url", &url(&server)]).expect(0);
    let there = url(&other);
    for (bytes, arguments) in [
        (9_000_000, &["dump", "f:large", &path("new"), "--url", "NARROW"][..]),
        (9_000_000, &["copy", "NARROW", &there, "--watch", "0"]),
        (100, &["load", &path("file"), "new", "--url", "NARROW"]),
        (10, &["import", &path("lines"), "a:counter", "--url", "NARROW"]),
        (10, &["compare", "a:counter", "set", "--url", "NARROW"]),
    ] {
        let narrow = Narrow::to(&server, bytes);
        let to = narrow.url();
        let arguments: Vec<&str> = arguments.iter().map(|&word| if word == "NARROW" { &to } else { word }).collect();
        let child = start(&arguments);
        narrow.wait();
        signal(&child, "-TERM");
        let ended = end(child);
        assert_eq!(ended.code, 143, "{arguments:?}: {}{}", ended.out, ended.err);
        assert!(ended.err.starts_with("rollcall: interrupted\n"), "{arguments:?}: {}", ended.err);
    }
    // The chunks that arrived are kept.
    assert_eq!(["new", "new.part"].map(|name| std::path::Path::new(&path(name)).exists()), [false, true]);
}

/// A regression test: a killed dump left a file with a random name, which the next dump did not use.
#[test]
fn a_dump_that_is_killed_leaves_one_file() {
    let (server, mut client) = Server::start().with_client();
    large(&mut client);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let files = || {
        let names = std::fs::read_dir(folder.path()).expect("the folder").map(|file| file.expect("a file").file_name());
        names.filter_map(|name| name.into_string().ok()).collect::<Vec<_>>()
    };
    // The first dump is killed after most of the chunks. The second dump reads one of them again, to compare it, and is
    // killed two chunks later.
    for bytes in [20_000_000, 2_500_000] {
        let narrow = Narrow::to(&server, bytes);
        let child = start(&["dump", "f:large", &path("file"), "--url", &narrow.url()]);
        narrow.wait();
        assert_eq!(files(), ["file.part"]);
        tool(&["dump", "f:large", &path("file"), "--url", &url(&server)]).fails(3, "another process writes");
        signal(&child, "-KILL");
        end(child);
        assert_eq!(files(), ["file.part"]);
    }
    let ended = tool(&["--json", "dump", "f:large", &path("file"), "--url", &url(&server)]).expect(0).json();
    assert!(ended["resumed_bytes"].as_u64().is_some_and(|bytes| bytes > 16 << 20), "{ended}");
    assert_eq!(files(), ["file"]);
    tool(&["dump", "f:large", &path("whole"), "--url", &url(&server)]).expect(0);
    let [whole, resumed] = ["whole", "file"].map(|name| std::fs::read(path(name)).expect("the dump"));
    assert!(whole == resumed);
}
