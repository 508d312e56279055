#!/usr/bin/env bash
# Expected: pottery's HyperLogLog has the members of PFADD.
# Seen: pottery 3.0.1 sends a member as JSON, a text with its quotes. A thousand users, counted by pottery and by a
# program that calls PFADD, count as two thousand. PFADD of the quoted texts adds none. 1, 1.0 and "1" are three
# members.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages pottery==3.0.1 redis==8.1.0 mmh3==5.2.0 typing_extensions==4.15.0

port=$(free_port)
start redis-8.2.3 "$port"
python3 -W ignore - "$port" <<'P' | tee "$work/seen"
import sys
import pottery, redis

client = redis.Redis(port=int(sys.argv[1]))
users = [f"user-{i}" for i in range(1000)]
pottery.HyperLogLog(users, redis=client, key="users")
client.pfadd("quoted", *(f'"{user}"' for user in users))
print("pottery:", client.pfcount("users"))
print("together with quoted texts:", client.pfcount("users", "quoted"))
client.pfadd("users", *users)
print("and PFADD of the same users:", client.pfcount("users"))
print("1, 1.0 and '1':", len(pottery.HyperLogLog([1, 1.0, "1"], redis=client, key="values")))
P
expect "users, within 5 %" "$(within "$(value pottery)" 950 1050)" yes
expect "PFADD of the quoted texts adds none" "$(value "together with quoted texts")" "$(value pottery)"
expect "and PFADD, 1,900 to 2,100" "$(within "$(value "and PFADD of the same users")" 1900 2100)" yes
expect "1, 1.0 and '1'" "$(value "1, 1.0 and '1'")" 3
