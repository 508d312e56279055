#!/usr/bin/env bash
# Expected: a sketch that was sent and decoded has the count, sum, minimum and maximum that it had. The README of
# @datadog/sketches-js offers them, and sending sketches to be merged elsewhere.
# Seen: in @datadog/sketches-js 2.1.1 and ddsketch 3.0.1 for Python, a decoded sketch has the sum 0 (so an average of 0
# too), the minimum infinity and the maximum -infinity, without an error. Merged into another sketch, its values count,
# but are not in the sum: the average of 1 to 1,000 and as many values again is half of it. Quantiles are right. Send
# the sum beside the sketch.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages ddsketch==3.0.1 protobuf==7.36.2
node_packages @datadog/sketches-js@2.1.1 protobufjs@8.8.1

cat >"$work/node/send.mjs" <<'J'
import sketches from "@datadog/sketches-js";
function show(name, { count, sum, min, max }, median) {
    console.log(`npm, ${name}: ${count} ${sum} ${min} ${max} ${Math.round(median)}`);
}
const sent = new sketches.DDSketch();
const local = new sketches.DDSketch();
for (let value = 1; value <= 1000; value++) {
    sent.accept(value);
    local.accept(value);
}
show("before", sent, sent.getValueAtQuantile(0.5));
const received = sketches.DDSketch.fromProto(sent.toProto());
show("after", received, received.getValueAtQuantile(0.5));
local.merge(received);
show("merged", local, local.getValueAtQuantile(0.5));
J
node "$work/node/send.mjs" | tee "$work/seen"
python3 - <<'P' | tee -a "$work/seen"
from ddsketch import DDSketch
from ddsketch.pb.proto import DDSketchProto

def show(name, sketch):
    numbers = sketch.count, sketch.sum, sketch.avg, round(sketch.get_quantile_value(0.5))
    print(f"Python, {name}:", *(f"{number:g}" for number in numbers))

sent, local = DDSketch(), DDSketch()
for value in range(1, 1001):
    sent.add(value)
    local.add(value)
show("before", sent)
received = DDSketchProto.from_proto(DDSketchProto.to_proto(sent))
show("after", received)
local.merge(received)
show("merged", local)
P
expect "npm: count, sum, minimum, maximum and median" "$(value "npm, before")" "1000 500500 1 1000 498"
expect "after transport" "$(value "npm, after")" "1000 0 Infinity -Infinity 498"
expect "merged with as many values, instead of the sum 1001000" "$(value "npm, merged")" "2000 500500 1 1000 498"
expect "Python: count, sum, average and median" "$(value "Python, before")" "1000 500500 500.5 498"
expect "after transport" "$(value "Python, after")" "1000 0 0 498"
expect "merged, instead of the average 500.5" "$(value "Python, merged")" "2000 500500 250.25 498"
