//! Tests the option `huge-pages`: pages of large filters become huge, and nothing else changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use redis::Value;

use rollcall_testkit::{Client, Server, Setup, lines, show, text, wait_until, with_items};

/// A filter of 11 MB.
const LARGE: &str = "0.001 6000000";

/// The least number of bytes in whole huge pages that such a filter has.
const WHOLE_BYTES: u64 = 8 << 20;

/// The state of the option, from INFO.
fn state(server: &Server) -> String {
    server.client().info("rollcall_huge_pages")
}

/// A server with the option; `None` where the system forbids huge pages.
fn start() -> Option<Server> {
    let server = Server::with_args("huge-pages yes");
    let state = state(&server);
    if state != "yes" {
        println!("left out: huge pages are {state}");
        return None;
    }
    Some(server)
}

/// The bytes of huge pages in the server's memory.
fn huge_bytes(server: &Server) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", server.pid())).expect("the server's memory");
    let kilobytes = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).expect("a line of huge pages");
    kilobytes.trim().trim_end_matches(" kB").parse::<u64>().expect("kilobytes") << 10
}

/// Waits until most pages are huge. Memory may be too fragmented for some.
fn wait_for_huge_pages(server: &Server, filters: u64) {
    wait_until("huge pages", || (huge_bytes(server) >= filters * WHOLE_BYTES * 3 / 4).then_some(()));
}

/// What a client can see of each key: name, digest and dump, and the memory usage.
fn seen(client: &mut Client) -> Vec<([String; 3], i64)> {
    let mut keys: Vec<_> = client.list("KEYS *").iter().map(text).collect();
    keys.sort();
    let mut of_key = |key: String| {
        let [dump, memory] = ["DUMP", "MEMORY USAGE"].map(|command| client.cmd(&format!("{command} {key}")));
        let Value::Int(memory) = memory else { panic!("MEMORY USAGE gave {}", show(&memory)) };
        ([client.digest(&key), key, show(&dump)], memory)
    };
    keys.into_iter().map(&mut of_key).collect()
}

/// Panics unless clients of two servers see the same.
#[track_caller]
fn assert_same(with: &mut Client, without: &mut Client, when: &str) {
    let (with, without) = (seen(with), seen(without));
    assert_eq!(with.len(), without.len(), "{when}");
    for ((values, memory), (same_values, same_memory)) in with.iter().zip(&without) {
        assert_eq!(values, same_values, "{when}");
        // The C library's malloc may give blocks of slightly different size.
        assert!(memory.abs_diff(*same_memory) <= 64, "{when}: {memory} and {same_memory} bytes");
    }
}

#[test]
fn pages_of_large_filters_become_huge() {
    let Some(mut with) = start() else { return };
    let mut without = Server::start();
    assert_eq!(state(&without), "no");
    for server in [&with, &without] {
        let mut client = server.client();
        client.expect(&format!("BF.RESERVE large {LARGE}"), "+OK");
        client.call(&with_items("BF.MADD large", "item:", 0..2000));
        client.expect("BF.RESERVE small 0.001 1000000", "+OK");
    }
    wait_for_huge_pages(&with, 1);
    assert_same(&mut with.client(), &mut without.client(), "when the pages are huge");
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").expect("the system's setting");
    assert!(setting.contains("[always]") || huge_bytes(&without) == 0);
    assert!(!with.log().contains("has no effect"));
    // The memory is released in whole pages.
    with.client().expect("DEL large", "1");
    wait_until("the pages to go", || (huge_bytes(&with) <= WHOLE_BYTES / 4).then_some(()));
    with.assert_up();
    without.assert_up();
}

#[test]
fn a_change_of_the_option_applies_to_new_filters() {
    let Some(server) = start() else { return };
    let mut client = server.client();
    server.set_parameter("huge-pages", "no");
    client.expect(&format!("BF.RESERVE small {LARGE}"), "+OK");
    assert_eq!(state(&server), "no");
    server.set_parameter("huge-pages", "yes");
    client.expect(&format!("BF.RESERVE first {LARGE}"), "+OK");
    client.expect("COPY first second", "1");
    wait_for_huge_pages(&server, 2);
    assert!(huge_bytes(&server) <= 2 * (WHOLE_BYTES + (2 << 20)));
    client.expect("DEBUG RELOAD", "+OK");
    wait_for_huge_pages(&server, 3);
}

