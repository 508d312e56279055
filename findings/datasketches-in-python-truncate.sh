#!/usr/bin/env bash
# Expected: a sketch of DataSketches counts the values that it is given, or rejects their type.
# Seen: the Python package 5.2.0 turns numbers into integers unless they are Python's int or float. A thousand NumPy
# float32, Decimal or Fraction values between 0 and 1 count as one value. Integers from 2^63 on become floats, so a
# thousand consecutive ids count as one in HLL and theta sketches.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages datasketches==5.2.0 numpy==2.4.6

python3 - <<'P' | tee "$work/seen"
import decimal, fractions
import datasketches, numpy

def count(sketch, values):
    for value in values:
        sketch.update(value)
    return round(sketch.get_estimate())

thousandths = [i / 1000 for i in range(1000)]
kinds = {
    "float": thousandths,
    "numpy.float64": map(numpy.float64, thousandths),
    "numpy.float32": map(numpy.float32, thousandths),
    "numpy.float16": map(numpy.float16, thousandths[::10]),
    "Decimal": [decimal.Decimal(i) / 1000 for i in range(1000)],
    "Fraction": [fractions.Fraction(i, 1000) for i in range(1000)],
    "ids from 2^62": range(2**62, 2**62 + 1000),
    "ids from 2^63": range(2**63, 2**63 + 1000),
}
for name, values in kinds.items():
    values = list(values)
    print(f"{name}: {len(values)} values, HLL {count(datasketches.hll_sketch(12), values)},"
          f" theta {count(datasketches.update_theta_sketch(12), values)}")
P
for kind in float numpy.float64 "ids from 2^62"; do
    expect "right for $kind" "$(grep -cE "^${kind/^/.}: 1000 values, HLL (99|100|101)[0-9], theta 1000" "$work/seen")" 1
done
for kind in numpy.float32 numpy.float16 Decimal Fraction "ids from 2^63"; do
    expect "one value for $kind" "$(grep -c "^${kind/^/.}: .*HLL 1, theta 1\$" "$work/seen")" 1
done
