#!/usr/bin/env bash
# Expected: if 99 % of the requests take 1 ms and the others 1 s, the median is 1 ms.
# Seen: a Summary of prom-client 15.1.3 says 11 ms, and 810 ms for the 90th percentile, after a thousand requests and
# after two million. Its tdigest 0.1.3 keeps equal values in one place in the middle of their ranks, and draws a
# straight line from there to the next value. tdigest 0.5.2.2 for Python does so too; its 10th percentile is even -788
# ms. Values that do not repeat come out right. Use a Histogram of prom-client. DataSketches 5.2.0 and fastdigest
# 0.12.0 say 1 ms.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages tdigest==0.5.2.2 accumulation-tree==0.6.4 pyudorandom==1.0.0 datasketches==5.2.0 numpy==2.4.6 \
    fastdigest==0.12.0
node_packages prom-client@15.1.3 tdigest@0.1.3

cat >"$work/node/quantiles.mjs" <<'J'
import prometheus from "prom-client";
import tdigest from "tdigest";
async function summary(name, requests, duration) {
    const summary = new prometheus.Summary({ name, help: name, percentiles: [0.5, 0.9, 0.98] });
    for (let i = 0; i < requests; i++) summary.observe(duration(i));
    const { values } = await summary.get();
    return values.slice(0, 3).map((quantile) => Math.round(quantile.value)).join(" ");
}
const slow = (i) => i % 100 === 0;
console.log(`prom-client, 1 ms: ${await summary("one", 1000, (i) => (slow(i) ? 1000 : 1))}`);
console.log(`prom-client, more: ${await summary("more", 2000000, (i) => (slow(i) ? 1000 : 1))}`);
console.log(`prom-client, 1 to 4 ms: ${await summary("some", 1000, (i) => (slow(i) ? 1000 : 1 + (i % 4)))}`);
console.log(`prom-client, no repeats: ${await summary("all", 1000, (i) => (slow(i) ? 1000 : 1) + i / 10000)}`);
const digest = new tdigest.TDigest();
for (let i = 0; i < 1000; i++) digest.push(slow(i) ? 1000 : 1);
console.log(`tdigest for npm: ${digest.percentile([0.5, 0.9, 0.98]).map(Math.round).join(" ")}`);
console.log(`tdigest for npm, places: ${digest.size()}`);
J
node "$work/node/quantiles.mjs" | tee "$work/seen"
python3 - <<'P' | tee -a "$work/seen"
import datasketches, fastdigest
from tdigest import TDigest

durations = [1000.0 if i % 100 == 0 else 1.0 for i in range(1000)]
digest = TDigest()
digest.batch_update(durations)
print("tdigest for Python:", *(round(digest.percentile(p)) for p in (10, 50, 90, 98)))
sketch = datasketches.tdigest_double(100)
for duration in durations:
    sketch.update(duration)
print("DataSketches:", *(round(sketch.get_quantile(q)) for q in (0.1, 0.5, 0.9, 0.98)))
digest = fastdigest.TDigest.from_values(durations)
print("fastdigest:", *(round(digest.quantile(q)) for q in (0.1, 0.5, 0.9, 0.98)))
P
expect "Summary of prom-client: 50, 90 and 98 %, instead of 1 1 1" "$(value "prom-client, 1 ms")" "11 810 970"
expect "two million requests" "$(value "prom-client, more")" "11 810 970"
expect "most requests take 1 to 4 ms, instead of 3 4 4" "$(value "prom-client, 1 to 4 ms")" "3 272 885"
expect "no value repeats" "$(value "prom-client, no repeats")" "1 1 1"
expect "tdigest for npm" "$(value "tdigest for npm")" "11 810 970"
expect "its number of places" "$(value "tdigest for npm, places")" 2
expect "tdigest for Python: 10, 50, 90 and 98 %" "$(value "tdigest for Python")" "-788 11 810 970"
expect "DataSketches" "$(value DataSketches)" "1 1 1 1"
expect "fastdigest" "$(value fastdigest)" "1 1 1 1"
