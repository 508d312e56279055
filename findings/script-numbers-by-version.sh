#!/usr/bin/env bash
# Expected: a Lua script that adds a number to a set adds the same member on every server.
# Seen: Redis 7.0.15 writes numbers with 17 digits, later servers with the fewest digits. After an upgrade, the same
# script adds a second member for the same value. On all servers, `tostring(n)` and `..` round to 14 digits, so
# different ids of 15 digits or more become equal. A number passed to redis.call stays exact up to 2^53.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port"
    members() {
        cli "$port" del members >/dev/null
        for number; do cli "$port" eval "redis.call('SADD', KEYS[1], $number)" 1 members >/dev/null; done
        cli "$port" smembers members | sort | xargs
    }
    if [ "$name" = redis-7.0.15 ]; then
        expect "  0.1" "$(members 0.1)" 0.10000000000000001
        expect "  1e17" "$(members 1e17)" 1e+17
        expect "  123456789012345678" "$(members 123456789012345678)" 1.2345678901234568e+17
        expect "  0 * -1" "$(members "0 * -1")" -0
    else
        expect "  0.1" "$(members 0.1)" 0.1
        expect "  1e17" "$(members 1e17)" 100000000000000000
        expect "  123456789012345678" "$(members 123456789012345678)" 123456789012345680
        expect "  0 * -1" "$(members "0 * -1")" 0
    fi
    expect "  two ids of 16 digits" "$(members 1234567890123456 1234567890123457)" "1234567890123456 1234567890123457"
    expect "  the same ids by .." "$(members "'' .. 1234567890123456" "'' .. 1234567890123457")" 1.2345678901235e+15
    stop "$port"
done
