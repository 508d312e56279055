//! Tests `dump` and `load`: complete, merged, interrupted, and rejected.

use std::path::Path;

use crate::{peer, peer_server, tool, tool_with, url};
use rollcall_core::persist::file::{Entry, Kind, Writer};
use rollcall_testkit::{Server, Setup, add_many};

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a path").to_owned()
}

/// A server with a counter and a filter of about 6 chunks, and a temporary folder.
fn filled() -> (Server, tempfile::TempDir) {
    let (server, mut client) = Server::start().with_client();
    client.expect("BF.RESERVE big 0.001 3000000", "+OK");
    add_many(&mut client, "BF.MADD big", "item:", 0..20_000);
    add_many(&mut client, "LC.ADD counter", "item:", 0..20_000);
    client.expect("PEXPIREAT counter 99999999999999", "1");
    (server, tempfile::tempdir().expect("a folder"))
}

#[test]
fn a_dumped_value_loads_unchanged() {
    let (server, folder) = filled();
    let (mut client, to) = (server.client(), url(&server));
    for key in ["big", "counter"] {
        let file = path(folder.path(), key);
        tool(&["dump", key, &file, "--url", &to]).expect(0);
        tool(&["dump", key, &file, "--url", &to]).fails(3, "exists");
        tool(&["load", &file, "copy", "--url", &to]).expect(0);
        assert_eq!(client.digest("copy"), client.digest(key));
        assert_eq!(client.int("PEXPIRETIME copy"), client.int(&format!("PEXPIRETIME {key}")));
        let rejected = tool(&["load", &file, "--url", &to]).expect(3);
        assert!(rejected.err.contains("exists") && rejected.err.contains("--replace"), "{}", rejected.err);
        tool(&["load", &file, "copy", "--url", &to, "--replace", "--no-ttl"]).expect(0);
        assert_eq!(client.int("PEXPIRETIME copy"), -1);
        client.expect("DEL copy", "1");
    }
    assert_eq!(client.int("DBSIZE"), 2);
    tool(&["dump", "absent", &path(folder.path(), "absent"), "--url", &to]).fails(4, "there is no key absent");
    client.expect("SET text 1", "+OK");
    tool(&["dump", "text", &path(folder.path(), "text"), "--url", &to]).fails(3, "its type is string");
}

#[test]
fn a_dump_goes_on_where_it_broke_off_if_the_value_is_the_same() {
    let (server, folder) = filled();
    let to = url(&server);
    let (whole, resumed) = (path(folder.path(), "whole"), path(folder.path(), "resumed"));
    tool(&["dump", "big", &whole, "--url", &to]).expect(0);
    let bytes = std::fs::read(&whole).expect("the dump");
    // The file that a dump leaves if it is killed during its fourth chunk.
    std::fs::write(format!("{resumed}.part"), &bytes[..(3 << 20) + 1000]).expect("a part");
    let ended = tool(&["--json", "dump", "big", &resumed, "--url", &to]).expect(0).json();
    let had = ended["resumed_bytes"].as_u64().expect("bytes");
    assert!((3 << 20..(3 << 20) + 1000).contains(&had), "{had}");
    assert!(std::fs::read(&resumed).expect("the dump") == bytes);
    assert!(!Path::new(&format!("{resumed}.part")).exists());
    // After a write to the filter, the partial file cannot be continued.
    server.client().expect("BF.ADD big another", "1");
    std::fs::write(format!("{resumed}.part"), &bytes[..(3 << 20) + 1000]).expect("a part");
    let ended = tool(&["--json", "dump", "big", &resumed, "--url", &to, "--force"]).fails(0, "the dump begins again");
    assert_eq!(ended.json()["resumed_bytes"], 0);
    assert!(std::fs::read(&resumed).expect("the dump") != bytes);
}

#[test]
fn a_load_goes_on_where_it_broke_off() {
    let (server, folder) = filled();
    let (mut client, to) = (server.client(), url(&server));
    let file = path(folder.path(), "big");
    tool(&["dump", "big", &file, "--url", &to]).expect(0);
    let dump = client.chunks("BF", "big");
    // The temporary key that a load leaves if it is killed after three chunks.
    let name = format!("rollcall.load:{:016x}:{{new}}:new", xxhash_rust::xxh3::xxh3_64(&dump[0].1));
    for (iterator, chunk) in &dump[..3] {
        let words: [&[u8]; 4] = [b"BF.LOADCHUNK", name.as_bytes(), iterator.as_bytes(), chunk];
        assert_eq!(client.call(&words), redis::Value::Okay);
    }
    let ended = tool(&["--json", "load", &file, "new", "--url", &to]).expect(0).json();
    let had: usize = dump[..3].iter().map(|(_, chunk)| chunk.len()).sum();
    assert_eq!(ended[0]["resumed_bytes"].as_u64(), Some(had as u64));
    assert_eq!(client.digest("new"), client.digest("big"));
    client.expect(&format!("EXISTS {name}"), "0");
}

