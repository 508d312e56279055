//! The harness itself: start, talk, persist, replicate.

use crate::harness::Server;

#[test]
fn server_starts_saves_and_replicates() {
    let mut server = Server::start();
    let replica = Server::start();
    replica.replicate(&server);
    let mut client = server.client();
    client.expect("BF.ADD k a", "1");
    server.client3().expect("BF.MADD k a c", "[#f, #t]");
    replica.wait_synced(&server);
    assert_eq!(client.digest("k"), replica.client().digest("k"));
    server.save();
    server.restart();
    server.client().expect("BF.EXISTS k a", "1");
    server.assert_up();
}
