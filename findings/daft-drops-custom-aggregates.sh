#!/usr/bin/env bash
# Expected: agg() returns a column per aggregate, or an error.
# Seen: in Daft 0.7.26, an aggregate made by @daft.udf works alone. Beside a built-in aggregate its column is missing
# from the result, though not from the schema, without an error.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages daft==0.7.26 pyarrow==26.0.1 fsspec==2026.9.0 tqdm==4.68.0 typing_extensions==4.15.0 packaging==26.0

python3 -W ignore - <<'P' | tee "$work/seen"
import daft

@daft.udf(return_dtype=daft.DataType.int64())
def distinct(column):
    return [len(set(column.to_pylist()))]

rows = daft.from_pydict({"day": [1, 1, 2], "user": [7, 8, 8]})
users, total = distinct(daft.col("user")).alias("users"), daft.col("user").sum().alias("total")
most = daft.col("user").max().alias("most")
queries = {"alone": [users], "first": [users, total], "last": [total, users], "built-in": [total, most]}
for name, aggregates in queries.items():
    result = rows.groupby("day").agg(*aggregates)
    print(f"{name}, schema:", *result.column_names)
    print(f"{name}, result:", *result.to_pydict())
P
expect "alone" "$(value "alone, result")" "day users"
expect "before sum(), schema" "$(value "first, schema")" "day users total"
expect "before sum(), result" "$(value "first, result")" "day total"
expect "after sum(), result" "$(value "last, result")" "day total"
expect "two built-in ones, result" "$(value "built-in, result")" "day total most"
