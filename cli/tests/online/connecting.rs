//! How the tool connects and authenticates, and its messages if that fails.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{started, tool, tool_with, url};
use rollcall_testkit::{Server, Setup};

#[test]
fn connection_errors_say_what_to_do() {
    let server = Server::start();
    let (mut client, port) = (server.client(), server.port());
    client.expect("ACL SETUSER reader on >secret ~* +@read +scan +type +select -memory", "+OK");
    client.expect("ACL SETUSER nobody on >secret ~* -@all +ping", "+OK");
    client.expect("CONFIG SET requirepass word", "+OK");
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("its address").port();
    let plain = Setup::default().without_module().start();
    let cases: [(String, &[&str]); 6] = [
        (format!("redis://nobody:secret@127.0.0.1:{port}/1"), &["permissions", "ACL SETUSER"]),
        (format!("redis://127.0.0.1:{free}"), &["nothing listens there", "ROLLCALL_URL"]),
        (format!("redis://127.0.0.1:{port}"), &["NOAUTH", "ROLLCALL_PASSWORD"]),
        (format!("redis://:wrong@127.0.0.1:{port}"), &["the password in ROLLCALL_PASSWORD"]),
        (format!("redis://nobody:secret@127.0.0.1:{port}"), &["NOPERM", "ACL SETUSER"]),
        ("redis://no.such.host.invalid".to_owned(), &["nobody knows this name here"]),
    ];
    for (url, parts) in &cases {
        let ended = tool(&["top", "--url", url, "--timeout", "5"]).expect(3);
        for part in *parts {
            assert!(ended.err.contains(part), "{url}: {part}: {}", ended.err);
        }
        assert!(!ended.err.contains("wrong@") && !ended.err.contains(":secret"), "{}", ended.err);
    }
    for wrong in [format!("http://127.0.0.1:{port}"), String::new(), format!("redis://127.0.0.1:{port}/x")] {
        let ended = tool(&["top", "--url", &wrong]).expect(2);
        assert!(ended.err.contains("redis://user:password@host:6379/0"), "{wrong}: {}", ended.err);
    }
    client.expect("CONFIG SET requirepass word", "+OK");
    tool_with(&["top", "--url", &url(&server)], b"", &[("ROLLCALL_PASSWORD", "word")]).expect(0);
    tool(&["top", "--url", &format!("redis://:word@127.0.0.1:{port}")]).expect(0);
    tool(&["top", "--url", &format!("redis://reader:secret@127.0.0.1:{port}/1")]).expect(0);
    // On a server without the module, `top` finds no keys, and `import` reports the missing module.
    tool(&["top", "--url", &url(&plain)]).shows(0, "has no module for filters and counters");
    tool(&["top", "--fail-on", "critical", "--url", &url(&plain)]).fails(1, "1 of 1 rows");
    // A password for a server that has none is an error.
    for given in [format!("redis://:word@127.0.0.1:{}", plain.port()), format!(":word@127.0.0.1:{}", plain.port())] {
        let ended = tool(&["top", "--url", &given]).fails(3, "asks for no password: give none");
        assert!(!ended.err.contains("word@"), "{}", ended.err);
    }
    // A regression test: a server that did not answer was an unavailable resource (os error 11).
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let at_silent = silent.local_addr().expect("its address").to_string();
    tool(&["top", "--url", &at_silent, "--timeout", "1"]).fails(3, &format!("{at_silent}: no reply within 1 s"));
    // A regression test: the database in a query was ignored.
    for query in ["?db=2", "/0?db=2"] {
        tool(&["top", "--url", &format!("{}{query}", url(&plain))]).fails(2, "a database is its path, as /2");
    }
    let args = ["import", "-", "k", "--kind", "filter", "--create", "CAPACITY 10", "--url", &url(&plain)];
    tool_with(&args, b"a\n", &[]).fails(3, "the module is not loaded there");
    tool(&["top", "--no-such-option"]).expect(2);
    tool(&["top", "--insecure", "--url", &url(&plain)]).fails(2, "are for TLS");
}

/// A regression test: `copy` gave the advice of commands with one server, whose options it has not.
#[test]
fn copy_names_its_own_arguments() {
    let (source, target) = (Server::start(), Server::start());
    source.client().expect("LC.ADD k a", "1");
    let (from, to) = (url(&source), url(&target));
    let down = "127.0.0.1:1";
    for (from, to, advice) in [(&*from, down, "with the argument TARGET"), (down, &*to, "with the argument SOURCE")] {
        tool(&["copy", from, to]).fails(3, advice);
    }
    target.client().expect("CONFIG SET requirepass word", "+OK");
    tool(&["copy", &from, &to]).fails(3, "the password in ROLLCALL_TARGET_PASSWORD");
    tool(&["copy", &to, &from]).fails(3, "the password in ROLLCALL_PASSWORD");
    let wrong = ["copy", &from, &to.replace("redis://", "redis://:wrong@")];
    tool(&wrong).fails(3, "the password in ROLLCALL_TARGET_PASSWORD");
}