#[test]
fn redisbloom_takes_its_own_files() {
    let (server, folder) = filled();
    let to = url(&server);
    let theirs = peer_server();
    let file = path(folder.path(), "big");
    tool(&["dump", "big", &file, "--url", &to]).expect(0);
    tool(&["load", &file, "--url", &url(&theirs)]).fails(3, "classic filters only");
    let mut there = theirs.client();
    there.expect("BF.RESERVE theirs 0.01 1000", "+OK");
    add_many(&mut there, "BF.MADD theirs", "item:", 0..9000);
    let file = path(folder.path(), "theirs");
    tool(&["dump", "theirs", &file, "--url", &url(&theirs)]).expect(0);
    tool(&["load", &file, "--url", &to]).expect(0);
    tool(&["load", &file, "again", "--url", &url(&theirs)]).expect(0);
    let dump = there.chunks("BF", "theirs");
    assert!(there.chunks("BF", "again") == dump);
    assert!(server.client().chunks("BF", "theirs") == dump);
}

#[test]
fn a_classic_filter_that_was_built_loads_though_redisbloom_cuts_it_into_larger_chunks() {
    let (server, theirs) = (Server::start(), peer_server());
    let folder = tempfile::tempdir().expect("a folder");
    let (items, file) = (path(folder.path(), "items"), path(folder.path(), "built"));
    std::fs::write(&items, (0..1000).map(|number| format!("item:{number}\n")).collect::<String>()).expect("items");
    // 1.4 MB: two chunks in the file, and one in RedisBloom's dumps.
    tool(&["build", "filter", &file, &items, "--capacity", "1000000", "--layout", "classic"]).expect(0);
    for to in [&server, &theirs] {
        tool(&["load", &file, "built", "--url", &url(to)]).expect(0);
        to.client().expect("BF.EXISTS built item:999", "1");
    }
    let [ours, other] = [&server, &theirs].map(|server| server.client().chunks("BF", "built"));
    assert_eq!([ours.len(), other.len()], [3, 2]);
    let bytes = |chunks: &[(String, Vec<u8>)]| chunks.iter().flat_map(|(_, bytes)| bytes).copied().collect::<Vec<_>>();
    assert!(bytes(&ours) == bytes(&other));
}

/// A regression test: loading a damaged file left a temporary key on the server for a day.
#[test]
fn a_damaged_file_leaves_nothing_on_the_server() {
    let (server, folder) = filled();
    let to = url(&server);
    let file = path(folder.path(), "big");
    tool(&["dump", "big", &file, "--url", &to]).expect(0);
    let bytes = std::fs::read(&file).expect("the dump");
    let mut damaged = bytes.clone();
    damaged[3 << 20] ^= 1;
    std::fs::write(&file, &damaged).expect("the file");
    let calls = |server: &Server| server.client().text("INFO commandstats").contains("cmdstat_bf.loadchunk");
    for (input, said) in [(&damaged[..], "damaged at byte"), (&bytes[..4 << 20], "ends at byte")] {
        std::fs::write(&file, input).expect("the file");
        tool(&["load", &file, "new", "--url", &to]).fails(3, said);
        tool_with(&["load", "/dev/stdin", "new", "--url", &to], input, &[]).fails(3, said);
    }
    assert_eq!((server.client().int("DBSIZE"), calls(&server)), (2, false));
    // A complete file can be loaded from a pipe.
    tool_with(&["load", "/dev/stdin", "new", "--url", &to], &bytes, &[]).expect(0);
    assert_eq!(server.client().digest("new"), server.client().digest("big"));
    // The file's checksums are right, but its chunks do not fit together. The server rejects them, and no key stays.
    let mut dump = server.client().chunks("BF", "big");
    dump[1].1.truncate(1000);
    let mut wrong = Writer::new(Vec::new()).expect("a file");
    wrong.begin(&Entry::new(Kind::Filter)).expect("a value");
    for (iterator, chunk) in &dump {
        wrong.chunk(iterator.parse().expect("a number"), chunk).expect("a chunk");
    }
    wrong.end().expect("its end");
    std::fs::write(&file, wrong.finish().expect("the end")).expect("the file");
    tool(&["load", &file, "wrong", "--url", &to]).fails(3, "its log has why");
    assert_eq!(server.client().int("DBSIZE"), 3);
}

