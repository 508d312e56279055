#!/usr/bin/env bash
# Expected: under `allkeys-lrm` (least recently modified, Redis 8.6), a command that changes nothing does not count as
# a modification.
# Seen: for values of a module, opening the key for writing counts as one, unless the module opts out of implicit
# signals. With RedisBloom, adding a known item makes the key the newest, and so does a command that fails. SADD of a
# known member and SET with NX do not count. HSET of an equal value and PERSIST do.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

port=$(free_port)
start redis-8.10.2 "$port" --maxmemory 1gb --maxmemory-policy allkeys-lrm --loadmodule "$bloom"
create() {
    cli "$port" flushall >/dev/null
    cli "$port" bf.reserve filter 0.01 100 >/dev/null
    cli "$port" bf.add filter x >/dev/null
    cli "$port" sadd set x >/dev/null
    cli "$port" set text x ex 1000 >/dev/null
    cli "$port" hset hash x 1 >/dev/null
    sleep 4
}
modified() {
    local key=$1 reply
    shift
    reply=$(cli "$port" "$@")
    echo "reply '$reply', $([ "$(cli "$port" object idletime "$key")" -le 1 ] && echo newest || echo old)"
}
create
expect "  BF.EXISTS" "$(modified filter bf.exists filter x)" "reply '1', old"
expect "  BF.ADD of an item that is there" "$(modified filter bf.add filter x)" "reply '0', newest"
expect "  SADD of a member that is there" "$(modified set sadd set x)" "reply '0', old"
expect "  SET with NX" "$(modified text set text y nx)" "reply '', old"
expect "  HSET of an equal value" "$(modified hash hset hash x 1)" "reply '0', newest"
create
expect "  BF.RESERVE of a filter that is there" "$(modified filter bf.reserve filter 0.01 100)" \
    "reply 'ERR item exists', newest"
expect "  PERSIST" "$(modified text persist text)" "reply '1', newest"
