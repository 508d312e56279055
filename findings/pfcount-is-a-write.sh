#!/usr/bin/env bash
# Expected: PFCOUNT is a read: its flag is `readonly`, and users who may only read keys may call it.
# Seen: it stores the count in the key. The first PFCOUNT after a change aborts transactions of clients that watch the
# key. On Redis 8.10.2 it makes the key the newest for `allkeys-lrm`. Even users with read permission only (%R~*)
# cause this write.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port"
    cli "$port" acl setuser reader on nopass '%R~*' +@read +auth >/dev/null
    cli "$port" pfadd counter a b c >/dev/null
    cli "$port" pfadd counter d >/dev/null
    expect "  flags" "$(cli "$port" command info pfcount | grep -c '^readonly$')" 1
    # transaction: prints the reply of EXEC to a client that watches the key while the reader counts.
    transaction() {
        coproc watcher { cli "$port"; }
        local in=${watcher[1]} out=${watcher[0]} line
        echo "watch counter" >&"$in"
        read -r line <&"$out"
        cli "$port" --user reader --pass x --no-auth-warning pfcount counter >/dev/null
        printf 'multi\nping\nexec\n' >&"$in"
        for _ in 1 2 3; do read -r line <&"$out"; done
        echo "${line:-aborted}"
        eval "exec $in>&-"
        wait "$watcher_PID" || true
    }
    expect "  transaction beside the first PFCOUNT" "$(transaction)" aborted
    expect "  transaction beside the second" "$(transaction)" PONG
    dump=$(cli "$port" dump counter | md5sum)
    cli "$port" pfadd counter e >/dev/null
    added=$(cli "$port" dump counter | md5sum)
    cli "$port" --user reader --pass x --no-auth-warning pfcount counter >/dev/null
    counted=$(cli "$port" dump counter | md5sum)
    expect "  DUMP changed by the reader's PFCOUNT" "$([ "$added" != "$counted" ] && echo yes)" yes
    stop "$port"
done
port=$(free_port)
start redis-8.10.2 "$port" --maxmemory 1gb --maxmemory-policy allkeys-lrm
cli "$port" pfadd counter a b c >/dev/null
sleep 4
cli "$port" pfcount counter >/dev/null
expect "  idle for allkeys-lrm after PFCOUNT" "$([ "$(cli "$port" object idletime counter)" -le 1 ] && echo no)" no