/// Filters are replaced, freed, moved, saved and loaded while their pages become huge, and stay what they are without
/// the option.
#[test]
fn huge_pages_change_no_reply_or_value() {
    let Some(with) = start() else { return };
    let mut servers = [with, Server::start()];
    let mut clients = servers.each_ref().map(Server::client);
    let replies = clients.each_mut().map(|client| client.cmd("CONFIG SET activedefrag yes"));
    println!("with active defragmentation: {}", replies == [Value::Okay, Value::Okay]);
    let dump = clients.each_mut().map(|client| {
        for line in ["active-defrag-ignore-bytes 1", "active-defrag-threshold-lower 1"] {
            client.cmd(&format!("CONFIG SET {line}"));
        }
        client.expect("BF.INSERT dumped CAPACITY 6000000 ERROR 0.001 ITEMS a b c", "[1, 1, 1]");
        client.call(&["DUMP", "dumped"])
    });
    assert!(dump[0] == dump[1]);
    let [Value::BulkString(dump), _] = dump else { panic!("DUMP gave no string") };
    for step in lines(
        "DEL f; UNLINK f; SET f string; COPY f g REPLACE; BF.MERGE f g; RESTORE; RENAME g f
         BF.INSERT grown CAPACITY 2000000 ERROR 0.0001 EXPANSION 4 ITEMS a; GROW; BF.CLEAR f; BGSAVE; DEBUG RELOAD
         BGREWRITEAOF; FLUSHALL ASYNC; FLUSHALL SYNC",
    ) {
        let replies = clients.each_mut().map(|client| {
            client.cmd("DEL f");
            client.expect(&format!("BF.RESERVE f {LARGE}"), "+OK");
            client.cmd("COPY f g REPLACE");
            client.call(&with_items("BF.MADD f", step, 0..350));
            match step {
                "RESTORE" => client.call(&[b"RESTORE", b"f".as_slice(), b"0", &dump, b"REPLACE"]),
                "GROW" => client.cmd("BF.MERGE grown f g"),
                _ => client.cmd(step),
            }
        });
        // The replies differ only in whether a background save starts or is scheduled.
        assert!(
            replies[0] == replies[1] || step.starts_with("BG"),
            "{step}: {} {}",
            show(&replies[0]),
            show(&replies[1])
        );
        for client in &mut clients {
            client.call(&with_items("BF.MADD h", step, 0..10));
        }
        clients.iter_mut().for_each(wait_for_frees);
        let [with, without] = &mut clients;
        assert_same(with, without, &format!("after {step}"));
        // The list of pages, and the messages to the thread that collapses them, take some bytes.
        let bytes = clients.each_mut().map(|client| client.info_number("rollcall_allocated_bytes"));
        assert!(bytes[0].abs_diff(bytes[1]) < 10_000, "after {step}: {bytes:?} bytes");
    }
    servers.iter_mut().for_each(Server::assert_up);
}

/// Waits until all memory that waits to be freed is freed.
fn wait_for_frees(client: &mut Client) {
    wait_until("values to be freed", || {
        let waiting = ["rollcall_frees_waiting", "lazyfree_pending_objects"].map(|field| client.info_number(field));
        (waiting == [0, 0]).then_some(())
    });
}

/// Shell commands that put the file `setting` in place of the system's setting, for this process and its children, and
/// then execute the remaining arguments.
const SET: &str = r#"as_root=; [ "$(id -u)" = 0 ] || as_root="--user --map-root-user"
    exec unshare --mount $as_root sh -c '
        cd /sys/kernel/mm/transparent_hugepage
        for file in enabled hugepages-2048kB/enabled; do
            [ ! -e $file ] || mount --bind "$OLDPWD/setting" $file || exit
        done
        cd "$OLDPWD" && exec "$@"' sh "$@""#;

#[test]
fn settings_that_forbid_huge_pages_are_reported() {
    let probe = tempfile::tempdir().expect("a temporary directory");
    fs::write(probe.path().join("setting"), "").expect("a file");
    if !may_set(probe.path()) {
        println!("left out: this system lets the test mount nothing, or has no huge pages");
        return;
    }
    for (setting, line, expected) in [
        ("always madvise [never]", "", "forbidden-by-system"),
        ("[always] madvise never", "", "forbidden-by-disable-thp"),
        ("[always] madvise never", "disable-thp no", "yes"),
        ("always [madvise] never", "", "yes"),
    ] {
        let setup = Setup::default().file("setting", setting.as_bytes()).script(SET).line(line);
        let server = setup.args("huge-pages yes").start();
        assert_eq!(state(&server), expected, "{setting} {line}");
        let said = || server.log().matches("huge-pages yes has no effect").count();
        assert_eq!(said(), usize::from(expected != "yes"), "{}", server.log());
        server.client().expect(&format!("BF.RESERVE f {LARGE}"), "+OK");
        server.client().expect("BF.ADD f a", "1");
        server.set_parameter("huge-pages", "no");
        assert_eq!((state(&server).as_str(), said()), ("no", usize::from(expected != "yes")));
    }
}

/// Whether a process that is started in `dir` may have a setting of its own.
fn may_set(dir: &Path) -> bool {
    let mut probe = Command::new("sh");
    probe.args(["-c", SET, "sh", "true"]).current_dir(dir).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
