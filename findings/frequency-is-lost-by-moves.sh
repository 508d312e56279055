#!/usr/bin/env bash
# Expected: a renamed or moved value keeps its access frequency, as it keeps its time to live.
# Seen: RENAME keeps OBJECT FREQ on Redis 7.0.15. On 8.2.3, 8.10.2 and Valkey 9.1.2 it resets the frequency to that of
# a new key. Slot migration resets it too, and replicas do not learn of reads on their primary. Under `allkeys-lfu`,
# the hottest key may therefore be evicted first after a RENAME, a slot migration or a failover.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

# heat PORT KEY: reads a key until its access frequency is high.
heat() {
    cli "$1" set "$2" value >/dev/null
    while [ "$(cli "$1" object freq "$2")" -lt 20 ]; do
        for _ in $(seq 500); do echo "get $2"; done | cli "$1" >/dev/null
    done
}
# kept PORT KEY: prints whether the frequency is higher than that of a new key.
kept() {
    if [ "$(cli "$1" object freq "$2")" -ge 15 ]; then echo kept; else echo reset; fi
}
lfu=(--maxmemory 1gb --maxmemory-policy allkeys-lfu)
for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port" "${lfu[@]}"
    heat "$port" next
    cli "$port" rename next current >/dev/null
    wanted=$([ $name = redis-7.0.15 ] && echo kept || echo reset)
    expect "  OBJECT FREQ after RENAME" "$(kept "$port" current)" "$wanted"
    stop "$port"
done
for name in redis-8.10.2 valkey-9.1.2; do
    from=$(free_port) to=$(free_port)
    start "$name" "$from" "${lfu[@]}" --cluster-enabled yes
    start "$name" "$to" "${lfu[@]}" --cluster-enabled yes
    join "$from" "$to"
    heat "$from" hot
    move_slot "$name" "$from" "$to" hot
    expect "  OBJECT FREQ after a slot migration" "$(kept "$to" hot)" reset
    stop "$from"
    stop "$to"
done
for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    primary=$(free_port) replica=$(free_port)
    start "$name" "$primary" "${lfu[@]}"
    start "$name" "$replica" "${lfu[@]}" --replicaof "127.0.0.1 $primary"
    for _ in $(seq 300); do
        if cli "$replica" info replication | grep -q master_link_status:up; then break; fi
        sleep 0.1
    done
    heat "$primary" hot
    cli "$primary" wait 1 5000 >/dev/null
    cli "$replica" replicaof no one >/dev/null
    expect "  OBJECT FREQ on the primary" "$(kept "$primary" hot)" kept
    expect "  OBJECT FREQ on the promoted replica" "$(kept "$replica" hot)" reset
    stop "$primary"
    stop "$replica"
done
