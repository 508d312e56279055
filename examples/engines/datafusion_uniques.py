"""Unique visitors per day: counted in DataFusion, then merged into the counters of a server.

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]" datafusion==55.0.0
    ROLLCALL_URL=redis://127.0.0.1:6379 python datafusion_uniques.py

`uniques` and `uniques_of_ids` are aggregates for SQL. `count_batches` is faster for few groups, since it reads the
batches of a query as they are.
"""

import os
from collections import defaultdict

import pyarrow as pa
import redis
from datafusion import Accumulator, DataFrame, SessionContext, udaf

from rollcall_redis import Counter
from rollcall_redis.redis import Rollcall


class Uniques(Accumulator):
    """A counter of the members of one group."""

    def __init__(self) -> None:
        self.counter = Counter()

    def update(self, members: pa.Array) -> None:
        self.counter.update(members, nulls="skip")

    def state(self) -> list[pa.Scalar]:
        return [self.evaluate()]

    def merge(self, states: list[pa.Array]) -> None:
        """Called only if the input has several partitions."""
        self.counter.merge(Counter.merge_all(states[0]))

    def evaluate(self) -> pa.Scalar:
        return pa.scalar(self.counter.to_bytes(), pa.binary())


def register(context: SessionContext) -> None:
    """Each type of members needs a name of its own. Numbers would reach `uniques` as texts such as 1.0."""
    for name, members in (("uniques", pa.string()), ("uniques_of_ids", pa.int64())):
        context.register_udaf(udaf(Uniques, members, pa.binary(), [pa.binary()], "immutable", name))


def count_batches(frame: DataFrame) -> dict[str, Counter]:
    """Counters by group, of a query whose columns are the group and the member."""
    counters: defaultdict[str, Counter] = defaultdict(Counter)
    for batch in frame.execute_stream():
        groups, members = batch.to_pyarrow().columns
        Counter.update_groups(counters, groups, members, nulls="skip")
    return counters


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    rollcall = Rollcall(client)
    visits = [{"day": f"2026-11-0{row % 3 + 1}", "id": row % 7919 if row % 10 else None} for row in range(50_000)]
    context = SessionContext()
    context.from_pylist(visits, "visits")
    register(context)
    batches = count_batches(context.sql("SELECT day, id FROM visits"))
    for row in context.sql("SELECT day, uniques_of_ids(id) AS ids FROM visits GROUP BY day ORDER BY day").to_pylist():
        day, key = row["day"], f"rollcall-demo:visitors:{row['day']}"
        rollcall.lc.mergedump(key, row["ids"])
        # The same counter, by adds to the server.
        rollcall.lc.add(f"{key}:direct", *{visit["id"] for visit in visits if visit["day"] == day} - {None})
        count, direct = rollcall.lc.count(key), rollcall.lc.count(f"{key}:direct")
        print(f"{day}: {count} visitors, {direct} by direct adds")
        assert count == direct == batches[day].count()
        client.delete(key, f"{key}:direct")


if __name__ == "__main__":
    main()
