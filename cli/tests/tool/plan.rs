//! Tests that the figures of `plan` are those of real values.

use rollcall_core::bloom::{BitLayout, BloomFilter, Params, Windowing};
use rollcall_core::live::Value;
use rollcall_core::size_limit::Unlimited;
use rollcall_core::window::{ClockSource, Time};

use crate::run::Folder;

fn filled(mut filter: BloomFilter, items: u64) -> BloomFilter {
    let mut item = 0u64;
    while filter.capacity() < items {
        filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).unwrap();
        item += 1;
    }
    filter
}

#[test]
fn filters_take_what_was_planned() {
    let folder = Folder::new();
    for (items, error_rate, expansion) in [(10, 0.01, 2), (1000, 0.001, 2), (20_000, 0.5, 1), (3000, 1e-7, 0)] {
        let growth = if expansion == 0 { "--nonscaling".to_owned() } else { format!("--expansion {expansion}") };
        let planned = &folder.json(&format!("plan filter {items} --error {error_rate} {growth} --keys 1k"))[0];
        let params = Params { error_rate, capacity: items, expansion, seed: 0 };
        let filter = BloomFilter::new(BitLayout::Lines, params, &Unlimited).unwrap();
        assert_eq!(planned["size_bytes"], filter.size_bytes());
        assert_eq!(planned["bytes_of_keys"], (filter.size_bytes() + 88) * 1000);
        let sub_filter = filter.sub_filters().next().unwrap();
        let geometry = sub_filter.geometry.unwrap();
        assert_eq!(
            (&planned["lines"], &planned["stored_bytes"]),
            (&geometry.num_lines.into(), &sub_filter.num_bytes.into())
        );
        let classic = BloomFilter::new(BitLayout::Classic, params, &Unlimited).unwrap();
        assert_eq!(planned["redisbloom_bytes"], classic.size_bytes());
        assert!(planned["rate_when_full"].as_f64().unwrap() <= error_rate);
        let grown = planned["growth"].as_array().unwrap();
        assert_eq!(grown.len(), if expansion == 0 { 0 } else { 3 });
        let mut filter = Some(filter);
        for one in grown {
            let bigger = filled(filter.take().unwrap(), one["items"].as_u64().unwrap());
            assert_eq!(one["sub_filters"], bigger.sub_filters().len());
            assert_eq!((&one["items"], &one["size_bytes"]), (&bigger.capacity().into(), &bigger.size_bytes().into()));
            filter = Some(bigger);
        }
    }
}

#[test]
fn windowed_filters_take_what_was_planned() {
    let folder = Folder::new();
    for (options, windowing, expansion) in [
        ("--window 1d", Windowing::new(86_400, 4, ClockSource::System, false), 2),
        ("--window 2", Windowing::new(2, 2, ClockSource::System, false), 2),
        ("--window 13 --slices 12", Windowing::new(13, 7, ClockSource::System, false), 2),
        ("--window 1h --slices 9 --refresh --expansion 3", Windowing::new(3600, 9, ClockSource::System, true), 3),
    ] {
        let planned = &folder.json(&format!("plan filter 1000 {options}"))[0];
        let params = Params { error_rate: 0.01, capacity: 1000, expansion, seed: 0 };
        let mut filter = BloomFilter::windowed(params, windowing.unwrap(), 1000, &Unlimited).unwrap();
        for item in 0..=21u64 {
            filter.live(Time::Reached).add(item.to_le_bytes(), &Unlimited).unwrap();
            filter.advance(1001 + item);
        }
        filter.live(Time::Reached).add(21u64.to_be_bytes(), &Unlimited).unwrap();
        assert_eq!(planned["size_bytes"], filter.size_bytes(), "{options}");
        assert!(planned["redisbloom_bytes"].is_null());
    }
}

