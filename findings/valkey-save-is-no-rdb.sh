#!/usr/bin/env bash
# Expected: the file of SAVE and the file of `redis-cli --rdb` are the same format, so that both or neither of them load
# elsewhere.
# Seen: SAVE of Valkey 9.1.2 writes VALKEY080, which no Redis loads. `--rdb` from the same server writes REDIS0011,
# which Redis 8.2.3 and 8.10.2 load (7.0.15 does not).
set -euo pipefail
. "$(dirname "$0")/servers.sh"

primary=$(free_port)
start valkey-9.1.2 "$primary"
cli "$primary" pfadd counter a b c >/dev/null
cli "$primary" save >/dev/null
cli "$primary" --rdb "$work/remote.rdb" >/dev/null 2>&1
cp "$work/$primary/dump.rdb" "$work/saved.rdb"
expect "SAVE begins with" "$(head -c 9 "$work/saved.rdb")" VALKEY080
expect "--rdb begins with" "$(head -c 9 "$work/remote.rdb")" REDIS0011

# loads NAME FILE: prints the count after a start with a file, or the server's last words.
loads() {
    local port
    port=$(free_port)
    mkdir "$work/$port"
    cp "$work/$2" "$work/$port/dump.rdb"
    if (trap - EXIT; start "$1" "$port" >/dev/null 2>&1 && cli "$port" pfcount counter && cli "$port" shutdown nosave) \
        2>/dev/null; then
        return
    fi
    grep -o -e "Wrong signature" -e "Can't handle RDB format version [0-9]*" "$work/$port/log" | head -n 1
}
for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    program "$name"
    echo "== $name: $($path --version | head -n 1)"
    saved=$(loads "$name" saved.rdb) remote=$(loads "$name" remote.rdb)
    case $name in
    redis-7.0.15) wanted="Wrong signature, Can't handle RDB format version 11" ;;
    valkey-9.1.2) wanted="3, 3" ;;
    *) wanted="Wrong signature, 3" ;;
    esac
    expect "  SAVE, --rdb" "$saved, $remote" "$wanted"
done
