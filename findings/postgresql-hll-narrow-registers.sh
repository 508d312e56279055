#!/usr/bin/env bash
# Expected: a sketch with registers that are too narrow for its count has an error, or a count that stops growing.
# Seen: Debian's postgresql-15-hll 2.17 with registers of 3 bits counts 10,000 values right, 100,000 as half as many
# again, and a million as NaN, which PostgreSQL takes for more than any number. With 2 bits, 10,000 count as 24,000. The
# default is 5 bits.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
debs postgresql-15-hll postgresql-15 postgresql-15-hll
postgres postgresql-15-hll

count() { sql "select #hll_add_agg(hll_hash_integer(x), 11, $1) from generate_series(1, $2) x"; }
expect "5 bits, 1,000,000 within a tenth" "$(within "$(count 5 1000000)" 900000 1100000)" yes
expect "3 bits, 10,000 within a tenth" "$(within "$(count 3 10000)" 9000 11000)" yes
expect "3 bits, 100,000 count as 140,000 to 170,000" "$(within "$(count 3 100000)" 140000 170000)" yes
expect "2 bits, 10,000 count as 20,000 to 30,000" "$(within "$(count 2 10000)" 20000 30000)" yes
expect "3 bits, 1,000,000" "$(count 3 1000000)" NaN
expect "3 bits, 1,000,000 are more than a billion" \
    "$(sql "select #hll_add_agg(hll_hash_integer(x), 11, 3) > 1000000000 from generate_series(1, 1000000) x")" t
