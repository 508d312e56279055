"""Runs the programs of examples/engines, and counts what engines hand out: missing values, numbers in a column with
missing values, UUIDs, decimals, an empty group, and a partition that runs twice. Each result is merged into a key, and
compared with direct adds."""

import os
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis

from rollcall_redis import Counter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "engines"
URL = os.environ["ROLLCALL_URL"]
sys.path.insert(0, str(EXAMPLES))

ROWS = 3000
GROUPS = ["a", "b", "none"]


def row(number: int) -> dict[str, Any]:
    """A row. The group `none` has no members. Doubles would merge the numbers 2^53 and 2^53 + 1."""
    missing = number % 3 == 2 or number % 7 == 0
    return {
        "day": GROUPS[number % 3],
        "text": None if missing else f"user-{number % 1000}",
        "id": None if missing else 2**53 + number % 1000,
        "uuid": None if missing else str(uuid.UUID(int=number % 1000 << 64)),
        "amount": None if missing else Decimal(number % 1000),
    }


TABLE = [row(number) for number in range(ROWS)]


def direct(client: redis.Redis, day: str, column: str) -> int:
    """The count of the members of a group that are added one by one."""
    members = [str(row[column]) for row in TABLE if row["day"] == day and row[column] is not None]
    client.delete("direct")
    if members:
        client.execute_command("LC.ADD", "direct", *members)
    return int(client.execute_command("LC.COUNT", "direct"))


def check(client: redis.Redis, column: str, *runs: dict[str, bytes]) -> None:
    """Compares the counters of each group with direct adds, after merges of all runs."""
    client.flushall()
    for run in runs:
        assert sorted(run) == GROUPS
        for day, data in run.items():
            client.execute_command("LC.MERGEDUMP", day, data)
    counts = {day: client.execute_command("LC.COUNT", day) for day in GROUPS}
    assert counts == {day: direct(client, day, column) for day in GROUPS}
    assert counts["none"] == 0 and counts["a"] > 700


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(URL) as connected:
        yield connected


def arrow() -> pa.Table:
    uuids = [row["uuid"] and uuid.UUID(row["uuid"]).bytes for row in TABLE]
    columns = {name: [row[name] for row in TABLE] for name in ("day", "text", "id", "amount")}
    table = pa.table({**columns, "uuid": pa.array(uuids, pa.uuid())})
    assert pa.types.is_decimal(table["amount"].type) and table["id"].null_count
    return table


REJECTED = r"Decimal128\(.*\) has no items: cast it to text or to whole numbers in the engine"


