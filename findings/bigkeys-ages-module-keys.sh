#!/usr/bin/env bash
# Expected: `redis-cli --bigkeys` only looks, as `--memkeys` does.
# Seen: it is a use of every key but those of modules, because their type has no command for its length. Under
# `allkeys-lru` all idle times become 0 and those of module keys stay, so the next keys to be evicted are the module's.
# `--keystats` of redis-cli 8.10.2 does the same.
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
    # looked: which keys are idle still after a tool has looked.
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
