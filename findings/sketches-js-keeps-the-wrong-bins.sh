#!/usr/bin/env bash
# Expected: LogCollapsingLowestDenseDDSketch keeps the bins of the highest values, and their quantiles within its
# relative accuracy, in whatever order the values come.
# Seen: that of @datadog/sketches-js 2.1.1 does so only if the values fall or are mixed. If they rise, as a queue or a
# memory does that fills up, its quantiles are 2 to 17 % too low with an accuracy of 0.1 % and the default of 2,048
# bins. With 128 bins and 1 %, the median of 1 to 100,000 is 42,205. ddsketch 3.0.1 for Python is right in every order.
# DDSketch, which never merges bins, is right in both.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages ddsketch==3.0.1 protobuf==7.36.2
node_packages @datadog/sketches-js@2.1.1 protobufjs@8.8.1

cat >"$work/node/quantiles.mjs" <<'J'
import sketches from "@datadog/sketches-js";
const orders = { rising: (i) => i + 1, falling: (i) => 100000 - i, mixed: (i) => 1 + ((i * 7919) % 100000) };
function show(name, kind, options) {
    for (const [order, value] of Object.entries(orders)) {
        const sketch = new sketches[kind](options);
        for (let i = 0; i < 100000; i++) sketch.accept(value(i));
        const quantiles = [0.1, 0.5, 0.99].map((q) => Math.round(sketch.getValueAtQuantile(q)));
        console.log(`${name}, ${order}: ${quantiles.join(" ")}`);
    }
}
const lowest = "LogCollapsingLowestDenseDDSketch";
show("0.1 %, 2048 bins", lowest, { relativeAccuracy: 0.001 });
show("1 %, 128 bins", lowest, { relativeAccuracy: 0.01, binLimit: 128 });
show("0.1 %, all bins", "DDSketch", { relativeAccuracy: 0.001 });
J
node "$work/node/quantiles.mjs" | tee "$work/seen"
python3 - <<'P' | tee -a "$work/seen"
from ddsketch.ddsketch import LogCollapsingLowestDenseDDSketch

for name, accuracy, bins in ("0.1 %, 2048 bins", 0.001, 2048), ("1 %, 128 bins", 0.01, 128):
    sketch = LogCollapsingLowestDenseDDSketch(accuracy, bins)
    for value in range(1, 100001):
        sketch.add(value)
    print(f"Python, {name}, rising:", *(round(sketch.get_quantile_value(q)) for q in (0.1, 0.5, 0.99)))
P

# right NAME LOW HIGH: prints yes if the quantiles of 10, 50 and 99 % are between these thousandths of the true ones.
right() {
    value "$1" | awk -v low="$2" -v high="$3" '{ split("10000 50000 99000", true)
        for (i = 1; i <= 3; i++) if ($i < true[i] * low / 1000 || $i > true[i] * high / 1000) wrong = 1
        print wrong ? $0 : "yes" }'
}
expect "rising, 10, 50 and 99 %, instead of 10000 50000 99000" "$(value "0.1 %, 2048 bins, rising")" "8342 48291 97246"
expect "rising, 128 bins" "$(value "1 %, 128 bins, rising")" "7866 42205 90249"
for order in falling mixed; do
    expect "$order, within 0.2 %" "$(right "0.1 %, 2048 bins, $order" 998 1002)" yes
    expect "$order, 128 bins, within 1.1 %" "$(right "1 %, 128 bins, $order" 989 1011)" yes
done
expect "DDSketch, rising, within 0.2 %" "$(right "0.1 %, all bins, rising" 998 1002)" yes
expect "Python, rising, within 0.2 %" "$(right "Python, 0.1 %, 2048 bins, rising" 998 1002)" yes
expect "Python, rising, 128 bins, within 1.1 %" "$(right "Python, 1 %, 128 bins, rising" 989 1011)" yes