/// A regression test: connecting by TLS to a server without TLS took a minute, and the error suggested a firewall.
/// Such a server waits for a line end that a TLS handshake never sends.
#[test]
fn a_server_without_tls_says_so() {
    let server = Server::start();
    server.client().expect("CONFIG SET requirepass word", "+OK");
    for user in ["", ":word@"] {
        let ended = tool(&["top", "--url", &format!("rediss://{user}127.0.0.1:{}", server.port())])
            .fails(3, "it speaks without TLS");
        assert!(ended.err.contains("a URL of redis:// is without TLS"), "{}", ended.err);
    }
}

#[test]
fn an_address_needs_no_scheme() {
    let server = Server::start();
    server.client().expect("LC.ADD k a", "1");
    let port = server.port();
    for host in ["127.0.0.1", "localhost", ":@127.0.0.1"] {
        assert_listed(&["--url", &format!("{host}:{port}")]);
        assert_listed(&["--url", &format!("{host}:{port}/0")]);
    }
    assert_eq!(
        tool(&["top", "--url", &format!("127.0.0.1:{port}/1")]).expect(0).out,
        "0 filters and counters, 0 B; 0 to look at\n"
    );
}

#[test]
fn the_tool_connects_over_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let server = Setup::default().line(&format!("unixsocket {}", socket.display())).start();
    server.client().expect("LC.ADD k a", "1");
    assert_listed(&["--url", &format!("redis+unix://{}", socket.display())]);
    assert_listed(&["--url", &socket.display().to_string()]);
}

#[test]
fn the_tool_connects_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let tls_port =
        std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("its address").port();
    let started = Setup::default()
        .line(&format!("tls-port {tls_port}"))
        .line(&format!("tls-cert-file {}", path("server.crt")))
        .line(&format!("tls-key-file {}", path("server.key")))
        .line(&format!("tls-ca-cert-file {}", path("ca.crt")))
        .try_start();
    let server = match started {
        // A server built without TLS rejects the TLS options, so the test is skipped.
        Err(log) if !log.contains("Server initialized") => return println!("left out: the server has no TLS"),
        started => started.expect("the server starts"),
    };
    server.client().expect("LC.ADD k a", "1");
    let tls = format!("rediss://localhost:{tls_port}");
    tool(&["top", "--url", &tls]).fails(3, "--cacert FILE");
    let (ca, cert, key) = (path("ca.crt"), path("server.crt"), path("server.key"));
    // A regression test: if the server required a client certificate, the tool suggested --cacert.
    let without = tool(&["top", "--url", &tls, "--cacert", &ca]).expect(3);
    assert!(without.err.contains("--cert FILE --key FILE") && !without.err.contains("--cacert"), "{}", without.err);
    assert_listed(&["--url", &tls, "--cacert", &ca, "--cert", &cert, "--key", &key]);
    assert_listed(&["--url", &tls, "--insecure", "--cert", &cert, "--key", &key]);
    tool(&["top", "--url", &tls, "--cert", &cert]).expect(2);
    let both = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    // A regression test: with right authorities and a wrong name, the tool suggested --cacert, and with a wrong key,
    // another scheme.
    let by_number = format!("rediss://127.0.0.1:{tls_port}");
    let said =
        tool(&[&["top", "--url", &by_number], &both[..]].concat()).fails(3, "the certificate is for other names");
    assert!(!said.err.contains("--cacert"), "{}", said.err);
    let said =
        tool(&["top", "--url", &tls, "--cert", &cert, "--key", &path("ca.key")]).fails(3, "--key is not the key");
    assert!(!said.err.contains("redis://"), "{}", said.err);
    tool(&["top", "--url", &tls, "--cacert", &key]).fails(3, "server.key has no certificate");
    tool(&["top", "--url", &tls, "--cert", &cert, "--key", &ca]).fails(3, "ca.crt has no private key");
    // A regression test: a command with one URL of TLS and one without took no files of TLS.
    let plain = Server::start();
    plain.client().expect("SADD k a", "1");
    tool(&[&["compare", "k", "k", "--url", &tls, "--set-url", &url(&plain)], &both[..]].concat()).expect(0);
    plain.client().expect("DEL k", "1");
    tool(&[&["copy", &tls, &url(&plain), "--watch", "0"], &both[..]].concat()).shows(0, "1 moved");
    tool(&[&["exporter", "--once", "--url", &tls, "--url", &url(&plain)], &both[..]].concat()).expect(0);
    tool(&[&["copy", &url(&server), &url(&plain)], &both[..]].concat()).fails(2, "are for TLS");
}

/// Panics unless `top` lists the key `k`.
#[track_caller]
fn assert_listed(args: &[&str]) {
    let ended = tool(&[&["--json", "top"], args].concat()).expect(0);
    assert_eq!(ended.json()[0]["key"], "k");
}

