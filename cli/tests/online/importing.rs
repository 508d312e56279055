//! Tests `import`, which adds lines to keys.

use crate::{found, started, tool, tool_with};

fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|n| format!("item:{n}\n")).collect()
}

#[test]
fn lines_of_files_and_of_standard_input_are_added() {
    let (_server, mut client, to) = started();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("items");
    std::fs::write(&file, lines(0..20_000) + "\nlast without an end\r").expect("the file");
    let file = file.to_str().expect("a path");
    let absent = tool(&["import", file, "f", "--url", &to]).expect(4);
    assert!(absent.err.contains("there is no key f") && absent.err.contains("--create"), "{}", absent.err);
    let create = ["--kind", "filter", "--create", "CAPACITY 50000 ERROR 0.001"];
    let ended = tool(&[&["--json", "import", file, "f", "--url", &to], &create[..]].concat()).expect(0).json();
    assert_eq!(ended["items"], 20_001);
    assert_eq!(ended["new"].as_i64().expect("a number"), client.int("BF.CARD f"));
    client.expect("BF.INFO f CAPACITY", "[50000]");
    let items: Vec<String> = (0..20_000).map(|n| format!("item:{n}")).collect();
    assert_eq!(found(&mut client, "f", &items), 20_000);
    assert_eq!(client.cmd("BF.INFO f ITEMS"), client.cmd("BF.INFO f ITEMS"));
    let last: [&[u8]; 3] = [b"BF.EXISTS", b"f", b"last without an end"];
    assert_eq!(client.call(&last), redis::Value::Int(1));
    // A second import with other batches adds nothing new, and `--skip` leaves out the first lines.
    let again = ["--json", "import", file, "f", "--batch", "7", "--pipeline", "3", "--skip", "19000", "--url", &to];
    let ended = tool(&again).expect(0).json();
    assert_eq!((ended["items"].as_i64(), ended["new"].as_i64()), (Some(1001), Some(0)));
    let input = lines(0..1000);
    let args = ["import", "-", "c", "--kind", "counter", "--create", "EXACT 100", "--url", &to];
    tool_with(&args, input.as_bytes(), &[]).expect(0);
    tool_with(&["import", "-", "c"], b"item:1\nanother\n", &[("ROLLCALL_URL", &to)]).expect(0);
    client.expect("LC.INFO c EXACT", "[100]");
    assert!((client.int("LC.COUNT c") - 1001).abs() < 60);
}

#[test]
fn errors_of_import_say_how_many_lines_are_in() {
    let (_server, mut client, to) = started();
    client.expect("BF.RESERVE full 0.01 1000 NONSCALING", "+OK");
    let args = ["import", "-", "full", "--batch", "100", "--pipeline", "2", "--url", &to];
    let ended = tool_with(&args, lines(0..2000).as_bytes(), &[]).expect(3);
    // A regression test: the advice was to go on after these lines, in a filter that takes no more or lacks them.
    assert!(ended.err.contains("non scaling filter is full") && ended.err.contains("the first 1000 lines are in"));
    assert!(ended.err.contains("give all lines to a larger one") && !ended.err.contains("--skip"), "{}", ended.err);
    crate::add_partially_loaded(&mut client);
    let half = tool_with(&["import", "-", "half", "--url", &to], b"a\n", &[]).fails(3, "its other chunks are missing");
    client.expect("REPLICAOF 127.0.0.1 1", "+OK");
    let replica = tool_with(&["import", "-", "full", "--url", &to], b"a\n", &[]).fails(3, "give the primary");
    client.expect("REPLICAOF NO ONE", "+OK");
    assert!([half, replica].iter().all(|ended| !ended.err.contains("again. ") && !ended.err.contains("--skip")));
    tool_with(&["import", "-", "full", "--kind", "counter", "--url", &to], b"", &[]).fails(3, "full is a filter");
    let wrong = ["import", "-", "n", "--kind", "filter", "--create", "ERROR 7", "--url", &to];
    let _wrong = tool_with(&wrong, b"a\n", &[]).fails(2, "error rate");
    // A regression test: a wrong option exited with 3, and the advice was to run the same again.
    for (kind, options) in [("filter", "FOO 3"), ("counter", "FOO 3"), ("counter", "ERROR x"), ("filter", "SLICES 3")] {
        let wrong = ["import", "-", "n", "--kind", kind, "--create", options, "--url", &to];
        let wrong = tool_with(&wrong, b"a\n", &[]).expect(2);
        let said = format!("rollcall: --create \"{options}\": ERR ");
        assert!(wrong.err.starts_with(&said) && !wrong.err.contains("again"), "{}", wrong.err);
    }
    let large = ["import", "-", "n", "--kind", "filter", "--create", "CAPACITY 100000000000", "--url", &to];
    tool_with(&large, b"a\n", &[]).fails(3, "max-key-bytes");
    client.expect("EXISTS n", "0");
    // A regression test: a command added ten items before its eleventh was rejected, and `import` reported 0 lines.
    client.expect("BF.RESERVE ten 0.01 10 NONSCALING", "+OK");
    let part = tool_with(&["import", "-", "ten", "--url", &to], lines(0..500).as_bytes(), &[]).expect(3);
    let number = client.int("BF.CARD ten");
    let said = format!("the first {number} lines are in, and it takes no more: ");
    assert!(number >= 10 && part.err.contains(&said), "{}", part.err);
}

/// A regression test: a byte-order mark became part of the first item, and UTF-16 was imported as other items.
#[test]
fn marks_of_editors_are_no_items() {
    let (_server, mut client, to) = started();
    let args = ["import", "-", "c", "--kind", "counter", "--create", "ERROR 0.02", "--url", &to];
    tool_with(&args, b"\xef\xbb\xbfann\nben\n", &[]).expect(0);
    client.expect("LC.MEXISTS c ann ben", "[1, 1]");
    client.expect("LC.COUNT c", "2");
    let rejected = tool_with(&args, b"\xff\xfea\0\n\0", &[]).expect(3);
    assert!(rejected.err.contains("it is UTF-16; write it as UTF-8: iconv"), "{}", rejected.err);
    client.expect("LC.COUNT c", "2");
}
