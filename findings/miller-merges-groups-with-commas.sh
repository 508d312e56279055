#!/usr/bin/env bash
# Expected: `mlr count-distinct -f a,b` counts the different pairs of two fields.
# Seen: Miller 6.6.0 joins the values of the fields with commas, and compares the results. The pairs ("tea,milk",
# "sugar") and ("tea", "milk,sugar") are one, in every format. So count-distinct, uniq -g, and head -n 1 -g (which
# removes duplicates) leave rows out, stats1 adds up different groups, and join pairs rows whose keys differ, without an
# error. `uniq -a` of whole rows, and datamash 1.7, keep them apart. Replace the commas before, by `gsub`.
set -euo pipefail
. "$(dirname "$0")/servers.sh"
debs miller miller
debs datamash datamash
mlr() { LD_LIBRARY_PATH=$(libraries miller) "$cache/miller/usr/bin/mlr" "$@"; }
mlr --version
"$cache/datamash/usr/bin/datamash" --version | head -n 1

printf 'likes\tdislikes\tcups\ntea,milk\tsugar\t1\ntea\tmilk,sugar\t10\n' | tee "$work/rows.tsv"
mlr --itsv --ojson cat "$work/rows.tsv" >"$work/rows.json"
mlr --itsv --ocsv cat "$work/rows.tsv" >"$work/rows.csv"
for format in tsv csv json; do
    rows="$work/rows.$format"
    expect "$format: count-distinct -n, instead of 2" \
        "$(mlr --i$format --onidx count-distinct -n -f likes,dislikes "$rows")" 1
    expect "$format: rows that head -n 1 -g leaves, instead of 2" \
        "$(mlr --i$format --onidx head -n 1 -g likes,dislikes then count "$rows")" 1
    expect "$format: rows of uniq -g, instead of 2" \
        "$(mlr --i$format --onidx uniq -g likes,dislikes then count "$rows")" 1
    expect "$format: groups and sum of stats1, instead of 1 and 10" \
        "$(mlr --i$format --ojsonl stats1 -a sum -f cups -g likes,dislikes then cut -f cups_sum "$rows")" \
        '{"cups_sum": 11}'
    expect "$format: rows of a join with one of the rows, instead of 1" \
        "$(mlr --i$format --onidx join -j likes,dislikes -f <(mlr --i$format --o$format head -n 1 "$rows") \
            then count "$rows")" 2
    expect "$format: uniq -a -n" "$(mlr --i$format --onidx cut -f likes,dislikes then uniq -a -n "$rows")" 2
    expect "$format: count-distinct -n after gsub" \
        "$(mlr --i$format --onidx put '$likes = gsub($likes, ",", ";")' then count-distinct -n -f likes,dislikes \
            "$rows")" 2
done
expect "groups of datamash" \
    "$("$cache/datamash/usr/bin/datamash" --header-in -s -g 1,2 count 3 <"$work/rows.tsv" | wc -l)" 2
