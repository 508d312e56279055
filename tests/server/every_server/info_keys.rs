//! Tests the labels of `BF.INFO` and `LC.INFO`.

use redis::Value;

use rollcall_testkit::client::show;
use rollcall_testkit::server::Server;

/// Labels were simple strings, which some clients turn into `true`. Those of filters are, as in RedisBloom.
#[test]
fn labels_of_counters_are_bulk_strings() {
    let server = Server::start();
    let mut client = server.client();
    client.expect("LC.ADD c a", "1");
    client.expect("BF.ADD f a", "1");
    let labels = |reply: Value| -> Vec<Value> {
        match reply {
            Value::Array(items) => items.into_iter().step_by(2).collect(),
            Value::Map(pairs) => pairs.into_iter().map(|(label, _)| label).collect(),
            other => panic!("{}", show(&other)),
        }
    };
    for mut client in [server.client(), server.client3()] {
        let of_counter = labels(client.cmd("LC.INFO c"));
        assert!(of_counter.len() > 9, "{of_counter:?}");
        assert!(of_counter.iter().all(|label| matches!(label, Value::BulkString(_))), "{of_counter:?}");
        let of_filter = labels(client.cmd("BF.INFO f"));
        assert_eq!(of_filter.len(), 5);
        assert!(of_filter.iter().all(|label| matches!(label, Value::SimpleString(_))), "{of_filter:?}");
    }
    assert_eq!(labels(server.client3().cmd("LC.INFO c COUNT")), [Value::BulkString(b"Count".to_vec())]);
}
