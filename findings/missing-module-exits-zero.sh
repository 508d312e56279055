#!/usr/bin/env bash
# Expected: a server that cannot load its data ends with an error status, as it does for a damaged file.
# Seen: if the file has a value of a module that is not loaded, the server ends with status 0, and its log ends by
# calling the file OK. systemd's Restart=on-failure and scripts with `set -e` take this for a success.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port" --loadmodule "$bloom"
    cli "$port" bf.add filter x >/dev/null
    cli "$port" save >/dev/null
    stop "$port"
    # status: prints the exit status of a server that starts on the file, and how often its log calls the file OK.
    status() {
        local result=0
        timeout 30 $path --port "$port" --dir "$work/$port" --save "" "$@" >"$work/$port/log" 2>&1 || result=$?
        echo "$result"
    }
    expect "  without the module" "$(status)" 0
    grep "can't load" "$work/$port/log" | sed 's/.*can.t load/  log: ... can not load/' | head -n 1
    expect "  last words say that the file is fine" "$(grep -ciE 'RDB looks OK' "$work/$port/log")" 1
    python3 - "$work/$port/dump.rdb" <<'P'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-1] ^= 1  # of the checksum
open(sys.argv[1], "wb").write(data)
P
    expect "  with it, and another checksum" "$(status --loadmodule "$bloom")" 1
done
