"""Compares write-behind with direct adds: four processes add members by Zipf's law to one counter.

    write_behind.py [--quick] URL

It prints the server's processor time and bytes for both ways, how old the key was at most, and the time of the client.
The server must have no other clients, and its data is deleted.
"""

import argparse
import itertools
import multiprocessing
import time
import uuid
from typing import Any

import numpy as np
import redis

from rollcall_redis.redis import Rollcall, WriteBehind

PROCESSES = 4
INTERVAL = 0.1
RANKS = 3_000_000
EXPONENT = 1.1
LIST = 350
SECONDS = 5.5
"""How long the processes add: 55 intervals."""


def members(ranks: Any) -> list[str]:
    """A UUID for each rank, made once for each distinct rank."""
    distinct, places = np.unique(ranks, return_inverse=True)
    texts = [str(uuid.UUID(int=(int(rank) * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)) for rank in distinct]
    return [texts[place] for place in places]


def adds(total: int, process: int) -> list[str]:
    """What a process adds: ranks with probabilities of rank ** -1.1."""
    weights = np.cumsum(np.arange(1, RANKS + 1, dtype=np.float64) ** -EXPONENT)
    draws = np.random.default_rng(process).random(total // PROCESSES) * weights[-1]
    return members(np.searchsorted(weights, draws) + 1)


class Noted(WriteBehind):
    """Notes when each flush ended."""

    def _run(self, steps: Any) -> None:
        super()._run(steps)
        self.ended = [*getattr(self, "ended", []), time.monotonic()]


def behind(url: str, items: list[str]) -> dict[str, float]:
    parts = [items[start : start + 1000] for start in range(0, len(items), 1000)]
    client, busy, begun = redis.Redis.from_url(url), 0.0, time.monotonic()
    with Noted(client, "behind", INTERVAL) as collected:
        for number, part in enumerate(parts):
            due = begun + SECONDS * number / len(parts)
            time.sleep(max(0.0, due - time.monotonic()))
            start = time.perf_counter()
            collected.update(part)
            busy += time.perf_counter() - start
    ended = collected.ended
    ages = [later - earlier for earlier, later in itertools.pairwise(ended)]
    return {"flushes": len(ended) - 1, "oldest": max(ages), "client": busy / len(items)}


def direct(url: str, items: list[str]) -> dict[str, float]:
    counters, start = Rollcall(redis.Redis.from_url(url)).lc, time.perf_counter()
    for at in range(0, len(items), LIST):
        counters.add("direct", *items[at : at + LIST])
    return {"client": (time.perf_counter() - start) / len(items)}


def work(way: Any, url: str, total: int, process: int, barrier: Any, results: Any) -> None:
    items = adds(total, process)
    barrier.wait()
    results.put(way(url, items))
    barrier.wait()


def used(client: redis.Redis) -> tuple[float, float, float]:
    cpu: Any = client.info("cpu")
    stats: Any = client.info("stats")
    transferred = stats["total_net_input_bytes"] + stats["total_net_output_bytes"]
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"], transferred, time.monotonic()


def measured(client: redis.Redis, url: str, way: Any, total: int) -> dict[str, Any]:
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(PROCESSES + 1), context.Queue()
    arguments = [(way, url, total, process, barrier, results) for process in range(PROCESSES)]
    processes = [context.Process(target=work, args=each) for each in arguments]
    for process in processes:
        process.start()
    barrier.wait()
    before = used(client)
    parts = [results.get() for _ in processes]
    after = used(client)
    barrier.wait()
    for process in processes:
        process.join()
    seconds, transferred, wall = (end - start for start, end in zip(before, after, strict=True))
    # What an idle server takes in the same time.
    idle_before = used(client)
    time.sleep(2)
    idle_after = used(client)
    idle = (idle_after[0] - idle_before[0]) / (idle_after[2] - idle_before[2])
    figures = {name: max(part[name] for part in parts) for name in parts[0]}
    return {"server": seconds - idle * wall, "bytes": transferred, "wall": wall, **figures}


def time_of_one(client: redis.Redis) -> float:
    """The client's time for `add` of one member."""
    texts = adds(400_000, 9)
    with WriteBehind(client, "one", INTERVAL) as collected:
        collected.add(texts[0])
        start = time.perf_counter()
        for text in texts:
            collected.add(text)
        return (time.perf_counter() - start) / len(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the adds")
    parser.add_argument("url")
    arguments = parser.parse_args()
    total = 100_000 if arguments.quick else 10_000_000
    client = redis.Redis.from_url(arguments.url)
    client.flushall()
    collected = measured(client, arguments.url, behind, total)
    sent = measured(client, arguments.url, direct, total)
    counts = [client.execute_command("LC.COUNT", key) for key in ("behind", "direct")]  # type: ignore[no-untyped-call]
    assert counts[0] == counts[1], counts
    print(f"{total} adds by {PROCESSES} processes, {counts[0]} distinct, both ways")
    print(f"flushes of a process: at most {collected['flushes']}; the key was at most {collected['oldest']:.3f} s old")
    for name, unit in (("server", "s"), ("bytes", "bytes")):
        quotient = sent[name] / max(collected[name], 1e-9)
        print(f"{name}: {collected[name]:.4g} {unit} behind, {sent[name]:.4g} {unit} direct, 1 : {quotient:.0f}")
    client_times = (collected["client"] * 1e9, sent["client"] * 1e9, time_of_one(client) * 1e9)
    print("client, ns a member: {:.0f} update, {:.0f} lists of 350 directly, {:.0f} add".format(*client_times))


main()
