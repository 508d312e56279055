//! MEMORY USAGE against what the allocator gives.

use redis::Value;

use crate::client::{Client, show, with_items};
use crate::harness::Server;

/// What is measured, how many keys of it, the command that makes the key `?`, and commands or items that fill it.
struct Shape {
    name: &'static str,
    keys: u64,
    make: &'static str,
    fill: &'static str,
    items: u64,
}

const SHAPES: [Shape; 10] = [
    Shape { name: "small filter", keys: 20_000, make: "BF.RESERVE ? 0.01 100", fill: "BF.MADD ?", items: 5 },
    Shape { name: "filter", keys: 2_000, make: "BF.RESERVE ? 0.001 5000", fill: "BF.MADD ?", items: 50 },
    Shape { name: "chain", keys: 1_500, make: "BF.RESERVE ? 0.01 10", fill: "BF.MADD ?", items: 400 },
    Shape { name: "large filter", keys: 4, make: "BF.RESERVE ? 0.01 3000000", fill: "BF.MADD ?", items: 100 },
    Shape { name: "empty counter", keys: 50_000, make: "LC.RESERVE ? 50000", fill: "LC.COUNT ?", items: 0 },
    Shape { name: "counter of five", keys: 40_000, make: "LC.RESERVE ? 50000", fill: "LC.ADD ?", items: 5 },
    Shape { name: "counter of 250", keys: 2_000, make: "LC.RESERVE ? 50000", fill: "LC.ADD ?", items: 250 },
    Shape { name: "sparse counter", keys: 1_000, make: "LC.RESERVE ? 10000000", fill: "LC.ADD ?", items: 1_000 },
    Shape { name: "dense counter", keys: 1_000, make: "LC.RESERVE ? 1000 EXACT 0", fill: "LC.ADD ?", items: 990 },
    Shape { name: "denser counter", keys: 300, make: "LC.RESERVE ? 50000", fill: "LC.ADD ?", items: 6_000 },
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

#[test]
fn memory_usage_is_what_the_allocator_gives() {
    let mut wrong = Vec::new();
    for Shape { name, keys, make, fill, items } in SHAPES {
        let server = Server::start();
        let mut client = server.client();
        // The same keys with nothing in them first: the server's own tables then do not count.
        let key = |i: u64| format!("key:{i:07}");
        let sets: Vec<_> = (0..keys).map(|i| vec!["SET".to_owned(), key(i), "1".into()]).collect();
        client.pipeline(&sets);
        let (usage_before, used_before) = (usage(&mut client, keys), client.info_number("used_memory"));
        for i in 0..keys {
            client.send(&["DEL", &key(i)]);
            client.send(&make.replace('?', &key(i)).split(' ').collect::<Vec<_>>());
            assert_eq!(show(&client.receive()), "1", "{name}: DEL");
            assert_eq!(show(&client.receive()), "+OK", "{name}: {make}");
            if items > 0 {
                client.call(&with_items(&fill.replace('?', &key(i)), "item:", 0..items));
            }
        }
        let grown = client.info_number("used_memory") - used_before;
        let told = usage(&mut client, keys) - usage_before;
        let ratio = told as f64 / grown as f64;
        println!("{name}: {told} bytes told, {grown} taken, {:+.2} %", (ratio - 1.0) * 100.0);
        if !(0.97..=1.03).contains(&ratio) {
            wrong.push(format!("{name}: {told} bytes told, {grown} taken, {:+.2} %", (ratio - 1.0) * 100.0));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
