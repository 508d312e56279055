#!/usr/bin/env bash
# Expected: if the connection breaks before the reply to a write, the client raises an error.
# Seen: redis-py 8.1.0 and ioredis 6.0.0 send the write again, and give the second reply. INCR counts twice. SADD
# replies 0 and SET NX nothing, as for a repeat, so that the first message is dropped as a duplicate. No error says so.
# With redis-py a busy server is enough: after 5 seconds it sends the write again. Pass `retry=Retry(NoBackoff(), 0)`
# to redis-py, and `maxRetriesPerRequest: 0` to ioredis. node-redis 6.3.1 and GLIDE 2.5.3 raise an error.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages redis==8.1.0 valkey-glide==2.5.3 anyio==4.16.0 idna==3.20 sniffio==1.3.1 \
    typing-extensions==4.16.0 protobuf==7.36.2
node_packages ioredis@6.0.0 redis@6.3.1

# A proxy that passes on the first write of each key, and closes the connection instead of passing on its reply.
cat >"$work/proxy.py" <<'P'
import socket, sys, threading

listen, target = map(int, sys.argv[1:])
left = {b"hits", b"seen", b"lock"}

def serve(client):
    server = socket.create_connection(("127.0.0.1", target))
    broken = threading.Event()

    def pass_on():
        while data := client.recv(65536):
            if found := {key for key in left if key in data}:
                left.difference_update(found)
                broken.set()
            server.sendall(data)

    threading.Thread(target=pass_on, daemon=True).start()
    while data := server.recv(65536):
        if broken.is_set():
            break
        client.sendall(data)
    client.shutdown(socket.SHUT_RDWR)

with socket.create_server(("127.0.0.1", listen)) as listener:
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
P
cat >"$work/use-redis-py.py" <<'P'
import sys
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

options = {"retry": Retry(NoBackoff(), 0)} if len(sys.argv) > 2 else {}
client = redis.Redis(port=int(sys.argv[1]), **options)
for write in ("INCR", "hits"), ("SADD", "seen", "first"), ("SET", "lock", 1, "NX"):
    try:
        print(f"{write[0]}:", client.execute_command(*write))
    except redis.ConnectionError:
        print(f"{write[0]}: error")
P
cat >"$work/use-glide.py" <<'P'
import asyncio, sys
import glide

async def run():
    address = glide.NodeAddress("127.0.0.1", int(sys.argv[1]))
    client = await glide.GlideClient.create(glide.GlideClientConfiguration([address], request_timeout=5000))
    for write in ("INCR", "hits"), ("SADD", "seen", "first"), ("SET", "lock", "1", "NX"):
        try:
            print(f"{write[0]}:", await client.custom_command(list(write)))
        except glide.ConnectionError:
            print(f"{write[0]}: error")
            await asyncio.sleep(1)

asyncio.run(run())
P
cat >"$work/node/write.mjs" <<'J'
import Redis from "ioredis";
import { createClient } from "redis";
const [name, port] = process.argv.slice(2);
const ignore = () => {};
let send, close;
if (name.startsWith("ioredis")) {
    const client = new Redis(port, name === "ioredis-0" ? { maxRetriesPerRequest: 0 } : {});
    client.on("error", ignore);
    await new Promise((ready) => client.once("ready", ready));
    send = ([command, ...words]) => client.call(command, ...words);
    close = () => client.disconnect();
} else {
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
    client.on("error", ignore);
    await client.connect();
    send = (words) => client.sendCommand(words);
    close = () => client.destroy();
}
for (const write of [["INCR", "hits"], ["SADD", "seen", "first"], ["SET", "lock", "1", "NX"]]) {
    try {
        console.log(`${write[0]}: ${await send(write)}`);
    } catch {
        console.log(`${write[0]}: error`);
        await new Promise((later) => setTimeout(later, 1000));
    }
}
close();
J

port=$(free_port)
start redis-7.0.15 "$port" --enable-debug-command yes

# write COMMAND...: runs a client through the proxy, and sets `replies` and `count`.
write() {
    local proxy
    cli "$port" flushall >/dev/null
    proxy=$(free_port)
    python3 "$work/proxy.py" "$proxy" "$port" 2>/dev/null &
    process[proxy]=$!
    for _ in $(seq 50); do
        if cli "$proxy" ping >/dev/null 2>&1; then break; fi
        sleep 0.1
    done
    replies=$(timeout 60 "${@/PROXY/$proxy}" 2>>"$work/log" | grep -E '^(INCR|SADD|SET):' | paste -sd ' ')
    count=$(cli "$port" get hits)
    stop proxy
}

write python3 "$work/use-redis-py.py" PROXY
expect "redis-py: replies to the first writes, and the counter" "$replies, $count" "INCR: 2 SADD: 0 SET: None, 2"
write node "$work/node/write.mjs" ioredis PROXY
expect "ioredis" "$replies, $count" "INCR: 2 SADD: 0 SET: null, 2"
write python3 "$work/use-redis-py.py" PROXY 0
expect "redis-py without retries" "$replies, $count" "INCR: error SADD: error SET: error, 1"
write node "$work/node/write.mjs" ioredis-0 PROXY
expect "ioredis with maxRetriesPerRequest: 0" "$replies, $count" "INCR: error SADD: error SET: error, 1"
write node "$work/node/write.mjs" node-redis PROXY
expect "node-redis" "$replies, $count" "INCR: error SADD: error SET: error, 1"
write python3 "$work/use-glide.py" PROXY
expect "GLIDE" "$replies, $count" "INCR: error SADD: error SET: error, 1"

cli "$port" flushall >/dev/null
cat >"$work/busy.py" <<'P'
import socket, sys, time
import redis

port = int(sys.argv[1])
client = redis.Redis(port=port)
client.ping()
with socket.create_connection(("127.0.0.1", port)) as other:
    other.sendall(b"DEBUG SLEEP 8\r\n")
    time.sleep(0.2)
    print("INCR:", client.incr("hits"))
P
expect "redis-py, a server that is busy for 8 seconds" \
    "$(python3 "$work/busy.py" "$port"), $(cli "$port" get hits)" "INCR: 2, 2"
