#!/usr/bin/env bash
# Expected: `wait` of a cluster client confirms the writes before it. The servers say how, in COMMAND INFO: send WAIT
# to all shards (request_policy:all_shards), and take the smallest reply (response_policy:agg_min).
# Seen: redis-py 8.1.0, synchronous and asyncio, asks its default node, and ioredis 6.0.0 a random one. They reply 1
# for a write that no replica has: the replica of the key's node hangs, and another node answers. With
# `target_nodes=PRIMARIES`, redis-py adds up the replies, so that one shard answers for another. node-redis 6.3.1 and
# GLIDE 2.5.3 ask all, and reply 0. In redis-py, pass `target_nodes=client.get_node_from_key(key)`.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages redis==8.1.0 valkey-glide==2.5.3 anyio==4.16.0 idna==3.20 sniffio==1.3.1 \
    typing-extensions==4.16.0 protobuf==7.36.2
node_packages ioredis@6.0.0 redis@6.3.1

ports=()
for _ in 1 2 3 4; do
    ports+=("$(free_port)")
    start redis-8.2.3 "${ports[-1]}" --cluster-enabled yes --cluster-node-timeout 60000 --repl-diskless-sync-delay 0
done
one=${ports[0]} two=${ports[1]}
cli "$one" cluster addslotsrange 0 8191 >/dev/null
cli "$two" cluster addslotsrange 8192 16383 >/dev/null
for port in "${ports[@]:1}"; do cli "$one" cluster meet 127.0.0.1 "$port" >/dev/null; done
for _ in $(seq 100); do
    if [ "$(cli "${ports[2]}" cluster nodes | grep -c connected)" = 4 ]; then break; fi
    sleep 0.1
done
for replica in "${ports[@]:2}"; do
    primary=$one
    if [ "$replica" = "${ports[3]}" ]; then primary=$two; fi
    until cli "$replica" cluster replicate "$(cli "$primary" cluster myid)" | grep -q OK; do sleep 0.2; done
    until cli "$primary" info replication | grep -q 'state=online' && cli "$primary" cluster info | grep -q state:ok; do
        sleep 0.2
    done
done
until cli "$one" cluster nodes | grep -c slave | grep -q 2; do sleep 0.2; done
expect "slot of the key" "$(cli "$one" cluster keyslot order)" 16025
expect "what the server says of WAIT" "$(cli "$one" command info wait | grep -E '^re[a-z]*_policy' | paste -sd ' ')" \
    "request_policy:all_shards response_policy:agg_min"

cat >"$work/wait.py" <<'P'
import asyncio, sys
import glide
import redis.asyncio.cluster
from redis.cluster import RedisCluster

port = int(sys.argv[1])
client = RedisCluster(host="127.0.0.1", port=port)

def write_and_wait(**target):
    client.set("order", "paid")
    return client.wait(1, 200, **target)

print("redis-py:", *(write_and_wait() for _ in range(3)))
print("redis-py, to all primaries:", write_and_wait(target_nodes=RedisCluster.PRIMARIES))
print("redis-py, to the key's node:", write_and_wait(target_nodes=client.get_node_from_key("order")))

async def others():
    client = redis.asyncio.cluster.RedisCluster(host="127.0.0.1", port=port)
    await client.set("order", "paid")
    print("redis-py, asyncio:", await client.wait(1, 200))
    await client.aclose()
    addresses = [glide.NodeAddress("127.0.0.1", port)]
    client = await glide.GlideClusterClient.create(
        glide.GlideClusterClientConfiguration(addresses, request_timeout=5000))
    await client.set("order", "paid")
    print("GLIDE:", await client.wait(1, 200))
    await client.close()

asyncio.run(others())
P
cat >"$work/node/wait.mjs" <<'J'
import Redis from "ioredis";
import { createCluster } from "redis";
const port = Number(process.argv[2]);
const ioredis = new Redis.Cluster([{ host: "127.0.0.1", port }]);
let confirmed = 0;
for (let i = 0; i < 40; i++) {
    await ioredis.set("order", "paid");
    confirmed += await ioredis.wait(1, 100);
}
console.log(`ioredis, of 40: ${confirmed}`);
ioredis.disconnect();
const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
await client.connect();
await client.set("order", "paid");
console.log(`node-redis: ${await client.wait(1, 200)}`);
client.destroy();
J
run() { (python3 "$work/wait.py" "$one" && node "$work/node/wait.mjs" "$one") | tee "$work/seen"; }

echo "== both replicas work"
run
expect "redis-py: replicas that have the write" "$(value redis-py)" "1 1 1"
expect "GLIDE and node-redis" "$(value GLIDE) $(value node-redis)" "1 1"
echo "== the replica of the key's node hangs"
kill -STOP "${process[${ports[3]}]}"
run
expect "redis-py: replicas that have the write, instead of 0" "$(value redis-py)" "1 1 1"
expect "redis-py, asyncio" "$(value "redis-py, asyncio")" 1
expect "redis-py, to all primaries" "$(value "redis-py, to all primaries")" 1
expect "redis-py, to the key's node" "$(value "redis-py, to the key's node")" 0
expect "ioredis: 5 to 35 of 40 writes confirmed" "$(within "$(value "ioredis, of 40")" 5 35)" yes
expect "GLIDE and node-redis" "$(value GLIDE) $(value node-redis)" "0 0"
