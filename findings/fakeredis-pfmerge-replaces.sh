#!/usr/bin/env bash
# Expected: a test with fakeredis sees the same unique visitors as production.
# Seen: PFMERGE of fakeredis 2.41.0 forgets what the destination counted, so that a month into which each day is merged
# has the count of its last day. The month's time to live is lost too. All servers count the union, and keep the time.
# PFADD without members creates no key in fakeredis, while it replies 1 and creates one on all servers.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages fakeredis==2.41.0 redis==8.1.0 sortedcontainers==2.4.0

cat >"$work/month.py" <<'P'
import sys
import fakeredis, redis

def run(client):
    client.pfadd("month", "before")
    client.expire("month", 1000)
    for day in range(3):
        client.pfadd("day", *(f"user-{day}-{i}" for i in range(10)))
        client.pfmerge("month", "day")
        client.delete("day")
    ttl = "a time to live" if client.ttl("month") > 0 else "no time to live"
    return f"{client.pfcount('month')} with {ttl}, {client.pfadd('empty')} {client.exists('empty')}"

if len(sys.argv) > 1:
    print("server:", run(redis.Redis(port=int(sys.argv[1]))))
else:
    print("fakeredis:", run(fakeredis.FakeRedis()))
P
python3 "$work/month.py" | tee "$work/seen"
expect "month, and PFADD without members, in fakeredis" "$(value fakeredis)" "10 with no time to live, 0 0"
for name in redis-7.0.15 redis-8.2.3 redis-8.10.2 valkey-9.1.2; do
    port=$(free_port)
    start "$name" "$port"
    python3 "$work/month.py" "$port" >"$work/seen"
    expect "  the same" "$(value server)" "31 with a time to live, 1 1"
    stop "$port"
done
