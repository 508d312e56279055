//! Tests that `build` and `merge` make the same values as the library.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params};
use rollcall_core::counting::{self, Counter};
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::Time;
use rollcall_testkit::rows;

use crate::run::{Folder, items};

fn filter_of(items: &[String], params: Params, layout: BitLayout) -> BloomFilter {
    let mut filter = BloomFilter::new(layout, params, &Unlimited).unwrap();
    let items = items.iter().filter(|item| !item.is_empty()).map(String::as_bytes);
    filter.live(Time::Reached).add_all(items, &Unlimited, |_| {}).unwrap();
    filter
}

fn counter_of(items: &[String], params: counting::Params) -> Counter {
    let mut counter = Counter::new(params).unwrap();
    let items = items.iter().filter(|item| !item.is_empty()).map(String::as_bytes);
    counter.live(Time::Reached).add_all(items, &Unlimited, |_| {}).unwrap();
    counter
}

/// Files with different line ends, without a last one, with NUL bytes, and standard input, cut into blocks of many
/// sizes.
#[test]
fn a_filter_is_the_one_that_the_items_make_in_order() {
    let folder = Folder::new();
    let items = items(9000);
    folder.write("lines", items.join("\n") + "\n");
    folder.write("crlf", items.join("\r\n"));
    folder.write("nul", items.join("\0"));
    let (first, second) = items.split_at(4321);
    folder.write("first", first.join("\n"));
    folder.write("second", second.join("\n"));
    for (error_rate, capacity, expansion) in [(0.01, 20_000, 2), (1e-5, 1000, 2), (0.0001, 3000, 1)] {
        let params = Params { error_rate, capacity, expansion, seed: 5 };
        let expected = filter_of(&items, params, BitLayout::Lines);
        let options = format!("--error {error_rate} --capacity {capacity} --expansion {expansion} --seed 5 --force");
        for (input, more) in rows(
            "lines => --threads 1; lines => --threads 3 --block-bytes 1000; lines => --threads 5 --block-bytes 7
             crlf => --threads 2 --block-bytes 333; nul => --null --threads 4 --block-bytes 5000
             first second => --threads 2 --block-bytes 1111",
        ) {
            let answer = folder.json(&format!("build filter out {input} {options} {more}"));
            assert!(folder.load::<BloomFilter>("out") == expected, "{options} {input} {more}");
            assert_eq!(answer["items"], items.iter().filter(|item| !item.is_empty()).count());
            assert_eq!(answer["distinct"], expected.num_items());
            assert_eq!(answer["size_bytes"], expected.size_bytes());
        }
        for more in ["--threads 1 --block-bytes 10", "--threads 3 --block-bytes 4000"] {
            let ran = folder.run_with(&format!("build filter out - {options} {more}"), &folder.read("lines"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert!(folder.load::<BloomFilter>("out") == expected, "{options} {more}");
        }
    }
}

/// A block of a file is read in several pieces, and one item is longer than a piece.
#[test]
fn items_that_lie_in_several_pieces_of_a_block_are_read_whole() {
    let folder = Folder::new();
    let mut items = items(40_000);
    items[20_000] = "long".repeat(150_000);
    let params = Params { error_rate: 0.001, capacity: 40_000, expansion: 2, seed: 0 };
    let expected = filter_of(&items, params, BitLayout::Lines);
    for (end, more) in [("\n", ""), ("\r\n", ""), ("\0", "--null")] {
        folder.write("items", items.join(end));
        for threads in [1, 3] {
            let options = format!("--error 0.001 --capacity 40000 --threads {threads} --force {more}");
            let answer = folder.json(&format!("build filter out items {options}"));
            assert!(folder.load::<BloomFilter>("out") == expected, "{end:?} {options}");
            assert_eq!(answer["items"], items.iter().filter(|item| !item.is_empty()).count());
        }
    }
}

#[test]
fn without_a_capacity_the_lines_are_counted() {
    let folder = Folder::new();
    folder.write("items", "ann\nben\nann\ncid");
    let answer = folder.json("build filter out items --layout classic --nonscaling");
    assert_eq!((&answer["capacity"], &answer["distinct"], &answer["items"]), (&4.into(), &3.into(), &4.into()));
    let params = Params { error_rate: 0.01, capacity: 4, expansion: 0, seed: 0 };
    let expected = filter_of(&["ann", "ben", "cid"].map(str::to_owned), params, BitLayout::Classic);
    assert!(folder.load::<BloomFilter>("out") == expected);
    folder.write("none", "");
    assert_eq!(folder.json("build filter empty none")["capacity"], 1);
}

#[test]
fn a_counter_is_the_one_that_the_items_make() {
    let folder = Folder::new();
    for number in [100, 20_000] {
        let items = items(number);
        folder.write("lines", items.join("\n"));
        let params = counting::Params {
            error_rate: 0.01,
            exact_limit: 250,
            exact_bytes: counting::Params::DEFAULT_EXACT_BYTES,
            seed: 0,
        };
        let expected = counter_of(&items, params);
        for more in ["--threads 1", "--threads 3 --block-bytes 500"] {
            let answer = folder.json(&format!("build counter out lines --force {more}"));
            assert_eq!(answer["distinct"], expected.count(), "{more}");
            let stored: Counter = folder.load("out");
            assert_eq!((stored.count(), stored.standard_error()), (expected.count(), expected.standard_error()));
            assert_eq!(stored.is_exact(), number == 100);
        }
    }
}

/// A regression test: `build counter` reported an estimate above the number of items, and did not call it an
/// estimate.
#[test]
fn build_reports_distinct_items_or_an_estimate() {
    let folder = Folder::new();
    let lines = |number: u64| (0..number).map(|number| format!("item {number}\n")).collect::<String>();
    folder.write("few", lines(100).repeat(2));
    folder.write("many", lines(60_000));
    let said = |arguments: &str| {
        let ran = folder.run(&format!("{arguments} --force"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let exact = said("build counter out few");
    assert!(exact.contains("a counter of 200 items, 100 of them distinct, in "), "{exact}");
    let estimate = said("build counter out many");
    assert!(estimate.contains("a counter of 60,000 items, about "), "{estimate}");
    assert!(estimate.contains(" of them distinct (standard error 0."), "{estimate}");
    assert!(folder.json("build counter out many --force")["capacity"].is_null());
    // A filter does not count an item that is a false positive when it is added.
    let filter = said("build filter out many");
    assert!(filter.contains("a filter of 60,000 items, at least 59,"), "{filter}");
    // The capacity that the tool suggests is large enough.
    let grown = said("build filter out many --capacity 20000 --error 0.2");
    let enough =
        grown.split("with --capacity ").nth(1).and_then(|rest| rest.split([' ', '.']).next()).expect("a number");
    let once = said(&format!("build filter out many --capacity {enough} --error 0.2"));
    assert!(!once.contains("It grew"), "{grown}{once}");
}

/// A merge is the union of its files. That unions do not depend on order is tested in the library.
#[test]
fn merged_files_are_the_union() {
    let folder = Folder::new();
    let items = items(6000);
    for (name, part) in [("a", &items[..2500]), ("b", &items[1500..4000]), ("c", &items[3500..]), ("abc", &items[..])] {
        folder.write("items", part.join("\n"));
        assert_eq!(folder.run(&format!("build filter {name} items --capacity 8000")).code, 0);
        assert_eq!(folder.run(&format!("build counter {name}.count items --exact 0")).code, 0);
    }
    let bits = |name: &str| -> Vec<u64> {
        let value: BloomFilter = folder.load(name);
        value.sub_filters().map(|sub_filter| sub_filter.set_bits).collect()
    };
    let count = |name: &str| folder.load::<Counter>(name).count();
    for merge in ["merge u a b c", "merge u.count a.count b.count c.count"] {
        assert_eq!(folder.run(merge).code, 0);
    }
    assert_eq!((bits("u"), count("u.count")), (bits("abc"), count("abc.count")));
}

/// A regression test: a byte-order mark became part of the first item.
#[test]
fn a_mark_of_utf8_is_no_part_of_the_first_item() {
    let folder = Folder::new();
    let all = items(3000);
    let text = all.join("\n");
    folder.write("plain", &text);
    folder.write("marked", [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat());
    // A byte-order mark is dropped only at the start of a file.
    folder.write("short", b"\xef\xbb\xbfa\n\xef\xbb\xbfa\n");
    assert_eq!(folder.run("build filter plain.f plain --capacity 5000").code, 0);
    for more in ["--threads 1 --block-bytes 5", "--threads 3 --block-bytes 1000", ""] {
        assert_eq!(folder.run(&format!("build filter out marked --capacity 5000 --force {more}")).code, 0);
        assert!(folder.read("out") == folder.read("plain.f"), "{more}");
        let ran =
            folder.run_with(&format!("build filter out - --capacity 5000 --force {more}"), &folder.read("marked"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(folder.read("out") == folder.read("plain.f"), "{more}");
    }
    assert_eq!(folder.json("build counter out short --force")["distinct"], 2);
    assert_eq!(folder.run("check plain.f marked").code, 0);
    // A file with nothing but a byte-order mark has no items.
    folder.write("mark", b"\xef\xbb\xbf");
    assert_eq!(folder.json("build counter out mark --force")["items"], 0);
}

/// A regression test: items in UTF-16 were read as others, with zero bytes.
#[test]
fn utf16_is_rejected_with_what_to_do() {
    let folder = Folder::new();
    let text: Vec<u8> = "ann\nben\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    folder.write("little", [&b"\xff\xfe"[..], &text].concat());
    folder.write("big", b"\xfe\xff\0a\0\n");
    for ran in [
        folder.run("build filter out little"),
        folder.run("build counter out big"),
        folder.run_with("build counter out -", &folder.read("little")),
    ] {
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains("it is UTF-16; write it as UTF-8: iconv -f UTF-16 -t UTF-8"), "{}", ran.err);
        assert!(!folder.path("out").exists());
    }
}

/// A regression test: the bytes of a file of gzip became items.
#[test]
fn gzip_is_rejected_with_what_to_do() {
    let folder = Folder::new();
    folder.write("items.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\xe4\n");
    for ran in [
        folder.run("build filter out items.gz"),
        folder.run("build counter out items.gz"),
        folder.run_with("build counter out -", &folder.read("items.gz")),
    ] {
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains("it is compressed by gzip; write it as text: gunzip -c FILE > NEW"), "{}", ran.err);
        assert!(!folder.path("out").exists());
    }
}

/// A file in the first version of the format. It must stay readable, so it is never regenerated.
const GOLDEN: &[u8] = include_bytes!("golden.rollcall");

#[test]
fn the_golden_file_is_written_and_read_alike() {
    let folder = Folder::new();
    folder.write("items", "ann\nben\ncid\n");
    let ran = folder.run("build filter new items --capacity 10 --key small");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(folder.read("new"), GOLDEN);
    folder.write("golden", GOLDEN);
    let info = &folder.json("info golden")["values"][0];
    assert_eq!((&info["Key"], &info["Number of items inserted"]), (&"small".into(), &3.into()));
}
