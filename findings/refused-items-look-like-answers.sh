#!/usr/bin/env bash
# Expected: a client raises an error for items that a full filter refuses.
# Seen: BF.MADD and BF.INSERT of a full filter (NONSCALING) of RedisBloom 2.8.2 reply the error as the last element of
# the list, and nothing for items after it. node-redis 6.3.1 with RESP 2 makes it `false`, as for an item that was there
# before: a program that drops repeats drops new items. With its default, and in redis-py 8.1.0 and ioredis 6.0.0, the
# list ends with an error object, which is true, as for a new item. For BF.ADD, node-redis and redis-py raise the error.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages redis==8.1.0
node_packages redis@6.3.1 ioredis@6.0.0
redisbloom

cat >"$work/node/add.mjs" <<'J'
import { createClient } from "redis";
import Redis from "ioredis";
const port = Number(process.argv[2]);
const shown = (replies) => replies.map((reply) => (reply instanceof Error ? "Error" : reply)).join(" ");
for (const RESP of [undefined, 2, 3]) {
    const client = await createClient({ socket: { port }, RESP }).connect();
    const key = `node-redis-${RESP}`;
    await client.bf.reserve(key, 0.01, 3, { NONSCALING: true });
    const name = RESP ? `node-redis, RESP${RESP}` : "node-redis, default";
    console.log(`${name}: ${shown(await client.bf.mAdd(key, ["a", "b"]))}`);
    console.log(`${name}, full: ${shown(await client.bf.mAdd(key, ["a", "c", "d", "e"]))}`);
    console.log(`${name}, insert: ${shown(await client.bf.insert(key, ["new"]))}`);
    console.log(`${name}, add: ${await client.bf.add(key, "new").catch(() => "raised")}`);
    client.destroy();
}
const client = new Redis(port);
await client.call("BF.RESERVE", "ioredis", "0.01", "3", "NONSCALING");
console.log(`ioredis, full: ${shown(await client.call("BF.MADD", "ioredis", "a", "b", "a", "c", "d", "e"))}`);
client.disconnect();
J
cat >"$work/add.py" <<'P'
import sys
import redis

for protocol in (2, 3):
    filters = redis.Redis(port=int(sys.argv[1]), protocol=protocol).bf()
    key = f"redis-py-{protocol}"
    filters.reserve(key, 0.01, 3, noScale=True)
    replies = filters.madd(key, "a", "b", "a", "c", "d", "e")
    print(f"redis-py, RESP{protocol}, full:", *(bool(reply) for reply in replies), type(replies[-1]).__name__)
    try:
        filters.add(key, "new")
    except redis.ResponseError:
        print(f"redis-py, RESP{protocol}, add: raised")
P
port=$(free_port)
start redis-8.2.3 "$port" --loadmodule "$bloom"
{ node "$work/node/add.mjs" "$port" && python3 "$work/add.py" "$port"; } | tee "$work/seen"
for name in "node-redis, default" "node-redis, RESP3"; do
    expect "$name, two new items" "$(value "$name")" "true true"
    expect "$name, one repeat and three new" "$(value "$name, full")" "false true Error"
    expect "$name, BF.INSERT of a new item" "$(value "$name, insert")" Error
    expect "$name, BF.ADD of a new item" "$(value "$name, add")" raised
done
expect "node-redis, RESP2, one repeat and three new" "$(value "node-redis, RESP2, full")" "false true false"
expect "node-redis, RESP2, BF.INSERT of a new item" "$(value "node-redis, RESP2, insert")" false
expect "node-redis, RESP2, BF.ADD of a new item" "$(value "node-redis, RESP2, add")" raised
expect "ioredis, six items" "$(value "ioredis, full")" "1 1 0 1 Error"
for protocol in 2 3; do
    expect "redis-py, RESP$protocol, six items" "$(value "redis-py, RESP$protocol, full")" \
        "True True False True True ResponseError"
    expect "redis-py, RESP$protocol, BF.ADD" "$(value "redis-py, RESP$protocol, add")" raised
done