/// Creates a certificate authority, and a certificate for localhost that it signed.
fn certificates(folder: &Path) {
    let openssl = |line: &str| {
        let ended = Command::new("openssl").args(line.split(' ')).current_dir(folder).stdin(Stdio::null()).output();
        let ended = ended.expect("openssl is installed");
        assert!(ended.status.success(), "openssl {line}: {}", String::from_utf8_lossy(&ended.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.crt -days 2 -subj /CN=authority"));
    openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"));
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").expect("the names");
    openssl("x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile names");
}

/// Checks the table of permissions in docs/tool.md: a user with exactly these permissions can run each command.
#[test]
fn the_rights_that_the_document_names_are_enough() {
    let (server, other) = (Server::start(), Server::start());
    let mut client = server.client();
    client.expect("LC.ADD c a b", "2");
    client.expect("BF.ADD f a", "1");
    client.expect("SADD s a b", "2");
    let top = "+scan +pttl +bf.info +bf.debug +lc.info";
    let dump = "+type +pexpiretime +bf.info +rf.info +lc.info +bf.scandump +rf.scandump +lc.scandump";
    let load = "+pttl +unlink +expire +pexpireat +persist +rename +renamenx +bf.card +rf.card +lc.count \
                +bf.loadchunk +rf.loadchunk +lc.loadchunk +bf.scandump +rf.scandump +lc.scandump";
    let users = [
        ("top", top.to_owned()),
        ("dump", dump.to_owned()),
        ("load", load.to_owned()),
        ("merge", "+pttl +config|get +rf.mergedump +lc.mergedump".to_owned()),
        ("source", format!("{top} {dump} +info +bf.card +rf.card +lc.count +client|pause +client|unpause")),
        ("target", format!("{load} +type +info +command|info")),
        ("import", "+type +bf.madd +bf.insert +lc.add +lc.insert".to_owned()),
        (
            "compare",
            "+scan +type +info +bf.mexists +rf.mexists +lc.mexists +bf.card +rf.card +lc.count +lc.info +scard +sscan"
                .to_owned(),
        ),
    ];
    for (name, rights) in &users {
        for server in [&server, &other] {
            server.client().expect(&format!("ACL SETUSER {name} on >pw ~* -@all {rights}"), "+OK");
        }
    }
    let of = |server: &Server, name: &str| format!("redis://{name}:pw@127.0.0.1:{}", server.port());
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    tool(&["top", "--url", &of(&server, "top")]).expect(0);
    for key in ["c", "f"] {
        tool(&["dump", key, &path(key), "--url", &of(&server, "dump")]).expect(0);
        tool(&["load", &path(key), "new", "--url", &of(&other, "load")]).expect(0);
        tool(&["load", &path(key), "new", "--replace", "--url", &of(&other, "load")]).expect(0);
        tool(&["load", &path(key), "new", "--merge", "--url", &of(&other, "merge")]).expect(0);
        other.client().expect("DEL new", "1");
    }
    for pause in ["--pause", "--replace"] {
        tool(&["copy", &of(&server, "source"), &of(&other, "target"), "--watch", "0", pause]).expect(0);
    }
    for (key, create) in [("c", &[][..]), ("n", &["--kind", "filter", "--create", "CAPACITY 10"])] {
        let to = of(&server, "import");
        let args = [&["import", "-", key, "--url", &to], create].concat();
        tool_with(&args, b"a\nb\n", &[]).expect(0);
    }
    tool(&["compare", "c", "s", "--url", &of(&server, "compare")]).expect(0);
    tool(&["compare", "--pattern", "c*", "--map", "s{}", "--url", &of(&server, "compare")]).expect(0);
    tool(&["compare", "n", "s", "--url", &of(&server, "compare")]).expect(0);
}

/// A regression test: `top` and the exporter marked every key as recently used, which affects LRU and LFU eviction.
#[test]
fn reading_does_not_mark_keys_as_used() {
    let (server, mut client, to) = started();
    // With these options, the LFU counter grows with every use and never decays.
    client.expect("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0", "+OK");
    client.cmd("BF.MADD f a b");
    client.cmd("LC.INSERT c WINDOW 86400 ITEMS a b");
    let uses = || ["f", "c"].map(|key| server.client().int(&format!("OBJECT FREQ {key}")));
    let before = uses();
    tool(&["top", "--once", "--url", &to]).expect(0);
    tool(&["exporter", "--once", "--pattern", "*", "--url", &to]).expect(0);
    assert_eq!(uses(), before);
    if client.cmd("CLIENT NO-TOUCH OFF") != redis::Value::Okay {
        eprintln!("skipped: this server has no CLIENT NO-TOUCH, so a dump is a use");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for key in ["f", "c"] {
        let file = folder.path().join(key);
        tool(&["dump", key, file.to_str().expect("a path"), "--url", &to]).expect(0);
    }
    assert_eq!(uses(), before);
    client.expect("BF.EXISTS f a", "1");
    assert_eq!(uses(), [before[0] + 1, before[1]]);
}
