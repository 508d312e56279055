#!/usr/bin/env bash
# Expected: under `allkeys-lru` and `allkeys-lfu`, keys that are read all the time stay longest.
# Seen: EXISTS does not count as a use of the key. A deduplication key that is read only by EXISTS looks as idle as a
# forgotten one, so it is evicted. GET, SET with NX, SISMEMBER and RedisBloom's BF.EXISTS count as uses.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

# idle PORT KEY COMMAND...: prints whether the command makes an idle key look used.
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

    # 40 keys are read by EXISTS, and 40 by GET. Then a memory limit that is 200 kB too low makes the server evict
    # some.
    cli "$port" flushall >/dev/null
    cli "$port" config set maxmemory-policy allkeys-lru maxmemory-samples 64 >/dev/null
    value=$(printf '%010000d' 0)
    for key in $(seq 40); do printf 'set asked%s %s\nset got%s %s\n' "$key" "$value" "$key" "$value"; done |
        cli "$port" >/dev/null
    sleep 4
    for key in $(seq 40); do printf 'exists asked%s\nget got%s\n' "$key" "$key"; done | cli "$port" >/dev/null
    used=$(cli "$port" info memory | tr -d '\r' | sed -n 's/^used_memory://p')
    cli "$port" config set maxmemory $((used - 200000)) >/dev/null
    for _ in $(seq 100); do
        evicted=$(cli "$port" info stats | tr -d '\r' | sed -n 's/^evicted_keys://p')
        if [ "$evicted" -ge 10 ]; then break; fi
        sleep 0.1
    done
    expect "  evicted of those that GET asks for" "$((40 - $(cli "$port" keys 'got*' | grep -c got)))" 0
    expect "  evicted of those that EXISTS asks for" \
        "$([ "$(cli "$port" keys 'asked*' | grep -c asked)" -lt 32 ] && echo many)" many
    stop "$port"
done
