#!/usr/bin/env bash
# Expected: CONFIG REWRITE keeps lines whose options have not changed.
# Seen: a `loadmodule` line that was added for the next start is deleted if the module is not loaded yet. Sentinel
# also rewrites the file, at each failover.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    file="$work/server.conf"
    echo "maxmemory 200mb" >"$file"
    start "$name" "$port"
    printf 'loadmodule %s\nappendfsync always\n' "$bloom" >>"$file"
    cli "$port" config rewrite >/dev/null
    expect "  lines with loadmodule after CONFIG REWRITE" "$(grep -c '^loadmodule' "$file" || true)" 0
    # An option that was added by hand is reset to the server's present value.
    expect "  lines with appendfsync always" "$(grep -c '^appendfsync always' "$file" || true)" 0
    stop "$port"
done
