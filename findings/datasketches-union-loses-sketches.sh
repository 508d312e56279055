#!/usr/bin/env bash
# Expected: a union of HyperLogLog sketches counts the values of all of them, whatever their lg_k.
# Seen: in DataSketches 5.2.0 for Python, hll_union(12) forgets what it had, each time it gets a sketch with an lg_k
# above 12, once the sketches have left their exact lists. Ten sketches of 10,000 values each count as one of them,
# without an error. The count is right if get_estimate() is called after each sketch, or if lg_max_k is not below the
# lg_k of the sketches.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages datasketches==5.2.0 numpy==2.4.6

python3 - <<'P' | tee "$work/seen"
import datasketches

def count(lg_k, lg_max_k, values, look=False):
    union = datasketches.hll_union(lg_max_k)
    for number in range(10):
        sketch = datasketches.hll_sketch(lg_k)
        for i in range(values):
            sketch.update(number * values + i)
        union.update(sketch)
        if look:
            union.get_estimate()
    return round(union.get_result(datasketches.HLL_8).get_estimate())

print("12 into 12:", count(12, 12, 10000))
print("14 into 14:", count(14, 14, 10000))
print("14 into 12:", count(14, 12, 10000))
print("12 into 11:", count(12, 11, 10000))
print("14 into 12, get_estimate() after each:", count(14, 12, 10000, look=True))
print("14 into 12, ten lists of 100:", count(14, 12, 100))
P
for name in "12 into 12" "14 into 14" "14 into 12, get_estimate() after each"; do
    expect "$name: 100,000 values count right" "$(within "$(value "$name")" 95000 105000)" yes
done
for name in "14 into 12" "12 into 11"; do
    expect "$name: 100,000 values count as 10,000" "$(within "$(value "$name")" 9000 11000)" yes
done
expect "1,000 values in lists count right" "$(within "$(value "14 into 12, ten lists of 100")" 950 1050)" yes