class TestDataFusion:
    @pytest.fixture
    def context(self) -> Any:
        """A table of four partitions."""
        from datafusion import SessionConfig, SessionContext
        from datafusion_uniques import register

        context = SessionContext(SessionConfig().with_target_partitions(4))
        batches = arrow().to_batches(ROWS // 8)
        context.register_record_batches("visits", [batches[part::4] for part in range(4)])
        register(context)
        return context

    @pytest.mark.parametrize(
        ("column", "call"),
        [
            ("text", "uniques(text)"),
            ("id", "uniques_of_ids(id)"),
            ("id", "uniques(id)"),
            ("amount", "uniques_of_ids(CAST(amount AS BIGINT))"),
        ],
    )
    def test_aggregates(self, client: redis.Redis, context: Any, column: str, call: str) -> None:
        def run() -> dict[str, bytes]:
            rows = context.sql(f"SELECT day, {call} AS counter FROM visits GROUP BY day").to_pylist()
            return {row["day"]: row["counter"] for row in rows}

        check(client, column, run(), run())

    def test_unsupported_columns_are_errors_of_the_engine(self, context: Any) -> None:
        for call in ("uniques_of_ids(amount)", "uniques_of_ids(CAST(id AS DOUBLE))", "uniques(uuid)"):
            with pytest.raises(Exception, match=r"Failed to coerce arguments|Cannot automatically convert"):
                context.sql(f"SELECT {call} FROM visits").collect()

    def test_an_empty_table(self, context: Any) -> None:
        for call in ("uniques(text)", "uniques_of_ids(id)"):
            ((counter,),) = (row.values() for row in context.sql(f"SELECT {call} FROM visits WHERE false").to_pylist())
            assert Counter.from_bytes(counter).count() == 0

    @pytest.mark.parametrize("column", ["text", "id", "uuid", "amount"])
    def test_batches(self, client: redis.Redis, context: Any, column: str) -> None:
        from datafusion_uniques import count_batches

        def run(member: str) -> dict[str, bytes]:
            counters = count_batches(context.sql(f"SELECT day, {member} FROM visits"))
            return {day: counter.to_bytes() for day, counter in counters.items()}

        if column == "amount":
            with pytest.raises(TypeError, match=REJECTED):
                run("amount")
        member = "CAST(amount AS BIGINT)" if column == "amount" else column
        check(client, column, run(member), run(member))

    def test_uuids_of_parquet_are_bytes_unless_cast(self, client: redis.Redis, context: Any, tmp_path: Path) -> None:
        import pyarrow.parquet as parquet

        parquet.write_table(arrow(), tmp_path / "visits.parquet")
        context.register_parquet("stored", str(tmp_path / "visits.parquet"))
        counters: defaultdict[str, Counter] = defaultdict(Counter)
        for batch in context.sql("SELECT day, uuid FROM stored").execute_stream():
            days, uuids = batch.to_pyarrow().columns
            assert uuids.type == pa.binary(16)
            Counter.update_groups(counters, days, uuids.cast(pa.binary(16)).cast(pa.uuid()), nulls="skip")
        check(client, "uuid", {day: counter.to_bytes() for day, counter in counters.items()})


class TestDuckDB:
    @pytest.fixture
    def connection(self) -> Any:
        import duckdb

        connection = duckdb.connect()
        connection.register("table", arrow())
        connection.execute('CREATE TABLE visits AS SELECT * FROM "table"')
        assert connection.sql("SELECT uuid FROM visits").types == ["UUID"]
        return connection

    @pytest.mark.parametrize("column", ["text", "id", "uuid", "amount"])
    def test_batches(self, client: redis.Redis, connection: Any, column: str) -> None:
        from duckdb_uniques import count_batches

        def run(member: str) -> dict[str, bytes]:
            counters = count_batches(connection.sql(f"SELECT day, {member} FROM visits"))
            return {day: counter.to_bytes() for day, counter in counters.items()}

        if column == "amount":
            with pytest.raises(TypeError, match=REJECTED):
                run("amount")
        member = "CAST(amount AS BIGINT)" if column == "amount" else column
        check(client, column, run(member), run(member))

    @pytest.mark.parametrize("column", ["text", "id", "uuid"])
    def test_a_filter(self, client: redis.Redis, connection: Any, column: str) -> None:
        from duckdb_uniques import filter_batches

        client.flushall()
        for _ in range(2):
            for day, seen in filter_batches(connection.sql(f"SELECT day, {column} FROM visits"), 5000, 1e-6).items():
                client.execute_command("BF.MERGEDUMP", day, seen.to_bytes())
        members = {day: {str(row[column]) for row in TABLE if row["day"] == day} - {"None"} for day in GROUPS}
        assert not members["none"]
        for day in GROUPS:
            assert abs(client.execute_command("BF.CARD", day) - len(members[day])) <= 0.01 * len(members[day])
            if members[day]:
                assert all(client.execute_command("BF.MEXISTS", day, *members[day]))


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A table of four partitions. Tasks are tried twice."""
    import pyarrow.parquet as parquet
    from pyspark.sql import SparkSession

    path = tmp_path_factory.mktemp("visits")
    for part in range(4):
        # Spark cannot read a column of `arrow.uuid`: it has no such type.
        table = arrow().set_column(4, "uuid", pa.array([row["uuid"] for row in TABLE]))
        # Snappy, the default, cannot be read where Debian's `musl` is installed: snappy-java 1.1.10.8 of Spark 4.3.0
        # then takes its library for musl.
        rows = table.slice(part * ROWS // 4, ROWS // 4)
        parquet.write_table(rows, path / f"{part}.parquet", compression="zstd")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2,2]").config("spark.ui.enabled", False)
    spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    # Workers import the functions of the program.
    spark.sparkContext.addPyFile(str(EXAMPLES / "spark_uniques.py"))
    yield spark.read.parquet(str(path))
    spark.stop()


class TestSpark:
    @pytest.mark.parametrize("column", ["text", "id", "uuid", "amount"])
    def test_aggregates(self, client: redis.Redis, visits: Any, column: str) -> None:
        from spark_uniques import uniques

        def run(member: str) -> dict[str, bytes]:
            return {row.day: bytes(row.counter) for row in uniques(visits.selectExpr("day", member)).collect()}

        if column == "amount":
            with pytest.raises(Exception, match=REJECTED):
                run("amount")
        member = "CAST(amount AS BIGINT)" if column == "amount" else column
        check(client, column, run(member), run(member))

    def test_a_task_that_fails_and_runs_again(self, client: redis.Redis, visits: Any, tmp_path: Path) -> None:
        import spark_uniques
        from pyspark.sql.functions import col

        failed = str(tmp_path / "failed")

        def fail_once(batches: Any) -> Any:
            yield from spark_uniques.count_partition(batches)
            try:
                os.close(os.open(failed, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
            raise RuntimeError("a task that fails after its result")

        partial = visits.select("day", "text").mapInArrow(fail_once, "day string, counter binary")
        merged = partial.groupBy("day").agg(spark_uniques.merge_counters(col("counter")).alias("counter"))
        check(client, "text", {row.day: bytes(row.counter) for row in merged.collect()})
        assert os.path.exists(failed)


@pytest.mark.parametrize("engine", ["datafusion", "duckdb", "spark"])
def test_the_program_keeps_its_promises(client: redis.Redis, engine: str) -> None:
    client.flushall()
    run = subprocess.run([sys.executable, "-P", str(EXAMPLES / f"{engine}_uniques.py")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == 3 and all("visitors, " in line for line in lines)
    assert client.keys() == []
