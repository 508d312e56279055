//! Tests the rollback to RedisBloom with `copy` while a service writes (docs/migrating.md).

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::Duration;

use redis::Value;

use crate::{found, peer_server, tool, url};
use rollcall_testkit::{Client, EndOnDrop, Server, Setup, wait_until};

const KEYS: [&str; 4] = ["users", "tokens", "mails", "pages"];

/// A service that writes items, and records which writes the server acknowledged.
#[derive(Default)]
struct Service {
    stop: AtomicBool,
    calls: AtomicU64,
    acknowledged: Mutex<Vec<(usize, String)>>,
}

impl Service {
    /// Writes until asked to stop, or until the server rejects a write.
    fn write(&self, mut client: Client, writer: usize) {
        for round in 0_u64.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let at = (round as usize + writer) % KEYS.len();
            let items: Vec<String> = (0..20).map(|item| format!("{writer}:{round}:{item}")).collect();
            let words = ["BF.MADD", KEYS[at]].into_iter().chain(items.iter().map(String::as_str)).collect::<Vec<_>>();
            match client.call(&words) {
                Value::Array(_) => {
                    self.calls.fetch_add(1, Ordering::Relaxed);
                    self.acknowledged.lock().expect("a list").extend(items.into_iter().map(|item| (at, item)));
                }
                // The rejected item is not recorded: a real service would write it to the new server.
                Value::ServerError(_) => return,
                other => panic!("BF.MADD gave {other:?}"),
            }
        }
    }

    fn wait_for_calls(&self) {
        let before = self.calls.load(Ordering::Relaxed);
        wait_until("writes", || (self.calls.load(Ordering::Relaxed) > before + 50).then_some(()));
    }

    /// Starts writers on the server, and waits for their first writes.
    fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, server: &Server, writers: usize) {
        for writer in 0..writers {
            let client = server.client();
            scope.spawn(move || self.write(client, writer));
        }
        self.wait_for_calls();
    }

    /// The acknowledged items so far, each with the number of its key.
    fn acknowledged(&self) -> Vec<(usize, String)> {
        self.acknowledged.lock().expect("a list").clone()
    }
}

/// Panics unless the server has all these items.
fn assert_found(client: &mut Client, acknowledged: &[(usize, String)]) {
    for (at, key) in KEYS.iter().enumerate() {
        let of_key = acknowledged.iter().filter(|(of, _)| *of == at);
        let items: Vec<String> = of_key.map(|(_, item)| item.clone()).collect();
        assert!(!items.is_empty(), "{key}");
        assert_eq!(found(client, key, &items), items.len(), "{key}");
    }
}

fn ours() -> Server {
    let (server, mut client) = Setup::default().args("bf-layout classic").start().with_client();
    for key in KEYS {
        client.expect(&format!("BF.RESERVE {key} 0.001 500"), "+OK");
        client.expect(&format!("PEXPIREAT {key} 99999999999999"), "1");
    }
    server
}

#[test]
fn copy_moves_nothing_until_the_writers_stop() {
    let (server, theirs) = (ours(), peer_server());
    let service = Service::default();
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&service.stop);
        service.start(scope, &server, 3);
        // While clients write, the copy stops before the first key.
        let rejected = tool(&["copy", &url(&server), &url(&theirs), "--watch", "20"])
            .fails(3, "the source is written to: BF.MADD ");
        assert!(rejected.err.contains("min-replicas-to-write"), "{}", rejected.err);
        assert_eq!(theirs.client().int("DBSIZE"), 0);
        // From here on the server rejects writes. It has every item that was acknowledged before.
        service.wait_for_calls();
        server.client().expect("CONFIG SET min-replicas-to-write 100", "+OK");
    });
    assert!(server.client().error("BF.ADD users x").starts_with("NOREPLICAS"));
    tool(&["copy", &url(&server), &url(&theirs), "--watch", "0.1"]).shows(0, "4 moved");
    let mut there = theirs.client();
    assert_found(&mut there, &service.acknowledged());
    let mut here = server.client();
    for key in KEYS {
        assert_eq!(there.int(&format!("BF.CARD {key}")), here.int(&format!("BF.CARD {key}")), "{key}");
        assert_eq!(there.int(&format!("PEXPIRETIME {key}")), 99999999999999, "{key}");
    }
    // The new server accepts writes.
    there.expect("BF.ADD users after-the-move", "1");
}

#[test]
fn a_pause_holds_the_writers_back_and_lets_them_go() {
    let (server, theirs) = (ours(), peer_server());
    let service = Service::default();
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&service.stop);
        service.start(scope, &server, 2);
        let before = service.acknowledged();
        tool(&["copy", &url(&server), &url(&theirs), "--pause"]).shows(0, "4 moved");
        service.wait_for_calls();
        assert_found(&mut theirs.client(), &before);
        // The target has these keys by now, with fewer items, so the copy fails. The pause has to end even then.
        tool(&["copy", &url(&server), &url(&theirs), "--pause"]).fails(3, "4 keys cannot be moved");
        // A write succeeds long before the pause would end by itself.
        let late = Client::connect(server.port(), Duration::from_secs(10), PathBuf::new());
        late.expect("a connection").expect("BF.ADD users late", "1");
        service.wait_for_calls();
        service.stop.store(true, Ordering::Relaxed);
    });
}
