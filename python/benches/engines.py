"""Compares counters of rollcall with the approximate distinct counts of DataFusion, DuckDB and Spark.

    engines.py [--quick] ENGINE...

Rows are in the engine's memory, in ten groups, of texts and of ids. Each engine has one thread. The ways of an engine
take turns. Times are those of the processor; those of Spark, which has several processes, are times of the clock.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollcall_redis import Counter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "engines"
sys.path.insert(0, str(EXAMPLES))
GROUPS, RUNS = 10, 3

Ways = dict[str, Callable[[], dict[str, int]]]


def table(rows: int) -> pa.Table:
    """Rows with ids of up to 18 digits, half as many as rows, and the same as texts of up to 23 characters."""
    random = np.random.default_rng(1)
    ids = random.integers(10**18, size=rows // 2)[random.integers(rows // 2, size=rows)]
    groups = pa.array(random.integers(GROUPS, size=rows)).cast(pa.string())
    texts = pc.binary_join_element_wise("user-", pa.array(ids).cast(pa.string()), "")
    return pa.table({"day": groups, "id": ids, "text": texts})


def counts_of(counters: dict[str, Counter]) -> dict[str, int]:
    return {day: counter.count() for day, counter in counters.items()}


def datafusion(visits: pa.Table, column: str) -> Ways:
    from datafusion import SessionConfig, SessionContext
    from datafusion_uniques import count_batches, register

    context = SessionContext(SessionConfig().with_target_partitions(1).with_batch_size(65_536))
    context.register_record_batches("visits", [visits.to_batches()])
    register(context)
    aggregate = {"id": "uniques_of_ids", "text": "uniques"}[column]

    def rows(call: str) -> list[dict[str, Any]]:
        return context.sql(f"SELECT day, {call} AS value FROM visits GROUP BY day").to_pylist()

    return {
        "`approx_distinct`": lambda: {row["day"]: row["value"] for row in rows(f"approx_distinct({column})")},
        "aggregate": lambda: counts_of(
            {row["day"]: Counter.from_bytes(row["value"]) for row in rows(f"{aggregate}({column})")}
        ),
        "batches": lambda: counts_of(count_batches(context.sql(f"SELECT day, {column} FROM visits"))),
    }


def duckdb(visits: pa.Table, column: str) -> Ways:
    import duckdb
    from duckdb_uniques import count_batches

    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", visits)
    connection.execute("CREATE TABLE visits AS SELECT * FROM given")
    own = f"SELECT day, approx_count_distinct({column}) FROM visits GROUP BY day"
    return {
        "`approx_count_distinct`": lambda: dict(connection.sql(own).fetchall()),
        "batches": lambda: counts_of(count_batches(connection.sql(f"SELECT day, {column} FROM visits"))),
    }


def spark(visits: pa.Table, column: str) -> Ways:
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import approx_count_distinct
    from spark_uniques import uniques

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "3g")
    )
    session = builder.config("spark.sql.shuffle.partitions", 1).getOrCreate()
    session.sparkContext.addPyFile(str(EXAMPLES / "spark_uniques.py"))
    # Arrow's batches of 10,000 rows would be a partition each.
    frame = session.createDataFrame(visits.select(["day", column])).coalesce(4).cache()
    frame.count()
    return {
        "`approx_count_distinct`": lambda: dict(frame.groupBy("day").agg(approx_count_distinct(column)).collect()),
        "partitions": lambda: counts_of(
            {row.day: Counter.from_bytes(bytes(row.counter)) for row in uniques(frame).collect()}
        ),
    }


def measured(engine: str, ways: Ways, rows: int, exact: dict[str, int]) -> dict[str, tuple[float, float]]:
    """Rows a second and the error of each way: the root of the mean square over the groups."""
    clock = time.perf_counter if engine == "spark" else time.process_time
    times: dict[str, list[float]] = {name: [] for name in ways}
    errors: dict[str, float] = {}
    for _ in range(RUNS):
        for name, way in ways.items():
            start = clock()
            counts = way()
            times[name].append(clock() - start)
            assert counts.keys() == exact.keys()
            errors[name] = statistics.mean((counts[day] / exact[day] - 1) ** 2 for day in exact) ** 0.5
    return {name: (rows / statistics.median(times[name]), errors[name]) for name in ways}


def lines(engine: str, rows: int) -> list[str]:
    visits = table(rows)
    distinct = visits.group_by("day").aggregate([("id", "count_distinct")])
    exact = dict(zip(distinct["day"].to_pylist(), distinct["id_count_distinct"].to_pylist(), strict=True))
    makers = {"datafusion": datafusion, "duckdb": duckdb, "spark": spark}
    of_columns = [measured(engine, makers[engine](visits, column), rows, exact) for column in ("text", "id")]
    printed = []
    for name in of_columns[0]:
        cells = []
        for figures in of_columns:
            own = next(iter(figures.values()))[0]
            speed, error = figures[name]
            cells += [f"{speed / 1e6:.1f} M ({own / speed:.1f})", f"{error:.2%}".replace("%", " %")]
        printed.append(f"| {engine} | {name} | {' | '.join(cells)} |")
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("engines", nargs="+")
    options = parser.parse_args()
    print("| engine | way | texts a second | error | ids a second | error |", "|---|---|---|---|---|---|", sep="\n")
    for engine in options.engines:
        print(*lines(engine, 500_000 if options.quick else 5_000_000), sep="\n")


if __name__ == "__main__":
    main()
