//! Exit codes of commands that use servers. Exit code 0 means that everything asked for was done.

use crate::{add_partially_loaded, tool, tool_with, url};
use rollcall_testkit::Server;

/// A regression test: commands exited with 0 although they found nothing to work on, or left something out.
#[test]
fn a_command_without_work_is_no_success() {
    let (server, other, empty) = (Server::start(), Server::start(), Server::start());
    let mut client = server.client();
    client.expect_each(
        "LC.ADD count:1 a b => 2; LC.ADD count:2 a => 1; BF.ADD seen a => 1; SADD set:1 a b => 2
         LC.RESERVE none EXACT 0 => +OK; LC.RESERVE many EXACT 0 => +OK; LC.ADD many a b c => 3",
    );
    other.client().expect("LC.ADD count:1 other", "1");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    for (name, text) in [("no-lines", ""), ("lines", "a\nb\n"), ("pairs", "count:1\tset:1\ncount:2\tset:2\n")] {
        std::fs::write(path(name), text).expect("the file");
    }
    let (here, there, nothing) = (url(&server), url(&other), url(&empty));
    let (no_lines, lines, pairs, new) = (path("no-lines"), path("lines"), path("pairs"), path("new"));
    tool(&["build", "counter", &path("no-key"), &path("lines")]).expect(0);
    let no_key = path("no-key");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["compare", "count:1", "set:1", "--url", &here], 0, ""),
        (&["compare", "count:1", "--url", &here], 2, "nothing to compare with"),
        (&["compare", "count:1", "absent", "--url", &here], 4, "1 of 1 keys have no set"),
        (&["compare", "absent", "set:1", "--url", &here], 4, "there is no key absent"),
        (&["compare", "--pairs", &pairs, "--url", &here], 1, "1 of 2 keys have no set"),
        (&["compare", "--pairs", &no_lines, "--url", &here], 4, "nothing to compare"),
        (&["compare", "--pattern", "no:*", "--map", "set:{}", "--url", &here], 4, "nothing to compare"),
        (&["compare", "--pattern", "count:*", "--map", "no:{}", "--url", &here], 4, "2 of 2 keys have no set"),
        (&["compare", "--pattern", "count:*", "--map", "set:{}", "--url", &here], 1, "1 of 2 keys have no set"),
        (&["compare", "--pattern", "count", "--map", "set:{}", "--url", &here], 2, "one * in the pattern"),
        (&["compare", "seen", "--file", &no_lines, "--url", &here], 4, "no members to look for"),
        (&["compare", "count:1", "--file", &no_lines, "--url", &here], 1, "not by chance"),
        (&["compare", "many", "--file", &no_lines, "--url", &here], 1, "not by chance"),
        (&["compare", "none", "--file", &no_lines, "--url", &here], 0, ""),
        (&["copy", &nothing, &there, "--watch", "0"], 4, "no filter or counter"),
        (&["copy", &nothing, &there, "--dry-run"], 4, "no filter or counter"),
        (&["copy", &here, &there, "--watch", "0", "--pattern", "no:*"], 4, "no filter or counter that matches no:*"),
        (&["copy", &here, &there, "--watch", "-1"], 2, ""),
        (&["copy", &here, &there, "--watch", "NaN", "--skip-rejected"], 2, "--watch"),
        (&["copy", &here, &there, "--dry-run"], 1, "1 of 5 keys cannot be moved"),
        (&["copy", &here, &there, "--dry-run", "--replace"], 0, ""),
        (&["copy", &here, &there, "--watch", "0"], 3, "1 keys cannot be moved, so none was"),
        (&["copy", &here, &there, "--watch", "0", "--skip-rejected"], 1, "1 of 5 keys were not moved"),
        (&["copy", &here, &there, "--watch", "0", "--pattern", "seen"], 0, ""),
        (&["copy", &here, &there, "--watch", "0", "--replace"], 0, ""),
        (&["top", "--url", &nothing], 0, ""),
        (&["top", "--pattern", "seen", "--url", &here], 0, ""),
        (&["top", "--pattern", "no:*", "--url", &here], 4, "no filter or counter matches no:*"),
        (&["--json", "top", "--pattern", "no:*", "--url", &here], 4, "no filter or counter matches no:*"),
        (&["dump", "absent", &new, "--url", &here], 4, "there is no key absent"),
        (&["dump", "set:1", &new, "--url", &here], 3, "no filter and no counter"),
        (&["dump", "count:1", &new, "--url", &here], 0, ""),
        (&["load", &new, "count:1", "--url", &here], 3, "exists"),
        (&["load", &no_key, "--url", &here], 2, "does not name the key"),
        (&["import", &lines, "count:1", "--url", &here], 0, ""),
        (&["import", &no_lines, "count:1", "--url", &here], 4, "nothing was added"),
        (&["import", &lines, "count:1", "--skip", "2", "--url", &here], 4, "has no items after the first 2"),
        (&["import", &lines, "absent", "--url", &here], 4, "there is no key absent"),
        (
            &["import", &lines, "made", "--kind", "filter", "--create", "CAPACITY 10 ITEMS junk", "--url", &here],
            2,
            "what comes after it would be added",
        ),
        (
            &["import", &lines, "made", "--kind", "counter", "--create", "items", "--url", &here],
            2,
            "what comes after it would be added",
        ),
    ];
    for (arguments, code, said) in cases {
        let ended = tool(arguments);
        assert_eq!(ended.code, *code, "{arguments:?}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains(said), "{arguments:?}: {}", ended.err);
        assert!(*code != 0 || ended.err.is_empty(), "{arguments:?}: {}", ended.err);
        assert!(!ended.err.contains("rollcall") || *code != 0, "{arguments:?}: {}", ended.err);
    }
    client.expect("EXISTS made absent", "0");
    // Partially loaded values cannot be copied, and empty lines import nothing.
    add_partially_loaded(&mut client);
    tool(&["copy", &here, &there, "--watch", "0", "--dry-run"]).expect(1);
    tool_with(&["import", "-", "count:1", "--url", &here], b"\n\n", &[]).expect(4);
}

/// A regression test: `compare` printed a large difference as `+124988850.00 %`.
#[test]
fn large_numbers_are_printed_with_commas() {
    let (server, mut client) = Server::start().with_client();
    rollcall_testkit::add_many(&mut client, "LC.ADD visitors", "visitor:", 0..30_000);
    client.expect("SADD few a b", "2");
    let out = tool(&["compare", "visitors", "few", "--url", &url(&server)]).expect(1).out;
    let count = client.int("LC.COUNT visitors");
    let times = count / 2;
    assert!(out.contains(&format!(" {},{:03} times ", times / 1000, times % 1000)), "{out}");
    for word in out.split_whitespace() {
        let digits = word.trim_start_matches(['+', '-']).split('.').next().unwrap_or_default();
        assert!(digits.len() < 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()), "{word}: {out}");
    }
}
