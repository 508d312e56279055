//! Tests DUMP and RESTORE, with unchanged payloads and with damaged ones.

use redis::Value;

use rollcall_fuzz::payload::{forge, split};
use rollcall_testkit::{Client, Server, assert_same, error_text, populate_without_ttl, show, snapshot};

fn restore_command(key: &str, payload: &[u8]) -> Vec<Vec<u8>> {
    ["RESTORE", key, "0"].iter().map(|arg| arg.as_bytes().to_vec()).chain([payload.to_vec()]).collect()
}

/// Small values of all representations, each with the command that creates it at the key `src`.
const VALUES: [(&str, &str); 8] = [
    ("an empty filter", "BF.RESERVE src 0.01 10"),
    ("a filter", "BF.INSERT src CAPACITY 20 ITEMS a b c d e f"),
    ("a chain", "BF.INSERT src CAPACITY 2 ERROR 0.1 ITEMS a b c d e f g h i j k l m n o p"),
    ("a filter that does not scale", "BF.INSERT src CAPACITY 20 NONSCALING SEED 99 ITEMS a b c"),
    ("an empty counter", "LC.RESERVE src"),
    ("an exact counter", "LC.ADD src a b c d e f"),
    ("an estimating counter", "LC.INSERT src EXACT 0 ITEMS a b c d e f g h"),
    ("a coarse counter", "LC.INSERT src ERROR 0.25 EXACT 0 ITEMS a b c d e f g h i j k l m n o p q"),
];

/// Restores every payload into a new key. Each must be rejected and leave no key behind, unless it decodes to an equal
/// value, as with a changed compression. Returns a description of each failure.
fn accepted(client: &mut Client, payloads: &[(String, Vec<u8>)]) -> Vec<String> {
    let digest = client.digest("src");
    let commands: Vec<_> =
        payloads.iter().enumerate().map(|(i, (_, payload))| restore_command(&format!("f{i}"), payload)).collect();
    let mut wrong = Vec::new();
    for (i, reply) in client.pipeline(&commands).iter().enumerate() {
        let (what, key) = (&payloads[i].0, format!("f{i}"));
        match error_text(reply) {
            Some(error) if error.starts_with("ERR ") => {}
            Some(error) => wrong.push(format!("{what}: {error}")),
            None => {
                if client.digest(&key) != digest {
                    wrong.push(format!("{what}: accepted as another value"));
                }
                client.expect(&format!("DEL {key}"), "1");
            }
        }
    }
    client.expect("DBSIZE", "1");
    wrong
}

#[test]
fn restored_values_are_the_same() {
    let server = Server::start();
    let target =
        Server::with_args("bf-error-rate 0.2 bf-initial-size 7 lc-error-rate 0.2 lc-exact-limit 3 hash-seed 5");
    let (mut client, mut other) = (server.client(), target.client());
    populate_without_ttl(&mut client);
    let before = snapshot(&mut client);
    for key in before.keys() {
        let payload = client.dump(key);
        assert_eq!(other.call(&restore_command(key, &payload)), Value::Okay, "{key}");
    }
    assert_same(&snapshot(&mut other), &before);
    let payload = client.dump("bf:chain");
    let [restore, key, _, payload] = &restore_command("bf:chain", &payload)[..] else { panic!("four words") };
    let with_ttl: Vec<&[u8]> = vec![restore, key, b"50000", payload, b"REPLACE"];
    assert_eq!(other.call(&with_ttl), Value::Okay);
    assert!(other.int("TTL bf:chain") > 40);
    let again = other.call(&restore_command("bf:chain", payload));
    assert!(show(&again).starts_with("-BUSYKEY"), "{}", show(&again));
}

/// Panics if a payload that `forged` makes from one of [`VALUES`] is accepted. `forged` gets the kind of the value, its
/// bytes, and the version at the end of its payload.
#[track_caller]
fn assert_forged_are_rejected(forged: impl Fn(&str, &[u8], &[u8]) -> Vec<(String, Vec<u8>)>) {
    let (mut server, mut client) = Server::start().with_client();
    let mut wrong = Vec::new();
    for (what, make) in VALUES {
        client.expect("FLUSHALL", "+OK");
        client.run(make);
        let payload = client.dump("src");
        let (value, version) = split(&payload);
        wrong.extend(accepted(&mut client, &forged(what, value, version)));
    }
    server.assert_up();
    assert!(wrong.is_empty(), "{} accepted:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn truncated_payloads_are_rejected_at_every_length() {
    // The server reads the first ten bytes of a value, and the module reads the rest.
    assert_forged_are_rejected(|what, value, version| {
        (1..value.len()).map(|n| (format!("{what} of {n} bytes"), forge(&value[..n], version))).collect()
    });
}

#[test]
fn flipped_bits_are_noticed_even_under_a_right_checksum() {
    // The first byte marks a module value, and the next nine name its type.
    assert_forged_are_rejected(|what, value, version| {
        let flipped = |bit: usize| {
            let mut flipped = value.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            (format!("{what}, byte {} of {}, bit {}", bit / 8, value.len(), bit % 8), forge(&flipped, version))
        };
        (10 * 8..value.len() * 8).map(flipped).collect()
    });
}

/// Versions above the module's own are unknown. Lower versions may be RedisBloom's.
#[test]
fn values_of_unknown_encodings_are_rejected() {
    // The low ten bits of the type's id are the version of its encoding.
    assert_forged_are_rejected(|what, value, version| {
        let own = u16::from(value[8] & 3) << 8 | u16::from(value[9]);
        let later = |encoding: u16| {
            let mut value = value.to_vec();
            (value[8], value[9]) = (value[8] & !3 | (encoding >> 8) as u8, encoding as u8);
            (format!("{what} as encoding {encoding}"), forge(&value, version))
        };
        (own + 1..1024).step_by(13).map(later).collect()
    });
}

#[test]
fn what_is_rejected_is_logged_in_a_line() {
    let (server, mut client) = Server::start().with_client();
    for (what, make) in VALUES {
        client.expect("FLUSHALL", "+OK");
        client.run(make);
        let payload = client.dump("src");
        let (value, version) = split(&payload);
        for length in [10, 11, value.len() / 2, value.len() - 5] {
            let before = server.module_log().len();
            let reply = client.call(&restore_command("new", &forge(&value[..length], version)));
            assert!(error_text(&reply).is_some(), "{what}, {length} bytes of {}: {}", value.len(), show(&reply));
            let log = server.module_log();
            assert_eq!(log.len(), before + 1, "{what}, {length} bytes of {}: {:?}", value.len(), &log[before..]);
        }
    }
}
