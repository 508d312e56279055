//! Tests keyspace events: a command that changes a key sends one event, and other commands send none.

use rollcall_testkit::{CHANGES_NOTHING, Client, Server, Setup, lines, message, populate_for_no_change, rows};

/// A client that has subscribed to all events of database 0.
pub fn subscriber(server: &Server) -> Client {
    let mut client = server.client();
    client.expect("PSUBSCRIBE __keyevent@0__:*", "[\"psubscribe\", \"__keyevent@0__:*\", 1]");
    client
}

/// The events that a command caused, as `event key`.
#[track_caller]
pub fn events(client: &mut Client, subscriber: &mut Client, command: &str) -> Vec<String> {
    client.cmd(command);
    events_so_far(client, subscriber)
}

/// The events since the last call.
#[track_caller]
pub fn events_so_far(client: &mut Client, subscriber: &mut Client) -> Vec<String> {
    // A published message marks the end of the events that the command caused.
    client.cmd("PUBLISH __keyevent@0__:end-of-command -");
    let mut events = Vec::new();
    loop {
        let reply = subscriber.receive();
        let (channel, key) = message(&reply).unwrap_or_else(|| panic!("{}", rollcall_testkit::show(&reply)));
        let event = channel.strip_prefix("__keyevent@0__:").unwrap_or(&channel);
        if event == "end-of-command" {
            return events;
        }
        events.push(format!("{event} {key}"));
    }
}

fn start() -> Server {
    Setup::default().line("notify-keyspace-events KEA").start()
}

#[test]
fn every_change_sends_its_event() {
    let server = start();
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    for (command, expected) in rows(
        "BF.RESERVE f 0.01 100 => bf.reserve f; BF.ADD f a => bf.add f; LC.RESERVE c EXACT 1 => lc.reserve c
         LC.ADD c a => lc.add c; LC.ADD c b c => lc.add c; BF.RESERVE g 0.01 100 => bf.reserve g
         BF.ADD g b => bf.add g; BF.MERGE f g => bf.merge f; LC.ADD d e => lc.add d; LC.MERGE c d => lc.merge c
         # A merge that creates its key sends the same event, whether or not a source exists.
         BF.MERGE f1 g => bf.merge f1; BF.MERGE f0 missing => bf.merge f0; LC.MERGE c1 d => lc.merge c1
         LC.MERGE c0 missing => lc.merge c0; BF.CLEAR f => bf.clear f; LC.CLEAR c => lc.clear c
         LC.REM d e => lc.rem d; BF.ADMIT f LIMIT 9 ITEMS x => bf.add f; LC.ADMIT c LIMIT 1 ITEMS x => lc.add c
         BF.ADMIT f2 LIMIT 9 ITEMS x => bf.reserve f2; LC.ADMIT c2 LIMIT 9 ITEMS x => lc.reserve c2
         BF.RESERVE f3 0.01 100 EX 100 => expire f3; LC.RESERVE c3 PX 100000 => expire c3
         BF.RESERVE w 0.01 100 WINDOW 40 MANUAL => bf.reserve w; BF.ADVANCE w 3 => bf.advance w
         BF.ADVANCE w CLOCK => bf.advance w; BF.ADD w a => bf.add w; LC.RESERVE v WINDOW 40 MANUAL => lc.reserve v
         LC.ADVANCE v 3 => lc.advance v; LC.ADVANCE v CLOCK => lc.advance v; LC.ADD v a => lc.add v
         BF.INSERT f4 EX 100 ITEMS x => expire f4; LC.INSERT c4 EX 100 ITEMS x => expire c4
         BF.ADMIT f5 LIMIT 9 EX 100 ITEMS x => expire f5; LC.ADMIT c5 LIMIT 9 EX 100 ITEMS x => expire c5
         BF.INSERT f6 WINDOW 40 VOLATILE ITEMS x => expire f6; LC.INSERT c6 WINDOW 40 VOLATILE ITEMS x => expire c6
         BF.ADMIT f7 LIMIT 9 WINDOW 40 VOLATILE ITEMS x => expire f7
         LC.ADMIT c7 LIMIT 9 WINDOW 40 VOLATILE ITEMS x => expire c7
         BF.ADMIT f LIMIT 0 ITEMS rejected also => bf.reject f; LC.ADMIT c LIMIT 0 ITEMS rejected also => lc.reject c
         LC.ADMIT none LIMIT 0 ITEMS rejected => lc.reject none",
    ) {
        let reported = events(&mut client, &mut subscriber, command);
        assert_eq!(reported.iter().filter(|event| *event == expected).count(), 1, "{command}: {reported:?}");
        let key = expected.split(' ').nth(1).expect("a key");
        assert!(reported.iter().all(|event| event.ends_with(&format!(" {key}"))), "{command}: {reported:?}");
    }
    for command in ["BF.MADD f x y", "BF.INSERT f ITEMS z", "BF.INSERT h ITEMS z", "BF.MADD i z", "BF.MERGE j f"] {
        let reported = events(&mut client, &mut subscriber, command);
        assert!(reported.iter().any(|event| event.starts_with("bf.")), "{command}: {reported:?}");
    }
    for command in ["LC.INSERT c ITEMS x1 x2 x3", "LC.INSERT k ITEMS z", "LC.MERGE l c"] {
        let reported = events(&mut client, &mut subscriber, command);
        assert!(reported.iter().any(|event| event.starts_with("lc.")), "{command}: {reported:?}");
    }
}

