#!/usr/bin/env bash
# Expected: moving a key does not change when it expires.
# Seen: on all servers, MIGRATE sends the remaining time to live, which it reads before it sends the value. So the key
# expires later by the duration of the transfer: milliseconds for a small key, seconds for a large one, at each move.
# Slot migration (Redis 8.10.2, Valkey 9.1.2) keeps the time.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

time=4102444800000
fill() { # PORT: a string of 200 MB that expires at `time`
    cli "$1" config set rdbcompression no >/dev/null
    cli "$1" setrange big 200000000 x >/dev/null
    cli "$1" pexpireat big $time >/dev/null
}
for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    from=$(free_port) to=$(free_port)
    start "$name" "$from"
    start "$name" "$to"
    fill "$from"
    cli "$from" migrate 127.0.0.1 "$to" big 0 60000 >/dev/null
    later=$(($(cli "$to" pexpiretime big) - time))
    echo "  MIGRATE: the key expires $later ms later"
    expect "  more than 50 ms later" "$([ $later -gt 50 ] && echo yes)" yes
    stop "$from"
    stop "$to"
done
for name in redis-8.10.2 valkey-9.1.2; do
    from=$(free_port) to=$(free_port)
    start "$name" "$from" --cluster-enabled yes
    start "$name" "$to" --cluster-enabled yes
    join "$from" "$to"
    fill "$from"
    move_slot "$name" "$from" "$to" big
    expect "  slot migration: later by" "$(($(cli "$to" pexpiretime big) - time))" 0
    stop "$from"
    stop "$to"
done
