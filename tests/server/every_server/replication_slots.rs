//! Tests commands with keys of several slots.

use crate::every_server::commands_sets::SETS;
use rollcall_testkit::cluster;

#[test]
fn multi_key_commands_keep_to_one_slot() {
    let node = &cluster(2)[1];
    let mut client = node.client();
    client.expect_each(
        "BF.ADD {x}filter a => 1; LC.ADD {x}exact a => 1; LC.INSERT {x}estimate EXACT 0 ITEMS a => 1
         LC.MERGE {x}all {x}exact {x}estimate => +OK; LC.MERGE {x}all elsewhere => -CROSSSLOT *
         LC.COUNT {x}all elsewhere => -CROSSSLOT *; BF.MERGE {x}filter elsewhere => -CROSSSLOT *",
    );
    for command in SETS {
        for (one, two) in [("", ""), (" SINCE -", " SINCE - 60")] {
            client.expect(&format!("{command} 2 {{x}}exact elsewhere{one}"), "-CROSSSLOT *");
            client.expect(&format!("{command} 3 {{x}}exact {{x}}missing elsewhere{one}"), "-CROSSSLOT *");
            // Time spans do not count as keys.
            client.run(&format!("{command} 2 {{x}}exact {{x}}missing{two}"));
        }
    }
}
