#!/usr/bin/env bash
# Expected: a proxy answers a command with keys of several servers completely, or with an error.
# Seen: Envoy 1.40 and nutcracker 0.5.0 send PFCOUNT, PFMERGE, SINTER and SDIFF to the server of the first key. The
# other keys are missing there, which is no error: PFCOUNT of two counters counts the first, SDIFF removes nothing,
# SINTER is empty, and PFMERGE leaves a counter out. EXISTS asks all servers in Envoy, and one in nutcracker.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
one=$(free_port) two=$(free_port)
start redis-8.2.3 "$one"
start redis-8.2.3 "$two"
start_envoy
start_nutcracker
for proxy in envoy nutcracker; do
    for port in "$one" "$two"; do cli "$port" flushall >/dev/null; done
    through=${!proxy}
    if [ "$proxy" = envoy ]; then exists=2; else exists=1; fi
    for i in $(seq 20); do
        cli "$through" pfadd "count$i" "a$i" "b$i" "c$i" >/dev/null
        cli "$through" sadd "set$i" a b c >/dev/null
    done
    here=() there=()
    for i in $(seq 20); do
        if [ "$(cli "$one" exists "count$i")" = 1 ]; then here+=("count$i"); else there+=("count$i"); fi
    done
    a=${here[0]} b=${there[0]}
    expect "$proxy, PFCOUNT of two keys of one server" "$(cli "$through" pfcount "$a" "${here[1]}")" 6
    expect "$proxy, PFCOUNT of keys of two servers" "$(cli "$through" pfcount "$a" "$b")" 3
    expect "$proxy, PFMERGE of two into one more of the first server" \
        "$(cli "$through" pfmerge "${here[2]}" "${here[1]}" "$b") $(cli "$through" pfcount "${here[2]}")" "OK 6"
    expect "$proxy, EXISTS of keys of two servers" "$(cli "$through" exists "$a" "$b")" "$exists"
    here=() there=()
    for i in $(seq 20); do
        if [ "$(cli "$one" exists "set$i")" = 1 ]; then here+=("set$i"); else there+=("set$i"); fi
    done
    a=${here[0]} b=${there[0]}
    expect "$proxy, SINTER of equal sets" "$(cli "$through" sinter "$a" "$b")" ""
    expect "$proxy, SDIFF of equal sets" "$(cli "$through" sdiff "$a" "$b" | sort | paste -sd ' ')" "a b c"
done
