#!/usr/bin/env bash
# Expected: a filter for 10,000 items and a rate of 1 % has 1 % false positives with that many items, whatever they
# are.
# Seen: rbloom 1.5.4 takes all positions from Python's hash(), which changes numbers little: hash(2**40) is 2**40.
# Random float32 values, read as Python's floats, have 40 % false positives, and multiples of 2^40 have 91 %; in
# filters of other sizes, from 14 % to 91 %. Consecutive integers, random doubles and texts have 1 %. So have all
# of them with the hash_func of rbloom's README, which recommends it for tens of millions of items, or if false
# positives are very costly.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages rbloom==1.5.4 numpy==2.4.6

python3 - <<'P' | tee "$work/seen"
import hashlib, pickle
import numpy, rbloom

ITEMS = 10000

def sha256(item):
    return int.from_bytes(hashlib.sha256(pickle.dumps(item)).digest()[:16], "big", signed=True)

def percent(values, hash_func=None):
    values = list(dict.fromkeys(values))
    filter = rbloom.Bloom(ITEMS, 0.01, hash_func)
    filter.update(values[:ITEMS])
    return 100 * sum(value in filter for value in values[ITEMS:]) / len(values[ITEMS:])

random = numpy.random.default_rng(1)
kinds = {
    "integers": range(5 * ITEMS),
    "texts": [f"user-{i}" for i in range(5 * ITEMS)],
    "doubles": random.random(5 * ITEMS).tolist(),
    "float32": random.random(5 * ITEMS, dtype=numpy.float32).tolist(),
    "multiples of 2^40": [i << 40 for i in range(5 * ITEMS)],
}
for name, values in kinds.items():
    print(f"{name}, percent: {percent(values):.2f}")
    print(f"{name} with hash_func, percent: {percent(values, sha256):.2f}")
P
for name in integers texts doubles; do
    expect "$name, below 1.4 %" "$(within "$(value "$name, percent")" 0.6 1.4)" yes
done
expect "float32, 35 to 45 %" "$(within "$(value "float32, percent")" 35 45)" yes
expect "multiples of 2^40, 85 to 95 %" "$(within "$(value "multiples of 2^40, percent")" 85 95)" yes
for name in integers float32 "multiples of 2^40"; do
    expect "$name with hash_func, below 1.4 %" "$(within "$(value "$name with hash_func, percent")" 0.6 1.4)" yes
done