#[test]
fn keys_get_a_time_to_live_as_they_are_built_or_loaded() {
    let (server, folder) = (Server::start(), tempfile::tempdir().expect("a folder"));
    let (mut client, to) = (server.client(), url(&server));
    let (items, file) = (path(folder.path(), "items"), path(folder.path(), "built"));
    std::fs::write(&items, "ann\nben\n").expect("items");
    for kind in ["filter", "counter"] {
        tool(&["build", kind, &file, &items, "--ex", "1h", "--key", "key", "--force"]).expect(0);
        for (options, range) in [(&[][..], 3500..=3600), (&["--ex", "7d"], 604_700..=604_800), (&["--no-ttl"], -1..=-1)]
        {
            tool(&[&["load", &file, "--url", &to], options].concat()).expect(0);
            let left = client.int("TTL key");
            assert!(range.contains(&left), "{kind} {options:?}: {left}");
            client.expect("DEL key", "1");
        }
    }
    tool(&["load", &file, "--url", &to, "--ex", "0"]).expect(2);
    tool(&["load", &file, "--url", &to, "--ex", "1h", "--no-ttl"]).expect(2);
}

/// A regression test: on a replica, the error of `load` did not name the command that was rejected.
#[test]
fn a_replica_says_which_command_it_rejects() {
    let (primary, folder) = (Server::start(), tempfile::tempdir().expect("a folder"));
    let replica = Setup::default().line(&format!("replicaof 127.0.0.1 {}", primary.port())).start();
    let (items, file) = (path(folder.path(), "items"), path(folder.path(), "built"));
    std::fs::write(&items, "ann\n").expect("items");
    tool(&["build", "counter", &file, &items, "--key", "key"]).expect(0);
    let rejected = tool(&["load", &file, "--url", &url(&replica)]).expect(3).err;
    assert!(rejected.contains(" answered PERSIST with: READONLY "), "{rejected}");
    assert!(rejected.contains("it is a replica: give the primary"), "{rejected}");
}

#[test]
fn a_file_is_merged_into_keys_that_exist() {
    let (server, folder) = (Server::start(), tempfile::tempdir().expect("a folder"));
    let (mut client, to) = (server.client(), url(&server));
    let (items, file) = (path(folder.path(), "items"), path(folder.path(), "built"));
    std::fs::write(&items, (0..3000).map(|number| format!("item:{number}\n")).collect::<String>()).expect("items");
    let build = |kind: &[&str]| {
        tool(&[&["build", kind[0], &file, &items, "--key", "key", "--ex", "1h", "--force"], &kind[1..]].concat())
            .expect(0);
    };
    let sized = ["filter", "--capacity", "5000"];
    for (kind, family, create, noun) in [
        (&["counter"][..], "LC", "LC.RESERVE", "counter"),
        (&sized, "BF", "BF.RESERVE KEY 0.01 5000", "filter"),
        (&[&sized[..], &["--layout", "classic"]].concat(), "BF", "BF.RESERVE KEY 0.01 5000 LAYOUT classic", "filter"),
    ] {
        build(kind);
        let load = ["load", &file, "--url", &to];
        // A missing key gets the time to live of the file, or that of --ex.
        for (options, range) in [(&[][..], 3500..=3600), (&["--ex", "7d"], 604_700..=604_800), (&["--no-ttl"], -1..=-1)]
        {
            client.cmd("DEL key");
            let loaded = tool(&[&load[..], &["--merge"], options].concat()).expect(0);
            assert!(loaded.out.starts_with(&format!("key: a {noun}, ")), "{}", loaded.out);
            assert!(range.contains(&client.int("TTL key")), "{kind:?} {options:?}: {}", client.int("TTL key"));
        }
        client.expect("RENAME key loaded", "+OK");
        // An existing key keeps its own, and becomes what MERGE makes of both.
        for key in ["key", "other"] {
            match family {
                "LC" => client.cmd(&create.replace("LC.RESERVE", &format!("LC.RESERVE {key}"))),
                _ => client.cmd(&create.replace("KEY", key)),
            };
            client.expect(&format!("{family}.ADD {key} another"), "1");
        }
        client.expect("EXPIRE key 100", "1");
        let merged = tool(&[&load[..], &["--merge", "--ex", "7d"]].concat()).expect(0);
        assert!(merged.out.ends_with(", merged\n"), "{}", merged.out);
        client.expect(&format!("{family}.MERGE other loaded"), "+OK");
        assert!((50..=100).contains(&client.int("TTL key")), "{kind:?}");
        client.expect("PERSIST key", "1");
        assert_eq!(client.digest("key"), client.digest("other"), "{kind:?}");
        let again = tool(&[&["--json"], &load[..], &["--merge"]].concat()).expect(0).json();
        assert_eq!((&again[0]["merged"], &again[0]["compared"]), (&true.into(), &false.into()));
        assert_eq!(client.digest("key"), client.digest("other"), "{kind:?}");
        // What the server rejects changes nothing.
        client.cmd("SET text 1");
        tool(&[&["load", &file, "text"][..], &load[2..], &["--merge"]].concat()).fails(3, "MERGEDUMP with: WRONGTYPE");
        let (other, said) = match kind.contains(&"classic") {
            true => (["--error", "0.001"], "differ in error rate"),
            false => (["--seed", "7"], "differ in seed"),
        };
        build(&[kind, &other].concat());
        tool(&[&load[..], &["--merge"]].concat()).fails(3, said);
        assert_eq!(client.digest("key"), client.digest("other"), "{kind:?}");
        client.expect("DEL key other loaded text", "4");
    }
    tool(&["load", &file, "--url", &to, "--merge", "--replace"]).expect(2);
}

