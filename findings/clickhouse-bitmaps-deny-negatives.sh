#!/usr/bin/env bash
# Expected: bitmapContains is true for every member that bitmapToArray lists.
# Seen: in ClickHouse 26.9.2 (chDB 4.4.0), a bitmap of Int8, Int16 or Int32 counts and lists its negative members, and
# bitmapHasAny finds them, but bitmapContains denies them. Int64 is right.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages chdb==4.4.0 chdb-core==26.9.0

python3 - <<'P' | tee "$work/seen"
import chdb

print("ClickHouse:", chdb.query("select version()", "TSV").bytes().decode().strip())
for kind in "Int8", "Int16", "Int32", "Int64":
    for members in 3, 100:
        reply = chdb.query(f"""
            select bitmapCardinality(bitmap), arrayCount(x -> bitmapContains(bitmap, x), bitmapToArray(bitmap)),
                   bitmapHasAny(bitmap, bitmapBuild([to{kind}(-1)]))
            from (select groupBitmapState(to{kind}(toInt64(number) - 2)) as bitmap from numbers({members})) as built
            """, "TSV").bytes().decode().split()
        print(f"{kind}, members, contained, has -1: {' '.join(reply)}" if members == 3 else
            f"{kind} of 100, members, contained, has -1: {' '.join(reply)}")
P
for kind in Int8 Int16 Int32; do
    expect "$kind -2, -1, 0" "$(value "$kind, members, contained, has -1")" "3 1 1"
done
expect "Int64 -2, -1, 0" "$(value "Int64, members, contained, has -1")" "3 3 1"
