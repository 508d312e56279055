#!/usr/bin/env bash
# Expected: a larger rank has a larger quantile, and `get_rank` undoes `get_quantile`.
# Seen: in tdigest_double of DataSketches 5.2.0 for Python, the quantile falls from one centroid to the next while the
# rank rises. With k = 100, the median of 0 to 99,999 is 53,681; with the default k = 200, quantiles are up to 2.1 % of
# the ranks off. `get_rank` is exact. From the same bytes, the crate datasketches 0.6.0 gives the right quantiles. Read
# the digest there, or take a KLL sketch, whose quantiles do not fall.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages datasketches==5.2.0 numpy==2.4.6
crates datasketches@0.6.0+tdigest <<'R'
use datasketches::tdigest::TDigestMut;

fn main() {
    for path in std::env::args().skip(1) {
        let mut digest = TDigestMut::deserialize(&std::fs::read(&path).unwrap()).unwrap();
        let quantiles: Vec<f64> = (1..100).map(|i| digest.quantile(i as f64 / 100.0).unwrap().unwrap()).collect();
        let falls = quantiles.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let worst = (1..100).map(|i| (quantiles[i - 1] / 1000.0 - i as f64).abs()).fold(0.0, f64::max);
        let name = path.rsplit('/').next().unwrap();
        println!("crate, {name}: {:.0} {falls} {worst:.2}", quantiles[49]);
    }
}
R
python3 - "$work" <<'P' | tee "$work/seen"
import sys
import datasketches

def show(name, sketch):
    quantiles = [sketch.get_quantile(i / 100) for i in range(1, 100)]
    falls = sum(after < before for before, after in zip(quantiles, quantiles[1:]))
    worst = max(abs(quantile / 1000 - i) for i, quantile in enumerate(quantiles, 1))
    rank = max(abs(sketch.get_rank(i * 1000.0) * 100 - i) for i in range(1, 100))
    print(f"Python, {name}: {quantiles[49]:.0f} {falls} {worst:.2f}")
    print(f"Python, {name}, ranks: {rank:.2f}")

for name, sketch in (
    ("k100", datasketches.tdigest_double(100)),
    ("k200", datasketches.tdigest_double()),
    ("KLL", datasketches.kll_doubles_sketch(200)),
):
    for value in range(100000):
        sketch.update(float(value))
    show(name, sketch)
    with open(f"{sys.argv[1]}/{name}", "wb") as file:
        file.write(sketch.serialize())
P
"$work/rust/release/program" "$work/k100" "$work/k200" | tee -a "$work/seen"
field() { value "$1" | cut -d ' ' -f "$2"; }
expect "k = 100: median, instead of 50000" "$(field "Python, k100" 1)" 53681
for k in k100 k200; do
    expect "$k: falls among 99 quantiles, at least 20" "$(within "$(field "Python, $k" 2)" 20 98)" yes
    expect "error of the ranks, percent" "$(value "Python, $k, ranks")" 0.00
    expect "crate: falls" "$(field "crate, $k" 2)" 0
    expect "crate: largest error of 99 quantiles, percent" "$(within "$(field "crate, $k" 3)" 0 0.01)" yes
done
expect "k = 100: largest error of 99 quantiles, 4 to 6 %" "$(within "$(field "Python, k100" 3)" 4 6)" yes
expect "k = 200: 1.5 to 3 %" "$(within "$(field "Python, k200" 3)" 1.5 3)" yes
expect "KLL: falls" "$(field "Python, KLL" 2)" 0
