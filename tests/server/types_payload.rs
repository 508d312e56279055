//! Tests DUMP and RESTORE, with unchanged payloads and with damaged ones.

use redis::Value;

use rollcall_fuzz::payload::{forge, split};
use rollcall_testkit::{Server, assert_same, error_text, populate_without_ttl, show, snapshot};

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

/// The core's test `dump_payload` tries every bit and every length.
#[test]
fn rejected_payloads_are_logged_in_a_line() {
    let (server, mut client) = Server::start().with_client();
    for (what, make) in VALUES {
        client.expect("FLUSHALL", "+OK");
        client.run(make);
        let payload = client.dump("src");
        let (value, version) = split(&payload);
        let mut damaged: Vec<_> = [10, 11, value.len() / 2, value.len() - 5].map(|len| value[..len].to_vec()).into();
        let mut flipped = value.to_vec();
        flipped[value.len() / 2] ^= 1;
        // The low ten bits of the type's id are the version of its encoding.
        let mut of_later_encoding = value.to_vec();
        of_later_encoding[9] += 1;
        damaged.extend([flipped, of_later_encoding]);
        for (at, value) in damaged.iter().enumerate() {
            let before = server.module_log().len();
            let reply = client.call(&restore_command("new", &forge(value, version)));
            assert!(error_text(&reply).is_some_and(|error| error.starts_with("ERR ")), "{what} {at}: {}", show(&reply));
            let log = server.module_log();
            assert_eq!(log.len(), before + 1, "{what} {at}: {:?}", &log[before..]);
        }
        client.expect("DBSIZE", "1");
    }
}
