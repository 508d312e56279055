"""Renews ten holders with redis-py, alternately by LC.ADMIT and by the Lua script.
Prints the least time of a call of each, in microseconds.

leases.py PORT PORT_WITH_SCRIPT SHA ROUNDS
"""

import sys
import time
import uuid

import redis

ours, theirs = (redis.Redis(port=int(port)) for port in sys.argv[1:3])
holders = [str(uuid.UUID(int=number << 64 | number)) for number in range(10)]
options = ["LIMIT", 10, "WINDOW", 60, "SLICES", 60, "VOLATILE", "ITEMS"]


def by_command(holder: str) -> None:
    ours.execute_command("LC.ADMIT", "seats:py", *options, holder)


def by_script(holder: str) -> None:
    theirs.evalsha(sys.argv[3], 1, "seats:py", int(time.time() * 1000), 60_000, 10, holder)


microseconds = [[], []]
for _ in range(int(sys.argv[4])):
    for times, call in zip(microseconds, (by_command, by_script), strict=True):
        start = time.perf_counter()
        for holder in holders:
            call(holder)
        times.append((time.perf_counter() - start) * 1e6 / len(holders))
print(*map(min, microseconds))
