#!/usr/bin/env bash
# Expected: a Delta table that was written with Bloom filters keeps them when its small files are compacted.
# Seen: delta-rs 1.6.6 does not store that a table has filters. compact(), delete() and merge() write files without
# them, unless each call gets the writer's properties again. The option `ndv` limits a filter's size: with the `ndv`
# of a smaller table, the filter answers yes to nearly every question.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages deltalake==1.6.6 arro3-core==0.9.1 deprecated==1.3.1 wrapt==2.5.2 pyarrow==26.0.1

python3 - "$work" <<'P' | tee "$work/seen"
import sys
import deltalake, pyarrow, pyarrow.parquet

def properties(ndv):
    column = deltalake.ColumnProperties(bloom_filter_properties=deltalake.BloomFilterProperties(True, 0.01, ndv))
    return deltalake.WriterProperties(column_properties={"id": column})

def sizes(path):
    files = deltalake.DeltaTable(path).file_uris()
    return [pyarrow.parquet.ParquetFile(f).metadata.row_group(0).column(0).bloom_filter_length for f in files]

def table(name, ndv=1000):
    path = f"{sys.argv[1]}/{name}"
    for first in (0, 1000):
        ids = pyarrow.table({"id": [f"id-{i}" for i in range(first, first + 1000)]})
        deltalake.write_deltalake(path, ids, mode="append", writer_properties=properties(ndv))
    return path

path = table("compacted")
print("appended twice:", sizes(path))
deltalake.DeltaTable(path).optimize.compact()
print("compacted:", sizes(path))
path = table("deleted")
deltalake.DeltaTable(path).delete("id = 'id-5' or id = 'id-1005'")
print("rows of both files deleted:", sizes(path))
path = table("merged")
source = pyarrow.table({"id": ["id-5", "id-2000"]})
merge = deltalake.DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
merge.when_matched_update_all().when_not_matched_insert_all().execute()
print("merged, files without:", sum(size is None for size in sizes(path)) > 0)
path = table("again")
deltalake.DeltaTable(path).optimize.compact(writer_properties=properties(2000))
print("compacted with the properties:", sizes(path))
print("1000 values with an ndv of 10:", sizes(table("small", ndv=10)))
P
of() { sed -n "s/^$1: //p" "$work/seen"; }
expect "files with filters after appending" "$(of "appended twice" | grep -o '[0-9]\+' | wc -l)" 2
expect "filters after compact" "$(of compacted)" "[None]"
expect "filters after delete" "$(of "rows of both files deleted")" "[None]"
expect "files without filter after merge" "$(of "merged, files without")" True
expect "files with filters after compact with the properties" \
    "$(of "compacted with the properties" | grep -o '[0-9]\+' | wc -l)" 1
expect "bytes for an ndv of 10, header included" "$(of "1000 values with an ndv of 10")" "[47, 47]"
