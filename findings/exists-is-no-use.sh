#!/usr/bin/env bash
# Expected: under `allkeys-lru` and `allkeys-lfu` a key that is asked for all the time stays longest.
# Seen: EXISTS is no use of the key. A deduplication key that is only asked by EXISTS looks as idle as a forgotten one,
# so eviction takes it as one. GET, SET with NX, SISMEMBER and BF.EXISTS of RedisBloom are uses.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

# idle PORT KEY COMMAND...: whether the command made an idle key used.
idle() {
    local port=$1 key=$2
    shift 2
    cli "$port" "$@" >/dev/null
    if [ "$(cli "$port" object idletime "$key")" -ge 3 ]; then echo "still idle"; else echo used; fi
}

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port" --maxmemory 1gb --maxmemory-policy allkeys-lru --loadmodule "$bloom"
    for key in a b c; do cli "$port" set $key 1; done >/dev/null
    cli "$port" sadd s x >/dev/null
    cli "$port" bf.add f x >/dev/null
    sleep 4
    expect "  EXISTS" "$(idle "$port" a exists a)" "still idle"
    expect "  GET" "$(idle "$port" b get b)" used
    expect "  SET with NX" "$(idle "$port" c set c 2 nx)" used
    expect "  SISMEMBER" "$(idle "$port" s sismember s x)" used
    expect "  BF.EXISTS" "$(idle "$port" f bf.exists f x)" used
    cli "$port" config set maxmemory-policy allkeys-lfu >/dev/null
    cli "$port" mset asked 1 got 1 >/dev/null
    for _ in $(seq 500); do printf 'exists asked\nget got\n'; done | cli "$port" >/dev/null
    asked=$(cli "$port" object freq asked) got=$(cli "$port" object freq got)
    expect "  500 EXISTS leave OBJECT FREQ at that of a new key, 500 GET raise it" \
        "$([ "$asked" -le 5 ] && [ "$got" -gt 5 ] && echo yes || echo "no: $asked, $got")" yes
    stop "$port"
done
