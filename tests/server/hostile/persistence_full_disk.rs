//! Tests a disk that fills up while the server saves or rewrites its AOF. The save fails, the old file and all data
//! remain, and the next save succeeds once there is room.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rollcall_testkit::{
    Client, Server, Setup, add_many, error_text, populate_without_ttl, show, wait_until, with_items,
};

/// A disk that a test can fill and empty.
#[derive(Clone, Copy)]
enum Disk {
    /// A size limit for the files of the process, which works everywhere. Writes beyond it fail with `EFBIG`.
    Limited,
    /// A small file system in memory, if the test is allowed to mount one. Writes to the full disk fail with `ENOSPC`.
    Small,
}

/// Bytes that can still be written to a full disk: less than an RDB file of the test, but more than the log.
const LEFT_BYTES: u64 = 64 << 10;

/// Shell commands that mount 16 MB on the folder `disk`, visible only to this process and its children, and then
/// execute the remaining arguments.
const MOUNT: &str = r#"mkdir -p disk; as_root=; [ "$(id -u)" = 0 ] || as_root="--user --map-root-user"
    exec unshare --mount $as_root sh -c 'mount -t tmpfs -o size=16m tmpfs disk && exec "$@"' sh "$@""#;

impl Disk {
    /// The setup of a server that stores on this disk; `None` if the test cannot have such a disk.
    fn setup(self) -> Option<Setup> {
        match self {
            // The signal would end the server, so it is ignored. Then the write fails instead.
            Disk::Limited => Some(Setup::default().script(r#"trap '' XFSZ; exec "$@""#)),
            Disk::Small => {
                let dir = tempfile::tempdir().expect("a temporary directory");
                let mut probe = Command::new("sh");
                probe.args(["-c", MOUNT, "sh", "true"]).current_dir(&dir).stderr(Stdio::null());
                if !probe.status().is_ok_and(|status| status.success()) {
                    println!("left out: this system lets the test mount nothing");
                    return None;
                }
                Some(Setup::default().script(MOUNT).line("dir disk").line("logfile ../server.log"))
            }
        }
    }

    fn fill(self, server: &Server) {
        match self {
            Disk::Limited => limit_files(server, &format!("{LEFT_BYTES}:")),
            Disk::Small => {
                let mut ballast = fs::File::create(stored(server, "ballast")).expect("a file");
                let mut bytes = 0;
                while let Ok(written) = ballast.write(&[0; 4096]) {
                    bytes += written as u64;
                }
                ballast.set_len(bytes - LEFT_BYTES).expect("a shorter file");
            }
        }
    }

    fn make_room(self, server: &Server) {
        match self {
            Disk::Limited => limit_files(server, "unlimited:"),
            Disk::Small => fs::remove_file(stored(server, "ballast")).expect("the ballast"),
        }
    }
}

/// Sets the size limit of the server's files.
fn limit_files(server: &Server, limit: &str) {
    let status =
        Command::new("prlimit").args(["--pid", &server.pid().to_string(), &format!("--fsize={limit}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "prlimit --fsize={limit}");
}

/// A file in the folder in which the server stores, as the server's process sees it.
fn stored(server: &Server, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/cwd/{name}", server.pid()))
}

/// Panics if the server left a temporary file behind.
fn assert_nothing_half_written(server: &Server) {
    for folder in [".", "appendonlydir"] {
        let files =
            fs::read_dir(stored(server, folder)).expect("a folder").map(|file| file.expect("a file").file_name());
        let left: Vec<_> = files.filter(|name| name.to_string_lossy().starts_with("temp-")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn digest(client: &mut Client) -> String {
    client.text("DEBUG DIGEST")
}

/// Fills the disk, checks that every save fails, makes room, and checks that saving succeeds.
fn a_disk_fills(disk: Disk, preamble: &str) {
    let Some(setup) = disk.setup() else { return };
    let setup = setup.line("appendonly yes").line("appendfsync everysec").line("rdbcompression no");
    let (mut server, mut client) = setup.line(&format!("aof-use-rdb-preamble {preamble}")).start().with_client();
    populate_without_ttl(&mut client);
    client.expect("BF.RESERVE bf:big 0.01 100000", "+OK");
    add_many(&mut client, "BF.MADD bf:big", "item:", 0..50_000);
    server.save();
    let saved = fs::read(stored(&server, "dump.rdb")).expect("the RDB file");
    assert!(saved.len() as u64 > 2 * LEFT_BYTES, "{} bytes", saved.len());
    add_many(&mut client, "LC.ADD lc:after", "item:", 0..1000);
    let before = digest(&mut client);

    disk.fill(&server);
    client.expect("SAVE", "-ERR*");
    client.expect("BGSAVE", "+Background saving started");
    wait_until("BGSAVE to end", || (client.info_number("rdb_bgsave_in_progress") == 0).then_some(()));
    assert_eq!(client.info("rdb_last_bgsave_status"), "err");
    assert!(fs::read(stored(&server, "dump.rdb")).expect("the RDB file") == saved, "the RDB file of before");
    // If the list of files cannot be written, the rewrite does not begin.
    let reply = client.cmd("BGREWRITEAOF");
    if let Some(error) = error_text(&reply) {
        assert!(error.contains("AOF background rewriting"), "{error}");
    }
    wait_until("BGREWRITEAOF to end", || (client.info_number("aof_rewrite_in_progress") == 0).then_some(()));
    assert_eq!(client.info("aof_last_bgrewrite_status"), "err");
    assert_eq!(digest(&mut client), before);

    // The server rejects writes that it cannot append.
    let mut batch = 0;
    wait_until("writes to be rejected", || {
        batch += 1;
        let reply = client.call(&with_items("LC.ADD lc:late", "item:", batch * 200..batch * 200 + 200));
        error_text(&reply).map(|error| assert!(error.starts_with("MISCONF"), "{error}"))
    });
    let before = digest(&mut client);
    for line in ["BF.ADD bf:default new", "BF.RESERVE bf:new 0.01 100", "LC.ADD lc:new a", "LC.CLEAR lc:exact"] {
        client.expect(line, "-MISCONF*");
    }
    assert_eq!(digest(&mut client), before);

    disk.make_room(&server);
    wait_until("writes to be taken", || error_text(&client.cmd("LC.ADD lc:exact after")).is_none().then_some(()));
    let before = digest(&mut client);
    server.save();
    server.rewrite_aof();
    assert_nothing_half_written(&server);
    for reload in ["DEBUG RELOAD NOSAVE", "DEBUG LOADAOF"] {
        client.expect(reload, "+OK");
        assert_eq!(digest(&mut client), before, "{}", show(&client.cmd("DBSIZE")));
    }
    server.assert_up();
}

#[test]
fn files_that_may_not_grow_and_an_rdb_preamble() {
    a_disk_fills(Disk::Limited, "yes");
}

#[test]
fn files_that_may_not_grow_and_commands() {
    a_disk_fills(Disk::Limited, "no");
}

#[test]
fn a_small_disk_and_an_rdb_preamble() {
    a_disk_fills(Disk::Small, "yes");
}

#[test]
fn a_small_disk_and_commands() {
    a_disk_fills(Disk::Small, "no");
}
