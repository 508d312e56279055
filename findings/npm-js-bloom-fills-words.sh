#!/usr/bin/env bash
# Expected: a Bloom filter with 10 bits and 7 hashes for each item has some 0.8 % of false positives.
# Seen: @getkoala/js-bloom 0.1.1 has some 15 %, at every size: a hash that stands for the last bit of a word of 32 sets
# the 31 others. A filter with 10 hashes and 14.4 bits, for 0.1 %, has 6.5 %. @mcrowe/minibloom 0.2.0 keeps its rate.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
node_packages @getkoala/js-bloom@0.1.1 @mcrowe/minibloom@0.2.0

cat >"$work/node/rate.mjs" <<'J'
import bloom from "@getkoala/js-bloom";
import minibloom from "@mcrowe/minibloom";
function percent(filter, items) {
    for (let i = 0; i < items; i++) filter.add(`in-${i}`);
    let positives = 0;
    for (let i = 0; i < 20000; i++) positives += filter.test(`out-${i}`);
    return positives / 200;
}
for (const items of [1000, 100000]) {
    const filter = new bloom.JsBloom({ size: Math.round(items * 10.1), hashes: 7, seed: 1 });
    console.log(`js-bloom, ${items} items, percent: ${percent(filter, items)}`);
}
const exact = new bloom.JsBloom({ size: 144270, hashes: 10, seed: 1 });
console.log(`js-bloom, 10 hashes, percent: ${percent(exact, 10000)}`);
const ones = new Set();
for (let i = 0; i < 1000; i++) {
    const filter = new bloom.JsBloom({ size: 32, hashes: 1, seed: 1 });
    filter.add(`in-${i}`);
    ones.add(filter.toHash().bits[0].toString(2).replaceAll("0", "").length);
}
console.log(`js-bloom, bits that one hash sets: ${[...ones].sort()}`);
console.log(`minibloom, percent: ${percent(minibloom.optimalFilter(100000, 0.01), 100000)}`);
J
node "$work/node/rate.mjs" | tee "$work/seen"
expect "12 to 20 % with 1,000 items" "$(within "$(value "js-bloom, 1000 items, percent")" 12 20)" yes
expect "12 to 17 % with 100,000 items" "$(within "$(value "js-bloom, 100000 items, percent")" 12 17)" yes
expect "5 to 8 % instead of 0.1 %" "$(within "$(value "js-bloom, 10 hashes, percent")" 5 8)" yes
expect "bits that one hash sets" "$(value "js-bloom, bits that one hash sets")" 1,31
expect "0.9 to 1.2 % of minibloom" "$(within "$(value "minibloom, percent")" 0.9 1.2)" yes
