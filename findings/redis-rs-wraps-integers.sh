#!/usr/bin/env bash
# Expected: a reply that does not fit the type asked for is an error, as it is for text.
# Seen: the crate redis 1.8.1 cuts an integer to the type, without an error: a counter of 5,000,000,000 is 705,032,704
# as u32, 300 is 44 as u8, and the TTL of a missing key, -2, is 18,446,744,073,709,551,614 as u64. The same number as
# text, as from GET, is an error. A transaction that WATCH aborted is Ok for (), an empty Vec and `false`: ask for an
# Option. Ask for i64, and convert it by try_from.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
port=$(free_port)
start redis-8.2.3 "$port"
crates redis@1.8.1 <<'R'
use redis::{Commands, Connection, FromRedisValue, RedisResult};

/// Runs a transaction that another client's write aborts.
fn aborted<T: FromRedisValue>(one: &mut Connection, other: &mut Connection) -> RedisResult<T> {
    redis::cmd("WATCH").arg("watched").exec(one)?;
    other.set::<_, _, ()>("watched", 1)?;
    redis::pipe().atomic().pfadd("counter", "item").incr("sum", 1).query(one)
}

fn show<T: std::fmt::Debug>(name: &str, reply: RedisResult<T>) {
    match reply {
        Ok(reply) => println!("{name}: {reply:?}"),
        Err(_) => println!("{name}: error"),
    }
}

fn main() -> RedisResult<()> {
    let client = redis::Client::open(std::env::args().nth(1).unwrap())?;
    let (mut one, mut other) = (client.get_connection()?, client.get_connection()?);
    one.set::<_, _, ()>("seen", 4_999_999_999i64)?;
    one.set::<_, _, ()>("small", 300)?;
    show("INCR to 5,000,000,000 as u32", one.incr::<_, _, u32>("seen", 1));
    show("INCRBY 0 of 300 as u8", one.incr::<_, _, u8>("small", 0));
    show("GET of 300 as u8", one.get::<_, u8>("small"));
    show("TTL of a missing key as u64", one.ttl::<_, u64>("missing"));
    show("aborted transaction as ()", aborted::<()>(&mut one, &mut other));
    show("aborted transaction as Vec<i64>", aborted::<Vec<i64>>(&mut one, &mut other));
    show("aborted transaction as bool", aborted::<bool>(&mut one, &mut other));
    show("aborted transaction as (bool, i64)", aborted::<(bool, i64)>(&mut one, &mut other));
    show("aborted transaction as Option<(bool, i64)>", aborted::<Option<(bool, i64)>>(&mut one, &mut other));
    show("EXISTS of its keys", one.exists::<_, i64>(&["counter", "sum"]));
    Ok(())
}
R
"$work/rust/release/program" "redis://127.0.0.1:$port" | tee "$work/seen"
expect "INCR to 5,000,000,000 as u32" "$(value "INCR to 5,000,000,000 as u32")" 705032704
expect "INCRBY 0 of 300 as u8" "$(value "INCRBY 0 of 300 as u8")" 44
expect "GET of 300 as u8" "$(value "GET of 300 as u8")" error
expect "TTL of a missing key as u64" "$(value "TTL of a missing key as u64")" 18446744073709551614
expect "aborted transaction as ()" "$(value "aborted transaction as ()")" "()"
expect "aborted transaction as Vec<i64>" "$(value "aborted transaction as Vec<i64>")" "[]"
expect "aborted transaction as bool" "$(value "aborted transaction as bool")" false
expect "aborted transaction as (bool, i64)" "$(value "aborted transaction as (bool, i64)")" error
expect "aborted transaction as Option" "$(value "aborted transaction as Option<(bool, i64)>")" None
expect "EXISTS of its keys" "$(value "EXISTS of its keys")" 0
