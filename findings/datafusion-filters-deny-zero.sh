#!/usr/bin/env bash
# Expected: a Bloom filter in a Parquet file never hides a row that the query would find without it.
# Seen: for DataFusion 55.0.0, 0.0 and -0.0 are equal, but a filter of doubles has the bits of one. If no row has the
# other sign, `x = 0` skips rows of -0.0, such as a rounded -0.3, and `x = -0.0` skips 0.0. This is so for filters of
# DataFusion and of PyArrow. Without bloom_filter_on_read, DataFusion finds the rows, and so does DuckDB with filters.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages datafusion==55.0.0 pyarrow==26.0.1 typing_extensions==4.15.0 duckdb==2.0.1

python3 - "$work" <<'P' | tee "$work/seen"
import sys
import datafusion, duckdb, pyarrow, pyarrow.parquet

def context(read):
    config = datafusion.SessionConfig().set("datafusion.execution.parquet.bloom_filter_on_read", read)
    return datafusion.SessionContext(config)

def count(context, table, value):
    return context.sql(f"select count(*) as rows from {table} where x = {value}").to_pylist()[0]["rows"]

changes = [step / 10 for step in range(-500, 500) if step not in range(5)] # the four from -0.4 to -0.1 become -0.0
with_filters, without = context("true"), context("false")
with_filters.from_arrow(pyarrow.table({"change": changes}), name="changes")
rounded = with_filters.sql("select round(change) as x from changes").to_arrow_table()
with_filters.from_arrow(rounded, name="memory")
own, other = f"{sys.argv[1]}/own.parquet", f"{sys.argv[1]}/pyarrow.parquet"
options = datafusion.ParquetWriterOptions(bloom_filter_on_write=True)
with_filters.table("memory").write_parquet_with_options(own, options)
pyarrow.parquet.write_table(rounded, other, bloom_filter_options={"x": {"ndv": 1000, "fpp": 0.01}})
for name, path in ("own", own), ("other", other):
    for engine in with_filters, without:
        engine.register_parquet(name, path)

print("in memory:", count(with_filters, "memory", "0"), count(with_filters, "memory", "-0.0"))
print("filter of DataFusion:", count(with_filters, "own", "0"), count(with_filters, "own", "-0.0"))
print("filter of PyArrow:", count(with_filters, "other", "0"), count(with_filters, "other", "-0.0"))
print("filters not read:", count(without, "own", "0"), count(without, "other", "0"))
print("DuckDB:", *(duckdb.sql(f"select count(*) from '{path}' where x = 0").fetchall()[0][0] for path in (own, other)))
positive = pyarrow.table({"x": [abs(x) for x in rounded["x"].to_pylist()]})
pyarrow.parquet.write_table(positive, other, bloom_filter_options={"x": {"ndv": 1000, "fpp": 0.01}})
again = context("true")
again.register_parquet("other", other)
print("positive zeros:", count(again, "other", "0"), count(again, "other", "-0.0"))
P
expect "zeros in memory" "$(value "in memory")" "4 4"
expect "with a filter of DataFusion, of 0 and of -0.0" "$(value "filter of DataFusion")" "0 4"
expect "with a filter of PyArrow" "$(value "filter of PyArrow")" "0 4"
expect "with filters that are not read" "$(value "filters not read")" "4 4"
expect "DuckDB" "$(value DuckDB)" "4 4"
expect "of positive zeros" "$(value "positive zeros")" "4 0"