#[test]
fn a_key_that_expires_before_the_merge_gets_the_time_to_live_of_the_file() {
    let (server, folder) = (Server::start(), tempfile::tempdir().expect("a folder"));
    let (mut client, to, file) = (server.client(), url(&server), path(folder.path(), "file"));
    client.expect_each("LC.ADD key a b => 2; EXPIRE key 3600 => 1");
    tool(&["dump", "key", &file, "--url", &to]).expect(0);
    // The key exists when the tool asks for it, and has expired when the server runs the merge.
    client.expect_each("LC.ADD key c => 1; PEXPIRE key 2000 => 1; CLIENT PAUSE 2500 WRITE => +OK");
    tool(&["load", &file, "--merge", "--url", &to]).expect(0);
    client.expect("LC.COUNT key", "2");
    assert!((3000..=3600).contains(&client.int("TTL key")), "{}", client.int("TTL key"));
}

#[test]
fn a_value_longer_than_an_argument_is_merged_by_way_of_another_key() {
    let (server, folder) = filled();
    let (mut client, to) = (server.client(), url(&server));
    let file = path(folder.path(), "big");
    tool(&["dump", "big", &file, "--url", &to]).expect(0);
    client.expect("BF.RESERVE key 0.001 3000000", "+OK");
    client.expect("BF.ADD key another", "1");
    client.expect("CONFIG SET proto-max-bulk-len 2mb", "+OK");
    let before = client.digest("key");
    let rejected = tool(&["load", &file, "key", "--merge", "--url", &to])
        .fails(3, "key: the server takes arguments of at most 2.10 MB");
    assert!(rejected.err.contains("then RF.MERGE key OTHER. Or raise proto-max-bulk-len"), "{}", rejected.err);
    assert_eq!(client.digest("key"), before);
    tool(&["load", &file, "other", "--url", &to]).expect(0);
    client.expect("RF.MERGE key other", "+OK");
    let by_key = client.digest("key");
    assert_ne!(by_key, before);
    client.expect("CONFIG SET proto-max-bulk-len 512mb", "+OK");
    // The same without the permission to ask for the longest argument.
    client.expect("ACL SETUSER few on >pw ~* -@all +pttl +rf.mergedump", "+OK");
    client.expect("BF.RESERVE again 0.001 3000000", "+OK");
    client.expect("BF.ADD again another", "1");
    let few = format!("redis://few:pw@127.0.0.1:{}", server.port());
    tool(&["load", &file, "again", "--merge", "--url", &few]).expect(0);
    assert_eq!(client.digest("again"), by_key);
}

#[test]
fn beside_redisbloom_lines_are_merged_and_its_own_filters_are_not() {
    let server = Setup::default().module_before(&peer()).args("commands beside").start();
    let (mut client, to) = (server.client(), url(&server));
    let folder = tempfile::tempdir().expect("a folder");
    client.expect("RF.RESERVE lines 0.01 1000", "+OK");
    client.expect("BF.RESERVE theirs 0.01 1000", "+OK");
    for (key, family) in [("lines", "RF"), ("theirs", "BF")] {
        client.expect(&format!("{family}.ADD {key} ann"), "1");
        tool(&["dump", key, &path(folder.path(), key), "--url", &to]).expect(0);
        client.expect(&format!("DEL {key}"), "1");
        client.expect(&format!("{family}.RESERVE {key} 0.01 1000"), "+OK");
    }
    tool(&["load", &path(folder.path(), "lines"), "--merge", "--url", &to]).expect(0);
    client.expect("RF.EXISTS lines ann", "1");
    let rejected = tool(&["load", &path(folder.path(), "theirs"), "--merge", "--url", &to]).fails(3, "unknown command");
    assert!(rejected.err.contains("classic filters only if BF.* is this module's"), "{}", rejected.err);
    client.expect("BF.EXISTS theirs ann", "0");
}
