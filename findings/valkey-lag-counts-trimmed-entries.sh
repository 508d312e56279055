#!/usr/bin/env bash
# Expected: `lag` of XINFO GROUPS is the number of entries that the group has yet to read, or null if some of them were
# deleted or trimmed. So say the documents of Redis and Valkey.
# Seen: Valkey 9.1.2 and Redis 7.0.15 count trimmed entries, also those of XADD MAXLEN, and if all entries are deleted,
# those too. A stream of 3 entries has a lag of 9, and an empty one too: alerts and autoscalers wait for entries that
# nobody can read. On Valkey the lag is right again when the group has read a later entry, on 7.0.15 it is not. Take the
# smaller one of `lag` and XLEN. Redis 8.2.3 and 8.10.2 give the right number.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

lag() { cli "$port" xinfo groups events | grep -A 1 '^lag$' | tail -n 1; }
read_group() {
    cli "$port" xreadgroup group workers worker count "$1" streams events '>' | grep -c '^[0-9]*-0$' || true
}

for server in redis-7.0.15 valkey-9.1.2 redis-8.2.3 redis-8.10.2; do
    port=$(free_port)
    start "$server" "$port"
    after_trim=9 after_add=10 after_read=0
    case $server in
    redis-8*) after_trim=0 after_add=1 ;;
    redis-7.0.15) after_read=9 ;;
    esac
    cli "$port" xgroup create events workers 0 mkstream >/dev/null
    for id in 1 2 3 4 5 6 7 8 9 10; do cli "$port" xadd events "$id-0" name value >/dev/null; done
    expect "entries read" "$(read_group 2)" 2
    expect "lag of the 8 others" "$(lag)" 8
    cli "$port" xadd events maxlen 3 11-0 name value >/dev/null
    expect "length after XADD MAXLEN 3" "$(cli "$port" xlen events)" 3
    case $server in
    redis-8*) expect "lag" "$(lag)" 3 ;;
    *) expect "lag, instead of 3 or null" "$(lag)" 9 ;;
    esac
    cli "$port" xtrim events maxlen 0 >/dev/null
    expect "length, lag and entries to read after XTRIM MAXLEN 0" "$(cli "$port" xlen events) $(lag) $(read_group 10)" \
        "0 $after_trim 0"
    cli "$port" xadd events 12-0 name value >/dev/null
    expect "length and lag after one more entry" "$(cli "$port" xlen events) $(lag)" "1 $after_add"
    expect "entries read, and the lag" "$(read_group 10) $(lag)" "1 $after_read"
    for id in 13 14 15; do cli "$port" xadd events "$id-0" name value >/dev/null; done
    cli "$port" xdel events 12-0 13-0 14-0 15-0 >/dev/null
    case $server in
    redis-8*) expect "length and lag after XDEL of all" "$(cli "$port" xlen events) $(lag)" "0 0" ;;
    *) expect "length and lag after XDEL of all" "$(cli "$port" xlen events) $(lag)" "0 $((after_read + 3))" ;;
    esac
    stop "$port"
done
