#!/usr/bin/env bash
# Expected: the size of fingerprints sets the false positives of a cuckoo filter: some 3 % with one byte.
# Seen: in pyprobables 0.7.0 both places of an item follow from its fingerprint. With finger_size=1 a filter takes 256
# different items, and calls all others one of them. After 2,000 of 120,000 items it says yes to every question, and
# removing half of them removes all. The default of four bytes is right.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages pyprobables==0.7.0

python3 - <<'P' | tee "$work/seen"
import probables

for size in 1, 4:
    filter = probables.CuckooFilter(capacity=30000, bucket_size=4, finger_size=size)
    for i in range(2000):
        filter.add(f"in-{i}")
    print(f"finger_size {size}, items:", filter.elements_added)
    yes = sum(filter.check(f"out-{i}") for i in range(10000))
    print(f"finger_size {size}, percent of false positives:", yes / 100)
    for i in range(1000):
        filter.remove(f"in-{i}")
    denied = sum(not filter.check(f"in-{i}") for i in range(1000, 2000))
    print(f"finger_size {size}, denied of the other 1,000:", denied)
P
expect "one byte, at most 256 items" "$(within "$(value "finger_size 1, items")" 1 256)" yes
expect "one byte, above 95 %" "$(within "$(value "finger_size 1, percent of false positives")" 95 100)" yes
expect "one byte, above 950 denied" "$(within "$(value "finger_size 1, denied of the other 1,000")" 950 1000)" yes
expect "four bytes" "$(value "finger_size 4, items") $(value "finger_size 4, percent of false positives") \
$(value "finger_size 4, denied of the other 1,000")" "2000 0.0 0"
