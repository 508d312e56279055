#!/usr/bin/env bash
# Expected: an expression of Ibis has one result on all engines, and `nunique` leaves missing values out, as
# count(distinct) and `count` do.
# Seen: on Polars, `nunique` and `approx_nunique` of Ibis 12.0.0 count "missing" as one more value in each group: a page
# with only anonymous visits has one unique user, while `count` is 0. On DuckDB and SQLite it has none. Write
# `t.user.nunique(where=t.user.notnull())`.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages ibis-framework==12.0.0 duckdb==2.0.1 polars==2.1.0 polars-runtime-32==2.1.0 pyarrow==26.0.1 \
    pandas==3.1.1 numpy==2.4.6 python-dateutil==2.9.0.post0 six==1.17.0 sqlglot==30.30.0 atpublic==9.0.0 \
    parsy==2.2 toolz==1.2.0 typing-extensions==4.16.0 tzdata==2026.6 packaging==26.4 rich==15.0.0 \
    pyarrow-hotfix==0.7 pygments==2.21.0 markdown-it-py==4.3.0 mdurl==0.1.2

python3 - <<'P' | tee "$work/seen"
import ibis
import pyarrow

visits = ibis.memtable(pyarrow.table({"page": ["a", "a", "a", "b", "b"], "user": ["x", "y", None, None, None]}))
user = visits.user
pages = visits.group_by("page").agg(
    users=user.nunique(), named=user.nunique(where=user.notnull()), count=user.count()).order_by("page")
for name in "duckdb", "sqlite", "polars":
    engine = getattr(ibis, name).connect()
    print(f"{name}, unique users:", engine.to_pyarrow(user.nunique()))
    for row in engine.to_pyarrow(pages).to_pylist():
        print(f"{name}, page {row['page']}:", row["users"], row["named"], row["count"])
    if name != "sqlite":
        print(f"{name}, approx_nunique:", engine.to_pyarrow(user.approx_nunique()))
P
for name in duckdb sqlite; do
    expect "$name: unique users" "$(value "$name, unique users")" 2
    expect "$name, page a: unique, unique where not missing, count" "$(value "$name, page a")" "2 2 2"
    expect "$name, page b" "$(value "$name, page b")" "0 0 0"
done
expect "polars: unique users, instead of 2" "$(value "polars, unique users")" 3
expect "polars, page a: unique, unique where not missing, count" "$(value "polars, page a")" "3 2 2"
expect "polars, page b" "$(value "polars, page b")" "1 0 0"
expect "approx_nunique of duckdb and polars" "$(value "duckdb, approx_nunique") $(value "polars, approx_nunique")" "2 3"
