//! Tests the options EX, PX, EXAT and PXAT, which set the expiry of a key that a command creates.

use rollcall_testkit::{Server, Setup, lines, rows};

/// Commands that create a key. `?` stands for the expiry option.
const CREATING: &str = "BF.RESERVE k 0.01 100 ?; BF.INSERT k ? ITEMS a; BF.ADMIT k LIMIT 5 ? ITEMS a; LC.RESERVE k ?
     LC.INSERT k ? ITEMS a; LC.ADMIT k LIMIT 5 ? ITEMS a";

#[test]
fn created_keys_expire_as_asked() {
    let (_server, mut client) = Server::start().with_client();
    for command in lines(CREATING) {
        // The options, and the bounds of the resulting time to live in milliseconds.
        for (options, from, to) in [
            ("EX 100", 90_000, 100_000),
            ("px 100000", 90_000, 100_000),
            ("EX 9000000000000", 8_999_999_999_000_000, 9_000_000_000_000_000),
            ("", -1, -1),
        ] {
            client.cmd("DEL k");
            let line = command.replace('?', options);
            client.run(&line);
            let left = client.int("PTTL k");
            assert!((from..=to).contains(&left), "{line}: {left}");
        }
        for options in ["EXAT 99999999999", "PXAT 99999999999000"] {
            client.cmd("DEL k");
            client.run(&command.replace('?', options));
            client.expect("PEXPIRETIME k", "99999999999000");
        }
    }
}

#[test]
fn keys_that_exist_keep_their_time() {
    let (_server, mut client) = Server::start().with_client();
    for (add, more) in rows(
        "BF.ADD k x => BF.INSERT k EX 100 ITEMS a; BF.ADD k x => BF.ADMIT k LIMIT 9 EX 100 ITEMS a
         LC.ADD k x => LC.INSERT k EX 100 ITEMS a; LC.ADD k x => LC.ADMIT k LIMIT 9 EX 100 ITEMS a",
    ) {
        client.cmd("DEL k");
        client.run(add);
        client.run(more);
        client.expect("TTL k", "-1");
        client.run("PEXPIREAT k 99999999999000");
        client.run(&more.replace("ITEMS a", "ITEMS b"));
        client.expect("PEXPIRETIME k", "99999999999000");
    }
}

#[test]
fn invalid_expire_times_are_rejected() {
    let (_server, mut client) = Server::start().with_client();
    for command in lines(CREATING) {
        for (options, error) in [
            ("EX 0", "ERR invalid expire time: option EX needs a whole number of seconds from 1 to "),
            ("PX -5", "ERR invalid expire time: option PX needs a whole number of milliseconds from 1 to "),
            ("EXAT 1.5", "ERR invalid expire time: option EXAT "),
            ("PXAT x", "ERR invalid expire time: option PXAT "),
            ("EX 9223372036854775807", "ERR invalid expire time: option EX "),
            ("EX 9223372036854775808", "ERR invalid expire time: option EX "),
            ("EXAT 9223372036854776", "ERR invalid expire time: option EXAT "),
            ("PX 9223372036854775807", "ERR invalid expire time: 9223372036854775807 milliseconds from now "),
            ("EXAT 1", "ERR invalid expire time: EXAT 1 has passed"),
            ("PXAT 1", "ERR invalid expire time: PXAT 1 has passed"),
            ("EX 5 PX 5", "ERR options EX, PX, EXAT and PXAT exclude each other: give one"),
            ("EXAT 99999999999 PXAT 99999999999000", "ERR options EX, PX, EXAT and PXAT exclude each other"),
            ("EX 5 EX 5", "ERR option EX is given twice"),
        ] {
            let line = command.replace('?', options);
            client.expect(&line, &format!("-{error}*"));
        }
        client.expect("EXISTS k", "0");
        // The error once said only that the number has to be above 0.
        let (most, more) = (i64::MAX / 1000, i64::MAX / 1000 + 1);
        let found = client.error(&command.replace('?', &format!("EX {more}")));
        assert!(found.ends_with(&format!("a whole number of seconds from 1 to {most}, got '{more}'")), "{found}");
    }
}

#[test]
fn times_survive_the_aof_and_reach_replicas() {
    let mut primary = Setup::default().line("appendonly yes").start();
    let replica = Server::start();
    replica.replicate(&primary);
    let mut client = primary.client();
    for (number, command) in lines(CREATING).iter().enumerate() {
        let line = command.replace(" k ", &format!(" k{number} ")).replace('?', "PXAT 99999999999123");
        client.run(&line);
    }
    replica.wait_synced(&primary);
    let mut clients = vec![replica.client()];
    primary.restart();
    clients.push(primary.client());
    for mut client in clients {
        for number in 0..lines(CREATING).len() {
            client.expect(&format!("PEXPIRETIME k{number}"), "99999999999123");
        }
    }
}

#[test]
fn keys_are_gone_when_their_time_has_come() {
    let (_server, mut client) = Server::start().with_client();
    client.run("BF.ADMIT f LIMIT 1 PX 1 ITEMS a");
    client.run("LC.ADMIT c LIMIT 1 PX 1 ITEMS a");
    rollcall_testkit::wait_until("both keys to expire", || (client.int("EXISTS f c") == 0).then_some(()));
    client.expect("BF.ADMIT f LIMIT 1 ITEMS b", "[1]");
    client.expect("LC.ADMIT c LIMIT 1 ITEMS b", "[1]");
}
