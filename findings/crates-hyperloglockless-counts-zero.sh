#!/usr/bin/env bash
# Expected: a HyperLogLog of precision 11 counts with a standard error of 2.3 %.
# Seen: that of the crate hyperloglockless 0.5.0 counts 10 to 10,000 values as 0. Those of 10 and 12 count them right.
# precision_for_error() gives 11 for every error from 2.3 to 3.2 %. HyperLogLogPlus of the crate counts 100 right and
# 10,000 as 0, and hll-rust-py 0.1.0 for Python does as HyperLogLog. With precision 14, one value counts as 0.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages hll-rust-py==0.1.0
crates hyperloglockless@0.5.0 <<'R'
use hyperloglockless::{HyperLogLog, HyperLogLogPlus, precision_for_error};

fn main() {
    println!("precisions for 2.3, 3.2 %: {} {}", precision_for_error(0.023), precision_for_error(0.032));
    for precision in [10, 11, 12, 14] {
        for values in [1, 100, 10_000, 100_000] {
            let (mut sketch, mut plus) = (HyperLogLog::seeded(precision, 1), HyperLogLogPlus::seeded(precision, 1));
            for value in 0..values {
                sketch.insert(&value);
                plus.insert(&value);
            }
            println!("HyperLogLog {precision} of {values}: {}", sketch.count());
            println!("HyperLogLogPlus {precision} of {values}: {}", plus.count());
        }
    }
}
R
"$work/rust/release/program" | tee "$work/seen"
python3 - <<'P' | tee -a "$work/seen"
import hll_rust_py

for precision in 11, 12:
    sketch = hll_rust_py.PyHLL(precision)
    for value in range(10000):
        sketch.insert(value)
    print(f"hll-rust-py {precision} of 10000:", sketch.count())
P
expect "precisions for 2.3 and 3.2 %" "$(value "precisions for 2.3, 3.2 %")" "11 11"
for values in 100 10000; do
    expect "precision 11, $values values" "$(value "HyperLogLog 11 of $values")" 0
done
expect "precision 11, 100,000 values, within 10 %" "$(within "$(value "HyperLogLog 11 of 100000")" 90000 110000)" yes
for precision in 10 12; do
    expect "precision $precision, 10,000 values, within 10 %" \
        "$(within "$(value "HyperLogLog $precision of 10000")" 9000 11000)" yes
done
expect "HyperLogLogPlus 11, 100 and 10,000 values" \
    "$(value "HyperLogLogPlus 11 of 100") $(value "HyperLogLogPlus 11 of 10000")" "100 0"
expect "hll-rust-py 11, 10,000 values" "$(value "hll-rust-py 11 of 10000")" 0
expect "hll-rust-py 12, 10,000 values, within 10 %" "$(within "$(value "hll-rust-py 12 of 10000")" 9000 11000)" yes
expect "precision 14, one value" "$(value "HyperLogLog 14 of 1") $(value "HyperLogLogPlus 14 of 1")" "0 0"
