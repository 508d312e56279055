//! Compares MEMORY USAGE with the memory that the allocator gives out.

use redis::Value;

use rollcall_testkit::{Client, Server, error_text, show, wait_until, with_items, words};

/// A name, the number of keys to measure, the command that creates the key `?`, and the command that fills it with so
/// many items.
type Shape = (&'static str, u64, &'static str, &'static str, u64);

const SHAPES: [Shape; 15] = [
    ("small filter", 20_000, "BF.RESERVE ? 0.01 100", "BF.MADD ?", 5),
    ("filter", 2_000, "BF.RESERVE ? 0.001 5000", "BF.MADD ?", 50),
    ("chain", 1_500, "BF.RESERVE ? 0.01 10", "BF.MADD ?", 400),
    ("large filter", 4, "BF.RESERVE ? 0.01 3000000", "BF.MADD ?", 100),
    ("empty counter", 50_000, "LC.RESERVE ?", "LC.COUNT ?", 0),
    ("counter of five", 40_000, "LC.RESERVE ?", "LC.ADD ?", 5),
    ("counter of 250", 20_000, "LC.RESERVE ?", "LC.ADD ?", 250),
    ("small estimate", 4_000, "LC.RESERVE ?", "LC.ADD ?", 300),
    ("estimate", 1_000, "LC.RESERVE ?", "LC.ADD ?", 3_000),
    ("fine estimate", 200, "LC.RESERVE ? ERROR 0.0025", "LC.ADD ?", 10_000),
    ("empty window", 10_000, "BF.RESERVE ? 0.01 100 WINDOW 40 MANUAL", "BF.CARD ?", 0),
    ("window", 10_000, "BF.RESERVE ? 0.01 100 WINDOW 40 MANUAL", "BF.MADD ?", 15),
    ("exact window", 20_000, "LC.RESERVE ? WINDOW 40 MANUAL", "LC.ADD ?", 5),
    ("estimating window", 1_000, "LC.RESERVE ? WINDOW 40 MANUAL", "LC.ADD ?", 900),
    ("window of bytes", 1_500, "LC.RESERVE ? WINDOW 40 MANUAL SLICES 24", "LC.ADD ?", 900),
];

fn usage(client: &mut Client, keys: u64) -> i64 {
    let commands: Vec<_> =
        (0..keys).map(|i| vec!["MEMORY".to_owned(), "USAGE".into(), format!("key:{i:07}")]).collect();
    let int = |reply: Value| match reply {
        Value::Int(n) => n,
        other => panic!("MEMORY USAGE gave {}", show(&other)),
    };
    client.pipeline(&commands).into_iter().map(int).sum()
}

/// The memory in use, read when no other client is connected, because its buffers would count. The server's table of
/// keys must have its final size too: while it grows, the server has two tables.
fn used_memory(server: &Server) -> i64 {
    wait_until("other clients to be gone, and the table of keys to be one", || {
        let mut client = server.client();
        let is_quiet = client.info_number("connected_clients") == 1
            && !client.text("DEBUG HTSTATS 0").contains("rehashing target");
        is_quiet.then(|| client.info_number("used_memory"))
    })
}

#[test]
fn memory_usage_is_what_the_allocator_gives() {
    // The bytes that a server adds to a module's figure depend on its version, and so does malloc.
    let server = Server::start();
    let (version, allocator) = (server.version(), server.client().info("mem_allocator"));
    if version.is_valkey || version.major != 7 || !allocator.starts_with("jemalloc") {
        println!("left out: only known of Redis 7 with jemalloc, this is {version:?} with {allocator}");
        return;
    }
    let mut wrong = Vec::new();
    for (name, keys, make, fill, items) in SHAPES {
        let server = Server::start();
        // The keys first hold one letter each, so that the memory of the server's own tables is not measured.
        let key = |i: u64| format!("key:{i:07}");
        let sets: Vec<_> = (0..keys).map(|i| vec!["SET".to_owned(), key(i), "x".into()]).collect();
        server.client().pipeline(&sets);
        let usage_before = usage(&mut server.client(), keys);
        let used_before = used_memory(&server);
        let mut client = server.client();
        for start in (0..keys).step_by(500) {
            let mut commands = Vec::new();
            for key in (start..keys.min(start + 500)).map(key) {
                commands.push(vec!["DEL".to_owned(), key.clone()]);
                commands.push(words(&make.replace('?', &key)).into_iter().map(str::to_owned).collect());
                if items > 0 {
                    commands.push(with_items(&fill.replace('?', &key), "item:", 0..items));
                }
            }
            for reply in client.pipeline(&commands) {
                assert!(error_text(&reply).is_none(), "{name}: {}", show(&reply));
            }
        }
        drop(client);
        let grown = used_memory(&server) - used_before;
        let reported = usage(&mut server.client(), keys) - usage_before;
        let ratio = reported as f64 / grown as f64;
        println!("{name}: {reported} bytes reported, {grown} taken, {:+.2} %", (ratio - 1.0) * 100.0);
        if !(0.97..=1.03).contains(&ratio) {
            wrong.push(format!("{name}: {reported} bytes reported, {grown} taken, {:+.2} %", (ratio - 1.0) * 100.0));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A small filter takes the same memory however it was created, also after adds that were undone. Its deletion frees it
/// all.
#[test]
fn a_small_filter_takes_the_same_memory_whichever_way_it_came() {
    let (_server, mut client) = Server::start().with_client();
    for (capacity, layout) in
        [(1, "lines"), (10, "lines"), (100, "lines"), (300, "lines"), (10, "classic"), (300, "classic")]
    {
        let mut left = Vec::new();
        // The first round also allocates memory that later filters share.
        for _ in 0..3 {
            client.expect(&format!("BF.RESERVE a 0.01 {capacity} NONSCALING LAYOUT {layout}"), "+OK");
            client.cmd("BF.ADD a item:0");
            let expected = client.int("MEMORY USAGE a");
            client.expect("COPY a b", "1");
            let payload = client.dump("a");
            assert_eq!(client.restore("c", &payload), Value::Okay);
            let chunks = client.chunks("BF", "a");
            client.load_all("BF", "d", &chunks);
            client.expect("COPY a e", "1");
            client.expect("BF.CLEAR e", "+OK");
            client.cmd("BF.ADD e item:0");
            client.expect("DEBUG RELOAD", "+OK");
            for key in ["a", "b", "c", "d", "e"] {
                // The list has more items than the filter accepts, so the added items are removed again.
                for terms in ["DRYRUN", "ALL"] {
                    let line = format!("BF.ADMIT {key} LIMIT 1000 {terms} ITEMS");
                    client.cmd(&with_items(&line, "new:", 0..capacity + 9).join(" "));
                }
                assert_eq!(client.digest(key), client.digest("a"), "{key} of {capacity}");
                assert_eq!(client.int(&format!("MEMORY USAGE {key}")), expected, "{key} of {capacity}");
            }
            client.expect("DEL a b c d e", "5");
            // Valkey frees the keys of before DEBUG RELOAD in the background.
            wait_until("the freeing to end", || (client.info_number("lazyfree_pending_objects") == 0).then_some(()));
            left.push(client.info_number("rollcall_allocated_bytes"));
        }
        assert_eq!(left[1], left[2], "{capacity} {layout}");
    }
}
