#!/usr/bin/env bash
# Expected: an exporter of metrics only reads.
# Seen: with `-check-keys`, Debian's prometheus-redis-exporter 1.45.0 asks for the size of each string by PFCOUNT. If
# a HyperLogLog has changed since its last count, PFCOUNT writes to it: the write goes to the AOF and to replicas, and
# aborts transactions that watch the key. For any other string it counts an error in `INFO errorstats`. The scrape
# counts as a use of every key except module keys, which get no metric either.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom
debs exporter prometheus-redis-exporter=1.45.0-2+b4
exporter="$cache/exporter/usr/bin/prometheus-redis-exporter"

for name in redis-7.0.15 valkey-9.1.2; do
    port=$(free_port) web=$(free_port)
    start "$name" "$port" --maxmemory 1gb --maxmemory-policy allkeys-lru --appendonly yes --loadmodule "$bloom"
    cli "$port" pfadd counter a b c >/dev/null
    cli "$port" set text hello >/dev/null
    cli "$port" sadd set 1 2 3 >/dev/null
    cli "$port" bf.add filter x >/dev/null
    sleep 4
    cli "$port" config resetstat >/dev/null
    changes() { cli "$port" info persistence | tr -d '\r' | sed -n 's/rdb_changes_since_last_save://p'; }
    before=$(changes)
    $exporter -redis.addr "redis://127.0.0.1:$port" -web.listen-address "127.0.0.1:$web" -check-keys '*' \
        >"$work/exporter.log" 2>&1 &
    process[exporter]=$!
    for _ in $(seq 100); do
        if python3 - "$web" >"$work/metrics" 2>/dev/null <<'P'
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode())
P
        then break; fi
        sleep 0.1
    done
    expect "  keys with a size" "$(grep '^redis_key_size' "$work/metrics" | sed 's/.*key="\(.*\)"}/\1/' | xargs)" \
        "counter 3 set 3 text 5"
    expect "  changes of data by the first scrape" "$(($(changes) - before))" 1
    expect "  PFCOUNT in the AOF" "$(grep -aic pfcount "$work/$port/appendonlydir/"*.incr.aof)" 1
    expect "  errors" "$(cli "$port" info errorstats | tr -d '\r' | grep WRONGTYPE)" "errorstat_WRONGTYPE:count=1"
    idle=""
    for key in counter text set filter; do
        if [ "$(cli "$port" object idletime $key)" -ge 3 ]; then idle="$idle $key"; fi
    done
    expect "  keys still idle" "$idle" " filter"
    stop exporter
    stop "$port"
done
