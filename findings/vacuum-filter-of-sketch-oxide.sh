#!/usr/bin/env bash
# Expected: a filter for 100,000 items and a rate of 1 % has 1 % false positives with that many items, and contains
# every item that was inserted and not deleted.
# Seen: VacuumFilter of sketch-oxide 0.1.6 has 45 % false positives, more the larger it is, and 12 % with 1,000 items.
# After half of the items were deleted, it denies 6 % of the others. BloomFilter and CuckooFilter of the package do
# neither.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
python_packages sketch-oxide==0.1.6

python3 - <<'P' | tee "$work/seen"
import sketch_oxide

def item(kind, number):
    return f"{kind}-{number}".encode()

def filled(filter, items):
    for i in range(items):
        filter.insert(item("in", i))
    return filter

def percent(filter):
    return 100 * sum(filter.contains(item("out", i)) for i in range(40000)) / 40000

def denied(filter, delete, items=90000):
    filled(filter, items)
    for i in range(items // 2):
        delete(item("in", i))
    return sum(not filter.contains(item("in", i)) for i in range(items // 2, items))

print("VacuumFilter of 1000, percent:", percent(filled(sketch_oxide.VacuumFilter(1000, 0.01), 1000)))
print("VacuumFilter of 100000, percent:", percent(filled(sketch_oxide.VacuumFilter(100000, 0.01), 100000)))
print("BloomFilter of 100000, percent:", percent(filled(sketch_oxide.BloomFilter(100000, 0.01), 100000)))
vacuum, cuckoo = sketch_oxide.VacuumFilter(100000, 0.01), sketch_oxide.CuckooFilter(100000)
print("VacuumFilter, denied:", denied(vacuum, vacuum.delete))
print("CuckooFilter, denied:", denied(cuckoo, cuckoo.remove))
P
expect "VacuumFilter of 1,000, 8 to 17 %" "$(within "$(value "VacuumFilter of 1000, percent")" 8 17)" yes
expect "VacuumFilter of 100,000, 35 to 55 %" "$(within "$(value "VacuumFilter of 100000, percent")" 35 55)" yes
expect "BloomFilter of 100,000, below 1.3 %" "$(within "$(value "BloomFilter of 100000, percent")" 0.7 1.3)" yes
expect "VacuumFilter denies 1,500 to 4,000 of 45,000" "$(within "$(value "VacuumFilter, denied")" 1500 4000)" yes
expect "CuckooFilter denies" "$(value "CuckooFilter, denied")" 0
