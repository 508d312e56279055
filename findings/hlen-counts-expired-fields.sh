#!/usr/bin/env bash
# Expected: HLEN "returns the number of fields contained in the hash". A hash whose fields expire then counts who was
# seen in the last hour.
# Seen: HLEN counts expired fields until the server has removed them, while HKEYS leaves them out. After 200,000 fields
# have expired at once, HLEN is too large for some 2 seconds on Redis 8.2.3 and 8.10.2, and for 15 on Valkey 9.1.2.
# EXISTS finds a hash that has only expired fields. A replica without its primary still counts them after 2 seconds.
# Count the reply of HKEYS, or use a sorted set and ZCOUNT.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for name in redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port) replica=$(free_port)
    start "$name" "$port"
    start "$name" "$replica" --replicaof "127.0.0.1 $port" --repl-timeout 600
    for _ in $(seq 300); do
        if cli "$replica" info replication | grep -q master_link_status:up; then break; fi
        sleep 0.1
    done
    cli "$port" hset few here 1 >/dev/null
    cli "$port" hsetex few px 20000 fields 2 gone 1 gone-too 1 >/dev/null
    for _ in $(seq 40); do
        if [ "$(cli "$replica" hlen few)" = 3 ]; then break; fi
        sleep 0.1
    done
    kill -STOP "${process[$port]}"
    sleep 22
    expect "  2 seconds after two of three fields expired, HKEYS of a replica without its primary" \
        "$(cli "$replica" hkeys few)" here
    expect "  HLEN" "$(cli "$replica" hlen few)" 3
    kill -CONT "${process[$port]}"
    stop "$replica"

    ends=$(($(date +%s%3N) + 20000))
    awk -v ends=$ends 'BEGIN {
        for (i = 0; i < 1000; i++) {
            printf "hsetex seen pxat %s fields 200", ends
            for (j = 0; j < 200; j++) printf " user:%d:%d 1", i, j
            print ""
        }
    }' | cli "$port" --pipe >/dev/null
    expect "  fields before they expire" "$(cli "$port" hlen seen)" 200000
    while [ "$(date +%s%3N)" -le "$ends" ]; do sleep 0.05; done
    left=$(cli "$port" hlen seen) exists=$(cli "$port" exists seen)
    named=$(cli "$port" hkeys seen | grep -c user || true)
    echo "  HLEN after all have expired: $left"
    expect "  HLEN above 0" "$((left > 0))" 1
    expect "  HKEYS and EXISTS" "$named $exists" "0 1"
    for _ in $(seq 1200); do
        if [ "$(cli "$port" exists seen)" = 0 ]; then break; fi
        sleep 0.1
    done
    took=$(($(date +%s%3N) - ends))
    echo "  milliseconds until HLEN was 0: $took"
    expect "  more than a second" "$((took > 1000))" 1
    stop "$port"
done
