//! Runs the examples of docs/clients.md, which build.rs extracted. Also tests the page's statements about values.

use redis::{RedisResult, ToRedisArgs, cmd};

include!(concat!(env!("OUT_DIR"), "/examples.rs"));

#[test]
fn the_examples_run() {
    examples().expect("every call of the examples");
}

/// Adds a value to a counter of its own, and returns the member that the counter has.
fn member(connection: &mut redis::Connection, at: usize, value: &impl ToRedisArgs) -> RedisResult<Vec<Vec<u8>>> {
    let key = format!("documents:members:{at}");
    cmd("DEL").arg(&key).exec(connection)?;
    cmd("LC.ADD").arg(&key).arg(value).exec(connection)?;
    cmd("LC.MEMBERS").arg(&key).query(connection)
}

#[test]
fn members_are_those_of_the_table() {
    let client = redis::Client::open(crate::ways::url(true)).expect("a URL");
    let connection = &mut client.get_connection().expect("a connection");
    let page = include_str!("../../../../docs/clients.md");
    let row = page.lines().find_map(|line| line.strip_prefix("| redis-rs | ")?.strip_suffix(" |")).expect("the row");
    let found = [
        member(connection, 0, &1.0),
        member(connection, 1, &(0.1 + 0.2)),
        member(connection, 2, &1e16),
        member(connection, 3, &1e21),
        member(connection, 4, &true),
        member(connection, 5, &None::<f64>),
    ]
    .map(|members| {
        members.map_or("rejected".to_owned(), |found| String::from_utf8_lossy(&found.concat()).into_owned())
    });
    let shown: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches('`')).collect();
    assert_eq!(shown, found);
    // A list with a missing value adds the other members.
    let added: u64 = cmd("LC.ADD").arg("documents:left-out").arg(&["ann"]).arg(None::<&str>).query(connection).unwrap();
    assert_eq!(added, 1);
}
