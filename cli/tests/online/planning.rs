//! Tests that keys on a server take the memory that `plan` computes.

use crate::tool;
use rollcall_testkit::{Server, add_many, error_text, show, text, words};

/// The largest filter that `plan` shows without a warning has the planned size. The server rejects a filter with one
/// more cache line of bits.
#[test]
fn the_default_limit_is_where_the_plan_says() {
    let (_server, mut client) = Server::start().with_client();
    for options in ["--error 0.001", "--error 0.001 --nonscaling", "--window 1d"] {
        let plan =
            |items: u64| tool(&words(&format!("--json plan filter {items} {options}"))).expect(0).json()[0].clone();
        let (mut fits, mut rejected) = (1_000_000, 1_000_000_000);
        while rejected - fits > 1 {
            let middle = (fits + rejected) / 2;
            if plan(middle)["rejected_by_default"] == true { rejected = middle } else { fits = middle }
        }
        let reserve = |items| plan(items)["command"].as_str().expect("a command").to_owned();
        assert_eq!((plan(fits)["size_bytes"].as_u64().expect("a size") - 1) >> 20, 511, "{options}");
        let error = error_text(&client.cmd(&reserve(rejected))).unwrap_or_default();
        let needed = plan(rejected)["size_bytes"].to_string();
        assert!(error.starts_with(&format!("ERR the filter needs {needed} bytes, more than max-key-bytes")), "{error}");
        assert_eq!(text(&client.cmd(&reserve(fits))), "OK", "{options}");
        if !options.starts_with("--window") {
            assert_eq!(show(&client.cmd("BF.INFO key SIZE")), format!("[{}]", plan(fits)["size_bytes"]));
        }
        println!("{options}: {fits} items");
        client.expect("DEL key", "1");
    }
}

/// A set stores integers and short members in other forms, so the members are longer texts.
#[test]
fn a_set_takes_about_what_the_plan_says() {
    let (_server, mut client) = Server::start().with_client();
    for members in [1000, 20_000] {
        add_many(&mut client, "SADD set", "member", 10_000..10_000 + members);
        let planned = tool(&words(&format!("--json plan counter {members} --length 11"))).expect(0).json();
        let planned = planned[0]["set_bytes"].as_f64().expect("bytes");
        // The hash table of a growing set is twice as large for a moment. Redis 8.10 and Valkey 9 take less than 8.2.
        let used = client.int("MEMORY USAGE set SAMPLES 0") as f64;
        assert!((0.8..1.4).contains(&(planned / used)), "{members}: {planned}, {used}");
    }
}
