#!/usr/bin/env bash
# Expected: values that PostgreSQL calls equal are one value for a sketch, as they are for count(DISTINCT).
# Seen: Debian's postgresql-15-hll 2.17 hashes the bytes of a type. An id is another value as smallint, integer and
# bigint, so a union of sketches from before and after a column became bigint counts every id twice. The numerics 1, 1.0
# and 1.00 are three values, 0.0 and -0.0 are two, and so are the intervals of 1 month and of 30 days.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
debs postgresql-15-hll postgresql-15 postgresql-15-hll
postgres postgresql-15-hll

expect "equal hashes of 1,000 integers and bigints" \
    "$(sql "select count(*) from generate_series(1, 1000) x where hll_hash_integer(x) = hll_hash_bigint(x)")" 0
union=$(sql "select #hll_union_agg(sketch) from (
    select hll_add_agg(hll_hash_integer(x), 14) sketch from generate_series(1, 1000) x
    union all select hll_add_agg(hll_hash_bigint(x), 14) from generate_series(1, 1000) x) sketches")
expect "1,000 ids as integer and as bigint count as 2,000" "$(within "$union" 1950 2050)" yes
counted="select #hll_add_agg(hll_hash_any(x)), count(distinct x) from"
expect "numeric 1, 1.0, 1.00: sketch and count(DISTINCT)" \
    "$(sql "$counted (values (1::numeric), (1.0), (1.00)) v(x)")" "3|1"
expect "0.0 and -0.0" "$(sql "$counted (values (0.0::float8), ('-0.0'::float8)) v(x)")" "2|1"
expect "intervals" "$(sql "$counted (values (interval '1 month'), (interval '30 days')) v(x)")" "2|1"
