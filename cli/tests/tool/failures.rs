//! Error messages and exit codes of failing commands.

use crate::run::{Folder, items};

#[test]
fn each_failure_says_what_was_wrong_and_what_to_do() {
    let folder = Folder::new();
    folder.write("items", items(2000).join("\n"));
    folder.write("more", items(6000)[2000..].join("\n"));
    for (name, options) in [("a", ""), ("seeded", "--seed 1"), ("other", "--error 0.001"), ("b more", "")] {
        let (name, items) = name.split_once(' ').unwrap_or((name, "items"));
        assert_eq!(folder.run(&format!("build filter {name} {items} --capacity 4000 {options}")).code, 0);
    }
    assert_eq!(folder.run("build counter count items").code, 0);
    let mut damaged = folder.read("a");
    let half = damaged.len() / 2;
    damaged[half] ^= 1;
    folder.write("damaged", &damaged);
    folder.write("cut", &folder.read("a")[..half]);
    for (arguments, code, said) in [
        ("", 2, "Usage"),
        ("build filter out items --error 1.5", 2, "1.5 is not between 0 and 1"),
        ("build filter out items --capacity many", 2, "'many' is no whole number"),
        ("build filter out items --nonscaling --expansion 3", 2, "cannot be used with"),
        ("build filter out - --force", 2, "say for how many items the filter is, with --capacity"),
        ("build filter - items", 2, "name a file; ./- is one of this name"),
        ("build filter out items --threads 0", 2, "0 is no number of threads: give 1 or more"),
        ("plan filter 1e30", 2, "1e30 is too large"),
        ("build filter out missing", 3, "cannot read missing"),
        ("build filter out .", 3, ". is a folder"),
        ("build filter a items", 3, "name another file, or replace it with --force"),
        ("build filter no/such/folder items", 3, "cannot write to the folder no/such"),
        ("build filter out items --capacity 10 --nonscaling", 3, "give a larger --capacity, or leave out --nonscaling"),
        ("build filter out items --capacity 2^41", 2, "capacity must be from 1 to 1099511627776"),
        ("build filter out items --capacity 2^40", 3, "of memory are needed"),
        ("build filter out items --layout classic --seed 3", 2, "leave out --seed"),
        ("build counter out items --error 0.5", 2, "error rate must be between 0.0025 and 0.25"),
        ("merge out a seeded", 3, "seed differs: destination has 0, source has 1"),
        ("merge out a other", 3, "error rate differs"),
        // The advice was to take equal parameters.
        ("merge out a b", 3, "build each filter with --capacity for the items of all"),
        ("merge out a count", 3, "it has a counter, and those before are filters"),
        ("merge out items", 3, "items is no file of filters and counters"),
        ("info damaged", 3, "damaged: damaged at byte "),
        ("info cut", 3, "cut: ends at byte "),
        ("check a items --key b", 4, "a has no key 'b'"),
        ("check count items --absent items", 2, "--absent is for filters"),
        ("check a --distinct 5", 2, "--distinct is for counters"),
        ("check a items --within NaN", 2, "within"),
        ("plan counter --error 0.001", 2, "error rate must be between 0.0025 and 0.25"),
        ("plan filter 0", 2, "capacity must be from 1"),
        ("plan filter 10 --window 1h --slices 65", 2, "slices must be"),
    ] {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, code, "{arguments}: {}", ran.err);
        assert!(ran.err.contains(said), "{arguments}: {}", ran.err);
        assert!(ran.out.is_empty(), "{arguments}: {}", ran.out);
        assert!(!folder.path("out").exists(), "{arguments}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path("")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 9, "no unfinished file is left: {left:?}");
}

/// A regression test: with `--json`, a failing command printed nothing to standard output.
#[test]
fn failures_are_one_json_value_too() {
    let folder = Folder::new();
    folder.write("items", "ann\nben\n");
    folder.write("others", "cid\n");
    assert_eq!(folder.run("build filter filter items").code, 0);
    for (arguments, code, said) in [
        ("info missing", 3, "cannot read missing"),
        ("check filter items --key b", 4, "filter has no key 'b'"),
        ("build filter out -", 2, "standard input and pipes are read once"),
        ("build filter out items --error 7", 2, "7 is not between 0 and 1"),
        ("top --url 127.0.0.1:1", 3, "cannot connect to 127.0.0.1:1"),
        ("no-such-command", 2, "no-such-command"),
    ] {
        let ran = folder.run(&format!("--json {arguments}"));
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, json["exit_code"].as_i64()), (code, Some(code.into())), "{arguments}: {}", ran.err);
        assert!(json["error"].as_str().unwrap().contains(said), "{arguments}: {json}");
        assert!(ran.err.contains(said), "{arguments}: {}", ran.err);
        assert_eq!(folder.run(arguments).out, "", "{arguments}");
    }
    // A failed check prints its result, not a failure.
    let ran = folder.run("--json check filter others");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &json["present"]["missing"]), (1, &1.into()));
}
