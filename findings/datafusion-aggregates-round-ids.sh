#!/usr/bin/env bash
# Expected: an aggregate declared for doubles rejects a bigint column, as it rejects text.
# Seen: DataFusion 55.0.0 for Python casts the column without a word, so ids above 2^53 are rounded before they arrive.
# A thousand consecutive ids are 501 for the aggregate.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages datafusion==55.0.0 pyarrow==26.0.1 typing_extensions==4.15.0

python3 - <<'P' | tee "$work/seen"
import datafusion, pyarrow

class Distinct(datafusion.Accumulator):
    def __init__(self):
        self.members = set()
    def update(self, values):
        self.members.update(values.to_pylist())
    def merge(self, states):
        for members in states[0].to_pylist():
            self.members.update(members)
    def state(self):
        return [pyarrow.scalar(list(self.members), pyarrow.list_(pyarrow.float64()))]
    def evaluate(self):
        return pyarrow.scalar(len(self.members))

context, state = datafusion.SessionContext(), pyarrow.list_(pyarrow.float64())
for name, argument in ("members", pyarrow.float64()), ("members_of_int64", pyarrow.int64()):
    context.register_udaf(datafusion.udaf(Distinct, [argument], pyarrow.int64(), [state], "stable", name))
ids = list(range(2**53, 2**53 + 1000))
context.from_arrow(pyarrow.table({"id": ids, "name": [f"user-{id}" for id in ids]}), name="users")
row = context.sql("select count(distinct id) as exact, members(id) as members from users").to_pylist()[0]
print("count(distinct id):", row["exact"])
print("members(id):", row["members"])
declared = context.sql("select members_of_int64(id) as members from users").to_pylist()[0]
print("declared for int64:", declared["members"])
try:
    context.sql("select members(name) from users").to_pylist()
    print("members(name): accepted")
except Exception as error:
    print("members(name): error")
P
expect "count(distinct id)" "$(value "count(distinct id)")" 1000
expect "the aggregate for doubles" "$(value "members(id)")" 501
expect "the aggregate for int64" "$(value "declared for int64")" 1000
expect "of text" "$(value "members(name)")" error
