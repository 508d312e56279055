#!/usr/bin/env bash
# Expected: a join of two integer columns finds equal integers, and concat() keeps them.
# Seen: pandas 3.1.1 turns a signed and an unsigned column of 64 bits into floats together. merge() of Int64 and UInt64
# pairs each id with all that round to the same float: 645 rows instead of 5, without an error or a warning. concat() of
# int64 and uint64, or of Int64 and UInt64, and NumPy's union1d leave 40 of 10,000 ids. Ids of a database are signed,
# and hashes unsigned: cast both to one type before. Polars 2.1.0 joins and unites them exactly.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages pandas==3.1.1 numpy==2.4.6 python-dateutil==2.9.0.post0 six==1.17.0 polars==2.1.0 \
    polars-runtime-32==2.1.0

python3 -W error - <<'P' | tee "$work/seen"
import numpy
import pandas
import polars

ids = list(range(2**60, 2**60 + 10000))

def frame(ids, kind):
    return pandas.DataFrame({"id": pandas.Series(ids, dtype=kind)})

for signed, unsigned in ("Int64", "UInt64"), ("int64", "uint64"):
    kinds = f"{signed} and {unsigned}"
    print(f"rows of merge, {kinds}:", len(frame(ids, signed).merge(frame(ids[:5], unsigned))))
    print(f"ids after concat, {kinds}:", pandas.concat([frame(ids, signed), frame(ids, unsigned)]).id.nunique())
print("rows of merge, cast to Int64:", len(frame(ids, "Int64").merge(frame(ids[:5], "UInt64").astype("Int64"))))
print("ids after union1d:", len(numpy.union1d(numpy.array(ids, "int64"), numpy.array(ids, "uint64"))))

signed, five = polars.DataFrame({"id": ids}), polars.DataFrame({"id": ids[:5]}, schema={"id": polars.UInt64})
unsigned = signed.cast(polars.UInt64)
print("Polars:", signed.join(five, on="id").height,
      polars.concat([signed, unsigned], how="vertical_relaxed")["id"].n_unique())
P
expect "rows of merge, Int64 and UInt64, instead of 5" "$(value "rows of merge, Int64 and UInt64")" 645
expect "rows of merge, int64 and uint64" "$(value "rows of merge, int64 and uint64")" 5
expect "rows of merge, cast to Int64" "$(value "rows of merge, cast to Int64")" 5
for kinds in "Int64 and UInt64" "int64 and uint64"; do
    expect "ids after concat, $kinds, instead of 10,000" "$(value "ids after concat, $kinds")" 40
done
expect "ids after union1d, instead of 10,000" "$(value "ids after union1d")" 40
expect "Polars, rows of join and ids after concat" "$(value Polars)" "5 10000"
