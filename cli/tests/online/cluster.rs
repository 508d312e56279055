//! Clusters: commands ask every primary, and send each key to its node.

use crate::{tool, tool_with, url};
use rollcall_testkit::{Server, Setup, add_many, add_replica, cluster, error_text, wait_until};

#[test]
fn keys_of_all_nodes_are_listed_filled_and_moved() {
    let (mut nodes, single, back) = (cluster(3), Server::start(), cluster(3));
    let mut client = single.client();
    for key in 0..30 {
        add_many(&mut client, &format!("LC.ADD count:{key}"), "member:", 0..400);
        add_many(&mut client, &format!("BF.MADD filter:{{{key}}}:x"), "member:", 0..400);
    }
    let to = url(&nodes[1]);
    tool(&["copy", &url(&single), &to, "--target-cluster", "--watch", "0"]).expect(0);
    let sizes: Vec<i64> = nodes.iter().map(|node| node.client().int("DBSIZE")).collect();
    assert_eq!(sizes.iter().sum::<i64>(), 60);
    assert!(sizes.iter().all(|&size| size > 0), "{sizes:?}");
    let rows = tool(&["--json", "top", "--cluster", "--url", &to]).expect(0).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(60));
    // Copies from cluster to cluster. A second copy finds only equal values.
    let both = ["copy", &to, &url(&back[0]), "--source-cluster", "--target-cluster", "--watch", "0"];
    assert!(tool(&both).expect(0).out.contains("60 moved"));
    assert!(tool(&both).expect(0).out.contains("60 equal already"));
    for key in 0..30 {
        let name = format!("count:{key}");
        let holders = back.iter().filter(|node| node.client().cmd(&format!("EXISTS {name}")) == redis::Value::Int(1));
        let digests: Vec<String> = holders.map(|node| node.client().digest(&name)).collect();
        assert_eq!(digests, [client.digest(&name)], "{name}");
    }
    // A regression test: without the option, `copy` and `compare` left out the keys of the other nodes, in silence.
    for (words, option) in [
        (&["copy", &to, &url(&Server::start())][..], "add --source-cluster"),
        (&["copy", &url(&single), &to], "add --target-cluster"),
        (&["compare", "--pattern", "count:*", "--map", "set:{}", "--url", &to], "add --cluster"),
    ] {
        tool(words).fails(3, option);
    }
    let part = tool(&["top", "--fail-on", "critical", "--url", &to]).shows(1, "add --cluster");
    assert!(part.err.contains("1 of ") && tool(&["top", "--url", &to]).code == 0, "{}", part.err);
    assert!(!tool(&["top", "--cluster", "--fail-on", "critical", "--url", &to]).expect(0).out.contains("--cluster"));
    // A file is merged into a key on any node.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file").to_str().expect("a path").to_owned();
    tool(&["dump", "count:0", &file, "--url", &url(&single)]).expect(0);
    for key in 2..5 {
        let loaded = tool(&["load", &file, &format!("new:{key}"), "--merge", "--cluster", "--url", &to]).expect(0);
        assert!(!loaded.out.contains("merged"), "{}", loaded.out);
        let merged = tool(&["load", &file, &format!("new:{key}"), "--merge", "--cluster", "--url", &to]).expect(0);
        assert!(merged.out.ends_with(", merged\n"), "{}", merged.out);
    }
    // `import` sends each line to the key's node. Without --cluster it fails, and the error says what to do.
    let lines: String = (0..1000).map(|n| format!("line:{n}\n")).collect();
    let moved = (0..3).map(|at| url(&nodes[at])).filter(|url| {
        let args = ["import", "-", "imported", "--kind", "counter", "--create", "EXACT 100", "--url", url];
        let ended = tool_with(&args, lines.as_bytes(), &[]);
        assert!(ended.code == 0 || ended.code == 3 && ended.err.contains("add --cluster"), "{}", ended.err);
        ended.code == 3
    });
    assert_eq!(moved.count(), 2);
    for node in &nodes {
        let args = ["--json", "import", "-", "imported", "--cluster", "--url", &url(node)];
        let ended = tool_with(&args, lines.as_bytes(), &[]).expect(0);
        assert_eq!(ended.json()["items"], 1000);
    }
    // A regression test: the advice for a node that is down was to give the server with --url.
    let down = nodes.pop().expect("a node").port();
    let file = folder.path().join("down").to_str().expect("a path").to_owned();
    for words in [
        &["top", "--cluster", "--url", &to][..],
        &["dump", "count:0", &file, "--cluster", "--url", &to],
        &["exporter", "--once", "--cluster", "--url", &to],
        &["copy", &to, &url(&single), "--source-cluster"],
    ] {
        let ended = tool(words).fails(3, "this node of the cluster is down: start it");
        assert!(ended.err.contains(&format!("127.0.0.1:{down}: ")) && !ended.err.contains("--url"), "{}", ended.err);
    }
}

