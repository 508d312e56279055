#!/usr/bin/env bash
# Expected: a client-side cache changes how fast a reply comes, not whether a command works.
# Seen: with `cache_config`, redis-py 8.1.0 raises ValueError for execute_command("GET", key), before anything is
# sent. The same holds for every command that it caches, unless `keys` is passed too. Its own methods xpending_range
# and zrank also raise. In a pipeline the same calls work. On Valkey 9.1.2 the connection fails, because Valkey
# reports the version 7.2.4 of Redis.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages redis==8.1.0

cat >"$work/calls.py" <<'P'
import sys
import redis
from redis.cache import CacheConfig

port = int(sys.argv[1])
plain = redis.Redis(port=port, protocol=3)
plain.set("key", "value")
plain.sadd("set", "x")
plain.zadd("zset", {"x": 1})
plain.xadd("stream", {"x": 1})
plain.xgroup_create("stream", "group", "0")
cached = redis.Redis(port=port, protocol=3, cache_config=CacheConfig())

calls = {
    "get": lambda client: client.get("key"),
    "execute_command GET": lambda client: client.execute_command("GET", "key"),
    "execute_command SISMEMBER": lambda client: client.execute_command("SISMEMBER", "set", "x"),
    "execute_command GET with keys": lambda client: client.execute_command("GET", "key", keys=["key"]),
    "execute_command HEXISTS": lambda client: client.execute_command("HEXISTS", "hash", "field"),
    "execute_command PTTL": lambda client: client.execute_command("PTTL", "key"),
    "zscore": lambda client: client.zscore("zset", "x"),
    "zrank": lambda client: client.zrank("zset", "x"),
    "xpending": lambda client: client.xpending("stream", "group"),
    "xpending_range": lambda client: client.xpending_range("stream", "group", "-", "+", 10),
    "pipeline": lambda client: client.pipeline(transaction=False).execute_command("GET", "key").execute(),
}
for name, call in calls.items():
    call(plain)
    try:
        call(cached)
        print(f"{name}: works")
    except (ValueError, redis.ConnectionError) as error:
        print(f"{name}: {type(error).__name__}: {error}")
P
for name in redis-8.2.3 redis-8.10.2; do
    port=$(free_port)
    start "$name" "$port"
    python3 "$work/calls.py" "$port" | tee "$work/seen"
    expect "  raise" "$(grep ValueError "$work/seen" | sed 's/: .*//' | paste -sd ,)" \
        "execute_command GET,execute_command SISMEMBER,execute_command HEXISTS,zrank,xpending_range"
    stop "$port"
done
port=$(free_port)
start valkey-9.1.2 "$port"
python3 "$work/calls.py" "$port" >"$work/seen"
head -n 1 "$work/seen"
expect "  works on Valkey" "$(grep -c works "$work/seen" || true)" 0
