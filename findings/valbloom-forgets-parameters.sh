#!/usr/bin/env bash
# Expected: a filter that exists keeps its capacity and its rate. A program that gives others gets an error, or uses
# those of the filter.
# Seen: valbloom 1.0.1 keeps neither on the server. A program that changes its capacity from 100,000 to 110,000, or its
# rate, finds none of a thousand users that are in the filter, without an error, while `count` still says a thousand.
# remove() of CountingBloomFilter then does nothing. union() keeps the members but not `count`, and rejects filters of
# other parameters.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages valbloom==1.0.1 redis==8.1.0

port=$(free_port)
start valkey-9.1.2 "$port"
python3 - "$port" <<'P' | tee "$work/seen"
import asyncio, sys
import redis.asyncio, valbloom

users = [f"user-{i}" for i in range(1000)]

async def found(filter):
    return sum((await filter.exists_many(users)).values())

async def main():
    client = redis.asyncio.Redis(port=int(sys.argv[1]))
    for kind in (valbloom.BloomFilter, valbloom.CountingBloomFilter, valbloom.ScalableBloomFilter):
        name = kind.__name__
        await kind(client, name, 100000, 0.01).add_many(users)
        print(f"{name}, the same parameters:", await found(kind(client, name, 100000, 0.01)))
        print(f"{name}, another rate:", await found(kind(client, name, 100000, 0.001)))
        other = kind(client, name, 110000, 0.01)
        print(f"{name}, another capacity:", await found(other))
        print(f"{name}, count:", await other.count)
    await valbloom.CountingBloomFilter(client, "CountingBloomFilter", 110000, 0.01).remove_many(users)
    left = await found(valbloom.CountingBloomFilter(client, "CountingBloomFilter", 100000, 0.01))
    print("after remove_many with another capacity:", left)
    filter = valbloom.BloomFilter(client, "BloomFilter", 100000, 0.01)
    union = await filter.union(valbloom.BloomFilter(client, "empty", 100000, 0.01), "union")
    print("union:", await found(union))
    print("count of the union:", await union.count)
    try:
        await filter.union(valbloom.BloomFilter(client, "empty", 110000, 0.01), "union")
    except valbloom.IncompatibleFilterError as error:
        print("union with another capacity:", type(error).__name__)
    await client.aclose()

asyncio.run(main())
P
for name in BloomFilter CountingBloomFilter ScalableBloomFilter; do
    expect "$name, the same parameters" "$(value "$name, the same parameters")" 1000
    expect "$name, another rate" "$(value "$name, another rate")" 0
    expect "$name, another capacity" "$(value "$name, another capacity")" 0
    expect "$name, count" "$(value "$name, count")" 1000
done
expect "after remove_many with another capacity" "$(value "after remove_many with another capacity")" 1000
expect "union" "$(value union)" 1000
expect "count of the union" "$(value "count of the union")" 0
expect "union with another capacity" "$(value "union with another capacity")" IncompatibleFilterError