/// `nodes` names a node that cannot load some keys of the others before slots move to it.
#[test]
fn nodes_that_cannot_take_every_key_are_named() {
    let nodes = cluster(2);
    for command in [&["--json", "nodes"][..], &["--json", "nodes", "--cluster"]] {
        let rows = tool(&[command, &["--url", &url(&nodes[1])]].concat()).expect(0).json();
        let rows = rows.as_array().expect("rows");
        assert_eq!(rows.iter().map(|row| row["slots"].as_u64()).collect::<Vec<_>>(), [Some(8192); 2]);
        assert!(rows.iter().all(|row| row["problems"] == serde_json::json!([])), "{rows:?}");
        assert!(rows.iter().all(|row| row["max_key_bytes"] == 512 << 20), "{rows:?}");
        assert_eq!(rows[0]["module"], env!("CARGO_PKG_VERSION"));
    }

    let replica = add_replica(&nodes, 0, &Setup::default());
    let mut bare = Setup::default().without_module().line("cluster-enabled yes").start();
    nodes[0].client().expect(&format!("CLUSTER MEET 127.0.0.1 {}", bare.port()), "+OK");
    nodes[1].set_parameter("max-key-bytes", "1mb");
    nodes[1].client().expect("CONFIG SET maxmemory 100mb", "+OK");
    let ask = || tool(&["--json", "nodes", "--url", &url(&nodes[0])]);
    let problems = |row: &serde_json::Value| {
        let problems = row["problems"].as_array().expect("problems").iter();
        problems.map(|problem| problem["problem"].as_str().expect("a name").to_owned()).collect::<Vec<_>>().join(" ")
    };
    let expected = [
        (&nodes[0], "primary 8192 "),
        (&replica, "replica 0 "),
        (&nodes[1], "primary 8192 max-key-bytes maxmemory"),
        (&bare, "primary 0 no-module"),
    ];
    wait_until("the node that was asked to know all others", || {
        let rows = ask().json();
        let rows = rows.as_array()?;
        let row_of = |server: &Server| {
            rows.iter().find(|row| row["node"].as_str().is_some_and(|name| name.ends_with(&server.port().to_string())))
        };
        let shown = |row: &serde_json::Value| {
            format!("{} {} {}", row["role"].as_str().unwrap_or_default(), row["slots"], problems(row))
        };
        (rows.len() == 4 && expected.iter().all(|(server, row)| row_of(server).map(shown).as_deref() == Some(*row)))
            .then_some(())
    });
    let ended = tool(&["nodes", "--cluster", "--url", &url(&nodes[0])]).fails(1, "2 of 4 nodes cannot take all keys");
    for line in [
        format!("127.0.0.1:{}: no-module: the module is not loaded", bare.port()),
        format!("127.0.0.1:{}: max-key-bytes: max-key-bytes is 1048576, and 536870912 on another", nodes[1].port()),
        format!("127.0.0.1:{}: maxmemory: maxmemory is 104857600, and no limit on another", nodes[1].port()),
    ] {
        assert!(ended.out.contains(&line), "no {line} in:\n{}", ended.out);
    }
    bare.kill();
    let rows = ask().expect(1).json();
    assert!(rows.as_array().expect("rows").iter().any(|row| problems(row) == "down"), "{rows}");

    let single = Server::start();
    tool(&["nodes", "--cluster", "--url", &url(&single)]).fails(3, "cluster support disabled");
}

