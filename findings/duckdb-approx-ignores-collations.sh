#!/usr/bin/env bash
# Expected: approx_count_distinct estimates count(DISTINCT) of the same column.
# Seen: DuckDB 2.0.1 hashes the text, whatever the column's collation. 10,000 names in two spellings in a NOCASE column
# are 10,000 for count(DISTINCT) and GROUP BY, and 20,000 for approx_count_distinct and SUMMARIZE.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages duckdb==2.0.1

python3 - <<'P' | tee "$work/seen"
import duckdb

connection = duckdb.connect()
connection.execute("create table users (name varchar collate nocase)")
for spelling in "user", "USER":
    connection.execute(f"insert into users select '{spelling}-' || x from range(10000) numbers(x)")
exact, estimate = connection.sql("select count(distinct name), approx_count_distinct(name) from users").fetchall()[0]
print("count(DISTINCT):", exact)
print("groups:", connection.sql("select count(*) from (select name from users group by name)").fetchall()[0][0])
print("approx_count_distinct:", estimate)
print("SUMMARIZE:", connection.sql("select approx_unique from (summarize users)").fetchall()[0][0])
P
expect "count(DISTINCT) and groups" "$(value "count(DISTINCT)") $(value groups)" "10000 10000"
for name in approx_count_distinct SUMMARIZE; do
    expect "$name, 18,000 to 22,000" "$(within "$(value $name)" 18000 22000)" yes
done
