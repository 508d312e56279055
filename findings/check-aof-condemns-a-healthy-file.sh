#!/usr/bin/env bash
# Expected: valkey-check-aof calls a file valid that the server of the same version wrote and reads.
# Seen: Valkey 9.1.2's tool calls any AOF "not valid" after a rewrite, and advises --fix. It does not know the first
# bytes of Valkey's own RDB format, in which servers write the base of an AOF by default. The server loads the file
# without a message. The tool's --truncate-to-timestamp fails for the same reason. Redis' tools have neither fault.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for name in redis-7.0.15 redis-8.2.3 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port" --appendonly yes --aof-timestamp-enabled yes
    cli "$port" set one 1 >/dev/null
    cli "$port" bgrewriteaof >/dev/null
    for _ in $(seq 100); do
        if cli "$port" info persistence | grep -q aof_rewrite_in_progress:0 &&
            [ -e "$work/$port/appendonlydir/appendonly.aof.2.base.rdb" ]; then break; fi
        sleep 0.1
    done
    cli "$port" set two 2 >/dev/null
    cli "$port" shutdown >/dev/null 2>&1 || true
    # Server and tool are the same program, which acts by the name under which it is called.
    tool="${path##* }"
    check() {
        (
            if [ "$name" = redis-7.0.15 ]; then export LD_LIBRARY_PATH="$(libraries redis-7.0.15)"; fi
            exec -a "${name%%-*}-check-aof" "$tool" "$@" "$work/$port/appendonlydir/appendonly.aof.manifest"
        ) >"$work/check.log" 2>&1
    }
    result=0
    check || result=$?
    expect "  exit status of the check" "$result" "$([ $name = valkey-9.1.2 ] && echo 1 || echo 0)"
    grep -h 'valid' "$work/check.log" | tail -n 1 | sed 's/^/  /'
    result=0
    check --truncate-to-timestamp "$(($(date +%s) + 3600))" || result=$?
    expect "  of --truncate-to-timestamp" "$result" "$([ $name = valkey-9.1.2 ] && echo 1 || echo 0)"
    unset "process[$port]"
    start "$name" "$port" --appendonly yes
    expect "  keys that the server loads" "$(cli "$port" dbsize)" 2
    stop "$port"
done
