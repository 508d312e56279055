#!/usr/bin/env bash
# Expected: moving a slot sends no keyspace notifications, or one for each key on each node.
# Seen: the target publishes `set` and `expire` for arriving keys, as if clients had written them, and the source
# publishes nothing. For a set, the event is `sadd` on Valkey 9.1.2 and `restore` on Redis 8.10.2. Programs that
# count such events count each key of the slot again.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for name in redis-8.10.2 valkey-9.1.2; do
    from=$(free_port) to=$(free_port)
    start "$name" "$from" --cluster-enabled yes --notify-keyspace-events AKE
    start "$name" "$to" --cluster-enabled yes --notify-keyspace-events AKE
    join "$from" "$to"
    cli "$from" set "{06S}text" x ex 1000 >/dev/null
    cli "$from" sadd "{06S}set" x >/dev/null
    for port in "$from" "$to"; do
        touch "$work/events-$port"
        (cli "$port" psubscribe '__keyevent@*' || true) >"$work/events-$port" 2>/dev/null &
        process[events-$port]=$!
        for _ in $(seq 100); do
            if grep -q psubscribe "$work/events-$port"; then break; fi
            sleep 0.1
        done
    done
    if [ "$name" = redis-8.10.2 ]; then
        cli "$to" cluster migration import 0 0 >/dev/null
    else
        cli "$from" cluster migrateslots slotsrange 0 0 node "$(cli "$to" cluster myid)" >/dev/null
    fi
    for _ in $(seq 100); do
        if [ "$(cli "$to" exists "{06S}text")" = 1 ]; then break; fi
        sleep 0.1
    done
    sleep 1
    events() { grep -a -o '^__keyevent@0__:.*' "$work/events-$1" | sed 's/.*://' | sort -u | xargs || true; }
    expect "  events of the source" "$(events "$from")" ""
    wanted=$([ $name = redis-8.10.2 ] && echo expire restore set || echo expire sadd set)
    expect "  events of the target" "$(events "$to")" "$wanted"
    stop "events-$from"
    stop "events-$to"
    stop "$from"
    stop "$to"
done
