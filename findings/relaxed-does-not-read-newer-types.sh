#!/usr/bin/env bash
# Expected: with `rdb-version-check relaxed`, Valkey 9.1.2 reads files of newer Redis versions, or skips values that
# it cannot read.
# Seen: one hash with a time to live on a field (Redis 8.2.3 and 8.10.2), or one stream of Redis 8.10.2, prevents the
# whole file from loading, although Valkey has both types. An AOF of commands moves both to Valkey.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

fill() {
    cli "$1" set text x >/dev/null
    case $2 in
    hash)
        cli "$1" hset hash field x >/dev/null
        cli "$1" hexpire hash 100000 fields 1 field >/dev/null
        ;;
    stream) cli "$1" xadd stream '*' field x >/dev/null ;;
    esac
}
for name in redis-8.2.3 redis-8.10.2; do
    for kind in text hash stream; do
        port=$(free_port)
        start "$name" "$port" --appendonly yes --aof-use-rdb-preamble no
        fill "$port" $kind
        keys=$(cli "$port" dbsize)
        cli "$port" save >/dev/null
        stop "$port"
        program valkey-9.1.2
        # loads OPTION...: prints how many keys a server has that starts with the files of the other server.
        loads() {
            mkdir -p "$work/$port"
            $path --port "$port" --dir "$work/$port" --rdb-version-check relaxed --save "" "$@" \
                >"$work/$port/log" 2>&1 &
            process[$port]=$!
            for _ in $(seq 100); do
                if [ "$(cli "$port" ping 2>/dev/null)" = PONG ]; then break; fi
                if ! kill -0 "${process[$port]}" 2>/dev/null; then break; fi
                sleep 0.1
            done
            if [ "$(cli "$port" dbsize 2>/dev/null || true)" = "$keys" ]; then
                echo "all loaded"
            else
                echo "does not start"
            fi
        }
        wanted="all loaded"
        if [ $kind = hash ] || [ "$kind-$name" = stream-redis-8.10.2 ]; then wanted="does not start"; fi
        loads >"$work/result"
        expect "  RDB file with a $kind" "$(cat "$work/result")" "$wanted"
        grep -a "foreign type" "$work/$port/log" | sed 's/^.*# /  log: /' || true
        stop "$port"
        loads --appendonly yes >"$work/result"
        expect "  AOF of commands with it" "$(cat "$work/result")" "all loaded"
        stop "$port"
    done
done
