#!/usr/bin/env bash
# Expected: equal DEBUG DIGEST of a primary and a replica, or of two servers after a migration, means equal data.
# Seen: a module decides which data of its values enters the digest. RedisBloom 2.8.2 adds none, so all its filters
# have the same digest, whatever their size and items.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port" --enable-debug-command yes --loadmodule "$bloom"
    cli "$port" bf.reserve one 0.01 100 >/dev/null
    cli "$port" bf.reserve two 0.0001 5000 >/dev/null
    cli "$port" bf.madd two a b c >/dev/null
    expect "  different digests of two filters" "$(cli "$port" debug digest-value one two | sort -u | wc -l)" 1
    before=$(cli "$port" debug digest)
    cli "$port" bf.madd one x y z >/dev/null
    expect "  DEBUG DIGEST after three more items" \
        "$([ "$(cli "$port" debug digest)" = "$before" ] && echo unchanged)" unchanged
    cli "$port" sadd set x >/dev/null
    expect "  and after one member more of a set" \
        "$([ "$(cli "$port" debug digest)" = "$before" ] || echo changed)" changed
    stop "$port"
done
