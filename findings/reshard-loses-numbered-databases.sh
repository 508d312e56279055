#!/usr/bin/env bash
# Expected: a resharding tool that does not know numbered databases in clusters fails before it moves anything.
# Seen: on Valkey 9.1.2 with `cluster-databases`, redis-cli 7.0.15 and 8.10.2 move the keys of database 0, then give
# the slot to the target. The source deletes the slot's keys in its other databases, so they are on neither node. The
# exit status is 1 or 0, depending on when the source learns of the new owner. `--cluster check` reports no problem
# afterwards.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for tool in redis-7.0.15 redis-8.10.2; do
    from=$(free_port) to=$(free_port)
    start valkey-9.1.2 "$from" --cluster-enabled yes --cluster-databases 16
    start valkey-9.1.2 "$to" --cluster-enabled yes --cluster-databases 16
    join "$from" "$to"
    expect "  slot of the keys" "$(cli "$from" cluster keyslot '{06S}')" 0
    for key in 1 2 3; do
        cli "$from" set "{06S}$key" x >/dev/null
        cli "$from" -n 3 set "{06S}$key" x >/dev/null
    done
    program "$tool" redis-cli
    result=0
    $path --cluster reshard "127.0.0.1:$from" --cluster-from "$(cli "$from" cluster myid)" \
        --cluster-to "$(cli "$to" cluster myid)" --cluster-slots 1 --cluster-yes >"$work/reshard.log" 2>&1 || result=$?
    echo "  exit status of reshard by redis-cli of $tool: $result"
    sed 's/\x1b\[[0-9;]*m//g' "$work/reshard.log" | grep ERR | sed 's/^/  /' || true
    sleep 3
    expect "  keys of database 0: source, target" "$(cli "$from" dbsize), $(cli "$to" dbsize)" "0, 3"
    expect "  keys of database 3: source, target" "$(cli "$from" -n 3 dbsize), $(cli "$to" -n 3 dbsize)" "0, 0"
    result=0
    $path --cluster check "127.0.0.1:$from" >/dev/null || result=$?
    expect "  exit status of check" "$result" 0
    stop "$from"
    stop "$to"
done
