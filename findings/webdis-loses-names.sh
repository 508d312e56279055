#!/usr/bin/env bash
# Expected: a gateway to JSON passes on every part of a reply.
# Seen: Debian's webdis 0.1.9 returns null for a status reply inside an array. The field names of RedisBloom's
# BF.INFO are status replies, so the answer has numbers between nulls. Errors of commands come with the HTTP status
# 200.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom
debs webdis webdis=0.1.9+dfsg-1.1

port=$(free_port) web=$(free_port)
start redis-7.0.15 "$port" --loadmodule "$bloom"
cli "$port" bf.reserve filter 0.01 100 >/dev/null
cat >"$work/webdis.json" <<J
{"redis_host": "127.0.0.1", "redis_port": $port, "http_host": "127.0.0.1", "http_port": $web, "threads": 1,
 "pool_size": 1, "daemonize": false, "websockets": false, "database": 0, "verbosity": 0, "logfile": "$work/webdis.log"}
J
LD_LIBRARY_PATH="$(libraries webdis)" "$cache/webdis/usr/bin/webdis" "$work/webdis.json" &
process[webdis]=$!
cat >"$work/get.py" <<'P'
import sys, time, urllib.request
for _ in range(100):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{sys.argv[2]}") as reply:
            print(reply.status, reply.read().decode())
            break
    except OSError:
        time.sleep(0.1)
P
get() { python3 "$work/get.py" "$web" "$1"; }
expect "BF.ADD" "$(get BF.ADD/filter/x)" '200 {"BF.ADD":1}'
expect "BF.INFO by redis-cli" "$(cli "$port" bf.info filter | head -n 2 | xargs)" "Capacity 100"
expect "BF.INFO by webdis" "$(get BF.INFO/filter | cut -c -29)" '200 {"BF.INFO":[null,100,null'
expect "an error" "$(get BF.RESERVE/filter/0.01/100)" '200 {"BF.RESERVE":[false,"ERR item exists"]}'
