//! Tests RedisBloom's RDB values of every encoding version. Versions 0 and 1 have 32-bit hashes and are rejected, with
//! an error that says so. Versions 2 and 3 do not store the growth factor, which was always 2. Version 4 is the present
//! one; later versions are unknown.

use redis::Value;

use rollcall_fuzz::payload::{forge, module_value, rdb_file};
use rollcall_testkit::client::{add_many, show, text};
use rollcall_testkit::server::{Server, Setup};

fn unsigned(value: u64) -> Vec<u8> {
    [&[2, 0x81][..], &value.to_be_bytes()].concat()
}

fn double(value: f64) -> Vec<u8> {
    [&[4][..], &value.to_le_bytes()].concat()
}

fn string(value: &[u8]) -> Vec<u8> {
    [&[5, 0x80][..], &(value.len() as u32).to_be_bytes(), value].concat()
}

/// An empty filter for 100 items at an error rate of 0.01, as RedisBloom saved it with this encoding version.
fn value(encoding: u64) -> Vec<u8> {
    const FORCE64_AND_NOROUND: u64 = 5;
    let mut fields = vec![unsigned(0), unsigned(1)];
    if encoding >= 2 {
        fields.push(unsigned(FORCE64_AND_NOROUND));
    }
    if encoding >= 4 {
        fields.push(unsigned(3));
    }
    fields.extend([unsigned(100), double(0.005), unsigned(8), double(11.027_753_418_256_411)]);
    if encoding >= 1 {
        fields.extend([unsigned(1152), unsigned(0)]);
    }
    fields.extend([string(&[0; 144]), unsigned(0)]);
    [module_value("MBbloom--", encoding), fields.concat(), vec![0]].concat()
}

/// The reasons for rejected values in the log, by field.
fn errors(log: &str) -> Vec<&str> {
    log.lines().filter_map(|line| Some(line.split_once("rejected a stored filter: ")?.1)).collect()
}

const OF_1_X: &str =
    "options: expected 64-bit hashes, got a filter of RedisBloom 1.x with 32-bit hashes, which cannot be brought in";

#[test]
fn encodings_that_have_64_bit_hashes_load_and_grow_as_they_did() {
    for (encoding, grown) in [(2, "200"), (3, "200"), (4, "300")] {
        let by_file = Setup::default().line("appendonly no").file("dump.rdb", &rdb_file(&value(encoding))).start();
        let by_payload = Server::start();
        let payload = forge(&value(encoding), &[10, 0]);
        let words: [&[u8]; 4] = [b"RESTORE", b"k", b"0", &payload];
        assert_eq!(by_payload.client().call(&words), Value::Okay, "{encoding}");
        for server in [by_file, by_payload] {
            let mut client = server.client();
            assert_eq!(text(&client.list("BF.INFO k LAYOUT")[0]), "classic");
            client.expect("BF.CARD k", "0");
            add_many(&mut client, "BF.MADD k", "item:", 0..150);
            let lines: Vec<_> = client.list("BF.DEBUG k").iter().map(text).collect();
            assert_eq!(lines.len(), 3, "{encoding}: {lines:?}");
            assert!(lines[1].contains("hashes:8 hashwidth:64 capacity:100 size:100 ratio:0.005"), "{lines:?}");
            assert!(lines[2].contains(&format!("capacity:{grown} ")), "{encoding}: {lines:?}");
        }
    }
}

#[test]
fn a_payload_of_another_encoding_is_rejected_with_a_line() {
    let mut server = Server::start();
    let mut client = server.client();
    let mut expected = Vec::new();
    for (encoding, why) in [(1, OF_1_X), (5, "encoding version: expected at most 4, got 5")] {
        let payload = forge(&value(encoding), &[10, 0]);
        let words: [&[u8]; 4] = [b"RESTORE", b"k", b"0", &payload];
        assert_eq!(show(&client.call(&words)), "-ERR Bad data format", "{encoding}");
        expected.push(why);
    }
    assert_eq!(errors(&server.log()), expected);
    client.expect("DBSIZE", "0");
    server.assert_up();
}
