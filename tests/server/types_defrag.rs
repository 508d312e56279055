//! Tests active defragmentation: values are moved in memory and stay equal.

use rollcall_testkit::{Server, add_many, assert_same, error_text, lines, populate, show, snapshot, wait_until};

#[test]
fn defragmented_values_stay_the_same() {
    let (mut server, mut client) = Server::start().with_client();
    let reply = client.cmd("CONFIG SET activedefrag yes");
    if let Some(error) = error_text(&reply) {
        // Servers built with the system's allocator cannot defragment; the error says so.
        assert!(error.to_lowercase().contains("defragmentation"), "{error}");
        println!("left out: this server cannot defragment");
        return;
    }
    client.expect("CONFIG SET activedefrag no", "+OK");
    populate(&mut client);
    client.expect("BF.RESERVE bf:large 0.01 1000000", "+OK");
    add_many(&mut client, "BF.MADD bf:large", "item:", 0..5000);
    client.expect("LC.RESERVE lc:large EXACT 0", "+OK");
    add_many(&mut client, "LC.ADD lc:large", "item:", 0..50_000);
    // Deleted values leave gaps of many sizes between the remaining ones.
    let mut commands = Vec::new();
    for i in 0..30_000 {
        let word = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let items = ["a", "b b2 b3", "c c2 c3 c4 c5 c6 c7"][i % 3];
        let window = if i % 2 == 0 { String::new() } else { format!("WINDOW 40 MANUAL SLICES {}", 1 + i % 20) };
        commands.push(word(format!("BF.INSERT bf:{i} CAPACITY {} {window} ITEMS {items}", 10 + i % 300)));
        commands.push(word(format!("LC.INSERT lc:{i} EXACT {} {window} ITEMS {items}", [0, 5, 250][i / 3 % 3])));
    }
    for reply in client.pipeline(&commands) {
        assert!(error_text(&reply).is_none(), "{}", show(&reply));
    }
    let deleted: Vec<_> = (0..30_000)
        .filter(|i| i % 8 != 0)
        .flat_map(|i| [format!("bf:{i}"), format!("lc:{i}")])
        .map(|key| vec!["DEL".to_owned(), key])
        .collect();
    client.pipeline(&deleted);
    let before = snapshot(&mut client);
    for line in lines(
        "active-defrag-ignore-bytes 1; active-defrag-threshold-lower 1; active-defrag-cycle-min 60
         active-defrag-cycle-max 75; active-defrag-max-scan-fields 10; activedefrag yes",
    ) {
        client.expect(&format!("CONFIG SET {line}"), "+OK");
    }
    // Values are moved while commands read and write them.
    wait_until("values to be moved", || {
        client.cmd("BF.MEXISTS bf:large item:1 item:2");
        client.cmd("LC.ADD lc:large item:1");
        (client.info_number("active_defrag_hits") > 5000).then_some(())
    });
    client.expect("CONFIG SET activedefrag no", "+OK");
    assert_same(&snapshot(&mut client), &before);
    for key in ["bf:chain", "bf:large", "bf:renewed"] {
        add_many(&mut client, &format!("BF.MADD {key}"), "more:", 0..500);
    }
    for key in ["lc:exact", "lc:large", "lc:hours"] {
        add_many(&mut client, &format!("LC.ADD {key}"), "more:", 0..500);
    }
    client.expect("FLUSHALL", "+OK");
    server.assert_up();
}
