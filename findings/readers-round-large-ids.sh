#!/usr/bin/env bash
# Expected: a reader that cannot keep a column of whole numbers as integers fails, or keeps it as text.
# Seen: from 2^63 on (half of all unsigned 64-bit hashes and ids), pyarrow 26.0.1 reads CSV and JSON as doubles, pandas
# 3.1.1 with engine="pyarrow" too, and DataFusion 55.0.0 reads JSON so. 10,000 consecutive ids are then 6 values, and no
# error says so. From 2^64 on, DuckDB 2.0.1 reads JSON as doubles. Name the type, such as uint64 or text. From CSV,
# DuckDB, DataFusion and pandas' own reader keep every digit.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages pyarrow==26.0.1 duckdb==2.0.1 pandas==3.1.1 numpy==2.4.6 python-dateutil==2.9.0.post0 six==1.17.0 \
    datafusion==55.0.0 typing-extensions==4.15.0

cat >"$work/read.py" <<'P'
import sys

import datafusion
import duckdb
import pandas
import pyarrow
import pyarrow.csv
import pyarrow.json

folder = sys.argv[1]

def datafusion_ids(kind, path):
    context = datafusion.SessionContext()
    getattr(context, f"register_{kind}")("ids", path)
    return context.sql("select count(distinct id) from ids").to_pydict().popitem()[1][0]

def duckdb_ids(path):
    return duckdb.sql(f"select count(distinct id) from '{path}'").fetchall()[0][0]

def distinct(table):
    return len(table["id"].unique())

uint64 = pyarrow.csv.ConvertOptions(column_types={"id": pyarrow.uint64()})
for name, first in ("2^63", 2**63 + 1000), ("2^64", 2**64 + 1000):
    ids = range(first, first + 10000)
    csv, json = f"{folder}/ids.csv", f"{folder}/ids.json"
    with open(csv, "w") as file:
        file.write("id\n" + "".join(f"{i}\n" for i in ids))
    with open(json, "w") as file:
        file.write("".join(f'{{"id": {i}}}\n' for i in ids))
    print(f"from {name}, pyarrow, CSV:", distinct(pyarrow.csv.read_csv(csv)))
    print(f"from {name}, pyarrow, JSON:", distinct(pyarrow.json.read_json(json)))
    print(f"from {name}, pandas by pyarrow, CSV:", pandas.read_csv(csv, engine="pyarrow").id.nunique())
    print(f"from {name}, pandas, CSV:", pandas.read_csv(csv).id.nunique())
    print(f"from {name}, DataFusion, CSV:", datafusion_ids("csv", csv))
    print(f"from {name}, DataFusion, JSON:", datafusion_ids("json", json))
    print(f"from {name}, DuckDB, CSV:", duckdb_ids(csv))
    print(f"from {name}, DuckDB, JSON:", duckdb_ids(json))
    if first < 2**64:
        print(f"from {name}, pyarrow with uint64, CSV:", distinct(pyarrow.csv.read_csv(csv, convert_options=uint64)))
P
python3 "$work/read.py" "$work" | tee "$work/seen"
for reader in "pyarrow, CSV" "pyarrow, JSON" "pandas by pyarrow, CSV" "DataFusion, JSON"; do
    expect "10,000 ids from 2^63, $reader" "$(value "from 2^63, $reader")" 6
    expect "10,000 ids from 2^64, $reader, below 10" "$(within "$(value "from 2^64, $reader")" 1 9)" yes
done
expect "10,000 ids from 2^64, DuckDB, JSON, below 10" "$(within "$(value "from 2^64, DuckDB, JSON")" 1 9)" yes
expect "10,000 ids from 2^63, DuckDB, JSON" "$(value "from 2^63, DuckDB, JSON")" 10000
expect "10,000 ids from 2^63, pyarrow with uint64" "$(value "from 2^63, pyarrow with uint64, CSV")" 10000
for reader in pandas DataFusion DuckDB; do
    expect "10,000 ids from 2^63 and from 2^64, $reader, CSV" \
        "$(value "from 2^63, $reader, CSV") $(value "from 2^64, $reader, CSV")" "10000 10000"
done
