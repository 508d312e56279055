"""Unique visitors per day: counted in Spark, then merged into the counters of a server.

    pip install "$(ls target/python/wheels/rollcall_redis-*.whl)[redis]" pyspark==4.3.0 pyarrow
    ROLLCALL_URL=redis://127.0.0.1:6379 python spark_uniques.py

Each partition makes counters of its own rows, and an aggregate merges those of a group. A task that runs twice changes
nothing: the union of a counter with itself is the counter.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pyarrow as pa
import redis
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import BinaryType

from rollcall_redis import Counter
from rollcall_redis.redis import Rollcall


def count_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Counters by group, of a partition whose columns are the group and the member."""
    counters: defaultdict[str, Counter] = defaultdict(Counter)
    for batch in batches:
        Counter.update_groups(counters, batch[0], batch[1], nulls="skip")
    values = [counter.to_bytes() for counter in counters.values()]
    yield pa.record_batch([pa.array(list(counters), pa.string()), pa.array(values, pa.binary())], ["day", "counter"])


@arrow_udf(BinaryType())
def merge_counters(counters: pa.Array) -> bytes:
    return Counter.merge_all(counters).to_bytes()


def uniques(frame: DataFrame) -> DataFrame:
    """A counter in bytes for each day, of a frame whose columns are the day and the member."""
    partial = frame.mapInArrow(count_partition, "day string, counter binary")
    return partial.groupBy("day").agg(merge_counters("counter").alias("counter"))


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("ROLLCALL_URL", "redis://127.0.0.1:6379"))
    rollcall = Rollcall(client)
    # The workers run this Python, which has the package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
    visits = spark.range(50_000).selectExpr(
        "concat('2026-11-0', id % 3 + 1) AS day", "if(id % 10 > 0, id % 7919, NULL) AS id"
    )
    for row in uniques(visits).orderBy("day").collect():
        key = f"rollcall-demo:visitors:{row.day}"
        rollcall.lc.mergedump(key, bytes(row.counter))
        # The same counter, by adds to the server.
        rollcall.lc.add(f"{key}:direct", *{id for (of, id) in visits.distinct().collect() if of == row.day} - {None})
        count, direct = rollcall.lc.count(key), rollcall.lc.count(f"{key}:direct")
        print(f"{row.day}: {count} visitors, {direct} by direct adds")
        assert count == direct
        client.delete(key, f"{key}:direct")
    spark.stop()


if __name__ == "__main__":
    main()
