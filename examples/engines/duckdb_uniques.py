"""Unique visitors per day, and a filter of them: read from DuckDB, then merged into keys of a server.

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]" duckdb==2.0.1
    ROLLCALL_URL=redis://127.0.0.1:6379 python duckdb_uniques.py

DuckDB has no aggregates in Python. It hands out batches of Arrow, whose rows go to a counter for each group.
"""

import os
from collections import defaultdict

import duckdb
import redis

from rollcall_redis import BloomFilter, Counter
from rollcall_redis.redis import Rollcall

BATCH = 65_536
"""Rows of a batch. Smaller ones take more calls. The million that DuckDB hands out by default leaves the caches."""


def count_batches(relation: duckdb.DuckDBPyRelation) -> dict[str, Counter]:
    """Counters by group, of a query whose columns are the group and the member."""
    counters: defaultdict[str, Counter] = defaultdict(Counter)
    for batch in relation.to_arrow_reader(BATCH):
        Counter.update_groups(counters, batch[0], batch[1], nulls="skip")
    return counters


def filter_batches(relation: duckdb.DuckDBPyRelation, capacity: int, error_rate: float) -> dict[str, BloomFilter]:
    """Filters by group. Only filters of one capacity and rate can be merged."""
    filters: defaultdict[str, BloomFilter] = defaultdict(lambda: BloomFilter(capacity, error_rate))
    for batch in relation.to_arrow_reader(BATCH):
        BloomFilter.update_groups(filters, batch[0], batch[1], nulls="skip")
    return filters


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    rollcall = Rollcall(client)
    visits = duckdb.sql("""
        SELECT '2026-11-0' || row % 3 + 1 AS day, CASE WHEN row % 10 > 0 THEN row % 7919 END AS id
        FROM range(50_000) AS rows(row)
    """)
    counters, filters = count_batches(visits), filter_batches(visits, 10_000, 0.001)
    for day, counter in sorted(counters.items()):
        key = f"rollcall-demo:visitors:{day}"
        rollcall.lc.mergedump(key, counter.to_bytes())
        rollcall.bf.mergedump(f"{key}:seen", filters[day].to_bytes())
        # The same counter, by adds to the server.
        ids = [id for (of, id) in visits.distinct().fetchall() if of == day and id is not None]
        rollcall.lc.add(f"{key}:direct", *ids)
        count, direct = rollcall.lc.count(key), rollcall.lc.count(f"{key}:direct")
        print(f"{day}: {count} visitors, {direct} by direct adds, {rollcall.bf.card(f'{key}:seen')} in a filter")
        assert count == direct and all(rollcall.bf.mexists(f"{key}:seen", *ids))
        client.delete(key, f"{key}:direct", f"{key}:seen")


if __name__ == "__main__":
    main()