#[test]
fn commands_that_change_nothing_send_no_event() {
    let (server, mut client) = start().with_client();
    populate_for_no_change(&mut client);
    let mut subscriber = subscriber(&server);
    for command in lines(CHANGES_NOTHING) {
        let reported = events(&mut client, &mut subscriber, command);
        let ours: Vec<_> =
            reported.iter().filter(|event| event.starts_with("bf.") || event.starts_with("lc.")).collect();
        // A rejection causes an event although nothing changes.
        let is_rejection = |event: &String| event.contains(".reject ") && command.contains(".ADMIT ");
        assert!(ours.iter().all(|event| is_rejection(event)) && ours.len() < 2, "{command}: {ours:?}");
    }
}

/// A call that rejects items sends one event, after those of its changes. A dry run and a call that fails send none.
#[test]
fn rejections_are_reported_once_a_call() {
    let server = start();
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    for (family, name) in [("BF", "bf"), ("LC", "lc")] {
        let [reserved, added, rejected] = ["reserve", "add", "reject"].map(|verb| format!("{name}.{verb} {name}"));
        for (call, expected) in [
            ("LIMIT 2 ITEMS a b c d", vec![&*reserved, &added, &rejected]),
            ("LIMIT 2 ITEMS a b", vec![]),
            ("LIMIT 2 ITEMS a z y", vec![&rejected]),
            ("LIMIT 2 DRYRUN ITEMS z", vec![]),
            ("LIMIT 3 ALL ITEMS z y", vec![&rejected]),
            ("LIMIT 3 ITEMS z y", vec![&added, &rejected]),
        ] {
            let line = format!("{family}.ADMIT {name} {call}");
            let reported = events(&mut client, &mut subscriber, &line);
            let ours: Vec<_> = reported.iter().filter(|event| event.contains('.')).collect();
            assert_eq!(ours, expected, "{line}");
        }
    }
    client.expect("LC.INSERT estimate EXACT 1 ITEMS a b", "2");
    events_so_far(&mut client, &mut subscriber);
    assert!(events(&mut client, &mut subscriber, "LC.ADMIT estimate LIMIT 1 ITEMS c").is_empty());
}

#[test]
fn events_are_of_the_class_of_modules() {
    let server = Setup::default().line("notify-keyspace-events Ed").start();
    let (mut client, mut subscriber) = (server.client(), subscriber(&server));
    let reported = events(&mut client, &mut subscriber, "LC.ADD c a");
    assert!(reported.contains(&"lc.add c".to_owned()), "{reported:?}");
    let reported = events(&mut client, &mut subscriber, "BF.ADD f a");
    assert!(reported.contains(&"bf.add f".to_owned()), "{reported:?}");
}
