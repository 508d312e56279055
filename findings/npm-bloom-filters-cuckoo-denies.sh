#!/usr/bin/env bash
# Expected: a cuckoo filter contains every item for which add() returned true.
# Seen: CuckooFilter of bloom-filters 3.0.4 for npm, created for 5,000 items, returns true for each of 5,000, and then
# denies some 1,600 of them, without an error. At half of the capacity it denies some ten. BloomFilter of the package
# denies none.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
node_packages bloom-filters@3.0.4

cat >"$work/node/denied.mjs" <<'J'
import filters from "bloom-filters";
function denied(filter, items) {
    const added = Array.from({ length: items }, (_, i) => `item-${i}`).filter((item) => filter.add(item) !== false);
    const name = `${filter.constructor.name}, ${added.length} of ${items} accepted`;
    console.log(`${name}: ${added.filter((item) => !filter.has(item)).length}`);
}
for (const items of [2500, 4500, 5000]) denied(filters.CuckooFilter.create(5000, 0.01), items);
denied(filters.BloomFilter.create(5000, 0.01), 5000);
J
node "$work/node/denied.mjs" | tee "$work/seen"
expect "1 to 50 of 2,500 denied" "$(within "$(value "CuckooFilter, 2500 of 2500 accepted")" 1 50)" yes
expect "100 to 1,500 of 4,500 denied" "$(within "$(value "CuckooFilter, 4500 of 4500 accepted")" 100 1500)" yes
expect "1,000 to 2,500 of 5,000 denied" "$(within "$(value "CuckooFilter, 5000 of 5000 accepted")" 1000 2500)" yes
expect "denied by BloomFilter" "$(value "BloomFilter, 5000 of 5000 accepted")" 0
