#!/usr/bin/env bash
# Expected: `uniq` estimates the number of different values, whatever the type.
# Seen: for UInt256 and Int256, `uniq`, `uniqCombined`, `uniqCombined64` and `uniqHLL12` of ClickHouse 26.9.2 (in chDB
# 4.4.0) ignore the highest 64 of the 256 bits. Names of up to 8 characters that are stored from the left, as contracts
# on a blockchain do, are all one value. `uniq(toString(x))` does not help, because the optimiser takes toString away.
# `uniqExact`, count(distinct) and `uniq(x, 0)` count them.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages chdb==4.4.0 chdb-core==26.9.0

python3 - <<'P' | tee "$work/seen"
import chdb

def query(text):
    return chdb.query(text, "TSV").data().strip().replace("\t", " ")

print("version:", query("select version()"))
kinds = {
    "names, UInt256": "reinterpretAsUInt256(reverse(toFixedString('user' || leftPad(toString(number), 4, '0'), 32)))",
    "high bits, Int256": "reinterpretAsInt256(bitShiftLeft(toUInt256(number), 192))",
    "next bits, UInt256": "bitShiftLeft(toUInt256(number), 128)",
    "high bits, UInt128": "bitShiftLeft(toUInt128(number), 100)",
}
estimates = "uniq(x), uniqCombined(x), uniqCombined64(x), uniqHLL12(x)"
for kind, value in kinds.items():
    values = f"from (select {value} x from numbers(10000))"
    print(f"{kind}:", query(f"select {estimates} {values}"))
    print(f"{kind}, exact:", query(f"select uniqExact(x), count(distinct x), count(distinct toString(x)) {values}"))
    print(f"{kind}, as text:", query(f"select uniq(toString(x)) {values}"))
    print(f"{kind}, with 0:", query(f"select uniq(x, 0) {values}"))
P
expect "version" "$(value version)" 26.9.2.1
for kind in "names, UInt256" "high bits, Int256"; do
    expect "10,000 values, $kind: the estimates" "$(value "$kind")" "1 1 1 1"
    expect "exact" "$(value "$kind, exact")" "10000 10000 10000"
    expect "as text" "$(value "$kind, as text")" 1
    expect "with a second argument, within 3 %" "$(within "$(value "$kind, with 0")" 9700 10300)" yes
done
for kind in "next bits, UInt256" "high bits, UInt128"; do
    expect "10,000 values, $kind: uniq, within 3 %" "$(within "$(value "$kind" | cut -d ' ' -f 1)" 9700 10300)" yes
done
