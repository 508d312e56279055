//! Tests of the checker: damage that it must notice. They take seconds, so they run with all tests.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::check::{Tally, check};
use crate::key::Key;
use crate::line::Single;
use crate::run::Run;
use crate::shapes::{Kind, Shadow};
use crate::writer::{Load, Writer, check_all};
use rollcall_testkit::{Client, Server};

const LOAD: Load = Load { commands: 8, items: 50, share: 1, expires: true };
const MORE: u64 = 40;

/// A server, and a writer that has written to keys of every shape.
fn written() -> (Server, Run, Writer) {
    let server = Server::start();
    let (run, tally) = (Run::new("notices"), Tally::default());
    let mut writer = Writer::new(&run, 0, LOAD);
    let mut line = Single::new(&server);
    let is_enough = |key: &Key| {
        key.must().count() >= 20
            && (key.shape.shadow == Shadow::None) != key.shadow.is_some()
            && key.shape.removes() == (key.removed > 0)
    };
    while !writer.keys.iter().all(is_enough) {
        writer.round(&mut line, &run, &tally);
    }
    writer.settle(&mut line, &run);
    (server, run, writer)
}

/// The checker's verdict on a key.
fn said(server: &Server, run: &Run, key: &Key) -> Result<(), String> {
    let mut line = Single::new(server);
    let looked = catch_unwind(AssertUnwindSafe(|| check(&mut line, run, &[key], Some(&Tally::default()))));
    looked.map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[track_caller]
fn assert_noticed(server: &Server, run: &Run, key: &Key, what: &str) {
    let reported = said(server, run, key).expect_err(&format!("{what} of {} is overlooked", key.name));
    for part in ["seed: ", "moment: ", key.name.as_str(), "acknowledged: ", "came back: "] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
}

/// Damages a key, calls `look`, and repairs the key.
fn with_damage(client: &mut Client, name: &str, line: &str, look: impl FnOnce()) {
    client.expect(&format!("COPY {name} kept"), "1");
    client.cmd(line);
    look();
    client.expect(&format!("COPY kept {name} REPLACE"), "1");
    client.expect("DEL kept", "1");
}

#[test]
fn written_items_are_found() {
    let (server, run, writer) = written();
    let (mut line, tally) = (Single::new(&server), Tally::default());
    let items = check_all(&mut line, &run, std::slice::from_ref(&writer), Some(&tally));
    assert!(items >= 20 * writer.keys.len() as u64);
    tally.judge(&run);
}

#[test]
fn lost_items_are_noticed() {
    let (server, run, mut writer) = written();
    let mut client = server.client();
    for key in &mut writer.keys {
        let family = if key.shape.is_filter() { "BF" } else { "LC" };
        let mut names = vec![key.name.clone()];
        names.extend(key.shadow.map(|_| key.shadow_name()));
        for name in &names {
            for line in [format!("{family}.CLEAR {name}"), format!("DEL {name}")] {
                with_damage(&mut client, name, &line, || assert_noticed(&server, &run, key, &line));
            }
        }
        // Pretends that the last list is missing in the key. Counts with a standard error may hide such a loss.
        let must = key.must();
        (key.acked, key.sent) = (key.acked + MORE, key.sent + MORE);
        if key.shape.kind != Kind::Theory && key.must() != must {
            assert_noticed(&server, &run, key, "the loss of a list");
        }
        (key.acked, key.sent) = (key.acked - MORE, key.sent - MORE);
        assert_eq!(said(&server, &run, key), Ok(()));
    }
}

#[test]
fn items_that_nobody_sent_are_noticed() {
    let (server, run, writer) = written();
    let mut client = server.client();
    let is_bounded = |key: &&Key| {
        !matches!(key.shape.kind, Kind::Filter { has_card: false, .. } | Kind::Theory)
            && key.must().start == key.removed
    };
    for key in writer.keys.iter().filter(is_bounded) {
        let add = if key.shape.is_filter() { "BF.MADD" } else { "LC.ADD" };
        let intruders: Vec<String> = (0..MORE).map(|at| format!("intruder:{at}")).collect();
        let line = format!("{add} {} {}", key.name, intruders.join(" "));
        with_damage(&mut client, &key.name, &line, || assert_noticed(&server, &run, key, "what nobody sent"));
    }
}

#[test]
fn lost_items_are_noticed_by_the_replies() {
    let (server, run, mut writer) = written();
    let mut client = server.client();
    for key in &writer.keys {
        client.expect(&format!("{}.CLEAR {}", if key.shape.is_filter() { "BF" } else { "LC" }, key.name), "+OK");
    }
    let mut line = Single::new(&server);
    let write = || (0..200).for_each(|_| writer.round(&mut line, &run, &Tally::default()));
    let reported = catch_unwind(AssertUnwindSafe(write)).expect_err("known items are new, and nobody minds");
    let reported = reported.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(reported.contains("what was acknowledged is new"), "{reported}");
}