/// A regression test: a node that answered with an error was called down, with the advice to remove it.
#[test]
fn a_node_that_answers_with_an_error_is_unknown() {
    let mut nodes = cluster(2);
    let renamed = Setup::default().line("cluster-enabled yes").line("rename-command CONFIG \"\"").start();
    nodes[0].client().expect(&format!("CLUSTER MEET 127.0.0.1 {}", renamed.port()), "+OK");
    let ask = || tool(&["nodes", "--url", &url(&nodes[0])]);
    let of_renamed = format!("127.0.0.1:{}: unknown: answered CONFIG with: ERR unknown command", renamed.port());
    wait_until("the node that was asked to know all others", || ask().out.contains(&of_renamed).then_some(()));
    let mut client = nodes[1].client();
    client.expect("CONFIG SET busy-reply-threshold 1", "+OK");
    let mut busy = nodes[1].client();
    let cases: [(&[&str], &[&str], &[&str]); 4] = [
        (
            &["ACL SETUSER default -config"],
            &["answered CONFIG with: NOPERM ", "'config|get'", "ACL SETUSER"],
            &["ACL SETUSER default +config"],
        ),
        (
            &["ACL SETUSER default -info -config"],
            &["answered INFO with: NOPERM ", "answered CONFIG with: NOPERM "],
            &["ACL SETUSER default +info +config"],
        ),
        (
            &["CONFIG SET requirepass word"],
            &["answered INFO with: NOAUTH ", "ROLLCALL_PASSWORD"],
            &["ACL SETUSER default nopass"],
        ),
        (
            &["CONFIG SET maxclients 1"],
            &["answered connecting with: ERR max number of clients", "CONFIG GET maxclients"],
            &["CONFIG SET maxclients 100"],
        ),
    ];
    let check = |parts: &[&str]| {
        let ended = ask().expect(3);
        let prefix = format!("127.0.0.1:{}: unknown: ", nodes[1].port());
        assert!(ended.out.contains(&format!("{prefix}{}", parts[0])), "{}", ended.out);
        assert!(parts.iter().all(|part| ended.out.contains(part)), "{parts:?}: {}", ended.out);
        assert!(!ended.out.contains("down") && !ended.out.contains("FORGET"), "{}", ended.out);
        assert!(ended.err.contains("2 of 3 nodes are unknown"), "{}", ended.err);
    };
    for (before, parts, after) in cases {
        before.iter().for_each(|line| client.expect(line, "+OK"));
        check(parts);
        after.iter().for_each(|line| client.expect(line, "+OK"));
    }
    busy.send(&["EVAL", "while true do end", "0"]);
    wait_until("the script to run", || error_text(&client.cmd("PING")).map(drop));
    check(&["answered INFO with: BUSY ", "runs a script"]);
    client.expect("SCRIPT KILL", "+OK");
    busy.receive();
    // A known problem goes before unknown ones.
    client.expect("CONFIG SET maxmemory 100mb", "+OK");
    assert!(ask().expect(1).err.contains(" of 3 nodes cannot take all keys"));
    // A primary with slots is never to be removed.
    nodes[1].kill();
    let ended = tool(&["nodes", "--url", &url(&nodes[0])])
        .shows(1, &format!("127.0.0.1:{}: down: cannot connect to", nodes[1].port()));
    assert!(!ended.out.contains("FORGET"), "{}", ended.out);
}
