#!/usr/bin/env bash
# Expected: a slot that does not fit into the memory limit of its target stays where it is, or the target evicts.
# Seen: on Redis 8.10.2 CLUSTER MIGRATION ends as completed, with an empty last_error. With `noeviction` the target
# then exceeds maxmemory and rejects writes to the new slots. With `allkeys-lru` it evicts most of their keys. On
# Valkey 9.1.2 the migration fails under either policy, and the source keeps the keys.
set -euo pipefail
. "$(dirname "$0")/servers.sh"

for name in redis-8.10.2 valkey-9.1.2; do
    for policy in noeviction allkeys-lru; do
        from=$(free_port) to=$(free_port)
        start "$name" "$from" --cluster-enabled yes
        start "$name" "$to" --cluster-enabled yes --maxmemory-policy $policy
        join "$from" "$to"
        limit=$(($(cli "$to" info memory | tr -d '\r' | sed -n 's/^used_memory://p') + 1000000))
        cli "$to" config set maxmemory $limit >/dev/null
        value=$(printf '%015000d' 0)
        for key in $(seq 200); do echo "set {slot}$key $value"; done | cli "$from" >/dev/null
        slot=$(cli "$from" cluster keyslot slot)
        if [ "$name" = redis-8.10.2 ]; then
            cli "$to" cluster migration import "$slot" "$slot" >/dev/null
            state() { cli "$to" cluster migration status all | grep -A 1 '^state$' | tail -n 1; }
        else
            cli "$from" cluster migrateslots slotsrange "$slot" "$slot" node "$(cli "$to" cluster myid)" >/dev/null
            state() { cli "$from" cluster getslotmigrations | grep -A 1 '^state$' | tail -n 1; }
        fi
        for _ in $(seq 300); do
            case $(state) in completed | success | failed) break ;; esac
            sleep 0.1
        done
        sleep 1 # the source deletes its copies in the background
        write=$(cli "$to" set "{slot}1" "$value" 2>&1 | head -n 1)
        echo "  $policy, 200 keys of 15 kB, 1 MB free:"
        echo "  at the source $(cli "$from" dbsize), at the target $(cli "$to" dbsize)"
        case $name-$policy in
        redis-8.10.2-noeviction)
            expect "  state" "$(state)" completed
            expect "  a write at the target" "${write%% *}" OOM
            expect "  all keys there" "$(cli "$to" dbsize)" 200
            ;;
        redis-8.10.2-allkeys-lru)
            expect "  state" "$(state)" completed
            expect "  more than half are evicted" "$([ "$(cli "$to" dbsize)" -lt 100 ] && echo yes)" yes
            expect "  keys left at the source" "$(cli "$from" dbsize)" 0
            ;;
        valkey*)
            expect "  state" "$(state)" failed
            expect "  keys at the source" "$(cli "$from" dbsize)" 200
            expect "  evicted by the target" "$(cli "$to" info stats | tr -d '\r' | sed -n 's/^evicted_keys://p')" 0
            ;;
        esac
        stop "$from"
        stop "$to"
    done
done
