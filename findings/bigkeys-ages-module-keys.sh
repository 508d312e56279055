#!/usr/bin/env bash
# Expected: `redis-cli --bigkeys` only looks at keys, as `--memkeys` does.
# Seen: it counts as a use of every key except module keys, because it has no command for their length. Under
# `allkeys-lru` all other keys then look recently used, so the module's keys are evicted next. `--keystats` of
# redis-cli 8.10.2 does the same.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom
program redis-8.10.2 redis-cli
newer_cli=$path

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port" --maxmemory 1gb --maxmemory-policy allkeys-lru --loadmodule "$bloom"
    cli "$port" sadd set x >/dev/null
    cli "$port" bf.add filter x >/dev/null
    # looked: prints which keys still look idle after a tool has run.
    looked() {
        local idle=""
        for key in set filter; do
            if [ "$(cli "$port" object idletime $key)" -ge 3 ]; then idle="$idle $key"; fi
        done
        echo "idle:$idle"
    }
    sleep 4
    cli "$port" --memkeys >/dev/null
    expect "  after --memkeys of 7.0.15" "$(looked)" "idle: set filter"
    cli "$port" --bigkeys >/dev/null
    expect "  after --bigkeys of 7.0.15" "$(looked)" "idle: filter"
    sleep 4
    $newer_cli -p "$port" --keystats >/dev/null
    expect "  after --keystats of 8.10.2" "$(looked)" "idle: filter"
    stop "$port"
done
