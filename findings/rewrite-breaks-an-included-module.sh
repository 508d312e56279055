#!/usr/bin/env bash
# Expected: a server can start with a configuration file that it wrote itself.
# Seen: if an included file has the `loadmodule` line, CONFIG REWRITE keeps the `include` and also writes a second
# `loadmodule` line. The next start loads the module twice and fails. The reply to CONFIG REWRITE is OK, and the
# server keeps running. Sentinel causes such a rewrite at each failover.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    file="$work/server.conf"
    echo "loadmodule $bloom" >"$work/modules.conf"
    echo "include $work/modules.conf" >"$file"
    start "$name" "$port"
    expect "  CONFIG REWRITE" "$(cli "$port" config rewrite)" OK
    words=$(awk '$1 ~ /include|loadmodule/ {print $1}' "$file" | xargs)
    expect "  words that load modules in the file" "$words" "include loadmodule"
    stop "$port"
    result=0
    timeout 30 $path "$file" --port "$port" --dir "$work/$port" >"$work/$port/log" 2>&1 || result=$?
    expect "  exit status of the next start" "$result" 1
    grep -a "Can't load module" "$work/$port/log" | sed 's/.*Can.t load module.*: /  log: can not load the module: /'
done
