#!/usr/bin/env bash
# Expected: with `rename-command CONFIG ""`, a usual way to harden servers, Sentinel cannot rewrite their files, and
# fails over all the same.
# Seen: Sentinel sends SLAVEOF NO ONE and CONFIG REWRITE in one transaction, which the unknown command aborts. The
# replica is chosen and never promoted, on all servers. SENTINEL FAILOVER replies OK, and SENTINEL CKQUORUM too. If
# CONFIG has another name, `sentinel rename-command` helps.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

# failover NAME OPTION...: prints what a replica is after SENTINEL FAILOVER.
failover() {
    local name=$1 primary replica sentinel
    shift
    primary=$(free_port) replica=$(free_port) sentinel=$(free_port)
    start "$name" "$primary" "$@" >/dev/null
    start "$name" "$replica" --replicaof 127.0.0.1 "$primary" "$@" >/dev/null
    program "$name"
    {
        echo "port $sentinel"
        echo "sentinel monitor pair 127.0.0.1 $primary 1"
        echo "sentinel down-after-milliseconds pair 1000"
        echo "sentinel failover-timeout pair 10000"
        if [ "${2:-}" = CONFIG ] && [ -n "$3" ]; then echo "sentinel rename-command pair CONFIG $3"; fi
    } >"$work/sentinel.conf"
    $path "$work/sentinel.conf" --sentinel --dir "$work" >"$work/sentinel.log" 2>&1 &
    process[$sentinel]=$!
    for _ in $(seq 150); do
        if cli "$sentinel" sentinel replicas pair 2>/dev/null | grep -qx "ok"; then break; fi
        sleep 0.2
    done
    echo "$(cli "$sentinel" sentinel ckquorum pair | cut -d ' ' -f 1) $(cli "$sentinel" sentinel failover pair)"
    for _ in $(seq 300); do
        if [ "$(cli "$replica" role | head -n 1)" = master ]; then break; fi
        if grep -q -e "-failover-abort" "$work/sentinel.log"; then break; fi
        sleep 0.2
    done
    cli "$replica" role | head -n 1
    grep -o -e "[+-]failover-abort[a-z-]*" "$work/sentinel.log" | tail -n 1 || true
    for port in "$sentinel" "$primary" "$replica"; do stop "$port"; done
}
for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    program redis-7.0.15
    program "$name"
    echo "== $name: $($path --version | head -n 1)"
    expect "  without renaming" "$(failover "$name" | paste -sd ' ')" "OK OK master"
    expect "  CONFIG renamed to nothing" "$(failover "$name" --rename-command CONFIG "" | paste -sd ' ')" \
        "OK OK slave -failover-abort-slave-timeout"
    expect "  CONFIG renamed to secret, and Sentinel told so" \
        "$(failover "$name" --rename-command CONFIG secret | paste -sd ' ')" "OK OK master"
done
