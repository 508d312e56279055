//! Clusters: every primary is looked at, and each key goes to its node.

use crate::{tool, tool_with, url};
use rollcall_testkit::client::add_many;
use rollcall_testkit::cluster::cluster;
use rollcall_testkit::server::Server;

#[test]
fn keys_of_all_nodes_are_listed_filled_and_moved() {
    let (nodes, single, back) = (cluster(3), Server::start(), cluster(3));
    let mut client = single.client();
    for key in 0..30 {
        add_many(&mut client, &format!("LC.ADD count:{key}"), "member:", 0..400);
        add_many(&mut client, &format!("BF.MADD filter:{{{key}}}:x"), "member:", 0..400);
    }
    let to = url(&nodes[1]);
    tool(&["copy", &url(&single), &to, "--target-cluster", "--watch", "0"]).expect(0);
    let sizes: Vec<i64> = nodes.iter().map(|node| node.client().int("DBSIZE")).collect();
    assert_eq!(sizes.iter().sum::<i64>(), 60);
    assert!(sizes.iter().all(|&size| size > 0), "{sizes:?}");
    let rows = tool(&["--json", "top", "--cluster", "--url", &to]).expect(0).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(60));
    // From cluster to cluster, and the same again is equal.
    let both = ["copy", &to, &url(&back[0]), "--source-cluster", "--target-cluster", "--watch", "0"];
    assert!(tool(&both).expect(0).out.contains("60 moved"));
    assert!(tool(&both).expect(0).out.contains("60 equal already"));
    for key in 0..30 {
        let name = format!("count:{key}");
        let holders = back.iter().filter(|node| node.client().cmd(&format!("EXISTS {name}")) == redis::Value::Int(1));
        let digests: Vec<String> = holders.map(|node| node.client().digest(&name)).collect();
        assert_eq!(digests, [client.digest(&name)], "{name}");
    }
    // Lines go to the node of the key. Without --cluster the error says what to do.
    let lines: String = (0..1000).map(|n| format!("line:{n}\n")).collect();
    let moved = (0..3).map(|at| url(&nodes[at])).filter(|url| {
        let args = ["import", "-", "imported", "--kind", "counter", "--create", "CAPACITY 1000", "--url", url];
        let ended = tool_with(&args, lines.as_bytes(), &[]);
        assert!(ended.code == 0 || ended.code == 3 && ended.err.contains("add --cluster"), "{}", ended.err);
        ended.code == 3
    });
    assert_eq!(moved.count(), 2);
    for node in &nodes {
        let args = ["--json", "import", "-", "imported", "--cluster", "--url", &url(node)];
        let ended = tool_with(&args, lines.as_bytes(), &[]).expect(0);
        assert_eq!(ended.json()["items"], 1000);
    }
}
