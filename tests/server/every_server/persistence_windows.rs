//! Tests what storing and loading have for windows alone: slices that begin meanwhile, and memory. Files, payloads,
//! chunks and copies have windows among their other values.

use redis::Value;

use crate::every_server::commands_volatile::START;
use crate::every_server::commands_windows::{FAMILIES, is_new, reserve, window};
use rollcall_testkit::{Clock, Server, add_many, show};

/// The error begins with the code word STALE, so that clients need not compare the text.
#[test]
fn a_dump_across_slices_is_stale() {
    let (_server, mut client) = Server::start().with_client();
    for (family, reserve) in [("BF", "BF.RESERVE k 0.01 100"), ("LC", "LC.RESERVE k")] {
        client.expect(&format!("{reserve} WINDOW 40 MANUAL"), "+OK");
        client.cmd(&format!("{family}.ADD k ann"));
        let begun = client.list(&format!("{family}.SCANDUMP k 0"));
        client.expect(&format!("{family}.ADVANCE k 1"), "+OK");
        client.expect(
            &format!("{family}.SCANDUMP k {}", show(&begun[0])),
            "-STALE a slice has begun since the dump did: start again*",
        );
        let again = client.list(&format!("{family}.SCANDUMP k 0"));
        assert_eq!(client.list(&format!("{family}.SCANDUMP k {}", show(&again[0])))[0], Value::Int(0));
        client.cmd("DEL k");
    }
}

#[test]
fn values_are_loaded_after_the_window_has_passed() {
    for family in FAMILIES {
        for passed in [10, 40, 50, 365 * 86_400] {
            let clock = Clock::at(START);
            let (mut server, mut client) = clock.setup().start().with_client();
            client.expect(&reserve(family, "k", "WINDOW 40 SLICES 4"), "+OK");
            let (add, count) = if family == "BF" { ("BF.MADD k", "BF.CARD k") } else { ("LC.ADD k", "LC.COUNT k") };
            add_many(&mut client, add, "x", 0..60);
            clock.pass(10);
            assert!(is_new(&mut client, family, "k", "late"));
            let before = client.digest("k");
            server.save();
            clock.pass(passed);
            server.restart();
            let mut client = server.client();
            // Loading does not use the clock, so the digest is unchanged. Reading does use it.
            assert_eq!(client.digest("k"), before, "{family} {passed}");
            let left = usize::from(passed <= 40) + usize::from(passed < 40);
            client.expect(count, ["0", "1", "61"][left]);
            assert_eq!(window(&mut client, family, "k"), format!("40 4 {} system", clock.now() / 10));
            clock.set(START + 10);
            client.expect(count, "61");
            // After a restart with an earlier clock, the value is unchanged.
            server.restart();
            let mut client = server.client();
            client.expect(count, "61");
            clock.pass(passed);
            assert!(is_new(&mut client, family, "k", "new"));
            client.expect(count, ["1", "2", "62"][left]);
        }
    }
}
