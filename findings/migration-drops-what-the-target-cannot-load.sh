#!/usr/bin/env bash
# Expected: slots do not move to a node that lacks the module of their values, or the migration fails.
# Seen: on Redis 8.10.2, CLUSTER MIGRATION ends as completed with an empty last_error. The other keys of the slot have
# moved, but the module's value is on neither node. `redis-cli --cluster reshard` of 8.10.2 uses this command, and
# exits with 0. Valkey 9.1.2 refuses to migrate any slot while such a module is loaded, even if no key has a value of
# it.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
redisbloom

from=$(free_port) to=$(free_port)
start redis-8.10.2 "$from" --cluster-enabled yes --loadmodule "$bloom"
start redis-8.10.2 "$to" --cluster-enabled yes
join "$from" "$to"
cli "$from" bf.add "{06S}filter" x >/dev/null
cli "$from" set "{06S}text" x >/dev/null
program redis-8.10.2 redis-cli
result=0
# The key {06S} is in slot 0.
$path --cluster reshard "127.0.0.1:$from" --cluster-from "$(cli "$from" cluster myid)" \
    --cluster-to "$(cli "$to" cluster myid)" --cluster-slots 1 --cluster-yes >"$work/reshard.log" 2>&1 || result=$?
expect "  exit status of reshard" "$result" 0
sleep 1
status() { cli "$to" cluster migration status all | grep -A 1 "^$1\$" | sed -n 2p; }
expect "  state" "$(status state)" completed
expect "  last_error" "$(status last_error)" ""
expect "  keys at the source" "$(cli "$from" dbsize)" 0
expect "  keys at the target" "$(cli "$to" keys '*')" "{06S}text"
stop "$from"
stop "$to"

from=$(free_port) to=$(free_port)
start valkey-9.1.2 "$from" --cluster-enabled yes --loadmodule "$bloom"
start valkey-9.1.2 "$to" --cluster-enabled yes --loadmodule "$bloom"
join "$from" "$to"
reply=$(cli "$from" cluster migrateslots slotsrange 0 0 node "$(cli "$to" cluster myid)" 2>&1)
echo "  $reply"
expect "  MIGRATESLOTS of an empty slot is refused" "$(grep -ci module <<<"$reply")" 1