#[test]
fn counters_are_as_exact_as_was_planned() {
    let folder = Folder::new();
    for (members, error_rate, options) in [
        (250, 0.01, ""),
        (251, 0.01, ""),
        (200_000, 0.005, ""),
        (250, 0.01, "--window 1d"),
        (50_000, 0.01, "--window 1d --slices 24"),
    ] {
        let planned = &folder.json(&format!("plan counter {members} --error {error_rate} {options}"))[0];
        // The error may be 4 % larger than requested, as the help says.
        let most = if members <= 250 { 0.0 } else { 1.04 * error_rate };
        assert!(planned["standard_error"].as_f64().unwrap() <= most, "{members} {options}");
        assert_eq!(planned["exact_up_to"], 250);
    }
    assert_eq!(folder.json("plan counter 10 --length 100")[0]["exact_up_to"], 163);
    // The advice can be followed, and then is not repeated.
    let advised = |line: &str| {
        let out = folder.run(&format!("plan counter 10 {line}")).out;
        out.lines().find_map(|line| Some(line.strip_prefix("exact")?.trim().to_owned())).unwrap()
    };
    for (line, text, bytes) in [
        ("--length 100", "up to 163 members of 100 bytes, up to 250 with --exact-bytes 25000", 25_000),
        ("--exact 65536 --kind uuid", "up to 1,024 members, up to 65,536 with --exact-bytes 1048576", 1_048_576),
        (
            "--exact 65536 --length 20",
            "up to 819 members of 20 bytes, up to 52,428 with --exact-bytes 1048576",
            1_048_576,
        ),
    ] {
        assert_eq!(advised(line), text);
        assert!(!advised(&format!("{line} --exact-bytes {bytes}")).contains("with"), "{line}");
    }
    // Members that are too long to be stored take no memory. A window keeps the tags of all full segments.
    let size = |line: &str| folder.json(&format!("plan counter {line}"))[0]["most_bytes"].as_u64().unwrap();
    assert!(size("10000 --length 1048576") <= 5_500);
    assert!(size("1G --window 1d --slices 24") > size("1M --window 1d --slices 24") + 8 * 4096);
}

/// `plan` warns of filters that a server rejects by default, and of filters that cannot grow within the limit.
#[test]
fn plans_beyond_the_default_limit_are_warned_of() {
    let folder = Folder::new();
    let rejected = |line: &str| folder.json(line)[0]["rejected_by_default"].clone();
    let out = |line: &str| folder.run(line).out;
    let warning = "CONFIG SET rollcall.max-key-bytes";
    let text = out("plan filter 400M --error 0.001");
    assert!(
        text.contains("rejected      a filter for 400,000,000 items, 747 MB: by default a key gets 512 MiB"),
        "{text}"
    );
    assert!(text.contains(&format!("\n{warning} 1gb\nBF.RESERVE key 0.001 400000000\n")), "{text}");
    assert_eq!(rejected("plan filter 400M --error 0.001"), true);
    // The filter itself is below the limit, but its second sub-filter is not.
    let text = out("plan filter 200M --error 0.001");
    assert!(text.contains("rejected      growth of one for 200,000,000 to 600,000,000 items, 1.45 GB: "), "{text}");
    assert!(text.contains(" in 2 sub-filters, rejected by default\n"), "{text}");
    assert!(text.contains(&format!("\n{warning} 2gb\n")), "{text}");
    let planned = &folder.json("plan filter 200M --error 0.001")[0];
    assert_eq!(
        (&planned["rejected_by_default"], &planned["growth"][0]["rejected_by_default"]),
        (&false.into(), &true.into())
    );
    // A table has a line for each number.
    let text = out("plan filter 1M 1G 2G");
    assert_eq!(text.matches("rejected      a filter for ").count(), 2, "{text}");
    // A plan within the limit has no warning.
    for line in [
        "plan filter 1M",
        "plan filter 200M --error 0.001 --nonscaling",
        "plan counter 10G --error 0.0025",
        "plan filter 1M --window 1d",
    ] {
        assert!(!out(line).contains("rejected"), "{line}");
    }
}

#[test]
fn plans_are_printed_as_tables_and_commands() {
    let folder = Folder::new();
    let out = folder.run("plan filter 1M 10M --error 0.1% --keys 1M --seed 9").out;
    assert!(out.contains("RedisBloom") && out.contains("1,000,000 keys"), "{out}");
    assert!(out.contains("BF.RESERVE key 0.001 1000000 SEED 9\nBF.RESERVE key 0.001 10000000 SEED 9"), "{out}");
    let out = folder.run("plan counter 1M --error 0.5% --window 7d").out;
    assert!(out.contains("LC.RESERVE key ERROR 0.005 WINDOW 604800\n"), "{out}");
    // Without arguments, `plan counter` compares counters of several sizes with sets and HyperLogLogs.
    let out = folder.run("plan counter").out;
    let rows: Vec<_> =
        out.lines().take(6).map(|line| line.split("  ").filter(|cell| !cell.is_empty()).count()).collect();
    assert_eq!(rows, [6; 6], "{out}");
    assert!(out.contains("as a HyperLogLog") && out.ends_with("\nLC.RESERVE key\n"), "{out}");
    let planned = folder.json("plan counter");
    let of = |name: &str| planned.as_array().unwrap().iter().map(|row| row[name].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("items"), [30, 250, 1_000, 50_000, 1_000_000]);
    assert_eq!(of("hyperloglog_bytes"), [105, 598, 1_890, 12_304, 12_304]);
    assert!(of("size_bytes").iter().all(|&size| size <= 5_500), "{planned}");
    // A set is smaller only up to 30 members.
    let (sizes, sets) = (of("size_bytes"), of("set_bytes"));
    assert!(sizes.iter().zip(sets).skip(1).all(|(&size, set)| size < set), "{planned}");
}
