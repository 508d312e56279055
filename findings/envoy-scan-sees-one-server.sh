#!/usr/bin/env bash
# Expected: SCAN and KEYS through a proxy list the keys of all servers, or have an error.
# Seen: Envoy 1.40 sends each of them to one server, and SCAN ends there with cursor 0.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
one=$(free_port) two=$(free_port)
start redis-8.2.3 "$one"
start redis-8.2.3 "$two"
start_envoy
for i in $(seq 100); do cli "$envoy" pfadd "count$i" a >/dev/null; done
echo "keys: $(cli "$one" dbsize) and $(cli "$two" dbsize)"
all=$(($(cli "$one" dbsize) + $(cli "$two" dbsize)))
expect "keys on both servers" "$all" 100
seen=$(cli "$envoy" --scan | sort -u | wc -l)
expect "SCAN to the end lists one server's keys" \
    "$(for port in "$one" "$two"; do if [ "$(cli "$port" dbsize)" = "$seen" ]; then echo yes; fi; done | head -n 1)" yes
expect "KEYS lists as many" "$(cli "$envoy" keys '*' | wc -l)" "$seen"
expect "DBSIZE" "$(cli "$envoy" dbsize 2>&1 | cut -d ' ' -f 1-3)" "ERR unknown command"
