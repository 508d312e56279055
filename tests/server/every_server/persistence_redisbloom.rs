//! Tests RedisBloom's RDB values of every encoding version. Versions 0 and 1 have 32-bit hashes and are rejected, with
//! an error that says so. Versions 2 and 3 do not store the growth factor, which was always 2. Version 4 is the present
//! one; later versions are unknown.

use redis::Value;

use rollcall_fuzz::fields::Field::{Double, String as Bytes, Unsigned};
use rollcall_fuzz::payload::{encode, rdb_file, split};
use rollcall_testkit::{Server, Setup, add_many, show, text};

/// An empty filter for 100 items at an error rate of 0.01, as RedisBloom saved it with this encoding version.
fn payload(encoding: u64) -> Vec<u8> {
    const FORCE64_AND_NOROUND: u64 = 5;
    let mut fields = [0, 1, FORCE64_AND_NOROUND, 3, 100].map(Unsigned).to_vec();
    fields.extend([Double(0.005), Unsigned(8), Double(11.027_753_418_256_411), Unsigned(1152), Unsigned(0)]);
    fields.extend([Bytes(vec![0; 144]), Unsigned(0)]);
    // The number of bits and the power of two, the growth, and the options came later.
    for (since, lacks) in [(1, 8..10), (4, 3..4), (2, 2..3)] {
        if encoding < since {
            fields.drain(lacks);
        }
    }
    encode("MBbloom--", encoding, &fields)
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
        let by_file =
            Setup::default().line("appendonly no").file("dump.rdb", &rdb_file(split(&payload(encoding)).0)).start();
        let by_payload = Server::start();
        assert_eq!(by_payload.client().restore("k", &payload(encoding)), Value::Okay, "{encoding}");
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
    let (mut server, mut client) = Server::start().with_client();
    let mut expected = Vec::new();
    for (encoding, why) in [(1, OF_1_X), (5, "encoding version: expected at most 4, got 5")] {
        assert_eq!(show(&client.restore("k", &payload(encoding))), "-ERR Bad data format", "{encoding}");
        expected.push(why);
    }
    assert_eq!(errors(&server.log()), expected);
    client.expect("DBSIZE", "0");
    server.assert_up();
}
